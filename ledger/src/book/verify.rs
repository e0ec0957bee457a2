//! The one verifier: recomputes every balance, charge, hold and hash chain of a ledger, key by key, while gateways may be writing.
//!
//! It reads through [`LedgerReader`], which each store implements over its own rows, and decides by itself what follows from what. Chains
//! are walked from the newest row to the first, because entries of a file can only be reached from the ones after them. Faults are
//! reported in words, and nothing is repaired. What only one store has (sums over all keys, tables, triggers) its reader checks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::anchor::{Anchor, Covered};
use super::audit;
use super::chain::{self, ChainedAct, ChainedEntry};
use super::head::{Hash, NOTHING, StoredKey};
use crate::rule::hold::StoredHold;
use crate::rule::limit::KeyTraffic;
use crate::value::reference;
use crate::{
    Amount, Bill, EntryKind, JournalEntry, KeyId, OperationId, SecretHash, Served, Session,
    Timestamp, UsageRow, VerifyReport,
};

/// A row, or why it cannot be read.
pub(crate) type ReadRow<T> = Result<T, String>;

/// A key's usage by hour, slug, target and what it served.
pub(crate) type HourlyUsage = BTreeMap<(i64, String, String, Served), UsageRow>;

/// What a ledger is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LedgerIdentity {
    /// The value with which the chains of format 2 begin.
    pub(crate) genesis: Hash,
    /// The generation whose anchors count; `None` if all do.
    pub(crate) generation: Option<i64>,
}

/// A key's rows besides its history, as of one instant.
pub(crate) struct KeyRows {
    pub(crate) stored: StoredKey,
    pub(crate) holds: Vec<StoredHold>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) links: Vec<(SecretHash, Timestamp)>,
    /// Its traffic, where the store counts it by key.
    pub(crate) traffic: Option<KeyTraffic>,
    /// Its usage, where the store keeps it by key.
    pub(crate) usage: Option<HourlyUsage>,
}

/// How the verifier reads a ledger. An error of the store ends the check; a row that cannot be read is a fault.
pub(crate) trait LedgerReader {
    type Error;

    /// Whether anybody still waits for the result.
    fn is_wanted(&self) -> bool {
        true
    }
    async fn identity(&mut self) -> Result<Option<LedgerIdentity>, Self::Error>;
    /// The numbers of some keys after this one, ascending; none at the end.
    async fn keys(&mut self, after: i64) -> Result<Vec<i64>, Self::Error>;
    /// One key.
    async fn key(&mut self, number: i64) -> Result<ReadRow<KeyRows>, Self::Error>;
    /// Some of a key's entries before this one, or its newest ones; none at the end.
    async fn entries(
        &mut self,
        key: &StoredKey,
        before: Option<&ChainedEntry>,
    ) -> Result<Vec<ReadRow<ChainedEntry>>, Self::Error>;
    /// Some of a key's acts before this one, or its newest ones; none at the end.
    async fn acts(
        &mut self,
        key: &StoredKey,
        before: Option<&ChainedAct>,
    ) -> Result<Vec<ReadRow<ChainedAct>>, Self::Error>;
    /// Those of these folded references that are registered for an entry with the same reference.
    async fn taken(&mut self, folded: &BTreeSet<String>) -> Result<BTreeSet<String>, Self::Error>;
    /// Ends the instant in which a key was read.
    async fn end_key(&mut self) -> Result<(), Self::Error>;
    /// The faults of everything that belongs to no key.
    async fn rest(&mut self, anchors: &[Anchor]) -> Result<Vec<String>, Self::Error>;
}

