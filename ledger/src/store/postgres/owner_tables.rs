//! What a batch has changed of customers and keys, as statements.

use super::trouble::TransactionTrouble;
use super::writes::{TableWrite, Write};
use crate::batch::changes::Changes;
use crate::batch::rows::{CustomerRow, Rows};
use crate::rule::key::KeyRecord;
use crate::rule::payment::PaymentAddressee;
use crate::store::stored;
use crate::{Amount, Caps, Customer, CustomerId, KeyId, SecretHash, Timestamp, TokenId};

pub(super) fn json(value: &impl serde::Serialize) -> Result<String, TransactionTrouble> {
    Ok(serde_json::to_string(value)?)
}

const fn secret(hash: &SecretHash) -> &[u8] {
    hash.0.as_slice()
}

/// The customer rows to insert, or those to update.
fn changed(rows: &Rows, is_new: bool, of: fn(&CustomerRow) -> bool) -> Vec<&CustomerRow> {
    let mut found: Vec<&CustomerRow> = rows
        .changed_customers()
        .filter(|row| row.before.is_none() == is_new && of(row))
        .collect();
    found.sort_by_key(|row| row.stored.customer.id);
    found
}

pub(super) fn keys<'b>(
    rows: &'b Rows,
    writes: &mut Vec<Write<'b>>,
) -> Result<(), TransactionTrouble> {
    for is_new in [true, false] {
        let mut found = Vec::new();
        for row in rows.changed_keys().filter(|row| row.is_stored != is_new) {
            let KeyRecord { settings, caps, .. } = &row.key;
            let models = settings.models.as_ref().map(json).transpose()?;
            found.push((row, models, caps_text(caps)?));
        }
        found.sort_by_key(|(row, ..)| row.key.id);
        if found.is_empty() {
            continue;
        }
        let table = TableWrite::of("keys", &found)
            .number("id", |(row, ..)| row.key.id.to_i64())
            .text("label", |(row, ..)| row.key.settings.label.as_str())
            .text("models", |(_, models, _)| models.clone())
            .text("caps", |(.., caps)| caps.clone())
            .number("expires_at", |(row, ..)| {
                row.key.settings.expires_at.map(Timestamp::millis)
            })
            .number("rate", |(row, ..)| row.key.settings.rate.map(i64::from))
            .number("concurrency", |(row, ..)| {
                row.key.settings.concurrency.map(i64::from)
            })
            .number("status", |(row, ..)| {
                stored::status_code(row.key.stored_status)
            })
            .bytes("secret", |(row, ..)| secret(&row.key.secret))
            .bytes("old_secret", |(row, ..)| {
                row.key.old_secret.as_ref().map(|(hash, _)| secret(hash))
            })
            .number("old_until", |(row, ..)| {
                row.key.old_secret.map(|(_, until)| until.millis())
            })
            .number("used_at", |(row, ..)| {
                row.key.used_at.map(Timestamp::millis)
            })
            .number("running", |(row, ..)| {
                row.traffic.map(|traffic| traffic.running)
            })
            .number("paced_to", |(row, ..)| {
                row.traffic.map(|traffic| traffic.paced_to)
            });
        if !is_new {
            writes.push(table.update(&["id"]));
            continue;
        }
        let table = table
            .number("customer", |(row, ..)| row.key.belongs_to.to_i64())
            .number("owner", |(row, ..)| i64::from(row.key.is_owner))
            .number("made_by", |(row, ..)| row.key.made_by.map(KeyId::to_i64))
            .number("token", |(row, ..)| row.key.token.map(TokenId::to_i64))
            .number("created_at", |(row, ..)| row.key.created_at.millis())
            .text("created_by", |(row, ..)| row.key.created_by.as_str());
        writes.push(table.insert(""));
    }
    Ok(())
}

fn caps_text(caps: &Caps) -> Result<Option<String>, TransactionTrouble> {
    (!caps.is_empty()).then(|| json(caps)).transpose()
}

/// What stands as JSON in a customer's row.
#[derive(Default)]
struct CustomerTexts {
    caps: Option<String>,
    auto_top_up: Option<String>,
}

