//! What a service does with an output limit and with a stream that is closed, tried with requests of our own: `farebox check --online`.
//!
//! A limit binds where an answer that reasoned has ended at it. Whether a closed stream stops the bill only the account's own usage can
//! show, and few services let a key read that.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::Amount;
use farebox_protocol::{AnswerFacts, Family, StopReason, UsageReading, question};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::attempt::{self, Begun};
use super::client::Pool;
use super::probe::{OURSELVES, alone};
use super::{Prepared, UpstreamCall, Upstreams, redact};
use crate::config::{Capability, Config, Endpoint, LimitBinds, Model, Rates, Target};

/// Any model that reasons thinks longer about it than the limit allows.
const PUZZLE: &str = "How many prime numbers are there between 200 and 400? Reason step by step.";
// The smallest that vendors of every family accept, so that any reasoning passes it.
const LIMIT: u32 = 16;
/// Above this much output the limit did not bind: counts of a service are that far from its own limit at most.
const PASSED: u64 = (LIMIT + LIMIT / 8 + 64) as u64;
/// An answer that is as long as its limit.
const ENDLESS: &str =
    "Write the numbers from 1 to 500 in words, one on each line, and nothing else.";
const LONG: u32 = 512;
/// Most tokens of either question, templates included.
const INPUT: u64 = 128;
/// How long an account's usage may take to show what was billed.
const BOOKED_WITHIN: u32 = 30;
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most of an answer about a key that is read.
const MAX_USED: usize = 64 << 10;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// Whether reasoning stays within an output limit.
    Limit,
    /// Whether a service stops billing when its stream is closed.
    Stop,
}

/// One request that is to be sent.
#[derive(Debug, Clone)]
pub struct ServiceTrial {
    tried: Tried,
    slug: String,
    target: Target,
    family: Family,
    body: Bytes,
    rates: Rates,
    /// What it may cost at most, as far as what is said of the service is true.
    pub most: Amount,
}

/// What a service did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialFinding {
    /// What was tried.
    pub tried: Tried,
    /// The provider's name.
    pub provider: String,
    /// `provider/model`.
    pub target: String,
    /// What is said of it so far.
    pub said: Option<bool>,
    /// What it did.
    pub outcome: TrialShown,
}

/// What a trial showed, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialShown {
    /// The limit binds; the stream stops.
    Yes(String),
    /// It does not.
    No(String),
    /// It cannot be told.
    Unclear(String),
}

/// What is tried of a configuration: of each provider one target whose model reasons, if its limit is said to bind or nobody says it,
/// and one stream of each hosted provider.
pub fn trials(config: &Config) -> Vec<ServiceTrial> {
    let mut found: Vec<ServiceTrial> = Vec::new();
    for model in &config.catalog.models {
        for target in &model.route.targets {
            let of_it = [
                (may_bind(model, target), Tried::Limit),
                (target.provider.is_hosted(), Tried::Stop),
            ];
            for (_, tried) in of_it.into_iter().filter(|(wanted, _)| *wanted) {
                let known = found.iter().any(|other| {
                    other.tried == tried && other.target.provider.name == target.provider.name
                });
                if !known {
                    found.extend(ServiceTrial::of(tried, model, target));
                }
            }
        }
    }
    found
}

fn may_bind(model: &Model, target: &Target) -> bool {
    let said = matches!(target.limit, Some(LimitBinds::All) | None);
    said && model.can(Capability::Reasoning) && target.provider.endpoint != Endpoint::Simulated
}

impl ServiceTrial {
    fn of(tried: Tried, model: &Model, target: &Target) -> Option<Self> {
        // A call has no output that could have a limit.
        let mut families = target.provider.families();
        let family = families.find(|_| model.route.call.is_none())?;
        let price = (target.cost.as_deref())
            .or(target.list.as_deref())
            .unwrap_or(&model.price);
        let (body, output) = match tried {
            Tried::Limit => {
                let beside = match target.limit {
                    Some(_) => 0,
                    None => (model.limits.max_reasoning).unwrap_or(model.limits.max_output),
                };
                let all = u64::from(LIMIT).saturating_add(u64::from(beside));
                (puzzle(model, target, family)?, all)
            }
            Tried::Stop => (endless(target, family).into_bytes(), u64::from(LONG)),
        };
        Some(Self {
            tried,
            slug: model.slug.clone(),
            target: target.clone(),
            family,
            body: Bytes::from(body),
            rates: price.base,
            most: cost(&price.base, output).unwrap_or_default(),
        })
    }

    /// `provider/model`.
    pub fn target(&self) -> String {
        self.target.name()
    }

    fn said(&self) -> Option<bool> {
        match self.tried {
            Tried::Limit => self.target.limit.map(|limit| limit == LimitBinds::All),
            Tried::Stop => self.target.provider.said_to_stop(),
        }
    }
}

/// The puzzle with reasoning turned on.
fn puzzle(model: &Model, target: &Target, family: Family) -> Option<Vec<u8>> {
    let abilities = model.abilities_of(target, family);
    question::reasoning(family, (&target.model, &abilities), PUZZLE, LIMIT)
}

fn endless(target: &Target, family: Family) -> String {
    let protocol = family.protocol();
    let field = protocol.limit_field(target.fit.chat_limit, None);
    let plain = protocol.write_question_as(&target.model, ENDLESS, (field, LONG));
    let mut body: Value = serde_json::from_str(&plain).unwrap_or_default();
    body["stream"] = Value::Bool(true);
    body.to_string()
}

fn cost(rates: &Rates, output: u64) -> Option<Amount> {
    Amount::times(rates.input, INPUT)?
        .checked_add(Amount::times(rates.output, output)?)?
        .checked_add(rates.per_request)
}

