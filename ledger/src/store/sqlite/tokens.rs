//! Tokens of the admin API, acts on them and kept answers in a file: what a batch reads and writes of them, and what others read.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::batch::{Batch, BatchTables, Changed};
use super::rows::{
    Columns, HOUSE_HEAD, select_answer, select_house_act, select_token, select_token_day,
};
use super::statements::Sql;
use super::vouchers;
use crate::batch::answer::{AnswerId, KeptAnswer};
use crate::batch::needs::Needs;
use crate::batch::rows::{CachedRow, Rows};
use crate::book::head::HouseHead;
use crate::book::house_act::{ChainedHouseAct, HouseBook, HouseSubject};
use crate::store::token_rows::{self, role_code};
use crate::{HouseAct, SecretHash, Token, TokenDay, TokenToday, UtcDay};

fn token(row: &Row<'_>) -> Result<Token> {
    Ok(token_rows::token(&mut Columns::of(row))?)
}

fn token_day(row: &Row<'_>) -> Result<TokenDay> {
    Ok(token_rows::token_day(&mut Columns::of(row))?)
}

fn house_act(row: &Row<'_>) -> Result<ChainedHouseAct> {
    Ok(token_rows::house_act(&mut Columns::of(row))?)
}

fn answer(row: &Row<'_>) -> Result<(AnswerId, KeptAnswer)> {
    Ok(token_rows::answer(&mut Columns::of(row))?)
}

impl Batch<'_> {
    /// Reads what an operation needs of tokens and answers.
    pub(super) fn fetch_of_tokens(&mut self, needs: &Needs<'_>) -> Result<()> {
        let statements = &mut self.tables.statements;
        if let Some(id) = needs.api_token {
            let read = statements.get(Sql::Token)?;
            if let Some(found) = read.query_row([id], token).optional()? {
                self.rows.api_tokens.insert(id, CachedRow::stored(found));
            }
            let since = TokenToday::since(self.rows.today()).number();
            let read = statements.get(Sql::TokenDays)?;
            for found in read.query_map(params![id, since], token_day)? {
                let found = found?;
                let place = (found.token, found.day);
                self.rows.token_days.insert(place, CachedRow::stored(found));
            }
        }
        if let Some(label) = needs.api_label {
            let read = statements.get(Sql::TokenByLabel)?;
            let found = read.query_row([label], |row| row.get(0)).optional()?;
            self.rows.api_labels.extend(found);
        }
        if let Some(operation) = needs.house_act {
            let read = statements.get(Sql::HouseAct)?;
            if let Some(found) = read.query_row([operation], house_act).optional()? {
                let of = found.act.of;
                self.rows.house_acts.insert(operation, found);
                if let HouseSubject::Token(of) = of {
                    let read = statements.get(Sql::Token)?;
                    if let Some(found) = read.query_row([of], token).optional()? {
                        self.rows.api_tokens.insert(of, CachedRow::stored(found));
                    }
                }
            }
            let read = statements.get(Sql::HouseHead)?;
            let found = read.query_row([], house_head).optional()?;
            self.rows.house_head = found.unwrap_or_default();
        }
        if let Some(id) = needs.answer {
            let read = statements.get(Sql::Answer)?;
            let found = read.query_row([SecretHash(id.0)], answer).optional()?;
            self.rows.answers.extend(found);
        }
        Ok(())
    }
}

