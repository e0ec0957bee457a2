//! Keys: secrets, settings and the acts that change them.
//!
//! A secret reads `sk-fb-<public id>-<random>-<checksum>`: the public id finds the row, 43 base-62 characters carry 256 bits of
//! randomness, and the checksum detects a mistyped key without touching the store. Only its SHA-256 is kept.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::Serialize;
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use crate::rule::cap::PastSpending;
use crate::rule::customer::KeyPurse;
use crate::value::text::{SECRET_PREFIX, check_text};
use crate::{
    Act, Amount, Cap, CapInterval, Caps, CountedCap, Customer, CustomerId, CustomerSettings, KeyId,
    Refusal, Scope, Timestamp, TokenId, UtcDay,
};

/// Characters that carry 256 random bits.
pub(crate) const RANDOM_CHARS: usize = 43;
/// Characters that detect a mistyped secret.
pub(crate) const CHECK_CHARS: usize = 6;
const BASE_62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A key's secret in the clear. It is never logged and never printed by `Debug`; the only way out is [`Secret::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret from the key's id and the caller's randomness.
    #[must_use]
    pub fn generate(id: KeyId, mut random: [u8; 32]) -> Self {
        let mut text = String::with_capacity(96);
        text.push_str(SECRET_PREFIX);
        text.push_str(&id.chars());
        text.push('-');
        text.push_str(&base_62(&mut random, RANDOM_CHARS));
        let check = checksum(&text);
        text.push('-');
        text.push_str(&check);
        Self(text)
    }

    /// Reads a secret without touching a store: prefix, lengths, characters and checksum must be right.
    ///
    /// # Errors
    /// [`SecretError`], whose text never repeats the input.
    pub fn parse(text: &str) -> Result<(KeyId, Self), SecretError> {
        let rest = text
            .strip_prefix(SECRET_PREFIX)
            .ok_or(SecretError::Prefix)?;
        let mut parts = rest.split('-');
        let (Some(id), Some(random), Some(check), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(SecretError::Shape);
        };
        let base_62 = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if random.len() != RANDOM_CHARS
            || check.len() != CHECK_CHARS
            || !base_62(random)
            || !base_62(check)
        {
            return Err(SecretError::Shape);
        }
        let key: KeyId = id.parse().map_err(|_| SecretError::Shape)?;
        let body = text
            .len()
            .checked_sub(CHECK_CHARS + 1)
            .and_then(|end| text.get(..end))
            .ok_or(SecretError::Shape)?;
        // The public id is case-insensitive; the secret is not, because it is hashed as written.
        if id != key.chars() || checksum(body) != check {
            return Err(SecretError::Checksum);
        }
        Ok((key, Self(text.to_owned())))
    }

    /// The secret in the clear, for the one time it is shown.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the store keeps.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// Why a text is not a secret. Never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Another product's key, or not a key.
    #[error("keys of this gateway begin with sk-fb-")]
    Prefix,
    /// Truncated, or with characters that no secret has.
    #[error("this key is incomplete or has characters that do not belong to it")]
    Shape,
    /// One character is wrong.
    #[error("this key is mistyped: its checksum does not match")]
    Checksum,
}

/// SHA-256 of a secret, as stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// The hash of any secret text: a key's, a session's, a link's.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretHash(…)")
    }
}

/// The number in base 62, most significant digit first; the number is wiped.
pub(crate) fn base_62(number: &mut [u8], chars: usize) -> String {
    let mut text = vec![b'0'; chars];
    for place in text.iter_mut().rev() {
        let mut rest = 0_u16;
        for byte in number.iter_mut() {
            let value = (rest << 8) | u16::from(*byte);
            *byte = u8::try_from(value.div_euclid(62)).unwrap_or_default();
            rest = value.rem_euclid(62);
        }
        *place = BASE_62.get(usize::from(rest)).copied().unwrap_or(b'0');
    }
    number.zeroize();
    String::from_utf8(text).unwrap_or_default()
}

