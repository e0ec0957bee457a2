//! Reads what an operation needs into the batch's rows, as far as they are not there.
//!
//! Customers, keys and open holds stay in memory from one batch to the next. Everything else is read from the file, which therefore has to
//! contain what earlier operations of the batch wrote.

use std::collections::hash_map::Entry;

use rusqlite::{Connection, Error, OptionalExtension, Result, params, params_from_iter};

use super::batch::Batch;
use super::statements::Sql;
use super::{defaults, rows, tables};
use crate::batch::needs::Few;
use crate::batch::operation::Operation;
use crate::batch::outcome::Outcome;
use crate::batch::rows::{CachedRow, CustomerRow, KeyRow, RECOVERED_AT_ONCE};
use crate::book::chain::ChainedEntry;
use crate::rule::defaults::DefaultsRow;
use crate::rule::key::KeyRecord;
use crate::rule::made::MadeKeys;
use crate::table::columns::ColumnValue;
use crate::table::list::{ListedRow, TableSet};
use crate::table::needs::{NamedReader, NextRow, RowName};
use crate::value::reference;
use crate::{CustomerId, DailyBound, GrantRecord, KeyId, OperationId, Payment, Refusal, Scope};

/// Reads what belongs to a row that is named.
struct NamedRows<'batch> {
    conn: &'batch Connection,
    found: &'batch mut TableSet,
    key: ColumnValue<'batch>,
    before: i64,
}

impl NamedReader for NamedRows<'_> {
    type Error = Error;

    /// A file is locked as a whole.
    fn read<T: ListedRow>(&mut self, condition: &str, _: bool) -> Result<()> {
        let condition = condition
            .replace("{keys}", "= ?1")
            .replace("{before}", &self.before.to_string());
        let key = condition.contains("?1").then_some(&self.key);
        let which = format!("WHERE {condition}");
        let found = tables::read::<T>(self.conn, &which, params_from_iter(key))?;
        found.into_iter().for_each(|row| self.found.fetched(row));
        Ok(())
    }
}