/// Checks everything and compares it with what was recorded elsewhere.
pub(crate) async fn verify<R: LedgerReader>(
    reader: &mut R,
    anchors: &[Anchor],
) -> Result<VerifyReport, R::Error> {
    let identity = reader.identity().await?;
    let generation = identity.and_then(|identity| identity.generation);
    let counts = |anchor: &&Anchor| generation.is_none_or(|of| of == anchor.generation());
    let anchors: Vec<Anchor> = anchors.iter().filter(counts).cloned().collect();
    let mut check = LedgerCheck {
        report: VerifyReport::default(),
        genesis: identity.map_or(NOTHING, |identity| identity.genesis),
        covered: Covered::by(&anchors),
        opened: None,
    };
    if identity.is_none() {
        check.fault("the ledger has no identity".to_owned());
    }
    check.report.anchors = u64::try_from(anchors.len()).unwrap_or(u64::MAX);
    let mut after = -1;
    loop {
        let numbers = reader.keys(after).await?;
        let Some(last) = numbers.last() else { break };
        after = *last;
        for number in numbers {
            let checked = check.key(reader, number).await;
            reader.end_key().await?;
            checked?;
        }
        if !reader.is_wanted() {
            return Ok(check.report);
        }
    }
    let rest = reader.rest(&anchors).await?;
    check.report.faults.extend(rest);
    check.anchors(&anchors);
    Ok(check.report)
}

struct LedgerCheck {
    report: VerifyReport,
    genesis: Hash,
    /// The anchors' contents, minus what was found.
    covered: Covered,
    /// Holds ever opened, where the store counts them by key.
    opened: Option<i64>,
}

/// The sums of a key's entries, and what is left to be found.
#[derive(Default)]
struct KeyHistory {
    credit: i128,
    spent: i128,
    charges: i64,
    hours: HourlyUsage,
    /// Requests that were refunded after the entry that is looked at.
    refunds: HashMap<OperationId, i128>,
    references: BTreeMap<String, OperationId>,
}

impl LedgerCheck {
    fn fault(&mut self, fault: String) {
        self.report.faults.push(fault);
    }

    fn anchors(&mut self, anchors: &[Anchor]) {
        let opened = self.opened;
        for anchor in anchors
            .iter()
            .filter(|anchor| opened.is_some_and(|opened| anchor.opened() > opened))
        {
            self.report.faults.push(format!(
                "anchor of {}: more holds were opened than the ledger knows of",
                anchor.at()
            ));
        }
        self.report.faults.extend(self.covered.faults());
    }

    async fn key<R: LedgerReader>(&mut self, reader: &mut R, number: i64) -> Result<(), R::Error> {
        self.report.keys = self.report.keys.saturating_add(1);
        let name = KeyId::from_i64(number)
            .map_or_else(|| format!("key number {number}"), |id| format!("key {id}"));
        let rows = match reader.key(number).await? {
            Ok(rows) => rows,
            Err(why) => {
                self.fault(format!("{name}: {why}"));
                return Ok(());
            }
        };
        let holds = u64::try_from(rows.holds.len()).unwrap_or(u64::MAX);
        self.report.holds = self.report.holds.saturating_add(holds);
        let history = self.entries(reader, &name, &rows).await?;
        self.account(&name, &rows.stored, &history);
        self.holds(&name, &rows);
        self.counters(&name, &rows, &history);
        self.sessions(&name, &rows);
        let folded = history.references.keys().cloned().collect();
        let taken = reader.taken(&folded).await?;
        for operation in history
            .references
            .iter()
            .filter(|(folded, _)| !taken.contains(*folded))
            .map(|(_, operation)| operation)
        {
            self.fault(format!(
                "{name}: the reference of operation {operation} could be used again"
            ));
        }
        self.acts(reader, &name, &rows).await
    }

    // --- entries ---

