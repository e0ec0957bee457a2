//! Windows of plans in the reference store: what a hold stores, what is counted where, and what that leaves.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::State;
use super::operations::{Done, amount, picos};
use super::sources::HeldParts;
use crate::{
    Amount, CapInterval, CustomerId, EventKind, GrantId, GrantKind, MoneyPart, OperationId,
    PlanAfter, PlanWindow, RunningPeriod, Subscription, SubscriptionStatus, Timestamp, UtcDay,
    WindowId, WindowPlace, WindowSpan,
};

const HOUR: i64 = 3_600_000;

pub(super) fn live(of: &Subscription) -> Option<&RunningPeriod> {
    let stands = of.state.status == SubscriptionStatus::Paused;
    of.state.running.as_ref().filter(|_| !stands)
}

fn is_for(running: &RunningPeriod, slug: &str) -> bool {
    let named = |models: &Vec<String>| models.iter().any(|model| model == slug);
    slug.is_empty() || running.terms.models.as_ref().is_none_or(named)
}

/// From when to when a window is that begins with a request.
fn around(per: WindowSpan, now: Timestamp) -> (Timestamp, Timestamp) {
    let (millis, day) = (now.millis(), 24 * HOUR);
    let today = millis.div_euclid(day).saturating_mul(day);
    let at = Timestamp::from_millis;
    match per {
        WindowSpan::Hours(hours) => {
            let length = i64::from(hours).saturating_mul(HOUR);
            (now, at(millis.saturating_add(length)))
        }
        WindowSpan::Calendar(CapInterval::Day) => (at(today), at(today.saturating_add(day))),
        WindowSpan::Calendar(CapInterval::Week) => {
            // 1970 began on a Thursday.
            let since_monday = millis.div_euclid(day).saturating_add(3).rem_euclid(7);
            let monday = today.saturating_sub(since_monday.saturating_mul(day));
            (at(monday), at(monday.saturating_add(day.saturating_mul(7))))
        }
        WindowSpan::Calendar(interval @ (CapInterval::Month | CapInterval::Total)) => {
            let end = interval.next(UtcDay::of(now));
            let end = end.map_or(Timestamp::NEVER, UtcDay::begin);
            (interval.window(UtcDay::of(now)).begin(), end)
        }
    }
}

fn window_id(customer: CustomerId, place: &WindowPlace, begins: Timestamp) -> Option<WindowId> {
    let mut hash = Sha256::new_with_prefix(b"farebox window");
    hash.update(customer.to_i64().to_be_bytes());
    hash.update(begins.millis().to_be_bytes());
    hash.update(format!("{}\0{}", place.per, place.plan));
    let digest = hash.finalize();
    let bits = digest.iter().take(8);
    let bits = bits.fold(0_u64, |bits, byte| bits.wrapping_shl(8) | u64::from(*byte));
    WindowId::from_i64(i64::try_from(bits.wrapping_shr(1)).unwrap_or(i64::MAX))
}

