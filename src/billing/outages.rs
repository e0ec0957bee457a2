//! Failures of targets before their first frame, and which of them count against nobody. Pure; the clock is passed in.
//!
//! A customer can make any request of its own fail, and two customers may be one. So the target has to fail a request of our own at
//! that time. Where we may not ask, the same failure of two other customers is what there is. What is excused here is known to this
//! gateway only, and until it stops.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use farebox_ledger::{Amount, CustomerId, KeyId, Timestamp, lock};
use tokio::time::Instant;

/// A request of our own says something about what failed so shortly before or after it.
const NEAR: Duration = Duration::from_secs(10);
/// Failures of customers that are further apart have causes of their own.
const TOGETHER: Duration = Duration::from_secs(60);
/// Customers from whom on a failure is nobody's own, where we may not ask: one may fail on purpose, and two may be one.
const SEVERAL: usize = 3;
/// Failures remembered of each target. More within a minute come from a crowd, which is an outage anyhow.
const REMEMBERED: usize = 1_000;

/// One failure of a target that left the operator with something to pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailedTarget {
    /// Whose request it was.
    pub(crate) customer: CustomerId,
    /// The key that asked.
    pub(crate) key: KeyId,
    /// What was not charged.
    pub(crate) exposure: Amount,
    /// The price of a full context of what was asked for.
    pub(crate) context: Amount,
    /// When the entry was made, which decides the hour in which it is booked.
    pub(crate) booked: Timestamp,
}

/// The failures of the last minute, by target.
#[derive(Debug, Default)]
pub(crate) struct Outages(Mutex<HashMap<String, FailingTarget>>);

#[derive(Debug, Default)]
struct FailingTarget {
    failures: VecDeque<NotedFailure>,
    /// When requests of our own were sent that had no frame, and were to prove something.
    ours: VecDeque<Instant>,
}

#[derive(Debug)]
struct NotedFailure {
    failed: FailedTarget,
    kind: &'static str,
    at: Instant,
    excused: bool,
}

impl FailingTarget {
    fn forget(&mut self, now: Instant) {
        self.failures
            .retain(|one| now.saturating_duration_since(one.at) <= TOGETHER);
        self.ours
            .retain(|sent| now.saturating_duration_since(*sent) <= TOGETHER);
    }

    /// Excuses each of these failures once.
    fn excuse(&mut self, which: impl Fn(&NotedFailure) -> bool) -> Vec<FailedTarget> {
        let fresh = self.failures.iter_mut();
        fresh
            .filter(|one| !one.excused && which(one))
            .map(|one| {
                one.excused = true;
                one.failed
            })
            .collect()
    }
}

impl Outages {
    /// Notes a failure, and returns those that count against nobody now. `may_ask`: we may ask the target ourselves.
    pub(crate) fn note(
        &self,
        target: &str,
        kind: &'static str,
        failed: FailedTarget,
        (now, may_ask): (Instant, bool),
    ) -> Vec<FailedTarget> {
        self.with(target, now, |known| {
            // The oldest goes, because it is the next to be too old anyhow.
            if known.failures.len() == REMEMBERED {
                known.failures.pop_front();
            }
            known.failures.push_back(NotedFailure {
                failed,
                kind,
                at: now,
                excused: false,
            });
            if known.ours.iter().any(|sent| is_near(*sent, now)) {
                return known.excuse(|one| one.at == now);
            }
            let same = known.failures.iter().filter(|one| one.kind == kind);
            // Customers are counted, not failures: one who fails a hundred times is one.
            let customers: HashSet<CustomerId> = same.map(|one| one.failed.customer).collect();
            if may_ask || customers.len() < SEVERAL {
                return Vec::new();
            }
            known.excuse(|one| one.kind == kind)
        })
    }

    /// A request of our own, sent at `sent`, had no frame where it should have had one: returns the failures that this explains.
    pub(crate) fn outage(&self, target: &str, sent: Instant, now: Instant) -> Vec<FailedTarget> {
        self.with(target, now, |known| {
            known.ours.push_back(sent);
            known.excuse(|one| is_near(sent, one.at))
        })
    }

    fn with<T>(&self, target: &str, now: Instant, with: impl FnOnce(&mut FailingTarget) -> T) -> T {
        let mut known = lock(&self.0);
        known.retain(|_, of_one| {
            of_one.forget(now);
            !of_one.failures.is_empty() || !of_one.ours.is_empty()
        });
        with(known.entry(target.to_owned()).or_default())
    }
}

fn is_near(one: Instant, other: Instant) -> bool {
    one.max(other).saturating_duration_since(one.min(other)) <= NEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Seen {
        outages: Outages,
        begun: Instant,
    }

    impl Seen {
        fn new() -> Self {
            Self {
                outages: Outages::default(),
                begun: Instant::now(),
            }
        }

        fn at(&self, second: u64) -> Instant {
            self.begun + Duration::from_secs(second)
        }

        fn note(&self, customer: u64, second: u64, kind: &'static str, may_ask: bool) -> usize {
            let failed = FailedTarget {
                customer: CustomerId::from_random(customer),
                key: KeyId::from_random(customer),
                exposure: Amount::from_picos(7),
                context: Amount::ZERO,
                booked: Timestamp::default(),
            };
            let now = (self.at(second), may_ask);
            self.outages.note("up/m", kind, failed, now).len()
        }

        fn outage(&self, target: &str, sent: u64, now: u64) -> usize {
            let (sent, now) = (self.at(sent), self.at(now));
            self.outages.outage(target, sent, now).len()
        }
    }

    #[test]
    fn what_a_request_of_our_own_meets_too_counts_against_nobody() {
        let seen = Seen::new();
        for second in [0, 5, 20] {
            assert_eq!(seen.note(1, second, "broken", true), 0);
        }
        assert_eq!(seen.outage("up/other", 8, 21), 0);
        assert_eq!(seen.outage("up/m", 8, 21), 2, "within ten seconds of it");
        assert_eq!(seen.outage("up/m", 9, 22), 0, "each once");
        assert_eq!(seen.note(2, 30, "broken", true), 0, "too late for that");
        assert_eq!(seen.outage("up/m", 32, 33), 1);
        assert_eq!(seen.note(1, 40, "timeout", true), 1, "and what follows");
        assert_eq!(seen.note(1, 43, "timeout", true), 0);
    }

    #[test]
    fn where_we_may_not_ask_three_customers_excuse_each_other() {
        let seen = Seen::new();
        assert_eq!(seen.note(1, 0, "timeout", false), 0);
        assert_eq!(seen.note(1, 1, "timeout", false), 0, "the same customer");
        assert_eq!(seen.note(2, 2, "timeout", false), 0);
        assert_eq!(seen.note(3, 3, "broken", false), 0, "another failure");
        assert_eq!(seen.note(3, 4, "timeout", true), 0, "we may ask");
        assert_eq!(seen.note(3, 5, "timeout", false), 5, "all before it too");
        assert_eq!(seen.note(1, 6, "timeout", false), 1, "each once");
        assert_eq!(seen.note(1, 70, "timeout", false), 0, "a minute later");
    }
}
