//! Which gateway of a fleet asks a target itself: a lease on the place, renewed by asking. The others are told what it found.
//!
//! No money moves by it. If two gateways asked at the same time, a target would only be asked twice.

use super::link::Link;
use super::readers::Readers;
use super::rows::Columns;
use super::trouble::TransactionTrouble;
use crate::store::rows::RowColumns as _;
use crate::{LedgerError, ProbeLease, TargetFinding};

/// How long the gateway that asks keeps its lease after it has asked. It asks every five seconds while there is a reason to, and
/// another one takes over soon after it has stopped.
const LEASE: &str = "7 seconds";

/// Takes or renews the lease on a place; otherwise what its owner found last.
pub(super) async fn lease(
    readers: &Readers,
    place: &str,
    epoch: i64,
) -> Result<ProbeLease, LedgerError> {
    readers
        .with(|link| async move { take(&link, place, epoch).await })
        .await
}

async fn take(link: &Link, place: &str, epoch: i64) -> Result<ProbeLease, TransactionTrouble> {
    let sql = format!(
        "INSERT INTO probe_leases (place, epoch, asked_at) VALUES ($1, $2, now()) ON CONFLICT (place) DO UPDATE \
         SET epoch = excluded.epoch, asked_at = excluded.asked_at WHERE probe_leases.epoch = excluded.epoch \
         OR probe_leases.asked_at < now() - interval '{LEASE}' OR NOT EXISTS \
         (SELECT 1 FROM nodes n WHERE n.epoch = probe_leases.epoch AND n.ended IS NULL) RETURNING epoch"
    );
    if !link.query(&sql, &[&place, &epoch]).await?.is_empty() {
        return Ok(ProbeLease::Ours);
    }
    let sql = "SELECT (extract(epoch FROM told_at) * 1000000)::bigint, found, \
         (extract(epoch FROM now() - told_of) * 1000)::bigint, (extract(epoch FROM now() - told_at) * 1000)::bigint \
         FROM probe_leases WHERE place = $1 AND told_at IS NOT NULL";
    let rows = link.query(sql, &[&place]).await?;
    let Some(row) = rows.first() else {
        return Ok(ProbeLease::Theirs(None));
    };
    let mut columns = Columns::of(row);
    Ok(ProbeLease::Theirs(Some(TargetFinding {
        number: columns.number()?,
        found: columns.read()?,
        asked_ms: columns.number()?,
        found_ms: columns.number()?,
    })))
}

/// Tells what the latest request found, unless another gateway has taken the lease meanwhile.
pub(super) async fn tell(
    readers: &Readers,
    place: &str,
    found: &str,
    epoch: i64,
) -> Result<(), LedgerError> {
    let sql = "UPDATE probe_leases SET found = $3, told_at = clock_timestamp(), told_of = asked_at WHERE place = $1 AND epoch = $2";
    readers
        .with(|link| async move {
            link.query(sql, &[&place, &epoch, &found]).await?;
            Ok(())
        })
        .await
}
