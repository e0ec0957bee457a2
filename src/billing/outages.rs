//! Failures of targets that several customers had at the same time: a provider's outage, which counts against none of them. Pure; the
//! clock is passed in.
//!
//! What is excused here is known to this gateway only, and until it stops.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use farebox_ledger::{Amount, CustomerId, KeyId, Timestamp};
use tokio::time::Instant;

/// Failures that are further apart have causes of their own. Longer, and three customers who each break something on purpose in the
/// same hour would excuse each other; shorter, and an outage of a quiet target would be nobody's.
const TOGETHER: Duration = Duration::from_secs(60);
/// Customers from whom on a failure is nobody's own: one may fail on purpose, and two may be one.
const SEVERAL: usize = 3;
/// Failures remembered of each kind. More within a minute come from a crowd, which is an outage anyhow.
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
    /// When the entry was made, which decides the hour in which it is booked.
    pub(crate) booked: Timestamp,
}

/// The failures of the last minute, by target and kind.
#[derive(Debug, Default)]
pub(crate) struct Outages(Mutex<HashMap<(String, &'static str), VecDeque<NotedFailure>>>);

#[derive(Debug)]
struct NotedFailure {
    failed: FailedTarget,
    at: Instant,
    excused: bool,
}

impl Outages {
    /// Notes a failure, and returns those that count against nobody now. `excused`: the
    /// target is paused for all, or the failure is its own doing.
    pub(crate) fn note(
        &self,
        target: &str,
        kind: &'static str,
        failed: FailedTarget,
        (now, excused): (Instant, bool),
    ) -> Vec<FailedTarget> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, seen| {
            seen.retain(|one| now.duration_since(one.at) <= TOGETHER);
            !seen.is_empty()
        });
        let seen = known.entry((target.to_owned(), kind)).or_default();
        // The oldest goes, because it is the next to be too old anyhow.
        if seen.len() == REMEMBERED {
            seen.pop_front();
        }
        seen.push_back(NotedFailure {
            failed,
            at: now,
            excused: false,
        });
        let customers: HashSet<CustomerId> = seen.iter().map(|one| one.failed.customer).collect();
        // Customers are counted, not failures: one who fails a hundred times is one.
        if !excused && customers.len() < SEVERAL {
            return Vec::new();
        }
        excuse(seen).collect()
    }

    /// A target was paused for all: what failed there within the last minute was the same outage, so this returns those failures.
    pub(crate) fn paused(&self, target: &str, now: Instant) -> Vec<FailedTarget> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = known.iter_mut().filter(|((other, _), _)| other == target);
        here.flat_map(|(_, seen)| {
            seen.retain(|one| now.duration_since(one.at) <= TOGETHER);
            excuse(seen)
        })
        .collect()
    }
}

/// Excuses each failure once.
fn excuse(seen: &mut VecDeque<NotedFailure>) -> impl Iterator<Item = FailedTarget> {
    let fresh = seen.iter_mut().filter(|one| !one.excused);
    fresh.map(|one| {
        one.excused = true;
        one.failed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_three_customers_meet_within_a_minute_counts_against_none_of_them() {
        let (outages, begun) = (Outages::default(), Instant::now());
        let note = |customer: u64, second: u64, kind, paused| {
            let failed = FailedTarget {
                customer: CustomerId::from_random(customer),
                key: KeyId::from_random(customer),
                exposure: Amount::from_picos(7),
                booked: Timestamp::default(),
            };
            let now = begun + Duration::from_secs(second);
            outages.note("up/m", kind, failed, (now, paused)).len()
        };
        assert_eq!(note(1, 0, "timeout", false), 0);
        assert_eq!(note(1, 1, "timeout", false), 0, "the same customer");
        assert_eq!(note(2, 2, "timeout", false), 0);
        assert_eq!(note(3, 3, "broken", false), 0, "another failure");
        assert_eq!(note(3, 4, "timeout", false), 4, "all before it too");
        assert_eq!(note(1, 5, "timeout", false), 1, "each once");
        assert_eq!(note(1, 70, "timeout", false), 0, "a minute later");
        assert_eq!(note(1, 71, "timeout", true), 2, "paused for all");
        assert_eq!(note(2, 72, "timeout", false), 0);
        assert_eq!(note(2, 73, "broken", false), 0);
        let at = |second| begun + Duration::from_secs(second);
        assert_eq!(outages.paused("up/other", at(74)).len(), 0);
        assert_eq!(outages.paused("up/m", at(74)).len(), 2, "of every kind");
        assert_eq!(outages.paused("up/m", at(75)).len(), 0, "each once");
        assert_eq!(note(2, 80, "timeout", false), 0);
        assert_eq!(outages.paused("up/m", at(141)).len(), 0, "too long ago");
    }
}
