//! How much memory this process may have: what its control groups allow, at most what the machine has.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What bodies and answers in flight may take together is this part of it.
const PART: u64 = 4;
/// Where neither can be read.
const UNKNOWN: u64 = 1 << 30;

/// Bytes that this process may have.
pub fn allowed() -> u64 {
    static ALLOWED: LazyLock<u64> = LazyLock::new(|| allowed_below(Path::new("/")));
    *ALLOWED
}

/// Bytes that bodies and answers in flight may take together.
pub fn in_flight() -> u64 {
    allowed() / PART
}

/// A part of what is in flight, and never more than `most`.
pub fn share_of_flight(numerator: u64, denominator: u64, most: usize) -> usize {
    let part = in_flight().saturating_mul(numerator) / denominator.max(1);
    usize::try_from(part).map_or(most, |part| part.min(most))
}

fn allowed_below(root: &Path) -> u64 {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups
        .lines()
        .flat_map(|line| limits_of_group(root, line))
        .chain(machine(root));
    limits.min().unwrap_or(UNKNOWN)
}

/// The limits of a group and of those that hold it.
fn limits_of_group(root: &Path, line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (base, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return Vec::new();
    };
    let base = root.join(base);
    let mut group: PathBuf = base.join(path.trim_start_matches('/'));
    let mut limits = Vec::new();
    loop {
        let limit = fs::read_to_string(group.join(file));
        limits.extend(limit.ok().and_then(|text| text.trim().parse::<u64>().ok()));
        // A container sees its own group at the top, below a path that only the host has.
        if group == base || !group.pop() {
            return limits;
        }
    }
}

fn machine(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn machine_with(files: &[(&str, &str)]) -> u64 {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        allowed_below(root.path())
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:        8388608 kB\nMemFree: 12 kB\n",
    );

    #[test]
    fn the_smallest_bound_counts() {
        assert_eq!(machine_with(&[MEMINFO]), 8192 * MIB);
        assert_eq!(machine_with(&[]), UNKNOWN);
        let service = ("proc/self/cgroup", "0::/system.slice/farebox.service\n");
        let of = |group: &'static str, text| (group, text);
        let own = of(
            "sys/fs/cgroup/system.slice/farebox.service/memory.max",
            "max\n",
        );
        let slice = of("sys/fs/cgroup/system.slice/memory.max", "536870912\n");
        assert_eq!(machine_with(&[MEMINFO, service, own]), 8192 * MIB);
        assert_eq!(machine_with(&[MEMINFO, service, own, slice]), 512 * MIB);
        let container = ("proc/self/cgroup", "0::/../..//docker/x\n");
        let top = ("sys/fs/cgroup/memory.max", "268435456\n");
        assert_eq!(machine_with(&[MEMINFO, container, top]), 256 * MIB);
        let old = ("proc/self/cgroup", "5:cpu:/a\n4:memory,x:/a\n");
        let bound = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824");
        assert_eq!(machine_with(&[MEMINFO, old, bound]), 1024 * MIB);
    }
}