/// The windows in which somebody's request is that begins now, as they are then: of each running period in its plan's order.
pub(super) fn begun(
    customer: CustomerId,
    periods: &[RunningPeriod],
    known: &mut Vec<PlanWindow>,
    now: Timestamp,
) -> Vec<(GrantId, Vec<WindowId>)> {
    known.retain(|window| now < window.ends || picos(window.held) > 0);
    let mut all = Vec::new();
    for running in periods {
        let mut own = Vec::new();
        for bound in &running.terms.windows {
            let place = WindowPlace {
                plan: running.terms.name.clone(),
                per: bound.per,
            };
            let is_it = |window: &&PlanWindow| {
                window.place == place && window.begins <= now && now < window.ends
            };
            if let Some(window) = known.iter().find(is_it) {
                own.push(window.id);
                continue;
            }
            let (begins, ends) = around(bound.per, now);
            let Some(id) = window_id(customer, &place, begins) else {
                continue;
            };
            own.push(id);
            known.push(PlanWindow {
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
        }
        if !own.is_empty() {
            all.push((running.grant, own));
        }
    }
    all
}

impl State {
    pub(super) fn windows_of(&self, customer: CustomerId) -> impl Iterator<Item = &PlanWindow> {
        let all = self.windows.values();
        all.filter(move |window| window.customer == customer)
    }

    pub(super) fn live_periods(&self, customer: CustomerId, slug: &str) -> Vec<RunningPeriod> {
        let all = self.subscriptions_of(customer).filter_map(live);
        all.filter(|running| is_for(running, slug))
            .cloned()
            .collect()
    }

    /// Begins the windows of a request, and forgets those in which nothing is counted any more.
    pub(super) fn begin_windows(
        &mut self,
        customer: CustomerId,
        slug: &str,
        now: Timestamp,
    ) -> HeldParts {
        let periods = self.live_periods(customer, slug);
        let mut windows: Vec<PlanWindow> = self.windows_of(customer).cloned().collect();
        let stored = begun(customer, &periods, &mut windows, now);
        self.windows.retain(|_, window| window.customer != customer);
        let windows = windows.into_iter().map(|window| (window.id, window));
        self.windows.extend(windows);
        self.show_grants(customer);
        HeldParts::storing(stored)
    }

    /// Whether a running period that names this slug lets nothing but periods pay; without a slug, none does.
    pub(super) fn stops(&self, customer: CustomerId, slug: &str) -> bool {
        let mut all = self.live_periods(customer, slug).into_iter();
        !slug.is_empty() && all.any(|running| running.terms.after == PlanAfter::Stop)
    }

    pub(super) fn running_as(&self, id: GrantId) -> Option<RunningPeriod> {
        let mut all = self.subscriptions.values().filter_map(live);
        all.find(|running| running.grant == id).cloned()
    }

    /// What windows leave a request of a period, by what each leaves. No end without windows, nothing where it does not store one.
    pub(super) fn window_room(
        &self,
        id: GrantId,
        parts: &HeldParts,
        left: impl Fn(&PlanWindow) -> i128,
    ) -> i128 {
        let Some(running) = self.running_as(id) else {
            return 0;
        };
        let (plan, stored) = (&running.terms.name, parts.stored());
        let each = running.terms.windows.iter().map(|bound| {
            let all = stored.iter().filter_map(|id| self.windows.get(id));
            let mut own =
                all.filter(|window| window.place.plan == *plan && window.place.per == bound.per);
            own.next().map_or(0, &left).max(0)
        });
        each.min().unwrap_or(i128::from(i64::MAX))
    }

    /// The windows in which a period counts for a request.
    pub(super) fn counts_in(&self, id: GrantId, parts: &HeldParts) -> Vec<WindowId> {
        if let Some((_, own)) = parts.windows.iter().find(|(of, _)| *of == id) {
            return own.clone();
        }
        let Some(running) = self.running_as(id) else {
            return Vec::new();
        };
        let stored = parts.stored();
        let all = self.windows.values();
        let own = all.filter(|window| {
            window.place.plan == running.terms.name && stored.contains(&window.id)
        });
        own.map(|window| window.id).collect()
    }

    pub(super) fn count_in(&mut self, ids: &[WindowId], held: i128, charged: i128) -> Done<()> {
        for id in ids {
            let Some(window) = self.windows.get_mut(id) else {
                continue;
            };
            window.held = amount(picos(window.held).saturating_add(held).max(0))?;
            window.charged = amount(picos(window.charged).saturating_add(charged).max(0))?;
            let customer = window.customer;
            self.show_grants(customer);
        }
        Ok(())
    }

    /// What is worth telling after a period has paid: of windows of hours only that they are used up, of others and of the allowance 80 per
    /// cent, too.
    pub(super) fn low_plans(&mut self, part: &MoneyPart) -> Vec<serde_json::Value> {
        let level = |used: i128, bound: i128| match used.saturating_mul(100) {
            all if all >= bound.saturating_mul(100) => 100_u8,
            all if all >= bound.saturating_mul(80) => 80,
            _ => 0,
        };
        let mut news = Vec::new();
        let windows = self.windows.values_mut();
        for window in windows.filter(|window| part.windows.contains(&window.id)) {
            let mut level = level(picos(window.charged), picos(window.bound));
            if matches!(window.place.per, WindowSpan::Hours(_)) && level < 100 {
                level = 0;
            }
            if level > window.told {
                window.told = level;
                news.push(json!({
                    "subscription": null, "plan": window.place.plan, "per": window.place.per.to_string(),
                    "bound": window.bound, "used": window.charged, "percent": level, "opens_at": window.ends,
                }));
            }
        }
        let grant = part.grant.and_then(|id| self.grants.get(&id));
        let Some(grant) = grant.map(|known| known.grant.clone()) else {
            return news;
        };
        let used = picos(grant.amount)
            .saturating_sub(picos(grant.remaining))
            .max(0);
        let mut all = self.subscriptions.values_mut();
        let runs = |of: &&mut Subscription| {
            let running = of.state.running.as_ref();
            running.is_some_and(|running| running.grant == grant.id)
        };
        if grant.kind == GrantKind::Plan
            && let Some(of) = all.find(runs)
            && let Some(running) = &of.state.running
            && let level = level(used, picos(running.terms.allowance))
            && level > of.told
        {
            of.told = level;
            news.push(json!({
                "subscription": of.id, "plan": running.terms.name, "per": null, "bound": running.terms.allowance,
                "used": amount(used).unwrap_or_default(), "percent": level, "opens_at": running.ends,
            }));
        }
        self.show_grants(grant.customer);
        news
    }

    pub(super) fn tell_of_low(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        all: Vec<serde_json::Value>,
    ) {
        for data in all {
            self.tell(customer, cause, EventKind::PlanLow, &data);
        }
    }
}
