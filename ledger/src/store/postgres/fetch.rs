//! First round trip of a batch: fence, lock the keys in order, read what the operations need.
//!
//! Everything is sent at once. Each statement has its own snapshot, taken after the locks are held, so it sees the newest rows of
//! locked keys. Of the locking statement, only the locked rows themselves can be trusted. A row whose key is not locked belongs to
//! a key that was skipped, or has appeared meanwhile; in the latter case the batch starts again.

use futures_util::future::join;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::batch::{Batch, KeySlot, Slot, Wanted};
use super::link::Link;
use super::rows::{
    self, Columns, SELECT_ACT, SELECT_ENTRY, SELECT_HOLD, SELECT_KEY, SELECT_SESSION,
};
use super::standby::{BEGIN_FLUSHED, BEGIN_RECEIVED};
use super::trouble::Trouble;
use crate::store::copy::MOVED_AWAY;
use crate::{KeyId, OperationId};

/// Holds that one transaction ends for dead nodes.
const RECOVERED_AT_ONCE: i64 = 500;

/// In place of the fence, for a program that is not a gateway: whether the ledger was moved meanwhile.
const NOT_MOVED: &str = "SELECT 1 FROM identity WHERE version < 1000000 AND $1::bigint = 0";
const FENCE: &str = "SELECT 1 FROM nodes WHERE epoch = $1 AND ended IS NULL FOR KEY SHARE";
const POSITIONS: &str =
    "SELECT nextval('positions'), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// What a batch does about keys that others have locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    Wait,
    /// Continues without them.
    Skip,
}

/// Locks the keys that hold operations name.
fn lock_of_holds(locked: Locked) -> String {
    let skip = if locked == Locked::Skip {
        " SKIP LOCKED"
    } else {
        ""
    };
    format!(
        "{SELECT_KEY} WHERE k.id = ANY (ARRAY(SELECT unnest($1::bigint[]) \
         UNION SELECT key FROM holds WHERE request = ANY ($2::bytea[]) \
         UNION SELECT key FROM entries WHERE operation = ANY ($3::bytea[]))) ORDER BY k.id FOR NO KEY UPDATE OF a, k{skip}"
    )
}

/// Locks the keys that any operation names.
fn lock_of_all() -> String {
    format!(
        "{SELECT_KEY} WHERE k.id = ANY (ARRAY(SELECT unnest($1::bigint[]) \
         UNION SELECT key FROM holds WHERE request = ANY ($2::bytea[]) \
         UNION SELECT key FROM entries WHERE operation = ANY ($3::bytea[]) \
         UNION SELECT key FROM audit WHERE operation = ANY ($4::bytea[]) \
         UNION SELECT e.key FROM refs r JOIN entries e ON e.operation = r.operation WHERE r.folded = ANY ($5::text[]) \
         UNION SELECT key FROM sessions WHERE token = ANY ($6::bytea[]) \
         UNION SELECT key FROM links WHERE token = ANY ($6::bytea[]))) ORDER BY k.id FOR NO KEY UPDATE OF a, k"
    )
}

/// The holds of dead nodes that this batch may end; their keys are locked with the rest.
pub(super) async fn add_dead(
    link: &Link,
    wanted: &mut Wanted,
) -> Result<Vec<OperationId>, Trouble> {
    let sql = "SELECT request, key FROM holds WHERE epoch = 0 OR epoch IN (SELECT epoch FROM nodes WHERE ended IS NOT NULL) \
         ORDER BY request LIMIT $1";
    let mut dead = Vec::new();
    for row in link.query(sql, &[&RECOVERED_AT_ONCE]).await? {
        let mut columns = Columns::of(&row);
        dead.push(columns.operation()?);
        wanted.keys.insert(columns.take()?);
    }
    wanted.holds.extend(&dead);
    wanted.entries.extend(&dead);
    Ok(dead)
}

/// The parameters of the statements.
struct Asked {
    keys: Vec<i64>,
    holds: Vec<Vec<u8>>,
    entries: Vec<Vec<u8>>,
    acts: Vec<Vec<u8>>,
    references: Vec<String>,
    tokens: Vec<Vec<u8>>,
}