    /// Walks a key's entries from the newest to the first.
    async fn entries<R: LedgerReader>(
        &mut self,
        reader: &mut R,
        name: &str,
        rows: &KeyRows,
    ) -> Result<KeyHistory, R::Error> {
        let (mut history, head) = (KeyHistory::default(), &rows.stored.head);
        let mut later: Option<ChainedEntry> = None;
        loop {
            let page = reader.entries(&rows.stored, later.as_ref()).await?;
            if page.is_empty() {
                break;
            }
            for found in page {
                let chained = match found {
                    Ok(chained) => chained,
                    Err(why) => {
                        self.fault(format!("{name}: {why}"));
                        return Ok(history);
                    }
                };
                let entry = &chained.entry;
                self.report.entries = self.report.entries.saturating_add(1);
                let place = (entry.seq, entry.position, chained.hash, Some(entry.at));
                match &later {
                    Some(later) => self.entry_follows(name, later, Some(&chained)),
                    None if (head.seq, head.last, head.hash, head.last_at) == place => {}
                    None => self.fault(format!(
                        "{name}: its newest entry is not the one that its account names"
                    )),
                }
                let uncovered = self
                    .covered
                    .entry(rows.stored.key.id, entry.seq, &chained.hash);
                self.report.faults.extend(uncovered);
                self.entry(
                    &format!("{name}: entry {}", entry.position),
                    entry,
                    rows,
                    &mut history,
                );
                later = Some(chained);
            }
        }
        match &later {
            Some(first) => self.entry_follows(name, first, None),
            None if (head.seq, head.last, head.hash, head.last_at) == (0, 0, NOTHING, None) => {}
            None => self.fault(format!(
                "{name}: its newest entry is not the one that its account names"
            )),
        }
        Ok(history)
    }

    /// Whether an entry can stand behind the one before it, or at the beginning.
    fn entry_follows(&mut self, name: &str, later: &ChainedEntry, before: Option<&ChainedEntry>) {
        let ChainedEntry {
            entry,
            format,
            hash,
            ..
        } = later;
        let place = format!("{name}: entry {}", entry.position);
        let (previous, position) = match before {
            Some(before) => (before.hash, before.entry.position),
            None => (self.beginning(*format), 0),
        };
        let computed = match format {
            1 => chain::entry_hash_1(&previous, position, entry),
            _ => chain::entry_hash(&previous, entry),
        };
        if computed != *hash || !(1..=chain::FORMAT).contains(format) {
            self.fault(format!(
                "{place}: its hash does not follow from its content and the entry before"
            ));
        }
        let (seq, balance) = before.map_or((0, Amount::ZERO), |before| {
            (before.entry.seq, before.entry.balance_after)
        });
        if entry.seq != seq.saturating_add(1)
            || balance.checked_add(entry.amount) != Some(entry.balance_after)
        {
            self.fault(format!(
                "{place}: number or balance do not follow from the entry before"
            ));
        }
        if position >= entry.position {
            self.fault(format!("{place}: is before the entry that it follows"));
        }
        // The first format let a clock that was set back show.
        if let Some(before) = before.filter(|before| *format > 1 && before.entry.at > entry.at) {
            self.report.notes.push(format!(
                "{name}: entry {}: dated {} by a clock that ran ahead; the entry after it is of {}",
                before.entry.position, before.entry.at, entry.at
            ));
        }
    }

    /// The value with which a chain begins.
    const fn beginning(&self, format: i64) -> Hash {
        if format == 1 { NOTHING } else { self.genesis }
    }

    /// Checks of a single entry, and what it adds to the sums.
    fn entry(
        &mut self,
        place: &str,
        entry: &JournalEntry,
        rows: &KeyRows,
        history: &mut KeyHistory,
    ) {
        if entry.key != rows.stored.key.id {
            self.fault(format!("{place}: belongs to key {}", entry.key));
        }
        let amount = i128::from(entry.amount.picos());
        match entry.kind {
            EntryKind::TopUp | EntryKind::Adjust => {
                history.credit = history.credit.saturating_add(amount);
            }
            EntryKind::Charge | EntryKind::Refund => {
                history.spent = history.spent.saturating_sub(amount);
            }
        }
        if let Some(reference) = &entry.reference {
            let folded = reference::folded(reference);
            history.references.insert(folded, entry.operation);
        }
        if let (EntryKind::Refund, Some(request)) = (entry.kind, entry.refunds) {
            let sum = history.refunds.entry(request).or_default();
            *sum = sum.saturating_add(amount);
        }
        if let Some(bill) = &entry.bill {
            history.charges = history.charges.saturating_add(1);
            // Only compared where the store keeps it by key.
            for (target, served, row) in UsageRow::of(entry, bill).filter(|_| rows.usage.is_some())
            {
                let place = (
                    entry.at.hour(),
                    bill.slug.clone(),
                    target.to_owned(),
                    served.clone(),
                );
                history.hours.entry(place).or_default().merge(&row);
            }
        }
        if entry.kind == EntryKind::Charge {
            let refunded = history.refunds.remove(&entry.operation).unwrap_or_default();
            self.charge(place, entry, rows, refunded);
        }
    }

