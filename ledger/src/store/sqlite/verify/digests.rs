//! Anchors of earlier versions: digests over all rows in order, compared in a single walk for any number of anchors.

use rusqlite::{Connection, Result};

use crate::book::anchor::{Anchor, Digests, Mark};

const JOURNAL: &str =
    "SELECT hash FROM entries WHERE position > ?1 AND position <= ?2 ORDER BY position";
const AUDIT: &str =
    "SELECT hash FROM audit WHERE position > ?1 AND position <= ?2 ORDER BY position";

/// Compares a ledger with the digests in anchors of earlier versions: one fault for each digest that does not match.
pub(super) fn check_digests(conn: &Connection, anchors: &[Anchor]) -> Result<Vec<String>> {
    let digests: Vec<&Digests> = anchors
        .iter()
        .filter_map(|anchor| {
            if let Anchor::Digests(digests) = anchor {
                Some(digests)
            } else {
                None
            }
        })
        .collect();
    let mut faults = Vec::new();
    for (what, sql, of) in [
        (
            "entries",
            JOURNAL,
            (|digests| digests.entries) as fn(&Digests) -> Mark,
        ),
        ("administrative acts", AUDIT, |digests| digests.audit),
    ] {
        let mut wanted: Vec<(Mark, &str)> = digests
            .iter()
            .map(|digests| (of(digests), digests.at.as_str()))
            .collect();
        wanted.sort_by_key(|(mark, _)| mark.count);
        let newest = wanted.last().map_or(0, |(mark, _)| mark.count);
        let mut wanted = wanted.into_iter().peekable();
        let mut compare = |reached: &Mark| {
            while let Some((mark, at)) = wanted.next_if(|(mark, _)| mark.count <= reached.count) {
                if mark != *reached {
                    faults.push(format!(
                        "anchor of {at}: the {} {what} it covers are not those in the ledger",
                        mark.count
                    ));
                }
            }
        };
        let mut reached = Mark::START;
        compare(&reached);
        extend(conn, sql, newest, &mut reached, compare)?;
        let missing = wanted.map(|(mark, at)| {
            format!(
                "anchor of {at}: covers {} {what}, the ledger has fewer",
                mark.count
            )
        });
        faults.extend(missing);
    }
    Ok(faults)
}

/// Adds the rows after `mark`, as far as any digest reaches.
fn extend(
    conn: &Connection,
    sql: &str,
    newest: i64,
    mark: &mut Mark,
    mut reached: impl FnMut(&Mark),
) -> Result<()> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([mark.count, newest])?;
    while let Some(row) = rows.next()? {
        mark.add(&row.get(0)?);
        reached(mark);
    }
    Ok(())
}
