//! Who keeps a commit or a renewal waiting: a second connection asks, which takes no lock and waits for none.
//!
//! It is opened when something has been under way for long, and closed when nothing is. It also finds out when connections can be
//! opened again, if the last one could not: nobody else may ask for one for hours.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;

use super::connector::Connector;
use super::faults;
use super::link::Link;
use super::rows::Columns;
use super::state::Shared;
use super::trouble::TransactionTrouble;
use crate::store::trouble_record::{LateWork, LedgerWork};
use crate::{Blocker, Cause, Fault, TroubleKind};

/// Between two looks at what is under way.
const EVERY: Duration = Duration::from_millis(200);
/// Between two tries to connect while nobody else tries.
const TRY_AGAIN: Duration = Duration::from_millis(300);
/// Work is asked about before it is told as late, so that its cause is told with it.
// A look every 200 ms and the answer of a server that is well fit in before `LATE`.
const ASKED_AFTER: Duration = Duration::from_millis(700);
/// How long the second connection is waited for.
const ANSWER: Duration = Duration::from_millis(800);
/// The same where all servers are asked, each of which is waited for.
const ANSWER_OF_ALL: Duration = Duration::from_secs(3);
/// How much of a query is shown.
const SHOWN: &str = "100";

/// Asks for as long as the gateway runs.
pub(super) async fn watch(shared: Arc<Shared>, connector: Connector) {
    let mut link = None;
    loop {
        tokio::time::sleep(EVERY).await;
        let late = shared.record.late(ASKED_AFTER);
        let closed = shared.record.stands(LedgerWork::Connect);
        if late.is_empty() && !closed {
            link = None;
            continue;
        }
        if late.is_empty() {
            tokio::time::sleep(TRY_AGAIN).await;
        }
        // Only a new one tells whether there can be a new one.
        let known = link.take().filter(|_| !closed);
        let patience = if closed { ANSWER_OF_ALL } else { ANSWER };
        let asked = ask((known, closed), &connector, &late);
        let asked = tokio::time::timeout(patience, asked).await;
        let explain = |fault: &Fault| {
            for late in &late {
                shared.record.explain(late.number, Some(fault.clone()));
            }
        };
        match asked {
            Ok(Ok((usable, found))) => {
                link = Some(usable);
                // What was known of a session that has ended meanwhile stays.
                for (late, fault) in late.iter().zip(found) {
                    if fault.is_some() {
                        shared.record.explain(late.number, fault);
                    }
                }
            }
            Ok(Err(why)) => explain(&faults::of(&why)),
            Err(_) => explain(&faults::silent(&connector.used())),
        }
    }
}

/// Why each of these is late, as far as the server knows. Asked over this connection, another one to the server in use, or, `anew`, one
/// that is opened as any other is, which the record hears of.
async fn ask(
    (known, anew): (Option<Link>, bool),
    connector: &Connector,
    late: &[LateWork],
) -> Result<(Link, Vec<Option<Fault>>), Cause> {
    let link = match known {
        Some(link) if !link.client.is_closed() => link,
        _ if anew => connector.connect().await?,
        _ => connector.connect_beside().await?,
    };
    let mut found = Vec::with_capacity(late.len());
    for late in late {
        let fault = match late.process {
            Some(process) => of_process(&link, process)
                .await
                .map_err(TransactionTrouble::cause)?,
            None => None,
        };
        found.push(fault);
    }
    Ok((link, found))
}

/// A process of the server, and what it does.
#[derive(Debug, Default, Clone)]
struct Process {
    pid: i32,
    user: String,
    program: String,
    state: String,
    waits_for: String,
    query: String,
}

impl Process {
    fn of(columns: &mut Columns<'_>) -> Result<Self, TransactionTrouble> {
        Ok(Self {
            pid: columns.take()?,
            user: columns.take()?,
            program: columns.take()?,
            state: columns.take()?,
            waits_for: columns.take()?,
            query: columns.take()?,
        })
    }

    fn words(&self) -> String {
        let program = match self.program.as_str() {
            "" => String::new(),
            program => format!("{program}, "),
        };
        format!(
            "process {} ({program}user {}, {}: {})",
            self.pid, self.user, self.state, self.query
        )
    }

    fn blocker(&self, table: &str) -> Blocker {
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Blocker {
            pid: u32::try_from(self.pid).ok(),
            name: filled(&self.user),
            table: filled(table),
            query: filled(&self.query),
            file: None,
        }
    }
}

