//! The one budget of those who show no key: CPU time, and calls to third parties that are made for them, per peer and over all.
//!
//! It is asked before any work. A peer is an IPv4 address or an IPv6 /64; what a trusted proxy forwards without an address is bounded
//! over all only, because it is everybody.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::cpu::{BudgetUsed, CpuBudget};

/// CPU time for one peer: a twentieth of a CPU, some hundred pages a second.
const OF_PEER: CpuBudget = CpuBudget {
    rate: Duration::from_millis(50),
    burst: Duration::from_millis(500),
};
/// CPU time for all of them: a fifth of a CPU.
const OF_ALL: CpuBudget = CpuBudget {
    rate: Duration::from_millis(200),
    burst: Duration::from_secs(2),
};
/// A call to a third party counts as a second of these budgets.
const CALL: Duration = Duration::from_secs(1);
/// Calls for one peer: one in two seconds, ten at once.
const CALLS_OF_PEER: CpuBudget = CpuBudget {
    rate: Duration::from_millis(500),
    burst: Duration::from_secs(10),
};
/// Calls for all of them: ten a second.
const CALLS_OF_ALL: CpuBudget = CpuBudget {
    rate: Duration::from_secs(10),
    burst: Duration::from_secs(40),
};
/// From this many peers on, those with full budgets are forgotten.
const REMEMBERED: usize = 10_000;
/// How often what waits for the budget looks at it.
const LOOK: Duration = Duration::from_millis(100);

/// What is left of their budgets, of each peer and of all together.
#[derive(Debug, Default)]
pub struct Strangers(Mutex<StrangersUsed>);

#[derive(Debug, Default)]
struct StrangersUsed {
    all: PeerUsed,
    peers: HashMap<IpAddr, PeerUsed>,
    /// Peers that were left when others were last forgotten.
    left: usize,
}

#[derive(Debug, Default)]
struct PeerUsed {
    cpu: BudgetUsed,
    calls: BudgetUsed,
}

/// How long until a budget has something left; nothing if it has.
fn wait(used: &mut BudgetUsed, of: CpuBudget, now: Instant) -> Option<Duration> {
    let over = used.now(of, now).checked_sub(of.burst)?;
    let seconds = over.as_secs_f64() / of.rate.as_secs_f64();
    Some(Duration::from_secs_f64(seconds).max(Duration::from_millis(1)))
}

impl Strangers {
    /// Lets a peer have some work done, or says how long it has to wait.
    ///
    /// # Errors
    /// When it is beyond its budget, or all of them are beyond theirs.
    pub fn admit(&self, peer: Option<IpAddr>) -> Result<(), Duration> {
        let (now, mut used) = (Instant::now(), self.lock());
        let of_all = wait(&mut used.all.cpu, OF_ALL, now);
        let of_peer = peer
            .and_then(|peer| used.peers.get_mut(&peer))
            .and_then(|own| wait(&mut own.cpu, OF_PEER, now));
        of_peer.max(of_all).map_or(Ok(()), Err)
    }

    /// The same for what must not be refused: it waits, at most so long.
    ///
    /// # Errors
    /// When the time was not enough.
    pub async fn wait(&self, peer: Option<IpAddr>, most: Duration) -> Result<(), Duration> {
        let until = Instant::now() + most;
        loop {
            match self.admit(peer) {
                Ok(()) => return Ok(()),
                Err(left) if Instant::now() + left.min(LOOK) >= until => return Err(left),
                Err(left) => tokio::time::sleep(left.min(LOOK)).await,
            }
        }
    }

