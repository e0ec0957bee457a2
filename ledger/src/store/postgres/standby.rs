//! Standbys: whether commits wait for one, how long, and what is known about them.
//!
//! Every commit waits until a standby has it. The server decides how many standbys that takes (`synchronous_standby_names`); this
//! file only checks whether it waits for any, and whether enough of them are there. It never turns the waiting off.

use super::connector::Connector;
use super::facts::{LOOK, ReplicationAnswer, judge};
use super::link::Link;
use super::rows::Columns;
use super::state::Shared;
use super::trouble::TransactionTrouble;
use crate::store::trouble_record::LedgerWork;
use crate::{Durability, Fault, LedgerError, Standby, TroubleKind, lock};

/// The standbys, or why none can be relied on and what ends that.
pub(super) type StandbyAnswer = Result<Standby, (String, &'static str)>;

/// Begins a batch that waits until a standby has flushed it; every session's default.
pub(super) const BEGIN_FLUSHED: &str = "BEGIN";
/// Begins a batch that waits until a standby has it in its memory and the primary on its disk.
pub(super) const BEGIN_RECEIVED: &str = "BEGIN; SET LOCAL synchronous_commit = remote_write";

/// The session setting that decides how renewals wait.
pub(super) const fn session(durability: Durability) -> &'static str {
    match durability {
        Durability::Prompt => "SET synchronous_commit = remote_write",
        Durability::Strict => "SET synchronous_commit = on",
    }
}

/// Checks whether commits wait for standbys, and whether enough of them are there. It only reads, so it never waits for a lock.
pub(super) async fn look(
    link: &Link,
    allow_single: bool,
) -> Result<StandbyAnswer, TransactionTrouble> {
    let rows = link.query(LOOK, &[]).await?;
    let row = rows.first().ok_or_else(|| {
        TransactionTrouble::Failed("the database says nothing of its standbys".into())
    })?;
    let mut columns = Columns::of(row);
    let (waits, for_anybody) = (columns.take()?, columns.take()?);
    let (needed, streaming, hidden) = (columns.take()?, columns.take()?, columns.take()?);
    Ok(judge(
        &ReplicationAnswer {
            waits,
            for_anybody,
            needed,
            streaming,
            hidden,
        },
        allow_single,
    ))
}

/// The standbys, or why nothing is to be written: without one its commit would never return.
pub(super) async fn require(
    link: &Link,
    connector: &Connector,
    allow_single: bool,
) -> Result<Standby, LedgerError> {
    let found = look(link, allow_single).await;
    found
        .map_err(TransactionTrouble::unusable)?
        .map_err(|(why, remedy)| {
            let others = connector.servers().to_fence();
            LedgerError::unusable(format!("{why}: {remedy}{others}"))
        })
}

/// Records the state of the standbys, and logs it when it has changed.
pub(super) fn note(shared: &Shared, found: StandbyAnswer) {
    let standby = match found {
        Ok(standby) => {
            shared.record.end(LedgerWork::Standby);
            standby
        }
        Err((why, remedy)) => {
            let cause = format!("nothing is sold: {why}");
            if (shared.record).set(
                LedgerWork::Standby,
                Fault::new(TroubleKind::Uncertain, cause, remedy),
            ) {
                tracing::error!(why, "no standby: selling stops");
            }
            Standby::Streaming(0)
        }
    };
    let mut stats = lock(&shared.stats);
    if stats.standby == standby {
        return;
    }
    match standby {
        Standby::Single => {
            tracing::warn!("--allow-single: no standby has what is confirmed; for trials only")
        }
        Standby::Streaming(standbys) if standbys > 0 => {
            tracing::info!(standbys, "commits wait for a standby")
        }
        Standby::Streaming(_) | Standby::Unused => {}
    }
    stats.standby = standby;
}
