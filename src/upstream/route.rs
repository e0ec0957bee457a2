//! Which targets of a route are asked, in which order, and whether one may be asked now.
//!
//! File order is fallback order. A target is passed over, never waited for: its provider is full, or its breaker is open.

use std::sync::Arc;
use std::time::Duration;

use farebox_protocol::Family;

use super::classify::Class;
use super::client::{Place, Pool};
use super::health::{Health, Try};
use super::{Call, Operation};
use crate::config::{Route, Target};

/// Why a target is passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Skip {
    /// Its provider serves as many requests as it may.
    Full,
    /// Its breaker is open for this long.
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

    /// What keeps it from being asked, for the operator's log.
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

/// The targets that speak a family, in the order they are asked.
pub(super) fn candidates(route: &Route, family: Family) -> impl Iterator<Item = &Target> {
    route.targets.iter().filter(move |target| target.provider.speaks.contains(&family))
}

/// Leave to ask a target now.
pub(super) enum Entry {
    /// For an answer: its outcome counts for the target's health.
    Answer(Try),
    /// For a side path, which says nothing about the target: many providers have no `count_tokens`.
    Side(#[expect(dead_code, reason = "held for its drop")] Place),
}

/// Leave to ask a target now. The place is taken before the breaker is asked, so that a full provider does not use up a trial.
pub(super) fn enter(pool: &Pool, health: &Arc<Health>, call: &Call<'_>) -> Result<Entry, Skip> {
    if call.operation == Operation::Generate {
        let place = pool.place(call.holder).map_err(|()| Skip::Full)?;
        let entered = health.begin(call.family, call.holder, call.route.breaker, place);
        return entered.map(Entry::Answer).map_err(Skip::Resting);
    }
    match health.is_open_to(call.family, call.holder) {
        Some(rest) => Err(Skip::Resting(rest)),
        None => pool.side_place(call.holder).map(Entry::Side).map_err(|()| Skip::Full),
    }
}