    /// Lets a third party be called for a peer.
    ///
    /// # Errors
    /// When it is beyond its budget of calls, or all of them are beyond theirs.
    pub fn admit_call(&self, peer: Option<IpAddr>) -> Result<(), Duration> {
        let (now, mut used) = (Instant::now(), self.lock());
        used.forget_some(now);
        let StrangersUsed { all, peers, .. } = &mut *used;
        let mut own = peer.map(|peer| peers.entry(peer).or_default());
        // The last call of a burst has to fit, so that it is compared with what is left after it.
        let of_peer = own.as_mut().and_then(|own| {
            let before = *own.calls.now(CALLS_OF_PEER, now);
            (before + CALL > CALLS_OF_PEER.burst).then_some(CALL * 2)
        });
        let of_all =
            (*all.calls.now(CALLS_OF_ALL, now) + CALL > CALLS_OF_ALL.burst).then_some(CALL);
        if let Some(wait) = of_peer.max(of_all) {
            return Err(wait);
        }
        if let Some(own) = own {
            *own.calls.now(CALLS_OF_PEER, now) += CALL;
        }
        *all.calls.now(CALLS_OF_ALL, now) += CALL;
        Ok(())
    }

    /// Books CPU time.
    pub fn book(&self, peer: Option<IpAddr>, time: Duration) {
        let (now, mut used) = (Instant::now(), self.lock());
        used.forget_some(now);
        *used.all.cpu.now(OF_ALL, now) += time;
        if let Some(peer) = peer {
            *used.peers.entry(peer).or_default().cpu.now(OF_PEER, now) += time;
        }
    }

    fn lock(&self) -> MutexGuard<'_, StrangersUsed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StrangersUsed {
    fn forget_some(&mut self, now: Instant) {
        if self.peers.len() < REMEMBERED.max(self.left.saturating_mul(2)) {
            return;
        }
        // A full budget is what a new peer has, so forgetting it changes nothing.
        self.peers.retain(|_, own| {
            !own.cpu.now(OF_PEER, now).is_zero() || !own.calls.now(CALLS_OF_PEER, now).is_zero()
        });
        self.left = self.peers.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_has_spent_its_budget_keeps_no_other_out() {
        let strangers = Strangers::default();
        strangers.book(peer(1), OF_PEER.burst);
        assert!(strangers.admit(peer(1)).is_err());
        assert_eq!(strangers.admit(peer(2)), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(strangers.admit(peer(1)), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn all_of_them_have_one_budget_and_who_may_not_be_refused_waits_for_it() {
        let strangers = Strangers::default();
        for last in 0..10 {
            strangers.book(peer(last), OF_ALL.burst / 10);
        }
        strangers.book(None, OF_ALL.rate);
        assert!(strangers.admit(peer(99)).is_err());
        assert!(strangers.admit(None).is_err());
        let begun = Instant::now();
        let most = Duration::from_secs(10);
        assert_eq!(strangers.wait(peer(99), most).await, Ok(()));
        assert!(begun.elapsed() >= Duration::from_secs(1));
        strangers.book(None, Duration::from_secs(60));
        assert!(strangers.wait(peer(99), most).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_has_ten_calls_and_then_one_in_two_seconds() {
        let strangers = Strangers::default();
        for _ in 0..10 {
            assert_eq!(strangers.admit_call(peer(1)), Ok(()));
        }
        assert!(strangers.admit_call(peer(1)).is_err());
        assert_eq!(strangers.admit_call(peer(2)), Ok(()));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(strangers.admit_call(peer(1)), Ok(()));
        assert!(strangers.admit_call(peer(1)).is_err());
        for last in 10..100 {
            let _ = strangers.admit_call(peer(last));
        }
        assert!(strangers.admit_call(peer(200)).is_err(), "all of them");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_forgotten_is_what_a_new_peer_has() {
        let strangers = Strangers::default();
        for number in 0..u32::try_from(REMEMBERED).unwrap() {
            let address = IpAddr::from((number + 1).to_be_bytes());
            strangers.book(Some(address), Duration::from_micros(1));
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        strangers.book(peer(1), OF_PEER.burst);
        strangers.book(peer(2), Duration::from_micros(1));
        assert!(strangers.lock().peers.len() <= 3);
        assert!(strangers.admit(peer(1)).is_err());
    }
}