impl Batch<'_> {
    /// Fetches what an operation needs, and applies it. What it changes is written by the next flush.
    pub(super) fn run(
        &mut self,
        operation: &Operation,
    ) -> Result<std::result::Result<Outcome, Refusal>> {
        self.fetch(operation)?;
        self.sets_defaults |= operation.sets_defaults();
        Ok(operation.apply(&mut self.rows))
    }

    /// Fetches what an operation needs, and the keys and customers that own it.
    fn fetch(&mut self, operation: &Operation) -> Result<()> {
        let needs = operation.needs();
        let is_of_running_holds = needs.acts == Few::default()
            && needs.references == Few::default()
            && needs.rows.is_empty()
            && needs.dead.is_none();
        if !self.knows_defaults {
            self.fetch_defaults()?;
        }
        if !is_of_running_holds {
            self.flush()?;
        }
        for request in needs.holds.into_iter().flatten() {
            self.fetch_hold(request)?;
        }
        for operation in needs.entries.into_iter().flatten() {
            self.fetch_entry(operation)?;
        }
        for key in needs.keys.into_iter().flatten() {
            self.fetch_key(key)?;
        }
        for customer in needs.customers.into_iter().flatten() {
            self.fetch_customer(customer)?;
        }
        if let Some(customer) = needs.personal {
            let data = super::reads::personal_data(self.conn, customer)?;
            let data = data.map(|data| (customer, data));
            self.rows.personal.extend(data);
        }
        for operation in needs.acts.into_iter().flatten() {
            self.fetch_act(operation)?;
        }
        for spelled in needs.references.into_iter().flatten() {
            self.fetch_reference(spelled)?;
        }
        for name in &needs.rows {
            self.fetch_named(name)?;
        }
        if let Some(customer) = needs.made {
            self.fetch_made(customer)?;
        }
        if let Some(of) = needs.last_act {
            let last = super::reads::last_act(self.conn, of)?;
            self.rows.last_acts.insert(of, last);
        }
        if let Some(of) = needs.spending {
            self.fetch_spending(of)?;
        }
        match needs.dead {
            Some(epoch) => self.fetch_dead(epoch),
            None => Ok(()),
        }
    }

    fn fetch_defaults(&mut self) -> Result<()> {
        let mut found = tables::read::<DefaultsRow>(self.conn, "", [])?;
        self.rows.defaults = found.pop().map(|row| row.state.into());
        self.knows_defaults = true;
        Ok(())
    }

    /// Brings a key or customer that was just read in line with the defaults.
    fn fit(&mut self, of: Scope) -> Result<()> {
        if let Some(since) = self.rows.fit(of) {
            let stored = defaults::spending(self.conn, of, since)?;
            self.rows.follow(of, stored);
        }
        Ok(())
    }

    /// What belongs to a row of a described table.
    fn fetch_named(&mut self, name: &RowName) -> Result<()> {
        let before = self.rows.today().number().saturating_sub(DailyBound::DAYS);
        let mut reader = NamedRows {
            conn: self.conn,
            found: &mut self.rows.tables,
            key: name.key(),
            before,
        };
        name.read(&mut reader)?;
        match name.leads_to(&self.rows.tables) {
            Some(NextRow::Entry(operation)) => self.fetch_entry(operation),
            Some(NextRow::Key(key)) => self.fetch_key(key),
            None => Ok(()),
        }
    }

    pub(super) fn fetch_key(&mut self, key: KeyId) -> Result<()> {
        if self.rows.keys.contains_key(&key) {
            return Ok(());
        }
        let read = self.tables.statements.get(Sql::Key)?;
        let Some(record) = read.query_row([key], rows::row::<KeyRecord>).optional()? else {
            return Ok(());
        };
        let (customer, maker) = (record.belongs_to, record.counts_in);
        self.rows.keys.insert(key, KeyRow::stored(record, None));
        if let Some(maker) = maker {
            self.fetch_key(maker)?;
        }
        self.fetch_customer(customer)?;
        self.fit(key.into())
    }

    pub(super) fn fetch_customer(&mut self, customer: CustomerId) -> Result<()> {
        if self.rows.customers.contains_key(&customer) {
            return Ok(());
        }
        let read = self.tables.statements.get(Sql::Customer)?;
        if let Some(stored) = read.query_row([customer], rows::row).optional()? {
            let row = CustomerRow::stored(stored, None);
            self.rows.customers.insert(customer, row);
            self.fit(customer.into())?;
        }
        Ok(())
    }

    fn fetch_hold(&mut self, request: OperationId) -> Result<()> {
        if !self.rows.holds.contains_key(&request) && request <= self.holds_after()? {
            let read = self.tables.statements.get(Sql::Hold)?;
            if let Some(hold) = read.query_row([request], rows::stored_hold).optional()? {
                self.rows.holds.insert(request, CachedRow::stored(hold));
            }
        }
        match self.rows.hold(request).map(|hold| hold.open.key) {
            Some(key) => self.fetch_key(key),
            None => Ok(()),
        }
    }

    /// The greatest id that an open hold had when the rows were last forgotten. All that were opened since are in memory.
    fn holds_after(&mut self) -> Result<OperationId> {
        match self.holds_after {
            Some(known) => Ok(known),
            None => {
                let newest = self.greatest(Sql::NewestHold)?;
                Ok(*self.holds_after.insert(newest))
            }
        }
    }

    fn fetch_entry(&mut self, operation: OperationId) -> Result<()> {
        if self.rows.entries.contains_key(&operation)
            || self.rows.hold(operation).is_some()
            || operation > self.newest_entry()?
        {
            return Ok(());
        }
        let read = self.tables.statements.get(Sql::Entry)?;
        match read.query_row([operation], rows::stored_entry).optional()? {
            Some(chained) => self.fetched_entry(chained),
            None => Ok(()),
        }
    }

    fn fetched_entry(&mut self, chained: ChainedEntry) -> Result<()> {
        let (customer, key) = (chained.entry.customer, chained.entry.key);
        self.rows.entries.insert(chained.entry.operation, chained);
        match key {
            Some(key) => self.fetch_key(key),
            None => self.fetch_customer(customer),
        }
    }

    fn newest_entry(&mut self) -> Result<OperationId> {
        match self.tables.newest_entry {
            Some(known) => Ok(known),
            None => {
                let newest = self.greatest(Sql::NewestOperation)?;
                Ok(*self.tables.newest_entry.insert(newest))
            }
        }
    }

    fn greatest(&mut self, of: Sql) -> Result<OperationId> {
        let found: Option<_> = self
            .tables
            .statements
            .get(of)?
            .query_row([], |row| row.get(0))?;
        Ok(found.unwrap_or(OperationId::from_bytes([0; 16])))
    }

    fn fetch_act(&mut self, operation: OperationId) -> Result<()> {
        let read = self.tables.statements.get(Sql::Act)?;
        if let Some(act) = read.query_row([operation], rows::stored_act).optional()? {
            let (customer, key) = (act.record.record.customer, act.record.record.key);
            self.rows.acts.insert(operation, act);
            self.fetch_customer(customer)?;
            if let Some(key) = key {
                self.fetch_key(key)?;
            }
        }
        let read = self.tables.statements.get(Sql::Refunds)?;
        let refunds = read
            .query_map([operation], |row| row.get(0))?
            .collect::<Result<Vec<_>>>()?;
        self.rows.refunds.insert(operation, refunds);
        Ok(())
    }

    /// The payment with this reference, folded, and its customer.
    fn fetch_payment(&mut self, folded: &str) -> Result<()> {
        let found = tables::read::<Payment>(self.conn, "WHERE folded = ?1", [folded])?;
        for payment in found {
            let customer = payment.customer;
            self.rows.tables.fetched(payment);
            self.fetch_customer(customer)?;
        }
        Ok(())
    }

    /// The entry with exactly this spelling, or else the one that owns the reference: ledgers from before references were folded
    /// may have both.
    fn fetch_reference(&mut self, spelled: &str) -> Result<()> {
        let folded = reference::folded(spelled);
        self.fetch_payment(&folded)?;
        let found = tables::read::<GrantRecord>(self.conn, "WHERE folded = ?1", [&folded])?;
        let grants = &mut self.rows.tables;
        found.into_iter().for_each(|grant| grants.fetched(grant));
        let exact = self.tables.statements.get(Sql::EntryByReference)?;
        let found = exact.query_row([spelled], rows::stored_entry).optional()?;
        let found = match found {
            Some(exact) => Some(exact),
            None => {
                let owner = self.tables.statements.get(Sql::EntryByName)?;
                owner.query_row([&folded], rows::stored_entry).optional()?
            }
        };
        match found {
            Some(chained) => {
                self.rows.references.insert(folded, chained.entry.operation);
                self.fetched_entry(chained)
            }
            None => Ok(()),
        }
    }

    /// What a key or customer was charged in each hour, and its open holds.
    fn fetch_spending(&mut self, of: Scope) -> Result<()> {
        let (hours, holds, number) = match of {
            Scope::Key(key) => {
                self.fetch_keys(Sql::KeysCountedIn, key.to_i64())?;
                (Sql::SpentHours, Sql::HoldsOfKey, key.to_i64())
            }
            Scope::Customer(customer) => {
                self.fetch_keys(Sql::KeysOfCustomer, customer.to_i64())?;
                let (hours, holds) = (Sql::SpentHoursOfCustomer, Sql::HoldsOfCustomer);
                (hours, holds, customer.to_i64())
            }
        };
        let read = self.tables.statements.get(hours)?;
        let hours = read
            .query_map([number], rows::spent_hour)?
            .collect::<Result<Vec<_>>>()?;
        self.rows.hours.insert(of, hours);
        let read = self.tables.statements.get(holds)?;
        let holds = read
            .query_map([number], rows::stored_hold)?
            .collect::<Result<Vec<_>>>()?;
        for hold in holds {
            let known = self.rows.holds.entry(hold.open.request);
            known.or_insert_with(|| CachedRow::stored(hold));
        }
        Ok(())
    }

    /// What owner keys of a customer have made.
    fn fetch_made(&mut self, customer: CustomerId) -> Result<()> {
        let now = self.rows.now();
        let read = self.tables.statements.get(Sql::Made)?;
        let made = read.query_row(params![customer, now, MadeKeys::minute(now)], |row| {
            Ok(MadeKeys {
                live: row.get(0)?,
                lately: row.get(1)?,
            })
        })?;
        self.rows.made.insert(customer, made);
        Ok(())
    }

    fn fetch_keys(&mut self, of: Sql, number: i64) -> Result<()> {
        let read = self.tables.statements.get(of)?;
        let keys = read
            .query_map([number], rows::row)?
            .collect::<Result<Vec<KeyRecord>>>()?;
        for key in keys {
            let id = key.id;
            if let Entry::Vacant(place) = self.rows.keys.entry(id) {
                place.insert(KeyRow::stored(key, None));
                self.fit(id.into())?;
            }
        }
        Ok(())
    }

    /// Holds of earlier epochs belong to requests of a dead process, because each start of a gateway begins a new one.
    fn fetch_dead(&mut self, epoch: i64) -> Result<()> {
        let read = self.tables.statements.get(Sql::HoldsBefore)?;
        let dead = read
            .query_map(params![epoch, RECOVERED_AT_ONCE], rows::stored_hold)?
            .collect::<Result<Vec<_>>>()?;
        for hold in dead {
            let (request, key) = (hold.open.request, hold.open.key);
            self.rows.holds.insert(request, CachedRow::stored(hold));
            self.rows.dead.push(request);
            self.fetch_key(key)?;
        }
        Ok(())
    }
}
