//! The console's background work: runs the effects that the state requests and sends back the results.
//!
//! Every query runs in its own task; a newer one of the same kind cancels the older. Only this room talks to the ledger and the
//! gateway, and it holds no state of the screens.

mod apply;
mod customers;
pub(crate) mod export;
mod page;
mod read;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Mutex;
use std::time::Duration;

use farebox_ledger::SharedLedger;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use crate::admin::AdminClient;
use crate::app::message::{Effect, Message};
use crate::clock;
use crate::state_file::{StateFile, write_private};

pub(crate) use apply::SentDeeds;

/// Time between two reads of the running totals.
const PULSE: Duration = Duration::from_millis(500);
const STATUS_EVERY: Duration = Duration::from_secs(2);
/// Shortest time between two batches of live requests.
const LIVE_EVERY: Duration = Duration::from_millis(150);
/// More than any gateway ends in that time; the oldest are dropped first.
const LIVE_AT_ONCE: usize = 5000;
/// Delay while the user is typing.
// Longer than between two letters of somebody who types fast, so that a word is one query.
const TYPING: Duration = Duration::from_millis(150);
/// Delay while the user is moving through a list.
// Longer than between two repeats of a key that is held down, so that only the row is read on which it stops.
const MOVING: Duration = Duration::from_millis(60);

/// What every task of the store needs.
#[derive(Debug, Clone)]
pub(crate) struct StoreShared {
    pub(crate) ledger: SharedLedger,
    pub(crate) state: StateFile,
    pub(crate) client: AdminClient,
    pub(crate) tell: UnboundedSender<Message>,
    pub(crate) sent: SentDeeds,
}

/// The store, as the main loop holds it.
#[derive(Debug)]
pub(crate) struct StoreHandle {
    shared: StoreShared,
    /// The newest query of each kind.
    running: HashMap<Discriminant<Effect>, AbortHandle>,
}

impl StoreHandle {
    /// Ready to be asked.
    pub(crate) fn new(
        ledger: SharedLedger,
        state: StateFile,
        client: AdminClient,
        tell: UnboundedSender<Message>,
    ) -> Self {
        Self {
            shared: StoreShared {
                ledger,
                state,
                client,
                tell,
                sent: SentDeeds::default(),
            },
            running: HashMap::new(),
        }
    }

    /// Starts the background tasks: totals, the gateway's status and its stream, the recorded operations.
    pub(crate) fn start(&self) {
        tokio::spawn(pulse(self.shared.clone()));
        tokio::spawn(status(self.shared.clone()));
        tokio::spawn(live(self.shared.clone()));
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let listed = shared.open_operations().await;
            if !listed.is_empty() {
                shared.tell(Message::Operations(listed));
            }
        });
    }

    /// Runs one effect. [`Effect::Copy`] and [`Effect::Mouse`] belong to the terminal and never come here.
    pub(crate) fn handle(&mut self, effect: Effect) {
        match effect {
            Effect::Forget(operation) => {
                // A file that stays is queried again at the next start; nothing is lost.
                let _ = self.shared.state.forget(operation);
                self.shared.sent().remove(&operation);
            }
            Effect::WriteSecret { path, text } => {
                let line = format!("{}\n", text.0);
                let result = match write_private(&path, line.as_bytes()) {
                    Ok(()) => Ok(path.display().to_string()),
                    Err(error) => Err(format!("{}: {error}", path.display())),
                };
                self.shared.tell(Message::SecretWritten(result));
            }
            query => self.spawn(query),
        }
    }

    /// Runs an effect in a task of its own, in the place of an older query of its kind.
    fn spawn(&mut self, effect: Effect) {
        let (kind, is_newest) = (discriminant(&effect), only_newest_matters(&effect));
        let shared = self.shared.clone();
        let task = tokio::spawn(async move { shared.fulfil(effect).await });
        if is_newest && let Some(older) = self.running.insert(kind, task.abort_handle()) {
            older.abort();
        }
    }
}

