//! Where a ledger's files are, and why one cannot be opened.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::store::side_file::beside;
use crate::store::{admin_token, bill_file};
use crate::{Cause, LedgerError, owner};

/// Gives a file that must not be read as a log or index another name, and says so.
pub(super) fn move_away(path: &Path) -> std::io::Result<()> {
    let names = (1..1_000_u32).map(|number| beside(path, &format!(".stray-{number}")));
    let free = |name: &PathBuf| name.symlink_metadata().is_err();
    let name = { names }.find(free).ok_or(ErrorKind::AlreadyExists)?;
    std::fs::rename(path, &name)?;
    tracing::warn!(
        "{} did not belong to the ledger; it is {} now",
        path.display(),
        name.display()
    );
    Ok(())
}

/// The path with links resolved. The file itself need not exist yet, but its folder must.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, LedgerError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => LedgerError::unusable(format!(
            "the folder of {} does not exist; choose the ledger with --ledger",
            path.display()
        )),
        _ => cannot_open(path, error),
    };
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if path.is_symlink() {
                return Err(LedgerError::unusable(format!(
                    "{} is a broken symbolic link",
                    path.display()
                )));
            }
            let name = path.file_name().ok_or_else(|| {
                LedgerError::unusable(format!("{} is not a file", path.display()))
            })?;
            let folder = path
                .parent()
                .unwrap_or(Path::new("/"))
                .canonicalize()
                .map_err(failed)?;
            Ok(folder.join(name))
        }
        Err(error) => Err(failed(error)),
    }
}

/// The path of a ledger's write-ahead log.
pub(super) fn wal_path(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The path of that log's index.
pub(super) fn index_path(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

/// Why a file cannot be opened; if permissions are missing, who has them and how to act as that user.
pub(super) fn cannot_open(path: &Path, error: std::io::Error) -> LedgerError {
    let shown = path.display();
    if error.kind() != ErrorKind::PermissionDenied {
        return LedgerError::unusable(Cause::of(&format!("{shown} cannot be opened"), error));
    }
    let (owner, user) = (owner::of(path), owner::user_name());
    let remedy = if owner == user {
        "check its permissions".to_owned()
    } else {
        format!("run the command as sudo -u {owner}")
    };
    let words = format!("{shown} belongs to {owner}, and {user} has no access to it; {remedy}");
    LedgerError::unusable(Cause::in_words(words, error))
}

/// Whether a path is that of a ledger's file, or of one that SQLite or a gateway keeps beside it.
pub fn belongs_to_ledger(ledger: &Path, path: &Path) -> bool {
    let real = |path: &Path| {
        std::path::absolute(path)
            .ok()
            .and_then(|path| resolve(&path).ok())
    };
    let (Some(ledger), Some(path)) = (real(ledger), real(path)) else {
        return false;
    };
    let kept = [bill_file::SUFFIX, admin_token::SUFFIX];
    ["", "-wal", "-shm", "-journal", ".lock"]
        .into_iter()
        .chain(kept)
        .any(|suffix| beside(&ledger, suffix) == path)
}
