//! Tokens of the admin API, acts on them and kept answers in a database: what a batch writes of them, and what is read of them.

use tokio_postgres::Row;

use super::link::Link;
use super::readers::Readers;
use super::rows::Columns;
use super::trouble::TransactionTrouble;
use super::writes::{TableWrite, Write};
use crate::batch::answer::{AnswerId, KeptAnswer};
use crate::batch::rows::Rows;
use crate::book::token_act::{ChainedTokenAct, TokenBook};
use crate::store::rows::Decoded;
use crate::store::token_rows::{
    self, answer_columns, millis, role_code, sold, token_act_columns, token_columns,
};
use crate::{Amount, LedgerError, SecretHash, Token, TokenAct, TokenId};

/// Selects what [`token`] takes; a condition may follow.
pub(super) const SELECT_TOKEN: &str = concat!("SELECT ", token_columns!(), " FROM tokens t");
/// Selects what [`token_act`] takes; a condition may follow.
pub(super) const SELECT_TOKEN_ACT: &str =
    concat!("SELECT ", token_act_columns!(), " FROM token_acts");
/// Selects what [`answer`] takes; a condition may follow.
pub(super) const SELECT_ANSWER: &str = concat!("SELECT ", answer_columns!(), " FROM answers");

pub(super) fn token(row: &Row) -> Decoded<Token> {
    token_rows::token(&mut Columns::of(row))
}

pub(super) fn token_act(row: &Row) -> Decoded<ChainedTokenAct> {
    token_rows::token_act(&mut Columns::of(row))
}

pub(super) fn answer(row: &Row) -> Decoded<(AnswerId, KeptAnswer)> {
    token_rows::answer(&mut Columns::of(row))
}

/// What has changed of tokens and answers.
pub(super) fn of_tokens(rows: &Rows, writes: &mut Vec<Write>) {
    for is_new in [true, false] {
        let of = rows.changed_tokens();
        let found: Vec<&Token> = of
            .filter(|(_, was_stored)| *was_stored != is_new)
            .map(|(token, _)| token)
            .collect();
        if found.is_empty() {
            continue;
        }
        let table = TableWrite::of("tokens", &found)
            .number("id", |token| token.id.to_i64())
            .number("revoked", |token| i64::from(token.is_revoked))
            .number("sold_on", |token| sold(token).0)
            .number("sold", |token| sold(token).1);
        if !is_new {
            writes.push(table.update("id"));
            continue;
        }
        let table = table
            .text("label", |token| token.label.clone())
            .number("role", |token| role_code(token.role))
            .number("daily", |token| token.daily.map(Amount::picos))
            .number("expires_at", |token| millis(token.expires_at))
            .bytes("secret", |token| token.secret.0.to_vec())
            .number("created_at", |token| token.created_at.millis())
            .text("created_by", |token| token.created_by.clone());
        writes.push(table.insert(""));
    }
    token_acts(rows, writes);
    answers(rows, writes);
}

fn token_acts(rows: &Rows, writes: &mut Vec<Write>) {
    let found: Vec<&ChainedTokenAct> = rows.new_token_acts().collect();
    if found.is_empty() {
        return;
    }
    let table = TableWrite::of("token_acts", &found)
        .number("seq", |chained| chained.act.seq)
        .number("at", |chained| chained.act.at.millis())
        .text("actor", |chained| chained.act.actor.clone())
        .text("act", |chained| chained.act.act.clone())
        .number("token", |chained| chained.act.token.to_i64())
        .bytes("operation", |chained| {
            chained.act.operation.to_bytes().to_vec()
        })
        .text("details", |chained| chained.act.details.clone())
        .text("state", |chained| chained.state.clone())
        .bytes("hash", |chained| chained.hash.to_vec());
    writes.push(table.insert(""));
}

fn answers(rows: &Rows, writes: &mut Vec<Write>) {
    if let Some(forgotten) = rows.changes.forget_answers {
        writes.push(Write {
            sql: "DELETE FROM answers WHERE at <= $1".to_owned(),
            columns: vec![Box::new(forgotten.millis())],
        });
    }
    let found: Vec<(&AnswerId, &KeptAnswer)> = rows.new_answers().collect();
    if found.is_empty() {
        return;
    }
    let table = TableWrite::of("answers", &found)
        .bytes("id", |(id, _)| id.0.to_vec())
        .number("token", |(_, kept)| kept.token.map(TokenId::to_i64))
        .number("at", |(_, kept)| kept.at.millis())
        .bytes("operation", |(_, kept)| {
            kept.operation.map(|id| id.to_bytes().to_vec())
        })
        .bytes("body", |(_, kept)| kept.body.0.to_vec())
        .number("status", |(_, kept)| i64::from(kept.answer.status))
        .text("answer", |(_, kept)| kept.answer.body.clone());
    writes.push(table.insert(""));
}

pub(super) async fn find(
    readers: &Readers,
    secret: SecretHash,
) -> Result<Option<Token>, LedgerError> {
    let found = readers
        .with(|link| async move {
            let sql = format!("{SELECT_TOKEN} WHERE t.secret = $1");
            let rows = link.query(&sql, &[&secret.0.as_slice()]).await?;
            Ok(rows.first().map(token).transpose()?)
        })
        .await?;
    Ok(found)
}

pub(super) async fn all(link: &Link) -> Result<Vec<Token>, TransactionTrouble> {
    let sql = format!("{SELECT_TOKEN} ORDER BY t.created_at, t.id");
    let rows = link.query(&sql, &[]).await?;
    rows.iter().map(|row| Ok(token(row)?)).collect()
}

pub(super) async fn acts(link: &Link) -> Result<Vec<TokenAct>, TransactionTrouble> {
    let chained = chain(link).await?.into_iter();
    Ok(chained.map(|chained| chained.act).collect())
}

async fn chain(link: &Link) -> Result<Vec<ChainedTokenAct>, TransactionTrouble> {
    let sql = format!("{SELECT_TOKEN_ACT} ORDER BY seq");
    let rows = link.query(&sql, &[]).await?;
    rows.iter().map(|row| Ok(token_act(row)?)).collect()
}

/// Everything about tokens.
pub(super) async fn book(link: &Link) -> Result<TokenBook, TransactionTrouble> {
    let (tokens, acts) = (all(link).await?, chain(link).await?);
    Ok(TokenBook { tokens, acts })
}

pub(super) async fn kept(link: &Link) -> Result<Vec<(AnswerId, KeptAnswer)>, TransactionTrouble> {
    let rows = link.query(SELECT_ANSWER, &[]).await?;
    rows.iter().map(|row| Ok(answer(row)?)).collect()
}
