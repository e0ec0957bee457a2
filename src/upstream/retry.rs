//! Decides what to do after a failed attempt: stop, the same target again, its next account, or the next target. Pure; the clock is passed in.
//!
//! A target is asked again only for a request that provably never left, and only within a budget, so that an outage does not
//! multiply traffic. Moving on to the next target has no budget. A customer's own mistake stops all tries, because another target
//! would refuse it too; so does giving up on a whole answer, because it is charged.
//!
//! Rows of docs/interface.md: `one_model_fails`.

use std::time::Duration;

use tokio::time::Instant;

use super::classify::AttemptFailure;

/// What to do after a failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// Tell the customer.
    Stop,
    /// Ask the same target again.
    SameTarget,
    /// Ask it with another of its provider's accounts, or else the next one.
    NextAccount,
    /// Ask the next one.
    NextTarget,
}

/// Decides what follows `tries` at one target, the last of which ended in `fault`; `extra` more are allowed.
pub(super) fn after(
    fault: &AttemptFailure,
    tries: u32,
    extra: u32,
    now: Instant,
    budget: &mut RepeatBudget,
) -> Move {
    match fault {
        AttemptFailure::Client { .. } | AttemptFailure::GivenUp(_) => Move::Stop,
        AttemptFailure::Unsent(_) if tries <= extra && budget.take(now) => Move::SameTarget,
        // What one account may not do, another one may.
        AttemptFailure::Operator(_)
        | AttemptFailure::NotServed(_)
        | AttemptFailure::Busy {
            of_account: true, ..
        } => Move::NextAccount,
        AttemptFailure::Unsent(_)
        | AttemptFailure::Own(_)
        | AttemptFailure::Busy {
            of_account: false, ..
        }
        | AttemptFailure::Broken(_)
        | AttemptFailure::Failed(_) => Move::NextTarget,
    }
}

/// How many repeats one provider may get: a fifth of its recent requests, with a small minimum.
#[derive(Debug)]
pub(super) struct RepeatBudget {
    began: Instant,
    recent: RepeatCount,
    before: RepeatCount,
}

#[derive(Debug, Default, Clone, Copy)]
struct RepeatCount {
    requests: u32,
    repeats: u32,
}

// One repeat for each five requests of the last ten to twenty seconds, and three in any case. With more, an outage would multiply the
// traffic that a target meets when it comes back; without the three, a quiet gateway could repeat nothing.
const WINDOW: Duration = Duration::from_secs(10);
const ALWAYS: u32 = 3;
const SHARE: u32 = 5;

impl RepeatBudget {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            recent: RepeatCount::default(),
            before: RepeatCount::default(),
        }
    }

    /// Counts a request.
    pub(super) fn request(&mut self, now: Instant) {
        self.turn(now);
        self.recent.requests = self.recent.requests.saturating_add(1);
    }

    fn take(&mut self, now: Instant) -> bool {
        self.turn(now);
        let requests = self.recent.requests.saturating_add(self.before.requests);
        let repeats = self.recent.repeats.saturating_add(self.before.repeats);
        let granted = repeats < (requests / SHARE).max(ALWAYS);
        if granted {
            self.recent.repeats = self.recent.repeats.saturating_add(1);
        }
        granted
    }

    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < WINDOW {
            return;
        }
        self.before = if age < WINDOW * 2 {
            self.recent
        } else {
            RepeatCount::default()
        };
        self.recent = RepeatCount::default();
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use farebox_protocol::UpstreamError;

    use super::*;

    fn unsent() -> AttemptFailure {
        AttemptFailure::Unsent("connection refused".to_owned())
    }

    #[test]
    fn only_what_never_left_is_sent_again_to_the_same_target() {
        let now = Instant::now();
        let mut budget = RepeatBudget::new(now);
        assert_eq!(after(&unsent(), 1, 1, now, &mut budget), Move::SameTarget);
        assert_eq!(after(&unsent(), 2, 1, now, &mut budget), Move::NextTarget);
        assert_eq!(after(&unsent(), 1, 0, now, &mut budget), Move::NextTarget);
        let busy = |of_account| AttemptFailure::Busy {
            why: String::new(),
            retry_after: None,
            of_account,
        };
        for (fault, next) in [
            (AttemptFailure::Operator(String::new()), Move::NextAccount),
            (AttemptFailure::NotServed(String::new()), Move::NextAccount),
            (busy(true), Move::NextAccount),
            (busy(false), Move::NextTarget),
            (AttemptFailure::Failed(String::new()), Move::NextTarget),
            (AttemptFailure::Broken(String::new()), Move::NextTarget),
        ] {
            assert_eq!(after(&fault, 1, 5, now, &mut budget), next, "{fault:?}");
        }
        let client = AttemptFailure::Client {
            status: 400,
            error: UpstreamError::default(),
            usage: Box::default(),
        };
        assert_eq!(after(&client, 1, 5, now, &mut budget), Move::Stop);
    }

    #[test]
    fn repeats_are_a_fifth_of_recent_requests_and_at_least_three() {
        let now = Instant::now();
        let mut budget = RepeatBudget::new(now);
        let granted =
            |budget: &mut RepeatBudget, now| (0..100).filter(|_| budget.take(now)).count();
        assert_eq!(granted(&mut budget, now), 3);
        for _ in 0..50 {
            budget.request(now);
        }
        assert_eq!(
            granted(&mut budget, now),
            7,
            "ten of fifty, three already used"
        );

        let next = now + WINDOW;
        assert_eq!(
            granted(&mut budget, next),
            0,
            "the window before still counts"
        );
        assert_eq!(granted(&mut budget, next + WINDOW * 2), 3);
    }
}
