//! The one verifier: recomputes every balance, charge, hold and hash chain of a ledger, customer by customer, while gateways may be writing.
//!
//! It reads through [`LedgerReader`], which each store implements over its own rows, and decides by itself what follows from what. Chains
//! are walked from the newest row to the first, because entries of a file can only be reached from the ones after them. Faults are
//! reported in words, and nothing is repaired. What only one store has (sums over all keys, tables, triggers) its reader checks.

use std::collections::{BTreeMap, HashMap};

use super::anchor::{Anchor, Covered};
use super::chain::{self, ChainedAct, ChainedEntry};
use super::grant_check::GrantCheck;
use super::head::{Hash, NOTHING, StoredCustomer};
use super::history::ToldStates;
use super::hold_check::{capped, checkpoints};
pub(crate) use super::reader::{CustomerRows, HourlyUsage, LedgerIdentity, LedgerReader, ReadRow};
use super::statement::StatementWalk;
use crate::book::run::MonthsOfRuns;
use crate::rule::hold::StoredHold;
use crate::value::reference;
use crate::{
    Amount, CustomerId, EntryKind, JournalEntry, OperationId, PaymentStatus, PersonalData, Session,
    StatementMonth, UsageRow, VerifyReport,
};

/// Checks everything and compares it with what was recorded elsewhere.
pub(crate) async fn verify<R: LedgerReader>(
    reader: &mut R,
    anchors: &[Anchor],
) -> Result<VerifyReport, R::Error> {
    let identity = reader.identity().await?;
    let generation = identity.and_then(|identity| identity.generation);
    // One of a generation that the ledger has not reached is compared, too: it was set back.
    let counts = |anchor: &&Anchor| generation.is_none_or(|of| of <= anchor.generation());
    let anchors: Vec<Anchor> = anchors.iter().filter(counts).cloned().collect();
    let mut check = LedgerCheck {
        report: VerifyReport::default(),
        genesis: identity.map_or(NOTHING, |identity| identity.genesis),
        covered: Covered::by(&anchors),
        opened: 0,
    };
    if identity.is_none() {
        check.fault("the ledger has no identity".to_owned());
    }
    check.report.anchors = u64::try_from(anchors.len()).unwrap_or(u64::MAX);
    let mut after = -1;
    loop {
        let numbers = reader.customers(after).await?;
        let Some(last) = numbers.last() else { break };
        after = *last;
        for number in numbers {
            let checked = check.customer(reader, number).await;
            reader.end_customer().await?;
            checked?;
        }
        if !reader.is_wanted() {
            return Ok(check.report);
        }
    }
    let house = reader.house().await?;
    check.report.faults.extend(match house {
        Ok(book) => book.faults(check.genesis, &anchors),
        Err(why) => vec![why],
    });
    let rest = reader.rest(&anchors).await?;
    check.report.faults.extend(rest);
    // Last: what is left in `covered` by now was found nowhere.
    check.anchors(&anchors);
    Ok(check.report)
}

struct LedgerCheck {
    report: VerifyReport,
    genesis: Hash,
    /// The anchors' contents, minus what was found.
    covered: Covered,
    /// Holds ever opened.
    opened: i64,
}

/// The sums of a customer's entries, and what is left to be found.
#[derive(Default)]
struct CustomerHistory {
    credit: i128,
    spent: i128,
    charges: i64,
    hours: HourlyUsage,
    runs: MonthsOfRuns,
    /// Requests that were refunded after the entry that is looked at.
    refunds: HashMap<OperationId, i128>,
    references: BTreeMap<String, OperationId>,
    /// What was taken for payments that went back.
    reversed: i128,
    last_top_up: Option<Amount>,
    /// The monthly statements.
    months: StatementWalk,
    grants: GrantCheck,
}

impl LedgerCheck {
    fn fault(&mut self, fault: String) {
        self.report.faults.push(fault);
    }

    fn anchors(&mut self, anchors: &[Anchor]) {
        let opened = self.opened;
        for anchor in anchors.iter().filter(|anchor| anchor.opened() > opened) {
            self.report.faults.push(format!(
                "anchor of {}: more holds were opened than the ledger knows of",
                anchor.at()
            ));
        }
        self.report.faults.extend(self.covered.faults());
    }

