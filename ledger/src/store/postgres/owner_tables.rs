//! What a batch has changed of customers and keys, as statements.

use super::writes::{TableWrite, Write};
use crate::batch::changes::Changes;
use crate::batch::rows::{CustomerRow, KeyRow, Rows};
use crate::book::head::StoredCustomer;
use crate::rule::key::KeyRecord;
use crate::rule::limit::Traffic;
use crate::rule::payment::PaymentAddressee;
use crate::table::columns::{ColumnValue, Stored as _, StoredAlone};
use crate::table::description::{
    Described as _, DescribedRow as _, RowChange, WrittenColumn, written,
};
use crate::table::grants::NEXT_GRANT;
use crate::{CustomerId, Grant, Timestamp};

/// The customer rows to insert, or those to update.
fn changed(rows: &Rows, is_new: bool, of: fn(&CustomerRow) -> bool) -> Vec<&CustomerRow> {
    let mut found: Vec<&CustomerRow> = rows
        .changed_customers()
        .filter(|row| row.before.is_none() == is_new && of(row))
        .collect();
    found.sort_by_key(|row| row.stored.customer.id);
    found
}

/// Traffic at all gateways; of a key without limits of its own there is none.
const fn traffic(of: Option<Traffic>) -> [WrittenColumn<'static>; 2] {
    let (running, paced_to) = match of {
        Some(Traffic { running, paced_to }) => (Some(running), Some(paced_to)),
        None => (None, None),
    };
    [
        ("running", ColumnValue::Number(running)),
        ("paced_to", ColumnValue::Number(paced_to)),
    ]
}

pub(super) fn keys<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) {
    for change in [RowChange::Insert, RowChange::Update] {
        let is_stored = change == RowChange::Update;
        let found = rows.changed_keys();
        let mut found: Vec<&KeyRow> = found.filter(|row| row.is_stored == is_stored).collect();
        found.sort_by_key(|row| row.key.id);
        if found.is_empty() {
            continue;
        }
        let table = TableWrite::of("keys", &found).described(|row| {
            let mut cells = written(&row.key.id, Some(&row.key), change);
            if is_stored {
                cells.push(("caps", row.key.caps.value()));
            }
            cells.extend(traffic(row.traffic));
            cells
        });
        writes.push(if is_stored {
            table.update(KeyRecord::KEY)
        } else {
            table.insert("")
        });
    }
}

/// What only administrators change of customers, their caps and what they ask for. New ones are inserted whole.
pub(super) fn customers<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) {
    let found = changed(rows, false, |row| {
        row.settings_changed || row.audit_changed || row.caps_changed || row.auto_top_up_changed
    });
    if !found.is_empty() {
        let table = TableWrite::of("accounts", &found).described(|row| {
            let StoredCustomer {
                customer, audit, ..
            } = &row.stored;
            let mut cells = written(&customer.id, Some(&row.stored), RowChange::Update);
            let auto = customer.auto_top_up.as_ref();
            cells.extend([
                ("caps", customer.caps.value()),
                (
                    "auto_top_up",
                    auto.map_or(ColumnValue::Text(None), StoredAlone::value),
                ),
            ]);
            cells.extend(audit.cells());
            cells
        });
        writes.push(table.update(StoredCustomer::KEY));
    }
}

/// What is left of grants that are known with their customers alone, and when something happens next to those of a customer.
pub(super) fn grants<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) {
    let found: Vec<_> = rows.changes.grants.iter().collect();
    if !found.is_empty() {
        let table = TableWrite::of(Grant::TABLE, &found)
            .described(|(id, grant)| written(*id, Some(*grant), RowChange::Update));
        writes.push(table.update(Grant::KEY));
    }
    let found = changed(rows, false, |row| row.next_grant_changed);
    if !found.is_empty() {
        let table = TableWrite::of("accounts", &found).described(|row| {
            let of = &row.stored.customer;
            let mut cells = vec![("id", of.id.value())];
            cells.extend([NEXT_GRANT].into_iter().zip(of.grants.values()));
            cells
        });
        writes.push(table.update(StoredCustomer::KEY));
    }
}

/// What is watched of customers that have heard of something. New ones are inserted whole.
pub(super) fn watched<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) {
    let found = changed(rows, false, |row| row.watch_changed);
    if !found.is_empty() {
        let table = TableWrite::of("accounts", &found).described(|row| {
            let mut cells = vec![("id", row.stored.customer.id.value())];
            cells.extend(row.stored.watch.cells());
            cells
        });
        writes.push(table.update(StoredCustomer::KEY));
    }
}