impl CustomerTexts {
    fn of(customer: &Customer) -> Result<Self, TransactionTrouble> {
        Ok(Self {
            caps: caps_text(&customer.caps)?,
            auto_top_up: customer.auto_top_up.as_ref().map(json).transpose()?,
        })
    }
}

/// What only administrators change of customers, their caps and what they ask for. New ones are inserted whole.
pub(super) fn customers<'b>(
    rows: &'b Rows,
    writes: &mut Vec<Write<'b>>,
) -> Result<(), TransactionTrouble> {
    let mut found = Vec::new();
    for row in changed(rows, false, |row| {
        row.settings_changed || row.audit_changed || row.caps_changed || row.auto_top_up_changed
    }) {
        found.push((row, CustomerTexts::of(&row.stored.customer)?));
    }
    if !found.is_empty() {
        let table = TableWrite::of("accounts", &found);
        let table = table.number("id", |(row, _)| row.stored.customer.id.to_i64());
        writes.push(with_settings(table).update(&["id"]));
    }
    Ok(())
}

fn with_settings<'a, 'b>(
    table: TableWrite<'a, 'b, (&'b CustomerRow, CustomerTexts)>,
) -> TableWrite<'a, 'b, (&'b CustomerRow, CustomerTexts)> {
    table
        .text("label", |(row, _)| {
            row.stored.customer.settings.label.as_str()
        })
        .text("external_id", |(row, _)| {
            row.stored.customer.settings.external_id.as_deref()
        })
        .text("price_list", |(row, _)| {
            row.stored.customer.settings.price_list.as_deref()
        })
        .number("low_balance", |(row, _)| {
            row.stored.customer.settings.low_balance.map(Amount::picos)
        })
        .number("rate", |(row, _)| {
            row.stored.customer.settings.rate.map(i64::from)
        })
        .number("concurrency", |(row, _)| {
            row.stored.customer.settings.concurrency.map(i64::from)
        })
        .number("status", |(row, _)| {
            stored::customer_status_code(row.stored.customer.status)
        })
        .text("caps", |(_, texts)| texts.caps.clone())
        .text("auto_top_up", |(_, texts)| texts.auto_top_up.clone())
        .bytes("personal", |(row, _)| {
            row.stored
                .customer
                .personal
                .as_ref()
                .map(|hash| hash.0.as_slice())
        })
        .number("audit_seq", |(row, _)| row.stored.audit.seq)
        .number("audit_last", |(row, _)| row.stored.audit.last)
        .bytes("audit_hash", |(row, _)| row.stored.audit.hash.as_slice())
}

/// What is watched of customers that have heard of something. New ones are inserted whole.
pub(super) fn watched(rows: &Rows, writes: &mut Vec<Write<'_>>) {
    let found = changed(rows, false, |row| row.watch_changed);
    if !found.is_empty() {
        let table = TableWrite::of("accounts", &found);
        let table = table.number("id", |row| row.stored.customer.id.to_i64());
        writes.push(with_watch(table, |row| row).update(&["id"]));
    }
}

fn with_watch<'a, 'b, R>(
    table: TableWrite<'a, 'b, R>,
    of: impl Fn(&R) -> &CustomerRow + Copy,
) -> TableWrite<'a, 'b, R> {
    table
        .number("event_seq", move |row| of(row).stored.watch.seq)
        .number("last_top_up", move |row| {
            of(row).stored.watch.last_top_up.picos()
        })
        .number("told", move |row| of(row).stored.watch.told.code())
}

pub(super) fn accounts<'b>(
    rows: &'b Rows,
    writes: &mut Vec<Write<'b>>,
) -> Result<(), TransactionTrouble> {
    for is_new in [true, false] {
        let mut found = Vec::new();
        for row in changed(rows, is_new, |row| row.account_changed) {
            let texts = if is_new {
                CustomerTexts::of(&row.stored.customer)?
            } else {
                CustomerTexts::default()
            };
            found.push((row, texts));
        }
        if found.is_empty() {
            continue;
        }
        let traffic = |row: &CustomerRow| row.traffic.unwrap_or_default();
        let table = TableWrite::of("accounts", &found)
            .number("id", |(row, _)| row.stored.customer.id.to_i64())
            .number("credit", |(row, _)| {
                row.stored.customer.account.credit.picos()
            })
            .number("spent", |(row, _)| {
                row.stored.customer.account.spent.picos()
            })
            .number("held", |(row, _)| row.stored.customer.account.held.picos())
            .number("claim", |(row, _)| row.stored.customer.claim.picos())
            .number("seq", |(row, _)| row.stored.head.seq)
            .number("last", |(row, _)| row.stored.head.last)
            .number("last_at", |(row, _)| {
                row.stored.head.last_at.map(Timestamp::millis)
            })
            .bytes("hash", |(row, _)| row.stored.head.hash.as_slice())
            .number("opened", |(row, _)| row.stored.opened)
            .number("running", |(row, _)| traffic(row).running)
            .number("paced_to", |(row, _)| traffic(row).paced_to);
        if !is_new {
            writes.push(table.update(&["id"]));
            continue;
        }
        let table = with_watch(with_settings(table), |(row, _)| row)
            .number("created_at", |(row, _)| {
                row.stored.customer.created_at.millis()
            })
            .text("created_by", |(row, _)| {
                row.stored.customer.created_by.as_str()
            })
            .number("token", |(row, _)| {
                row.stored.customer.token.map(TokenId::to_i64)
            });
        writes.push(table.insert(""));
    }
    Ok(())
}

