//! Records, outside the database, what the database has confirmed to this gateway, and checks that it is all still there.
//!
//! A promoted standby that was behind, or a restored backup, is a ledger that has gone back in time: payments are gone, and charges
//! with them. Whoever remembers a confirmed entry notices. A writer's entries are lost from the end only, so the last few suffice;
//! the number of this gateway's renewals covers the seconds without an entry. The newest anchor, if anchors are written, covers
//! what other gateways wrote. Nothing is written to such a ledger until an operator accepts the loss, which raises its generation.

use std::collections::HashSet;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::facts::ServerFacts;
use super::link::Link;
use super::rows::Columns;
use super::trouble::TransactionTrouble;
use crate::batch::rows::Rows;
use crate::book::anchor::{self, Anchor};
use crate::book::head::Hash;
use crate::store::rows::RowColumns as _;
use crate::store::side_file::replace;
use crate::{Cause, CustomerId, LedgerError, OperationId, Timestamp, lock};

/// How long the row of a gateway that has ended is kept.
pub(super) const ENDED_KEPT_DAYS: i32 = 30;
/// How many entries are remembered: the last one of each recent batch.
// The file is written again with every renewal, so it has to stay small; a database loses entries from the end, so the last ones tell.
const ENTRIES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfirmedEntry {
    /// Earlier versions wrote a key with the same number.
    #[serde(alias = "key", deserialize_with = "anchor::owner")]
    customer: CustomerId,
    seq: i64,
    #[serde(with = "crate::book::anchor::hex")]
    hash: Hash,
}

/// A run of a gateway: its epoch, when the database began it, and how often it was renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    pub(super) epoch: i64,
    pub(super) started: i64,
    pub(super) renewals: i64,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfirmedFile {
    ledger: String,
    generation: i64,
    run: Run,
    entries: Vec<ConfirmedEntry>,
    /// The cluster of the last server, and its timeline: a primary on a lower one was replaced by a promoted standby.
    #[serde(default)]
    system: String,
    #[serde(default)]
    timeline: u32,
}

impl ConfirmedFile {
    /// Whether a server has been replaced by a promoted one that this gateway has used, and its operator has not accepted the loss.
    fn stale(&self, link: &Link, generation: i64) -> Option<String> {
        let ServerFacts {
            name,
            system,
            timeline,
            ..
        } = &link.facts;
        let replaced =
            generation <= self.generation && *system == self.system && *timeline < self.timeline;
        replaced.then(|| {
            format!(
                "the server {name} is a stale primary on timeline {timeline}, and this gateway has used timeline {}: fence it, and \
                 bring the promoted server back",
                self.timeline
            )
        })
    }
}

/// The result of comparing this with the database.
pub(super) enum Comparison {
    /// Everything is there.
    All,
    /// Something is missing, and nobody has accepted that. `stale` says so of a server that was replaced by a promoted one.
    Lost {
        lost: Vec<String>,
        stale: Option<String>,
    },
    /// An operator has accepted a loss since, and this gateway's epoch was part of it.
    Fenced,
}

/// What was confirmed, in memory and in a file.
#[derive(Debug, Default)]
pub(super) struct Confirmed {
    file: Option<PathBuf>,
    state: Mutex<ConfirmedFile>,
    /// The newest anchor; it is stored in a file of its own.
    anchor: Mutex<Option<Anchor>>,
}

