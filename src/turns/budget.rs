//! Each customer's budget of CPU time, which refills as time passes.
//!
//! Work counts twice until it is paid for: in the customer's budget, and in the small one for what brings no money (free paths,
//! refusals, invalid bodies). Whoever is beyond either is served after the others.

use std::collections::HashMap;
use std::time::Duration;

use farebox_door::byte_room::Holder;
use farebox_door::cpu::{BudgetUsed, CpuBudget};
use tokio::time::Instant;

/// From this many customers on, those with full budgets are forgotten; again when there are twice as many as were left.
// Far more customers than are active at once, so a sweep is rare. Doubling before the next one keeps its cost per booking
// constant even if all of them are.
const REMEMBERED: usize = 10_000;

/// All work of a customer: a tenth of one CPU, which reads some 30 MB of JSON a second.
// Lower, and clients that send a long conversation again with every call wait behind others; higher, and fewer than ten
// customers fill a CPU. What is saved up lets a large body pass at once after a pause.
pub const OF_CUSTOMER: CpuBudget = CpuBudget {
    rate: Duration::from_millis(100),
    burst: Duration::from_secs(1),
};
/// Of that, what was not paid for. A hundredth of a CPU: a hundred keys without money have one.
// An honest client is refused now and then, a stranger always: so what earns nothing gets a tenth of what a customer gets, and
// enough of a burst for some invalid requests in a row.
pub const UNPAID: CpuBudget = CpuBudget {
    rate: Duration::from_millis(10),
    burst: Duration::from_millis(200),
};

#[derive(Debug, Default)]
pub(super) struct Budgets {
    known: HashMap<Holder, Spent>,
    /// Customers that were left when others were last forgotten.
    left: usize,
}

#[derive(Debug, Default)]
struct Spent {
    all: BudgetUsed,
    unpaid: BudgetUsed,
}

impl Spent {
    fn is_within(&mut self, now: Instant) -> bool {
        *self.all.now(OF_CUSTOMER, now) < OF_CUSTOMER.burst
            && *self.unpaid.now(UNPAID, now) < UNPAID.burst
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.all.now(OF_CUSTOMER, now).is_zero() && self.unpaid.now(UNPAID, now).is_zero()
    }
}

impl Budgets {
    pub(super) fn is_within(&mut self, holder: Holder, now: Instant) -> bool {
        self.known
            .get_mut(&holder)
            .is_none_or(|spent| spent.is_within(now))
    }

    /// Books CPU time, which is not paid for unless `paid` says so.
    pub(super) fn book(&mut self, holder: Holder, time: Duration, paid: bool, now: Instant) {
        if self.known.len() >= REMEMBERED.max(self.left.saturating_mul(2)) {
            // A full budget is what a stranger has, so forgetting it changes nothing.
            self.known.retain(|_, spent| !spent.is_full(now));
            self.left = self.known.len();
        }
        let spent = self.known.entry(holder).or_default();
        *spent.all.now(OF_CUSTOMER, now) += time;
        if !paid {
            *spent.unpaid.now(UNPAID, now) += time;
        }
    }

    /// Notes that time booked earlier was paid for.
    pub(super) fn pay(&mut self, holder: Holder, time: Duration, now: Instant) {
        if let Some(spent) = self.known.get_mut(&holder) {
            let unpaid = spent.unpaid.now(UNPAID, now);
            *unpaid = unpaid.saturating_sub(time);
        }
    }

    /// Customers beyond a budget.
    pub(super) fn over(&mut self, now: Instant) -> usize {
        self.known
            .values_mut()
            .filter_map(|spent| (!spent.is_within(now)).then_some(()))
            .count()
    }
}
