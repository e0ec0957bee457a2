//! Operations with an unknown outcome, one small file each, kept until the outcome is known.
//!
//! A file is on disk before its operation is sent and is removed when the outcome is known, so a console that is killed in between
//! finds it at its next start. Files are 0600 in a 0700 directory and never contain a secret.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use farebox_ledger::{Amount, CreditKind, OperationId};
use serde::{Deserialize, Serialize};

use crate::plan::{ActPlan, Pending};

/// The facts of one operation, enough to query its outcome and, if that is safe, to send it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenOperation {
    pub(crate) operation: String,
    pub(crate) ledger: String,
    pub(crate) pid: u32,
    pub(crate) act: String,
    /// The key or customer.
    #[serde(alias = "key")]
    pub(crate) of: String,
    pub(crate) label: String,
    pub(crate) actor: String,
    pub(crate) at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) amount: Option<Amount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<String>,
    /// Of a move: who gets the money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) into: Option<String>,
}

impl OpenOperation {
    /// The operation's id, unless the file was edited.
    pub(crate) fn id(&self) -> Option<OperationId> {
        self.operation.parse().ok()
    }

    /// The act as it was to be sent; `None` if sending it again could not recreate what it made (a secret, a link), or if its
    /// settings are not in the file.
    pub(crate) fn pending(&self) -> Option<Pending> {
        let credit = |kind| {
            Some(ActPlan::Credit {
                kind,
                amount: self.amount?,
                reference: self.reference.clone()?,
            })
        };
        let reason = || self.reason.clone();
        let plan = match self.act.as_str() {
            "Top up" => credit(CreditKind::TopUp)?,
            "Adjust" => credit(CreditKind::Adjust { reason: reason()? })?,
            "Refund" => credit(CreditKind::Refund {
                request: self.request.as_ref()?.parse().ok()?,
                reason: reason()?,
            })?,
            "Block" => ActPlan::Block,
            "Unblock" => ActPlan::Unblock,
            "Revoke" => ActPlan::Revoke,
            "Suspend" => ActPlan::Suspend,
            "Resume" => ActPlan::Resume,
            "Close" => ActPlan::Close,
            "Move" => ActPlan::Move {
                into: self.into.as_ref()?.parse().ok()?,
                amount: self.amount?,
                reference: self.reference.clone()?,
            },
            _ => return None,
        };
        let (label, actor) = (self.label.clone(), self.actor.clone());
        Some(Pending {
            operation: self.id()?,
            of: self.of.parse().ok()?,
            label,
            plan,
            actor,
            at: crate::clock::parse(&self.at)?,
        })
    }
}

/// The directory of open operations, for one ledger.
#[derive(Debug, Clone)]
pub(crate) struct StateFile {
    directory: PathBuf,
    ledger: String,
}

impl StateFile {
    /// In the user's state directory: `$XDG_STATE_HOME`, else `~/.local/state`, else beside the ledger.
    pub(crate) fn new(ledger: &Path) -> Self {
        let absolute = fs::canonicalize(ledger).unwrap_or_else(|_| ledger.to_owned());
        let named = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let base =
            named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")));
        let base = base
            .or_else(|| absolute.parent().map(Path::to_owned))
            .unwrap_or_default();
        Self::in_directory(base.join("farebox-console"), &absolute)
    }

    /// In the given directory.
    pub(crate) fn in_directory(directory: PathBuf, ledger: &Path) -> Self {
        Self {
            directory,
            ledger: ledger.to_string_lossy().into_owned(),
        }
    }