pub(super) fn accounts<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) {
    let new = changed(rows, true, |row| row.account_changed);
    if !new.is_empty() {
        let table = TableWrite::of("accounts", &new).described(|row| {
            let (stored, change) = (&row.stored, RowChange::Insert);
            let mut cells = written(&stored.customer.id, Some(stored), change);
            cells.extend(traffic(Some(row.traffic.unwrap_or_default())));
            cells
        });
        writes.push(table.insert(""));
    }
    let found = changed(rows, false, |row| row.account_changed);
    if !found.is_empty() {
        let traffic = |row: &CustomerRow| row.traffic.unwrap_or_default();
        let table = TableWrite::of("accounts", &found)
            .number("id", |row| row.stored.customer.id.to_i64())
            .number("credit", |row| row.stored.customer.account.credit.picos())
            .number("spent", |row| row.stored.customer.account.spent.picos())
            .number("held", |row| row.stored.customer.account.held.picos())
            .number("claim", |row| row.stored.customer.claim.picos())
            .number("seq", |row| row.stored.head.seq)
            .number("last", |row| row.stored.head.last)
            .number("last_at", |row| row.stored.last_at().map(Timestamp::millis))
            .bytes("hash", |row| row.stored.head.hash.as_slice())
            .number("opened", |row| row.stored.opened)
            .number("running", |row| traffic(row).running)
            .number("paced_to", |row| traffic(row).paced_to);
        writes.push(table.update(StoredCustomer::KEY));
    }
}

/// Personal data to store, after that which goes, and that of payments.
pub(super) fn personal<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    let gone: Vec<&CustomerId> = changes.personal.keys().collect();
    if !gone.is_empty() {
        let table = TableWrite::of("personal_data", &gone);
        writes.push(table.number("customer", |id| id.to_i64()).delete());
    }
    let found = changes.personal.iter();
    let found: Vec<_> = found
        .filter_map(|(customer, data)| Some((customer, data.as_ref()?)))
        .collect();
    if !found.is_empty() {
        let table = TableWrite::of("personal_data", &found).described(|(customer, data)| {
            vec![("customer", customer.value()), ("data", data.value())]
        });
        writes.push(table.insert(""));
    }
    addressees(changes, writes);
}

/// Whom payments are addressed to, after those that go with their customer's data.
fn addressees<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    let erased = changes.personal.iter().filter(|(_, data)| data.is_none());
    let erased: Vec<&CustomerId> = erased.map(|(customer, _)| customer).collect();
    if !erased.is_empty() {
        let table = TableWrite::of("addressees", &erased)
            .number("customer", |customer| customer.to_i64())
            .text("data", |_| None::<String>);
        writes.push(table.update(&["customer"]));
    }
    let (mut put, mut copied, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    for (folded, (customer, to)) in &changes.addressees {
        match to {
            PaymentAddressee::Nobody => put.push((folded, customer, None)),
            PaymentAddressee::Buyer(data) => put.push((folded, customer, Some(data))),
            PaymentAddressee::Customer => copied.push((folded.as_str(), customer.to_i64())),
            PaymentAddressee::Unchanged => moved.push((folded, customer)),
        }
    }
    if !moved.is_empty() {
        let table = TableWrite::of("addressees", &moved).described(|(folded, customer)| {
            vec![("folded", folded.value()), ("customer", customer.value())]
        });
        writes.push(table.update(&["folded"]));
    }
    if !put.is_empty() {
        let table = TableWrite::of("addressees", &put).described(|(folded, customer, data)| {
            let data = data.map_or(ColumnValue::Text(None), StoredAlone::value);
            vec![
                ("folded", folded.value()),
                ("customer", customer.value()),
                ("data", data),
            ]
        });
        writes.push(table.insert(""));
    }
    if !copied.is_empty() {
        let (folded, customers): (Vec<&str>, Vec<i64>) = copied.into_iter().unzip();
        writes.push(Write {
            sql: "INSERT INTO addressees (folded, customer, data) SELECT u.folded, p.customer, p.data \
                  FROM unnest($1::text[], $2::bigint[]) AS u (folded, customer) JOIN personal_data p ON p.customer = u.customer"
                .to_owned(),
            columns: vec![Box::new(folded), Box::new(customers)],
        });
    }
}