impl BatchTables<'_> {
    /// Writes what has changed of tokens and answers.
    pub(super) fn of_tokens(&mut self, rows: &Rows) -> Result<()> {
        for (token, was_stored) in rows.changed_tokens() {
            if was_stored {
                let values = params![token.id, token.is_revoked];
                self.statements.get(Sql::UpdateToken)?.execute(values)?;
            } else {
                let values = params![
                    token.id,
                    token.label,
                    role_code(token.role),
                    token.daily,
                    token.expires_at,
                    token.is_revoked,
                    token.secret,
                    token.created_at,
                    token.created_by,
                ];
                self.statements.get(Sql::InsertToken)?.execute(values)?;
            }
            self.mark(Changed::Anything);
        }
        for day in rows.changed_token_days() {
            self.statements.get(Sql::PutTokenDay)?.execute(params![
                day.token,
                day.day.number(),
                day.booked,
                day.payments,
                day.customers,
                day.keys,
                day.reissues,
                day.reversed,
                day.reversed_payments,
                day.unapplied,
            ])?;
            self.mark(Changed::Anything);
        }
        if let Some(forgotten) = rows.changes.forget_answers {
            let forget = self.statements.get(Sql::ForgetAnswers)?;
            forget.execute([forgotten])?;
        }
        for (id, kept) in rows.new_answers() {
            self.statements.get(Sql::InsertAnswer)?.execute(params![
                id.0,
                kept.token,
                kept.at,
                kept.operation,
                kept.body,
                kept.answer.status,
                kept.answer.body,
            ])?;
            self.mark(Changed::Anything);
        }
        Ok(())
    }

    /// Appends the acts that belong to no customer; what they are on is written.
    pub(super) fn of_house(&mut self, rows: &Rows) -> Result<()> {
        for ChainedHouseAct { act, state, hash } in rows.new_house_acts() {
            let (token, lot) = token_rows::subject(act.of);
            self.statements.get(Sql::InsertHouseAct)?.execute(params![
                act.seq,
                act.at,
                act.actor,
                act.act,
                token,
                lot,
                act.operation,
                act.details,
                state,
                hash,
            ])?;
        }
        Ok(())
    }
}

fn house_head(row: &Row<'_>) -> Result<HouseHead> {
    let (seq, SecretHash(hash)) = (row.get(0)?, row.get(1)?);
    Ok(HouseHead { seq, hash })
}

/// The end of the chain of acts that belong to no customer.
pub(super) fn head(conn: &Connection) -> Result<HouseHead> {
    let found = conn
        .prepare_cached(HOUSE_HEAD)?
        .query_row([], house_head)
        .optional()?;
    Ok(found.unwrap_or_default())
}

pub(super) fn find(conn: &Connection, secret: SecretHash) -> Result<Option<Token>> {
    conn.prepare_cached(concat!(select_token!(), " WHERE t.secret = ?1"))?
        .query_row([secret], token)
        .optional()
}

pub(super) fn all(conn: &Connection) -> Result<Vec<Token>> {
    conn.prepare_cached(concat!(select_token!(), " ORDER BY t.created_at, t.id"))?
        .query_map([], token)?
        .collect()
}

pub(super) fn days(conn: &Connection, since: UtcDay) -> Result<Vec<TokenDay>> {
    conn.prepare_cached(concat!(
        select_token_day!(),
        " WHERE d.day >= ?1 ORDER BY d.token, d.day"
    ))?
    .query_map([since.number()], token_day)?
    .collect()
}

pub(super) fn acts(conn: &Connection) -> Result<Vec<HouseAct>> {
    Ok(book(conn)?
        .acts
        .into_iter()
        .map(|chained| chained.act)
        .collect())
}

/// Everything that acts of the house tell of, and these acts.
pub(super) fn book(conn: &Connection) -> Result<HouseBook> {
    let acts = conn
        .prepare(concat!(select_house_act!(), " ORDER BY seq"))?
        .query_map([], house_act)?
        .collect::<Result<_>>()?;
    Ok(HouseBook {
        tokens: all(conn)?,
        token_days: days(conn, UtcDay::default())?,
        lots: vouchers::lots(conn)?,
        vouchers: vouchers::all(conn)?,
        acts,
    })
}

pub(super) fn answers(conn: &Connection) -> Result<Vec<(AnswerId, KeptAnswer)>> {
    conn.prepare(select_answer!())?
        .query_map([], answer)?
        .collect()
}
