//! Files that stand beside a ledger's file, or beside the state file of a gateway whose ledger is in a database: how they are named, opened
//! and replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// The path with this behind its name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The same with links resolved: a link to a ledger has no files of its own.
pub(super) fn beside_real(path: &Path, suffix: &str) -> PathBuf {
    beside(
        &path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        suffix,
    )
}

/// Opens it, and nothing else that has its name.
pub(super) fn opened(options: &mut OpenOptions, path: &Path) -> Result<File, Error> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = options.read(true).custom_flags(flags.bits()).open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.nlink() == 1 && found.mode() & 0o007 == 0 {
        return Ok(file);
    }
    Err(Error::other(
        "it is not a regular file, has more than one name, or is accessible to everyone",
    ))
}

/// Puts a file there that only its owner may read, in place of whatever has its name; nobody ever sees half of it.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    let fresh = beside(path, ".new");
    if let Err(error) = fs::remove_file(&fresh)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(content)?;
    file.sync_data()?;
    fs::rename(&fresh, path)
}