impl Upstreams {
    /// Tries all of it, one after the other: they read what was billed in between.
    pub async fn try_services(self: &Arc<Self>, trials: Vec<ServiceTrial>) -> Vec<TrialFinding> {
        let mut found = Vec::with_capacity(trials.len());
        for trial in trials {
            let Some(pool) = self.pool_of(&trial.target) else {
                continue;
            };
            let outcome = match trial.tried {
                Tried::Limit => self.try_limit(&pool, &trial).await,
                Tried::Stop => self.try_stop(&pool, &trial).await,
            };
            found.push(TrialFinding {
                tried: trial.tried,
                provider: trial.target.provider.name.clone(),
                target: trial.target.name(),
                said: trial.said(),
                outcome,
            });
        }
        found
    }

    async fn try_limit(&self, pool: &Pool, trial: &ServiceTrial) -> TrialShown {
        match self.send_trial(pool, trial).await {
            Ok(Begun::Whole(answer, facts, _)) => judged(trial, &answer, &facts),
            Ok(Begun::Stream(..)) => TrialShown::Unclear("it answered with a stream".to_owned()),
            Err(why) => TrialShown::Unclear(why),
        }
    }

    async fn try_stop(&self, pool: &Pool, trial: &ServiceTrial) -> TrialShown {
        let unreadable = "this key may not read what the account has used";
        let Some(before) = self.used(pool, trial).await else {
            return TrialShown::Unclear(unreadable.to_owned());
        };
        match self.send_trial(pool, trial).await {
            // Dropped, and so closed, at its first frame.
            Ok(begun) => drop(begun),
            Err(why) => return TrialShown::Unclear(why),
        }
        for _ in 0..BOOKED_WITHIN {
            sleep(LOOK_EVERY).await;
            let after = self.used(pool, trial).await;
            let billed = after.and_then(|after| after.checked_sub(before));
            if let Some(billed) = billed.filter(|billed| billed.is_positive()) {
                return stopped(&trial.rates, billed);
            }
        }
        TrialShown::Unclear(format!(
            "the account's usage showed nothing of it within {BOOKED_WITHIN} s"
        ))
    }

    async fn send_trial(&self, pool: &Pool, trial: &ServiceTrial) -> Result<Begun, String> {
        let target = &trial.target;
        let prepared = Prepared {
            body: vec![trial.body.clone()],
            ..Prepared::default()
        };
        let route = alone(&trial.slug, target);
        let mut call = UpstreamCall::of_ourselves(&route, trial.family);
        call.stream = trial.tried == Tried::Stop;
        let room = self.answers.share(OURSELVES, usize::MAX);
        let asking = attempt::attempt(pool, &self.simulated, (&call, 0), target, &prepared, room);
        let patience = pool.provider.timeouts.first_byte;
        match timeout(patience, asking).await {
            Ok(Ok(begun)) => Ok(begun),
            Ok(Err(failure)) => Err(redact::for_operator(&failure.reason(), &route).to_string()),
            Err(_) => Err(format!("no answer within {patience:?}")),
        }
    }

    /// What the account's key has used, in USD, where the service says it to the key as routers do.
    async fn used(&self, pool: &Pool, trial: &ServiceTrial) -> Option<Amount> {
        let request = pool.used(trial.family, 0).ok()??;
        let patience = pool.provider.timeouts.first_byte;
        let response = timeout(patience, attempt::respond(request)).await.ok()?;
        let mut reply = attempt::unjudged(response.ok()?).ok()?;
        let mut room = self.answers.share(OURSELVES, usize::MAX);
        let text = reply.body.whole(MAX_USED, &mut room).await.ok()?;
        let said: Value = serde_json::from_slice(&text).ok()?;
        let used = said["data"]["usage"].as_f64()?;
        // A float that a service wrote; it is compared, and nothing is charged by it.
        Amount::from_usd_str(&format!("{used:.12}")).ok()
    }
}

/// What an answer shows of the limit.
fn judged(trial: &ServiceTrial, answer: &[u8], facts: &AnswerFacts) -> TrialShown {
    let outside = trial.target.provider.reasoning_outside;
    let UsageReading::Counted(usage) = facts.usage.reading(outside) else {
        return TrialShown::Unclear("its answer has no usage".to_owned());
    };
    let counted = usage.all_output();
    if counted > PASSED {
        return TrialShown::No(format!(
            "it counted {counted} tokens of output where the limit was {LIMIT}"
        ));
    }
    let read: Value = serde_json::from_slice(answer).unwrap_or_default();
    let text = trial.family.protocol().first_text(&read);
    let reasoned = usage.reasoning > 0 || text.is_none_or(str::is_empty);
    match facts.stop {
        Some(StopReason::Length) if reasoned => TrialShown::Yes(format!(
            "an answer that reasoned ended at {counted} tokens where the limit was {LIMIT}"
        )),
        Some(StopReason::Length) => TrialShown::Unclear("its answer did not reason".to_owned()),
        _ => TrialShown::Unclear("its answer did not end at the limit".to_owned()),
    }
}

/// What the bill of a closed stream shows.
fn stopped(rates: &Rates, billed: Amount) -> TrialShown {
    let [half, all, twice] = [LONG / 2, LONG, LONG * 2].map(|output| cost(rates, output.into()));
    match (half, all, twice) {
        (Some(half), _, _) if billed <= half => TrialShown::Yes(format!(
            "a stream closed at its first frame was billed {billed} USD"
        )),
        (_, Some(all), Some(twice)) if billed <= twice => TrialShown::No(format!(
            "a stream closed at its first frame was billed {billed} USD, of {all} for all of it"
        )),
        _ => TrialShown::Unclear("other requests used the account meanwhile".to_owned()),
    }
}