    fn charge(&mut self, place: &str, entry: &JournalEntry, rows: &KeyRows, refunded: i128) {
        let amount = i128::from(entry.amount.picos());
        let Some(bill) = &entry.bill else {
            return self.fault(format!("{place}: a charge without a bill"));
        };
        let cost = bill.total().map(|cost| i128::from(cost.picos()));
        if amount > 0 || cost != Ok(i128::from(bill.loss.picos()).saturating_sub(amount)) {
            self.fault(format!(
                "{place}: charge and loss are not what its lines cost"
            ));
        }
        if refunded > amount.saturating_neg() {
            self.fault(format!("{place}: more was refunded than charged"));
        }
        if rows
            .holds
            .iter()
            .any(|hold| hold.open.request == entry.operation)
        {
            self.fault(format!("{place}: its hold is open although it has ended"));
        }
    }

    // --- what follows from the entries ---

    fn account(&mut self, name: &str, stored: &StoredKey, history: &KeyHistory) {
        let account = &stored.key.account;
        if !account.is_sound() {
            self.fault(format!("{name}: spent and held are more than its credit"));
        }
        for (what, found, sum) in [
            ("credit", account.credit, history.credit),
            ("spent", account.spent, history.spent),
        ] {
            if i128::from(found.picos()) != sum {
                self.fault(format!(
                    "{name}: {what} {found} does not follow from its entries"
                ));
            }
        }
        for request in history.refunds.keys() {
            self.fault(format!(
                "{name}: request {request} was refunded without a charge"
            ));
        }
    }

    fn holds(&mut self, name: &str, KeyRows { stored, holds, .. }: &KeyRows) {
        let held = stored.key.account.held;
        if Amount::checked_sum(holds.iter().map(|hold| hold.open.amount)) != Some(held) {
            self.fault(format!("{name}: its holds do not add up to {held} held"));
        }
        for (counted, window) in stored.key.caps.windows() {
            let counts = |hold: &&StoredHold| counted.counts_in(window, &hold.open.slug, hold.day);
            let of_window = holds.iter().filter(counts).map(|hold| hold.open.amount);
            if Amount::checked_sum(of_window) != Some(window.held) {
                let (cap, held) = (&counted.cap, window.held);
                self.fault(format!(
                    "{name}: its holds do not add up to {held} held under its cap of {cap}"
                ));
            }
        }
        for StoredHold {
            open,
            opened,
            checkpoint,
            ..
        } in holds
        {
            let cost = checkpoint.as_ref().map_or(Ok(Amount::ZERO), Bill::total);
            if cost != Ok(open.used)
                || open.amount < *opened
                || (checkpoint.is_none() && open.amount != *opened)
            {
                self.fault(format!(
                    "{name}: hold {}: does not follow from its checkpoint",
                    open.request
                ));
            }
        }
    }

