//! This gateway as a node of the fleet: its epoch, its renewals, and ending nodes that have fallen silent.
//!
//! Silence is measured on this process's own monotonic clock, and only while its own renewals go through: a node that cannot reach
//! the database must not judge others. A dead node's row is ended first, which waits for its open transactions; only then are its
//! holds ended, at their checkpoints.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::confirmations::{Comparison, ENDED_KEPT_DAYS, Run};
use super::connector::Connector;
use super::facts::Backend;
use super::faults;
use super::link::Link;
use super::migrations::VERSION;
use super::rows::Columns;
use super::silence::{NodeSighting, observe, reap};
use super::standby;
use super::state::Shared;
use super::trouble::TransactionTrouble;
use crate::batch::outcome::Outcome;
use crate::store::begin::log_late;
use crate::store::rows::RowColumns as _;
use crate::store::trouble_record::{LedgerWork, WorkUnderWay};
use crate::{Fault, Finish, Gateway, Timestamp, TroubleKind, lock};

/// What batches are told as, and the reads of keys before them.
const BATCHES: [LedgerWork; 4] = [
    LedgerWork::Commit,
    LedgerWork::KeyRead,
    LedgerWork::Payments,
    LedgerWork::LockedCustomer,
];
/// What a batch locks, and the rights that it needs.
const TRIAL: &str = "BEGIN; SET LOCAL lock_timeout = '300ms'; UPDATE accounts SET id = id WHERE false; UPDATE keys SET id = id WHERE false; \
     INSERT INTO holds SELECT * FROM holds WHERE false; UPDATE holds SET epoch = epoch WHERE false; DELETE FROM holds WHERE false; \
     INSERT INTO entries SELECT * FROM entries WHERE false; INSERT INTO events SELECT * FROM events WHERE false; COMMIT";
/// Between two renewals.
// Seven fit into `LEASE` and ten into the others' `SILENCE`, so one that is late costs nothing; each is a commit that waits for a
// standby.
const EVERY: Duration = Duration::from_secs(1);
/// After this long without a renewal of its own, a node starts to watch the others anew.
// A node that was cut off has not seen the others renew, so their silence is its own. Several renewals, since one that is late is no
// interruption, and far below `SILENCE`, which begins anew with each.
const INTERRUPTED: Duration = Duration::from_secs(3);
/// Between two looks at all servers while everything is well.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long a round may take.
// Each must end before the lease does, with time for another: see `LEASE`.
const ROUND: Duration = Duration::from_secs(3);
/// How many milliseconds a gateway's clock may be off before it is reported.
// Clocks that are kept by NTP are within milliseconds, so two seconds mean that nobody sets this one.
const CLOCK_OFF: i64 = 2_000;
/// Clocks so many milliseconds apart would expire keys at the wrong time and book hours wrongly: nothing is sold.
const CLOCK_WRONG: u64 = 30_000;
/// Time between two searches for unknown holds, without an interruption.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Only holds at least this many milliseconds old are searched.
const SWEEP_AFTER: i64 = 60_000;

/// The difference between the database's clock and this machine's, in milliseconds. It was read somewhere between `asked` and
/// `answered`, and a commit may wait for seconds, so a time between the two counts as no difference.
fn apart(database: i64, asked: i64, answered: i64) -> i64 {
    database.saturating_sub(database.clamp(asked.min(answered), answered))
}

/// Ends the previous epoch and begins the next one.
pub(super) async fn begin(link: &Link, before: i64, name: &str) -> Result<Run, TransactionTrouble> {
    leave(link, before).await?;
    let sql = "INSERT INTO nodes (epoch, name, version) SELECT coalesce(max(epoch), 0) + 1, $1, $2 FROM nodes \
         HAVING (SELECT version FROM identity WHERE id = 1) = $3 RETURNING epoch, (extract(epoch FROM started_at) * 1000000)::bigint";
    let rows = link
        .query(sql, &[&name, &env!("CARGO_PKG_VERSION"), &VERSION])
        .await?;
    let row = rows.first().ok_or_else(|| {
        TransactionTrouble::Failed(
            "the ledger has another schema now: start this gateway again".into(),
        )
    })?;
    let mut columns = Columns::of(row);
    Ok(Run {
        epoch: columns.take()?,
        started: columns.take()?,
        renewals: 0,
    })
}

