//! Keys: secrets, settings and the acts that change them.
//!
//! A secret reads `sk-fb-<public id>-<random>-<checksum>`: the public id finds the row, 43 base-62 characters carry 256 bits of
//! randomness, the checksum tells a mistyped key without touching the store. Only its SHA-256 is kept.

use std::fmt;

use serde::Serialize;

use crate::{Account, Amount, KeyId, OperationId, Timestamp};

/// A key's secret in the clear. It is never logged and never printed by `Debug`; the only way out is [`Secret::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// SHA-256 of a secret, as stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

/// What a key is allowed to do now. `Expired` is never stored: it follows from the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Requests are served while money lasts.
    Active,
    /// Refused until unblocked.
    Blocked,
    /// Its last day has passed.
    Expired,
    /// Refused for ever. The row and the history stay.
    Revoked,
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Active => "active",
            Self::Blocked => "blocked",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        })
    }
}

/// What an administrator can set on a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct KeySettings {
    /// For people.
    pub label: String,
    /// Slugs the key may use; `None` is all.
    pub models: Option<Vec<String>>,
    /// First instant at which the key no longer works.
    pub expires_at: Option<Timestamp>,
    /// Requests each second; `None` is unlimited.
    pub rate: Option<u32>,
    /// Requests at once; `None` is the gateway's default.
    pub concurrency: Option<u32>,
}

/// A key: settings, state and account, from one consistent read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Public id.
    pub id: KeyId,
    /// What was set.
    pub settings: KeySettings,
    /// Stored state; use [`Key::status`] for the state at an instant.
    pub stored_status: Status,
    /// Hash of the current secret.
    pub secret: SecretHash,
    /// Hash of the secret before the last rotation and the instant it stops working.
    pub old_secret: Option<(SecretHash, Timestamp)>,
    /// The money.
    pub account: Account,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: String,
    /// When its last entry was written.
    pub last_entry_at: Option<Timestamp>,
}

impl Key {
    /// The state at an instant.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Status {
        match (self.stored_status, self.settings.expires_at) {
            (Status::Active, Some(end)) if now >= end => Status::Expired,
            (stored, _) => stored,
        }
    }

    /// Whether `hash` opens this key at an instant: the current secret, or the old one during its overlap.
    #[must_use]
    pub fn opens_with(&self, hash: SecretHash, now: Timestamp) -> bool {
        self.secret == hash || self.old_secret.is_some_and(|(old, until)| old == hash && now < until)
    }
}

/// Who did an administrative act, when, and under which operation id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// Repeating the same id has one effect.
    pub operation: OperationId,
    /// The operator's name.
    pub actor: String,
    /// When.
    pub at: Timestamp,
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Chosen by the caller, inside the secret too.
    pub id: KeyId,
    /// Hash of the secret.
    pub secret: SecretHash,
    /// Settings.
    pub settings: KeySettings,
    /// First money and its reference.
    pub first_credit: Option<(Amount, String)>,
    /// Who and when.
    pub act: Act,
}

/// One administrative change to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// The key.
    pub key: KeyId,
    /// What to change.
    pub change: Change,
    /// Who and when.
    pub act: Act,
}

/// The kinds of change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Replace all settings.
    Set(KeySettings),
    /// Refuse requests until unblocked.
    Block,
    /// Serve again.
    Unblock,
    /// Refuse for ever; sessions end.
    Revoke,
    /// A new secret; the old one works until the instant, when there is one. Sessions end.
    Rotate {
        /// Hash of the new secret.
        secret: SecretHash,
        /// When the old secret stops working; `None` is at once.
        old_until: Option<Timestamp>,
    },
}
