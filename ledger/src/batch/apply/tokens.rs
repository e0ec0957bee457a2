//! Tokens of the admin API: create and revoke. Only commands do that; no token makes another.

use super::check_unused;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::house_act::{self, HouseAct, HouseSubject};
use crate::table::needs::RowName;
use crate::value::text::clean;
use crate::{Act, NewToken, Refusal, RevokeToken, Token};

/// The words of the acts.
const CREATE: &str = "create_token";
const REVOKE: &str = "revoke_token";

fn create(rows: &mut Rows, new: &NewToken) -> Result<Token, Refusal> {
    let known = rows.house_act(new.act.operation);
    if let Some((CREATE, HouseSubject::Token(token))) = known.map(|act| (&*act.act, act.of)) {
        return rows.api_token(token).cloned();
    }
    check_unused(rows, new.act.operation)?;
    new.check()?;
    if rows.api_token(new.id).is_ok() {
        let text = format!("token id {} is taken", new.id);
        return Err(Refusal::NotApplicable(text));
    }
    if has_label(rows, &new.label) {
        return Err(Refusal::NotApplicable(format!(
            "there is, or was, a token {:?}: acts name tokens by their labels, so choose another",
            new.label
        )));
    }
    let token = new.token();
    write(
        rows,
        &new.act,
        CREATE,
        &token,
        house_act::created_token(new).to_string(),
    );
    rows.tables.put(token.clone());
    Ok(token)
}

/// Whether a token has this label, or had it.
fn has_label(rows: &Rows, label: &str) -> bool {
    rows.tables
        .iter::<Token>()
        .any(|token| token.label == label)
}

fn revoke(rows: &mut Rows, RevokeToken { token, act }: &RevokeToken) -> Result<Token, Refusal> {
    let id = *token;
    let known = rows.house_act(act.operation);
    if known.is_some_and(|known| known.act == REVOKE && known.of == HouseSubject::Token(id)) {
        return rows.api_token(id).cloned();
    }
    check_unused(rows, act.operation)?;
    let mut token = rows.api_token(id)?.clone();
    token.is_revoked = true;
    write(rows, act, REVOKE, &token, "{}".to_owned());
    rows.tables.put(token.clone());
    Ok(token)
}

fn write(rows: &mut Rows, act: &Act, word: &str, token: &Token, details: String) {
    rows.append_house_act(
        HouseAct {
            seq: 0,
            at: act.at,
            actor: act.actor.clone(),
            act: word.to_owned(),
            of: HouseSubject::Token(token.id),
            operation: act.operation,
            details,
        },
        house_act::state_of_token(token),
    );
}

impl LedgerOperation for NewToken {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        let label = RowName::TokenLabel(self.label.clone());
        Needs::of_house(self.act.operation).with([RowName::Token(self.id), label])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        create(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        // A label with this character is refused.
        clean(&mut self.act.actor);
    }
}

impl LedgerOperation for RevokeToken {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs::of_house(self.act.operation).with([RowName::Token(self.token)])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        revoke(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}
