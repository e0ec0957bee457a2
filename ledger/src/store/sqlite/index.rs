//! The index of the log (`-shm`): how many frames the log must have, and how many commits there were.
//!
//! SQLite maps it into memory; here it is read as a file. Every process that has the ledger open uses the same one: with a second index
//! over one log, each process writes over the other's commits. Where it was cut off, a connection that opens makes it long enough again,
//! with zeroes: others then read old pages for new ones. So every program checks the index before it opens the ledger and again afterwards.
//! The gateway makes the file longer than any log needs: if it is shorter later, somebody has cut it.

use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::descriptors::kept;
use crate::store::room::lengthen;

/// The header stands twice; while it is being written, the two differ.
const HEADER: usize = 48;
/// What follows both: how many frames are in the database file.
const CHECKPOINT: usize = 4;
/// The beginning of a log, and of each frame in it.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
/// Where the log's two salts stand, which change each time the log begins anew.
const SALTS: u64 = 32;
/// The size of a block, and how many frames the first block and each later one have.
pub(super) const BLOCK: u64 = 32 << 10;
// Both headers and the marks take the places of the first 34 frames.
const FIRST_FRAMES: u64 = 4_062;
pub(super) const FRAMES: u64 = 4_096;
/// Half of a block finds frames by their pages: two bytes each.
const TABLE: usize = 16 << 10;
/// How long the gateway makes it: for a log of 1.1 GB.
const LONG: u64 = 66 * BLOCK;
/// Where the marks of the readers begin, four bytes each.
const MARKS: u64 = 100;
const READERS: usize = 5;
/// The byte that every process with the ledger open has a lock on.
const IN_USE: i64 = 128;
/// How often a header that is being written is read again.
// Writing both copies takes less than one of these reads: one that differs after all of them was most likely left by a writer that died.
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

    /// Up to where in the log each of its readers reads.
    pub(super) fn marks(&self) -> Option<[u32; READERS]> {
        let mut marks = [0; READERS * 4];
        self.0.read_exact_at(&mut marks, MARKS).ok()?;
        let mut marks = marks.as_chunks::<4>().0.iter();
        Some([0; READERS].map(|_| marks.next().map_or(0, |mark| u32::from_ne_bytes(*mark))))
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

    /// Whether the log has begun anew since this index was made, as when an old index was put back. Such an index says nothing of the log.
    pub(super) fn is_of_before(&self, log: &Path) -> bool {
        let (mut own, mut begun) = ([0; 8], [0; 8]);
        let log = File::open(log).and_then(|log| log.read_exact_at(&mut begun, 16));
        log.is_ok() && self.0.read_exact_at(&mut own, SALTS).is_ok() && own != begun
    }

    /// The process that has a lock on this byte, if it is another one. Its id is 0 or less for one of another container.
    pub(super) fn holder(&self, byte: i64) -> Option<i32> {
        let mut lock = libc::flock {
            l_type: i16::try_from(libc::F_WRLCK).ok()?,
            l_whence: i16::try_from(libc::SEEK_SET).ok()?,
            l_start: byte,
            l_len: 1,
            l_pid: 0,
        };
        fcntl(&*self.0, FcntlArg::F_GETLK(&mut lock)).ok()?;
        let free = i32::from(lock.l_type) == libc::F_UNLCK;
        (!free).then_some(lock.l_pid)
    }

    /// Whether it is shorter than the log needs and another process uses it: what opens it first makes it anew.
    pub(super) fn is_cut(&self) -> std::io::Result<bool> {
        let length = self.0.metadata()?.len();
        let short = (self.read()).is_some_and(|said| length < said.index_length());
        Ok(short && self.holder(IN_USE).is_some())
    }

    /// Whether it finds as many frames as the log has. A process that has it open asks.
    pub(super) fn is_whole(&self) -> bool {
        let mut whole = true;
        for _ in 0..TRIES {
            let Some(said) = self.read() else {
                return true;
            };
            whole = self.finds(said.frames);
            if whole || self.read() == Some(said) {
                break;
            }
        }
        whole
    }

    fn finds(&self, frames: u64) -> bool {
        let firsts = std::iter::once(FIRST_FRAMES).chain(std::iter::repeat(FRAMES));
        let mut left = frames;
        for (block, size) in (0_u64..).zip(firsts) {
            if left == 0 {
                return true;
            }
            let mut table = [0; TABLE];
            let at = (block.saturating_add(1).saturating_mul(BLOCK)).saturating_sub(TABLE as u64);
            if self.0.read_exact_at(&mut table, at).is_err() {
                return false;
            }
            let found = table
                .as_chunks::<2>()
                .0
                .iter()
                .filter(|slot| **slot != [0; 2]);
            if (found.count() as u64) < left.min(size) {
                return false;
            }
            left = left.saturating_sub(size);
        }
        true
    }

    /// Makes it longer than any log needs, where the disk has the room.
    pub(super) fn lengthen(&self) -> std::io::Result<()> {
        match lengthen(&self.0, LONG) {
            Err(error) if error.kind() == ErrorKind::StorageFull => Ok(()),
            told => told,
        }
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

    /// How long the index is at least.
    fn index_length(self) -> u64 {
        let later = self.frames.saturating_sub(FIRST_FRAMES).div_ceil(FRAMES);
        later.saturating_add(1).saturating_mul(BLOCK)
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