/// What a secret ends in.
pub(crate) fn checksum(body: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    let mut head: Vec<u8> = digest.iter().copied().take(4).collect();
    base_62(&mut head, CHECK_CHARS)
}

/// What a key is allowed to do now. `Expired` is never stored: it follows from the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    /// Requests are served while money lasts.
    Active,
    /// Refused until unblocked.
    Blocked,
    /// It has expired.
    Expired,
    /// Refused forever. The row and the history stay.
    Revoked,
}

impl fmt::Display for KeyStatus {
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
    /// A name for people.
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

/// A key and the customer whose money it spends, from one consistent read. What only the key has is reached through it directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key itself.
    pub own: KeyRecord,
    /// The customer that it belongs to.
    pub customer: Customer,
}

impl Deref for Key {
    type Target = KeyRecord;

    fn deref(&self) -> &KeyRecord {
        &self.own
    }
}

impl DerefMut for Key {
    fn deref_mut(&mut self) -> &mut KeyRecord {
        &mut self.own
    }
}

/// What belongs to a key alone: settings, state, secrets and caps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Public id.
    pub id: KeyId,
    /// The customer that it belongs to, for ever.
    pub belongs_to: CustomerId,
    /// Whether it manages the customer's other keys.
    pub is_owner: bool,
    /// The key that made it, on the dashboard.
    pub made_by: Option<KeyId>,
    /// The token of the admin API that made it; `None` if it was made here.
    pub token: Option<TokenId>,
    /// What was set.
    pub settings: KeySettings,
    /// Stored state; use [`KeyRecord::status`] for the state at an instant.
    pub stored_status: KeyStatus,
    /// Hash of the current secret.
    pub secret: SecretHash,
    /// Hash of the secret before the last rotation and the instant it stops working.
    pub old_secret: Option<(SecretHash, Timestamp)>,
    /// How much it may spend when.
    pub caps: Caps,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: String,
}

impl Key {
    /// What a request for a slug may hold at an instant: what is available, or less where a cap has less room.
    #[must_use]
    pub fn room(&self, slug: &str, now: Timestamp) -> Amount {
        KeyPurse::of(self.id, &self.caps, &self.customer).room(slug, UtcDay::of(now))
    }

    /// What may be spent at an instant on a model that has no cap of its own.
    #[must_use]
    pub fn spendable(&self, now: Timestamp) -> Amount {
        self.room("", now)
    }

    /// The caps of the key and of its customer, each with whose it is.
    pub fn all_caps(&self) -> impl Iterator<Item = (Scope, &CountedCap)> {
        let of_key = self.caps.iter().map(|cap| (Scope::Key(self.id), cap));
        let customer = Scope::Customer(self.customer.id);
        let of_customer = self.customer.caps.iter();
        of_key.chain(of_customer.map(move |cap| (customer, cap)))
    }

    /// The cap of the key or its customer with least room for a slug on a day, if one applies.
    #[must_use]
    pub fn tightest_cap(&self, slug: &str, day: UtcDay) -> Option<(Scope, &CountedCap)> {
        self.all_caps()
            .filter(|(_, counted)| counted.applies(slug))
            .min_by_key(|(_, counted)| counted.room(day))
    }

    /// That cap, if it lets a request hold less than is available.
    #[must_use]
    pub fn binding_cap(&self, slug: &str, day: UtcDay) -> Option<(Scope, &CountedCap)> {
        let available = self.customer.account.available();
        self.tightest_cap(slug, day)
            .filter(|(_, counted)| counted.room(day) < available)
    }
}

