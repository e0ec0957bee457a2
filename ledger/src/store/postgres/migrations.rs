//! The schema with which ledgers on PostgreSQL begin, the steps that lead on from it, and the checks before a database is used.
//!
//! All steps of a ledger are one transaction under a lock that ends with it. A published file under `schema/` never changes again.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient};

use super::rows::Columns;
use super::trouble::{cause, words};
use crate::store::copy::{CopyIdentity, MOVED, MOVED_AWAY};
use crate::store::opening::too_old;
use crate::store::rows::RowColumns as _;
use crate::{Cause, Fault, LedgerError, OpenMode, OperationId, TroubleKind};

/// The schema with which ledgers begin. Older ones are refused.
const BASE: i32 = 14;
const BASE_SQL: &str = include_str!("schema/14.sql");
/// The schema version of this program: `BASE`, and one for each step.
pub(super) const VERSION: i32 = 28;
/// What leads on from the base, `schema/15.sql` first.
pub(super) const STEPS: [&str; 14] = [
    include_str!("schema/15.sql"),
    include_str!("schema/16.sql"),
    include_str!("schema/17.sql"),
    include_str!("schema/18.sql"),
    include_str!("schema/19.sql"),
    include_str!("schema/20.sql"),
    include_str!("schema/21.sql"),
    include_str!("schema/22.sql"),
    include_str!("schema/23.sql"),
    include_str!("schema/24.sql"),
    include_str!("schema/25.sql"),
    include_str!("schema/26.sql"),
    include_str!("schema/27.sql"),
    include_str!("schema/28.sql"),
];
/// A lock number that only this program uses.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7378697629483820646)";
/// Ends the epochs of gateways: the next statement of one that was only frozen finds that out.
pub(super) const END_ALL: &str = "UPDATE nodes SET ended = now() WHERE ended IS NULL";
/// A gateway that renewed its lease this recently is still running; the others find a dead one after ten seconds.
// Longer than `SILENCE` with the round in which somebody looks, so a gateway that the others still wait for counts as running.
pub(super) const ALIVE: Duration = Duration::from_secs(15);
const OLDEST_SERVER: i32 = 130_000;

/// Ensures that the database's ledger has this version, and returns its identity.
pub(super) async fn prepare(client: &mut Client, mode: OpenMode) -> Result<[u8; 16], LedgerError> {
    check_server(client).await?;
    if mode == OpenMode::ReadOnly {
        return match version(client).await? {
            // One that was moved away can still be read.
            SchemaState::Ledger(VERSION) | SchemaState::Moved(VERSION) => identity(client).await,
            SchemaState::Ledger(other) | SchemaState::Moved(other) => Err(other_version(other)),
            SchemaState::Empty => Err(missing()),
            SchemaState::Foreign => Err(foreign()),
        };
    }
    let found = version(client).await?;
    match found {
        SchemaState::Ledger(VERSION) => return identity(client).await,
        SchemaState::Ledger(other) if !(BASE..=VERSION).contains(&other) => {
            return Err(other_version(other));
        }
        SchemaState::Moved(_) => {
            return Err(LedgerError::unusable(format!("this ledger {MOVED_AWAY}")));
        }
        SchemaState::Empty => return Err(missing()),
        SchemaState::Foreign => return Err(foreign()),
        SchemaState::Ledger(_) => {}
    }
    migrate(client, &STEPS).await?;
    identity(client).await
}

pub(super) async fn check_server(client: &Client) -> Result<(), LedgerError> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), \
             current_setting('fsync')::bool",
            &[],
        )
        .await
        .map_err(|error| LedgerError::Unusable(cause(error)))?;
    let mut columns = Columns::of(&row);
    let (server, encoding, safe): (i32, String, bool) =
        (columns.take()?, columns.take()?, columns.take()?);
    if server < OLDEST_SERVER {
        return Err(LedgerError::unusable(
            "the server is older than PostgreSQL 13",
        ));
    }
    if encoding != "UTF8" {
        return Err(LedgerError::unusable(format!(
            "the database's encoding is {encoding}; create one with ENCODING 'UTF8'"
        )));
    }
    if !safe {
        tracing::warn!("the server runs with fsync = off: a power cut can destroy the ledger");
    }
    Ok(())
}

/// Whether the database is empty.
pub(super) async fn is_empty(client: &Client) -> Result<bool, LedgerError> {
    Ok(matches!(version(client).await?, SchemaState::Empty))
}

/// Why the schema cannot be made or changed.
pub(super) fn failed(error: tokio_postgres::Error) -> LedgerError {
    let denied = error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
    let remedy = if denied {
        "; give the ledger a database that its role owns"
    } else {
        ""
    };
    let words = format!("cannot create the schema: {}{remedy}", words(&error));
    LedgerError::unusable(Cause::in_words(words, error))
}

enum SchemaState {
    Empty,
    Foreign,
    Ledger(i32),
    /// Of this version, and marked as moved to another store.
    Moved(i32),
}

async fn version(client: &impl GenericClient) -> Result<SchemaState, LedgerError> {
    let found = client
        .query_one(
            "SELECT to_regclass('identity') IS NOT NULL AND to_regclass('accounts') IS NOT NULL, \
             (SELECT count(*) FROM pg_class c WHERE c.relnamespace = to_regnamespace(current_schema()) AND c.relkind IN ('r', 'p'))",
            &[],
        )
        .await
        .map_err(|error| LedgerError::Unusable(cause(error)))?;
    let mut columns = Columns::of(&found);
    let (ledger, tables): (bool, i64) = (columns.take()?, columns.take()?);
    if !ledger {
        return Ok(if tables == 0 {
            SchemaState::Empty
        } else {
            SchemaState::Foreign
        });
    }
    let row = client
        .query_opt("SELECT version FROM identity WHERE id = 1", &[])
        .await
        .map_err(|error| LedgerError::unusable(worded("the ledger cannot be read", error)))?;
    row.map_or(Ok(SchemaState::Foreign), |row| {
        let version = Columns::of(&row).take()?;
        Ok(match i32::checked_sub(version, MOVED) {
            Some(moved) if moved > 0 => SchemaState::Moved(moved),
            _ => SchemaState::Ledger(version),
        })
    })
}