    async fn customer<R: LedgerReader>(
        &mut self,
        reader: &mut R,
        number: i64,
    ) -> Result<(), R::Error> {
        self.report.customers = self.report.customers.saturating_add(1);
        let name = CustomerId::from_i64(number).map_or_else(
            || format!("customer number {number}"),
            |id| format!("customer {id}"),
        );
        let rows = match reader.customer(number).await? {
            Ok(rows) => rows,
            Err(why) => {
                self.fault(format!("{name}: {why}"));
                return Ok(());
            }
        };
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.report.keys = self.report.keys.saturating_add(count(rows.keys.len()));
        self.report.holds = self.report.holds.saturating_add(count(rows.holds.len()));
        let history = self.entries(reader, &name, &rows).await?;
        self.account(&name, &rows, &history);
        self.payments(&name, &rows, &history);
        self.holds(&name, &rows);
        self.counters(&name, &rows, &history);
        self.sessions(&name, &rows);
        self.personal(&name, &rows);
        let folded = history.references.keys().cloned().collect();
        let taken = reader.taken(&folded).await?;
        let free = |(folded, _): &(&String, &OperationId)| !taken.contains(*folded);
        for (_, operation) in history.references.iter().filter(free) {
            self.fault(format!(
                "{name}: the reference of operation {operation} could be used again"
            ));
        }
        let mut grants = history.grants;
        self.acts(reader, &name, &rows, &mut grants).await?;
        self.report.faults.extend(grants.faults(&name, &rows));
        Ok(())
    }

    // --- entries ---