impl KeyRecord {
    /// The state at an instant.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> KeyStatus {
        match (self.stored_status, self.settings.expires_at) {
            (KeyStatus::Active, Some(end)) if now >= end => KeyStatus::Expired,
            (stored, _) => stored,
        }
    }

    /// Whether `hash` opens this key at an instant: the current secret, or the old one during its overlap.
    #[must_use]
    pub fn opens_with(&self, hash: SecretHash, now: Timestamp) -> bool {
        self.secret == hash
            || self
                .old_secret
                .is_some_and(|(old, until)| old == hash && now < until)
    }

    /// Refuses any key that is not active.
    pub(crate) fn check_active(&self, now: Timestamp) -> Result<(), Refusal> {
        match self.status(now) {
            KeyStatus::Active => Ok(()),
            stopped => Err(Refusal::NotActive(stopped)),
        }
    }

    /// Refuses a key for which the customer may not start anything: a blocked or revoked one.
    pub(crate) fn check_not_stopped(&self) -> Result<(), Refusal> {
        match self.stored_status {
            KeyStatus::Blocked | KeyStatus::Revoked => Err(Refusal::NotActive(self.stored_status)),
            KeyStatus::Active | KeyStatus::Expired => Ok(()),
        }
    }

    /// Refuses to take money for a key that can never use it.
    pub(crate) fn check_payable(&self) -> Result<(), Refusal> {
        match self.stored_status {
            KeyStatus::Revoked => Err(Refusal::NotApplicable(format!(
                "key {} is revoked and takes no more money",
                self.id
            ))),
            _ => Ok(()),
        }
    }

    /// Applies a change. Repeating a change, such as blocking a blocked key, is fine; a revoked key accepts only another
    /// revocation. A new cap counts `spending` of its window, in which `today` lies.
    pub(crate) fn apply(
        &mut self,
        change: &Change,
        today: UtcDay,
        spending: PastSpending<'_>,
    ) -> Result<(), Refusal> {
        if self.stored_status == KeyStatus::Revoked && !matches!(change, Change::Revoke) {
            return Err(Refusal::NotApplicable(format!(
                "key {} is revoked, which cannot be undone",
                self.id
            )));
        }
        match change {
            Change::Set(settings) => {
                settings.check()?;
                self.settings = settings.clone();
            }
            Change::Block => self.stored_status = KeyStatus::Blocked,
            Change::Unblock => self.stored_status = KeyStatus::Active,
            Change::Revoke => self.stored_status = KeyStatus::Revoked,
            Change::Rotate { secret, old_until } => {
                self.old_secret = old_until.map(|until| (self.secret, until));
                self.secret = *secret;
            }
            Change::Reissue { secret } => {
                if spending.is_any() {
                    let text = format!(
                        "key {} has been used; rotate it instead, so that its holder can change over",
                        self.id
                    );
                    return Err(Refusal::NotApplicable(text));
                }
                (self.old_secret, self.secret) = (None, *secret);
            }
            Change::SetCap(cap) => self.caps.set(cap, today, spending)?,
            Change::ClearCap { interval, model } => self.caps.clear(*interval, model.as_deref())?,
        }
        Ok(())
    }
}

impl KeySettings {
    /// Concurrent requests for a key without its own limit: what its customer has without one.
    pub const CONCURRENCY: u32 = CustomerSettings::CONCURRENCY;
    /// Paid requests each second when unset: far above what people and agents make, and no key makes thousands.
    pub const RATE: u32 = 200;
    /// How many of them may come at once when no rate is set.
    pub const BURST: u32 = 400;

    /// Whether the key may use a model.
    #[must_use]
    pub fn allows(&self, slug: &str) -> bool {
        let models = self.models.as_ref();
        models.is_none_or(|models| models.iter().any(|allowed| allowed == slug))
    }

    /// Checks that texts and lists are of a reasonable length.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_text("a label", &self.label, 200, false)?;
        let models = self.models.as_deref().unwrap_or_default();
        if models.len() > 1000 {
            return Err(Refusal::Limit("a key lists at most 1000 models".to_owned()));
        }
        models
            .iter()
            .try_for_each(|model| check_text("a model", model, 200, true))
    }
}

