//! The first bytes of a ledger's file: whether another program has written over it in place, and whether a log beside it is its own.
//!
//! The file has the same inode after `cp backup farebox.db`, so only its content tells. SQLite's own descriptor would read it, but it
//! is reached only through unsafe code, which this crate forbids. A second descriptor is safe as long as it is never closed: POSIX
//! gives locks to the process, not to the descriptor, and drops all that a process has on a file when it closes *any* descriptor of
//! it; opening and reading drop none. So each file is opened once and stays open until the process ends, which costs one
//! descriptor for every ledger file that the process has met. Its inode is not used anew meanwhile, so device and inode name it.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The length of SQLite's header.
const LENGTH: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The write version of a file that has a log.
const WITH_LOG: u8 = 2;
/// The header of a log, and that of each page in it.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// How many pages of a log are searched for the first page of the file.
const FRAMES: u64 = 100_000;

/// Device and inode of a file.
type DeviceInode = (u64, u64);

/// Descriptors of every ledger that this process has opened. Never closed.
static KEPT: Mutex<Vec<(DeviceInode, Arc<File>)>> = Mutex::new(Vec::new());

/// The header of an open ledger.
#[derive(Debug, Clone)]
pub(super) struct Header {
    file: Arc<File>,
    /// The newest change counter seen. It only grows.
    counter: Arc<AtomicU32>,
}

impl Header {
    /// The header of a file that exists.
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let file = kept(path)?;
        let counter = read(&file)?.map_or(0, |header| counter(&header));
        Ok(Self {
            file,
            counter: Arc::new(AtomicU32::new(counter)),
        })
    }

    /// Whether the file is still the one that SQLite writes: a backup has no log, and an older file has a lower change counter.
    pub(super) fn is_intact(&self) -> std::io::Result<bool> {
        let Some(header) = read(&self.file)? else {
            return Ok(false);
        };
        let now = counter(&header);
        let before = self.counter.fetch_max(now, Ordering::Relaxed);
        Ok(header.starts_with(MAGIC) && header.get(18) == Some(&WITH_LOG) && now >= before)
    }

    /// Whether the log beside the file belongs to another one, so that SQLite would write another file's pages over this one's.
    pub(super) fn has_foreign_log(&self, log: &Path) -> std::io::Result<bool> {
        let Ok(log) = File::open(log) else {
            return Ok(false);
        };
        let Some(header) = read(&self.file)? else {
            return Ok(false);
        };
        let mut first = [0; LOG_HEADER];
        if log.read_exact_at(&mut first, 0).is_err() {
            return Ok(false);
        }
        if header.get(18) != Some(&WITH_LOG) {
            return Ok(true);
        }
        let size = u64::from(number(&first, 8));
        // The counter of the file's first page in the log is one more than that of the file when the log began.
        let begun = (0..FRAMES).find_map(|frame| {
            let length = size.saturating_add(FRAME_HEADER as u64);
            let at = frame
                .saturating_mul(length)
                .saturating_add(LOG_HEADER as u64);
            let mut page = [0; FRAME_HEADER + LENGTH];
            log.read_exact_at(&mut page, at).ok()?;
            let same_log = page.get(8..16) == first.get(16..24);
            if !same_log {
                return Some(None);
            }
            let (frame_header, content) = page.split_at(FRAME_HEADER);
            (number(frame_header, 0) == 1).then(|| Some(counter(content)))
        });
        Ok(begun
            .flatten()
            .is_some_and(|begun| counter(&header).saturating_add(1) < begun))
    }
}

fn kept(path: &Path) -> std::io::Result<Arc<File>> {
    let id = |found: Metadata| (found.dev(), found.ino());
    let wanted = id(path.metadata()?);
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, file)) = all.iter().find(|(known, _)| *known == wanted) {
        return Ok(Arc::clone(file));
    }
    let file = Arc::new(File::open(path)?);
    all.push((id(file.metadata()?), Arc::clone(&file)));
    Ok(file)
}

/// The header; `None` if the file is shorter.
fn read(file: &File) -> std::io::Result<Option<[u8; LENGTH]>> {
    let mut header = [0; LENGTH];
    match file.read_exact_at(&mut header, 0) {
        Ok(()) => Ok(Some(header)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn counter(header: &[u8]) -> u32 {
    number(header, 24)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at.saturating_add(4))
        .and_then(|four| four.try_into().ok())
        .map_or(0, u32::from_be_bytes)
}
