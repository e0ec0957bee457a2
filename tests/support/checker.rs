//! The outside checker: compares the journal with what customers were told and what the upstream really produced.
//!
//! It believes nothing that the gateway reports about itself. It reads the ledger's file with its own handle, adds up every
//! picodollar, and compares each charge with the upstream's record of the same request.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Amount, CustomerId, Durability, EntryKind, EntryQuery, Evidence, JournalEntry, KeyId, Ledger,
    OpenMode, OperationId,
};

use super::load::{LARGEST, Mark, Told, true_cost};
use super::upstream::Seen;

/// A payment, and whether it was confirmed to the payer.
#[derive(Debug, Clone)]
pub(crate) struct Payment {
    pub(crate) key: KeyId,
    pub(crate) amount: Amount,
    pub(crate) reference: String,
    pub(crate) acknowledged: bool,
}

/// What is known outside the gateway.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(crate) told: Vec<Told>,
    pub(crate) payments: Vec<Payment>,
}

/// How much was checked, to be printed by a passing test.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Judged {
    pub(crate) charges: usize,
    pub(crate) recovered: usize,
    pub(crate) acknowledged: usize,
}

/// A ledger for reading only.
pub(crate) fn reading(ledger: &Path) -> SqliteLedger {
    SqliteLedger::open(ledger, OpenMode::ReadOnly, Durability::Prompt).unwrap()
}

/// Checks a ledger on which no request runs.
pub(crate) async fn judge(path: &Path, outside: &Outside, seen: &[Seen]) -> Judged {
    judge_ledger(&reading(path), outside, seen).await
}

/// Checks a ledger that is already open, on which no request runs.
pub(crate) async fn judge_ledger(ledger: &dyn Ledger, outside: &Outside, seen: &[Seen]) -> Judged {
    let report = ledger.verify().await.unwrap();
    assert!(report.faults.is_empty(), "{:#?}", report.faults);
    assert_eq!(
        ledger.open_holds(None, 10).await.unwrap(),
        [],
        "no hold is open"
    );
    let entries = ledger.entries(EntryQuery::default()).await.unwrap();
    sums(ledger, &entries).await;
    payments(&entries, &outside.payments);
    let charges: HashMap<OperationId, &JournalEntry> = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Charge)
        .map(|entry| (entry.operation, entry))
        .collect();
    let made = made(seen);
    let acknowledged = acknowledged(&charges, &outside.told, &made);
    never_above_the_truth(&charges, &outside.told, &made);
    billed_is_accounted_for(&charges, &outside.told, &made);
    let is_recovered =
        |entry: &&&JournalEntry| entry.bill.as_ref().unwrap().evidence == Some(Evidence::Recovered);
    Judged {
        charges: charges.len(),
        recovered: charges.values().filter(is_recovered).count(),
        acknowledged,
    }
}

/// Every picodollar of every key is explained by its entries, and every charge by its lines.
async fn sums(ledger: &dyn Ledger, entries: &[JournalEntry]) {
    let mut balances: BTreeMap<KeyId, i128> = BTreeMap::new();
    let mut operations = HashSet::new();
    for entry in entries {
        assert!(
            operations.insert(entry.operation),
            "one entry for one operation: {entry:?}"
        );
        let balance = balances.entry(entry.customer.first_key()).or_default();
        *balance += i128::from(entry.amount.picos());
        assert_eq!(
            *balance,
            i128::from(entry.balance_after.picos()),
            "{entry:?}"
        );
        assert!(*balance >= 0, "never debt: {entry:?}");
        if let Some(bill) = &entry.bill {
            let lines: i128 = bill
                .lines
                .iter()
                .map(|line| i128::from(line.count) * i128::from(line.rate.picos()))
                .sum();
            assert_eq!(
                lines,
                i128::from(bill.loss.picos()) - i128::from(entry.amount.picos()),
                "{entry:?}"
            );
        }
    }
    for (key, balance) in balances {
        let account = ledger
            .find_key(key)
            .await
            .unwrap()
            .unwrap()
            .customer
            .account;
        assert!(account.is_sound(), "{account:?}");
        assert_eq!(
            (i128::from(account.balance().picos()), account.held),
            (balance, Amount::ZERO),
            "{key}"
        );
    }
}

/// An acknowledged payment is there once; another one at most once.
fn payments(entries: &[JournalEntry], payments: &[Payment]) {
    for payment in payments {
        let found: Vec<&JournalEntry> = entries
            .iter()
            .filter(|entry| entry.reference.as_deref() == Some(payment.reference.as_str()))
            .collect();
        assert!(
            found.len() <= 1,
            "{payment:?} is there {} times",
            found.len()
        );
        match found.first() {
            Some(entry) => assert_eq!(
                (entry.customer, entry.amount),
                (CustomerId::made_for(payment.key), payment.amount),
                "{payment:?}"
            ),
            None => assert!(
                !payment.acknowledged,
                "{payment:?} was acknowledged and is lost"
            ),
        }
    }
}

