//! Standbys: whether commits wait for one, how long, and what is known about them.
//!
//! Every commit waits until a standby has it. The server decides how many standbys that takes (`synchronous_standby_names`); this
//! file only checks whether it waits for any, and whether enough of them are there. It never turns the waiting off.

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

/// The session setting that decides how renewals wait.
pub(super) const fn session(durability: Durability) -> &'static str {
    match durability {
        Durability::Prompt => "SET synchronous_commit = remote_write",
        Durability::Strict => "SET synchronous_commit = on",
    }
}

pub(super) const LOOK: &str = "SELECT current_setting('synchronous_standby_names') <> '' AS waits, \
     position('*' IN current_setting('synchronous_standby_names')) > 0 AS for_anybody, \
     coalesce(substring(current_setting('synchronous_standby_names') from '(?i)^\\s*(?:first|any)?\\s*(\\d+)\\s*\\(')::bigint, 1) \
     AS needed, count(*) FILTER (WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming') AS streaming, \
     count(*) FILTER (WHERE state IS NULL) AS hidden FROM pg_stat_replication";

/// The server's answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Commits wait for standbys.
    pub(super) waits: bool,
    /// They wait for whatever streams. A running `pg_basebackup` streams and keeps nothing: a commit that only it has confirmed is
    /// lost with the primary.
    pub(super) for_anybody: bool,
    pub(super) needed: i64,
    pub(super) streaming: i64,
    /// Standbys that this role may not see.
    pub(super) hidden: i64,
}

/// Checks whether commits wait for standbys, and whether enough of them are there. It only reads, so it never waits for a lock.
pub(super) async fn look(link: &Link, allow_single: bool) -> Result<Standby, Trouble> {
    let rows = link.query(LOOK, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| Trouble::Failed("the database says nothing of its standbys".to_owned()))?;
    let mut columns = Columns::of(row);
    let (waits, for_anybody) = (columns.take()?, columns.take()?);
    let (needed, streaming, hidden) = (columns.take()?, columns.take()?, columns.take()?);
    Ok(judge(
        &Seen {
            waits,
            for_anybody,
            needed,
            streaming,
            hidden,
        },
        allow_single,
    ))
}

/// Records the state of the standbys, and logs it when it has changed.
pub(super) fn note(shared: &Shared, standby: Standby) {
    let mut stats = lock(&shared.stats);
    if stats.standby == standby {
        return;
    }
    match &standby {
        Standby::Missing(why) => tracing::error!(why, "no standby: selling stops"),
        Standby::Single => {
            tracing::warn!("--allow-single: no standby has what is confirmed; for trials only")
        }
        Standby::Streaming(standbys) => tracing::info!(standbys, "commits wait for a standby"),
        Standby::Unused => {}
    }
    stats.standby = standby;
}

/// Whether what a server says is enough to sell by.
pub(super) fn judge(seen: &Seen, allow_single: bool) -> Standby {
    let Seen {
        waits,
        for_anybody,
        needed,
        streaming,
        hidden,
    } = *seen;
    match (waits, allow_single) {
        (false, true) => Standby::Single,
        (false, false) => Standby::Missing(
            "the database confirms commits that no standby has: set synchronous_standby_names on the primary, \
             or start with --allow-single to try things out"
                .to_owned(),
        ),
        (true, _) if for_anybody => Standby::Missing(
            "synchronous_standby_names has a *, which a running pg_basebackup answers to as well: \
             name the standbys instead, each by its cluster_name"
                .to_owned(),
        ),
        // The rows of others are blank for a role that may not see them.
        (true, _) if streaming < needed && hidden > 0 => Standby::Missing(
            "this role may not see the standbys: as the database's administrator, GRANT pg_monitor to it".to_owned(),
        ),
        (true, _) if streaming < needed => Standby::Missing(format!(
            "no commit is confirmed: {streaming} of {needed} synchronous standbys stream from the primary; start them, or, if one of \
             them was promoted, fence this server and start none of its standbys"
        )),
        (true, _) => Standby::Streaming(u64::try_from(streaming).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sold_on_is_a_standby_or_a_trial() {
        let two = Seen {
            waits: true,
            for_anybody: false,
            needed: 1,
            streaming: 2,
            hidden: 0,
        };
        assert_eq!(judge(&two, false), Standby::Streaming(2));
        assert_eq!(
            judge(
                &Seen {
                    waits: false,
                    streaming: 0,
                    ..two
                },
                true
            ),
            Standby::Single
        );
        for (seen, allow_single, said) in [
            (
                Seen {
                    waits: false,
                    streaming: 1,
                    ..two
                },
                false,
                "--allow-single",
            ),
            (
                Seen {
                    for_anybody: true,
                    ..two
                },
                false,
                "pg_basebackup",
            ),
            (
                Seen {
                    for_anybody: true,
                    ..two
                },
                true,
                "pg_basebackup",
            ),
            (
                Seen {
                    streaming: 0,
                    ..two
                },
                false,
                "0 of 1",
            ),
            (
                Seen {
                    needed: 2,
                    streaming: 1,
                    ..two
                },
                true,
                "1 of 2",
            ),
            (
                Seen {
                    streaming: 0,
                    hidden: 1,
                    ..two
                },
                false,
                "pg_monitor",
            ),
        ] {
            let found = judge(&seen, allow_single);
            assert!(
                matches!(&found, Standby::Missing(why) if why.contains(said)),
                "{found:?}"
            );
        }
    }
}
