//! The one decoder of tokens, acts on them and kept answers, for both databases.

use super::rows::{Decoded, Malformed, RowColumns};
use crate::batch::answer::{AnswerId, ApiAnswer, KeptAnswer};
use crate::book::house_act::{ChainedHouseAct, HouseAct, HouseSubject};
use crate::{Amount, LotId, Timestamp, Token, TokenDay, TokenId, TokenRole, UtcDay};

/// What [`token`] takes, of `tokens t`.
macro_rules! token_columns {
    () => {
        "t.id, t.label, t.role, t.daily, t.expires_at, t.revoked, t.secret, t.created_at, t.created_by"
    };
}
pub(crate) use token_columns;

/// What [`token_day`] takes, of `token_days d`.
macro_rules! token_day_columns {
    () => {
        "d.token, d.day, d.booked, d.payments, d.customers, d.keys, d.reissues, d.reversed, d.reversed_payments, d.unapplied"
    };
}
pub(crate) use token_day_columns;

/// What [`house_act`] takes, of `house_acts`.
macro_rules! house_act_columns {
    () => {
        "seq, at, actor, act, token, lot, operation, details, state, hash"
    };
}
pub(crate) use house_act_columns;

/// What [`answer`] takes, of `answers`.
macro_rules! answer_columns {
    () => {
        "id, token, at, operation, body, status, answer"
    };
}
pub(crate) use answer_columns;

fn token_id(columns: &mut impl RowColumns) -> Decoded<TokenId> {
    let id = columns.maybe_token()?;
    id.ok_or(Malformed::Value("token's id"))
}

pub(crate) fn token(columns: &mut impl RowColumns) -> Decoded<Token> {
    Ok(Token {
        id: token_id(columns)?,
        label: columns.text()?,
        role: columns.code("role", role_of)?,
        daily: columns.maybe_number()?.map(Amount::from_picos),
        expires_at: columns.maybe_at()?,
        is_revoked: columns.number()? != 0,
        secret: columns.secret()?,
        created_at: columns.at()?,
        created_by: columns.text()?,
    })
}

pub(crate) fn token_day(columns: &mut impl RowColumns) -> Decoded<TokenDay> {
    Ok(TokenDay {
        token: token_id(columns)?,
        day: UtcDay(columns.number()?),
        booked: columns.amount()?,
        payments: columns.number()?,
        customers: columns.number()?,
        keys: columns.number()?,
        reissues: columns.number()?,
        reversed: columns.amount()?,
        reversed_payments: columns.number()?,
        unapplied: columns.number()?,
    })
}

pub(crate) fn house_act(columns: &mut impl RowColumns) -> Decoded<ChainedHouseAct> {
    Ok(ChainedHouseAct {
        act: HouseAct {
            seq: columns.number()?,
            at: columns.at()?,
            actor: columns.text()?,
            act: columns.text()?,
            of: subject_of(columns)?,
            operation: columns.operation()?,
            details: columns.text()?,
        },
        state: columns.text()?,
        hash: columns.hash()?,
    })
}

pub(crate) fn answer(columns: &mut impl RowColumns) -> Decoded<(AnswerId, KeptAnswer)> {
    Ok((
        AnswerId(columns.hash()?),
        KeptAnswer {
            token: columns.maybe_token()?,
            at: columns.at()?,
            operation: columns.maybe_operation()?,
            body: columns.secret()?,
            answer: ApiAnswer {
                status: columns.small()?,
                body: columns.text()?,
            },
        },
    ))
}

/// The next two columns: a token, or else a lot.
fn subject_of(columns: &mut impl RowColumns) -> Decoded<HouseSubject> {
    let (token, lot) = (columns.maybe_token()?, columns.maybe_number()?);
    match (token, lot.map(LotId::from_i64)) {
        (Some(token), None) => Ok(HouseSubject::Token(token)),
        (None, Some(Some(lot))) => Ok(HouseSubject::Lot(lot)),
        _ => Err(Malformed::Value("subject of an act")),
    }
}

/// The token and the lot of an act, for their columns: it is on one of them.
pub(crate) const fn subject(of: HouseSubject) -> (Option<i64>, Option<i64>) {
    match of {
        HouseSubject::Token(token) => (Some(token.to_i64()), None),
        HouseSubject::Lot(lot) => (None, Some(lot.to_i64())),
    }
}

/// A role as both databases store it.
pub(crate) const fn role_code(role: TokenRole) -> i64 {
    match role {
        TokenRole::Read => 1,
        TokenRole::Sell => 2,
        TokenRole::Manage => 3,
    }
}

fn role_of(code: i64) -> Option<TokenRole> {
    let mut all = TokenRole::ALL.into_iter();
    all.find(|role| role_code(*role) == code)
}

/// An instant as it is stored.
pub(crate) fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::millis)
}