/// Personal data to store, after that which goes, and that of payments.
pub(super) fn personal(
    changes: &Changes,
    writes: &mut Vec<Write<'_>>,
) -> Result<(), TransactionTrouble> {
    let gone: Vec<CustomerId> = changes.personal.keys().copied().collect();
    if !gone.is_empty() {
        let table = TableWrite::of("personal_data", &gone);
        writes.push(table.number("customer", |id| id.to_i64()).delete());
    }
    let mut found = Vec::new();
    for (customer, data) in &changes.personal {
        if let Some(data) = data {
            found.push((*customer, json(data)?));
        }
    }
    if !found.is_empty() {
        let table = TableWrite::of("personal_data", &found)
            .number("customer", |(customer, _)| customer.to_i64())
            .text("data", |(_, data)| data.clone());
        writes.push(table.insert(""));
    }
    addressees(changes, writes)
}

/// Whom payments are addressed to, after those that go with their customer's data.
fn addressees(changes: &Changes, writes: &mut Vec<Write<'_>>) -> Result<(), TransactionTrouble> {
    let erased = changes.personal.iter().filter(|(_, data)| data.is_none());
    let erased: Vec<CustomerId> = erased.map(|(customer, _)| *customer).collect();
    if !erased.is_empty() {
        let table = TableWrite::of("addressees", &erased)
            .number("customer", |customer| customer.to_i64())
            .text("data", |_| None::<String>);
        writes.push(table.update(&["customer"]));
    }
    let (mut put, mut copied, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    for (folded, (customer, to)) in &changes.addressees {
        match to {
            PaymentAddressee::Nobody => put.push((folded.clone(), *customer, None)),
            PaymentAddressee::Buyer(data) => {
                put.push((folded.clone(), *customer, Some(json(data)?)))
            }
            PaymentAddressee::Customer => copied.push((folded.clone(), customer.to_i64())),
            PaymentAddressee::Unchanged => moved.push((folded.clone(), *customer)),
        }
    }
    if !moved.is_empty() {
        let table = TableWrite::of("addressees", &moved)
            .text("folded", |(folded, _)| folded.clone())
            .number("customer", |(_, customer)| customer.to_i64());
        writes.push(table.update(&["folded"]));
    }
    if !put.is_empty() {
        let table = TableWrite::of("addressees", &put)
            .text("folded", |(folded, ..)| folded.clone())
            .number("customer", |(_, customer, _)| customer.to_i64())
            .text("data", |(.., data)| data.clone());
        writes.push(table.insert(""));
    }
    if !copied.is_empty() {
        let (folded, customers): (Vec<String>, Vec<i64>) = copied.into_iter().unzip();
        writes.push(Write {
            sql: "INSERT INTO addressees (folded, customer, data) SELECT u.folded, p.customer, p.data \
                  FROM unnest($1::text[], $2::bigint[]) AS u (folded, customer) JOIN personal_data p ON p.customer = u.customer"
                .to_owned(),
            columns: vec![Box::new(folded), Box::new(customers)],
        });
    }
    Ok(())
}
