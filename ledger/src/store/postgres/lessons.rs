//! What targets have taught, in a database: what a batch writes of it, and how all of it is read.

use super::link::Link;
use super::readers::Readers;
use super::rows::Columns;
use super::trouble::TransactionTrouble;
use super::writes::{TableWrite, Write};
use crate::batch::changes::{Changes, TaughtChange};
use crate::store::lesson_rows::{self, EXCESS, LESSON};
use crate::store::rows::number;
use crate::value::lesson::FULL;
use crate::{LedgerError, Taught};

/// Adds what is new, in its order, or removes what is forgotten.
pub(super) fn taught<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    for change in &changes.taught {
        match change {
            TaughtChange::Added(taught) => teach(taught, writes),
            TaughtChange::Forgotten(target) => {
                for table in ["lessons", "excesses"] {
                    let gone = TableWrite::of(table, std::slice::from_ref(target));
                    writes.push(gone.text("target", String::clone).delete());
                }
            }
        }
    }
}

fn teach<'b>(Taught { lessons, excesses }: &'b Taught, writes: &mut Vec<Write<'b>>) {
    if !lessons.is_empty() {
        let rows: Vec<_> = lessons.iter().collect();
        let table = TableWrite::of("lessons", &rows)
            .text("target", |lesson| lesson.target.as_str())
            .text("class", |lesson| lesson.class.as_str())
            .number("tokens", |lesson| number(lesson.tokens))
            .number("millis", |lesson| number(lesson.millis))
            .number("theirs", |lesson| number(lesson.theirs))
            .number("ours", |lesson| number(lesson.ours))
            .number("facts", |lesson| lesson.facts.to_i64());
        let sum = |name: &str, weight: &str| {
            format!(
                "{name} = (t.{name} + excluded.{name}) / CASE WHEN t.{weight} + excluded.{weight} >= {FULL} THEN 2 ELSE 1 END"
            )
        };
        let sums = [
            sum("tokens", "tokens"),
            sum("millis", "tokens"),
            sum("theirs", "ours"),
            sum("ours", "ours"),
        ];
        writes.push(table.insert(&format!(
            " ON CONFLICT (target, class) DO UPDATE SET {}, facts = t.facts | excluded.facts",
            sums.join(", ")
        )));
    }
    if excesses.is_empty() {
        return;
    }
    let rows: Vec<_> = excesses.iter().collect();
    let old = TableWrite::of("excesses", &rows)
        .text("target", |excess| excess.target.as_str())
        .number("at", |excess| excess.forgets());
    writes.push(old.delete_where("t.target = u.target AND t.at <= u.at"));
    let table = TableWrite::of("excesses", &rows)
        .text("target", |excess| excess.target.as_str())
        .number("customer", |excess| excess.customer.to_i64())
        .number("tokens", |excess| number(excess.tokens))
        .number("at", |excess| excess.at.millis());
    writes.push(table.insert(
        " ON CONFLICT (target, customer) DO UPDATE SET tokens = greatest(t.tokens, excluded.tokens), at = greatest(t.at, excluded.at)",
    ));
}

pub(super) async fn read(readers: &Readers) -> Result<Taught, LedgerError> {
    readers.with(|link| async move { all(&link).await }).await
}

pub(super) async fn all(link: &Link) -> Result<Taught, TransactionTrouble> {
    let mut taught = Taught::default();
    let sql =
        format!("SELECT {LESSON} FROM lessons ORDER BY target COLLATE \"C\", class COLLATE \"C\"");
    for row in link.query(&sql, &[]).await? {
        let lesson = lesson_rows::lesson(&mut Columns::of(&row))?;
        taught.lessons.push(lesson);
    }
    let sql = format!("SELECT {EXCESS} FROM excesses ORDER BY target COLLATE \"C\", customer");
    for row in link.query(&sql, &[]).await? {
        let excess = lesson_rows::excess(&mut Columns::of(&row))?;
        taught.excesses.push(excess);
    }
    Ok(taught)
}
