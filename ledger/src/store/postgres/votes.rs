//! Votes on targets: read all at once, written as rows that replace their predecessors.

use super::batch::{Batch, Votes};
use super::link::Link;
use super::rows::{Columns, number};
use super::trouble::Trouble;
use super::writes::{Write, column, insert, write};
use crate::{Question, VOTE_DAYS, Vote};

/// Removes what is forgotten or has become too old, then writes what was cast.
pub(super) fn flush(batch: &Batch, writes: &mut Vec<Write>) {
    let Votes { cast, forgotten } = &batch.votes;
    let forgotten: Vec<&String> = forgotten.iter().collect();
    if !forgotten.is_empty() {
        let columns = vec![(
            "target",
            "text",
            column(&forgotten, |target| (*target).clone()),
        )];
        writes.push(write(
            "DELETE FROM votes WHERE target = ANY ($1::text[])".to_owned(),
            columns,
        ));
    }
    let rows: Vec<_> = cast.iter().collect();
    if rows.is_empty() {
        return;
    }
    let columns = || {
        vec![
            (
                "target",
                "text",
                column(&rows, |((target, ..), _)| target.clone()),
            ),
            (
                "question",
                "bigint",
                column(&rows, |((_, question, ..), _)| *question),
            ),
            ("day", "bigint", column(&rows, |((_, _, day, _), _)| *day)),
            ("key", "bigint", column(&rows, |((.., key), _)| *key)),
            (
                "value",
                "bigint",
                column(&rows, |(_, value)| number(**value)),
            ),
        ]
    };
    let sql = format!(
        "{} ON CONFLICT (target, question, day, key) DO UPDATE SET value = excluded.value",
        insert("votes", &columns())
    );
    writes.push(write(sql, columns()));
    let old = "DELETE FROM votes v USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS n (target, question, day) \
         WHERE v.target = n.target AND v.question = n.question AND v.day <= n.day";
    let columns = vec![
        (
            "target",
            "text",
            column(&rows, |((target, ..), _)| target.clone()),
        ),
        (
            "question",
            "bigint",
            column(&rows, |((_, question, ..), _)| *question),
        ),
        (
            "day",
            "bigint",
            column(&rows, |((_, _, day, _), _)| day.saturating_sub(VOTE_DAYS)),
        ),
    ];
    writes.push(write(old.to_owned(), columns));
}

pub(super) async fn read(link: &Link) -> Result<Vec<Vote>, Trouble> {
    let sql = "SELECT target, question, day, key, value FROM votes ORDER BY target COLLATE \"C\", question, day, key";
    let rows = link.query(sql, &[]).await?;
    let mut votes = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut columns = Columns::of(row);
        let (target, question): (String, i64) = (columns.take()?, columns.take()?);
        // A later version may ask more.
        let Some(question) = Question::of(question) else {
            continue;
        };
        votes.push(Vote {
            target,
            question,
            day: columns.take()?,
            key: columns.key()?,
            value: u64::try_from(columns.take::<i64>()?).unwrap_or_default(),
        });
    }
    Ok(votes)
}
