//! The customer's dashboard: sign-in links, which are audited, and sessions.

use super::acting::check_acts;
use super::{check_unused, write_act};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::rule::link::SignInLink;
use crate::table::needs::RowName;
use crate::value::text::clean;
use crate::{
    CloseSession, CloseSessions, ConsumeLink, KeyId, MarkUsed, NewLink, OperationId, Refusal,
    Session, Timestamp,
};

fn create_link(rows: &mut Rows, new: &NewLink) -> Result<(), Refusal> {
    let NewLink {
        key,
        token,
        expires,
        act,
    } = new;
    let (key, expires) = (*key, *expires);
    let written = audit::link(key, token, expires, act);
    let known = rows.act(act.operation);
    if known.is_some_and(|record| written.repeats(record)) {
        return Ok(());
    }
    check_unused(rows, act.operation)?;
    check_acts(rows, key)?;
    let owner = rows.key(key)?.belongs_to;
    if rows.tables.get::<SignInLink>(&token.0).is_some() {
        return Err(Refusal::NotApplicable(
            "this link already exists".to_owned(),
        ));
    }
    let link = SignInLink {
        token: *token,
        key,
        expires,
    };
    rows.insert_link(link, act.at);
    write_act(rows, written, owner)
}

/// The key of a link, which works once; of one with which nobody may act there is none.
fn consume_link(rows: &mut Rows, link: &ConsumeLink) -> Option<KeyId> {
    // Taken before it is judged: a link works once, whatever comes of it.
    let found = rows.tables.take::<SignInLink>(&link.token.0)?;
    let works = link.now < found.expires && check_acts(rows, found.key).is_ok();
    works.then_some(found.key)
}

/// Notes the first use of a key that a token made. That of others is not noted, and that it was used before stays so.
fn mark_used(rows: &mut Rows, key: KeyId, now: Timestamp) -> Result<(), Refusal> {
    if rows.key(key)?.is_unmarked() {
        rows.mark_used(key, now);
    }
    Ok(())
}

fn open_session(rows: &mut Rows, session: &Session) -> Result<(), Refusal> {
    rows.key(session.key)?.check_looks()?;
    match rows.tables.get::<Session>(&session.token.0) {
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

impl LedgerOperation for NewLink {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            rows: vec![RowName::Access(self.token.0)],
            ..Needs::administrative(self.key.into(), [Some(self.act.operation), None])
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        create_link(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewLink {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        match by {
            // It comes to the shop as who it is.
            BoundedAsker::Owner(owner) if owner == self.key => Ok(()),
            BoundedAsker::Seller(_) | BoundedAsker::Owner(_) => by.refused(),
        }
    }
}

impl LedgerOperation for ConsumeLink {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            rows: vec![RowName::Access(self.token.0)],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        Ok(consume_link(rows, self).into())
    }

    fn clean(&mut self) {}
}

impl LedgerOperation for Session {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            keys: [Some(self.key), None],
            rows: vec![RowName::Access(self.token.0)],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        open_session(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {}
}

impl LedgerOperation for CloseSession {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            rows: vec![RowName::Access(self.0.0)],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        rows.tables.take::<Session>(&self.0.0);
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {}
}

impl LedgerOperation for CloseSessions {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            keys: [Some(self.0), None],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        rows.close_sessions(self.0);
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {}
}

impl LedgerOperation for MarkUsed {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            keys: [Some(self.key), None],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        mark_used(rows, self.key, self.now).map(Outcome::from)
    }

    fn clean(&mut self) {}
}