    /// Writes an operation to disk, durably. If this fails, it must not be sent.
    pub(crate) fn keep(&self, pending: &Pending) -> io::Result<()> {
        let mut open = OpenOperation {
            operation: pending.operation.to_string(),
            ledger: self.ledger.clone(),
            pid: std::process::id(),
            act: pending.plan.name().to_owned(),
            of: pending.of.to_string(),
            label: pending.label.clone(),
            actor: pending.actor.clone(),
            at: pending.at.to_string(),
            amount: None,
            reference: None,
            reason: None,
            request: None,
            into: None,
        };
        match &pending.plan {
            ActPlan::Credit {
                kind,
                amount,
                reference,
            } => {
                (open.amount, open.reference) = (Some(*amount), Some(reference.clone()));
                match kind {
                    CreditKind::TopUp => {}
                    CreditKind::Adjust { reason } | CreditKind::WriteOff { reason } => {
                        open.reason = Some(reason.clone())
                    }
                    CreditKind::Refund { request, reason } => {
                        (open.request, open.reason) =
                            (Some(request.to_string()), Some(reason.clone()));
                    }
                }
            }
            ActPlan::Create {
                first: Some((amount, reference)),
                ..
            } => {
                (open.amount, open.reference) = (Some(*amount), Some(reference.clone()));
            }
            ActPlan::Move {
                into,
                amount,
                reference,
            } => {
                (open.amount, open.reference) = (Some(*amount), Some(reference.clone()));
                open.into = Some(into.to_string());
            }
            _ => {}
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        // Written to a temporary file and renamed, so a crash never leaves half a file.
        let draft = self.directory.join(format!(".{}", pending.operation));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(&serde_json::to_vec(&open).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(&draft, self.path(pending.operation))?;
        File::open(&self.directory)?.sync_all()
    }

    /// Removes an operation: its outcome is known.
    pub(crate) fn forget(&self, operation: OperationId) -> io::Result<()> {
        match fs::remove_file(self.path(operation)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Every recorded operation of this ledger, oldest first. Other users' files and unreadable ones are skipped.
    pub(crate) fn list(&self) -> Vec<OpenOperation> {
        let Ok(directory) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let read =
            |path: PathBuf| serde_json::from_slice::<OpenOperation>(&fs::read(path).ok()?).ok();
        let files = directory
            .flatten()
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"));
        let mut open: Vec<OpenOperation> = files
            .filter_map(read)
            .filter(|open| open.ledger == self.ledger && open.id().is_some())
            .collect();
        open.sort_by(|one, other| one.operation.cmp(&other.operation));
        open
    }

    fn path(&self, operation: OperationId) -> PathBuf {
        self.directory.join(format!("{operation}.json"))
    }
}

/// Whether the process that recorded an operation is another one that is still running.
pub(crate) fn runs_elsewhere(pid: u32) -> bool {
    pid != std::process::id() && Path::new("/proc").join(pid.to_string()).exists()
}

/// Creates a new file that only its owner can read, with this content.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use farebox_ledger::{CustomerId, KeyId, Scope, Timestamp};

    use super::*;

    fn pending(number: u128, of: Scope, plan: ActPlan) -> Pending {
        let at = Timestamp::from_millis(1_700_000_000_000);
        Pending {
            operation: OperationId::new(at, number),
            of,
            label: "acme".to_owned(),
            plan,
            actor: "ada".to_owned(),
            at,
        }
    }

    #[test]
    fn operations_stay_until_they_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateFile::in_directory(directory.path().join("state"), Path::new("/tmp/a.db"));
        let amount = Amount::from_picos(5);
        let paid = ActPlan::Credit {
            kind: CreditKind::TopUp,
            amount,
            reference: "inv-1".to_owned(),
        };
        let [one, other] = [9, 10].map(CustomerId::from_random);
        let moved = ActPlan::Move {
            into: other,
            amount,
            reference: "one purse".to_owned(),
        };
        let kept = [
            pending(7, KeyId::from_random(9).into(), paid),
            pending(8, one.into(), moved),
            pending(9, one.into(), ActPlan::Suspend),
        ];
        for pending in &kept {
            state.keep(pending).unwrap();
        }
        let listed: Vec<_> = state.list().iter().map(OpenOperation::pending).collect();
        assert_eq!(listed, kept.clone().map(Some));
        let operation = kept[0].operation;
        assert_eq!(
            fs::metadata(state.path(operation))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        assert!(
            StateFile::in_directory(directory.path().join("state"), Path::new("/tmp/b.db"))
                .list()
                .is_empty()
        );
        for pending in &kept {
            state.forget(pending.operation).unwrap();
        }
        state.forget(operation).unwrap();
        assert!(state.list().is_empty());
    }

    #[test]
    fn a_file_of_an_older_console_is_read() {
        let older = r#"{"operation":"01kahv2m7q3f8w2c9d4e5f6g7m","ledger":"/x","pid":1,"act":"Block","key":"k_7f3q9d2xw1",
            "label":"acme","actor":"ada","at":"2026-11-21T12:04:11.000Z"}"#;
        let open: OpenOperation = serde_json::from_str(older).unwrap();
        assert_eq!(open.pending().unwrap().of.to_string(), "k_7f3q9d2xw1");
    }
}
