//! What is over of plans, by acts and their entries: subscriptions, periods with what was given and used of each, and what became of one that
//! was given up.

use crate::book::audit::AuditRecord;
use crate::book::plan_act;
use crate::rule::account::{less, sum};
use crate::{
    Amount, Customer, Ledger, LedgerError, OperationId, RunningPeriod, Subscription,
    SubscriptionId, SubscriptionState, Timestamp,
};

/// A period that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverPeriod {
    /// What it was.
    pub period: RunningPeriod,
    /// When it ended: with the next one, or when it was given up.
    pub ended: Timestamp,
    /// What it gave, without what was carried into it.
    pub given: Amount,
    /// What was used of both, with what requests that ran at its end gave back later; `None` if some of its payment went back.
    pub used: Option<Amount>,
    /// What was carried on into the next one.
    pub carried: Amount,
}

/// A period on its way through the acts.
struct PeriodWalk {
    period: RunningPeriod,
    begun: OperationId,
    /// Something of its payment went back.
    is_reversed: bool,
}

/// The last periods of a subscription that are over, newest first, as far as its customer's acts, newest first, tell of them: so many.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn past_periods(
    ledger: &dyn Ledger,
    of: SubscriptionId,
    acts: &[AuditRecord],
    most: usize,
) -> Result<Vec<OverPeriod>, LedgerError> {
    let mut over: Vec<(PeriodWalk, &AuditRecord)> = Vec::new();
    let mut runs: Option<PeriodWalk> = None;
    for act in acts.iter().rev() {
        let Some(state) = left(act, of) else {
            continue;
        };
        let is_same = |walk: &PeriodWalk| {
            let now = state.running.as_ref();
            now.is_some_and(|now| now.number == walk.period.number)
        };
        if let Some(walk) = runs.as_mut().filter(|walk| is_same(walk)) {
            walk.is_reversed |= act.act == plan_act::GOES_BACK;
            // A pause has moved its end.
            walk.period.ends = state.running.map_or(walk.period.ends, |now| now.ends);
            continue;
        }
        if let Some(mut walk) = runs.take() {
            walk.is_reversed |= act.act == plan_act::GOES_BACK;
            over.push((walk, act));
        }
        // Of one that began before the acts that are known, nothing is known.
        let begins = state.running.filter(|_| act.act == plan_act::BEGINS);
        runs = begins.map(|period| PeriodWalk {
            period,
            begun: act.operation,
            is_reversed: false,
        });
    }
    let mut found = Vec::new();
    for (walk, end) in over.into_iter().rev().take(most) {
        found.push(walk.summed(ledger, end).await?);
    }
    Ok(found)
}

impl PeriodWalk {
    /// As the act left it that came after its last one.
    async fn summed(
        self,
        ledger: &dyn Ledger,
        end: &AuditRecord,
    ) -> Result<OverPeriod, LedgerError> {
        let amount = async |operation: OperationId| {
            let entry = ledger.entry(operation).await?;
            let amount = entry.map_or(Amount::ZERO, |entry| entry.amount);
            Ok::<_, LedgerError>(amount)
        };
        let over = format!("farebox over {}", self.period.grant);
        let (begun, end) = (self.begun, (end.operation, end.at));
        let given = amount(begun).await?;
        let carried_in = amount(begun.derived(b"farebox carried in")).await?;
        let carried = less(
            Amount::ZERO,
            amount(end.0.derived(b"farebox carried out")).await?,
        );
        let lost = less(Amount::ZERO, amount(end.0.derived(over.as_bytes())).await?);
        let used = less(less(sum(given, carried_in), carried), lost);
        Ok(OverPeriod {
            ended: self.period.ends.min(end.1),
            period: self.period,
            given,
            used: (!self.is_reversed).then_some(used),
            carried,
        })
    }
}

/// The subscriptions of which nothing can come any more, the last to end first, as far as their customer's acts, newest first, tell of them.
pub fn past_subscriptions(customer: &Customer, acts: &[AuditRecord]) -> Vec<Subscription> {
    let mut found: Vec<Subscription> = Vec::new();
    for (id, state) in acts.iter().filter_map(plan_act::left) {
        let is_known = found.iter().any(|of| of.id == id);
        if !is_known && customer.grants.plans.get(id).is_none() {
            let state = serde_json::from_value(state).ok();
            found.extend(state.map(|state| Subscription::past((id, customer.id), state)));
        }
    }
    found
}

/// The entries of a change at once, if an act was one: the credit that the rest of the running period became, and what was taken of it.
pub fn given_up(act: &AuditRecord) -> Option<[OperationId; 2]> {
    let (_, state) = plan_act::left(act).filter(|_| act.act == plan_act::CHANGES)?;
    let state: SubscriptionState = serde_json::from_value(state).ok()?;
    let past = (state.past).filter(|past| past.becomes_credit.is_some())?;
    let over = format!("farebox over {}", past.grant);
    let entry = |name: &[u8]| act.operation.derived(name);
    Some([entry(b"farebox credit"), entry(over.as_bytes())])
}

fn left(act: &AuditRecord, of: SubscriptionId) -> Option<SubscriptionState> {
    let (_, state) = plan_act::left(act).filter(|(id, _)| *id == of)?;
    serde_json::from_value(state).ok()
}