impl Asked {
    fn of(wanted: &Wanted) -> Self {
        let ids = |ids: &std::collections::BTreeSet<OperationId>| {
            ids.iter().map(|id| id.to_bytes().to_vec()).collect()
        };
        Self {
            keys: wanted.keys.iter().copied().collect(),
            holds: ids(&wanted.holds),
            entries: ids(&wanted.entries),
            acts: ids(&wanted.acts),
            references: wanted.references.iter().cloned().collect(),
            tokens: wanted.tokens.iter().map(|token| token.to_vec()).collect(),
        }
    }

    fn is_of_holds_only(&self) -> bool {
        self.acts.is_empty() && self.references.is_empty() && self.tokens.is_empty()
    }
}

/// Begins a transaction, locks and reads. `epoch` is the node's, 0 for a program that is not a gateway. Only hold operations skip
/// locked keys.
pub(super) async fn fetch(
    link: &Link,
    wanted: &Wanted,
    ledger: [u8; 16],
    epoch: i64,
    locked: Locked,
) -> Result<Batch, Trouble> {
    let asked = Asked::of(wanted);
    let mut batch = Batch {
        ledger,
        epoch,
        ..Batch::default()
    };
    let (lock, lock_values) = if asked.is_of_holds_only() {
        (
            lock_of_holds(locked),
            vec![
                &asked.keys as &(dyn ToSql + Sync),
                &asked.holds,
                &asked.entries,
            ],
        )
    } else {
        let all: Vec<&(dyn ToSql + Sync)> = vec![
            &asked.keys,
            &asked.holds,
            &asked.entries,
            &asked.acts,
            &asked.references,
            &asked.tokens,
        ];
        (lock_of_all(), all)
    };
    let (fence, lock, positions) = (
        link.prepared(if epoch > 0 { FENCE } else { NOT_MOVED })
            .await?,
        link.prepared(&lock).await?,
        link.prepared(POSITIONS).await?,
    );
    let reads = Reads::prepare(link, &asked).await?;
    let client = &link.client;
    let begun = client.batch_execute(if wanted.flushed {
        BEGIN_FLUSHED
    } else {
        BEGIN_RECEIVED
    });
    let fence_values: [&(dyn ToSql + Sync); 1] = [&epoch];
    let fenced = client.query(&fence, &fence_values);
    let keys = client.query(&lock, &lock_values);
    let placed = client.query_one(&positions, &[]);
    // Polled in this order, and therefore sent in this order.
    let (begun, (fenced, (keys, (placed, read)))) = join(
        begun,
        join(fenced, join(keys, join(placed, reads.run(link, &asked)))),
    )
    .await;
    begun?;
    passes(&fenced?, epoch)?;
    for row in keys? {
        let (stored, traffic) = rows::stored_key(&row)?;
        let slot = KeySlot {
            traffic,
            is_new: false,
            account_changed: false,
            settings_changed: false,
            stored,
        };
        batch.keys.insert(slot.stored.key.id, slot);
    }
    let placed = placed?;
    let mut placed = Columns::of(&placed);
    (batch.position, batch.now) = (placed.take::<i64>()?.saturating_sub(1), placed.take()?);
    fill(&mut batch, &read?, locked)?;
    Ok(batch)
}

/// Whether this node is alive, and the ledger is still here.
fn passes(fenced: &[Row], epoch: i64) -> Result<(), Trouble> {
    match fenced.is_empty() {
        true if epoch > 0 => Err(Trouble::Fenced),
        true => Err(Trouble::Failed(format!("this ledger {MOVED_AWAY}"))),
        false => Ok(()),
    }
}

/// The statements that follow the locks, without those that have nothing to look for.
struct Reads(Vec<(What, tokio_postgres::Statement)>);

#[derive(Debug, Clone, Copy)]
enum What {
    Holds,
    Entries,
    EntriesByReference,
    Refunds,
    Acts,
    Sessions,
    Links,
}

