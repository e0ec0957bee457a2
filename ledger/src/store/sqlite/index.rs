//! The index of the log (`-shm`): how many frames the log must have, and how many commits there were.
//!
//! SQLite maps it into memory; here it is read as a file. Every process that has the ledger open uses the same one: with a second index
//! over one log, each process writes over the other's commits.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::kept::kept;

/// The header stands twice; while it is being written, the two differ.
const HEADER: usize = 48;
/// What follows both: how many frames are in the database file.
const CHECKPOINT: usize = 4;
/// The beginning of a log, and of each frame in it.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
/// How often a header that is being written is read again.
const TRIES: usize = 50;

/// The open index.
#[derive(Debug, Clone)]
pub(super) struct LogIndex(Arc<File>);

/// What it says about the log (sqlite.org/walformat.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexedLog {
    /// Frames that count.
    frames: u64,
    /// Frames that are in the database file, too.
    folded: u64,
    frame_size: u64,
}

/// What is missing of a log that is shorter than its index says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutLog {
    /// Frames that are nowhere any more.
    pub(super) lost: u64,
    pub(super) of: u64,
    /// What is left of it is older than the database file.
    pub(super) is_stale: bool,
}

impl fmt::Display for CutLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, of, .. } = self;
        if *lost == 0 {
            write!(
                out,
                "its {of} pages are all in the ledger's file; start the gateway again"
            )
        } else {
            write!(
                out,
                "{lost} of its {of} pages are gone, and the newest commits with them. Start the gateway again to go on with what is \
                 left; `farebox ledger verify --anchors` says how many entries are missing"
            )
        }
    }
}

impl LogIndex {
    /// The index at this path.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        kept(path).map(Self)
    }

    /// The number of commits, by every process that uses the ledger. After a crash while the header was being written, SQLite starts
    /// to count at 0 again.
    pub(super) fn commits(&self) -> Option<u32> {
        let mut count = [0; 4];
        self.0.read_exact_at(&mut count, 8).ok()?;
        Some(u32::from_ne_bytes(count))
    }

    /// What is missing of the log, whose length is asked for after the index was read: a log that is begun anew becomes shorter, and
    /// the index says so first. Nothing, if the index is not a valid one: SQLite makes it anew, from the log.
    pub(super) fn missing<E>(
        &self,
        length: impl Fn() -> Result<u64, E>,
    ) -> Result<Option<CutLog>, E> {
        let mut cut = None;
        for _ in 0..TRIES {
            let said = self.read();
            let length = length()?;
            cut = said.and_then(|said| said.cut_at(length));
            if cut.is_none() || self.read() == said {
                break;
            }
        }
        Ok(cut)
    }

    fn read(&self) -> Option<IndexedLog> {
        (0..TRIES).find_map(|_| {
            let mut bytes = [0; 2 * HEADER + CHECKPOINT];
            self.0.read_exact_at(&mut bytes, 0).ok()?;
            IndexedLog::parse(&bytes)
        })
    }
}

impl IndexedLog {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let four = bytes.get(at..at.saturating_add(4))?.try_into().ok()?;
            Some(u32::from_ne_bytes(four))
        };
        let is_valid = bytes.get(..HEADER) == bytes.get(HEADER..2 * HEADER)
            && bytes.get(12).is_some_and(|initialised| *initialised != 0);
        let page_size = u16::from_ne_bytes(bytes.get(14..16)?.try_into().ok()?);
        let page_size = if page_size == 1 {
            65_536
        } else {
            u64::from(page_size)
        };
        let said = Self {
            frames: word(16)?.into(),
            folded: word(2 * HEADER)?.into(),
            frame_size: page_size.saturating_add(FRAME_HEADER),
        };
        is_valid.then_some(said)
    }

    /// What is missing of a log that is this long.
    fn cut_at(self, length: u64) -> Option<CutLog> {
        let there = length
            .saturating_sub(LOG_HEADER)
            .checked_div(self.frame_size)
            .unwrap_or_default();
        if there >= self.frames {
            return None;
        }
        Some(CutLog {
            lost: self.frames.saturating_sub(there.max(self.folded)),
            of: self.frames,
            is_stale: there < self.folded,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_of_a_log_depends_on_what_the_file_has() {
        let said = |frames, folded| IndexedLog {
            frames,
            folded,
            frame_size: 4_120,
        };
        let bytes = |frames: u64| 32 + frames * 4_120;
        assert_eq!(said(0, 0).cut_at(0), None);
        assert_eq!(said(9, 0).cut_at(bytes(9)), None);
        assert_eq!(said(9, 0).cut_at(bytes(9) + 1), None);
        let cut = |said: IndexedLog, length| {
            let cut = said.cut_at(length).unwrap();
            (cut.lost, cut.is_stale)
        };
        assert_eq!(cut(said(9, 0), bytes(9) - 1), (1, false));
        assert_eq!(cut(said(9, 9), 0), (0, true));
        assert_eq!(cut(said(9, 4), bytes(6)), (3, false));
        assert_eq!(cut(said(9, 4), bytes(2)), (5, true));
    }
}
