//! The requests that are being served, by their ids: for an operator who asks where one of them is, and for the watch that ends the streams of
//! keys that are stopped meanwhile.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox_ledger::{KeyId, OperationId, SharedLedger, lock};
use tokio::time::{Instant, sleep};

use super::Request;
use crate::upstream::{Progress, ProgressStage};

/// Between two looks at the keys of running requests: a stream ends within twice this time after its key.
// Half of the ten seconds that are promised.
const EVERY: Duration = Duration::from_secs(5);

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct UnderWay(Arc<Mutex<HashMap<OperationId, Arc<Running>>>>);

/// One of them.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) progress: Progress,
    key: KeyId,
    /// Its key or customer was stopped.
    has_ended: AtomicBool,
    money: Mutex<RunningMoney>,
}

/// What money does to a running request.
#[derive(Debug, Clone, Default)]
pub struct RunningMoney {
    /// Its output limit, if that was lowered.
    pub limit: Option<String>,
    /// How long it has waited for money.
    pub waited: Duration,
    /// Since when it waits, if it does so now.
    pub waits: Option<Instant>,
}

impl Running {
    /// Whether its key was stopped.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    pub(super) fn limit(&self, told: Option<String>) {
        if told.is_some() {
            lock(&self.money).limit = told;
        }
    }

    /// Notes that it waits for money; returns since when.
    pub(super) fn waits(&self) -> Instant {
        *lock(&self.money).waits.get_or_insert_with(Instant::now)
    }

    /// Notes that it waits no longer.
    pub(super) fn goes_on(&self) {
        let mut money = lock(&self.money);
        if let Some(since) = money.waits.take() {
            money.waited = since.elapsed();
        }
    }

    /// How long it has waited for money.
    pub(super) fn waited(&self) -> Duration {
        lock(&self.money).waited
    }
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Entered {
    all: UnderWay,
    id: OperationId,
    pub(super) running: Arc<Running>,
}

impl UnderWay {
    pub(super) fn enter(&self, request: &Request) -> Entered {
        let running = Arc::new(Running {
            progress: Progress::default(),
            key: request.key,
            has_ended: AtomicBool::new(false),
            money: Mutex::default(),
        });
        lock(&self.0).insert(request.id, Arc::clone(&running));
        Entered {
            all: self.clone(),
            id: request.id,
            running,
        }
    }

    /// Where this request is, if it runs.
    pub fn find(&self, id: OperationId) -> Option<(ProgressStage, RunningMoney)> {
        let all = lock(&self.0);
        let running = all.get(&id)?;
        Some((running.progress.stage(), lock(&running.money).clone()))
    }

    /// Notes every few seconds which keys have been stopped, as long as the gateway runs. Expiry is each stream's own deadline.
    pub async fn watch(&self, ledger: &SharedLedger) -> Infallible {
        loop {
            sleep(EVERY).await;
            let running: Vec<_> = lock(&self.0).values().cloned().collect();
            let mut keys: Vec<KeyId> = running.iter().map(|one| one.key).collect();
            keys.sort_unstable();
            keys.dedup();
            if keys.is_empty() {
                continue;
            }
            // A silent ledger stops nobody.
            let Ok(ended) = ledger.ended(&keys).await else {
                continue;
            };
            for one in running.iter().filter(|one| ended.contains(&one.key)) {
                one.has_ended.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.id);
    }
}
