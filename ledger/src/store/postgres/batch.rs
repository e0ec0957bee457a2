//! A batch in memory: what its operations may read, filled once under the keys' locks, and what they wrote.
//!
//! Operations see the writes made before them. Nothing here talks to the database: `fetch` fills the batch and `flush` writes the
//! difference. It never contains a row of a key that is not locked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use crate::batch::operation::{Class, Operation};
use crate::batch::tx::{Fault, StoredHold, StoredKey};
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::rule::limit::Traffic;
use crate::value::reference;
use crate::{Amount, AuditRecord, Entry, KeyId, OperationId, Session, Timestamp, UsageRow, Vote};

/// Everything that the operations of a batch may read, deduplicated and sorted.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) keys: BTreeSet<i64>,
    pub(super) holds: BTreeSet<OperationId>,
    pub(super) entries: BTreeSet<OperationId>,
    /// Operations whose acts and refunds are read too: payments and key changes.
    pub(super) acts: BTreeSet<OperationId>,
    pub(super) references: BTreeSet<String>,
    pub(super) tokens: BTreeSet<[u8; 32]>,
    /// Whether to end holds of dead epochs.
    pub(super) dead: bool,
    /// Whether a standby must have flushed the batch before it is confirmed.
    pub(super) flushed: bool,
}

impl Wanted {
    pub(super) fn add(&mut self, operation: &Operation) {
        let needs = operation.needs();
        self.flushed |= must_be_flushed(operation);
        let of_holds = matches!(
            operation,
            Operation::Open(_)
                | Operation::Extend(_)
                | Operation::Finish(_)
                | Operation::Resolve(_)
                | Operation::Recover { .. }
        );
        self.keys.extend(needs.keys.iter().map(|key| key.to_i64()));
        self.holds
            .extend(needs.holds.iter().chain(&needs.operations));
        self.entries.extend(&needs.operations);
        if !of_holds {
            self.acts.extend(&needs.operations);
        }
        // No stored text contains U+0000, and no parameter can carry it.
        self.references.extend(
            needs
                .references
                .into_iter()
                .map(reference::folded)
                .filter(|folded| !folded.contains('\0')),
        );
        self.tokens.extend(needs.tokens.iter().map(|token| token.0));
        self.dead |= needs.holds_before_epoch.is_some();
    }
}

/// Whether a standby must have flushed this operation before it is confirmed, even with prompt durability.
fn must_be_flushed(operation: &Operation) -> bool {
    operation.class() == Class::Money || matches!(operation, Operation::OpenSession(_))
}

/// A locked key.
#[derive(Debug, Clone)]
pub(super) struct KeySlot {
    pub(super) stored: StoredKey,
    pub(super) traffic: Traffic,
    pub(super) is_new: bool,
    pub(super) account_changed: bool,
    pub(super) settings_changed: bool,
}

/// A row that may or may not exist, in memory and in the database.
#[derive(Debug, Clone)]
pub(super) struct Slot<T> {
    pub(super) now: Option<T>,
    pub(super) was_stored: bool,
    pub(super) changed: bool,
}

impl<T> Slot<T> {
    pub(super) const fn stored(value: T) -> Self {
        Self {
            now: Some(value),
            was_stored: true,
            changed: false,
        }
    }

    pub(super) const fn new(value: T) -> Self {
        Self {
            now: Some(value),
            was_stored: false,
            changed: true,
        }
    }
}

/// An hour of a key with a slug at a target.
pub(super) type UsagePlace = (i64, i64, String, String);

/// Everything the operations see during one transaction.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) ledger: [u8; 16],
    pub(super) epoch: i64,
    /// The database's clock, in microseconds since 1970.
    pub(super) now: i64,
    /// The last position handed out.
    pub(super) position: i64,
    pub(super) keys: BTreeMap<KeyId, KeySlot>,
    pub(super) holds: BTreeMap<OperationId, Slot<StoredHold>>,
    /// The subset of `holds` whose nodes are dead.
    pub(super) dead: BTreeSet<OperationId>,
    pub(super) entries: HashMap<OperationId, Entry>,
    pub(super) refunds: HashMap<OperationId, Vec<Amount>>,
    pub(super) references: HashMap<String, OperationId>,
    pub(super) acts: HashMap<OperationId, AuditRecord>,
    pub(super) sessions: BTreeMap<[u8; 32], Slot<Session>>,
    pub(super) links: BTreeMap<[u8; 32], Slot<(KeyId, Timestamp)>>,
    // --- only written ---
    pub(super) new_entries: Vec<ChainedEntry>,
    pub(super) new_acts: Vec<ChainedAct>,
    /// References taken by this batch, folded.
    pub(super) new_names: Vec<(String, OperationId)>,
    pub(super) usage: BTreeMap<UsagePlace, UsageRow>,
    pub(super) published: BTreeMap<String, Timestamp>,
    pub(super) votes: Votes,
    /// Keys whose stored sessions all end, and those whose links all end.
    pub(super) ended_sessions: BTreeSet<i64>,
    pub(super) ended_links: BTreeSet<i64>,
    pub(super) forget_links: Option<Timestamp>,
    pub(super) forget_sessions: Option<Timestamp>,
}

/// The votes of a batch, and the targets whose stored ones go.
#[derive(Debug, Default)]
pub(super) struct Votes {
    /// By target, question, day and key.
    pub(super) cast: BTreeMap<(String, i64, i64, i64), u64>,
    pub(super) forgotten: BTreeSet<String>,
}

impl Votes {
    pub(super) fn cast(&mut self, vote: &Vote) {
        let (day, key) = (vote.day, vote.key.to_i64());
        self.cast.insert(
            (vote.target.clone(), vote.question.code(), day, key),
            vote.value,
        );
    }

    pub(super) fn forget(&mut self, target: &str) {
        self.cast.retain(|(other, ..), _| other != target);
        self.forgotten.insert(target.to_owned());
    }
}

pub(super) type Answer<X> = Result<X, Fault<Infallible>>;

impl Batch {
    pub(super) const fn next_position(&self) -> i64 {
        self.position.saturating_add(1)
    }

    pub(super) fn slot(&mut self, key: KeyId) -> Option<&mut KeySlot> {
        self.keys.get_mut(&key)
    }

    /// Adds an ended request to its hour.
    pub(super) fn roll_up(&mut self, entry: &Entry) {
        let Some(bill) = &entry.bill else { return };
        for (target, row) in UsageRow::of(entry, bill) {
            let place = (
                entry.key.to_i64(),
                entry.at.hour(),
                bill.slug.clone(),
                target,
            );
            self.usage.entry(place).or_default().merge(&row);
        }
    }
}
