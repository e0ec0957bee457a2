//! Whether a target may be asked now. The route decides which targets are asked, and in which order.
//!
//! A target whose provider is full or whose breaker is open is skipped, never waited for.

use std::sync::Arc;
use std::time::Duration;

use super::classify::Class;
use super::client::{Place, Pool};
use super::health::{Health, Try};
use super::{Call, Operation};

/// Why a target is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Skip {
    /// Its provider already serves as many requests as it may.
    Full,
    /// Its breaker stays open for this long.
    Resting(Duration),
}

impl Skip {
    /// What kind of failure it is.
    pub(super) fn class(&self) -> Class {
        match self {
            Self::Full => Class::Full,
            Self::Resting(_) => Class::Resting,
        }
    }

    /// The reason, for the operator's log.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Full => "the provider is at max_concurrent".to_owned(),
            Self::Resting(wait) => format!("for another {:.1} s", wait.as_secs_f64()),
        }
    }

    /// When to come back.
    pub(super) fn retry_after(&self) -> Duration {
        match self {
            Self::Full => Duration::from_secs(1),
            Self::Resting(wait) => *wait,
        }
    }
}

/// Permission to ask a target now.
pub(super) enum Entry {
    /// For an answer: its outcome counts for the target's health.
    Answer(Try),
    /// For a side path, which says nothing about the target: many providers have no `count_tokens`.
    Side(#[expect(dead_code, reason = "held for its drop")] Place),
}

/// Permission to ask a target now. The place is taken before the breaker is asked, so that a full provider does not use up a trial.
pub(super) fn enter(pool: &Pool, health: &Arc<Health>, call: &Call<'_>) -> Result<Entry, Skip> {
    if call.operation == Operation::Generate {
        let place = pool.place(call.holder).map_err(|()| Skip::Full)?;
        let entered = health.begin(call.family, call.holder, call.route.breaker, place);
        return entered.map(Entry::Answer).map_err(Skip::Resting);
    }
    match health.is_open_to(call.family, call.holder) {
        Some(rest) => Err(Skip::Resting(rest)),
        None => pool
            .side_place(call.holder)
            .map(Entry::Side)
            .map_err(|()| Skip::Full),
    }
}
