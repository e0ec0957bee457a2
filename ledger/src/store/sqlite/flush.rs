//! Writes what operations have changed: one statement for each row, and none for a row that came and went within the batch.
//!
//! An UPDATE or DELETE names the values that it replaces, so a row that differs from what was fetched fails the batch instead of
//! being overwritten.

use rusqlite::{Result, params};

use super::batch::{Batch, BatchTables, Changed};
use super::key_cache::CacheChange;
use super::statements::Sql;
use crate::batch::changes::{Changes, UsagePlace};
use crate::batch::rows::{CachedRow, CustomerRow, KeyRow, Rows};
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::StoredCustomer;
use crate::book::run::RunPlace;
use crate::rule::hold::StoredHold;
use crate::rule::payment::PaymentAddressee;
use crate::store::codes;
use crate::store::rows::number;
use crate::table::columns::StoredAlone;
use crate::table::description::{DescribedRow, RowChange, written};
use crate::{Account, Amount, Bill, OperationId, RunSum, Session, UsageKind, UsageRow};

impl Batch<'_> {
    /// Writes all changes since the last flush.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.rows.is_unchanged() {
            self.rows.written();
            return Ok(());
        }
        let written = self.tables.write(&self.rows);
        self.rows.written();
        written
    }
}

impl BatchTables<'_> {
    fn write(&mut self, rows: &Rows) -> Result<()> {
        let changes = &rows.changes;
        for row in rows.changed_customers() {
            self.customer(row)?;
        }
        for row in rows.changed_keys() {
            self.key(row)?;
        }
        self.all_personal(changes)?;
        for (request, row) in rows.changed_holds() {
            self.hold(*request, row)?;
        }
        for chained in rows.new_entries() {
            self.entry(chained)?;
        }
        for (folded, operation) in &changes.names {
            let register = self.statements.get(Sql::InsertReference)?;
            register.execute(params![folded, operation])?;
        }
        for act in rows.new_acts() {
            self.act(act)?;
        }
        for (place, row) in &changes.usage {
            self.usage(place, row)?;
        }
        for (place, (requests, charge)) in &changes.runs {
            let RunPlace {
                customer,
                month,
                run,
                key,
            } = place;
            let values = params![
                customer,
                month,
                run,
                key,
                number(*requests),
                charge,
                RunSum::MOST_NAMES
            ];
            self.statements.get(Sql::AddToRun)?.execute(values)?;
        }
        if let Some(began) = changes.epoch {
            self.statements.get(Sql::InsertEpoch)?.execute(began)?;
            self.mark(Changed::Anything);
        }
        self.events(rows)?;
        self.deliveries(changes)?;
        if let Some(forgotten) = changes.forget_answers {
            let forget = self.statements.get(Sql::ForgetAnswers)?;
            forget.execute([forgotten])?;
        }
        self.ended_access(changes)?;
        rows.tables.each(self)?;
        for (id, grant) in &changes.grants {
            self.owned(id, grant, RowChange::Update)?;
            self.mark(Changed::Rows);
        }
        self.crowded(changes)?;
        self.of_no_key(changes)
    }

    fn key(&mut self, row: &KeyRow) -> Result<()> {
        let key = &row.key;
        if !row.is_stored {
            self.sums.totals.keys = self.sums.totals.keys.saturating_add(1);
            self.mark(Changed::Anything);
            return self.owned(&key.id, key, RowChange::Insert);
        }
        if row.settings_changed {
            self.owned(&key.id, key, RowChange::Update)?;
        }
        if row.counts_changed {
            let values = params![key.id, key.caps.value()];
            self.statements.get(Sql::SetKeyCaps)?.execute(values)?;
            self.mark(Changed::Rows);
        }
        if row.settings_changed {
            self.note(CacheChange::Act);
        }
        self.note(CacheChange::Key(key.id));
        Ok(())
    }

    /// Writes a key or customer: all of a new one, or what is set.
    fn owned<T: DescribedRow>(&mut self, id: &T::Key, row: &T, change: RowChange) -> Result<()> {
        self.write_row::<T>(change, &written(id, Some(row), change))
    }

    fn customer(&mut self, row: &CustomerRow) -> Result<()> {
        let StoredCustomer {
            customer, audit, ..
        } = &row.stored;
        let Some((before, seq)) = row.before else {
            self.owned(&customer.id, &row.stored, RowChange::Insert)?;
            self.mark(Changed::Rows);
            return Ok(());
        };
        if row.settings_changed {
            self.owned(&customer.id, &row.stored, RowChange::Update)?;
            self.note(CacheChange::Act);
            self.note(CacheChange::Customer(customer.id));
        }
        if row.caps_changed {
            let values = params![customer.id, customer.caps.value()];
            self.statements.get(Sql::SetCustomerCaps)?.execute(values)?;
            self.mark(Changed::Rows);
            self.note(CacheChange::Customer(customer.id));
        }
        if row.auto_top_up_changed {
            let auto = customer.auto_top_up.as_ref().map(StoredAlone::value);
            let values = params![customer.id, auto];
            self.statements.get(Sql::SetAutoTopUp)?.execute(values)?;
            self.note(CacheChange::Customer(customer.id));
        }
        if row.next_grant_changed {
            let values = params![customer.id, customer.grants.next_at()];
            self.statements.get(Sql::SetNextGrant)?.execute(values)?;
        }
        if row.watch_changed {
            let watch = row.stored.watch;
            let values = params![customer.id, watch.seq, watch.last_top_up, watch.told.code()];
            self.statements.get(Sql::SetWatch)?.execute(values)?;
        }
        if row.audit_changed {
            let values = params![customer.id, audit.last, audit.hash, audit.seq];
            self.statements.get(Sql::MoveAudit)?.execute(values)?;
        }
        if !row.account_changed {
            return Ok(());
        }
        let moved = self.account(row, before, seq)?;
        self.note(moved);
        self.mark(Changed::Rows);
        Ok(())
    }

    /// Moves the account of a customer, from what the database has of it.
    fn account(&mut self, row: &CustomerRow, before: Account, seq: i64) -> Result<CacheChange> {
        let StoredCustomer {
            customer,
            head,
            opened,
            ..
        } = &row.stored;
        let account = customer.account;
        // What else is known of the customer has changed then.
        let grants_changed = row.next_grant_changed || !customer.grants.is_empty();
        Ok(if head.seq == seq && !row.claim_changed {
            let values = params![
                customer.id,
                account.held,
                opened,
                before.credit,
                before.spent,
                before.held
            ];
            one(self.statements.get(Sql::SetHeld)?.execute(values)?)?;
            if grants_changed {
                CacheChange::Customer(customer.id)
            } else {
                CacheChange::Held(customer.id, account)
            }
        } else {
            one(self.statements.get(Sql::MoveAccount)?.execute(params![
                customer.id,
                account.credit,
                account.spent,
                account.held,
                head.seq,
                head.last,
                customer.last_entry_at,
                head.hash,
                customer.claim,
                opened,
                before.held,
                seq,
            ])?)?;
            if row.claim_changed || grants_changed {
                CacheChange::Customer(customer.id)
            } else {
                CacheChange::Entered(customer.id, account, customer.last_entry_at)
            }
        })
    }

    /// Everything about persons. What is erased or replaced is overwritten, and so is what its pages held when they were divided.
    fn all_personal(&mut self, changes: &Changes) -> Result<()> {
        if changes.personal.is_empty() && changes.addressees.is_empty() {
            return Ok(());
        }
        self.statements.overwrite_deleted(true)?;
        let written = self.personal(changes);
        self.statements.overwrite_deleted(false)?;
        self.mark(Changed::Anything);
        written
    }

    fn personal(&mut self, changes: &Changes) -> Result<()> {
        for (customer, data) in &changes.personal {
            if let Some(data) = data {
                let values = params![customer, data.value()];
                self.statements.get(Sql::PutPersonal)?.execute(values)?;
                continue;
            }
            for erase in [Sql::ErasePersonal, Sql::EraseAddressees] {
                self.statements.get(erase)?.execute([customer])?;
            }
            self.erased = true;
        }
        for (folded, (customer, to)) in &changes.addressees {
            let of = (folded, customer);
            let buyer = match to {
                PaymentAddressee::Customer => {
                    self.statements.get(Sql::AddressToCustomer)?.execute(of)?;
                    continue;
                }
                PaymentAddressee::Unchanged => {
                    self.statements.get(Sql::MoveAddressee)?.execute(of)?;
                    continue;
                }
                PaymentAddressee::Buyer(data) => Some(data.value()),
                PaymentAddressee::Nobody => None,
            };
            let put = self.statements.get(Sql::PutAddressee)?;
            put.execute(params![folded, customer, buyer])?;
        }
        Ok(())
    }

    fn hold(&mut self, request: OperationId, row: &CachedRow<StoredHold>) -> Result<()> {
        match (&row.now, row.was_stored) {
            (None, false) => {}
            (None, true) => {
                one(self.statements.get(Sql::DeleteHold)?.execute([request])?)?;
            }
            (Some(hold), true) => {
                let (open, checkpoint) = (&hold.open, &hold.checkpoint);
                let checkpoint = checkpoint.as_ref().map(json).transpose()?;
                let values = params![
                    request,
                    open.amount,
                    open.used,
                    checkpoint,
                    hold.moves,
                    hold.parts.value()
                ];
                one(self.statements.get(Sql::UpdateHold)?.execute(values)?)?;
            }
            (Some(hold), false) => {
                let (open, checkpoint) = (&hold.open, &hold.checkpoint);
                self.statements.get(Sql::InsertHold)?.execute(params![
                    request,
                    open.key,
                    hold.opened,
                    open.amount,
                    open.used,
                    open.slug,
                    open.family,
                    open.at,
                    open.epoch,
                    checkpoint.as_ref().map(json).transpose()?,
                    hold.day,
                    hold.moves,
                    hold.parts.value()
                ])?;
            }
        }
        self.mark(Changed::Rows);
        Ok(())
    }

    fn entry(&mut self, chained: &ChainedEntry) -> Result<()> {
        let entry = &chained.entry;
        let bill = entry.bill.as_ref();
        let slug = bill.map(|bill| self.slug(&bill.slug)).transpose()?;
        // In the order of their columns.
        let counts = bill.map(|bill| bill.usage.first().map(number));
        let counts = counts.map_or([None; 7], |counts| counts.map(Some));
        let lines = bill.map(|bill| codes::lines_text(&bill.lines)).transpose();
        let pairs = bill.map(Bill::pairs).filter(|pairs| !pairs.is_empty());
        self.statements.get(Sql::InsertEntry)?.execute(params![
            entry.position,
            entry.customer,
            entry.seq,
            chained.prev,
            entry.operation,
            entry.kind,
            entry.amount,
            entry.balance_after,
            entry.at,
            entry.actor,
            entry.reference,
            entry.reason,
            entry.refunds,
            slug,
            bill.map(|bill| &bill.family),
            bill.map(|bill| &bill.target),
            bill.map(|bill| bill.status),
            bill.map(|bill| bill.end_reason.as_str()),
            bill.map(|bill| bill.first_byte_ms),
            bill.map(|bill| bill.total_ms),
            bill.map(|bill| &bill.answer_id),
            bill.map(|bill| bill.hold),
            bill.map(|bill| bill.loss),
            bill.and_then(|bill| bill.evidence),
            counts[0],
            counts[1],
            counts[2],
            counts[3],
            counts[4],
            counts[5],
            counts[6],
            lines.map_err(unwritable)?,
            chained.hash,
            chained.format,
            pairs.map(|pairs| json(&pairs)).transpose()?,
            codes::key_number(entry.customer, entry.key),
            entry.parts.value(),
        ])?;
        let newest = &mut self.newest_entry;
        *newest = newest.map(|newest| newest.max(entry.operation));
        self.sums.add(entry);
        self.mark(Changed::Sums);
        Ok(())
    }

    fn act(&mut self, act: &ChainedAct) -> Result<()> {
        let record = &act.record.record;
        self.statements.get(Sql::InsertAct)?.execute(params![
            record.position,
            record.customer,
            act.prev,
            record.operation,
            record.act,
            record.actor,
            record.at,
            record.details,
            act.record.state,
            act.hash,
            act.format,
            act.record.seq,
            codes::key_number(record.customer, record.key),
        ])?;
        self.mark(Changed::Anything);
        Ok(())
    }

    /// Adds ended requests to their hour, and what a target may bill for them.
    fn usage(&mut self, place: &UsagePlace, row: &UsageRow) -> Result<()> {
        let slug = self.slug(&place.slug)?;
        let target = self.target(&place.target, &place.served)?;
        if row.requests > 0 {
            let [input, read, written, _, output, reasoning, _] = row.usage.first().map(number);
            let values = params![
                place.hour,
                place.key,
                slug,
                target,
                number(row.requests),
                input,
                read,
                written,
                output,
                reasoning,
                row.charge,
            ];
            if self.statements.get(Sql::UpdateUsage)?.execute(values)? == 0 {
                self.statements.get(Sql::InsertUsage)?.execute(values)?;
            }
        }
        let counts = [
            UsageKind::CacheWrite1h,
            UsageKind::CacheWrite12h,
            UsageKind::Calls,
            UsageKind::Images,
        ]
        .map(|kind| number(row.usage[kind]));
        let amounts = [row.exposure, row.cost, row.loss, row.told];
        if counts == [0; 4] && amounts == [Amount::ZERO; 4] {
            return Ok(());
        }
        let values = params![
            place.hour,
            place.key,
            slug,
            target,
            row.exposure,
            row.cost,
            counts[0],
            counts[1],
            counts[2],
            counts[3],
            row.loss,
            row.told,
        ];
        if self.statements.get(Sql::UpdateRare)?.execute(values)? == 0 {
            self.statements.get(Sql::InsertRare)?.execute(values)?;
        }
        Ok(())
    }

    /// Removes the sessions and links that end with their key or have expired.
    fn ended_access(&mut self, changes: &Changes) -> Result<()> {
        for key in &changes.ended_sessions {
            self.statements.get(Sql::EndSessions)?.execute([key])?;
        }
        for key in &changes.ended_links {
            self.statements.get(Sql::EndLinks)?.execute([key])?;
        }
        if let Some(now) = changes.forget_sessions {
            self.statements.get(Sql::ForgetSessions)?.execute([now])?;
        }
        if let Some(now) = changes.forget_links {
            self.statements.get(Sql::ForgetLinks)?.execute([now])?;
        }
        Ok(())
    }

    /// Removes the oldest sessions above the most of a key and of a customer.
    fn crowded(&mut self, changes: &Changes) -> Result<()> {
        for key in &changes.crowded {
            let values = params![key, Session::MOST_OF_KEY];
            self.statements.get(Sql::TrimSessions)?.execute(values)?;
            let values = params![key, Session::MOST_OF_CUSTOMER];
            (self.statements.get(Sql::TrimSessionsOfCustomer)?).execute(values)?;
        }
        Ok(())
    }

    /// What belongs to no key: slugs, what targets have taught, and what our own requests cost.
    fn of_no_key(&mut self, changes: &Changes) -> Result<()> {
        for slug in &changes.published {
            self.statements.get(Sql::Publish)?.execute(slug)?;
        }
        self.taught(changes)?;
        for ((hour, target, epoch), cost) in &changes.own_costs {
            let values = params![hour, target, epoch, cost];
            self.statements.get(Sql::OwnCost)?.execute(values)?;
        }
        Ok(())
    }
}

/// A write that must find its row with the values that were read.
fn one(rows: usize) -> Result<()> {
    if rows == 1 {
        Ok(())
    } else {
        Err(rusqlite::Error::StatementChangedRows(rows))
    }
}

fn unwritable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(unwritable)
}
