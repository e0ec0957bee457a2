//! What a customer has of plans, and the windows in which their use is counted. Pure.
//!
//! A window belongs to customer and plan: it goes on over periods, changes and pauses, so that buying again resets nothing. Each hold that
//! may take from a plan stores the windows in which it was opened, and what its charge takes belongs to them.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::subscription::{PlanNews, RunningPeriod, Subscription};
use super::{PlanAfter, WindowBound, WindowSpan};
use crate::rule::account::{less, sum};
use crate::rule::watch::cap_level;
use crate::value::id::number_of;
use crate::{Amount, CustomerId, GrantId, Refusal, SubscriptionId, Timestamp};

/// The name of a window, which follows from whose it is, its place and its begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WindowId(i64);

impl WindowId {
    /// The number that the store keeps.
    pub const fn to_i64(self) -> i64 {
        self.0
    }

    /// From that number.
    pub const fn from_i64(number: i64) -> Option<Self> {
        if number >= 0 {
            Some(Self(number))
        } else {
            None
        }
    }

    fn of(customer: CustomerId, place: &WindowPlace, begins: Timestamp) -> Self {
        let hash = Sha256::new_with_prefix(b"farebox window")
            .chain_update(customer.to_i64().to_be_bytes())
            .chain_update(begins.millis().to_be_bytes())
            .chain_update(place.per.to_string())
            .chain_update([0])
            .chain_update(&place.plan);
        Self((number_of(hash) >> 1).cast_signed())
    }
}

/// What a window is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowPlace {
    /// The plan's name.
    pub plan: String,
    /// How long it counts.
    pub per: WindowSpan,
}

/// What was used of a plan in one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanWindow {
    /// Its name.
    pub id: WindowId,
    /// Whose it is.
    pub customer: CustomerId,
    /// Of what.
    pub place: WindowPlace,
    /// First instant of it.
    pub begins: Timestamp,
    /// First instant behind it.
    pub ends: Timestamp,
    /// Most that may be charged and held in it.
    pub bound: Amount,
    /// Charged to requests that began in it.
    pub charged: Amount,
    /// Held by those that still run.
    pub held: Amount,
    /// How many per cent of the bound were told to be charged: 0, 80 or 100.
    pub told: u8,
}

impl PlanWindow {
    /// What may still be held in it.
    pub fn room(&self) -> Amount {
        less(less(self.bound, self.charged), self.held)
    }

    /// What may still be charged in it, held or not.
    pub fn remaining(&self) -> Amount {
        less(self.bound, self.charged)
    }

    fn runs_at(&self, now: Timestamp) -> bool {
        self.begins <= now && now < self.ends
    }

    /// What is worth telling of it, once for each level: of hours, only that nothing is left.
    fn news(&mut self) -> Option<PlanNews> {
        let level = match (self.place.per, cap_level(self.charged, self.bound)) {
            (WindowSpan::Hours(_), level) if level < 100 => 0,
            (WindowSpan::Hours(_) | WindowSpan::Calendar(_), level) => level,
        };
        if level <= self.told {
            return None;
        }
        self.told = level;
        Some(PlanNews {
            subscription: None,
            plan: self.place.plan.clone(),
            per: Some(self.place.per.to_string()),
            bound: self.bound,
            used: self.charged,
            level,
            opens_at: self.ends,
        })
    }
}

/// A customer's subscriptions of which something can still come, and their windows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plans {
    subscriptions: Vec<Subscription>,
    windows: Vec<PlanWindow>,
}

impl Plans {
    /// Those of one customer.
    pub fn of(mut subscriptions: Vec<Subscription>, mut windows: Vec<PlanWindow>) -> Self {
        subscriptions.sort_by_key(|subscription| subscription.id);
        windows.sort_by_key(|window| window.id);
        Self {
            subscriptions,
            windows,
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.subscriptions.is_empty() && self.windows.is_empty()
    }

    /// All subscriptions, by their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Subscription> {
        self.subscriptions.iter()
    }

    /// Refuses a card for a plan that another card renews: both would be charged.
    pub(crate) fn check_unrenewed(&self, plan: &str) -> Result<(), Refusal> {
        let renews = |of: &Subscription| {
            of.counts() && of.state.processor.is_some() && of.state.terms.name == plan
        };
        match self.iter().find(|of| renews(of)) {
            Some(of) => Err(Refusal::HasPlan(of.customer, of.id)),
            None => Ok(()),
        }
    }

    /// All windows that are counted.
    pub fn windows(&self) -> impl Iterator<Item = &PlanWindow> {
        self.windows.iter()
    }

    /// A subscription by its id.
    pub fn get(&self, id: SubscriptionId) -> Option<&Subscription> {
        self.subscriptions
            .iter()
            .find(|subscription| subscription.id == id)
    }

    /// Takes a subscription as it is.
    pub(crate) fn put(&mut self, subscription: Subscription) {
        self.subscriptions
            .retain(|known| known.id != subscription.id);
        self.subscriptions.push(subscription);
        self.subscriptions
            .sort_by_key(|subscription| subscription.id);
    }

    /// Those of which something can still come.
    pub(crate) fn open(mut self) -> Self {
        self.subscriptions.retain(Subscription::is_open);
        self
    }

    /// The subscription of which a grant is the running period.
    pub(crate) fn running(&self, grant: GrantId) -> Option<&Subscription> {
        self.subscriptions
            .iter()
            .find(|subscription| subscription.runs(grant))
    }

    pub(crate) fn running_mut(&mut self, grant: GrantId) -> Option<&mut Subscription> {
        self.subscriptions
            .iter_mut()
            .find(|subscription| subscription.runs(grant))
    }

