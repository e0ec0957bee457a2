//! Recomputes everything, key by key, each in one short snapshot while gateways keep writing.
//!
//! Entries and acts are walked in the order of their numbers, hash by hash; accounts, rollups, references and holds must follow
//! from them. Rows that belong to no key are checked last. Anchors of the ledger's generation must be covered.

mod guards;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::link::Link;
use super::rows::{
    self, Columns, SELECT_ACT, SELECT_ENTRY, SELECT_HOLD, SELECT_KEY, SELECT_SESSION,
};
use super::trouble::Trouble;
use crate::book::anchor::{Anchor, Covered};
use crate::book::audit;
use crate::book::chain::{self, ChainedAct, ChainedEntry};
use crate::book::head::{Hash, NOTHING, StoredKey};
use crate::store::rows::{Columns as _, Malformed};
use crate::value::reference;
use crate::{Amount, Bill, EntryKind, KeyId, OperationId, SecretHash, UsageRow, VerifyReport};

/// Keys whose numbers are read at a time.
const PAGE: i64 = 1_000;
/// Entries read at a time.
const ENTRIES: i64 = 2_000;

/// Checks everything; faults are in words.
pub(super) async fn verify(link: &Link, anchors: &[Anchor]) -> Result<VerifyReport, Trouble> {
    let mut check = Check {
        report: VerifyReport::default(),
        genesis: None,
        covered: Covered::default(),
        opened: 0,
    };
    let generation = check.identity(link).await?;
    let anchors: Vec<Anchor> = anchors
        .iter()
        .filter(|anchor| anchor.generation() == generation)
        .cloned()
        .collect();
    check.covered = Covered::by(&anchors);
    check.report.anchors = u64::try_from(anchors.len()).unwrap_or(u64::MAX);
    let mut after = -1_i64;
    loop {
        let sql = "SELECT id FROM (SELECT id FROM keys UNION SELECT id FROM accounts) i WHERE id > $1 ORDER BY id LIMIT $2";
        let rows = link.query(sql, &[&after, &PAGE]).await?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            after = Columns::of(row).take()?;
            link.client
                .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                .await?;
            let checked = check.key(link, after).await;
            link.client.batch_execute("ROLLBACK").await?;
            checked?;
        }
    }
    for anchor in anchors
        .iter()
        .filter(|anchor| anchor.opened() > check.opened)
    {
        check.report.faults.push(format!(
            "anchor of {}: more holds were opened than the ledger knows of",
            anchor.at()
        ));
    }
    check.report.faults.extend(check.covered.faults());
    check.strays(link).await?;
    check.guards(link).await?;
    Ok(check.report)
}

struct Check {
    report: VerifyReport,
    genesis: Option<Hash>,
    /// The anchors' contents, minus what was found.
    covered: Covered,
    /// Holds ever opened.
    opened: i64,
}

/// The sums of a key's entries.
#[derive(Default)]
struct History {
    credit: i128,
    spent: i128,
    charges: i64,
    last: Option<ChainedEntry>,
    prev: i64,
    hours: BTreeMap<(i64, String, String), UsageRow>,
    refunds: HashMap<OperationId, i128>,
    charged: HashMap<OperationId, i128>,
    named: Vec<(String, OperationId)>,
}

impl Check {
    fn fault(&mut self, fault: String) {
        self.report.faults.push(fault);
    }

