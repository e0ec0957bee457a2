//! The customer's dashboard: sign-in links, which are audited, and sessions.

use super::acting::check_acts;
use super::{check_unused, write_act};
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::{Act, KeyId, Refusal, SecretHash, Session, Timestamp};

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
    check_acts(rows, key)?;
    let owner = rows.key(key)?.belongs_to;
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

/// The key of a link, which works once; of one with which nobody may act there is none.
pub(super) fn consume_link(rows: &mut Rows, token: SecretHash, now: Timestamp) -> Option<KeyId> {
    let (key, expires) = rows.take_link(token)?;
    (now < expires && check_acts(rows, key).is_ok()).then_some(key)
}

/// Notes the first use of a key that a token made. That of others is not noted, and that it was used before stays so.
pub(super) fn mark_used(rows: &mut Rows, key: KeyId, now: Timestamp) -> Result<(), Refusal> {
    if rows.key(key)?.is_unmarked() {
        rows.mark_used(key, now);
    }
    Ok(())
}

pub(super) fn open_session(rows: &mut Rows, session: &Session) -> Result<(), Refusal> {
    rows.key(session.key)?.check_looks()?;
    let known = rows.sessions.get(&session.token.0);
    match known.and_then(|row| row.now.as_ref()) {
        Some(known) if known == session => Ok(()),
        Some(_) => Err(Refusal::NotApplicable(
            "this session already exists".to_owned(),
        )),
        None => {
            rows.insert_session(session.clone());
            mark_used(rows, session.key, session.at)
        }
    }
}
