//! What a server says about itself when a session begins, and whether that is enough to sell by. Reads and judges; asks nothing.

use tokio_postgres::SimpleQueryRow;

use crate::{LedgerError, Standby};

/// The server process behind a connection. Its start time distinguishes it from a later process with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Backend {
    pub(super) pid: String,
    pub(super) started: String,
}

/// What a program wants of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerPurpose {
    /// To write: the primary.
    Write,
    /// To read: the primary, because a standby may be behind.
    Read,
    /// To read a standby, as it is.
    Standby,
}

/// What a session says about itself and its server. `tcp` tells whether the server's own connection is one, because a Unix socket
/// has no keepalives: behind a pooler it may be the pooler's.
pub(super) const INTRODUCE: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS clock, a.pid::text AS pid, a.backend_start::text AS started, pg_is_in_recovery()::text AS recovering, \
     current_setting('transaction_read_only') AS read_only, current_setting('cluster_name') AS name, \
     (SELECT system_identifier::text FROM pg_control_system()) AS system, \
     CASE WHEN pg_is_in_recovery() THEN coalesce((SELECT received_tli FROM pg_stat_wal_receiver), \
     (SELECT timeline_id FROM pg_control_checkpoint())) \
     ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END::text AS timeline, \
     CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver) THEN 0 \
     ELSE extract(epoch FROM now() - pg_last_xact_replay_timestamp()) END::bigint::text AS behind, \
     (a.client_port > 0)::text AS tcp, current_setting('tcp_keepalives_idle') || ' ' || current_setting('tcp_keepalives_interval') || ' ' || \
     current_setting('tcp_keepalives_count') || ' ' || current_setting('tcp_user_timeout') AS keepalives, s.* \
     FROM pg_stat_activity a, ";

/// A server's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerFacts {
    pub(super) backend: Backend,
    pub(super) is_standby: bool,
    pub(super) read_only: bool,
    /// Its `cluster_name`.
    pub(super) name: String,
    /// Distinguishes clusters: a standby has its primary's.
    pub(super) system: String,
    pub(super) timeline: u32,
    /// Seconds since what a standby last replayed; 0 if it has everything that it received.
    pub(super) behind: u64,
    /// Its clock, milliseconds since 1970.
    pub(super) clock: i64,
    pub(super) tcp: bool,
    pub(super) keepalives: String,
    pub(super) standbys: ReplicationAnswer,
}

impl ServerFacts {
    /// Reads the row of [`INTRODUCE`].
    pub(super) fn of(row: &SimpleQueryRow) -> Self {
        let text = |name: &str| {
            row.try_get(name)
                .ok()
                .flatten()
                .unwrap_or_default()
                .to_owned()
        };
        let is = |name: &str| matches!(text(name).as_str(), "true" | "t" | "on");
        let number = |name: &str| text(name).parse().unwrap_or_default();
        Self {
            backend: Backend {
                pid: text("pid"),
                started: text("started"),
            },
            is_standby: is("recovering"),
            read_only: is("read_only"),
            name: text("name"),
            system: text("system"),
            timeline: u32::try_from(number("timeline")).unwrap_or_default(),
            behind: u64::try_from(number("behind")).unwrap_or_default(),
            clock: number("clock"),
            tcp: is("tcp"),
            keepalives: text("keepalives"),
            standbys: ReplicationAnswer {
                waits: is("waits"),
                for_anybody: is("for_anybody"),
                needed: number("needed"),
                streaming: number("streaming"),
                hidden: number("hidden"),
            },
        }
    }

    pub(super) fn suits(&self, purpose: ServerPurpose) -> bool {
        match purpose {
            ServerPurpose::Write => !self.is_standby && !self.read_only,
            ServerPurpose::Read => !self.is_standby,
            ServerPurpose::Standby => self.is_standby,
        }
    }

    /// Whether its commits wait for standbys that are there.
    pub(super) fn has_standby(&self, allow_single: bool) -> bool {
        judge(&self.standbys, allow_single).is_ok()
    }
}