/// Checks that everything the database has confirmed is there, and records what is not.
pub(super) async fn confirm(link: &Link, shared: &Shared) -> Result<bool, TransactionTrouble> {
    let (lost, stale) = match shared.confirmed.look(link).await? {
        Comparison::All => (Vec::new(), None),
        Comparison::Lost { lost, stale } => (lost, stale),
        Comparison::Fenced => return Err(TransactionTrouble::Fenced),
    };
    shared.lost(&lost, stale);
    Ok(lost.is_empty())
}

/// Looks at all servers from time to time, so that a promoted one is found although the old primary still answers, and a primary
/// that has come back is reported.
pub(super) async fn watch_servers(shared: Arc<Shared>, connector: Connector) {
    loop {
        let in_trouble = shared.uncertain().is_some() || shared.lapsed();
        tokio::time::sleep(if in_trouble { EVERY } else { LOOK_EVERY }).await;
        connector.survey().await;
    }
}

/// Ends this node's own epoch, because it holds nothing any more or begins another.
pub(super) async fn leave(link: &Link, epoch: i64) -> Result<(), TransactionTrouble> {
    let sql = "UPDATE nodes SET ended = now() WHERE epoch = $1 AND ended IS NULL";
    if epoch > 0 {
        link.query(sql, &[&epoch]).await?;
    }
    Ok(())
}

/// Stores the bills of requests that others have ended: their cost is the operator's exposure.
pub(super) async fn store_late_bills(
    link: &Link,
    epoch: i64,
    bills: impl Iterator<Item = &Finish>,
) -> Result<(), TransactionTrouble> {
    let sql = "INSERT INTO late_bills VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
    for finish in bills {
        let cost = finish.bill.total().unwrap_or_default();
        log_late(finish);
        let bill = serde_json::to_string(&finish.bill)?;
        let request = finish.request.to_bytes().to_vec();
        link.query(
            sql,
            &[&request, &finish.at.millis(), &epoch, &cost.picos(), &bill],
        )
        .await?;
    }
    Ok(())
}

/// Renews this node's lease and watches the others.
pub(super) struct NodeLease {
    shared: Arc<Shared>,
    connector: Connector,
    link: Option<Link>,
    /// Whether the connection has not been used for a round yet.
    is_new: bool,
    seen: HashMap<i64, NodeSighting>,
    last_renewal: Option<Instant>,
    /// When it last searched for its own unknown holds; `None` after an interruption.
    swept: Option<Instant>,
    recovering: Option<tokio::task::JoinHandle<()>>,
    /// Holds ever asked for, at the last renewal.
    asked: u64,
    /// Whether the gateways ran different files at the last check.
    differ: bool,
}

impl NodeLease {
    pub(super) fn new(shared: Arc<Shared>, connector: Connector) -> Self {
        Self {
            shared,
            connector,
            link: None,
            is_new: false,
            seen: HashMap::new(),
            last_renewal: None,
            swept: None,
            recovering: None,
            asked: 0,
            differ: false,
        }
    }

