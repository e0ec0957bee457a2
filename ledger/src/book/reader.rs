//! What the verifier reads of a ledger, and how: each store implements it over its own rows.

use std::collections::{BTreeMap, BTreeSet};

use super::anchor::Anchor;
use super::chain::{ChainedAct, ChainedEntry};
use super::head::{Hash, StoredCustomer};
use super::house_act::HouseBook;
use crate::rule::hold::StoredHold;
use crate::rule::key::KeyRecord;
use crate::rule::limit::Traffic;
use crate::rule::link::SignInLink;
use crate::{
    GrantRecord, KeyId, Payment, PersonalData, PlanWindow, RunSum, Served, Session, Subscription,
    Timestamp, UsageRow,
};

/// A row, or why it cannot be read.
pub(crate) type ReadRow<T> = Result<T, String>;

/// The usage of a customer by key, hour, slug, target and what it served.
pub(crate) type HourlyUsage = BTreeMap<(KeyId, i64, String, String, Served), UsageRow>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct LedgerIdentity {
    /// The value with which the chains of format 2 begin.
    pub(crate) genesis: Hash,
    /// The generation whose anchors count; `None` if all do.
    pub(crate) generation: Option<i64>,
}

/// A customer's rows besides its history, as of one instant.
pub(crate) struct CustomerRows {
    pub(crate) stored: StoredCustomer,
    /// Each with its own traffic, where the store counts it by key and the key has limits.
    pub(crate) keys: Vec<(KeyRecord, Option<Traffic>)>,
    pub(crate) holds: Vec<StoredHold>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) links: Vec<SignInLink>,
    pub(crate) personal: Option<PersonalData>,
    pub(crate) payments: Vec<Payment>,
    pub(crate) grants: Vec<GrantRecord>,
    /// All subscriptions, and what is counted of them.
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) windows: Vec<PlanWindow>,
    /// When its account says that something happens to them.
    pub(crate) next_grant_at: Option<Timestamp>,
    /// Its traffic, where the store counts it by customer.
    pub(crate) traffic: Option<Traffic>,
    /// The sum of all runs of each month.
    pub(crate) runs: Vec<RunSum>,
    /// Its usage, where the store keeps it by key.
    pub(crate) usage: Option<HourlyUsage>,
}

impl CustomerRows {
    pub(super) fn key(&self, id: KeyId) -> Option<&KeyRecord> {
        self.keys
            .iter()
            .map(|(key, _)| key)
            .find(|key| key.id == id)
    }

    pub(super) fn holds_of(&self, key: KeyId) -> impl Iterator<Item = &StoredHold> {
        self.holds.iter().filter(move |hold| hold.open.key == key)
    }
}

/// How the verifier reads a ledger. An error of the store ends the check; a row that cannot be read is a fault.
pub(crate) trait LedgerReader {
    type Error;

    /// Whether anybody still waits for the result.
    fn is_wanted(&self) -> bool {
        true
    }
    async fn identity(&mut self) -> Result<Option<LedgerIdentity>, Self::Error>;
    /// The numbers of some customers after this one, ascending; none at the end.
    async fn customers(&mut self, after: i64) -> Result<Vec<i64>, Self::Error>;
    async fn customer(&mut self, number: i64) -> Result<ReadRow<CustomerRows>, Self::Error>;
    /// Some of a customer's entries before this one, or its newest ones; none at the end.
    async fn entries(
        &mut self,
        customer: &StoredCustomer,
        before: Option<&ChainedEntry>,
    ) -> Result<Vec<ReadRow<ChainedEntry>>, Self::Error>;
    /// Some of a customer's acts before this one, or its newest ones; none at the end.
    async fn acts(
        &mut self,
        customer: &StoredCustomer,
        before: Option<&ChainedAct>,
    ) -> Result<Vec<ReadRow<ChainedAct>>, Self::Error>;
    /// Those of these folded references that are registered for an entry with the same reference.
    async fn taken(&mut self, folded: &BTreeSet<String>) -> Result<BTreeSet<String>, Self::Error>;
    /// Tokens of the admin API, vouchers, and the acts on them, at one instant.
    async fn house(&mut self) -> Result<ReadRow<HouseBook>, Self::Error>;
    /// Ends the instant in which a customer was read.
    async fn end_customer(&mut self) -> Result<(), Self::Error>;
    /// The faults of everything that belongs to no customer.
    async fn rest(&mut self, anchors: &[Anchor]) -> Result<Vec<String>, Self::Error>;
}
