//! A limit of a provider, shared fairly between customers: requests at once, or tokens in a minute.
//!
//! While nobody waits, one customer may take everything but a part that is kept for the next one: one place, or a tenth of the
//! tokens. What becomes free goes to the waiting customer who has the least. So a lone customer uses a small server fully, and one
//! who comes later waits for one answer at most.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox_ledger::lock;
use tokio::sync::oneshot;
use tokio::time::Instant;

use farebox_door::byte_room::Holder;

/// A limited quantity.
#[derive(Debug)]
pub(super) struct LimitedPlaces {
    most: u64,
    /// What one customer cannot take.
    kept: u64,
    /// How long a part counts after it was taken; `None`: until it is dropped.
    counted_for: Option<Duration>,
    state: Mutex<PlacesState>,
}

#[derive(Debug, Default)]
struct PlacesState {
    all: u64,
    by: HashMap<Holder, u64>,
    /// In the order in which they came.
    queue: Vec<WaitingCustomer>,
    /// Parts of requests that have ended, which count until their time.
    ended: Vec<(Instant, Holder, u64)>,
}

#[derive(Debug)]
struct WaitingCustomer {
    holder: Holder,
    size: u64,
    tell: oneshot::Sender<TakenPlace>,
}

/// One customer's part; given back when dropped, or a minute after it was taken.
#[derive(Debug)]
pub(super) struct TakenPlace {
    places: Arc<LimitedPlaces>,
    holder: Holder,
    size: u64,
    until: Option<Instant>,
}

/// A request's part of a provider's tokens in a minute.
#[derive(Debug)]
pub struct TokenShare(pub(super) TakenPlace);

/// Providers count tokens by the minute.
const MINUTE: Duration = Duration::from_secs(60);

impl LimitedPlaces {
    /// Places for requests at once.
    pub(super) fn at_once(most: u32) -> Arc<Self> {
        Arc::new(Self {
            most: most.into(),
            kept: u64::from(most > 1),
            counted_for: None,
            state: Mutex::default(),
        })
    }

    /// Places for what can wait: half of them are kept.
    pub(super) fn halved(most: u32) -> Arc<Self> {
        Arc::new(Self {
            most: most.into(),
            kept: u64::from(most / 2),
            counted_for: None,
            state: Mutex::default(),
        })
    }

    /// Tokens in a minute.
    pub(super) fn in_a_minute(most: u64) -> Arc<Self> {
        Arc::new(Self {
            most,
            kept: most / 10,
            counted_for: Some(MINUTE),
            state: Mutex::default(),
        })
    }

    /// A part for a customer at once. `None` if there is not enough, the customer has all it may have, or somebody with less waits.
    pub(super) fn take(self: &Arc<Self>, holder: Holder, size: u64) -> Option<TakenPlace> {
        let (mut state, size) = (lock(&self.state), self.usual(size));
        self.forget_ended(&mut state);
        let own = state.of(holder);
        let goes_first = |other: &WaitingCustomer| {
            let theirs = state.of(other.holder);
            !other.tell.is_closed() && theirs <= own && self.fits(&state, other.holder, other.size)
        };
        if !self.fits(&state, holder, size) || state.queue.iter().any(goes_first) {
            return None;
        }
        Some(self.grant(&mut state, holder, size))
    }

    /// The same, waiting for it.
    pub(super) async fn wait(self: &Arc<Self>, holder: Holder, size: u64) -> TakenPlace {
        let size = self.usual(size);
        let (tell, mut told) = oneshot::channel();
        lock(&self.state)
            .queue
            .push(WaitingCustomer { holder, size, tell });
        loop {
            let next = self.hand_out();
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                place = &mut told => match place {
                    Ok(place) => return place,
                    // The sender is dropped only with its place in the queue, after it was used.
                    Err(_) => std::future::pending().await,
                },
                () = due => {}
            }
        }
    }

    /// Gives what is free to those who wait; returns when more becomes free by itself.
    fn hand_out(self: &Arc<Self>) -> Option<Instant> {
        loop {
            let mut state = lock(&self.state);
            self.forget_ended(&mut state);
            state.queue.retain(|waiting| !waiting.tell.is_closed());
            let least = state
                .queue
                .iter()
                .enumerate()
                .filter(|(_, waiting)| self.fits(&state, waiting.holder, waiting.size))
                .min_by_key(|(at, waiting)| (state.of(waiting.holder), *at))
                .map(|(at, _)| at);
            let Some(at) = least else {
                return state.ended.iter().map(|(until, ..)| *until).min();
            };
            let next = state.queue.remove(at);
            // Whoever gets it may have gone, and the drop of the place takes the lock.
            let place = self.grant(&mut state, next.holder, next.size);
            drop(state);
            // Who has stopped waiting gives it back, and the next one gets it.
            drop(next.tell.send(place));
        }
    }

    fn grant(self: &Arc<Self>, state: &mut PlacesState, holder: Holder, size: u64) -> TakenPlace {
        state.add(holder, size);
        TakenPlace {
            places: Arc::clone(self),
            holder,
            size,
            until: self.counted_for.map(|time| Instant::now() + time),
        }
    }

    /// Whether a customer may take this much now. One who has nothing may take more than a customer's part, if it is there.
    fn fits(&self, state: &PlacesState, holder: Holder, size: u64) -> bool {
        let own = state.of(holder);
        state.all.saturating_add(size) <= self.most
            && own.saturating_add(size) <= self.most - self.kept
    }

    /// A request that is larger than a customer's part counts as that part: it could never start otherwise.
    fn usual(&self, size: u64) -> u64 {
        size.min(self.most - self.kept)
    }

    fn forget_ended(&self, state: &mut PlacesState) {
        if state.ended.is_empty() {
            return;
        }
        let now = Instant::now();
        let over: Vec<_> = state
            .ended
            .extract_if(.., |(until, ..)| *until <= now)
            .collect();
        for (_, holder, size) in over {
            state.remove(holder, size);
        }
    }
}