    /// The subscription of which a grant is or was a period.
    pub fn of_period(&self, grant: GrantId) -> Option<&Subscription> {
        let mut all = self.subscriptions.iter();
        all.find(|subscription| subscription.has_had(grant))
    }

    /// Whether a running period that names this slug lets nothing else pay.
    pub(crate) fn stop(&self, slug: &str) -> bool {
        !slug.is_empty() && self.may_stop(slug)
    }

    /// Whether a running period that may name a slug lets nothing else pay.
    pub(crate) fn may_stop(&self, slug: &str) -> bool {
        let mut live = self.live(slug);
        live.any(|running| running.terms.after == PlanAfter::Stop)
    }

    /// The periods that can be used for a slug; without a slug, for any.
    pub(super) fn live(&self, slug: &str) -> impl Iterator<Item = &RunningPeriod> {
        let live = self.iter().filter_map(Subscription::live_period);
        live.filter(move |running| slug.is_empty() || running.terms.is_for(slug))
    }

    /// The period that a grant is, if it can be used.
    fn live_as(&self, grant: GrantId) -> Option<&RunningPeriod> {
        self.running(grant)?.live_period()
    }

    /// The windows of a hold that is opened now, for each running period that it may take from. One of hours begins where none runs.
    pub(crate) fn begin(
        &mut self,
        customer: CustomerId,
        slug: &str,
        now: Timestamp,
    ) -> Vec<(GrantId, Vec<WindowId>)> {
        self.windows.retain(|window| window.is_wanted(now));
        let live = self.live(slug).filter(|of| !of.terms.windows.is_empty());
        let live: Vec<RunningPeriod> = live.cloned().collect();
        let mut begun = Vec::new();
        for running in live {
            let of_each = running.terms.windows.iter().map(|bound| {
                let place = WindowPlace {
                    plan: running.terms.name.clone(),
                    per: bound.per,
                };
                self.window(customer, place, bound, now)
            });
            begun.push((running.grant, of_each.collect()));
        }
        self.windows.sort_by_key(|window| window.id);
        begun
    }

    fn window(
        &mut self,
        customer: CustomerId,
        place: WindowPlace,
        bound: &WindowBound,
        now: Timestamp,
    ) -> WindowId {
        let known = self
            .windows
            .iter()
            .find(|window| window.place == place && window.runs_at(now));
        if let Some(known) = known {
            return known.id;
        }
        let (begins, ends) = bound.per.around(now);
        let id = WindowId::of(customer, &place, begins);
        self.windows.push(PlanWindow {
            id,
            customer,
            place,
            begins,
            ends,
            bound: bound.usd,
            charged: Amount::ZERO,
            held: Amount::ZERO,
            told: 0,
        });
        id
    }

    /// The newest window of each place: those of a request that begins now, once they were begun.
    pub fn newest(&self) -> Vec<WindowId> {
        let is_newest = |window: &&PlanWindow| {
            let of_place = self.windows.iter().filter(|one| one.place == window.place);
            of_place.map(|one| one.begins).max() == Some(window.begins)
        };
        let newest = self.windows.iter().filter(is_newest);
        newest.map(|window| window.id).collect()
    }

    /// What the windows that a request has leave of a running period, by what each still has; of a plan without windows everything.
    pub(crate) fn room(
        &self,
        grant: GrantId,
        has: &[WindowId],
        left: fn(&PlanWindow) -> Amount,
    ) -> Amount {
        let Some(running) = self.live_as(grant) else {
            return Amount::ZERO;
        };
        let of_each = running.terms.windows.iter().map(|bound| {
            let mut own = self
                .windows
                .iter()
                .filter(|window| has.contains(&window.id));
            // A hold takes nothing of a plan whose windows it does not have.
            own.find(|window| window.is_of(&running.terms.name, bound.per))
                .map_or(Amount::ZERO, left)
        });
        of_each
            .min()
            .unwrap_or_else(|| Amount::from_picos(i64::MAX))
    }

    /// Those of a request's windows that are of a running period's plan.
    pub(crate) fn windows_of(&self, grant: GrantId, has: &[WindowId]) -> Vec<WindowId> {
        let Some(running) = self.live_as(grant) else {
            return Vec::new();
        };
        let own = self
            .windows
            .iter()
            .filter(|window| has.contains(&window.id) && window.place.plan == running.terms.name);
        own.map(|window| window.id).collect()
    }

    /// Counts what is held in windows, or no more.
    pub(crate) fn count(&mut self, windows: &[WindowId], change: impl Fn(&mut PlanWindow)) {
        let own = self.windows.iter_mut();
        own.filter(|window| windows.contains(&window.id))
            .for_each(change);
    }

    /// What is worth telling of windows after a charge.
    pub(crate) fn news(&mut self, windows: &[WindowId]) -> Vec<PlanNews> {
        let own = self.windows.iter_mut();
        let own = own.filter(|window| windows.contains(&window.id));
        own.filter_map(PlanWindow::news).collect()
    }
}

impl PlanWindow {
    fn is_of(&self, plan: &str, per: WindowSpan) -> bool {
        self.place.plan == plan && self.place.per == per
    }

    /// Whether anything is counted in it any more.
    fn is_wanted(&self, now: Timestamp) -> bool {
        now < self.ends || self.held.is_positive()
    }

    /// A refund of a charge that counted in it.
    pub(crate) fn give_room(&mut self, amount: Amount) {
        self.charged = less(self.charged, amount);
    }

    /// A charge that takes what was held, and more, or less.
    pub(crate) fn settle(&mut self, held: Amount, charged: Amount) {
        self.held = less(self.held, held);
        self.charged = sum(self.charged, charged);
    }
}
