//! Where requests wait for money that running requests of their customer hold, or for streams of it to begin.
//!
//! They are called in the order in which they came, those that wait for the same purse or cap; one that needs little passes the others for a
//! while. The room looks when a request of the customer ends here, and twice a second, in one read for all that wait.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use farebox_ledger::{Amount, CustomerId, Key, KeyId, SharedLedger, lock};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::money::{Bottleneck, MoneyRoom};
use super::rate_limit::StoodAside;
use super::under_way::{Entered, Running};
use super::{Proxy, Request};
use crate::config::{ModelLimits, Price};
use crate::metering::Ask;
use crate::metering::bound::{Patience, least};

/// The longest wait. Most clients wait a minute for an answer.
const LONGEST: Duration = Duration::from_secs(45);
/// Requests of a customer that wait.
// As many as may run at once where nobody has set another concurrency.
const MOST: usize = 64;
/// Bytes of all bodies of a customer that waits, or has nothing available.
pub const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Between two looks at all that wait: holds of other gateways end unseen.
const EVERY: Duration = Duration::from_millis(500);
/// A need of at most so small a part of the room passes those before it …
// Lower, and a few middling requests keep a large one waiting; higher, and small ones wait for it although they would hardly delay it.
const SMALL: i64 = 8;
/// … unless one of them has waited this long: a large request must not wait for ever.
const HELD_UP: Duration = Duration::from_secs(15);
/// After this long a request is content with half of its floor …
// A shorter answer now is better than the refusal at the end of the wait, and it gets shorter the longer that is.
const HALF_AFTER: Duration = Duration::from_secs(10);
/// … and then with a quarter.
const QUARTER_AFTER: Duration = Duration::from_secs(20);

/// All that wait at this gateway.
#[derive(Debug, Default)]
pub struct WaitingRoom {
    waiters: Mutex<Waiters>,
    /// Somebody has come.
    came: Notify,
}

#[derive(Debug, Default)]
struct Waiters {
    arrivals: u64,
    /// In the order in which they came.
    all: BTreeMap<u64, Waiter>,
    /// The gateway stops: nobody waits any more.
    stopping: bool,
}

#[derive(Debug)]
struct Waiter {
    customer: CustomerId,
    key: KeyId,
    slug: String,
    needs: LeastNeeds,
    bottleneck: Bottleneck,
    since: Instant,
    called: Option<Patience>,
    call: Arc<Notify>,
}

/// The least that a request needs: beside others and alone, the longer it has waited the less.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeastNeeds([(Amount, Amount); 3]);

impl LeastNeeds {
    pub(super) fn of(ask: &Ask, price: &Price, limits: &ModelLimits) -> Self {
        Self(Patience::ALL.map(|patience| {
            let ways = ask.ways(price, limits, patience);
            (least(&ways, false), least(&ways, true))
        }))
    }

    /// With so much patience, in a room that others share or not.
    const fn at(&self, patience: Patience, shared: bool) -> Amount {
        let Self([fresh, waited, long]) = *self;
        let (beside, alone) = match patience {
            Patience::Fresh => fresh,
            Patience::Waited => waited,
            Patience::WaitedLong => long,
        };
        if shared { beside } else { alone }
    }
}

/// How long a request has waited.
fn patience(since: Instant, now: Instant) -> Patience {
    let waited = now.duration_since(since);
    if waited >= QUARTER_AFTER {
        Patience::WaitedLong
    } else if waited >= HALF_AFTER {
        Patience::Waited
    } else {
        Patience::Fresh
    }
}

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There may be room now, for a request of this patience.
    Called(Patience),
    /// It has waited long enough.
    Over,
    /// The gateway stops.
    Stopping,
}

/// The place of one that waits; it is given up when this is dropped.
pub(super) struct WaitingPlace<'a> {
    room: &'a WaitingRoom,
    number: u64,
    since: Instant,
    call: Arc<Notify>,
    running: Arc<Running>,
    _aside: StoodAside,
}

