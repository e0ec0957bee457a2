//! The customer's dashboard: sign-in links, which are audited, and sessions.

use super::{check_unused, write_act};
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::{Act, CustomerId, KeyId, Refusal, SecretHash, Session, Timestamp};

pub(super) fn create_link(
    rows: &mut Rows,
    key: KeyId,
    token: SecretHash,
    expires: Timestamp,
    act: &Act,
) -> Result<(), Refusal> {
    let written = audit::link(key, &token, expires, act);
    let known = rows.act(act.operation);
    if known.is_some_and(|record| written.repeats(record)) {
        return Ok(());
    }
    check_unused(rows, act.operation)?;
    let owner = check_not_stopped(rows, key)?;
    if rows
        .links
        .get(&token.0)
        .is_some_and(|row| row.now.is_some())
    {
        return Err(Refusal::NotApplicable(
            "this link already exists".to_owned(),
        ));
    }
    rows.insert_link(token, (key, expires), act.at);
    write_act(rows, written, owner)
}

/// The customer of a key for which something may be started; refuses a stopped key, and one of a stopped customer.
fn check_not_stopped(rows: &Rows, key: KeyId) -> Result<CustomerId, Refusal> {
    let (key, stored) = rows.key_and_customer(key)?;
    key.check_not_stopped()?;
    stored.customer.check_active()?;
    Ok(stored.customer.id)
}

pub(super) fn consume_link(rows: &mut Rows, token: SecretHash, now: Timestamp) -> Option<KeyId> {
    let (key, expires) = rows.take_link(token)?;
    (now < expires).then_some(key)
}

pub(super) fn open_session(rows: &mut Rows, session: &Session) -> Result<(), Refusal> {
    check_not_stopped(rows, session.key)?;
    let known = rows.sessions.get(&session.token.0);
    match known.and_then(|row| row.now.as_ref()) {
        Some(known) if known == session => Ok(()),
        Some(_) => Err(Refusal::NotApplicable(
            "this session already exists".to_owned(),
        )),
        None => {
            rows.insert_session(session.clone());
            Ok(())
        }
    }
}
