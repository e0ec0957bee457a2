//! A control group of its own with a bound on memory: the kernel's own, so that a program that takes more is killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A group, which goes when it is dropped; the programs in it have to be gone by then.
pub(crate) enum MemoryGroup {
    /// Made here, with this folder.
    Made(PathBuf),
    /// systemd makes one for each program, of so many bytes.
    Scope(u64),
}

impl MemoryGroup {
    /// A group of so many bytes, if this machine lets us have one.
    pub(crate) fn of(bytes: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let places = own.lines().filter_map(place_of).flatten();
        let made = places.filter_map(|parent| make(&parent, bytes).ok()).next();
        made.map(Self::Made).or_else(|| scope(bytes))
    }

    /// The command that runs this program in the group.
    pub(crate) fn command(&self, program: &Path) -> Command {
        match self {
            Self::Made(folder) => {
                let mut command = Command::new("sh");
                let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
                command.args(["-c", enter]).arg(folder).arg(program);
                command
            }
            Self::Scope(bytes) => {
                let mut command = scoped(*bytes);
                command.arg(program);
                command
            }
        }
    }

    /// How many programs in it the kernel has killed because they took too much; systemd's groups go with them.
    pub(crate) fn killed(&self) -> u64 {
        let Self::Made(folder) = self else { return 0 };
        let files = ["memory.events", "memory.oom_control"].map(|name| folder.join(name));
        let said = files.iter().find_map(|file| fs::read_to_string(file).ok());
        let said = said.expect("the group's events");
        let line = said.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.expect("kills are counted").trim().parse().unwrap()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        if let Self::Made(folder) = self {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Where a group with a bound on memory may be made: below our own group or, because groups of version 2 have either programs or
/// groups, below one that holds it.
fn place_of(line: &str) -> Option<Vec<PathBuf>> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let base = match controllers {
        "" => Path::new("/sys/fs/cgroup"),
        "memory" => Path::new("/sys/fs/cgroup/memory"),
        _ => return None,
    };
    let own = base.join(path.trim_start_matches('/'));
    let above = own.ancestors().take_while(|group| group.starts_with(base));
    Some(above.map(Path::to_owned).collect())
}

fn make(parent: &Path, bytes: u64) -> io::Result<PathBuf> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let folder = parent.join(format!("farebox-test-{}-{number}", std::process::id()));
    fs::create_dir(&folder)?;
    let bound = |name: &str, value: u64| {
        // Never made where the kernel has none.
        let mut file = fs::OpenOptions::new().write(true).open(folder.join(name))?;
        io::Write::write_all(&mut file, value.to_string().as_bytes())
    };
    // Nothing of it goes to a disk instead.
    let _ = bound("memory.swap.max", 0);
    let bounded = bound("memory.max", bytes).or_else(|_| bound("memory.limit_in_bytes", bytes));
    if let Err(error) = bounded {
        fs::remove_dir(&folder)?;
        return Err(error);
    }
    Ok(folder)
}

fn scoped(bytes: u64) -> Command {
    let mut command = Command::new("systemd-run");
    let bound = format!("MemoryMax={bytes}");
    command.args(["--scope", "--quiet", "--no-ask-password"]);
    command.args(["-p", &bound, "-p", "MemorySwapMax=0"]);
    command
}

fn scope(bytes: u64) -> Option<MemoryGroup> {
    let mut probe = scoped(bytes);
    let quiet = probe.arg("true").stdin(Stdio::null());
    let status = quiet.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let can = status.is_ok_and(|status| status.success());
    can.then_some(MemoryGroup::Scope(bytes))
}