/// A process of ours, whoever keeps it waiting, and whoever keeps these waiting.
async fn of_process(link: &Link, process: i32) -> Result<Option<Fault>, TransactionTrouble> {
    let sql = format!(
        "WITH RECURSIVE waits (pid, depth) AS (SELECT $1::int, 0 UNION \
         SELECT b.pid, w.depth + 1 FROM waits w CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b (pid) WHERE w.depth < 5) \
         SELECT a.pid, coalesce(a.usename::text, ''), left(a.application_name, 40), coalesce(a.state, 'not to be seen'), \
         coalesce(a.wait_event_type || ' ' || a.wait_event, ''), \
         left(regexp_replace(coalesce(a.query, ''), '[[:space:][:cntrl:]]+', ' ', 'g'), {SHOWN}), \
         coalesce((SELECT min(l.relation::regclass::text) FROM pg_locks l WHERE l.pid = $1 AND NOT l.granted), '') \
         FROM (SELECT pid, max(depth) AS depth FROM waits GROUP BY pid) w JOIN pg_stat_activity a ON a.pid = w.pid ORDER BY w.depth, a.pid"
    );
    let rows = link.query(&sql, &[&process]).await?;
    let mut table = String::new();
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        let process = Process::of(&mut columns)?;
        table = columns.take()?;
        Ok::<_, TransactionTrouble>(process)
    };
    let processes: Vec<Process> = rows.iter().map(read).collect::<Result<_, _>>()?;
    match processes.as_slice() {
        // It has ended: its answer is lost, or on its way.
        [] => Ok(None),
        [own] => alone(link, own).await,
        [_, others @ ..] => {
            let root = others.last().cloned().unwrap_or_default();
            // A session that was given up waits itself, and everybody behind it.
            if let Some(fault) = alone(link, &root).await?.filter(|_| is_waiting(&root)) {
                return Ok(Some(fault));
            }
            Ok(Some(behind(others, &table)))
        }
    }
}

fn is_waiting(process: &Process) -> bool {
    process.waits_for == "IPC SyncRep" || process.waits_for.starts_with("IO ")
}

/// Others have locked it. The last one waits for nobody.
fn behind(others: &[Process], table: &str) -> Fault {
    let words: Vec<String> = others.iter().rev().map(Process::words).collect();
    let what = match table {
        "" => "a row".to_owned(),
        table => format!("the table {table}"),
    };
    let cause = format!(
        "commits wait for a lock on {what}, held up by {}",
        words.join(", for which waits ")
    );
    let last = others.last().map_or(0, |last| last.pid);
    let remedy = format!("let it finish, or end it: SELECT pg_terminate_backend({last})");
    let blockers = others.iter().rev().map(|other| other.blocker(table));
    Fault::new(TroubleKind::Blocked, cause, remedy).by(blockers.collect())
}

/// Nobody is in its way: a standby, a disk, or the server itself takes long.
async fn alone(link: &Link, own: &Process) -> Result<Option<Fault>, TransactionTrouble> {
    let fault = match own.waits_for.as_str() {
        "IPC SyncRep" => {
            let cause = format!(
                "commits wait for a standby that does not confirm them: {}",
                standbys(link).await?
            );
            let remedy = "wake or start the standby, or mend its disk or network; never end a process that waits for one (docs/FLEET.md)";
            Fault::new(TroubleKind::Uncertain, cause, remedy).by(vec![own.blocker("")])
        }
        waits if waits.starts_with("IO ") || waits.starts_with("LWLock WAL") => {
            let cause = format!(
                "commits wait for the disk of the database's server: process {} ({waits})",
                own.pid
            );
            let remedy =
                "look at that disk (iostat -x 1, the server's log): it is slow, or does not answer";
            Fault::new(TroubleKind::Slow, cause, remedy).by(vec![own.blocker("")])
        }
        // It has done its part, or waits for ours.
        "" | "Client ClientRead" if own.state != "active" => return Ok(None),
        waits => {
            let waits = if waits.is_empty() { "at work" } else { waits };
            let cause = format!(
                "the database takes long: process {} ({waits}: {})",
                own.pid, own.query
            );
            let remedy = "look at the load of the database's server";
            Fault::new(TroubleKind::Slow, cause, remedy).by(vec![own.blocker("")])
        }
    };
    Ok(Some(fault))
}

/// The standbys that the server sees.
async fn standbys(link: &Link) -> Result<String, TransactionTrouble> {
    let sql = "SELECT coalesce(string_agg(application_name || ' (' || coalesce(state, 'not to be seen') || ')', ', ' ORDER BY application_name), \
         'none') FROM pg_stat_replication";
    let rows = link.query(sql, &[]).await?;
    let row = rows.first();
    row.map_or(Ok(String::new()), |row| Columns::of(row).take())
        .map_err(TransactionTrouble::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_waits_ends_at_whoever_waits_for_nobody() {
        let process = |pid, query: &str| Process {
            pid,
            user: "ada".to_owned(),
            program: "psql".to_owned(),
            state: "idle in transaction".to_owned(),
            query: query.to_owned(),
            ..Process::default()
        };
        let others = [
            process(8, "ALTER TABLE accounts"),
            process(7, "SELECT * FROM accounts"),
        ];
        let fault = behind(&others, "accounts");
        assert_eq!(
            fault.cause,
            "commits wait for a lock on the table accounts, held up by process 7 (psql, user ada, idle in transaction: SELECT * FROM \
             accounts), for which waits process 8 (psql, user ada, idle in transaction: ALTER TABLE accounts)"
        );
        assert!(fault.remedy.contains("pg_terminate_backend(7)"));
        let told = &fault.blockers[0];
        assert_eq!(
            (told.pid, told.table.as_deref()),
            (Some(7), Some("accounts"))
        );
    }
}
