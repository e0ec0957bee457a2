//! Descriptors that this process never closes.
//!
//! POSIX gives locks to the process, not to the descriptor: closing *any* descriptor of a file drops all locks that the process has on
//! it, SQLite's too; opening and reading drop none. So the database file and the index of its log (`-shm`), on which SQLite has its
//! locks, are opened here once each and stay open until the process ends. That costs two descriptors for every ledger that the
//! process has met and that is still there. An inode is not used anew meanwhile, so device and inode name the file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::file_id::FileId;
use crate::lock;

static KEPT: Mutex<Vec<(FileId, Arc<File>)>> = Mutex::new(Vec::new());

/// The descriptor of the file at this path. It can write where the user may: blocks are reserved through it.
pub(super) fn kept(path: &Path) -> std::io::Result<Arc<File>> {
    let wanted = FileId::of(path)?;
    let mut all = lock(&KEPT);
    // Of a file that is gone nobody waits for a lock, once its last ledger here is closed.
    all.retain(|(_, file)| {
        Arc::strong_count(file) > 1 || file.metadata().is_ok_and(|known| known.nlink() > 0)
    });
    if let Some((_, file)) = all.iter().find(|(known, _)| *known == wanted) {
        return Ok(Arc::clone(file));
    }
    let writable = OpenOptions::new().read(true).write(true).open(path);
    let file = Arc::new(writable.or_else(|_| File::open(path))?);
    all.push((FileId::from(&file.metadata()?), Arc::clone(&file)));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_and_used_by_nobody_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["used", "gone", "there", "new"].map(|name| folder.path().join(name));
        files
            .iter()
            .for_each(|path| drop(File::create(path).unwrap()));
        let ids = files.clone().map(|path| FileId::of(&path).unwrap());
        let [used, gone, there] = [0, 1, 2].map(|number: usize| kept(&files[number]).unwrap());
        drop((gone, there));
        files[..2]
            .iter()
            .for_each(|path| std::fs::remove_file(path).unwrap());
        kept(&files[3]).unwrap();
        let known = ids.map(|id| lock(&KEPT).iter().any(|(known, _)| *known == id));
        assert_eq!(known, [true, false, true, true]);
        drop(used);
    }
}
