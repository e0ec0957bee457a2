//! Device and inode: which file a path leads to.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

/// A file's identity in the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Follows links, as opening would.
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        path.metadata().map(|found| Self::from(&found))
    }
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

/// As in the lock's file.
impl fmt::Display for FileId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.device, self.inode)
    }
}

impl FromStr for FileId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (device, inode) = text.split_once(':').ok_or(())?;
        Ok(Self {
            device: device.parse().map_err(drop)?,
            inode: inode.parse().map_err(drop)?,
        })
    }
}

/// Which three files a ledger is: database, log and index.
pub(super) type LedgerFiles = [FileId; 3];
