//! Tokens of the admin API, acts on them and kept answers in a database: what a batch writes of them, and what is read of them.

use tokio_postgres::Row;

use super::link::Link;
use super::readers::Readers;
use super::rows::Columns;
use super::trouble::TransactionTrouble;
use super::vouchers;
use super::writes::{TableWrite, Write, listed};
use crate::batch::answer::{AnswerId, KeptAnswer};
use crate::batch::rows::Rows;
use crate::book::head::HouseHead;
use crate::book::house_act::{ChainedHouseAct, HouseBook};
use crate::store::rows::{Decoded, RowColumns as _};
use crate::store::token_rows::{
    self, answer_columns, house_act_columns, millis, role_code, subject, token_columns,
    token_day_columns,
};
use crate::{Amount, HouseAct, LedgerError, SecretHash, Token, TokenDay, TokenId, UtcDay};

/// Selects what [`token`] takes; a condition may follow.
pub(super) const SELECT_TOKEN: &str = concat!("SELECT ", token_columns!(), " FROM tokens t");
/// Selects what [`token_day`] takes; a condition may follow.
pub(super) const SELECT_TOKEN_DAY: &str =
    concat!("SELECT ", token_day_columns!(), " FROM token_days d");
/// Selects what [`house_act`] takes; a condition may follow.
pub(super) const SELECT_HOUSE_ACT: &str =
    concat!("SELECT ", house_act_columns!(), " FROM house_acts");
/// Selects what [`answer`] takes; a condition may follow.
pub(super) const SELECT_ANSWER: &str = concat!("SELECT ", answer_columns!(), " FROM answers");

pub(super) fn token(row: &Row) -> Decoded<Token> {
    token_rows::token(&mut Columns::of(row))
}

pub(super) fn token_day(row: &Row) -> Decoded<TokenDay> {
    token_rows::token_day(&mut Columns::of(row))
}

pub(super) fn house_act(row: &Row) -> Decoded<ChainedHouseAct> {
    token_rows::house_act(&mut Columns::of(row))
}

pub(super) fn answer(row: &Row) -> Decoded<(AnswerId, KeptAnswer)> {
    token_rows::answer(&mut Columns::of(row))
}

/// What has changed of tokens and answers.
pub(super) fn of_tokens(rows: &Rows, writes: &mut Vec<Write<'_>>) {
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
            .number("revoked", |token| i64::from(token.is_revoked));
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
    days(rows, writes);
    answers(rows, writes);
}

fn days(rows: &Rows, writes: &mut Vec<Write<'_>>) {
    let found: Vec<&TokenDay> = rows.changed_token_days().collect();
    if found.is_empty() {
        return;
    }
    let table = TableWrite::of("token_days", &found)
        .number("token", |day| day.token.to_i64())
        .number("day", |day| day.day.number())
        .number("booked", |day| day.booked.picos())
        .number("payments", |day| day.payments)
        .number("customers", |day| day.customers)
        .number("keys", |day| day.keys)
        .number("reissues", |day| day.reissues)
        .number("reversed", |day| day.reversed.picos())
        .number("reversed_payments", |day| day.reversed_payments)
        .number("unapplied", |day| day.unapplied);
    let set = table
        .names()
        .skip(2)
        .map(|name| format!("{name} = excluded.{name}"));
    let again = format!(" ON CONFLICT (token, day) DO UPDATE SET {}", listed(set));
    writes.push(table.insert(&again));
}

/// Acts that belong to no customer, to append.
pub(super) fn of_house(rows: &Rows, writes: &mut Vec<Write<'_>>) {
    let found: Vec<&ChainedHouseAct> = rows.new_house_acts().collect();
    if found.is_empty() {
        return;
    }
    let table = TableWrite::of("house_acts", &found)
        .number("seq", |chained| chained.act.seq)
        .number("at", |chained| chained.act.at.millis())
        .text("actor", |chained| chained.act.actor.clone())
        .text("act", |chained| chained.act.act.clone())
        .number("token", |chained| subject(chained.act.of).0)
        .number("lot", |chained| subject(chained.act.of).1)
        .bytes("operation", |chained| {
            chained.act.operation.to_bytes().to_vec()
        })
        .text("details", |chained| chained.act.details.clone())
        .text("state", |chained| chained.state.clone())
        .bytes("hash", |chained| chained.hash.to_vec());
    writes.push(table.insert(""));
}

fn answers(rows: &Rows, writes: &mut Vec<Write<'_>>) {
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

/// The days of tokens since one.
pub(super) async fn days_since(
    link: &Link,
    since: UtcDay,
) -> Result<Vec<TokenDay>, TransactionTrouble> {
    let sql = format!("{SELECT_TOKEN_DAY} WHERE d.day >= $1 ORDER BY d.token, d.day");
    let rows = link.query(&sql, &[&since.number()]).await?;
    rows.iter().map(|row| Ok(token_day(row)?)).collect()
}

pub(super) async fn acts(link: &Link) -> Result<Vec<HouseAct>, TransactionTrouble> {
    let chained = chain(link).await?.into_iter();
    Ok(chained.map(|chained| chained.act).collect())
}

async fn chain(link: &Link) -> Result<Vec<ChainedHouseAct>, TransactionTrouble> {
    let sql = format!("{SELECT_HOUSE_ACT} ORDER BY seq");
    let rows = link.query(&sql, &[]).await?;
    rows.iter().map(|row| Ok(house_act(row)?)).collect()
}

/// The end of the chain of acts that belong to no customer.
pub(super) async fn head(link: &Link) -> Result<HouseHead, TransactionTrouble> {
    let sql = "SELECT seq, hash FROM house_acts ORDER BY seq DESC LIMIT 1";
    match link.query(sql, &[]).await?.first() {
        Some(row) => Ok(house_head(row)?),
        None => Ok(HouseHead::NONE),
    }
}

pub(super) fn house_head(row: &Row) -> Decoded<HouseHead> {
    let mut columns = Columns::of(row);
    let (seq, hash) = (columns.number()?, columns.hash()?);
    Ok(HouseHead { seq, hash })
}

/// Everything that acts of the house tell of, and these acts.
pub(super) async fn book(link: &Link) -> Result<HouseBook, TransactionTrouble> {
    Ok(HouseBook {
        tokens: all(link).await?,
        token_days: days_since(link, UtcDay::default()).await?,
        lots: vouchers::lots(link).await?,
        vouchers: vouchers::all(link).await?,
        acts: chain(link).await?,
    })
}

pub(super) async fn kept(link: &Link) -> Result<Vec<(AnswerId, KeptAnswer)>, TransactionTrouble> {
    let rows = link.query(SELECT_ANSWER, &[]).await?;
    rows.iter().map(|row| Ok(answer(row)?)).collect()
}
