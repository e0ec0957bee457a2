//! The admin token of a running gateway: whoever may read its file may see whole what the gateway shows on loopback.
//!
//! The file stands beside the lock of a ledger's file, or beside the state file of a gateway whose ledger is in a database. The token is
//! another one at each start. Only the gateway's user may read it, and it is gone after a clean stop.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{Error, Read};
use std::path::{Path, PathBuf};

use super::side_file::{beside_real, opened, replace};
use crate::{LedgerAddress, clock};

/// What is behind the name of the ledger's file, or of the state file.
pub(super) const SUFFIX: &str = ".admin-token";
/// Random bytes of a token.
const BYTES: usize = 32;
/// Its characters, in hex.
const CHARS: usize = 64;
/// What is read of a file: a token and the end of its line.
const MOST: u64 = 65;

/// The token of this process; its file is removed with it. `Debug` shows only where it is.
pub struct AdminToken {
    path: PathBuf,
    text: String,
}

impl AdminToken {
    /// Puts a new token there, in place of the one that an earlier gateway left behind.
    ///
    /// # Errors
    /// When it cannot be written; the earlier one is gone then, too, if it could be removed.
    pub fn write(path: PathBuf) -> Result<Self, Error> {
        let text = hex::encode(clock::random::<BYTES>());
        match replace(&path, format!("{text}\n").as_bytes()) {
            Ok(()) => Ok(Self { path, text }),
            Err(error) => {
                // Who reads an old token is refused, who finds none sees what everybody sees.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "AdminToken({})", self.path.display())
    }
}

impl Drop for AdminToken {
    fn drop(&mut self) {
        // Another gateway with the same state file has put its own there.
        if read(&self.path).is_ok_and(|found| found == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl LedgerAddress {
    /// Where a gateway of this ledger, with this state file, has its admin token; `None` for a database without a state file.
    pub fn admin_token_file(&self, state: Option<&Path>) -> Option<PathBuf> {
        let path = self.path().or(state)?;
        Some(beside_real(path, SUFFIX))
    }

    /// The admin token of the gateway that runs, if there is one that this user may read.
    pub fn admin_token(&self, state: Option<&Path>) -> Option<String> {
        read(&self.admin_token_file(state)?).ok()
    }
}

/// A token in a file, and nothing else that somebody put there.
fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    opened(&mut OpenOptions::new(), path)?
        .take(MOST)
        .read_to_string(&mut text)?;
    let token = text.trim_end();
    if token.len() == CHARS && token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(token.to_owned())
    } else {
        Err(Error::other("it is not an admin token"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn each_start_has_its_own_which_only_its_user_reads_and_which_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = LedgerAddress::File(folder.path().join("farebox.db"));
        let file = ledger.admin_token_file(None).unwrap();
        assert_eq!(file, folder.path().join("farebox.db.admin-token"));
        assert_eq!(ledger.admin_token(None), None);
        let first = AdminToken::write(file.clone()).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert_eq!(ledger.admin_token(None).as_deref(), Some(first.reveal()));
        assert!(!format!("{first:?}").contains(first.reveal()));
        // A gateway that was killed leaves its own behind.
        let second = AdminToken::write(file.clone()).unwrap();
        assert_ne!(first.reveal(), second.reveal());
        drop(first);
        assert_eq!(ledger.admin_token(None).as_deref(), Some(second.reveal()));
        drop(second);
        assert!(file.symlink_metadata().is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_database_has_it_beside_the_state_file_and_a_link_at_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let database: LedgerAddress = "postgres://ada@db/ledger".parse().unwrap();
        assert_eq!(database.admin_token_file(None), None);
        let state = folder.path().join("state-1.json");
        let file = database.admin_token_file(Some(&state)).unwrap();
        assert_eq!(file, folder.path().join("state-1.json.admin-token"));
        let (real, link) = (folder.path().join("real.db"), folder.path().join("link.db"));
        fs::write(&real, "").unwrap();
        symlink(&real, &link).unwrap();
        let linked = LedgerAddress::File(link).admin_token_file(None).unwrap();
        assert_eq!(linked, folder.path().join("real.db.admin-token"));
    }

    #[test]
    fn what_somebody_planted_is_neither_followed_nor_read_nor_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = LedgerAddress::File(folder.path().join("farebox.db"));
        let file = ledger.admin_token_file(None).unwrap();
        let (secret, token) = (folder.path().join("secret"), "a1".repeat(BYTES));
        fs::write(&secret, &token).unwrap();
        fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        // A link is not followed, neither by who reads nor by who writes, and neither is one in place of what is written first.
        for planted in [
            file.clone(),
            folder.path().join("farebox.db.admin-token.new"),
        ] {
            symlink(&secret, &planted).unwrap();
            assert_eq!(ledger.admin_token(None), None);
            let written = AdminToken::write(file.clone()).unwrap();
            assert_eq!(ledger.admin_token(None).as_deref(), Some(written.reveal()));
            assert_eq!(mode(&file), 0o600);
            assert_eq!(fs::read_to_string(&secret).unwrap(), token);
        }
        // Another name of a file, a file that everybody reads, and what is no token.
        fs::hard_link(&secret, &file).unwrap();
        assert_eq!(ledger.admin_token(None), None);
        fs::remove_file(&secret).unwrap();
        assert_eq!(ledger.admin_token(None), Some(token));
        fs::set_permissions(&file, PermissionsExt::from_mode(0o604)).unwrap();
        assert_eq!(ledger.admin_token(None), None);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        for wrong in ["", "a1", &"g1".repeat(BYTES), &"a1".repeat(BYTES + 1)] {
            fs::write(&file, wrong).unwrap();
            assert_eq!(ledger.admin_token(None), None, "{wrong}");
        }
        // A folder cannot be replaced.
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(AdminToken::write(file).is_err());
    }
}