impl WaitingRoom {
    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        lock(&self.waiters)
    }

    /// A place for a request; `None` if its customer has too many already, or no room for its body.
    pub(super) fn enter(
        &self,
        request: &Request,
        slug: &str,
        needs: LeastNeeds,
        entered: &Entered,
    ) -> Option<WaitingPlace<'_>> {
        let bytes = request.room.as_ref().map_or(0, |room| room.of_holder());
        if bytes > MOST_BYTES {
            return None;
        }
        let mut waiters = self.waiters();
        let customer = request.customer;
        let own = waiters.all.values().filter(|one| one.customer == customer);
        if own.count() >= MOST {
            return None;
        }
        waiters.arrivals += 1;
        let (number, since) = (waiters.arrivals, entered.running.waits());
        let call = Arc::<Notify>::default();
        let waiter = Waiter {
            customer,
            key: request.key,
            slug: slug.to_owned(),
            needs,
            bottleneck: Bottleneck::Purse,
            since,
            // Until it says what it waits for.
            called: Some(Patience::Fresh),
            call: Arc::clone(&call),
        };
        waiters.all.insert(number, waiter);
        drop(waiters);
        let running = Arc::clone(&entered.running);
        Some(WaitingPlace {
            room: self,
            number,
            since,
            call,
            running,
            _aside: request.pass.step_aside(),
        })
    }

    /// Requests that wait now.
    pub fn len(&self) -> usize {
        self.waiters().all.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiters().all.is_empty()
    }

    /// Sends everybody away, now and from now on.
    pub fn stop(&self) {
        let mut waiters = self.waiters();
        waiters.stopping = true;
        for waiter in waiters.all.values() {
            waiter.call.notify_one();
        }
    }

    /// Whether a request of a customer waits.
    pub(super) fn has(&self, customer: CustomerId) -> bool {
        let waiters = self.waiters();
        let mut all = waiters.all.values();
        all.any(|waiter| waiter.customer == customer)
    }

    /// Looks after everybody, as long as the gateway runs.
    pub async fn watch(&self, ledger: &SharedLedger) -> Infallible {
        loop {
            if self.is_empty() {
                self.came.notified().await;
            }
            self.look(ledger, None).await;
            sleep(EVERY).await;
        }
    }

    /// Calls those for whom there is room now: of one customer, or of all.
    pub(super) async fn look(&self, ledger: &SharedLedger, of: Option<CustomerId>) {
        let mut keys: Vec<KeyId> = {
            let waiters = self.waiters();
            let waits = |one: &&Waiter| {
                one.called.is_none() && of.is_none_or(|customer| customer == one.customer)
            };
            waiters
                .all
                .values()
                .filter(waits)
                .map(|one| one.key)
                .collect()
        };
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return;
        }
        // They are looked at again soon.
        let Ok(found) = ledger.find_keys(&keys).await else {
            return;
        };
        self.waiters().call(&keys, &found, Instant::now());
    }
}

impl Proxy {
    /// A request of this customer has ended: calls those of its others that wait for what it held.
    pub(super) fn call_waiting(self: &Arc<Self>, customer: CustomerId) {
        if self.waiting.has(customer) {
            let proxy = Arc::clone(self);
            self.tasks.spawn(async move {
                proxy.waiting.look(&proxy.ledger, Some(customer)).await;
            });
        }
    }
}

impl Waiters {
    /// Calls those of these keys for whom there is room.
    fn call(&mut self, keys: &[KeyId], found: &[Key], now: Instant) {
        let mut queues: HashMap<(CustomerId, Bottleneck), Instant> = HashMap::new();
        let mut given: HashMap<CustomerId, Amount> = HashMap::new();
        for waiter in self.all.values_mut() {
            if waiter.called.is_some() || !keys.contains(&waiter.key) {
                continue;
            }
            let patience = patience(waiter.since, now);
            if waiter.bottleneck == Bottleneck::Beginning {
                // It looks for itself.
                waiter.turn(patience);
                continue;
            }
            let key = found.iter().find(|key| key.id == waiter.key);
            let Some(key) = key.filter(|key| key.check_acts(crate::clock::now()).is_ok()) else {
                // It will be told why it is refused.
                waiter.turn(patience);
                continue;
            };
            let room = MoneyRoom::of(key, &waiter.slug);
            if waiter.needs.at(patience, false) > room.at_rest() {
                // What it waited for was spent: it is refused now.
                waiter.turn(patience);
                continue;
            }
            let given = given.entry(waiter.customer).or_default();
            let left = room.available.checked_sub(*given).unwrap_or_default();
            let shared = room.is_shared() || given.is_positive();
            let need = waiter.needs.at(patience, shared);
            let queue = (waiter.customer, waiter.bottleneck.clone());
            let first = queues.get(&queue);
            let is_small = Amount::times(need, SMALL.unsigned_abs()).is_some_and(|all| all <= left);
            let passes = first.is_none_or(|since| is_small && now.duration_since(*since) < HELD_UP);
            if passes && need <= left {
                *given = given.checked_add(need).unwrap_or(*given);
                waiter.turn(patience);
            } else {
                queues.entry(queue).or_insert(waiter.since);
            }
        }
    }
}

impl Waiter {
    fn turn(&mut self, patience: Patience) {
        self.called = Some(patience);
        self.call.notify_one();
    }
}

impl WaitingPlace<'_> {
    /// Waits for room in what binds the request.
    pub(super) async fn turn(&mut self, bottleneck: Bottleneck) -> Turn {
        let until = self.since + LONGEST;
        {
            let mut waiters = self.room.waiters();
            if waiters.stopping {
                return Turn::Stopping;
            }
            if let Some(own) = waiters.all.get_mut(&self.number) {
                (own.bottleneck, own.called) = (bottleneck, None);
            }
        }
        self.room.came.notify_one();
        let called = timeout_at(until, self.call.notified()).await;
        let waiters = self.room.waiters();
        if waiters.stopping {
            return Turn::Stopping;
        }
        let own = waiters.all.get(&self.number);
        match own.and_then(|own| own.called).filter(|_| called.is_ok()) {
            Some(patience) => Turn::Called(patience),
            None => Turn::Over,
        }
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.room.waiters().all.remove(&self.number);
        self.running.goes_on();
    }
}
