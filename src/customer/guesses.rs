//! Wrong codes of vouchers: how many a customer, and a network address, may try in a minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use farebox_ledger::{CustomerId, lock};
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// Wrong codes of one customer in a minute.
const OF_CUSTOMER: u32 = 5;
/// Wrong codes from one network address in a minute.
const OF_PEER: u32 = 20;
/// When somebody whose codes are being looked up may try the next.
const SHORTLY: Duration = Duration::from_secs(1);

/// Who tries codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Guesser {
    Customer(CustomerId),
    Peer(IpAddr),
}

impl Guesser {
    const fn most(self) -> u32 {
        match self {
            Self::Customer(_) => OF_CUSTOMER,
            Self::Peer(_) => OF_PEER,
        }
    }
}

/// What somebody tried.
#[derive(Debug)]
struct Tries {
    /// Its minute begins with the first wrong code.
    since: Instant,
    wrong: u32,
    /// Codes that are being looked up: any of them may be wrong.
    open: u32,
}

/// Wrong codes of the last minute, and those of which that is not known yet.
#[derive(Debug, Default)]
pub(super) struct WrongGuesses(Mutex<HashMap<Guesser, Tries>>);

/// One code that is being looked up. It counts as a wrong one until it is dropped, so that a burst tries no more than what comes one by
/// one.
#[derive(Debug)]
pub(super) struct Guess<'a> {
    guesses: &'a WrongGuesses,
    customer: CustomerId,
    peer: Option<IpAddr>,
}

impl WrongGuesses {
    /// Begins one, or refuses who has tried too many and says how long they have to wait.
    pub(super) fn begin(
        &self,
        customer: CustomerId,
        peer: Option<IpAddr>,
        now: Instant,
    ) -> Result<Guess<'_>, Duration> {
        let mut known = self.known(now);
        let wait = |who: Guesser| {
            let tries = known.get(&who)?;
            if tries.wrong >= who.most() {
                let passed = now.saturating_duration_since(tries.since);
                return Some(MINUTE.saturating_sub(passed));
            }
            // Of an address only wrong codes count: an office redeems many right ones at once, each customer five.
            let may_be_wrong = match who {
                Guesser::Customer(_) => tries.wrong.saturating_add(tries.open),
                Guesser::Peer(_) => tries.wrong,
            };
            (may_be_wrong >= who.most()).then_some(SHORTLY)
        };
        if let Some(wait) = guessers(customer, peer).filter_map(wait).max() {
            return Err(wait);
        }
        for who in guessers(customer, peer) {
            let tries = known.entry(who).or_insert(Tries {
                since: now,
                wrong: 0,
                open: 0,
            });
            tries.open = tries.open.saturating_add(1);
        }
        Ok(Guess {
            guesses: self,
            customer,
            peer,
        })
    }

    /// What still counts.
    fn known(&self, now: Instant) -> MutexGuard<'_, HashMap<Guesser, Tries>> {
        let mut known = lock(&self.0);
        known.retain(|_, tries| {
            if now.saturating_duration_since(tries.since) >= MINUTE {
                tries.wrong = 0;
            }
            tries.wrong > 0 || tries.open > 0
        });
        known
    }
}

impl Guess<'_> {
    pub(super) fn was_wrong(self, now: Instant) {
        let mut known = lock(&self.guesses.0);
        for who in guessers(self.customer, self.peer) {
            if let Some(tries) = known.get_mut(&who) {
                if tries.wrong == 0 {
                    tries.since = now;
                }
                tries.wrong = tries.wrong.saturating_add(1);
            }
        }
        // Dropping it takes the lock again.
        drop(known);
    }
}

impl Drop for Guess<'_> {
    fn drop(&mut self) {
        let mut known = lock(&self.guesses.0);
        for who in guessers(self.customer, self.peer) {
            if let Some(tries) = known.get_mut(&who) {
                tries.open = tries.open.saturating_sub(1);
            }
        }
    }
}

fn guessers(customer: CustomerId, peer: Option<IpAddr>) -> impl Iterator<Item = Guesser> {
    let peer = peer.map(Guesser::Peer).into_iter();
    peer.chain([Guesser::Customer(customer)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)));

    fn customer(number: u64) -> CustomerId {
        CustomerId::from_random(number)
    }

    fn wait(
        guesses: &WrongGuesses,
        of: u64,
        peer: Option<IpAddr>,
        now: Instant,
    ) -> Option<Duration> {
        guesses.begin(customer(of), peer, now).err()
    }

    fn five_wrong(guesses: &WrongGuesses, of: u64, now: Instant) {
        for _ in 0..5 {
            let guess = guesses.begin(customer(of), PEER, now);
            guess.unwrap().was_wrong(now);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn five_wrong_codes_a_minute_are_enough_and_twenty_for_an_address() {
        let (guesses, now) = (WrongGuesses::default(), Instant::now());
        five_wrong(&guesses, 1, now);
        assert_eq!(wait(&guesses, 1, None, now), Some(MINUTE));
        for other in 2..5 {
            five_wrong(&guesses, other, now);
        }
        let later = now + Duration::from_secs(20);
        let left = Some(Duration::from_secs(40));
        assert_eq!(wait(&guesses, 9, PEER, later), left);
        assert_eq!(wait(&guesses, 9, None, later), None);
        assert_eq!(wait(&guesses, 1, PEER, now + MINUTE), None);
        // What is forgotten is not kept.
        assert!(guesses.known(now + MINUTE).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_tries_no_more_than_what_comes_one_by_one() {
        let (guesses, now) = (WrongGuesses::default(), Instant::now());
        let begin = || guesses.begin(customer(1), None, now);
        let open: Vec<_> = (0..5).map(|_| begin().unwrap()).collect();
        assert_eq!(begin().err(), Some(SHORTLY));
        // Those that were right count no more.
        drop(open);
        five_wrong(&guesses, 1, now);
        assert_eq!(begin().err(), Some(MINUTE));
        // A minute later one that is still being looked up counts as before.
        let late = now + MINUTE;
        let open = guesses.begin(customer(1), None, late).unwrap();
        for _ in 0..4 {
            let guess = guesses.begin(customer(1), None, late).unwrap();
            guess.was_wrong(late);
        }
        assert_eq!(wait(&guesses, 1, None, late), Some(SHORTLY));
        open.was_wrong(late);
        assert_eq!(wait(&guesses, 1, None, late), Some(MINUTE));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_redeems_as_many_right_codes_at_once_as_it_has_customers() {
        let (guesses, now) = (WrongGuesses::default(), Instant::now());
        let open: Vec<_> = (0..100)
            .map(|of| guesses.begin(customer(of), PEER, now).unwrap())
            .collect();
        drop(open);
        assert_eq!(wait(&guesses, 1, PEER, now), None);
    }
}