    /// Walks a customer's entries from the newest to the first.
    async fn entries<R: LedgerReader>(
        &mut self,
        reader: &mut R,
        name: &str,
        rows: &CustomerRows,
    ) -> Result<CustomerHistory, R::Error> {
        let (mut history, head) = (CustomerHistory::default(), &rows.stored.head);
        let last_at = rows.stored.last_at();
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
                let unsound = history.months.older(entry);
                self.statement(name, unsound);
                self.report.entries = self.report.entries.saturating_add(1);
                let place = (entry.seq, entry.position, chained.hash, Some(entry.at));
                match &later {
                    Some(later) => self.entry_follows(name, later, Some(&chained)),
                    None if (head.seq, head.last, head.hash, last_at) == place => {}
                    None => self.fault(format!(
                        "{name}: its newest entry is not the one that its account names"
                    )),
                }
                let uncovered =
                    self.covered
                        .entry(rows.stored.customer.id, entry.seq, &chained.hash);
                self.report.faults.extend(uncovered);
                let place = format!("{name}: entry {}", entry.position);
                self.entry(&place, entry, rows, &mut history);
                later = Some(chained);
            }
        }
        let unsound = history.months.end();
        self.statement(name, unsound);
        match &later {
            Some(first) => self.entry_follows(name, first, None),
            None if (head.seq, head.last, head.hash, last_at) == (0, 0, NOTHING, None) => {}
            None => self.fault(format!(
                "{name}: its newest entry is not the one that its account names"
            )),
        }
        Ok(history)
    }

    fn statement(&mut self, name: &str, unsound: Option<StatementMonth>) {
        if let Some(month) = unsound {
            self.fault(format!("{name}: its statement of {month} does not add up"));
        }
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
        if chain::entry_hash(*format, &previous, position, entry) != Some(*hash) {
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
        rows: &CustomerRows,
        history: &mut CustomerHistory,
    ) {
        if entry.customer != rows.stored.customer.id {
            self.fault(format!("{place}: belongs to customer {}", entry.customer));
        }
        if let Some(key) = entry.key.filter(|key| rows.key(*key).is_none()) {
            self.fault(format!("{place}: names key {key}, which is none of its"));
        }
        if let Some(why) = history.grants.entry(entry) {
            self.fault(format!("{place}: {why}"));
        }
        let amount = i128::from(entry.amount.picos());
        if entry.kind.changes_credit() {
            history.credit = history.credit.saturating_add(amount);
        } else {
            history.spent = history.spent.saturating_sub(amount);
        }
        if entry.kind == EntryKind::TopUp {
            history.last_top_up.get_or_insert(entry.amount);
        }
        if entry.kind == EntryKind::Reversal {
            history.reversed = history.reversed.saturating_sub(amount);
        }
        if let Some(reference) = &entry.reference {
            let folded = reference::folded(reference);
            history.references.insert(folded, entry.operation);
        }
        if let (EntryKind::Refund, Some(request)) = (entry.kind, entry.refunds) {
            let sum = history.refunds.entry(request).or_default();
            *sum = sum.saturating_add(amount);
        }
        if let (Some(bill), Some(key)) = (&entry.bill, entry.key) {
            history.charges = history.charges.saturating_add(1);
            history.runs.add(entry);
            // Only compared where the store keeps it by key.
            for (target, served, row) in UsageRow::of(entry, bill).filter(|_| rows.usage.is_some())
            {
                let place = (
                    key,
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

    fn charge(&mut self, place: &str, entry: &JournalEntry, rows: &CustomerRows, refunded: i128) {
        let amount = i128::from(entry.amount.picos());
        let (Some(bill), Some(_)) = (&entry.bill, entry.key) else {
            return self.fault(format!("{place}: a charge without a bill or a key"));
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

    fn account(&mut self, name: &str, rows: &CustomerRows, history: &CustomerHistory) {
        let (stored, runs) = (&rows.stored, &rows.runs);
        let account = &stored.customer.account;
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
        if let Some(month) = history.runs.other_than(runs) {
            self.fault(format!(
                "{name}: the runs of {month} do not follow from its entries"
            ));
        }
        let last = history.last_top_up.unwrap_or_default();
        if stored.watch.last_top_up != last {
            self.fault(format!("{name}: its last top-up was {last}"));
        }
        for request in history.refunds.keys() {
            self.fault(format!(
                "{name}: request {request} was refunded without a charge"
            ));
        }
    }

    /// Whether claim and entries follow from what went back of the customer's payments.
    fn payments(&mut self, name: &str, rows: &CustomerRows, history: &CustomerHistory) {
        let customer = &rows.stored.customer;
        let mut due = 0_i128;
        for payment in &rows.payments {
            due = due.saturating_add(payment.taken().picos().into());
            let plan = payment.plan.as_ref();
            let is_sound = plan.is_none_or(|plan| plan.reversed() == payment.due());
            let folded = reference::folded(&payment.reference);
            let is_booked = payment.status == PaymentStatus::Booked;
            if !is_sound || history.references.contains_key(&folded) != is_booked {
                self.fault(format!(
                    "{name}: payment {:?}: whether it is booked, or how much of it, does not follow from its entries",
                    payment.reference
                ));
            }
        }
        let claim = customer.claim;
        if due != history.reversed.saturating_add(claim.picos().into()) {
            self.fault(format!(
                "{name}: a claim of {claim} does not follow from what went back of its payments"
            ));
        }
        if claim.is_positive() && customer.grants.paid_free(customer.account).is_positive() {
            self.fault(format!("{name}: its claim could have been paid"));
        }
    }

    fn holds(&mut self, name: &str, rows: &CustomerRows) {
        let customer = &rows.stored.customer;
        let held = customer.account.held;
        if Amount::checked_sum(rows.holds.iter().map(|hold| hold.open.amount)) != Some(held) {
            self.fault(format!("{name}: its holds do not add up to {held} held"));
        }
        let all: Vec<_> = rows.holds.iter().collect();
        self.report
            .faults
            .extend(capped(name, &customer.caps, &all));
        for (key, _) in &rows.keys {
            let counts = |hold: &&StoredHold| {
                let of = rows.key(hold.open.key);
                hold.open.key == key.id || of.is_some_and(|of| of.counts_in == Some(key.id))
            };
            let holds: Vec<_> = rows.holds.iter().filter(counts).collect();
            let name = format!("{name}: key {}", key.id);
            self.report.faults.extend(capped(&name, &key.caps, &holds));
        }
        for StoredHold { open, .. } in &rows.holds {
            if rows.key(open.key).is_none() {
                let request = open.request;
                self.fault(format!("{name}: hold {request}: its key is none of its"));
            }
        }
        self.report.faults.extend(checkpoints(name, &rows.holds));
    }

    /// Counters and hours, where the store keeps them by customer and key.
    fn counters(&mut self, name: &str, rows: &CustomerRows, history: &CustomerHistory) {
        let open = i64::try_from(rows.holds.len()).unwrap_or(i64::MAX);
        let opened = rows.stored.opened;
        self.opened = self.opened.saturating_add(opened);
        if opened != history.charges.saturating_add(open) {
            self.fault(format!(
                "{name}: a hold that was opened is neither open nor has it ended in a charge"
            ));
        }
        if let Some(traffic) = rows.traffic
            && traffic.running != open
        {
            self.fault(format!(
                "{name}: {open} holds are open, and {} count towards its limit",
                traffic.running
            ));
        }
        for (key, traffic) in &rows.keys {
            let open = i64::try_from(rows.holds_of(key.id).count()).unwrap_or(i64::MAX);
            if traffic.is_some_and(|traffic| traffic.running != open) {
                self.fault(format!(
                    "{name}: key {}: {open} holds are open, and another number counts towards its limit",
                    key.id
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

    fn sessions(&mut self, name: &str, rows: &CustomerRows) {
        let is_stopped = |session: &Session| {
            rows.key(session.key)
                .is_none_or(|key| key.check_looks().is_err())
        };
        if rows.sessions.iter().any(is_stopped) {
            self.fault(format!("{name}: a key has sessions although it is stopped"));
        }
        if rows
            .sessions
            .iter()
            .any(|session| session.expires <= session.at)
        {
            self.fault(format!("{name}: a session ends before it began"));
        }
    }

    fn personal(&mut self, name: &str, rows: &CustomerRows) {
        let hash = rows.personal.as_ref().map(PersonalData::hash);
        if hash != rows.stored.customer.personal {
            self.fault(format!(
                "{name}: its personal data is not what its last description or erasure left"
            ));
        }
    }

    // --- acts ---

    /// Walks a customer's acts from the newest to the first. Each of its keys' links was created by one of them, and so was each key.
    async fn acts<R: LedgerReader>(
        &mut self,
        reader: &mut R,
        name: &str,
        rows: &CustomerRows,
        grants: &mut GrantCheck,
    ) -> Result<(), R::Error> {
        let mut told = ToldStates::of(rows);
        let mut later: Option<ChainedAct> = None;
        loop {
            let page = reader.acts(&rows.stored, later.as_ref()).await?;
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
                match &later {
                    Some(later) => self.act_follows(name, later, Some(&act)),
                    None => self.newest_act(name, &rows.stored, &act),
                }
                if act.record.record.customer != rows.stored.customer.id {
                    self.fault(format!(
                        "{name}: an act of customer {} is among its own",
                        act.record.record.customer
                    ));
                }
                let owner = rows.stored.customer.id;
                let uncovered = self.covered.act(owner, act.record.seq, &act.hash);
                self.report.faults.extend(uncovered);
                self.report.faults.extend(told.by(name, rows, &act.record));
                grants.act(&act.record.record);
                later = Some(act);
            }
        }
        match &later {
            Some(first) => self.act_follows(name, first, None),
            None => self.fault(format!("{name}: its audit does not begin at its creation")),
        }
        self.report.faults.extend(told.faults(name, rows));
        Ok(())
    }

    fn newest_act(&mut self, name: &str, stored: &StoredCustomer, act: &ChainedAct) {
        let head = &stored.audit;
        let place = (act.record.seq, act.record.record.position, act.hash);
        if (head.seq, head.last, head.hash) != place {
            self.fault(format!(
                "{name}: its newest act is not the one that it names"
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
        let computed = chain::act_hash(later.format, &previous, position, &later.record);
        if computed != Some(later.hash) || later.record.seq != seq.saturating_add(1) {
            self.fault(format!(
                "{place}: its hash does not follow from its content and the act before"
            ));
        }
        if position >= record.position {
            self.fault(format!("{place}: is before the act that it follows"));
        }
    }
}
