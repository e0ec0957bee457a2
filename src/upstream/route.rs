//! Whether a target may be asked now. The route decides which targets are asked, and in which order.

use std::sync::Arc;
use std::time::Duration;

use super::classify::FailureClass;
use super::client::Pool;
use super::health::{Health, TargetWish, Try};
use super::places::{TakenPlace, TokenShare};
use super::{TargetOperation, UpstreamCall};

/// Why a target is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Skip {
    /// Its account serves as many requests, or has got as many tokens in this minute, as it may.
    Full,
    /// It is paused for this long.
    Resting(Duration),
}

impl Skip {
    /// What kind of failure it is.
    pub(super) fn class(&self) -> FailureClass {
        match self {
            Self::Full => FailureClass::Full,
            Self::Resting(_) => FailureClass::Resting,
        }
    }

    /// The reason, for the operator's log.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Full => "the account is at max_concurrent or max_tokens_per_minute".to_owned(),
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
pub(super) enum AskPermit {
    /// For an answer: its outcome counts for the target's health.
    Answer(Try, Option<TokenShare>),
    /// For a side path, which says nothing about the target: many providers have no `count_tokens`.
    Side(#[expect(dead_code, reason = "held for its drop")] TakenPlace),
}

impl AskPermit {
    /// How often a request that provably never left may be sent again: not at all while the target cannot be reached.
    pub(super) fn repeats(&self, most: u32) -> u32 {
        match self {
            Self::Answer(running, _) if running.is_unreachable() => 0,
            _ => most,
        }
    }
}

/// Permission to ask a target now with an account. Places are taken before the breaker is asked, so that a full account does not use up
/// a trial.
pub(super) fn enter(
    pool: &Pool,
    health: &Arc<Health>,
    call: &UpstreamCall<'_>,
    account: usize,
) -> Result<AskPermit, Skip> {
    let wish = wish(call, account);
    if call.operation == TargetOperation::Generate {
        let uses = pool.account(account).ok_or(Skip::Full)?;
        let place = uses.place(call.holder).ok_or(Skip::Full)?;
        let tokens = uses.token_share(call.holder, call.tokens);
        return begin(health, call, wish, place, tokens.ok_or(Skip::Full)?);
    }
    match health.is_open_to(wish) {
        Some(rest) => Err(Skip::Resting(rest)),
        None => {
            let place = pool.side_place(call.holder).ok_or(Skip::Full)?;
            Ok(AskPermit::Side(place))
        }
    }
}

/// The same for an answer, waiting until the account has room.
pub(super) async fn wait(
    pool: &Pool,
    health: &Arc<Health>,
    call: &UpstreamCall<'_>,
    account: usize,
) -> Result<AskPermit, Skip> {
    let wish = wish(call, account);
    // Waiting for a place at a paused target would be in vain.
    if let Some(rest) = health.is_open_to(wish) {
        return Err(Skip::Resting(rest));
    }
    let uses = pool.account(account).ok_or(Skip::Full)?;
    let tokens = uses.wait_for_tokens(call.holder, call.tokens).await;
    let place = uses.wait_for_place(call.holder).await;
    begin(health, call, wish, place, tokens)
}

fn begin(
    health: &Arc<Health>,
    call: &UpstreamCall<'_>,
    wish: TargetWish,
    place: Option<TakenPlace>,
    tokens: Option<TokenShare>,
) -> Result<AskPermit, Skip> {
    match health.begin(wish, call.route.breaker, place) {
        Ok(running) => Ok(AskPermit::Answer(running, tokens)),
        Err(rest) => {
            // Nothing was sent, so nothing was used.
            tokens.into_iter().for_each(|share| share.used(0));
            Err(Skip::Resting(rest))
        }
    }
}

fn wish(call: &UpstreamCall<'_>, account: usize) -> TargetWish {
    TargetWish {
        family: call.family,
        key: call.holder,
        stream: call.stream,
        account,
    }
}