    /// Renews every second until the process ends.
    pub(super) async fn run(mut self) {
        let mut pace = tokio::time::interval(EVERY);
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            pace.tick().await;
            let epoch = self.shared.epoch.load(Ordering::SeqCst);
            if epoch == 0 || self.shared.stopped() {
                continue;
            }
            let asked = Instant::now();
            self.shared.begin_lease(asked);
            let under_way = self.shared.record.begin(LedgerWork::Renewal);
            // Not part of the round: the search for a server may take as long as a renewal.
            if let Err(trouble) = self.reach().await {
                self.interrupted(under_way, &trouble);
                continue;
            }
            under_way.done_by(self.link.as_ref().and_then(Link::process));
            match tokio::time::timeout(ROUND, self.round(epoch)).await {
                Ok(Ok(())) => under_way.succeeded(),
                // Any batch would find out; this reports it even without customers.
                Ok(Err(TransactionTrouble::Fenced)) => self
                    .shared
                    .resolve(crate::CloseSession(crate::SecretHash([0; 32])).into()),
                Ok(Err(trouble)) => self.interrupted(under_way, &trouble),
                Err(_) => {
                    let silent = TransactionTrouble::Lost("no answer in time".into());
                    self.interrupted(under_way, &silent);
                }
            }
            // The clocks of this process may have stood still between two instants.
            if asked.elapsed() > INTERRUPTED {
                self.seen.clear();
            }
        }
    }

    fn interrupted(&mut self, under_way: WorkUnderWay, trouble: &TransactionTrouble) {
        if let Some(fault) = faults::of_batch(trouble) {
            under_way.failed(fault);
        }
        if self.link.is_some() {
            // The other connections lead the same way, and what reads on them would wait for longer.
            self.connector.servers().doubt();
        }
        self.shared.drop_link(&mut self.link);
        self.swept = None;
        tracing::warn!(?trouble, "this gateway's lease was not renewed");
    }

    /// Connects, unless the connection is good.
    async fn reach(&mut self) -> Result<(), TransactionTrouble> {
        let number = self.connector.servers().number();
        if (self.link.as_ref())
            .is_some_and(|link| !link.client.is_closed() && link.number == number)
        {
            return Ok(());
        }
        (self.link, self.swept) = (None, None);
        let link = match self.connector.connect().await {
            Ok(link) => link,
            Err(why) => {
                // Only stale primaries are left: nothing else would say so before the lease is over.
                if !self.connector.servers().to_fence().is_empty() {
                    let fence =
                        "fence the stale server, and bring the newer one back; docs/FLEET.md";
                    standby::note(&self.shared, Err((why.words().to_owned(), fence)));
                }
                return Err(TransactionTrouble::Lost(why));
            }
        };
        let set = link
            .client
            .batch_execute(standby::session(self.shared.durability));
        tokio::time::timeout(ROUND, set)
            .await
            .map_err(|_| TransactionTrouble::Lost("no answer in time".into()))??;
        (self.link, self.is_new) = (Some(link), true);
        Ok(())
    }

    async fn round(&mut self, epoch: i64) -> Result<(), TransactionTrouble> {
        let Some(link) = &self.link else {
            return Err(TransactionTrouble::Lost("not connected".into()));
        };
        let version = "SELECT version FROM identity WHERE id = 1";
        if let Some(row) = link.query(version, &[]).await?.first() {
            self.shared.note_schema(Columns::of(row).take()?);
        }
        if self.shared.displaced().is_some() {
            return Ok(());
        }
        // A renewal without a standby would wait for one, or be confirmed with no other copy of it.
        let standby = standby::look(link, self.shared.allow_single).await?;
        let missing = standby.is_err();
        standby::note(&self.shared, standby);
        forget_ended(link, &self.shared).await?;
        let is_whole =
            !(self.is_new || self.shared.has_lost()) || confirm(link, &self.shared).await?;
        self.is_new = false;
        if missing || !is_whole {
            return Ok(());
        }
        let renewed = self.renew(epoch).await?;
        self.try_to_write().await?;
        self.watch(epoch, renewed).await?;
        self.recover(epoch).await
    }

    /// Renews the lease and reports what runs here. Returns when the request was made.
    async fn renew(&mut self, epoch: i64) -> Result<Instant, TransactionTrouble> {
        let Some(link) = &self.link else {
            return Err(TransactionTrouble::Lost("not connected".into()));
        };
        let (asked, began_at) = (Instant::now(), super::now().millis());
        let (configuration, opened, holds) = self.shared.report();
        let (holds, began) = (
            i64::try_from(holds).unwrap_or(i64::MAX),
            opened.saturating_sub(self.asked),
        );
        let since = self
            .last_renewal
            .map_or(EVERY, |last| asked.saturating_duration_since(last))
            .max(EVERY);
        let per_second = u128::from(began)
            .saturating_mul(1_000)
            .checked_div(since.as_millis())
            .unwrap_or_default();
        let per_second = i64::try_from(per_second).unwrap_or(i64::MAX);
        let sql = "UPDATE nodes SET renewals = renewals + 1, renewed_at = now(), configuration = $2, holds = $3, per_second = $4 \
             WHERE epoch = $1 AND ended IS NULL RETURNING (extract(epoch FROM now()) * 1000)::bigint, renewals";
        let rows = link
            .query(sql, &[&epoch, &configuration, &holds, &per_second])
            .await?;
        let Some(row) = rows.first() else {
            return Err(TransactionTrouble::Fenced);
        };
        if self
            .last_renewal
            .is_none_or(|last| asked.saturating_duration_since(last) > INTERRUPTED)
        {
            self.seen.clear();
        }
        (self.last_renewal, self.asked) = (Some(asked), opened);
        self.shared.renewed(asked);
        let mut columns = Columns::of(row);
        let off = apart(columns.take()?, began_at, super::now().millis());
        let run = self.shared.confirmed.run();
        self.shared.confirmed.renewed(Run {
            renewals: columns.take()?,
            ..run
        });
        let shared = Arc::clone(&self.shared);
        let save = move || {
            if let Some(unsettled) = shared.unsettled.get() {
                unsettled.grow(holds.unsigned_abs());
            }
            shared.confirmed.save()
        };
        match tokio::task::spawn_blocking(save).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot write the state file"),
            Err(error) => tracing::error!(%error, "cannot write the state file"),
        }
        lock(&self.shared.stats).clock_off_ms = off;
        let wrong = (off.unsigned_abs() >= CLOCK_WRONG).then(|| {
            let seconds = off.unsigned_abs() / 1_000;
            let cause = format!("this machine's clock and the database's are {seconds} s apart");
            let remedy = "set the clock (timedatectl, chronyc tracking); selling goes on by itself";
            Fault::new(TroubleKind::ClockWrong, cause, remedy)
        });
        self.shared.record.note(LedgerWork::DatabaseClock, wrong);
        if off.abs() >= CLOCK_OFF {
            tracing::warn!(
                milliseconds = off,
                "the clocks of this machine and of the database differ"
            );
        }
        Ok(asked)
    }

    /// After a commit has failed: whether one could be written now. It takes the locks and rights of a batch, and changes nothing. Who
    /// asked for the last one may not ask again for hours.
    async fn try_to_write(&self) -> Result<(), TransactionTrouble> {
        let failed = BATCHES
            .iter()
            .filter(|work| self.shared.record.stands(**work));
        let failed: Vec<LedgerWork> = failed.copied().collect();
        let Some(link) = self.link.as_ref().filter(|_| !failed.is_empty()) else {
            return Ok(());
        };
        let tried = link.client.batch_execute(TRIAL).await;
        if let Err(error) = tried {
            let undone = link.client.batch_execute("ROLLBACK").await;
            tracing::debug!(%error, "nothing can be written yet");
            return Ok(undone?);
        }
        for work in failed {
            self.shared.record.end(work);
        }
        Ok(())
    }

    /// Checks the other gateways, ends those that are silent, and gives up holds that no request here knows.
    async fn watch(&mut self, epoch: i64, now: Instant) -> Result<(), TransactionTrouble> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        let alive = gateways(link).await?;
        let differ = Gateway::differ(&alive);
        if differ != std::mem::replace(&mut self.differ, differ) {
            log_differing_files(&alive, differ);
        }
        for dead in observe(&mut self.seen, link, epoch).await? {
            reap(link, dead).await?;
        }
        if self
            .swept
            .is_none_or(|swept| swept.elapsed() >= SWEEP_EVERY)
        {
            disown(link, &self.shared, epoch).await?;
            forget_nodes(link).await?;
            self.swept = Some(now);
        }
        Ok(())
    }

    /// Ends the holds of dead nodes, if there are any. Runs beside the renewals, which must not wait for it.
    async fn recover(&mut self, epoch: i64) -> Result<(), TransactionTrouble> {
        if self
            .recovering
            .as_ref()
            .is_some_and(|task| !task.is_finished())
        {
            return Ok(());
        }
        let Some(link) = &self.link else {
            return Ok(());
        };
        let sql = "SELECT 1 FROM holds WHERE epoch = 0 OR epoch IN (SELECT epoch FROM nodes WHERE ended IS NOT NULL) LIMIT 1";
        if link.query(sql, &[]).await?.is_empty() {
            return Ok(());
        }
        let (shared, now) = (Arc::clone(&self.shared), super::now());
        self.recovering = Some(tokio::spawn(async move {
            let mut ended = 0_usize;
            while let Ok(Outcome::Recovered(Some(some))) =
                shared.submit(crate::Recover { epoch, now }.into()).await
            {
                ended = ended
                    .saturating_add(some.settled)
                    .saturating_add(some.released);
            }
            tracing::warn!(holds = ended, "ended the holds of a gateway that is gone");
        }));
        Ok(())
    }
}

