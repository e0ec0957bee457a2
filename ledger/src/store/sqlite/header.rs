//! The first bytes of a ledger's file: whether another program has written over it in place, and whether a log beside it is its own.
//!
//! The file has the same inode after `cp backup farebox.db`, so only its content tells. SQLite's own descriptor would read it, but it
//! is reached only through unsafe code, which this crate forbids; so this reads through one that is `kept`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::descriptors::kept;

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

/// The header of an open ledger.
#[derive(Debug, Clone)]
pub(super) struct Header {
    file: Arc<File>,
    /// The newest change counter seen. It only grows.
    counter: Arc<AtomicU32>,
    /// The greatest length seen.
    length: Arc<AtomicU64>,
}

/// The newest change counter and the greatest length that were seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenHeader {
    counter: u32,
    length: u64,
}

impl Header {
    /// The header of a file that exists.
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let file = kept(path)?;
        let counter = read(&file)?.map_or(0, |header| counter(&header));
        Ok(Self {
            file,
            counter: Arc::new(AtomicU32::new(counter)),
            length: Arc::default(),
        })
    }

    /// What was seen so far; asked for before the file's length is, because another thread may see something newer meanwhile.
    pub(super) fn seen(&self) -> SeenHeader {
        SeenHeader {
            counter: self.counter.load(Ordering::Acquire),
            length: self.length.load(Ordering::Acquire),
        }
    }

    /// Whether the file, which is this long, is still the one that SQLite writes: a backup has no log, an older file has a lower
    /// change counter, and one that was cut off is shorter than it was and than its header says.
    pub(super) fn is_intact(&self, seen: SeenHeader, length: u64) -> std::io::Result<bool> {
        let Some(header) = read(&self.file)? else {
            return Ok(false);
        };
        let now = counter(&header);
        self.counter.fetch_max(now, Ordering::AcqRel);
        self.length.fetch_max(length, Ordering::AcqRel);
        // While a checkpoint makes the file longer, its header is ahead of it; after a VACUUM the file is shorter.
        let said = u64::from(number(&header, 28)).saturating_mul(page_size(&header));
        let whole = length >= seen.length || length >= said;
        Ok(whole
            && header.starts_with(MAGIC)
            && header.get(18) == Some(&WITH_LOG)
            && now >= seen.counter)
    }

    /// Whether the log beside the file belongs to another one, or to an earlier state of it, so that SQLite would write other pages
    /// over this one's.
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
        // A file that has no log, as a backup has none: whatever log stands here is not its own.
        if header.get(18) != Some(&WITH_LOG) {
            return Ok(true);
        }
        let size = u64::from(number(&first, 8));
        let length = size.saturating_add(FRAME_HEADER as u64);
        let pages = (0..FRAMES).map_while(|frame| {
            let at = frame
                .saturating_mul(length)
                .saturating_add(LOG_HEADER as u64);
            let mut page = [0; FRAME_HEADER + LENGTH];
            log.read_exact_at(&mut page, at).ok()?;
            // Their salts: behind its end, a log that was begun anew still has pages of the one before, with other salts.
            let same_log = page.get(8..16) == first.get(16..24);
            same_log.then_some(page)
        });
        let mut counters = pages.filter_map(|page| {
            let (frame_header, content) = page.split_at(FRAME_HEADER);
            (number(frame_header, 0) == 1).then(|| counter(content))
        });
        let Some(begun) = counters.next() else {
            return Ok(false);
        };
        // The counter of the file's first page in the log is one more than that of the file when the log began, and the file gets its
        // counter from the log.
        let newest = counters.last().unwrap_or(begun);
        let now = counter(&header);
        Ok(now.saturating_add(1) < begun || now > newest)
    }
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

/// The size of a page; 65,536 is written as 1.
fn page_size(header: &[u8]) -> u64 {
    match number(header, 14) & 0xffff {
        1 => 65_536,
        size => u64::from(size),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at.saturating_add(4))
        .and_then(|four| four.try_into().ok())
        .map_or(0, u32::from_be_bytes)
}
