//! Nodes of the fleet that have fallen silent: who renewed when, by this process's own clock, and ending those that are dead.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::link::Link;
use super::rows::Columns;
use super::trouble::TransactionTrouble;

/// A node that has not renewed for this long is dead.
// Longer than `LEASE`, after which a node has stopped selling by itself, so that nobody ends the holds of one that still sells. Each
// second more is one that the money of a dead node's requests stays held.
const SILENCE: Duration = Duration::from_secs(10);

/// What this node has seen of another node.
pub(super) struct NodeSighting {
    renewals: i64,
    since: Instant,
}

/// Records who has renewed, and returns nodes that have been silent for too long, with their last count.
pub(super) async fn observe(
    seen: &mut HashMap<i64, NodeSighting>,
    link: &Link,
    own: i64,
) -> Result<Vec<(i64, i64)>, TransactionTrouble> {
    let rows = link
        .query(
            "SELECT epoch, renewals FROM nodes WHERE ended IS NULL AND epoch <> $1",
            &[&own],
        )
        .await?;
    let now = Instant::now();
    let mut alive = HashMap::new();
    for row in rows {
        let mut columns = Columns::of(&row);
        let (epoch, renewals): (i64, i64) = (columns.take()?, columns.take()?);
        let since = seen
            .get(&epoch)
            .filter(|seen| seen.renewals == renewals)
            .map_or(now, |seen| seen.since);
        alive.insert(epoch, NodeSighting { renewals, since });
    }
    *seen = alive;
    let silent = |(epoch, seen): (&i64, &NodeSighting)| {
        (now.saturating_duration_since(seen.since) >= SILENCE).then_some((*epoch, seen.renewals))
    };
    Ok(seen.iter().filter_map(silent).collect())
}

/// Ends a silent node, unless it has renewed meanwhile. Waits for its open transactions.
pub(super) async fn reap(
    link: &Link,
    (epoch, renewals): (i64, i64),
) -> Result<(), TransactionTrouble> {
    let sql = "UPDATE nodes SET ended = now() FROM (SELECT epoch AS dead FROM nodes \
         WHERE epoch = $1 AND renewals = $2 AND ended IS NULL FOR UPDATE) d WHERE epoch = dead RETURNING epoch";
    match link.query(sql, &[&epoch, &renewals]).await {
        Ok(rows) if rows.is_empty() => Ok(()),
        Ok(_) => {
            tracing::warn!(
                epoch,
                "a gateway has been silent for ten seconds; it counts as dead, and its holds are ended"
            );
            Ok(())
        }
        Err(error) => match TransactionTrouble::from(error) {
            // Its last transaction is still open; the server will end it soon.
            TransactionTrouble::Retry(_) | TransactionTrouble::Busy(_) => Ok(()),
            trouble => Err(trouble),
        },
    }
}