/// Checks which of the dropped connections can still do harm: those that work, are in a transaction or wait for a standby. The
/// server keeps an idle one until it finds the network broken, and that one holds nothing.
async fn forget_ended(link: &Link, shared: &Shared) -> Result<(), TransactionTrouble> {
    let dropped = shared.dropped();
    if dropped.is_empty() {
        return Ok(());
    }
    let pids: Vec<String> = dropped
        .into_iter()
        .map(|dropped| dropped.backend.pid)
        .collect();
    let sql = "SELECT pid::text, backend_start::text, CASE WHEN wait_event = 'SyncRep' THEN 'waits for a standby' ELSE \
         coalesce(state, 'not to be seen') END FROM pg_stat_activity WHERE pid::text = ANY ($1::text[]) \
         AND (state IS DISTINCT FROM 'idle' OR wait_event = 'SyncRep')";
    let mut at_work = Vec::new();
    for row in link.query(sql, &[&pids]).await? {
        let mut columns = Columns::of(&row);
        let backend = Backend {
            pid: columns.take()?,
            started: columns.take()?,
        };
        at_work.push((backend, columns.take()?));
    }
    shared.keep_dropped(&at_work);
    Ok(())
}

/// Gives up holds of this node's own epoch that no request here knows any more; a commit without an answer can leave them behind.
/// As holds of no gateway they are ended at their checkpoints.
async fn disown(link: &Link, shared: &Shared, epoch: i64) -> Result<(), TransactionTrouble> {
    let before = super::now().millis().saturating_sub(SWEEP_AFTER);
    let mut requests = Vec::new();
    for row in link
        .query(
            "SELECT request FROM holds WHERE epoch = $1 AND at < $2",
            &[&epoch, &before],
        )
        .await?
    {
        requests.push(Columns::of(&row).read()?);
    }
    let lost: Vec<Vec<u8>> = shared
        .unknown(requests)
        .into_iter()
        .map(|request| request.to_bytes().to_vec())
        .collect();
    if !lost.is_empty() {
        link.query(
            "UPDATE holds SET epoch = 0 WHERE epoch = $1 AND request = ANY ($2::bytea[])",
            &[&epoch, &lost],
        )
        .await?;
        tracing::warn!(
            holds = lost.len(),
            "holds of this gateway belong to no request; they are ended at their checkpoints"
        );
    }
    Ok(())
}

