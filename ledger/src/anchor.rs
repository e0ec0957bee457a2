//! Anchors: what the whole journal came to at an instant, kept outside the ledger.
//!
//! The chains guard each key's history against edits; somebody who rewrites every hash behind an edit is only found by
//! something that was written down elsewhere. An anchor is one line of JSON with a running digest over the hashes of all
//! entries, and one over those of the audit. An anchor file is append-only, and anchors only cover what is on disk.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::chain::{GENESIS, Hash};

/// How each line begins; what a power cut may have left of one begins so, too.
const LINE_START: &str = "{\"at\":\"";

/// A running digest over the hashes of one append-only table, in the order of their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// How many rows it covers.
    pub count: i64,
    /// Over their hashes.
    #[serde(with = "hex")]
    digest: Hash,
}

impl Mark {
    /// Covers nothing yet.
    pub(crate) const START: Self = Self { count: 0, digest: GENESIS };

    /// Covers one more row.
    pub(crate) fn add(&mut self, hash: &Hash) {
        self.count = self.count.saturating_add(1);
        self.digest = Sha256::new_with_prefix(self.digest).chain_update(hash).finalize().into();
    }
}

/// One line of an anchor file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// When it was made, for people.
    pub at: String,
    /// The journal.
    pub entries: Mark,
    /// The audit.
    pub audit: Mark,
}

impl Anchor {
    /// What a ledger without any row comes to.
    pub(crate) fn start() -> Self {
        Self { at: String::new(), entries: Mark::START, audit: Mark::START }
    }
}

/// An anchor file that is being written.
#[derive(Debug)]
pub struct AnchorFile {
    path: PathBuf,
    file: File,
    last: Anchor,
}

impl AnchorFile {
    /// Opens or creates an anchor file and reads its last line. A line that a power cut tore is cut off.
    ///
    /// # Errors
    /// When it cannot be read or written, or its last line is no anchor.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() || found.nlink() != 1 {
            return Err(Error::other("it is not a plain file of its own"));
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end.saturating_add(1));
        let last = parse(text.get(..whole).unwrap_or_default())?.pop().unwrap_or_else(Anchor::start);
        let torn = text.get(whole..).unwrap_or_default();
        if !torn.is_empty() {
            if !torn.starts_with(LINE_START) && !LINE_START.starts_with(torn) {
                return Err(Error::other("it is not a file of anchors"));
            }
            tracing::warn!("{}: the last line was cut off; it is removed", path.display());
            file.set_len(whole.try_into().unwrap_or(u64::MAX))?;
        }
        Ok(Self { path: path.to_owned(), file, last })
    }

    /// The newest anchor.
    #[must_use]
    pub const fn last(&self) -> &Anchor {
        &self.last
    }

    /// Appends an anchor and brings it to the disk. One that covers nothing new is left out.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, anchor: Anchor) -> Result<()> {
        if (anchor.entries, anchor.audit) == (self.last.entries, self.last.audit) {
            return Ok(());
        }
        let line = serde_json::to_string(&anchor).map_err(Error::other)? + "\n";
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        tracing::debug!(entries = anchor.entries.count, "anchored in {}", self.path.display());
        self.last = anchor;
        Ok(())
    }
}

/// All anchors of a file, oldest first. Its last line may be cut off, no other may.
///
/// # Errors
/// When it cannot be read or has a line that is no anchor.
pub fn read(path: &Path) -> Result<Vec<Anchor>> {
    let text = std::fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or(0, |end| end.saturating_add(1));
    parse(text.get(..whole).unwrap_or_default())
}

fn parse(text: &str) -> Result<Vec<Anchor>> {
    let read = |(number, line): (usize, &str)| {
        let wrong = |error| Error::new(ErrorKind::InvalidData, format!("line {}: {error}", number.saturating_add(1)));
        serde_json::from_str(line).map_err(wrong)
    };
    text.lines().enumerate().map(read).collect()
}

/// Digests as text.
mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::chain::Hash;

    pub(super) fn serialize<S: Serializer>(digest: &Hash, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(input)?;
        let pair = |at: usize| text.get(at..at.saturating_add(2)).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(pair).collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| Error::custom("a digest has 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(rows: u8) -> Anchor {
        let mut anchor = Anchor { at: "now".to_owned(), ..Anchor::start() };
        (0..rows).for_each(|row| anchor.entries.add(&[row; 32]));
        anchor
    }

    #[test]
    fn order_and_content_matter() {
        let (mut one, mut other) = (Mark::START, Mark::START);
        [[1; 32], [2; 32]].iter().for_each(|hash| one.add(hash));
        [[2; 32], [1; 32]].iter().for_each(|hash| other.add(hash));
        assert_eq!(one.count, other.count);
        assert_ne!(one, other);
    }

    #[test]
    fn a_file_goes_on_where_it_ended_and_survives_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchors");
        let mut file = AnchorFile::open(&path).unwrap();
        assert_eq!(file.last().entries, Mark::START);
        for rows in [1, 2, 2] {
            file.append(anchor(rows)).unwrap();
        }
        assert_eq!(read(&path).unwrap(), [anchor(1), anchor(2)], "what adds nothing is left out");
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"at\":\"no").unwrap();
        assert_eq!(read(&path).unwrap().len(), 2);
        let mut file = AnchorFile::open(&path).unwrap();
        assert_eq!(file.last(), &anchor(2));
        file.append(anchor(3)).unwrap();
        assert_eq!(read(&path).unwrap().len(), 3);
        std::fs::write(&path, "no anchor\n").unwrap();
        assert!(read(&path).is_err() && AnchorFile::open(&path).is_err());
        std::fs::write(&path, "somebody's notes, without a line's end").unwrap();
        assert!(AnchorFile::open(&path).is_err());
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("somebody's notes"), "what is not ours is not cut off");
    }
}
