//! The machine: CPU time and memory of a process tree, how busy each CPU was, and a description of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The generator and the upstream run on one CPU, the subject alone on the other.
pub(crate) const OURS: &str = "0";
pub(crate) const SUBJECTS: &str = "1";
pub(crate) const BOTH: &str = "0,1";

/// Ticks of the kernel's accounting each second; fixed for programs on Linux.
const TICKS: u64 = 100;

/// A look at the clocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MachineSample {
    /// CPU time of the subject's threads, by thread id, in nanoseconds.
    threads: BTreeMap<u32, u64>,
    /// CPU time of its processes with all ended threads, coarse.
    processes: Duration,
    /// Resident memory of the tree, KiB.
    pub(crate) resident: u64,
    /// Busy and idle ticks of our CPU and of the subject's.
    ours: (u64, u64),
    subjects: (u64, u64),
    /// CPU time of this process and the upstream, ticks.
    load: u64,
}

impl MachineSample {
    /// Of a subject's [`tree`]; `upstream` shares our CPU.
    pub(crate) fn take(subject: &[u32], upstream: u32) -> Self {
        let mut sample = Self {
            ours: cpu(OURS),
            subjects: cpu(SUBJECTS),
            ..Self::default()
        };
        sample.load = ticks(std::process::id()) + ticks(upstream);
        let mut of_processes = 0;
        for process in subject.iter().copied() {
            of_processes += ticks(process);
            sample.resident += resident(process);
            for thread in numbers(&format!("/proc/{process}/task")) {
                let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat"))
                    .unwrap_or_default();
                sample.threads.insert(
                    thread,
                    text.split(' ')
                        .next()
                        .and_then(|nanos| nanos.parse().ok())
                        .unwrap_or(0),
                );
            }
        }
        sample.processes = Duration::from_millis(of_processes * 1_000 / TICKS);
        sample
    }

    /// CPU time of the tree since an earlier look.
    pub(crate) fn cpu_since(&self, earlier: &Self) -> Duration {
        let of_thread = |(thread, nanos): (&u32, &u64)| {
            nanos.saturating_sub(earlier.threads.get(thread).copied().unwrap_or(0))
        };
        let exact = Duration::from_nanos(self.threads.iter().map(of_thread).sum());
        // What threads did that ended in between is only in the coarse count.
        let ended = earlier
            .threads
            .keys()
            .any(|thread| !self.threads.contains_key(thread));
        if ended {
            self.processes.saturating_sub(earlier.processes).max(exact)
        } else {
            exact
        }
    }

    /// CPU time of the generator and the upstream since an earlier look.
    pub(crate) fn load_since(&self, earlier: &Self) -> Duration {
        Duration::from_millis(self.load.saturating_sub(earlier.load) * 1_000 / TICKS)
    }

    /// How idle our CPU and the subject's were since an earlier look, and which share of both something else took: 0 to 1.
    pub(crate) fn shares_since(&self, earlier: &Self) -> Shares {
        let idle = |now: (u64, u64), then: (u64, u64)| {
            let (busy, idle) = (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1));
            idle as f64 / (busy + idle).max(1) as f64
        };
        let busy =
            (self.ours.0 + self.subjects.0).saturating_sub(earlier.ours.0 + earlier.subjects.0);
        let known =
            (self.load_since(earlier) + self.cpu_since(earlier)).as_secs_f64() * TICKS as f64;
        let all = busy
            + (self.ours.1 + self.subjects.1).saturating_sub(earlier.ours.1 + earlier.subjects.1);
        Shares {
            our_idle: idle(self.ours, earlier.ours),
            subjects_idle: idle(self.subjects, earlier.subjects),
            others: ((busy as f64 - known) / all.max(1) as f64).max(0.0),
        }
    }
}

/// How two CPUs spent a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Shares {
    pub(crate) our_idle: f64,
    pub(crate) subjects_idle: f64,
    pub(crate) others: f64,
}

/// A process and all its children. Looking for them takes milliseconds, so it is done before a window, not in it.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = numbers("/proc")
        .into_iter()
        .filter_map(|process| Some((process, parent(process)?)))
        .collect();
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(process) = tree.get(at).copied() {
        tree.extend(
            parents
                .iter()
                .filter(|(_, parent)| *parent == process)
                .map(|(child, _)| *child),
        );
        at += 1;
    }
    tree
}

fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The fields of `stat` behind the name, which may contain anything.
fn stat(process: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(
        text.rsplit_once(") ")?
            .1
            .split(' ')
            .map(str::to_owned)
            .collect(),
    )
}

fn parent(process: u32) -> Option<u32> {
    stat(process)?.get(1)?.parse().ok()
}

/// User and system time with that of ended threads, in ticks.
fn ticks(process: u32) -> u64 {
    let fields = stat(process).unwrap_or_default();
    [11, 12]
        .iter()
        .filter_map(|at| fields.get(*at)?.parse::<u64>().ok())
        .sum()
}

fn resident(process: u32) -> u64 {
    memory(process, "VmRSS:")
}

/// The most memory that a process had resident at any time, KiB.
pub(crate) fn peak(process: u32) -> u64 {
    memory(process, "VmHWM:")
}

fn memory(process: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Busy and idle ticks of one CPU.
fn cpu(number: &str) -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{number} ");
    let fields: Vec<u64> = text
        .lines()
        .find_map(|line| line.strip_prefix(&name))
        .map(|line| {
            line.split_whitespace()
                .filter_map(|field| field.parse().ok())
                .collect()
        })
        .unwrap_or_default();
    // user nice system idle iowait irq softirq steal; what follows is inside user already.
    let idle: u64 = fields.iter().skip(3).take(2).sum();
    let all: u64 = fields.iter().take(8).sum();
    (all - idle, idle)
}

/// The machine, in words.
pub(crate) fn facts() -> Vec<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        cpu.lines().find_map(|line| {
            line.strip_prefix(name)?
                .split_once(": ")
                .map(|(_, value)| value)
        })
    };
    let number = |name| field(name).unwrap_or("?");
    let count = cpu
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: u64 = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        format!(
            "{count} × {}, {:.1} GiB",
            field("model name").unwrap_or("unknown"),
            kib as f64 / 1_048_576.0
        ),
        format!(
            "{}, family {}, model {}, stepping {}, {} MHz now",
            number("vendor_id"),
            number("cpu family"),
            number("model\t"),
            number("stepping"),
            number("cpu MHz")
        ),
        format!("caches of the subject's CPU: {}", caches(SUBJECTS)),
        format!("Linux {}", kernel.trim()),
    ]
}

/// The caches of one CPU, as the kernel lists them, nearest first.
fn caches(cpu: &str) -> String {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let fact = |index: u32, name: &str| {
        let text = fs::read_to_string(format!("{folder}/index{index}/{name}")).ok()?;
        Some(text.trim().to_owned())
    };
    let cache = |index| {
        let (level, kind, size) = (
            fact(index, "level")?,
            fact(index, "type")?,
            fact(index, "size")?,
        );
        Some(format!("L{level} {} {size}", kind.to_lowercase()))
    };
    let all: Vec<String> = (0..).map_while(cache).collect();
    if all.is_empty() {
        "unknown".to_owned()
    } else {
        all.join(", ")
    }
}
