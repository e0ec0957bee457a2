//! Operations of administrators and customers on keys, each inside one batch: create, change, credit, links, sessions, slugs.
//!
//! Every administrative act leaves one audit record in the same transaction; an operation id that was used before has either
//! this very effect or none.

use rusqlite::{OptionalExtension, params};

use super::batch::{Batch, Fault};
use super::rows::{Head, StoredKey};
use crate::audit;
use crate::chain::GENESIS;
use crate::{
    Act, Amount, Credit, CreditKind, Entry, EntryKind, Key, KeyChange, KeyId, NewKey, OperationId, Posted, Refusal, SecretHash,
    Session, Timestamp,
};

pub(super) fn create(batch: &mut Batch<'_>, new: &NewKey) -> Result<Key, Fault> {
    if let Some(record) = batch.audited(new.act.operation)?.filter(|record| record.act == "create") {
        return Ok(batch.key(record.key)?.key);
    }
    batch.check_unused(new.act.operation)?;
    new.settings.check()?;
    if batch.find_key(new.id)?.is_some() {
        return Err(Refusal::NotApplicable(format!("key id {} is taken", new.id)).into());
    }
    let mut key = new.key();
    let credit = new.credit();
    let mut after = key.account;
    if let Some(credit) = &credit {
        credit.check()?;
        check_reference(batch, &credit.reference)?;
        after = key.account.top_up(credit.amount)?;
    }
    insert(batch, &key)?;
    if let Some(credit) = &credit {
        let entry = credit.entry(batch.next_entry(), 1, after.balance());
        batch.append(&entry, &Head { seq: 0, last: 0, hash: GENESIS }, key.account, after)?;
        key.account = after;
        key.last_entry_at = Some(credit.at);
    }
    batch.write_audit(audit::create(new), &key, 0, &GENESIS)?;
    Ok(key)
}

fn insert(batch: &mut Batch<'_>, key: &Key) -> Result<(), Fault> {
    let settings = &key.settings;
    batch.statement("INSERT INTO keys VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL, NULL, ?9, ?10, 0, ?11)")?.execute(
        params![
            key.id,
            settings.label,
            models_text(key)?,
            settings.expires_at,
            settings.rate,
            settings.concurrency,
            key.stored_status,
            key.secret,
            key.created_at,
            key.created_by,
            GENESIS
        ],
    )?;
    let statement = batch.statement("INSERT INTO accounts VALUES (?1, 0, 0, 0, 0, 0, NULL, ?2)")?;
    statement.execute(params![key.id, GENESIS])?;
    batch.count_key();
    Ok(())
}

pub(super) fn change(batch: &mut Batch<'_>, change: &KeyChange) -> Result<Key, Fault> {
    let act = audit::change(change);
    if batch.audited(act.operation)?.is_some_and(|record| act.repeats(&record)) {
        return Ok(batch.key(change.key)?.key);
    }
    batch.check_unused(act.operation)?;
    let StoredKey { mut key, audit_last, audit_hash, .. } = batch.key(change.key)?;
    key.apply(&change.change)?;
    let settings = &key.settings;
    batch
        .statement(
            "UPDATE keys SET label = ?2, models = ?3, expires_at = ?4, rate = ?5, concurrency = ?6, status = ?7, secret = ?8,
             old_secret = ?9, old_until = ?10 WHERE id = ?1",
        )?
        .execute(params![
            key.id,
            settings.label,
            models_text(&key)?,
            settings.expires_at,
            settings.rate,
            settings.concurrency,
            key.stored_status,
            key.secret,
            key.old_secret.map(|(hash, _)| hash),
            key.old_secret.map(|(_, until)| until)
        ])?;
    if change.change.ends_sessions() {
        batch.conn.execute("DELETE FROM sessions WHERE key = ?1", [key.id])?;
        batch.conn.execute("DELETE FROM links WHERE key = ?1", [key.id])?;
    }
    batch.write_audit(act, &key, audit_last, &audit_hash)?;
    Ok(key)
}

pub(super) fn credit(batch: &mut Batch<'_>, credit: &Credit) -> Result<Posted, Fault> {
    credit.check()?;
    if let Some(entry) = batch.entry(credit.operation)?.filter(|entry| credit.repeats(entry)) {
        return repeated(batch, entry);
    }
    batch.check_unused(credit.operation)?;
    if let Some(entry) = batch.entry_by_reference(&credit.reference)?.filter(|entry| credit.repeats(entry)) {
        return repeated(batch, entry);
    }
    check_reference(batch, &credit.reference)?;
    let StoredKey { mut key, audit_last, audit_hash, head } = batch.key(credit.key)?;
    let before = key.account;
    key.account = match &credit.kind {
        CreditKind::TopUp => {
            key.check_payable()?;
            before.top_up(credit.amount)?
        }
        CreditKind::Adjust { .. } => before.adjust(credit.amount)?,
        CreditKind::Refund { request, .. } => {
            let (charged, refunded) = refunded(batch, credit.key, *request)?;
            before.refund(credit.amount, *request, charged, refunded)?
        }
    };
    let entry = credit.entry(batch.next_entry(), head.seq.saturating_add(1), key.account.balance());
    batch.append(&entry, &head, before, key.account)?;
    key.last_entry_at = Some(entry.at);
    batch.write_audit(audit::credit(credit), &key, audit_last, &audit_hash)?;
    Ok(Posted { entry, key, repeated: false })
}