/// Takes the steps that a ledger has not taken.
pub(super) async fn migrate(client: &mut Client, steps: &[&str]) -> Result<(), LedgerError> {
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.batch_execute(LOCK).await.map_err(failed)?;
    let mut version = match version(&transaction).await? {
        SchemaState::Ledger(version) => version,
        SchemaState::Empty => return Err(missing()),
        SchemaState::Foreign => return Err(foreign()),
        SchemaState::Moved(_) => {
            return Err(LedgerError::unusable(format!("this ledger {MOVED_AWAY}")));
        }
    };
    // Gateways of the older version neither start nor renew meanwhile; the epochs of frozen ones end with the change.
    transaction
        .batch_execute("LOCK TABLE nodes IN SHARE MODE")
        .await
        .map_err(failed)?;
    refuse_gateways(&transaction).await?;
    transaction.batch_execute(END_ALL).await.map_err(failed)?;
    let taken = usize::try_from(version.saturating_sub(BASE)).unwrap_or(usize::MAX);
    for step in steps.iter().skip(taken) {
        transaction.batch_execute(step).await.map_err(failed)?;
        version = version.saturating_add(1);
    }
    transaction
        .execute("UPDATE identity SET version = $1", &[&version])
        .await
        .map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

/// Refuses a ledger that a gateway serves, and names it. For who holds the lock that keeps gateways from renewing.
pub(super) async fn refuse_gateways(client: &impl GenericClient) -> Result<(), LedgerError> {
    let sql = "SELECT coalesce(string_agg(name || ' (version ' || version || ')', ', '), '') FROM nodes \
         WHERE ended IS NULL AND renewed_at > now() - make_interval(secs => $1)";
    let row = client.query_one(sql, &[&ALIVE.as_secs_f64()]).await;
    let row = row.map_err(|error| LedgerError::Unusable(cause(error)))?;
    let names: String = Columns::of(&row).take()?;
    if names.is_empty() {
        return Ok(());
    }
    Err(LedgerError::unusable(format!(
        "the ledger is served by {names}; stop every gateway first, or wait 15 s after one that died"
    )))
}

/// Why a program goes on no more with a ledger that it opened when its schema was [`VERSION`].
pub(super) fn changed(version: i32) -> Fault {
    let (cause, remedy) = if version > MOVED {
        (
            format!("this ledger {MOVED_AWAY}"),
            "start the gateway with the new one",
        )
    } else {
        (
            format!(
                "the ledger was brought to schema {version} by another version of this program while it was open here"
            ),
            "use that version",
        )
    };
    Fault::new(TroubleKind::Displaced, cause, remedy)
}

/// Refuses a database that is not empty.
pub(super) async fn refuse_content(client: &impl GenericClient) -> Result<(), LedgerError> {
    match version(client).await? {
        SchemaState::Empty => Ok(()),
        SchemaState::Foreign => Err(foreign()),
        SchemaState::Ledger(_) | SchemaState::Moved(_) => Err(LedgerError::misplaced(
            "the database is not empty: it has a ledger, and one is made only where nothing is; name another database, or, if this \
             ledger is yours, leave --new-ledger out",
        )),
    }
}

/// Creates the schema in an empty database, inside the caller's transaction.
pub(super) async fn make(
    client: &impl GenericClient,
    identity: &CopyIdentity,
) -> Result<(), LedgerError> {
    client.batch_execute(LOCK).await.map_err(failed)?;
    refuse_content(client).await?;
    for part in [BASE_SQL].iter().chain(&STEPS) {
        client.batch_execute(part).await.map_err(failed)?;
    }
    let CopyIdentity {
        ledger,
        generation,
        made_at,
    } = identity;
    let sql = "INSERT INTO identity VALUES (1, $1, $2, $3, $4)";
    client
        .execute(
            sql,
            &[&ledger.as_slice(), generation, &made_at.millis(), &VERSION],
        )
        .await
        .map_err(failed)?;
    Ok(())
}

async fn identity(client: &Client) -> Result<[u8; 16], LedgerError> {
    let row = client
        .query_one("SELECT ledger FROM identity WHERE id = 1", &[])
        .await;
    let row = row.map_err(|error| LedgerError::Unusable(cause(error)))?;
    Ok(Columns::of(&row).read::<OperationId>()?.to_bytes())
}

fn worded(what: &str, error: tokio_postgres::Error) -> Cause {
    Cause::in_words(format!("{what}: {}", words(&error)), error)
}

fn missing() -> LedgerError {
    LedgerError::misplaced(
        "there is no ledger in this database; name yours with --ledger, or make a new one, once: farebox serve --new-ledger, or \
         farebox keys create --new-ledger",
    )
}

fn foreign() -> LedgerError {
    LedgerError::unusable(
        "the database contains tables of another program; give the ledger its own database",
    )
}

fn other_version(version: i32) -> LedgerError {
    if version > VERSION {
        LedgerError::unusable(format!(
            "the ledger has schema {version}, written by a newer version of this program"
        ))
    } else if version < BASE {
        LedgerError::unusable(format!("the ledger has {}", too_old(version)))
    } else {
        LedgerError::unusable(format!(
            "the ledger has the older schema {version}; start a gateway of this version first"
        ))
    }
}