/// Whether commits wait for standbys, and how many stream.
pub(super) const LOOK: &str = "SELECT current_setting('synchronous_standby_names') <> '' AS waits, \
     position('*' IN current_setting('synchronous_standby_names')) > 0 AS for_anybody, \
     coalesce(substring(current_setting('synchronous_standby_names') from '(?i)^\\s*(?:first|any)?\\s*(\\d+)\\s*\\(')::bigint, 1) \
     AS needed, count(*) FILTER (WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming') AS streaming, \
     count(*) FILTER (WHERE state IS NULL) AS hidden FROM pg_stat_replication";

/// The server's answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReplicationAnswer {
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

/// What a server says, if it is enough to sell by; otherwise why not, and what ends that.
pub(super) fn judge(
    seen: &ReplicationAnswer,
    allow_single: bool,
) -> Result<Standby, (String, &'static str)> {
    let ReplicationAnswer {
        waits,
        for_anybody,
        needed,
        streaming,
        hidden,
    } = *seen;
    let (why, remedy) = match (waits, allow_single) {
        (false, true) => return Ok(Standby::Single),
        (false, false) => (
            "the database confirms commits that no standby has".to_owned(),
            "set synchronous_standby_names on the primary, or start with --allow-single to try things out",
        ),
        (true, _) if for_anybody => (
            "synchronous_standby_names has a *, which a running pg_basebackup answers to as well"
                .to_owned(),
            "name the standbys instead, each by its cluster_name",
        ),
        // The rows of others are blank for a role that may not see them.
        (true, _) if streaming < needed && hidden > 0 => (
            "this role may not see the standbys".to_owned(),
            "as the database's administrator, GRANT pg_monitor to it",
        ),
        (true, _) if streaming < needed => (
            format!(
                "no commit is confirmed: {streaming} of {needed} synchronous standbys stream from the primary"
            ),
            "start them, or, if one of them was promoted, fence this server and start none of its standbys; docs/FLEET.md",
        ),
        (true, _) => {
            return Ok(Standby::Streaming(
                u64::try_from(streaming).unwrap_or_default(),
            ));
        }
    };
    Err((why, remedy))
}

/// How many milliseconds the clock of a command or a console may be ahead of the database's. A gateway sells up to half a minute off,
/// because its entries are dated by the database's clock then.
const CLOCK_AHEAD: i64 = 10_000;
/// Refuses to write with a clock that is ahead of the database's: what it dates would lie in the future.
pub(super) fn refuse_clock(facts: &ServerFacts) -> Result<(), LedgerError> {
    // Read after the database's, so a slow answer makes no difference.
    let ahead = super::now().millis().saturating_sub(facts.clock);
    if ahead <= CLOCK_AHEAD {
        return Ok(());
    }
    Err(LedgerError::unusable(format!(
        "this machine's clock is {} s ahead of the database's; set it right, nothing was changed",
        ahead / 1_000
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sold_on_is_a_standby_or_a_trial() {
        let two = ReplicationAnswer {
            waits: true,
            for_anybody: false,
            needed: 1,
            streaming: 2,
            hidden: 0,
        };
        assert_eq!(judge(&two, false), Ok(Standby::Streaming(2)));
        assert_eq!(
            judge(
                &ReplicationAnswer {
                    waits: false,
                    streaming: 0,
                    ..two
                },
                true
            ),
            Ok(Standby::Single)
        );
        for (seen, allow_single, said) in [
            (
                ReplicationAnswer {
                    waits: false,
                    streaming: 1,
                    ..two
                },
                false,
                "--allow-single",
            ),
            (
                ReplicationAnswer {
                    for_anybody: true,
                    ..two
                },
                false,
                "pg_basebackup",
            ),
            (
                ReplicationAnswer {
                    for_anybody: true,
                    ..two
                },
                true,
                "pg_basebackup",
            ),
            (
                ReplicationAnswer {
                    streaming: 0,
                    ..two
                },
                false,
                "0 of 1",
            ),
            (
                ReplicationAnswer {
                    needed: 2,
                    streaming: 1,
                    ..two
                },
                true,
                "1 of 2",
            ),
            (
                ReplicationAnswer {
                    streaming: 0,
                    hidden: 1,
                    ..two
                },
                false,
                "pg_monitor",
            ),
        ] {
            let (why, remedy) = judge(&seen, allow_single).unwrap_err();
            assert!(format!("{why}; {remedy}").contains(said), "{why}; {remedy}");
        }
    }
}