/// What the upstream produced for each mark.
fn made(seen: &[Seen]) -> HashMap<u64, i64> {
    let mut made: HashMap<u64, i64> = HashMap::new();
    for seen in seen {
        let Some(mark) = Mark::of(seen) else { continue };
        assert!(
            made.insert(mark.number, true_cost(seen)).is_none(),
            "request {} was dispatched twice",
            mark.number
        );
    }
    made
}

/// Every answer that a customer read to its end is in the journal, with the cost the customer saw and what the upstream produced.
fn acknowledged(
    charges: &HashMap<OperationId, &JournalEntry>,
    told: &[Told],
    made: &HashMap<u64, i64>,
) -> usize {
    let mut count = 0;
    for told in told
        .iter()
        .filter(|told| told.cost.is_some() || told.complete)
    {
        let request = told.request.expect("every answer has its request's id");
        let entry = charges
            .get(&request)
            .unwrap_or_else(|| panic!("an acknowledged charge is lost: {told:?}"));
        let charge = -entry.amount.picos();
        if let Some(cost) = told.cost {
            assert_eq!(charge, cost.picos(), "{told:?}");
        }
        if let Some(made) = made.get(&told.number).filter(|_| told.status == 200) {
            let bill = entry.bill.as_ref().unwrap();
            if bill.evidence == Some(Evidence::Provider) {
                assert_eq!(
                    charge + bill.loss.picos(),
                    *made,
                    "charge and loss are what was made: {told:?} {entry:?}"
                );
            }
        }
        count += 1;
    }
    count
}

/// No charge is above what the upstream made for that request. A customer who never saw an answer's head knows no request id:
/// those charges of a key must fit the requests of that key that are left over.
fn never_above_the_truth(
    charges: &HashMap<OperationId, &JournalEntry>,
    told: &[Told],
    made: &HashMap<u64, i64>,
) {
    let cost = |told: &Told| made.get(&told.number).copied().unwrap_or(0);
    let known: HashMap<OperationId, &Told> = told
        .iter()
        .filter_map(|told| Some((told.request?, told)))
        .collect();
    let mut unknown: HashMap<KeyId, (Vec<i64>, Vec<i64>)> = HashMap::new();
    for (request, entry) in charges {
        let charge = -entry.amount.picos();
        match known.get(request) {
            Some(told) => assert!(
                charge <= cost(told),
                "charged {charge} for {}: {told:?} {entry:?}",
                cost(told)
            ),
            None => unknown
                .entry(entry.customer.first_key())
                .or_default()
                .0
                .push(charge),
        }
    }
    for told in told.iter().filter(|told| told.request.is_none()) {
        unknown.entry(told.key).or_default().1.push(cost(told));
    }
    for (key, (mut charges, mut costs)) in unknown {
        charges.sort_unstable_by(|one, other| other.cmp(one));
        costs.sort_unstable_by(|one, other| other.cmp(one));
        costs.resize(costs.len().max(charges.len()), 0);
        for (charge, cost) in charges.iter().zip(&costs) {
            assert!(
                charge <= cost,
                "{key}: charges {charges:?} do not fit what was made, {costs:?}"
            );
        }
    }
}

/// What the upstream bills for a key is in the key's entries: charged, a loss, or known as exposure. Nobody knows what lay unread
/// in a connection that ended early, and this upstream writes faster than any model: P10's tenth, and one request, are for that.
fn billed_is_accounted_for(
    charges: &HashMap<OperationId, &JournalEntry>,
    told: &[Told],
    made: &HashMap<u64, i64>,
) {
    let mut keys: BTreeMap<KeyId, (i64, i64)> = BTreeMap::new();
    for told in told {
        let billed = made.get(&told.number).copied().unwrap_or(0);
        keys.entry(told.key).or_default().0 += billed;
        let known = told
            .request
            .is_none_or(|request| charges.contains_key(&request));
        assert!(
            billed == 0 || known,
            "the upstream bills {billed}, and there is no entry: {told:?}"
        );
    }
    for entry in charges.values() {
        let bill = entry.bill.as_ref().unwrap();
        keys.entry(entry.customer.first_key()).or_default().1 +=
            bill.loss.picos() + bill.exposure.picos() - entry.amount.picos();
    }
    for (key, (billed, accounted)) in keys {
        let unread = billed / 10 + LARGEST;
        assert!(
            billed <= accounted + unread,
            "{key}: the upstream bills {billed}, charge, loss and exposure are {accounted}"
        );
    }
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
