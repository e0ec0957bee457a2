//! Detects a file that is a mount point itself, as a container makes it with `-v ./farebox.db:/data/farebox.db`.
//!
//! Such a ledger appears in a second folder, which has its own log, shared memory and lock: two gateways would sell the same money,
//! each without the other's commits. Any other file mounted like that keeps its old content when an editor replaces it. Reads only the
//! kernel's list of mounts, if there is one.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether something is mounted at exactly this path, in which links are resolved. Without `/proc` the answer is no.
pub fn is_mounted_alone(real: &Path) -> bool {
    std::fs::read("/proc/self/mountinfo").is_ok_and(|mounts| has_mount(&mounts, real))
}

/// The mount point is the fifth field of a line; blanks and backslashes in it are escaped as three octal digits.
fn has_mount(mounts: &[u8], real: &Path) -> bool {
    let escaped: Vec<u8> = real
        .as_os_str()
        .as_bytes()
        .iter()
        .flat_map(|byte| written(*byte))
        .collect();
    let mut points = mounts
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    points.any(|point| point == escaped)
}

fn written(byte: u8) -> Vec<u8> {
    match byte {
        b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
        byte => vec![byte],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_file_counts() {
        let mounts = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 22 8:1 /srv/farebox.db /data/farebox.db rw shared:1 - ext4 /dev/sda1 rw\n\
            31 22 0:5 / /data/of\\040them rw - tmpfs tmpfs rw\n";
        for (path, mounted) in [
            ("/data/farebox.db", true),
            ("/data/of them", true),
            ("/data/of them/farebox.db", false),
            ("/srv/farebox.db", false),
            ("/data/farebox.db-wal", false),
            ("/data", false),
        ] {
            assert_eq!(has_mount(mounts, Path::new(path)), mounted, "{path}");
        }
        assert!(
            !has_mount(b"", Path::new("/data/farebox.db"))
                && !is_mounted_alone(Path::new("/nowhere/farebox.db"))
        );
    }
}
