//! Descriptors that this process never closes.
//!
//! POSIX gives locks to the process, not to the descriptor: closing *any* descriptor of a file drops all locks that the process has on
//! it, SQLite's too; opening and reading drop none. So the database file and the index of its log (`-shm`), on which SQLite has its
//! locks, are opened here once each and stay open until the process ends. That costs two descriptors for every ledger that the
//! process has met. An inode is not used anew meanwhile, so device and inode name the file.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::file_id::FileId;
use crate::lock;

static KEPT: Mutex<Vec<(FileId, Arc<File>)>> = Mutex::new(Vec::new());

/// The descriptor of the file at this path. It can write where the user may: blocks are reserved through it.
pub(super) fn kept(path: &Path) -> std::io::Result<Arc<File>> {
    let wanted = FileId::of(path)?;
    let mut all = lock(&KEPT);
    if let Some((_, file)) = all.iter().find(|(known, _)| *known == wanted) {
        return Ok(Arc::clone(file));
    }
    let writable = OpenOptions::new().read(true).write(true).open(path);
    let file = Arc::new(writable.or_else(|_| File::open(path))?);
    all.push((FileId::from(&file.metadata()?), Arc::clone(&file)));
    Ok(file)
}
