//! Keys, and the acts that change them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::Serialize;

use crate::rule::cap::PastSpending;
use crate::rule::defaults::own_or;
use crate::rule::purse::KeyPurse;
use crate::{
    Act, Amount, ByDefault, Cap, CapInterval, CapMaker, Caps, CountedCap, Customer, CustomerId,
    CustomerSettings, KeyEdit, KeyId, KeySettings, MoneyPart, NewCustomer, Refusal, Scope,
    SecretHash, Timestamp, TokenId, UtcDay,
};

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

/// A key and the customer whose money it spends, from one consistent read. What only the key has is reached through it directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key itself.
    pub own: KeyRecord,
    /// The customer that it belongs to.
    pub customer: Customer,
    /// The caps of the key in whose caps it counts, too; none of a key that counts in no other's.
    pub of_maker: Caps,
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
    /// The owner key that made it.
    pub made_by: Option<KeyId>,
    /// The key in whose caps its holds and charges count, too: that which made it, unless it was made before they did.
    pub counts_in: Option<KeyId>,
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
    /// What it has where its settings say nothing.
    pub defaults: ByDefault,
    /// When it was first used, by whatever means; noted only of one that a token or an owner key made.
    pub used_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it; shared, because each request copies it.
    pub created_by: Arc<str>,
}

impl Key {
    /// Refuses a key with which nobody may act at an instant: an inactive one, and every one of a customer that is not served.
    ///
    /// # Errors
    /// [`Refusal::CustomerStopped`] first, then [`Refusal::NotActive`].
    pub fn check_acts(&self, now: Timestamp) -> Result<(), Refusal> {
        self.own.check_acts_of(&self.customer, now)
    }

    /// As it is at an instant, with what time has done to its customer's grants.
    pub(crate) fn reckoned_at(mut self, clock: impl FnOnce() -> Timestamp) -> Self {
        self.customer.reckon(clock);
        self
    }

    /// What a request for a slug may hold at an instant: what is available, or less where a cap has less room.
    pub fn room(&self, slug: &str, now: Timestamp) -> Amount {
        let (purse, parts) = self.purse(slug, now);
        purse.room(slug, UtcDay::of(now), &parts)
    }

    /// What may be spent at an instant on a model that has no cap of its own.
    pub fn spendable(&self, now: Timestamp) -> Amount {
        self.room("", now)
    }

    /// What may still be charged for a slug at an instant, held or not: the balance, or less where a cap has less left.
    pub fn remaining(&self, slug: &str, now: Timestamp) -> Amount {
        let (purse, parts) = self.purse(slug, now);
        purse.remaining(slug, UtcDay::of(now), &parts)
    }

    fn purse(&self, slug: &str, now: Timestamp) -> (KeyPurse, Vec<MoneyPart>) {
        let mut purse = KeyPurse::of(
            (self.id, &self.caps),
            (self.counts_in, &self.of_maker),
            &self.customer,
        );
        let parts = purse.begin(slug, now);
        (purse, parts)
    }

    /// Requests at once of all keys of the customer together, for a request of this one.
    pub fn customer_concurrency(&self) -> u32 {
        self.own.concurrency_within(&self.customer)
    }

    /// Every cap that binds the key, with whose it is: its own, those of the key that it counts in, its customer's.
    pub fn all_caps(&self) -> impl Iterator<Item = (Scope, &CountedCap)> {
        let own = self.caps.iter().map(|cap| (Scope::Key(self.id), cap));
        let of_maker = self.counts_in.map(Scope::Key).into_iter();
        let of_maker = of_maker.flat_map(|maker| self.of_maker.iter().map(move |cap| (maker, cap)));
        let customer = Scope::Customer(self.customer.id);
        let of_customer = self.customer.caps.iter();
        (own.chain(of_maker)).chain(of_customer.map(move |cap| (customer, cap)))
    }

    /// The cap that binds the key with least room for a slug on a day, if one applies.
    pub fn tightest_cap(&self, slug: &str, day: UtcDay) -> Option<(Scope, &CountedCap)> {
        self.all_caps()
            .filter(|(_, counted)| counted.applies(slug))
            .min_by_key(|(_, counted)| counted.room(day))
    }

    /// That cap, if it lets a request hold less than is available.
    pub fn binding_cap(&self, slug: &str, day: UtcDay) -> Option<(Scope, &CountedCap)> {
        let available = self.customer.available(slug);
        self.tightest_cap(slug, day)
            .filter(|(_, counted)| counted.room(day) < available)
    }
}

impl KeyRecord {
    /// The state at an instant.
    pub fn status(&self, now: Timestamp) -> KeyStatus {
        match (self.stored_status, self.settings.expires_at) {
            (KeyStatus::Active, Some(end)) if now >= end => KeyStatus::Expired,
            (stored, _) => stored,
        }
    }

    /// Whether `hash` opens this key at an instant: the current secret, or the old one during its overlap.
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

    /// Refuses a key of this customer with which nobody may act at an instant: whatever is not active of both.
    pub(crate) fn check_acts_of(&self, customer: &Customer, now: Timestamp) -> Result<(), Refusal> {
        customer.check_active()?;
        self.check_active(now)
    }

