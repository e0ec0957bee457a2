//! Room on the disk for what must be written when the disk is full.

use std::fs::File;
use std::io::Error;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

/// Reserves blocks for `bytes` bytes of a file from `from` on; what is there already stays, and so does the file's length. Succeeds
/// without effect where the file system cannot do it.
///
/// # Errors
/// There is no room.
pub(super) fn reserve(file: &File, from: u64, bytes: u64) -> std::io::Result<()> {
    allocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, bytes)
}

/// The same from the beginning of a file on, which is at least this long afterwards.
///
/// # Errors
/// There is no room.
pub(super) fn lengthen(file: &File, length: u64) -> std::io::Result<()> {
    allocate(file, FallocateFlags::empty(), 0, length)
}

fn allocate(file: &File, flags: FallocateFlags, from: u64, bytes: u64) -> std::io::Result<()> {
    let offset = |bytes: u64| i64::try_from(bytes).map_err(|_| Error::from(Errno::EFBIG));
    let (from, bytes) = (offset(from)?, offset(bytes)?);
    if bytes == 0 {
        return Ok(());
    }
    match fallocate(file, flags, from, bytes) {
        Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
