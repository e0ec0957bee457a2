//! Standbys: whether commits wait for one, how long they wait, and what is known of them.
//!
//! Every commit waits until a standby has it. The server decides how many standbys that takes (`synchronous_standby_names`);
//! this file only looks whether it waits for any, and whether enough of them are there. It never turns the waiting off.

use super::link::Link;
use super::lock::lock;
use super::rows::Columns;
use super::shared::Shared;
use super::trouble::Trouble;
use crate::{Durability, Standby};

/// Begins a batch that waits until a standby has flushed it; every session's default.
pub(super) const BEGIN_FLUSHED: &str = "BEGIN";
/// Begins a batch that waits until a standby has it in its memory and the primary on its disk.
pub(super) const BEGIN_RECEIVED: &str = "BEGIN; SET LOCAL synchronous_commit = remote_write";

/// The last word on how renewals wait.
pub(super) const fn session(durability: Durability) -> &'static str {
    match durability {
        Durability::Prompt => "SET synchronous_commit = remote_write",
        Durability::Strict => "SET synchronous_commit = on",
    }
}

const LOOK: &str = "SELECT current_setting('synchronous_standby_names') <> '', \
     position('*' IN current_setting('synchronous_standby_names')) > 0, \
     coalesce(substring(current_setting('synchronous_standby_names') from '(?i)^\\s*(?:first|any)?\\s*(\\d+)\\s*\\(')::bigint, 1), \
     count(*) FILTER (WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming'), \
     count(*) FILTER (WHERE state IS NULL) FROM pg_stat_replication";

/// A running `pg_basebackup` streams as a standby does and keeps nothing: a commit that only it has confirmed is lost with the
/// primary.
const ANYBODY: &str = "synchronous_standby_names has a *, which a running pg_basebackup answers to as well: \
     name the standbys instead, each by its cluster_name";

/// Looks whether commits wait for standbys, and whether enough of them are there. Reads only, so it waits for nobody.
pub(super) async fn look(link: &Link, allow_single: bool) -> Result<Standby, Trouble> {
    let rows = link.query(LOOK, &[]).await?;
    let row = rows.first().ok_or_else(|| Trouble::Failed("the database says nothing of its standbys".to_owned()))?;
    let mut columns = Columns::of(row);
    let (waits, for_anybody): (bool, bool) = (columns.take()?, columns.take()?);
    let (needed, streaming, hidden): (i64, i64, i64) = (columns.take()?, columns.take()?, columns.take()?);
    Ok(if for_anybody { Standby::Missing(ANYBODY.to_owned()) } else { judge(waits, needed, streaming, hidden, allow_single) })
}

/// Notes what is known of the standbys, and says it when it has changed.
pub(super) fn note(shared: &Shared, standby: Standby) {
    let mut stats = lock(&shared.stats);
    if stats.standby == standby {
        return;
    }
    match &standby {
        Standby::Missing(why) => tracing::error!(why, "no standby: selling stops"),
        Standby::Single => tracing::warn!("--allow-single: no standby has what is confirmed; for trials only"),
        Standby::Streaming(standbys) => tracing::info!(standbys, "commits wait for a standby"),
        Standby::Unused => {}
    }
    stats.standby = standby;
}

fn judge(waits: bool, needed: i64, streaming: i64, hidden: i64, allow_single: bool) -> Standby {
    match (waits, allow_single) {
        (false, true) => Standby::Single,
        (false, false) => Standby::Missing(
            "the database confirms commits that no standby has: set synchronous_standby_names on the primary, \
             or start with --allow-single to try things out"
                .to_owned(),
        ),
        // Rows of others are blank for a role that may not see them.
        (true, _) if streaming < needed && hidden > 0 => Standby::Missing(
            "this role may not see the standbys: as the database's administrator, GRANT pg_monitor to it".to_owned(),
        ),
        (true, _) if streaming < needed => Standby::Missing(format!(
            "no commit is confirmed: {streaming} of {needed} synchronous standbys stream from the primary; start them"
        )),
        (true, _) => Standby::Streaming(u64::try_from(streaming).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sold_on_is_a_standby_or_a_trial() {
        assert_eq!(judge(true, 1, 2, 0, false), Standby::Streaming(2));
        assert_eq!(judge(false, 1, 0, 0, true), Standby::Single);
        for (waits, needed, streaming, hidden, allow_single, said) in [
            (false, 1, 1, 0, false, "--allow-single"),
            (true, 1, 0, 0, false, "0 of 1"),
            (true, 2, 1, 0, true, "1 of 2"),
            (true, 1, 0, 1, false, "pg_monitor"),
        ] {
            let found = judge(waits, needed, streaming, hidden, allow_single);
            assert!(matches!(&found, Standby::Missing(why) if why.contains(said)), "{found:?}");
        }
    }
}