    /// Turns a malformed row into a fault; a connection failure ends the check.
    fn readable<T>(&mut self, place: &str, read: Result<T, Malformed>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(why) => {
                self.fault(format!("{place}: {why}"));
                None
            }
        }
    }

    /// The ledger's generation.
    async fn identity(&mut self, link: &Link) -> Result<i64, Trouble> {
        let rows = link
            .query("SELECT ledger, generation FROM identity WHERE id = 1", &[])
            .await?;
        let read = rows.first().and_then(|row| {
            let mut columns = Columns::of(row);
            Some((columns.operation().ok()?, columns.take().ok()?))
        });
        let Some((ledger, generation)) = read else {
            self.fault("the ledger has no identity".to_owned());
            return Ok(0);
        };
        self.genesis = Some(chain::genesis(&ledger.to_bytes()));
        Ok(generation)
    }

    async fn key(&mut self, link: &Link, number: i64) -> Result<(), Trouble> {
        self.report.keys = self.report.keys.saturating_add(1);
        let Some(id) = KeyId::from_i64(number) else {
            self.fault(format!("key number {number}: is not a key's id"));
            return Ok(());
        };
        let name = format!("key {id}");
        let rows = link
            .query(&format!("{SELECT_KEY} WHERE k.id = $1"), &[&number])
            .await?;
        let Some(row) = rows.first() else {
            self.fault(format!(
                "{name}: has no account, or an account without a key"
            ));
            return Ok(());
        };
        let Some((stored, traffic)) = self.readable(&name, rows::stored_key(row)) else {
            return Ok(());
        };
        let history = self.walk(link, &name, &stored).await?;
        self.account(&name, &stored, &history);
        let holds = self.holds(link, &name, &stored, &history).await?;
        self.opened = self.opened.saturating_add(traffic.opened);
        if traffic.opened != history.charges.saturating_add(holds) {
            self.fault(format!(
                "{name}: a hold that was opened is neither open nor has it ended in a charge"
            ));
        }
        if traffic.running != holds {
            self.fault(format!(
                "{name}: {holds} holds are open, and {} count towards its limit",
                traffic.running
            ));
        }
        self.rollups(link, &name, number, &history).await?;
        self.references(link, &name, &history).await?;
        let (sessions, links) = self.access(link, &name, number).await?;
        if sessions && stored.key.check_not_stopped().is_err() {
            self.fault(format!("{name}: has sessions although it is stopped"));
        }
        self.walk_audit(link, &name, &stored, links).await
    }

    async fn walk(
        &mut self,
        link: &Link,
        name: &str,
        stored: &StoredKey,
    ) -> Result<History, Trouble> {
        let mut history = History::default();
        let mut seq = 0_i64;
        let mut before = NOTHING;
        let sql = format!("{SELECT_ENTRY} WHERE e.key = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3");
        let number = stored.key.id.to_i64();
        let mut after = i64::MIN;
        loop {
            let rows = link.query(&sql, &[&number, &after, &ENTRIES]).await?;
            for row in &rows {
                after = row.try_get(1).map_err(|error| Trouble::from(&error))?;
                seq = seq.saturating_add(1);
                let place = format!("{name}: entry {after}");
                let Some(entry) = self.readable(&place, rows::stored_entry(row)) else {
                    continue;
                };
                if after != seq {
                    self.fault(format!(
                        "{place}: its number does not follow the one before"
                    ));
                    seq = after;
                }
                let fault = self.covered.entry(stored.key.id, after, &entry.hash);
                self.report.faults.extend(fault);
                before = self.entry(&place, &before, &mut history, entry);
            }
            if rows.len() < usize::try_from(ENTRIES).unwrap_or(usize::MAX) {
                break;
            }
        }
        self.report.entries = self
            .report
            .entries
            .saturating_add(u64::try_from(seq).unwrap_or_default());
        let head = &stored.head;
        let expected = history.last.as_ref().map_or((0, 0, NOTHING, None), |last| {
            (
                last.entry.seq,
                last.entry.position,
                last.hash,
                Some(last.entry.at),
            )
        });
        if (head.seq, head.last, head.hash, head.last_at) != expected {
            self.fault(format!(
                "{name}: its newest entry is not the one that its account names"
            ));
        }
        Ok(history)
    }

    /// Places ascend, and dates do unless a clock ran ahead.
    fn follows(&mut self, place: &str, stored: &ChainedEntry, last: &ChainedEntry) {
        let (at, before) = (stored.entry.at, last.entry.at);
        if stored.entry.position <= last.entry.position {
            self.fault(format!("{place}: is before the entry that it follows"));
        }
        if stored.format > 1 && at < before {
            self.report.notes.push(format!(
                "{place}: the entry before it was dated {before} by a clock that ran ahead; this one is of {at}"
            ));
        }
    }

    fn entry(
        &mut self,
        place: &str,
        before: &Hash,
        history: &mut History,
        stored: ChainedEntry,
    ) -> Hash {
        let entry = &stored.entry;
        let first = history.last.is_none();
        let hash = if stored.format == 1 {
            chain::entry_hash_1(before, history.prev, entry)
        } else {
            let before = if first {
                self.genesis.unwrap_or(NOTHING)
            } else {
                *before
            };
            chain::entry_hash(&before, entry)
        };
        if hash != stored.hash || !(1..=chain::FORMAT).contains(&stored.format) {
            self.fault(format!(
                "{place}: its hash does not follow from its content and the entry before"
            ));
        }
        let amount = i128::from(entry.amount.picos());
        match entry.kind {
            EntryKind::TopUp | EntryKind::Adjust => {
                history.credit = history.credit.saturating_add(amount)
            }
            EntryKind::Charge | EntryKind::Refund => {
                history.spent = history.spent.saturating_sub(amount)
            }
        }
        if history.credit.saturating_sub(history.spent) != i128::from(entry.balance_after.picos()) {
            self.fault(format!("{place}: its balance does not follow"));
        }
        // The first format let a clock that was set back show.
        if let Some(last) = &history.last {
            self.follows(place, &stored, last);
        }
        if let Some(bill) = &entry.bill {
            self.bill(place, amount, bill);
            history.charges = history.charges.saturating_add(1);
            history
                .charged
                .insert(entry.operation, amount.saturating_neg());
            for (target, row) in UsageRow::of(entry, bill) {
                let place = (entry.at.hour(), bill.slug.clone(), target);
                history.hours.entry(place).or_default().merge(&row);
            }
        }
        if let Some(request) = entry.refunds {
            let sum = history.refunds.entry(request).or_default();
            *sum = sum.saturating_add(amount);
        }
        if let Some(spelled) = &entry.reference {
            history
                .named
                .push((reference::folded(spelled), entry.operation));
        }
        history.prev = entry.position;
        let hash = stored.hash;
        history.last = Some(stored);
        hash
    }

    fn bill(&mut self, place: &str, amount: i128, bill: &Bill) {
        let cost = bill.total().map(|cost| i128::from(cost.picos()));
        let charged = amount
            .saturating_neg()
            .saturating_add(i128::from(bill.loss.picos()));
        if cost != Ok(charged) {
            self.fault(format!(
                "{place}: charge and loss are not what its lines cost"
            ));
        }
    }

    fn account(&mut self, name: &str, stored: &StoredKey, history: &History) {
        let account = &stored.key.account;
        if !account.is_sound() {
            self.fault(format!("{name}: spent and held are more than its credit"));
        }
        let sums = (
            i128::from(account.credit.picos()),
            i128::from(account.spent.picos()),
        );
        if sums != (history.credit, history.spent) {
            self.fault(format!(
                "{name}: credit and spent do not follow from its entries"
            ));
        }
        for (request, refunded) in &history.refunds {
            if history
                .charged
                .get(request)
                .is_none_or(|charged| refunded > charged)
            {
                self.fault(format!(
                    "{name}: request {request} was refunded beyond its charge"
                ));
            }
        }
    }

    /// How many are open.
    async fn holds(
        &mut self,
        link: &Link,
        name: &str,
        stored: &StoredKey,
        history: &History,
    ) -> Result<i64, Trouble> {
        let rows = link
            .query(
                &format!("{SELECT_HOLD} WHERE key = $1"),
                &[&stored.key.id.to_i64()],
            )
            .await?;
        let mut held = Some(Amount::ZERO);
        for row in &rows {
            let Some(hold) = self.readable(&format!("{name}: a hold"), rows::stored_hold(row))
            else {
                continue;
            };
            let place = format!("{name}: hold {}", hold.open.request);
            held = held.and_then(|sum| sum.checked_add(hold.open.amount));
            let cost = hold
                .checkpoint
                .as_ref()
                .map_or(Ok(Amount::ZERO), Bill::total);
            let grown = hold.open.amount < hold.opened
                || (hold.checkpoint.is_none() && hold.open.amount != hold.opened);
            if cost != Ok(hold.open.used) || grown {
                self.fault(format!("{place}: does not follow from its checkpoint"));
            }
            if history.charged.contains_key(&hold.open.request) {
                self.fault(format!(
                    "{place}: is open although it has ended in a charge"
                ));
            }
        }
        if held != Some(stored.key.account.held) {
            self.fault(format!(
                "{name}: its holds do not add up to {} held",
                stored.key.account.held
            ));
        }
        let open = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        self.report.holds = self.report.holds.saturating_add(open.unsigned_abs());
        Ok(open)
    }

    async fn rollups(
        &mut self,
        link: &Link,
        name: &str,
        number: i64,
        history: &History,
    ) -> Result<(), Trouble> {
        let sql = "SELECT hour, slug, target, requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, \
             images, charge, loss, exposure, cost FROM usage WHERE key = $1";
        let mut found = BTreeMap::new();
        for row in &link.query(sql, &[&number]).await? {
            let mut columns = Columns::of(row);
            let read = (|| {
                let place = (columns.take()?, columns.take()?, columns.take()?);
                Ok((place, columns.rollup()?))
            })();
            if let Some((place, row)) = self.readable(&format!("{name}: usage"), read) {
                found.insert(place, row);
            }
        }
        if found != history.hours {
            self.fault(format!(
                "{name}: its usage by the hour does not follow from its entries"
            ));
        }
        Ok(())
    }

    /// Each reference is registered, and its owner is an entry with the same reference: this one, or an older twin.
    async fn references(
        &mut self,
        link: &Link,
        name: &str,
        history: &History,
    ) -> Result<(), Trouble> {
        let folded: Vec<&str> = history
            .named
            .iter()
            .map(|(folded, _)| folded.as_str())
            .collect();
        let sql = "SELECT r.folded, e.reference FROM refs r JOIN entries e ON e.operation = r.operation WHERE r.folded = ANY ($1::text[])";
        let mut taken: HashSet<String> = HashSet::new();
        for row in &link.query(sql, &[&folded]).await? {
            let mut columns = Columns::of(row);
            let (folded, owner): (String, Option<&str>) = (columns.take()?, columns.take()?);
            if owner.map(reference::folded).as_ref() == Some(&folded) {
                taken.insert(folded);
            }
        }
        for (folded, operation) in &history.named {
            if !taken.contains(folded) {
                self.fault(format!(
                    "{name}: the reference of operation {operation} could be used again"
                ));
            }
        }
        Ok(())
    }

    /// Whether there are sessions, and the links with their expiry.
    async fn access(
        &mut self,
        link: &Link,
        name: &str,
        number: i64,
    ) -> Result<(bool, Vec<(SecretHash, i64)>), Trouble> {
        let rows = link
            .query(&format!("{SELECT_SESSION} WHERE key = $1"), &[&number])
            .await?;
        for row in &rows {
            let Some(session) = self.readable(&format!("{name}: a session"), rows::session(row))
            else {
                continue;
            };
            if session.expires <= session.at {
                self.fault(format!("{name}: a session ends before it began"));
            }
        }
        let mut links = Vec::new();
        for row in &link
            .query(
                "SELECT token, expires FROM links WHERE key = $1",
                &[&number],
            )
            .await?
        {
            let mut columns = Columns::of(row);
            if let Some(token) = self.readable(&format!("{name}: a sign-in link"), columns.secret())
            {
                links.push((token, columns.take()?));
            }
        }
        Ok((!rows.is_empty(), links))
    }

    async fn walk_audit(
        &mut self,
        link: &Link,
        name: &str,
        stored: &StoredKey,
        mut links: Vec<(SecretHash, i64)>,
    ) -> Result<(), Trouble> {
        let rows = link
            .query(
                &format!("{SELECT_ACT} WHERE key = $1 ORDER BY seq"),
                &[&stored.key.id.to_i64()],
            )
            .await?;
        let mut last: Option<ChainedAct> = None;
        for (row, seq) in rows.iter().zip(1_i64..) {
            let place = format!("{name}: administrative act {seq}");
            let Some(act) = self.readable(&place, rows::stored_act(row)) else {
                continue;
            };
            let hash = match (&last, act.format) {
                (_, 1) => {
                    let (before, prev) = last.as_ref().map_or((NOTHING, 0), |last| {
                        (last.hash, last.record.record.position)
                    });
                    chain::act_hash_1(&before, prev, &act.record)
                }
                (None, _) => chain::act_hash(&self.genesis.unwrap_or(NOTHING), &act.record),
                (Some(last), _) => chain::act_hash(&last.hash, &act.record),
            };
            let fault = self.covered.act(stored.key.id, act.record.seq, &act.hash);
            self.report.faults.extend(fault);
            if hash != act.hash
                || act.record.seq != seq
                || !(1..=chain::FORMAT).contains(&act.format)
            {
                self.fault(format!(
                    "{place}: its hash does not follow from its content and the act before"
                ));
            }
            if last
                .as_ref()
                .is_some_and(|last| act.record.record.position <= last.record.record.position)
            {
                self.fault(format!("{place}: is before the act that it follows"));
            }
            if act.record.record.act == "link" {
                let made = |(token, expires): &(SecretHash, i64)| {
                    audit::link_details(token, crate::Timestamp::from_millis(*expires))
                        == act.record.record.details
                };
                links.retain(|link| !made(link));
            }
            last = Some(act);
        }
        let head = &stored.audit;
        let expected = last.as_ref().map_or((0, 0, NOTHING), |last| {
            (last.record.seq, last.record.record.position, last.hash)
        });
        if (head.seq, head.last, head.hash) != expected {
            self.fault(format!(
                "{name}: its newest act is not the one that it names"
            ));
        }
        match &last {
            Some(last) if last.record.state == audit::state(&stored.key) => {}
            _ => self.fault(format!(
                "{name}: differs from the state after its last administrative act"
            )),
        }
        if !links.is_empty() {
            self.fault(format!(
                "{name}: has a sign-in link without an audit record"
            ));
        }
        Ok(())
    }

    /// Rows without an owner.
    async fn strays(&mut self, link: &Link) -> Result<(), Trouble> {
        for (what, sql) in [
            (
                "hold",
                "SELECT count(*) FROM holds WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "session",
                "SELECT count(*) FROM sessions WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "sign-in link",
                "SELECT count(*) FROM links WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "entry",
                "SELECT count(*) FROM entries WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "act",
                "SELECT count(*) FROM audit WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "usage row",
                "SELECT count(*) FROM usage WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "reference",
                "SELECT count(*) FROM refs r WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.operation = r.operation)",
            ),
            (
                "hold of no gateway",
                "SELECT count(*) FROM holds WHERE epoch <> 0 AND epoch NOT IN (SELECT epoch FROM nodes)",
            ),
        ] {
            let rows = link.query(sql, &[]).await?;
            let count: i64 = rows
                .first()
                .map(|row| Columns::of(row).take())
                .transpose()?
                .unwrap_or_default();
            if count > 0 {
                self.fault(format!("{count} × a {what} that belongs to nothing"));
            }
        }
        Ok(())
    }
}