impl Change {
    /// Whether it ends the key's dashboard sessions and links.
    pub(crate) const fn ends_sessions(&self) -> bool {
        matches!(
            self,
            Self::Block | Self::Revoke | Self::Rotate { .. } | Self::Reissue { .. }
        )
    }
}

impl NewKey {
    /// The customer that it will belong to.
    pub(crate) fn belongs_to(&self) -> CustomerId {
        self.within
            .customer
            .unwrap_or(CustomerId::made_for(self.id))
    }

    /// The key.
    pub(crate) fn key(&self) -> KeyRecord {
        KeyRecord {
            id: self.id,
            belongs_to: self.belongs_to(),
            is_owner: self.within.is_owner,
            made_by: self.within.made_by,
            token: None,
            settings: self.settings.clone(),
            stored_status: KeyStatus::Active,
            secret: self.secret,
            old_secret: None,
            caps: Caps::default(),
            created_at: self.act.at,
            created_by: self.act.actor.clone(),
        }
    }
}

/// Where a new key belongs. The default is a customer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Membership {
    /// The customer; `None` makes one with the key's label and ten characters.
    pub customer: Option<CustomerId>,
    /// Whether it manages the customer's other keys.
    pub is_owner: bool,
    /// The key that makes it, on the dashboard: an owner of the same customer.
    pub made_by: Option<KeyId>,
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Chosen by the caller; also part of the secret.
    pub id: KeyId,
    /// Hash of the secret.
    pub secret: SecretHash,
    /// Settings.
    pub settings: KeySettings,
    /// Where it belongs.
    pub within: Membership,
    /// The customer's credit that comes with it, and its reference.
    pub first_credit: Option<(Amount, String)>,
    /// By whom and when.
    pub act: Act,
}

/// One administrative change to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// The key.
    pub key: KeyId,
    /// What to change.
    pub change: Change,
    /// By whom and when.
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
    /// Refuse forever; sessions end.
    Revoke,
    /// A new secret; the old one works until the given instant, if any. Sessions end.
    Rotate {
        /// Hash of the new secret.
        secret: SecretHash,
        /// When the old secret stops working; `None` is immediately.
        old_until: Option<Timestamp>,
    },
    /// A new secret for a key that no request has used: whoever got the first one may never have seen it. Sessions end.
    Reissue {
        /// Hash of the new secret.
        secret: SecretHash,
    },
    /// Bound what may be spent; a cap of the same interval and model gets the new limit.
    SetCap(Cap),
    /// Remove such a bound.
    ClearCap {
        /// The cap's interval.
        interval: CapInterval,
        /// The cap's model.
        model: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_checked_without_a_store() {
        let id = KeyId::from_random(0x1234_5678_9abc);
        let secret = Secret::generate(id, [0xff; 32]);
        let text = secret.reveal().to_owned();
        assert_eq!(text.len(), 6 + 10 + 1 + 43 + 1 + 6);
        let (found, parsed) = Secret::parse(&text).unwrap();
        assert_eq!((found, parsed.hash()), (id, secret.hash()));
        for place in 0..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[place] = if wrong[place] == b'a' { b'b' } else { b'a' };
            assert!(
                Secret::parse(std::str::from_utf8(&wrong).unwrap()).is_err(),
                "{place}"
            );
        }
        let upper = text.replacen(&id.chars(), &id.chars().to_uppercase(), 1);
        assert_eq!(Secret::parse(&upper), Err(SecretError::Checksum));
        for wrong in [
            "",
            "sk-fb-",
            "sk-ant-x",
            "sk-fb---",
            &text[..60],
            &format!("{text}x"),
            &format!("{text}-x"),
            " sk-fb-",
        ] {
            assert!(Secret::parse(wrong).is_err(), "{wrong}");
        }
        assert!(!format!("{secret:?}{:?}", secret.hash()).contains(&text[20..40]));
        assert_ne!(Secret::generate(id, [0; 32]), Secret::generate(id, [1; 32]));
    }
}
