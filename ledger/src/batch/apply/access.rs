//! The customer's dashboard: sign-in links, which are audited, and sessions.

use super::check_unused;
use super::keys::{find, write_act};
use crate::batch::tx::{Step, Tx};
use crate::book::audit;
use crate::{Act, KeyId, Refusal, SecretHash, Session, Timestamp};

pub(super) fn create_link<T: Tx>(
    tx: &mut T,
    key: KeyId,
    token: SecretHash,
    expires: Timestamp,
    act: &Act,
) -> Step<T, ()> {
    let written = audit::link(key, &token, expires, act);
    if tx
        .act(act.operation)?
        .is_some_and(|record| written.repeats(&record))
    {
        return Ok(());
    }
    check_unused(tx, act.operation)?;
    let stored = find(tx, key)?;
    stored.key.check_not_stopped()?;
    if tx.has_link(token)? {
        return Err(Refusal::NotApplicable("this link already exists".to_owned()).into());
    }
    tx.insert_link(token, key, expires, act.at)?;
    write_act(tx, written, &stored.key, &stored.audit)
}

pub(super) fn consume_link<T: Tx>(
    tx: &mut T,
    token: SecretHash,
    now: Timestamp,
) -> Step<T, Option<KeyId>> {
    Ok(tx
        .take_link(token)?
        .filter(|(_, expires)| now < *expires)
        .map(|(key, _)| key))
}

pub(super) fn open_session<T: Tx>(tx: &mut T, session: &Session) -> Step<T, ()> {
    find(tx, session.key)?.key.check_not_stopped()?;
    match tx.session(session.token)? {
        Some(known) if known == *session => Ok(()),
        Some(_) => Err(Refusal::NotApplicable("this session already exists".to_owned()).into()),
        None => tx.insert_session(session),
    }
}
