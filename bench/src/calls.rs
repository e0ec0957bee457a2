//! Counts a subject's system calls with strace, which needs no quiet machine: a count is the same on a busy one.
//!
//! The subject is some twenty times slower meanwhile, so nothing is timed here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::answers::BenchFamily;
use crate::subjects::Subject;

/// How long strace may take to attach and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Calls by name, the most frequent first.
pub(crate) type CallCounts = Vec<(String, u64)>;

/// What one request of a subject takes.
pub(crate) struct RequestCalls {
    pub(crate) subject: Subject,
    pub(crate) family: BenchFamily,
    pub(crate) per_request: Vec<(String, f64)>,
}

/// A running strace.
pub(crate) struct Tracer {
    child: Child,
    table: PathBuf,
}

impl Tracer {
    /// Attaches to all threads of these processes. The table is written when it is stopped.
    pub(crate) fn attach(processes: &[u32], folder: &Path) -> Result<Self, String> {
        let table = folder.join("calls");
        let said = folder.join("strace.log");
        let log =
            fs::File::create(&said).map_err(|error| format!("{}: {error}", said.display()))?;
        let mut command = Command::new("strace");
        command
            .args(["-f", "-c", "-o"])
            .arg(&table)
            .stdin(Stdio::null())
            .stderr(log);
        command.args(
            processes
                .iter()
                .flat_map(|process| ["-p".to_owned(), process.to_string()]),
        );
        let child = command
            .spawn()
            .map_err(|error| format!("strace: {error}"))?;
        let begun = Instant::now();
        while fs::read_to_string(&said)
            .unwrap_or_default()
            .lines()
            .filter(|line| line.contains("attached"))
            .count()
            < processes.len()
        {
            if begun.elapsed() > PATIENCE {
                return Err("strace does not attach; is ptrace allowed here?".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { child, table })
    }

    /// Detaches; what was called meanwhile.
    pub(crate) fn stop(mut self) -> Result<CallCounts, String> {
        let told = kill_process(Pid::from_child(&self.child), Signal::INT);
        told.map_err(|error| format!("strace: {error}"))?;
        self.child
            .wait()
            .map_err(|error| format!("strace: {error}"))?;
        let table = fs::read_to_string(&self.table)
            .map_err(|error| format!("{}: {error}", self.table.display()))?;
        Ok(read(&table))
    }
}

/// The names and counts of strace's table.
fn read(table: &str) -> CallCounts {
    let count = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (name, calls) = (fields.last()?, fields.get(3)?.parse().ok()?);
        (*name != "total").then(|| ((*name).to_owned(), calls))
    };
    let mut calls: CallCounts = table.lines().filter_map(count).collect();
    calls.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_with_and_without_errors() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 72.81   26.067504         619        85      4048 futex
  0.11    0.039970         587       168           pwrite64
------ ----------- ----------- --------- --------- ----------------
100.00   26.107474                   253      4048 total
";
        assert_eq!(
            read(table),
            [("pwrite64".to_owned(), 168), ("futex".to_owned(), 85)]
        );
    }
}