fn repeated(batch: &mut Batch<'_>, entry: Entry) -> Result<Posted, Fault> {
    Ok(Posted { key: batch.key(entry.key)?.key, entry, repeated: true })
}

fn check_reference(batch: &mut Batch<'_>, reference: &str) -> Result<(), Fault> {
    match batch.entry_by_reference(reference)? {
        Some(entry) => Err(Refusal::ReferenceUsed { reference: entry.reference.unwrap_or_default(), key: entry.key }.into()),
        None => Ok(()),
    }
}

/// The charge of a request and the sum of its refunds so far.
fn refunded(batch: &mut Batch<'_>, key: KeyId, request: OperationId) -> Result<(Amount, Amount), Fault> {
    let nothing = || Fault::Refused(Refusal::NotRefundable { request, refundable: Amount::ZERO });
    let charge = batch.entry(request)?.filter(|entry| entry.kind == EntryKind::Charge && entry.key == key).ok_or_else(nothing)?;
    let statement = batch.statement("SELECT amount FROM entries WHERE refunds = ?1")?;
    let refunds = statement.query_map([request], |row| row.get(0))?.collect::<rusqlite::Result<Vec<Amount>>>()?;
    charge.amount.checked_neg().zip(Amount::checked_sum(refunds)).ok_or_else(nothing)
}

pub(super) fn create_link(
    batch: &mut Batch<'_>,
    key: KeyId,
    token: SecretHash,
    expires: Timestamp,
    act: &Act,
) -> Result<(), Fault> {
    let written = audit::link(key, &token, expires, act);
    if batch.audited(act.operation)?.is_some_and(|record| written.repeats(&record)) {
        return Ok(());
    }
    batch.check_unused(act.operation)?;
    let stored = batch.key(key)?;
    stored.key.check_not_stopped()?;
    if batch.statement("SELECT 1 FROM links WHERE token = ?1")?.exists([token])? {
        return Err(Refusal::NotApplicable("this link exists already".to_owned()).into());
    }
    batch.conn.execute("DELETE FROM links WHERE expires <= ?1", [act.at])?;
    batch.conn.execute("INSERT INTO links VALUES (?1, ?2, ?3)", params![token, key, expires])?;
    batch.write_audit(written, &stored.key, stored.audit_last, &stored.audit_hash)?;
    Ok(())
}

pub(super) fn consume_link(batch: &mut Batch<'_>, token: SecretHash, now: Timestamp) -> Result<Option<KeyId>, Fault> {
    let statement = batch.statement("DELETE FROM links WHERE token = ?1 RETURNING key, expires")?;
    let link = statement.query_row([token], |row| Ok((row.get(0)?, row.get::<_, Timestamp>(1)?))).optional()?;
    Ok(link.filter(|(_, expires)| now < *expires).map(|(key, _)| key))
}

pub(super) fn open_session(batch: &mut Batch<'_>, session: &Session) -> Result<(), Fault> {
    batch.key(session.key)?.key.check_not_stopped()?;
    let statement = batch.statement("SELECT key, at, expires FROM sessions WHERE token = ?1")?;
    let known = statement.query_row([session.token], |row| {
        Ok(Session { token: session.token, key: row.get(0)?, at: row.get(1)?, expires: row.get(2)? })
    });
    match known.optional()? {
        Some(known) if known == *session => return Ok(()),
        Some(_) => return Err(Refusal::NotApplicable("this session exists already".to_owned()).into()),
        None => {}
    }
    batch.conn.execute("DELETE FROM sessions WHERE expires <= ?1", [session.at])?;
    let statement = batch.statement("INSERT INTO sessions VALUES (?1, ?2, ?3, ?4)")?;
    statement.execute(params![session.token, session.key, session.at, session.expires])?;
    let statement = batch.statement(
        "DELETE FROM sessions WHERE key = ?1 AND token NOT IN
           (SELECT token FROM sessions WHERE key = ?1 ORDER BY at DESC, token LIMIT ?2)",
    )?;
    statement.execute(params![session.key, Session::MOST_OF_KEY])?;
    Ok(())
}

pub(super) fn close_session(batch: &mut Batch<'_>, token: SecretHash) -> Result<(), Fault> {
    batch.statement("DELETE FROM sessions WHERE token = ?1")?.execute([token])?;
    Ok(())
}

pub(super) fn close_sessions(batch: &mut Batch<'_>, key: KeyId) -> Result<(), Fault> {
    batch.statement("DELETE FROM sessions WHERE key = ?1")?.execute([key])?;
    Ok(())
}

pub(super) fn publish(batch: &mut Batch<'_>, slugs: &[String], now: Timestamp) -> Result<(), Fault> {
    let statement = batch.statement(
        "INSERT INTO slugs (slug, published_at) VALUES (?1, ?2)
         ON CONFLICT (slug) DO UPDATE SET published_at = coalesce(published_at, excluded.published_at)",
    )?;
    for slug in slugs {
        statement.execute(params![slug, now])?;
    }
    Ok(())
}

fn models_text(key: &Key) -> Result<Option<String>, Fault> {
    let text = key.settings.models.as_ref().map(serde_json::to_string).transpose();
    text.map_err(|error| Fault::Database(rusqlite::Error::ToSqlConversionFailure(error.into())))
}
