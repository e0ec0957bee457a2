//! What the verifier asks of a customer's grants: what is left of each follows from its entries, what is held of it from the open holds, and
//! its terms from the act that made it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::audit::AuditRecord;
use super::reader::CustomerRows;
use super::{grant_act, plan_act};
use crate::{
    EntryKind, Grant, GrantId, GrantKind, GrantRecord, GrantStatus, Grants, JournalEntry,
    MoneyPart, Plans, SubscriptionId, WindowId,
};

/// What entries and acts say of a customer's grants.
#[derive(Default)]
pub(super) struct GrantCheck {
    /// What entries gave to each, less what they took of it.
    sums: BTreeMap<GrantId, i128>,
    /// The terms with which acts made them.
    made: BTreeMap<GrantId, Value>,
    /// How the newest act of each left its subscription.
    left: BTreeMap<SubscriptionId, Value>,
    /// What was charged in each window, less what was refunded.
    charged: BTreeMap<WindowId, i128>,
}

impl GrantCheck {
    /// Adds an entry, and says what is wrong with its parts.
    pub(super) fn entry(&mut self, entry: &JournalEntry) -> Option<&'static str> {
        let mut sum = 0_i128;
        for part in &entry.parts {
            let amount = i128::from(part.amount.picos());
            sum = sum.saturating_add(amount);
            if [EntryKind::Charge, EntryKind::Refund].contains(&entry.kind) {
                for window in &part.windows {
                    let of_window = self.charged.entry(*window).or_default();
                    *of_window = of_window.saturating_sub(amount);
                }
            }
            if let Some(grant) = part.grant {
                let of_grant = self.sums.entry(grant).or_default();
                *of_grant = of_grant.saturating_add(amount);
            }
        }
        let adds_up = entry.parts.is_empty() || sum == i128::from(entry.amount.picos());
        (!adds_up).then_some("its parts are not its amount")
    }

    /// Adds an act.
    pub(super) fn act(&mut self, act: &AuditRecord) {
        for (grant, terms) in grant_act::made_grants(act) {
            self.made.insert(grant, terms);
        }
        // Acts are walked from the newest on.
        if let Some((subscription, state)) = plan_act::left(act) {
            self.left.entry(subscription).or_insert(state);
        }
    }

    /// What is wrong with the grants.
    pub(super) fn faults(&self, name: &str, rows: &CustomerRows) -> Vec<String> {
        let mut faults = Vec::new();
        let parts = || rows.holds.iter().flat_map(|hold| &hold.parts);
        let named = parts().filter_map(|part| part.grant);
        let known = |id: &GrantId| rows.grants.iter().any(|record| record.grant.id == *id);
        let missing = self
            .sums
            .keys()
            .copied()
            .chain(named)
            .filter(|id| !known(id));
        faults.extend(missing.map(|id| format!("{name}: grant {id} is missing")));
        for record in &rows.grants {
            faults.extend(
                self.grant(record, parts())
                    .map(|why| format!("{name}: grant {}: {why}", record.grant.id)),
            );
        }
        for hold in &rows.holds {
            let of_grants = hold
                .parts
                .iter()
                .map(|part| i128::from(part.amount.picos()));
            if of_grants.sum::<i128>() > i128::from(hold.open.amount.picos()) {
                faults.push(format!(
                    "{name}: hold {}: its parts are more than it",
                    hold.open.request
                ));
            }
        }
        let open = rows.grants.iter().map(|record| record.grant.clone());
        let open = Grants::of(open.filter(Grant::is_open).collect());
        let plans = Plans::of(rows.subscriptions.clone(), rows.windows.clone());
        faults.extend(self.plans(name, rows, &plans));
        let open = open.and(plans.open());
        let customer = &rows.stored.customer;
        if customer.grants != open || rows.next_grant_at != open.next_at() {
            faults.push(format!(
                "{name}: its account does not know when something happens to its grants"
            ));
        }
        let counted = open
            .iter()
            .filter(|grant| grant.status != GrantStatus::Pending);
        let (left, held) = counted.fold((0_i128, 0_i128), |(left, held), grant| {
            let (more, of_it) = (grant.remaining.picos(), grant.held.picos());
            (
                left.saturating_add(more.into()),
                held.saturating_add(of_it.into()),
            )
        });
        let account = customer.account;
        let pool = i128::from(account.balance().picos()).saturating_sub(left);
        let pool_held = i128::from(account.held.picos()).saturating_sub(held);
        if pool < 0 || pool_held < 0 || pool_held > pool {
            faults.push(format!("{name}: its grants have more than its account"));
        }
        faults
    }

    /// What is wrong with subscriptions and their windows.
    fn plans(&self, name: &str, rows: &CustomerRows, plans: &Plans) -> Vec<String> {
        let mut faults = Vec::new();
        for subscription in plans.iter() {
            if self.left.get(&subscription.id) != Some(&plan_act::state(subscription)) {
                let id = subscription.id;
                faults.push(format!(
                    "{name}: subscription {id}: it was changed without an audit record"
                ));
            }
        }
        for id in self.left.keys().filter(|id| plans.get(**id).is_none()) {
            faults.push(format!("{name}: subscription {id} is missing"));
        }
        let parts = || rows.holds.iter().flat_map(|hold| &hold.parts);
        for window in plans.windows() {
            let of_it = parts().filter(|part| part.windows.contains(&window.id));
            let held: i128 = of_it.map(|part| i128::from(part.amount.picos())).sum();
            let charged = self.charged.get(&window.id).copied().unwrap_or_default();
            let counted = (
                i128::from(window.held.picos()),
                i128::from(window.charged.picos()),
            );
            if counted != (held, charged) {
                faults.push(format!(
                    "{name}: a window of {} per {} does not follow from its holds and entries",
                    window.place.plan, window.place.per
                ));
            }
        }
        faults
    }

    fn grant<'parts>(
        &self,
        record: &GrantRecord,
        parts: impl Iterator<Item = &'parts MoneyPart>,
    ) -> impl Iterator<Item = &'static str> {
        let grant = &record.grant;
        let follows = match grant.status {
            // It is in no sum before it begins.
            GrantStatus::Pending => {
                grant.amount == grant.remaining && !self.sums.contains_key(&grant.id)
            }
            GrantStatus::Active
            | GrantStatus::Exhausted
            | GrantStatus::Expired
            | GrantStatus::Voided => {
                self.sums.get(&grant.id).copied().unwrap_or_default()
                    == i128::from(grant.remaining.picos())
            }
        };
        let of_it = parts.filter(|part| part.grant == Some(grant.id));
        let held: i128 = of_it.map(|part| i128::from(part.amount.picos())).sum();
        let is_told = self.is_told(record);
        let faults = [
            (!follows).then_some("what is left does not follow from its entries"),
            (held != i128::from(grant.held.picos()))
                .then_some("its holds do not add up to what is held"),
            (!is_told).then_some("it was changed without an audit record"),
        ];
        faults.into_iter().flatten()
    }

    /// Whether an act made it with these terms. The end of a period is what its subscription says.
    fn is_told(&self, record: &GrantRecord) -> bool {
        let made = self.made.get(&record.grant.id);
        match record.grant.kind {
            GrantKind::Plan => made.is_some_and(|made| {
                plan_act::without_end(made.clone())
                    == plan_act::without_end(grant_act::terms(record))
            }),
            GrantKind::Promotional | GrantKind::Paid => made == Some(&grant_act::terms(record)),
        }
    }
}