const fn only_newest_matters(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::LoadKeys(_)
            | Effect::CountKeys { .. }
            | Effect::Visible(_)
            | Effect::LoadCustomers(_)
            | Effect::VisibleCustomers(_)
            | Effect::LoadDetail { .. }
            | Effect::CheckBooks { .. }
            | Effect::LoadHolds
            | Effect::LoadSlugs
            | Effect::LoadMargins { .. }
            | Effect::LoadWaiting
            | Effect::LoadRequest(_)
            | Effect::Find(_)
    )
}

impl StoreShared {
    async fn fulfil(&self, effect: Effect) {
        match effect {
            Effect::LoadKeys(request) => self.keys(request).await,
            Effect::CountKeys { generation, filter } => self.count(generation, filter).await,
            Effect::Visible(ids) => self.visible(ids).await,
            Effect::LoadCustomers(request) => self.customers(request).await,
            Effect::VisibleCustomers(ids) => self.visible_customers(ids).await,
            Effect::LoadKeysOf(customer) => self.keys_of(customer).await,
            Effect::LoadDetail { of, debounce } => {
                if debounce {
                    tokio::time::sleep(MOVING).await;
                }
                self.detail(of).await;
            }
            Effect::MoreEntries { of, before } => self.more_entries(of, before).await,
            Effect::CheckBooks { of, customer } => self.check_books(of, customer).await,
            Effect::LoadHolds => self.holds().await,
            Effect::LoadAudit { before } => self.audit(before).await,
            Effect::LoadSlugs => self.slugs().await,
            Effect::LoadMargins { view, query } => self.margins(view, query).await,
            Effect::LoadWaiting => self.waiting().await,
            Effect::LoadSpend { from, to } => self.spend(from, to).await,
            Effect::Verify => self.verify().await,
            Effect::LoadRequest(request) => self.request(request).await,
            Effect::Find(text) => self.find(&text.0).await,
            Effect::LoadLabels(ids) => self.labels(ids).await,
            Effect::Apply(pending) => self.send(*pending).await,
            Effect::Resolve(pending) => self.resolve(*pending).await,
            Effect::Export {
                what,
                filter,
                json,
                path,
            } => {
                let result = self.export(&what, &filter, json, &path).await;
                self.tell(Message::Exported(result));
            }
            Effect::ReadStatus => drop(self.read_status().await),
            Effect::Forget(_) | Effect::WriteSecret { .. } | Effect::Copy(_) | Effect::Mouse(_) => {
            }
        }
    }

    fn tell(&self, message: Message) {
        // The receiver is gone only when the console ends.
        let _ = self.tell.send(message);
    }

    async fn read_status(&self) -> bool {
        let status = self
            .client
            .status()
            .await
            .map(Box::new)
            .map_err(|error| error.to_string());
        let is_there = status.is_ok();
        self.tell(Message::Status(status));
        is_there
    }
}

async fn pulse(shared: StoreShared) {
    let mut ticks = tokio::time::interval(PULSE);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let totals = shared
            .ledger
            .totals()
            .await
            .map_err(|error| error.to_string());
        shared.tell(Message::Pulse {
            now: clock::now(),
            totals,
        });
    }
}

async fn status(shared: StoreShared) {
    loop {
        shared.read_status().await;
        tokio::time::sleep(STATUS_EVERY).await;
    }
}

async fn live(shared: StoreShared) {
    loop {
        if let Ok(live) = shared.client.live().await {
            follow(&shared, live).await;
            shared.read_status().await;
        }
        tokio::time::sleep(STATUS_EVERY).await;
    }
}

/// Forwards requests until the stream ends. It is read without a pause, so that the gateway never waits for a screen.
async fn follow(shared: &StoreShared, mut live: crate::admin::LiveStream) {
    let waiting = Mutex::new(Vec::new());
    let reading = async {
        while let Ok(Some(events)) = live.next().await {
            let mut waiting = waiting
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            waiting.extend(events);
            let surplus = waiting.len().saturating_sub(LIVE_AT_ONCE);
            waiting.drain(..surplus);
        }
    };
    let mut reading = std::pin::pin!(reading);
    let mut ticks = tokio::time::interval(LIVE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let ended = tokio::select! {
            () = &mut reading => true,
            _ = ticks.tick() => false,
        };
        let events = std::mem::take(
            &mut *waiting
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        if !events.is_empty() {
            shared.tell(Message::Live(events));
        }
        if ended {
            return;
        }
    }
}
