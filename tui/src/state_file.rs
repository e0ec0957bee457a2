//! Operations with an unknown outcome, one small file each, kept until the outcome is known.
//!
//! A file is on disk before its operation is sent and is removed when the outcome is known, so a console that is killed in between
//! finds it at its next start. Files are 0600 in a 0700 directory and never contain a secret.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use farebox_ledger::OperationId;
use serde::{Deserialize, Serialize};

use crate::acts::ACTS;
use crate::plan::{ActBody, ActPlan, Pending};

/// The facts of one operation, enough to query its outcome and, if that is safe, to send it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenOperation {
    pub(crate) operation: String,
    pub(crate) ledger: String,
    pub(crate) pid: u32,
    pub(crate) act: String,
    /// The key or customer; of a new one its customer, or nothing.
    #[serde(alias = "key")]
    pub(crate) of: String,
    pub(crate) label: String,
    pub(crate) actor: String,
    pub(crate) at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<String>,
    /// The act's members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<ActBody>,
    /// Where a console of before wrote those that it kept.
    #[serde(flatten)]
    pub(crate) older: ActBody,
}

impl OpenOperation {
    /// The operation's id, unless the file was edited.
    pub(crate) fn id(&self) -> Option<OperationId> {
        self.operation.parse().ok()
    }

    /// The members that were kept.
    pub(crate) fn members(&self) -> &ActBody {
        self.body.as_ref().unwrap_or(&self.older)
    }

    /// Whether its outcome was shown once.
    pub(crate) fn brings_secret(&self) -> bool {
        let mut kinds = ACTS.iter().filter(|kind| kind.name == self.act);
        kinds.any(|kind| kind.brings_secret)
    }

    /// The act as it was to be sent; `None` if sending it again could not recreate what it made (a secret, a link), or if its
    /// settings are not in the file.
    pub(crate) fn pending(&self) -> Option<Pending> {
        let kind = *ACTS.iter().find(|kind| kind.name == self.act)?;
        let body = self.members().clone();
        let is_whole = (kind.check)(&body).is_ok() && !(kind.edits && body.is_empty());
        if kind.brings_secret || !is_whole {
            return None;
        }
        let request = self.request.as_ref().map(|request| request.parse());
        let plan = ActPlan {
            kind,
            of: self.of.parse().ok(),
            request: request.transpose().ok()?,
            body,
        };
        Some(Pending {
            operation: self.id()?,
            plan,
            label: self.label.clone(),
            actor: self.actor.clone(),
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
        let plan = &pending.plan;
        let open = OpenOperation {
            operation: pending.operation.to_string(),
            ledger: self.ledger.clone(),
            pid: std::process::id(),
            act: plan.kind.name.to_owned(),
            of: plan.of.map(|of| of.to_string()).unwrap_or_default(),
            label: pending.label.clone(),
            actor: pending.actor.clone(),
            at: pending.at.to_string(),
            request: plan.request.map(|request| request.to_string()),
            body: Some(plan.body.clone()),
            older: ActBody::new(),
        };
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
    use serde_json::{Value, json};

    use super::*;
    use crate::acts::{EDIT, MOVE, NEW_CUSTOMER, NEW_KEY, SUSPEND, TOP_UP};
    use crate::plan::ActKind;

    fn pending(number: u128, kind: &'static ActKind, of: Option<Scope>, body: &Value) -> Pending {
        let at = Timestamp::from_millis(1_700_000_000_000);
        Pending {
            operation: OperationId::new(at, number),
            plan: ActPlan {
                kind,
                of,
                request: None,
                body: body.as_object().unwrap().clone(),
            },
            label: "acme".to_owned(),
            actor: "ada".to_owned(),
            at,
        }
    }

    #[test]
    fn operations_stay_until_they_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateFile::in_directory(directory.path().join("state"), Path::new("/tmp/a.db"));
        let [one, other] = [9, 10].map(CustomerId::from_random);
        let key = KeyId::from_random(9);
        let paid = json!({ "amount": "0.000005", "reference": "inv-1" });
        let moved = json!({ "into": other.to_string(), "amount": "5", "reference": "one purse" });
        let edit = json!({ "label": "acme", "rate": null, "models": ["a", "b"] });
        let kept = [
            pending(7, &TOP_UP, Some(key.into()), &paid),
            pending(8, &MOVE, Some(one.into()), &moved),
            pending(9, &SUSPEND, Some(one.into()), &json!({})),
            pending(10, &EDIT, Some(key.into()), &edit),
            pending(11, &NEW_CUSTOMER, None, &json!({ "label": "acme" })),
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
        // What was shown once is not made a second time.
        let sold = pending(12, &NEW_KEY, None, &json!({ "label": "acme" }));
        state.keep(&sold).unwrap();
        let listed = state.list();
        assert!(listed[0].brings_secret() && listed[0].pending().is_none());
    }

    /// A file of a console of before, of this act and with these members.
    fn older(act: &str, members: &str) -> OpenOperation {
        let file = format!(
            r#"{{"operation":"01kahv2m7q3f8w2c9d4e5f6g7m","ledger":"/x","pid":1,"act":"{act}","key":"k_7f3q9d2xw1",
            "label":"acme","actor":"ada","at":"2026-11-21T12:04:11.000Z"{members}}}"#
        );
        serde_json::from_str(&file).unwrap()
    }

    #[test]
    fn a_file_of_an_older_console_is_read() {
        let request = OperationId::from_bytes([7; 16]);
        let refund =
            format!(r#","amount":"0.5","reference":"r-1","reason":"why","request":"{request}""#);
        for (act, members, facts) in [
            ("Block", "", None),
            (
                "Top up",
                r#","amount":"50.00","reference":"inv-1""#,
                Some("50.00 USD"),
            ),
            (
                "Adjust",
                r#","amount":"-2.50","reference":"fix","reason":"why""#,
                Some("-2.50 USD"),
            ),
            (
                "Move",
                r#","amount":"5","reference":"m","into":"c_7f3q9d2xw1""#,
                Some("5.00 USD"),
            ),
            ("Refund", refund.as_str(), Some("0.50 USD")),
        ] {
            let pending = older(act, members).pending().unwrap();
            assert_eq!(pending.plan.of.unwrap().to_string(), "k_7f3q9d2xw1");
            let said = pending.plan.facts();
            let has = |text| said.iter().any(|(_, value)| value == text);
            assert!(facts.is_none_or(has), "{act}: {said:?}");
            assert_eq!(pending.plan.request, (act == "Refund").then_some(request));
        }
        // Their settings are not in the file, or were shown once.
        for act in ["Edit", "Edit customer", "New customer", "New key", "Rotate"] {
            assert!(older(act, "").pending().is_none(), "{act}");
        }
    }
}
