//! Defaults of the house in a database: what batches and reads bring in line with them.

use futures_util::future::try_join_all;

use super::link::Link;
use super::rows::{self, Columns, SELECT_HOLD};
use super::trouble::TransactionTrouble;
use crate::batch::rows::{Rows, StoredSpending};
use crate::store::default_rows::{FoundOwner, HasDefaults};
use crate::store::hour_rows::spent_hour;
use crate::{Scope, Timestamp};

/// What counts in the caps of a key or customer as charged since an hour, and all that it holds.
async fn spending(
    link: &Link,
    of: Scope,
    since: Timestamp,
) -> Result<StoredSpending, TransactionTrouble> {
    let (keys, number) = match of {
        Scope::Key(key) => (
            "IN (SELECT $1::bigint UNION ALL SELECT id FROM keys WHERE counts_in = $1)",
            key.to_i64(),
        ),
        Scope::Customer(customer) => (
            "IN (SELECT id FROM keys WHERE customer = $1)",
            customer.to_i64(),
        ),
    };
    let hours = format!(
        "SELECT hour, slug, least(sum(charge), 9223372036854775807)::bigint FROM usage WHERE key {keys} AND hour >= $2 \
         GROUP BY hour, slug"
    );
    let hours = link.query(&hours, &[&number, &since.hour()]).await?;
    let hours = hours.iter().map(|row| spent_hour(&mut Columns::of(row)));
    let hours = hours.collect::<Result<_, _>>()?;
    let holds = format!("{SELECT_HOLD} WHERE h.key {keys}");
    let holds = link.query(&holds, &[&number]).await?;
    let holds = holds.iter().map(rows::stored_hold);
    Ok(StoredSpending {
        hours,
        holds: holds.collect::<Result<_, _>>()?,
    })
}

/// Brings the keys and customers of a batch in line. They are locked, so what they spent and hold stays as it is read here; once for each of
/// them after a default has come.
pub(super) async fn fit(link: &Link, rows: &mut Rows) -> Result<(), TransactionTrouble> {
    let keys = rows.keys.keys().copied().map(Scope::Key);
    let customers = rows.customers.keys().copied().map(Scope::Customer);
    let all: Vec<Scope> = keys.chain(customers).collect();
    let behind = all.into_iter().filter_map(|of| Some((of, rows.fit(of)?)));
    let behind: Vec<_> = behind.collect();
    let stored = behind.iter().map(|(of, since)| spending(link, *of, *since));
    let stored = try_join_all(stored).await?;
    for ((of, _), stored) in behind.into_iter().zip(stored) {
        rows.follow(of, stored);
    }
    Ok(())
}

/// Keys or customers as they are shown. One that has not been used since a default came counts what its statement finds, a moment later
/// than the rest was read.
pub(super) async fn fitted<T: HasDefaults>(
    link: &Link,
    found: &[tokio_postgres::Row],
) -> Result<Vec<T>, TransactionTrouble> {
    let mut all = Vec::with_capacity(found.len());
    for row in found {
        let mut shown = FoundOwner::<T>::read(&mut Columns::of(row))?;
        for (of, since) in shown.fit() {
            let stored = spending(link, of, since).await?;
            shown.follow(of, stored);
        }
        all.push(shown.one);
    }
    Ok(all)
}