impl Confirmed {
    /// What the state file and the anchor file remember; nothing if they do not exist yet.
    pub(super) fn load(file: Option<PathBuf>, anchors: Option<&Path>) -> Result<Self, LedgerError> {
        let state = file.as_deref().map(|path| {
            if_there(
                "the state file",
                path,
                std::fs::read(path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?)),
            )
        });
        let anchors = anchors.map(|path| if_there("the anchors", path, anchor::read(path)));
        let newest = anchors
            .transpose()?
            .flatten()
            .and_then(|mut anchors| anchors.pop());
        Ok(Self {
            file,
            state: Mutex::new(state.transpose()?.flatten().unwrap_or_default()),
            anchor: Mutex::new(newest),
        })
    }

    /// Sets the newest anchor.
    pub(super) fn anchored(&self, newest: Anchor) {
        *lock(&self.anchor) = Some(newest);
    }

    /// Records a confirmed batch.
    pub(super) fn note(&self, rows: &Rows) {
        let Some(last) = rows.new_entries().next_back() else {
            return;
        };
        let mut state = lock(&self.state);
        state
            .entries
            .retain(|known| known.customer != last.entry.customer);
        let too_many = state
            .entries
            .len()
            .saturating_add(1)
            .saturating_sub(ENTRIES);
        state.entries.drain(..too_many);
        state.entries.push(ConfirmedEntry {
            customer: last.entry.customer,
            seq: last.entry.seq,
            hash: last.hash,
        });
    }

    /// Records that an epoch has begun or was renewed.
    pub(super) fn renewed(&self, run: Run) {
        lock(&self.state).run = run;
    }

    /// The most recently renewed run.
    pub(super) fn run(&self) -> Run {
        lock(&self.state).run
    }

    /// Checks whether everything is still there. Takes over a generation that an operator has raised.
    pub(super) async fn look(&self, link: &Link) -> Result<Comparison, TransactionTrouble> {
        let known = lock(&self.state).clone();
        // The row of a run that may have ended long ago is gone with good reason: it proves nothing, so it counts as whole.
        let sql = "SELECT i.ledger, i.generation, coalesce(n.renewals, CASE WHEN $2::bigint + $3::bigint * 1000000 < \
             (extract(epoch FROM now() - make_interval(days => $4)) * 1000000)::bigint THEN $3::bigint END) \
             FROM identity i LEFT JOIN nodes n ON n.epoch = $1 \
             AND (extract(epoch FROM n.started_at) * 1000000)::bigint = $2 WHERE i.id = 1";
        let Run {
            epoch,
            started,
            renewals,
        } = known.run;
        let rows = link
            .query(sql, &[&epoch, &started, &renewals, &ENDED_KEPT_DAYS])
            .await?;
        let row = rows
            .first()
            .ok_or_else(|| TransactionTrouble::Failed("the database has no identity".into()))?;
        let mut columns = Columns::of(row);
        let (ledger, generation) = (
            columns.read::<OperationId>()?.to_string(),
            columns.take::<i64>()?,
        );
        let renewals: Option<i64> = columns.take()?;
        let mut lost = self.not_covered(link, generation).await?;
        if known.ledger.is_empty() {
            let mut state = lock(&self.state);
            (state.ledger, state.generation) = (ledger, generation);
        } else if known.ledger != ledger {
            return Ok(Comparison::Lost {
                lost: vec![format!(
                    "the database has ledger {ledger}; this gateway has used {}",
                    known.ledger
                )],
                stale: None,
            });
        } else if generation > known.generation {
            let mut state = lock(&self.state);
            let run = renewals.map(|renewals| Run {
                renewals,
                ..known.run
            });
            *state = ConfirmedFile {
                ledger,
                generation,
                run: run.unwrap_or_default(),
                ..ConfirmedFile::default()
            };
            if run.is_none() && known.run.epoch > 0 {
                return Ok(Comparison::Fenced);
            }
        } else {
            let renewals = renewals.unwrap_or_default();
            lost.extend(absent(link, &known, generation, renewals).await?);
        }
        // A gateway may also remember what an anchor covers.
        let mut said = HashSet::new();
        lost.retain(|lost| said.insert(lost.clone()));
        let stale = lock(&self.state).stale(link, generation);
        if let Some(stale) = &stale {
            lost.insert(0, stale.clone());
        }
        if lost.is_empty() {
            let mut state = lock(&self.state);
            (state.system, state.timeline) = (link.facts.system.clone(), link.facts.timeline);
            return Ok(Comparison::All);
        }
        Ok(Comparison::Lost { lost, stale })
    }

    /// The part of the newest anchor that is missing, unless an operator has accepted a loss since.
    async fn not_covered(
        &self,
        link: &Link,
        generation: i64,
    ) -> Result<Vec<String>, TransactionTrouble> {
        let Some(Anchor::Heads(newest)) = lock(&self.anchor)
            .clone()
            .filter(|anchor| anchor.generation() >= generation)
        else {
            return Ok(Vec::new());
        };
        let entries = newest
            .customers
            .iter()
            .filter(|of| of.seq > 0)
            .map(|of| (of.customer, of.seq, of.hash));
        let mut lost = missing(link, ENTRY, entries).await?;
        let acts = newest
            .customers
            .iter()
            .filter(|of| of.act > 0)
            .map(|of| (of.customer, of.act, of.act_hash));
        lost.extend(missing(link, ACT, acts).await?);
        if generation < newest.generation {
            lost.push(format!(
                "the ledger has generation {generation} again, after {}",
                newest.generation
            ));
        }
        Ok(lost)
    }

    /// Writes the file, if one is configured. It is replaced as a whole.
    pub(super) fn save(&self) -> Result<(), Error> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let state = serde_json::to_vec(&*lock(&self.state))?;
        replace(path, &state)
    }
}

/// What a gateway knows and the database does not have, in the generation that it knows.
async fn absent(
    link: &Link,
    known: &ConfirmedFile,
    generation: i64,
    renewals: i64,
) -> Result<Vec<String>, TransactionTrouble> {
    let entries = known
        .entries
        .iter()
        .map(|known| (known.customer, known.seq, known.hash));
    let mut lost = missing(link, ENTRY, entries).await?;
    if known.run.epoch > 0 && renewals < known.run.renewals {
        let short = known.run.renewals.saturating_sub(renewals);
        lost.push(format!(
            "{short} renewals of this gateway, one a second, are not there"
        ));
    }
    if generation < known.generation {
        lost.push(format!(
            "the ledger has generation {generation} again, after {}",
            known.generation
        ));
    }
    Ok(lost)
}

/// The name of a link of a chain, and its table.
type Chain = (&'static str, &'static str);
const ENTRY: Chain = ("entry", "entries");
const ACT: Chain = ("administrative act", "audit");