    /// Refuses a key with which nobody may look at its account: a blocked or revoked one. An expired one, or one of a suspended or closed
    /// customer, still shows its history.
    ///
    /// # Errors
    /// [`Refusal::NotActive`].
    pub fn check_looks(&self) -> Result<(), Refusal> {
        match self.stored_status {
            KeyStatus::Blocked | KeyStatus::Revoked => Err(Refusal::NotActive(self.stored_status)),
            KeyStatus::Active | KeyStatus::Expired => Ok(()),
        }
    }

    /// Requests each second, its own or by default; `None` is unlimited.
    pub const fn rate(&self) -> Option<u32> {
        own_or(self.settings.rate, self.defaults.rate)
    }

    /// Requests at once, its own or by default; `None` is the gateway's.
    pub const fn concurrency(&self) -> Option<u32> {
        own_or(self.settings.concurrency, self.defaults.concurrency)
    }

    /// Requests at once of all keys of its customer together, for a request of this one. An operator who lets one key do more than is usual
    /// means its customer, too.
    pub fn concurrency_within(&self, customer: &Customer) -> u32 {
        let usual = customer.defaults.concurrency;
        let of_key = match usual {
            Some(_) => self.settings.concurrency,
            None => self.concurrency(),
        };
        let usual = usual.unwrap_or(CustomerSettings::CONCURRENCY);
        let own = customer.settings.concurrency;
        own.unwrap_or(usual.max(of_key.unwrap_or_default()))
    }

    /// Whether its first use is still to be noted.
    pub const fn is_unmarked(&self) -> bool {
        (self.token.is_some() || self.counts_in.is_some()) && self.used_at.is_none()
    }

    /// Refuses to take money for a key that can never use it.
    ///
    /// # Errors
    /// [`Refusal::NotApplicable`].
    pub fn check_payable(&self) -> Result<(), Refusal> {
        match self.stored_status {
            KeyStatus::Revoked => Err(Refusal::NotApplicable(format!(
                "key {} is revoked and takes no more money",
                self.id
            ))),
            KeyStatus::Active | KeyStatus::Blocked | KeyStatus::Expired => Ok(()),
        }
    }

    /// Applies a change. Repeating a change, such as blocking a blocked key, is fine; a revoked key accepts only another
    /// revocation. A cap is that of `by`; a new one counts `spending` of its window, in which `today` lies.
    pub(crate) fn apply(
        &mut self,
        change: &Change,
        by: CapMaker,
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
            Change::Edit(edit) => {
                let settings = edit.clone().over(self.settings.clone());
                settings.check()?;
                self.settings = settings;
            }
            Change::Block => self.stored_status = KeyStatus::Blocked,
            Change::Unblock => self.stored_status = KeyStatus::Active,
            Change::Revoke => self.stored_status = KeyStatus::Revoked,
            Change::Rotate { secret, old_until } => {
                self.old_secret = old_until.map(|until| (self.secret, until));
                self.secret = *secret;
            }
            Change::Reissue { secret } => {
                if spending.is_any() || self.used_at.is_some() {
                    let text = format!(
                        "key {} has been used; rotate it instead, so that its holder can change over",
                        self.id
                    );
                    return Err(Refusal::NotApplicable(text));
                }
                (self.old_secret, self.secret) = (None, *secret);
            }
            Change::SetCap(cap) | Change::SetPurse(cap) => {
                self.caps.set(cap, by, today, spending)?;
            }
            Change::ClearCap { interval, model } => {
                self.caps.clear(*interval, model.as_deref(), by)?;
            }
        }
        Ok(())
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

    pub(crate) fn key(&self) -> KeyRecord {
        KeyRecord {
            id: self.id,
            belongs_to: self.belongs_to(),
            is_owner: self.within.is_owner,
            made_by: self.within.made_by,
            // An owner is bounded by nobody's caps but the seller's.
            counts_in: self.within.made_by.filter(|_| !self.within.is_owner),
            token: None,
            settings: self.settings.clone(),
            stored_status: KeyStatus::Active,
            secret: self.secret,
            old_secret: None,
            caps: Caps::default(),
            defaults: ByDefault::default(),
            used_at: None,
            created_at: self.act.at,
            created_by: self.act.actor.as_str().into(),
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
    /// The key that makes it: an owner of the same customer.
    pub made_by: Option<KeyId>,
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Chosen by the caller; also part of the secret.
    pub id: KeyId,
    /// SHA-256 of the secret, which is never stored.
    pub secret: SecretHash,
    /// Settings.
    pub settings: KeySettings,
    /// Where it belongs.
    pub within: Membership,
    /// The customer's credit that comes with it, and its reference.
    pub first_credit: Option<(Amount, String)>,
    /// A bound of what it may spend, at most what the key that makes it may spend now: an owner's limit. Only an owner key gives one.
    pub purse: Option<Cap>,
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
    /// Change the settings of which it says something.
    Edit(KeyEdit),
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
    /// The same of a key that an owner key made: it has no more left than that has room for, unless its limit is lowered.
    SetPurse(Cap),
    /// Remove such a bound.
    ClearCap {
        /// The cap's interval.
        interval: CapInterval,
        /// The cap's model.
        model: Option<String>,
    },
}

/// A customer to create together with its first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolment {
    /// The customer.
    pub customer: NewCustomer,
    /// Its first key.
    pub key: NewKey,
}

/// A key that is used, perhaps for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkUsed {
    /// The key.
    pub key: KeyId,
    /// The caller's clock.
    pub now: Timestamp,
}
