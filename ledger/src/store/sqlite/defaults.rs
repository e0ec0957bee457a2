//! Defaults of the house in a file: what the writer and reads bring in line with them.
//!
//! That is done once for a key or customer, when it is next used, so its statements are not kept.

use rusqlite::{Connection, Result, params};

use super::rows::{self, select_hold};
use crate::batch::rows::StoredSpending;
use crate::store::default_rows::{FoundOwner, HasDefaults};
use crate::{Scope, Timestamp};

/// What was charged in each hour since one. The hours first: there are more rows of other keys than hours.
macro_rules! spent_since {
    ($keys:literal, $key:literal, $which:literal) => {
        concat!(
            "WITH RECURSIVE used (hour) AS (SELECT min(hour) FROM usage WHERE hour >= ?2
             UNION ALL SELECT (SELECT min(hour) FROM usage WHERE hour > used.hour) FROM used WHERE used.hour IS NOT NULL)
             SELECT u.hour, s.slug, sum(u.charge) FROM used CROSS JOIN ",
            $keys,
            "usage u ON u.hour = used.hour AND u.key = ",
            $key,
            " JOIN slugs s ON s.id = u.slug ",
            $which,
            "GROUP BY u.hour, u.slug"
        )
    };
}

const OF_KEY: [&str; 2] = [
    spent_since!(
        "(SELECT ?1 AS id UNION ALL SELECT id FROM keys WHERE counts_in = ?1) k CROSS JOIN ",
        "k.id",
        ""
    ),
    concat!(
        select_hold!(),
        " WHERE h.key = ?1 OR h.key IN (SELECT id FROM keys WHERE counts_in = ?1)"
    ),
];
const OF_CUSTOMER: [&str; 2] = [
    spent_since!("keys k CROSS JOIN ", "k.id", "WHERE k.customer = ?1 "),
    concat!(
        select_hold!(),
        " WHERE h.key IN (SELECT id FROM keys WHERE customer = ?1)"
    ),
];

/// What counts in the caps of a key or customer as charged since an hour, and all that it holds.
pub(super) fn spending(conn: &Connection, of: Scope, since: Timestamp) -> Result<StoredSpending> {
    let ([hours, holds], number) = match of {
        Scope::Key(key) => (OF_KEY, key.to_i64()),
        Scope::Customer(customer) => (OF_CUSTOMER, customer.to_i64()),
    };
    let mut hours = conn.prepare_cached(hours)?;
    let hours = hours.query_map(params![number, since.hour()], rows::spent_hour)?;
    let hours = hours.collect::<Result<_>>()?;
    let mut holds = conn.prepare_cached(holds)?;
    let holds = holds.query_map([number], rows::stored_hold)?;
    Ok(StoredSpending {
        hours,
        holds: holds.collect::<Result<_>>()?,
    })
}

/// A key or customer as it is shown. What it was read with is still under way, so that all belongs to one instant.
pub(super) fn fitted<T: HasDefaults>(conn: &Connection, mut shown: FoundOwner<T>) -> Result<T> {
    for (of, since) in shown.fit() {
        shown.follow(of, spending(conn, of, since)?);
    }
    Ok(shown.one)
}
