//! A disk of a test server's own, which can be filled, or hang as a broken one does: whoever writes to it waits and cannot be killed.
#![expect(clippy::expect_used, reason = "a test ends at the first surprise")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What can happen to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// It can be filled.
    Small,
    /// It can be frozen: a real file system in a file.
    Freezing,
    /// It can be frozen: a file system whose program can be stopped (FUSE).
    Fuse,
}

/// A mounted disk. It is unmounted with this value.
#[derive(Debug)]
pub(crate) struct Mounted {
    disk: Disk,
    at: PathBuf,
    /// A shell with the file system's program, which ends with a pipe.
    keeper: Option<Child>,
}

/// Runs a program without a word; whether it did what it should.
fn quiet(command: &mut Command) -> bool {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Mounted {
    /// Mounts one at an empty folder; `None` where that is not permitted, or its program is not installed.
    pub(crate) fn new(at: &Path, disk: Disk) -> Option<Self> {
        let mut mounted = Self {
            disk,
            at: at.to_owned(),
            keeper: None,
        };
        let beside = |end: &str| at.with_extension(end);
        let done = match disk {
            Disk::Small => {
                let mut mount = Command::new("mount");
                mount.args(["-t", "tmpfs", "-o", "size=400m", "tmpfs"]);
                quiet(mount.arg(at))
            }
            Disk::Freezing => {
                let image = beside("image");
                let made = File::create(&image).and_then(|file| file.set_len(600 << 20));
                let mut mount = Command::new("mount");
                mount.args(["-o", "loop"]).arg(&image).arg(at);
                made.is_ok()
                    && quiet(Command::new("mkfs.ext4").arg("-q").arg(&image))
                    && quiet(&mut mount)
            }
            Disk::Fuse => {
                let backing = beside("backing");
                std::fs::create_dir(&backing).expect("a folder");
                let script = "bindfs -f \"$1\" \"$2\" & fs=$!; cat >/dev/null; kill -CONT $fs; kill -KILL $fs; wait $fs";
                let mut keeper = Command::new("/bin/sh");
                keeper
                    .args(["-c", script, "sh"])
                    .arg(&backing)
                    .arg(at)
                    .current_dir("/")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                mounted.keeper = keeper.spawn().ok();
                mounted.appears()
            }
        };
        done.then_some(mounted)
    }

    /// Waits until the file system's program has mounted it.
    fn appears(&self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if quiet(Command::new("mountpoint").arg("-q").arg(&self.at)) {
                return true;
            }
            if self.program().is_none() && begun.elapsed() > Duration::from_secs(2) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// The file system's program.
    fn program(&self) -> Option<u32> {
        let keeper = self.keeper.as_ref()?.id();
        let of_keeper = format!("/proc/{keeper}/task/{keeper}/children");
        let children = std::fs::read_to_string(of_keeper).ok()?;
        let is_it = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "bindfs")
        };
        let mut children = children.split_whitespace();
        children.find_map(|pid| pid.parse().ok().filter(is_it))
    }

    /// Lets nothing be written any more; whether that is possible.
    pub(crate) fn hang(&self) -> bool {
        self.freeze("-f", "-STOP")
    }

    /// Lets everything be written again.
    pub(crate) fn release(&self) {
        let _ = self.freeze("-u", "-CONT");
    }

    fn freeze(&self, how: &str, signal: &str) -> bool {
        match (self.disk, self.program()) {
            (Disk::Freezing, _) => quiet(Command::new("fsfreeze").arg(how).arg(&self.at)),
            (Disk::Fuse, Some(program)) => {
                quiet(Command::new("kill").args([signal, &program.to_string()]))
            }
            _ => false,
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.release();
        let _ = quiet(Command::new("umount").arg("-l").arg(&self.at));
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}
