//! What the operations of a batch have changed, for a store to write.

use std::collections::{BTreeMap, BTreeSet};

use crate::book::run::{self, RunSums};
use crate::rule::payment::PaymentAddressee;
use crate::table::rows::TableRows;
use crate::{
    Amount, CustomerId, DeliveryStep, Event, Grant, GrantId, JournalEntry, KeyId, OperationId,
    PersonalData, Served, Taught, Timestamp, UsageRow,
};

/// An hour of a key with a slug at a target that served it as this.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsagePlace {
    pub(crate) key: KeyId,
    pub(crate) hour: i64,
    pub(crate) slug: String,
    pub(crate) target: String,
    pub(crate) served: Served,
}

/// Everything to write. Rows that are also read stand in [`Rows`](super::rows::Rows), and here only their names.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) customers: Vec<CustomerId>,
    pub(crate) keys: Vec<KeyId>,
    /// Personal data to store, or to remove.
    pub(crate) personal: BTreeMap<CustomerId, Option<PersonalData>>,
    /// Whom payments are addressed to, by their folded references, and whose they are.
    pub(crate) addressees: BTreeMap<String, (CustomerId, PaymentAddressee)>,
    pub(crate) holds: Vec<OperationId>,
    /// Grants that are known with their customers alone.
    pub(crate) grants: BTreeMap<GrantId, Grant>,
    pub(crate) entries: Vec<OperationId>,
    pub(crate) acts: Vec<OperationId>,
    /// References that were taken, folded.
    pub(crate) names: Vec<(String, OperationId)>,
    /// Answers go that are of this instant or before it.
    pub(crate) forget_answers: Option<Timestamp>,
    pub(crate) usage: BTreeMap<UsagePlace, UsageRow>,
    /// Requests that name a run.
    pub(crate) runs: RunSums,
    pub(crate) published: BTreeMap<String, Timestamp>,
    /// What targets have taught, in the order in which it came: each sum is halved where its own addition fills it.
    pub(crate) taught: Vec<TaughtChange>,
    /// What our own requests cost, by hour, target and the epoch of the gateway that made them.
    pub(crate) own_costs: BTreeMap<(i64, String, i64), Amount>,
    /// The epoch that began, and when.
    pub(crate) epoch: Option<(i64, Timestamp)>,
    /// What is told, in this order.
    pub(crate) events: TableRows<Event>,
    /// Steps of delivering it to webhooks.
    pub(crate) deliveries: Vec<DeliveryStep>,
    /// Keys whose stored sessions all end, and those whose links all end.
    pub(crate) ended_sessions: BTreeSet<KeyId>,
    pub(crate) ended_links: BTreeSet<KeyId>,
    /// Keys with a new session.
    pub(crate) crowded: BTreeSet<KeyId>,
    /// Expired rows go that had expired at this instant.
    pub(crate) forget_links: Option<Timestamp>,
    pub(crate) forget_sessions: Option<Timestamp>,
}

/// A change of what targets have taught.
#[derive(Debug)]
pub(crate) enum TaughtChange {
    /// This is added: no row twice.
    Added(Taught),
    /// What this target has taught goes.
    Forgotten(String),
}

/// Removes everything and keeps the room, which the next batch needs again.
#[inline]
pub(crate) fn clear<K: Ord, V>(rows: &mut BTreeMap<K, V>) {
    while !rows.is_empty() {
        rows.pop_first();
    }
}

impl Changes {
    /// Adds what targets have taught.
    pub(crate) fn teach(&mut self, taught: &Taught) {
        if !taught.is_empty() {
            self.taught.push(TaughtChange::Added(taught.in_order()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            customers,
            keys,
            personal,
            addressees,
            holds,
            grants,
            entries,
            acts,
            names,
            forget_answers,
            usage,
            runs,
            published,
            taught,
            own_costs,
            events,
            deliveries,
            epoch,
            ended_sessions,
            ended_links,
            crowded,
            forget_links,
            forget_sessions,
        } = self;
        customers.is_empty()
            && keys.is_empty()
            && personal.is_empty()
            && addressees.is_empty()
            && holds.is_empty()
            && grants.is_empty()
            && entries.is_empty()
            && acts.is_empty()
            && names.is_empty()
            && forget_answers.is_none()
            && usage.is_empty()
            && runs.is_empty()
            && published.is_empty()
            && taught.is_empty()
            && own_costs.is_empty()
            && events.is_unchanged()
            && deliveries.is_empty()
            && epoch.is_none()
            && ended_sessions.is_empty()
            && ended_links.is_empty()
            && crowded.is_empty()
            && forget_links.is_none()
            && forget_sessions.is_none()
    }

    /// Forgets what has been written.
    pub(crate) fn clear(&mut self) {
        // What every request changes keeps its room.
        self.customers.clear();
        self.keys.clear();
        self.holds.clear();
        self.entries.clear();
        clear(&mut self.usage);
        if !self.is_empty() {
            *self = Self::default();
        }
    }

    /// Adds an ended request to its hour and to its run.
    pub(crate) fn roll_up(&mut self, entry: &JournalEntry) {
        let (Some(bill), Some(key)) = (&entry.bill, entry.key) else {
            return;
        };
        for (target, served, row) in UsageRow::of(entry, bill) {
            let place = UsagePlace {
                key,
                hour: entry.at.hour(),
                slug: bill.slug.clone(),
                target: target.to_owned(),
                served: served.clone(),
            };
            self.usage.entry(place).or_default().merge(&row);
        }
        run::add(&mut self.runs, entry);
    }

    /// Records a slug as published, unless it is known.
    pub(crate) fn publish(&mut self, slug: &str, now: Timestamp) {
        self.published.entry(slug.to_owned()).or_insert(now);
    }
}