/// The links of a chain that are missing, in words.
async fn missing(
    link: &Link,
    chain: Chain,
    links: impl Iterator<Item = (CustomerId, i64, Hash)>,
) -> Result<Vec<String>, TransactionTrouble> {
    let (mut customers, mut seqs, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
    for (customer, seq, hash) in links {
        customers.push(customer.to_i64());
        seqs.push(seq);
        hashes.push(hash.to_vec());
    }
    let (name, table) = chain;
    let sql = format!(
        "SELECT k.customer, k.seq, coalesce((SELECT max(e.seq) FROM {table} e WHERE e.customer = k.customer), 0) \
         FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS k (customer, seq, hash) WHERE NOT EXISTS \
         (SELECT 1 FROM {table} e WHERE e.customer = k.customer AND e.seq = k.seq AND e.hash = k.hash)"
    );
    let mut missing = Vec::new();
    for row in link.query(&sql, &[&customers, &seqs, &hashes]).await? {
        let mut columns = Columns::of(&row);
        let (customer, seq, last): (CustomerId, i64, i64) =
            (columns.read()?, columns.take()?, columns.take()?);
        missing.push(format!(
            "{name} {seq} of {customer} was confirmed and is not there (its last is {last})"
        ));
    }
    Ok(missing)
}

/// The content of a file; empty if there is no file yet.
fn if_there<T>(what: &str, path: &Path, read: Result<T, Error>) -> Result<Option<T>, LedgerError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let what = format!("{what} {}", path.display());
            Err(LedgerError::unusable(Cause::of(&what, error)))
        }
    }
}

/// A loss that an operator has accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// What a gateway knew and the ledger no longer has, in words.
    pub lost: Vec<String>,
    /// The generation that began with it.
    pub generation: i64,
    /// Who accepted it.
    pub actor: String,
    /// The clock when it was accepted, UTC.
    pub at: Timestamp,
}

/// Every loss that operators have accepted, oldest first.
pub(super) async fn accepted(link: &Link) -> Result<Vec<AcceptedLoss>, TransactionTrouble> {
    let mut losses = Vec::new();
    for row in link
        .query(
            "SELECT generation, at, actor, details FROM losses ORDER BY generation",
            &[],
        )
        .await?
    {
        let mut columns = Columns::of(&row);
        let (generation, at, actor, details): (_, _, _, String) = (
            columns.take()?,
            columns.read()?,
            columns.take()?,
            columns.take()?,
        );
        let lost = serde_json::from_str(&details)
            .map_err(|error| TransactionTrouble::Failed(Cause::of("the table losses", error)))?;
        losses.push(AcceptedLoss {
            lost,
            generation,
            actor,
            at,
        });
    }
    Ok(losses)
}

/// Accepts the loss of what the state file knows: raises the generation and records who did it.
pub(super) async fn accept(
    link: &Link,
    known: &Confirmed,
    actor: &str,
    at: Timestamp,
) -> Result<AcceptedLoss, TransactionTrouble> {
    let Comparison::Lost { lost, .. } = known.look(link).await? else {
        return Err(TransactionTrouble::Failed(
            "nothing is missing of what these files remember (--state, --anchors)".into(),
        ));
    };
    let details = serde_json::to_string(&lost)?;
    // One statement, so the new generation exists with its record or not at all.
    let sql = "WITH raised AS (UPDATE identity SET generation = generation + 1 WHERE id = 1 RETURNING generation) \
         INSERT INTO losses (generation, at, actor, details) SELECT generation, $1, $2, $3 FROM raised RETURNING generation";
    link.take_warning();
    let rows = link
        .query(sql, &[&at.millis(), &actor, &details])
        .await
        .map_err(TransactionTrouble::of_commit)?;
    if link.take_warning() {
        return Err(TransactionTrouble::Unknown(
            "the server committed with a warning".into(),
        ));
    }
    let row = rows
        .first()
        .ok_or_else(|| TransactionTrouble::Failed("the database has no identity".into()))?;
    Ok(AcceptedLoss {
        lost,
        generation: Columns::of(row).take()?,
        actor: actor.to_owned(),
        at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_remembers_and_a_broken_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let confirmed = Confirmed::load(Some(path.clone()), None).unwrap();
        let run = Run {
            epoch: 3,
            started: 9,
            renewals: 7,
        };
        confirmed.renewed(run);
        let known = ConfirmedEntry {
            customer: CustomerId::from_random(1),
            seq: 4,
            hash: [9; 32],
        };
        lock(&confirmed.state).entries.push(known.clone());
        confirmed.save().unwrap();
        let again = Confirmed::load(Some(path.clone()), None).unwrap();
        assert_eq!(
            (again.run(), &lock(&again.state).entries),
            (run, &vec![known])
        );
        std::fs::write(&path, "{").unwrap();
        assert!(
            matches!(Confirmed::load(Some(path), None), Err(LedgerError::Unusable(why)) if why.words().contains("state file"))
        );
    }
}