impl PlacesState {
    fn of(&self, holder: Holder) -> u64 {
        self.by.get(&holder).copied().unwrap_or_default()
    }

    fn add(&mut self, holder: Holder, size: u64) {
        self.all = self.all.saturating_add(size);
        let own = self.by.entry(holder).or_default();
        *own = own.saturating_add(size);
    }

    fn remove(&mut self, holder: Holder, size: u64) {
        self.all = self.all.saturating_sub(size);
        if let Some(own) = self.by.get_mut(&holder) {
            *own = own.saturating_sub(size);
            if *own == 0 {
                self.by.remove(&holder);
            }
        }
    }
}

impl TokenShare {
    /// Corrects it to what was really used.
    pub fn used(mut self, tokens: u64) {
        self.0.resize(tokens);
    }
}

impl TakenPlace {
    fn resize(&mut self, size: u64) {
        let mut state = lock(&self.places.state);
        state.remove(self.holder, self.size);
        state.add(self.holder, size);
        self.size = size;
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        let mut state = lock(&self.places.state);
        match self.until.filter(|until| *until > Instant::now()) {
            Some(until) => state.ended.push((until, self.holder, self.size)),
            None => state.remove(self.holder, self.size),
        }
        drop(state);
        self.places.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Holder = Holder(1);
    const BOB: Holder = Holder(2);
    const CAT: Holder = Holder(3);

    fn taken(places: &Arc<LimitedPlaces>, holder: Holder) -> Vec<TakenPlace> {
        std::iter::from_fn(|| places.take(holder, 1)).collect()
    }

    /// Waits in a task that the test can look at.
    fn waiting(places: &Arc<LimitedPlaces>, holder: Holder) -> tokio::task::JoinHandle<TakenPlace> {
        let places = Arc::clone(places);
        tokio::spawn(async move { places.wait(holder, 1).await })
    }

    #[tokio::test(start_paused = true)]
    async fn a_lone_customer_takes_all_but_one_and_the_next_finds_it() {
        let places = LimitedPlaces::at_once(4);
        let anns = taken(&places, ANN);
        assert_eq!(anns.len(), 3);
        let bobs = taken(&places, BOB);
        assert_eq!(bobs.len(), 1);
        assert!(places.take(CAT, 1).is_none(), "all four are taken");
        drop((anns, bobs));
        let state = lock(&places.state);
        assert!(
            state.by.is_empty() && state.all == 0,
            "nobody is remembered"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_place_goes_to_whoever_waits_and_has_least() {
        let places = LimitedPlaces::at_once(1);
        let held = places.take(ANN, 1).unwrap();
        let again = waiting(&places, ANN);
        tokio::task::yield_now().await;
        let bob = waiting(&places, BOB);
        tokio::task::yield_now().await;
        assert!(!again.is_finished() && !bob.is_finished());
        drop(held);
        // Both have nothing now: who came first.
        let place = again.await.unwrap();
        assert!(!bob.is_finished());
        drop(place);
        drop(bob.await.unwrap());
        assert!(places.take(CAT, 1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn ten_agents_of_one_customer_make_a_second_one_wait_for_one_answer() {
        let places = LimitedPlaces::at_once(4);
        let mut anns = taken(&places, ANN);
        let more: Vec<_> = (0..7).map(|_| waiting(&places, ANN)).collect();
        let bobs: Vec<_> = (0..2).map(|_| waiting(&places, BOB)).collect();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let running = |tasks: &[tokio::task::JoinHandle<TakenPlace>]| {
            tasks.iter().filter(|task| task.is_finished()).count()
        };
        assert_eq!(
            (running(&more), running(&bobs)),
            (0, 1),
            "one was kept for him"
        );
        drop(anns.pop());
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            (running(&more), running(&bobs)),
            (0, 2),
            "he has the fewest"
        );
        drop(anns.pop());
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!((running(&more), running(&bobs)), (1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_leaves_no_hole() {
        let places = LimitedPlaces::at_once(1);
        let held = places.take(ANN, 1).unwrap();
        let gone = waiting(&places, BOB);
        let stays = waiting(&places, CAT);
        tokio::task::yield_now().await;
        gone.abort();
        tokio::task::yield_now().await;
        drop(held);
        drop(stays.await.unwrap());
        assert!(places.take(ANN, 1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_come_back_after_a_minute_and_the_last_tenth_is_for_another() {
        let tokens = LimitedPlaces::in_a_minute(1_000);
        let first = TokenShare(tokens.take(ANN, 600).unwrap());
        assert!(tokens.take(ANN, 400).is_none());
        assert!(
            tokens.take(BOB, 400).is_some(),
            "dropped at once, counted for a minute"
        );
        first.used(100);
        assert!(tokens.take(CAT, 600).is_none());
        let began = Instant::now();
        drop(tokens.wait(CAT, 600).await);
        assert_eq!(began.elapsed(), MINUTE);
        // More than a customer's part counts as that part.
        tokio::time::advance(MINUTE).await;
        assert!(tokens.take(ANN, 50_000).is_some());
        assert!(tokens.take(BOB, 100).is_some());
    }
}