    /// Counters and hours, where the store keeps them by key.
    fn counters(&mut self, name: &str, rows: &KeyRows, history: &KeyHistory) {
        let open = i64::try_from(rows.holds.len()).unwrap_or(i64::MAX);
        if let Some(traffic) = rows.traffic {
            let opened = self.opened.unwrap_or_default();
            self.opened = Some(opened.saturating_add(traffic.opened));
            if traffic.opened != history.charges.saturating_add(open) {
                self.fault(format!(
                    "{name}: a hold that was opened is neither open nor has it ended in a charge"
                ));
            }
            if traffic.running != open {
                self.fault(format!(
                    "{name}: {open} holds are open, and {} count towards its limit",
                    traffic.running
                ));
            }
        }
        if rows
            .usage
            .as_ref()
            .is_some_and(|usage| *usage != history.hours)
        {
            self.fault(format!(
                "{name}: its usage by the hour does not follow from its entries"
            ));
        }
    }

    fn sessions(&mut self, name: &str, rows: &KeyRows) {
        if !rows.sessions.is_empty() && rows.stored.key.check_not_stopped().is_err() {
            self.fault(format!("{name}: has sessions although it is stopped"));
        }
        if rows
            .sessions
            .iter()
            .any(|session| session.expires <= session.at)
        {
            self.fault(format!("{name}: a session ends before it began"));
        }
    }

    // --- acts ---

    /// Walks a key's acts from the newest to the first. Each of the key's links was created by one of them.
    async fn acts<R: LedgerReader>(
        &mut self,
        reader: &mut R,
        name: &str,
        rows: &KeyRows,
    ) -> Result<(), R::Error> {
        let (stored, mut links) = (&rows.stored, rows.links.clone());
        let mut later: Option<ChainedAct> = None;
        loop {
            let page = reader.acts(stored, later.as_ref()).await?;
            if page.is_empty() {
                break;
            }
            for found in page {
                let act = match found {
                    Ok(act) => act,
                    Err(why) => {
                        self.fault(format!("{name}: {why}"));
                        return Ok(());
                    }
                };
                let record = &act.record.record;
                match &later {
                    Some(later) => self.act_follows(name, later, Some(&act)),
                    None => self.newest_act(name, stored, &act),
                }
                if record.key != stored.key.id {
                    self.fault(format!(
                        "{name}: an act of key {} is among its own",
                        record.key
                    ));
                }
                let uncovered = self.covered.act(stored.key.id, act.record.seq, &act.hash);
                self.report.faults.extend(uncovered);
                if record.act == "link" {
                    links.retain(|(token, expires)| {
                        audit::link_details(token, *expires) != record.details
                    });
                }
                later = Some(act);
            }
        }
        match &later {
            Some(first) => self.act_follows(name, first, None),
            None => self.fault(format!("{name}: its audit does not begin at its creation")),
        }
        if !links.is_empty() {
            self.fault(format!(
                "{name}: has a sign-in link without an audit record"
            ));
        }
        Ok(())
    }

    fn newest_act(&mut self, name: &str, stored: &StoredKey, act: &ChainedAct) {
        let head = &stored.audit;
        let place = (act.record.seq, act.record.record.position, act.hash);
        if (head.seq, head.last, head.hash) != place {
            self.fault(format!(
                "{name}: its newest act is not the one that it names"
            ));
        }
        if act.record.state != audit::state(&stored.key) {
            self.fault(format!(
                "{name}: settings, status or secret were changed without an audit record"
            ));
        }
    }

    fn act_follows(&mut self, name: &str, later: &ChainedAct, before: Option<&ChainedAct>) {
        let record = &later.record.record;
        let place = format!("{name}: administrative act {}", record.position);
        let (previous, position, seq) = match before {
            Some(before) => (
                before.hash,
                before.record.record.position,
                before.record.seq,
            ),
            None => (self.beginning(later.format), 0, 0),
        };
        let computed = match later.format {
            1 => chain::act_hash_1(&previous, position, &later.record),
            _ => chain::act_hash(&previous, &later.record),
        };
        if computed != later.hash
            || later.record.seq != seq.saturating_add(1)
            || !(1..=chain::FORMAT).contains(&later.format)
        {
            self.fault(format!(
                "{place}: its hash does not follow from its content and the act before"
            ));
        }
        if position >= record.position {
            self.fault(format!("{place}: is before the act that it follows"));
        }
    }
}
