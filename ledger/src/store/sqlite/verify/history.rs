//! Walks a key's chains, from the newest row to the first: entries and administrative acts.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Result};

use super::Check;
use crate::book::audit;
use crate::book::chain::{self, ChainedAct, ChainedEntry};
use crate::book::head::{Hash, NOTHING, StoredKey};
use crate::store::sqlite::reads::{act_at, entry_at};
use crate::value::reference;
use crate::{Amount, Entry, EntryKind, OperationId, SecretHash, Timestamp};

/// The sums of one key's history.
#[derive(Default)]
pub(super) struct History {
    pub(super) credit: i128,
    pub(super) spent: i128,
    pub(super) refunds: HashMap<OperationId, i128>,
}

impl Check<'_> {
    /// Walks a key's entries from the newest to the first.
    pub(super) fn walk(&mut self, name: &str, stored: &StoredKey) -> Result<History> {
        let mut history = History::default();
        let (mut position, mut expected) = (stored.head.last, stored.head.hash);
        let (mut seq, mut balance) = (stored.head.seq, stored.key.account.balance());
        // The entry after the current one.
        let mut later: Option<(i64, Timestamp)> = None;
        while position > 0 {
            let place = format!("{name}: entry {position}");
            let read = entry_at(self.conn, position);
            let Some(found) = self.readable(&place, read)? else {
                return Ok(history);
            };
            let Some(ChainedEntry {
                entry,
                prev,
                format,
                hash,
            }) = found
            else {
                self.fault(format!("{place}: missing"));
                return Ok(history);
            };
            self.report.entries = self.report.entries.saturating_add(1);
            self.entries.mark(position);
            let before =
                self.hash_before("SELECT hash FROM entries WHERE position = ?1", prev, format)?;
            let computed = match format {
                1 => chain::entry_hash_1(&before, prev, &entry),
                _ => chain::entry_hash(&before, &entry),
            };
            if hash != expected || computed != hash || !(1..=chain::FORMAT).contains(&format) {
                self.fault(format!(
                    "{place}: its hash does not match its content or the chain"
                ));
            }
            if entry.key != stored.key.id || entry.seq != seq || entry.balance_after != balance {
                self.fault(format!(
                    "{place}: key, sequence or balance do not follow from the entry after it"
                ));
            }
            self.follows(&place, (&entry, format), later, stored);
            if let Some(fault) = self.covered.entry(entry.key, entry.seq, &hash) {
                self.fault(fault);
            }
            self.reference(&place, &entry)?;
            self.entry(&place, &entry, &mut history);
            if position <= self.journal.covered {
                self.journal.add(&entry);
            }
            if prev >= position {
                self.fault(format!("{place}: points forward"));
                return Ok(history);
            }
            balance = Amount::from_picos(balance.picos().saturating_sub(entry.amount.picos()));
            later = Some((format, entry.at));
            (position, expected, seq) = (prev, before, seq.saturating_sub(1));
        }
        let untouched = later.is_some() || (expected == NOTHING && stored.head.last_at.is_none());
        if seq != 0 || balance != Amount::ZERO || !untouched {
            self.fault(format!(
                "{name}: its history does not begin at its first entry"
            ));
        }
        Ok(history)
    }

    /// Whether an entry can stand before `later`, the format and time of the one after it. Entries of the first format had no such rule.
    fn follows(
        &mut self,
        place: &str,
        (entry, format): (&Entry, i64),
        later: Option<(i64, Timestamp)>,
        stored: &StoredKey,
    ) {
        match later {
            None if stored.head.last_at != Some(entry.at) => {
                self.fault(format!("{place}: not last used when its account says"));
            }
            Some((1, _)) | None => {}
            Some((_, at)) if entry.at > at => self.report.notes.push(format!(
                "{place}: dated {} by a clock that ran ahead; the entry after it is of {at}",
                entry.at
            )),
            Some((after, _)) if after < format => self.fault(format!(
                "{place}: of a later format than the entry after it"
            )),
            Some(_) => {}
        }
    }

    /// The hash of the previous row, or the value with which the chain begins.
    fn hash_before(&self, sql: &str, prev: i64, format: i64) -> Result<Hash> {
        if prev == 0 {
            return Ok(if format == 1 {
                NOTHING
            } else {
                self.genesis.unwrap_or(NOTHING)
            });
        }
        // A hash of another length matches nothing, as it should.
        let found = self
            .conn
            .prepare_cached(sql)?
            .query_row([prev], |row| row.get::<_, Vec<u8>>(0))
            .optional()?;
        Ok(found
            .and_then(|hash| hash.try_into().ok())
            .unwrap_or(NOTHING))
    }

    /// Checks of a single entry.
    fn entry(&mut self, place: &str, entry: &Entry, history: &mut History) {
        let amount = i128::from(entry.amount.picos());
        match entry.kind {
            EntryKind::TopUp | EntryKind::Adjust => {
                history.credit = history.credit.saturating_add(amount)
            }
            EntryKind::Charge | EntryKind::Refund => {
                history.spent = history.spent.saturating_sub(amount)
            }
        }
        if let (EntryKind::Refund, Some(request)) = (entry.kind, entry.refunds) {
            let sum = history.refunds.entry(request).or_default();
            *sum = sum.saturating_add(amount);
        }
        if entry.kind != EntryKind::Charge {
            return;
        }
        let refunded = history.refunds.remove(&entry.operation).unwrap_or_default();
        let Some(bill) = &entry.bill else {
            return self.fault(format!("{place}: a charge without a bill"));
        };
        let cost = bill.total().map(|cost| i128::from(cost.picos()));
        if amount > 0 || cost != Ok(i128::from(bill.loss.picos()).saturating_sub(amount)) {
            self.fault(format!(
                "{place}: charge and loss are not the sum of its lines"
            ));
        }
        if refunded > amount.saturating_neg() {
            self.fault(format!("{place}: more was refunded than charged"));
        }
    }

    /// A reference is registered, and its owner is an entry with the same reference: this one, or an older twin.
    fn reference(&mut self, place: &str, entry: &Entry) -> Result<()> {
        let Some(folded) = entry.reference.as_deref().map(reference::folded) else {
            return Ok(());
        };
        let mut statement = self
            .conn
            .prepare_cached("SELECT e.reference FROM refs r JOIN entries e ON e.operation = r.operation WHERE r.folded = ?1")?;
        let owner = statement
            .query_row([&folded], |row| row.get::<_, Option<String>>(0))
            .optional();
        let owner = self.readable(place, owner)?.flatten().flatten();
        if owner.as_deref().map(reference::folded) != Some(folded) {
            self.fault(format!("{place}: its reference could be used again"));
        }
        Ok(())
    }

    /// Walks a key's acts from the newest to the first. Each of the key's links was created by one of them.
    pub(super) fn walk_audit(
        &mut self,
        name: &str,
        stored: &StoredKey,
        mut links: Vec<(SecretHash, Timestamp)>,
    ) -> Result<()> {
        let (mut position, mut expected) = (stored.audit.last, stored.audit.hash);
        let mut seq = stored.audit.seq;
        let mut newest = true;
        while position > 0 {
            let place = format!("{name}: audit record {position}");
            let read = act_at(self.conn, position);
            let Some(found) = self.readable(&place, read)? else {
                return Ok(());
            };
            let Some(ChainedAct {
                record: act,
                prev,
                format,
                hash,
            }) = found
            else {
                self.fault(format!("{place}: missing"));
                return Ok(());
            };
            self.audits.mark(position);
            let before =
                self.hash_before("SELECT hash FROM audit WHERE position = ?1", prev, format)?;
            let computed = match format {
                1 => chain::act_hash_1(&before, prev, &act),
                _ => chain::act_hash(&before, &act),
            };
            let in_place = act.record.key == stored.key.id
                && act.seq == seq
                && (1..=chain::FORMAT).contains(&format);
            if hash != expected || computed != hash || !in_place {
                self.fault(format!(
                    "{place}: its hash does not match its content or the chain"
                ));
            }
            if newest && act.state != audit::state(&stored.key) {
                self.fault(format!(
                    "{name}: settings, status or secret were changed without an audit record"
                ));
            }
            if let Some(fault) = self.covered.act(act.record.key, act.seq, &hash) {
                self.fault(fault);
            }
            if act.record.act == "link" {
                links.retain(|(token, expires)| {
                    audit::link_details(token, *expires) != act.record.details
                });
            }
            if prev >= position {
                self.fault(format!("{place}: points forward"));
                return Ok(());
            }
            newest = false;
            (position, expected, seq) = (prev, before, seq.saturating_sub(1));
        }
        if newest || seq != 0 {
            self.fault(format!("{name}: its audit does not begin at its creation"));
        }
        if !links.is_empty() {
            self.fault(format!(
                "{name}: has a sign-in link without an audit record"
            ));
        }
        Ok(())
    }
}
