//! Wrong codes of vouchers: how many a customer, and a network address, may try in a minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farebox_ledger::CustomerId;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// Wrong codes of one customer in a minute.
const OF_CUSTOMER: u32 = 5;
/// Wrong codes from one network address in a minute.
const OF_PEER: u32 = 20;

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

/// Wrong codes of the last minute. It begins with the first of them.
#[derive(Debug, Default)]
pub struct WrongGuesses(Mutex<HashMap<Guesser, (Instant, u32)>>);

impl WrongGuesses {
    /// Refuses who has tried too many; says how long they have to wait.
    pub(super) fn check(
        &self,
        customer: CustomerId,
        peer: Option<IpAddr>,
        now: Instant,
    ) -> Result<(), Duration> {
        let known = self.known(now);
        let waits = guessers(customer, peer).filter_map(|who| {
            let (since, wrong) = known.get(&who)?;
            let passed = now.saturating_duration_since(*since);
            (*wrong >= who.most()).then(|| MINUTE.saturating_sub(passed))
        });
        waits.max().map_or(Ok(()), Err)
    }

    /// Counts a wrong code.
    pub(super) fn note(&self, customer: CustomerId, peer: Option<IpAddr>, now: Instant) {
        let mut known = self.known(now);
        for who in guessers(customer, peer) {
            let (_, wrong) = known.entry(who).or_insert((now, 0));
            *wrong = wrong.saturating_add(1);
        }
    }

    /// What is still counted.
    fn known(&self, now: Instant) -> MutexGuard<'_, HashMap<Guesser, (Instant, u32)>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (since, _)| now.saturating_duration_since(*since) < MINUTE);
        known
    }
}

fn guessers(customer: CustomerId, peer: Option<IpAddr>) -> impl Iterator<Item = Guesser> {
    let peer = peer.map(Guesser::Peer).into_iter();
    peer.chain([Guesser::Customer(customer)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn five_wrong_codes_a_minute_are_enough_and_twenty_for_an_address() {
        let (guesses, now) = (WrongGuesses::default(), Instant::now());
        let customer = CustomerId::from_random;
        let peer = Some(IpAddr::from([192, 0, 2, 7]));
        for _ in 0..5 {
            assert_eq!(guesses.check(customer(1), peer, now), Ok(()));
            guesses.note(customer(1), peer, now);
        }
        assert_eq!(guesses.check(customer(1), None, now), Err(MINUTE));
        for other in 2..5 {
            for _ in 0..5 {
                assert_eq!(guesses.check(customer(other), peer, now), Ok(()));
                guesses.note(customer(other), peer, now);
            }
        }
        let later = now + Duration::from_secs(20);
        assert_eq!(
            guesses.check(customer(9), peer, later),
            Err(Duration::from_secs(40))
        );
        assert_eq!(guesses.check(customer(9), None, later), Ok(()));
        assert_eq!(guesses.check(customer(1), peer, now + MINUTE), Ok(()));
    }
}