impl What {
    fn sql(self) -> String {
        match self {
            Self::Holds => format!("{SELECT_HOLD} WHERE request = ANY ($1::bytea[])"),
            Self::Entries => format!("{SELECT_ENTRY} WHERE e.operation = ANY ($1::bytea[])"),
            Self::EntriesByReference => {
                format!(
                    "{SELECT_ENTRY} JOIN refs r ON r.operation = e.operation WHERE r.folded = ANY ($1::text[])"
                )
            }
            Self::Refunds => {
                "SELECT refunds, amount FROM entries WHERE refunds = ANY ($1::bytea[])".to_owned()
            }
            Self::Acts => format!("{SELECT_ACT} WHERE operation = ANY ($1::bytea[])"),
            Self::Sessions => format!("{SELECT_SESSION} WHERE token = ANY ($1::bytea[])"),
            Self::Links => {
                "SELECT token, key, expires FROM links WHERE token = ANY ($1::bytea[])".to_owned()
            }
        }
    }

    fn value(self, asked: &Asked) -> &(dyn ToSql + Sync) {
        match self {
            Self::Holds => &asked.holds,
            Self::Entries => &asked.entries,
            Self::EntriesByReference => &asked.references,
            Self::Refunds | Self::Acts => &asked.acts,
            Self::Sessions | Self::Links => &asked.tokens,
        }
    }
}

type Found = Vec<(What, Vec<Row>)>;

impl Reads {
    async fn prepare(link: &Link, asked: &Asked) -> Result<Self, Error> {
        let wanted = [
            (What::Holds, asked.holds.is_empty()),
            (What::Entries, asked.entries.is_empty()),
            (What::EntriesByReference, asked.references.is_empty()),
            (What::Refunds, asked.acts.is_empty()),
            (What::Acts, asked.acts.is_empty()),
            (What::Sessions, asked.tokens.is_empty()),
            (What::Links, asked.tokens.is_empty()),
        ];
        let mut statements = Vec::new();
        for (what, _) in wanted.into_iter().filter(|(_, nothing)| !nothing) {
            statements.push((what, link.prepared(&what.sql()).await?));
        }
        Ok(Self(statements))
    }

    async fn run(&self, link: &Link, asked: &Asked) -> Result<Found, Error> {
        let queries = self.0.iter().map(|(what, statement)| async move {
            let value: [&(dyn ToSql + Sync); 1] = [what.value(asked)];
            Ok((*what, link.client.query(statement, &value).await?))
        });
        futures_util::future::try_join_all(queries).await
    }
}

fn fill(batch: &mut Batch, found: &Found, locked: Locked) -> Result<(), Trouble> {
    for (what, rows) in found {
        for row in rows {
            match fill_one(batch, *what, row) {
                // A row of a skipped key, whose operation is skipped too.
                Err(Trouble::Retry(_)) if locked == Locked::Skip => {}
                filled => filled?,
            }
        }
    }
    Ok(())
}

fn fill_one(batch: &mut Batch, what: What, row: &Row) -> Result<(), Trouble> {
    match what {
        What::Holds => {
            let hold = rows::stored_hold(row)?;
            needs_lock(batch, hold.open.key)?;
            batch.holds.insert(hold.open.request, Slot::stored(hold));
        }
        What::Entries | What::EntriesByReference => {
            let entry = rows::stored_entry(row)?.entry;
            needs_lock(batch, entry.key)?;
            if let Some(reference) = &entry.reference {
                batch
                    .references
                    .insert(crate::value::reference::folded(reference), entry.operation);
            }
            batch.entries.insert(entry.operation, entry);
        }
        What::Refunds => {
            let mut columns = Columns::of(row);
            let (request, amount) = (columns.operation()?, columns.amount()?);
            batch.refunds.entry(request).or_default().push(amount);
        }
        What::Acts => {
            let record = rows::stored_act(row)?.record.record;
            needs_lock(batch, record.key)?;
            batch.acts.insert(record.operation, record);
        }
        What::Sessions => {
            let session = rows::session(row)?;
            needs_lock(batch, session.key)?;
            batch
                .sessions
                .insert(session.token.0, Slot::stored(session));
        }
        What::Links => {
            let mut columns = Columns::of(row);
            let (token, key, expires) = (columns.secret()?, columns.key()?, columns.at()?);
            needs_lock(batch, key)?;
            batch.links.insert(token.0, Slot::stored((key, expires)));
        }
    }
    Ok(())
}

/// Refuses a row whose key was not locked.
fn needs_lock(batch: &Batch, key: KeyId) -> Result<(), Trouble> {
    if batch.keys.contains_key(&key) {
        Ok(())
    } else {
        Err(Trouble::Retry("a row appeared in the meantime".to_owned()))
    }
}