/// Deletes the rows of gateways that ended long ago. The newest stays, because the next epoch is one more, and so does one that still
/// has holds.
async fn forget_nodes(link: &Link) -> Result<(), TransactionTrouble> {
    let sql = "DELETE FROM nodes n WHERE ended < now() - make_interval(days => $1) AND epoch < (SELECT max(epoch) FROM nodes) \
         AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.epoch = n.epoch)";
    link.query(sql, &[&ENDED_KEPT_DAYS]).await?;
    Ok(())
}

/// The nodes that have not ended, as each last described itself.
pub(super) async fn gateways(link: &Link) -> Result<Vec<Gateway>, TransactionTrouble> {
    let sql = "SELECT epoch, name, version, configuration, (extract(epoch FROM started_at) * 1000)::bigint, \
         (extract(epoch FROM now() - renewed_at) * 1000)::bigint, per_second, holds FROM nodes WHERE ended IS NULL ORDER BY epoch";
    let mut gateways = Vec::new();
    for row in link.query(sql, &[]).await? {
        let mut columns = Columns::of(&row);
        gateways.push(Gateway {
            epoch: columns.take()?,
            name: columns.take()?,
            version: columns.take()?,
            configuration: columns.take()?,
            started_at: Timestamp::from_millis(columns.take()?),
            silent_ms: columns.take()?,
            per_second: columns.read()?,
            holds: columns.read()?,
        });
    }
    Ok(gateways)
}

/// Logs when the gateways' files begin or cease to differ.
fn log_differing_files(gateways: &[Gateway], differ: bool) {
    if !differ {
        return tracing::info!("all gateways run the same files again");
    }
    let files: Vec<String> = gateways
        .iter()
        .map(|gateway| format!("{} {}", gateway.name, gateway.configuration))
        .collect();
    tracing::warn!(
        gateways = files.join(", "),
        "the gateways run different files: give all of them the same catalog and routes"
    );
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn what_a_commit_waits_is_no_difference_of_clocks() {
        assert_eq!(apart(5_000, 5_000, 5_002), 0);
        assert_eq!(apart(5_000, 4_999, 12_000), 0, "it waited for a standby");
        assert_eq!(
            (apart(4_000, 5_000, 5_002), apart(9_000, 5_000, 5_002)),
            (-1_000, 3_998)
        );
        assert_eq!(
            apart(7_000, 5_000, 4_000),
            3_000,
            "this clock was set back meanwhile"
        );
    }
}
