//! What tries at a target have shown, and what is told of it.
//!
//! A target's state and what is told of it are one value, `TargetState`: alerts, `/status`, the metrics and the console show parts of it.
//! Whatever is told is also a reason to ask the target ourselves ([`Signs::told_since`]), so that it ends without a customer.

use std::collections::BTreeMap;

use farebox_protocol::Family;
use tokio::time::Instant;

use super::accounts::{AccountRefusal, Accounts};
use super::redact::Redacted;
use farebox_door::byte_room::Holder;

/// Tries that fail in a row are a sign of trouble from this many on …
// A customer can make all its requests fail, so those of one alone say less.
const FAILURES: u32 = 5;
/// … or from this many, when more than one customer met them.
const FAILURES_OF_SEVERAL: u32 = 3;

/// A target's breaker of one family and account.
pub(super) type BreakerPlace = (Family, usize);

/// What tries at one target have shown since the last answer that ended well.
#[derive(Debug, Default)]
pub(super) struct Signs {
    failures: u32,
    /// Who failed first; `several` when another one did too.
    first: Option<Holder>,
    several: bool,
    /// This model or path was refused.
    refused: Option<Redacted>,
    /// Where it failed, and since when.
    met: BTreeMap<BreakerPlace, Instant>,
}

impl Signs {
    /// A customer's try failed through the target's fault.
    pub(super) fn failed(&mut self, key: Holder, place: BreakerPlace, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.several |= *self.first.get_or_insert(key) != key;
        self.met.entry(place).or_insert(now);
    }

    /// The target does not know what was asked for, or does not let us use it.
    pub(super) fn refused(&mut self, place: BreakerPlace, reason: Redacted, now: Instant) {
        self.refused = Some(reason);
        self.met.entry(place).or_insert(now);
    }

    /// Its account refused us there, which stands with the account.
    pub(super) fn met_refusal(&mut self, place: BreakerPlace, now: Instant) {
        self.met.entry(place).or_insert(now);
    }

    /// It can be used again, so that failures before count no more.
    pub(super) fn resumed(&mut self) {
        (self.failures, self.first, self.several) = (0, None, false);
    }

    /// An answer ended well, or our own request passed.
    pub(super) fn served(&mut self, place: BreakerPlace) {
        self.resumed();
        self.refused = None;
        self.met.remove(&place);
    }

    /// Failures in a row, over all customers.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Since when something is told of this place, so that we have to ask there.
    pub(super) fn told_since(&self, place: BreakerPlace, accounts: &Accounts) -> Option<Instant> {
        let since = self.met.get(&place)?;
        let told = self.refused.is_some() || self.fails() || accounts.refusal(place.1).is_some();
        told.then_some(*since)
    }

    /// What is wrong with the target, if it is for all customers and not a pause.
    pub(super) fn wrong(&self) -> Option<(Wrong, Option<&Redacted>)> {
        match &self.refused {
            Some(reason) => Some((Wrong::Refuses, Some(reason))),
            None => self.fails().then_some((Wrong::Failing, None)),
        }
    }

    fn fails(&self) -> bool {
        let most = if self.several {
            FAILURES_OF_SEVERAL
        } else {
            FAILURES
        };
        self.failures >= most
    }
}

/// Something for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What is wrong.
    pub what: Wrong,
    /// The slug; empty for an account.
    pub slug: String,
    /// `provider/model`; the provider for an account, empty for a slug.
    pub target: String,
    /// Why, in full.
    pub reason: String,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A provider refuses this account: why, its number, from 0, and how many there are.
    Account(AccountRefusal, usize, usize),
    /// A provider does not know the target's model or path.
    Refuses,
    /// It is paused for all customers.
    Paused,
    /// Its tries fail in a row.
    Failing,
    /// It is paused for these customers.
    PausedFor(Vec<Holder>),
    /// No target of the slug works.
    Dead,
}

impl Trouble {
    /// What ends it, if that can be said more exactly than by its kind.
    pub fn remedy(&self) -> Option<String> {
        match &self.what {
            Wrong::Account(refusal, ..) => {
                let provider = self.target.split('/').next().unwrap_or_default();
                Some(refusal.remedy(provider))
            }
            _ => None,
        }
    }
}

impl Trouble {
    /// Whether no customer can use the target.
    pub(super) fn is_for_all(&self) -> bool {
        !matches!(self.what, Wrong::PausedFor(_))
    }
}
