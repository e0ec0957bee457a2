//! Laws of plans on random histories: what is in windows, what pays, and what time does.

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::{at, terms, usd};
use crate::rule::customer::made;
use crate::rule::plan::{PlanAfter, PlanPeriod, PlanTerms, SoldPeriods, Subscription};
use crate::rule::purse::KeyPurse;
use crate::*;

const SLUGS: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Step {
    Sell { plan: usize, periods: u32 },
    Open { slug: usize, cents: i64 },
    Grow { hold: usize, cents: i64 },
    Shrink { hold: usize, cents: i64 },
    End { hold: usize, cents: i64 },
    Pass { hours: i64 },
    Pause { plan: usize },
    Resume { plan: usize },
    Cancel { plan: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (hold, cents) = (0..6_usize, 0..400_i64);
    prop_oneof![
        2 => (0..2_usize, 1..3_u32).prop_map(|(plan, periods)| Step::Sell { plan, periods }),
        6 => (0..3_usize, 1..600_i64).prop_map(|(slug, cents)| Step::Open { slug, cents }),
        2 => (hold.clone(), cents.clone()).prop_map(|(hold, cents)| Step::Grow { hold, cents }),
        2 => (hold.clone(), cents.clone()).prop_map(|(hold, cents)| Step::Shrink { hold, cents }),
        6 => (hold, 0..900_i64).prop_map(|(hold, cents)| Step::End { hold, cents }),
        4 => (1..60_i64).prop_map(|hours| Step::Pass { hours }),
        1 => (0..2_usize).prop_map(|plan| Step::Pause { plan }),
        1 => (0..2_usize).prop_map(|plan| Step::Resume { plan }),
        1 => (0..2_usize).prop_map(|plan| Step::Cancel { plan }),
    ]
}

fn cents(cents: i64) -> Amount {
    Amount::from_picos(cents * 10_000_000_000)
}

/// Two plans: one that the balance follows, with windows; one that stops, for one model.
fn plan(number: usize) -> PlanTerms {
    let small = |terms: PlanTerms| PlanTerms {
        period: PlanPeriod::Days(2),
        allowance: usd("10"),
        ..terms
    };
    match number {
        0 => small(terms(&[("5h", "2"), ("day", "4")])),
        _ => PlanTerms {
            name: "only-b".to_owned(),
            after: PlanAfter::Stop,
            models: Some(vec!["b".to_owned()]),
            carry: usd("0"),
            ..small(terms(&[("3h", "3")]))
        },
    }
}

struct Open {
    slug: &'static str,
    amount: Amount,
    parts: Vec<MoneyPart>,
}

struct World {
    customer: Customer,
    key: KeyId,
    now: Timestamp,
    holds: Vec<Open>,
    /// The subscription of each plan: one that has ended is followed by another.
    ids: [u64; 2],
}

impl World {
    fn begin() -> Self {
        let key = KeyId::from_random(1);
        let act = Act {
            operation: OperationId::from_bytes([1; 16]),
            actor: "test".to_owned(),
            at: at("2026-01-30T11:00:00Z"),
        };
        let mut customer = made(CustomerId::made_for(key), CustomerSettings::default(), &act);
        customer.account.credit = usd("20");
        Self {
            customer,
            key,
            now: act.at,
            holds: Vec::new(),
            ids: [0, 1],
        }
    }

    fn purse(&self) -> KeyPurse {
        KeyPurse::without_caps(self.key, &self.customer)
    }

    fn keep(&mut self, mut purse: KeyPurse) {
        for loss in std::mem::take(&mut purse.losses) {
            purse.account.credit = purse.account.credit.checked_sub(loss.amount).unwrap();
        }
        self.customer.account = purse.account;
        self.customer.grants = purse.grants;
    }

    fn settle(&mut self) {
        let grants = std::mem::take(&mut self.customer.grants);
        let (grants, account) = grants.at(self.customer.account, self.now);
        (self.customer.grants, self.customer.account) = (grants, account);
    }

    fn id(&self, number: usize) -> SubscriptionId {
        SubscriptionId::from_random(self.ids[number])
    }

    fn subscription(&self, number: usize) -> Option<Subscription> {
        self.customer.grants.plans.get(self.id(number)).cloned()
    }

    fn step(&mut self, step: &Step) {
        self.settle();
        let day = UtcDay::of(self.now);
        match *step {
            Step::Sell {
                plan: number,
                periods,
            } => {
                let known = self.subscription(number);
                let known = known.filter(|of| of.state.status != SubscriptionStatus::Ended);
                let mut of = known.unwrap_or_else(|| {
                    self.ids[number] += 2;
                    new((number, self.id(number)), self.customer.id, self.now)
                });
                let sold = SoldPeriods {
                    count: periods,
                    terms: plan(number),
                    payment: None,
                    taken: Amount::ZERO,
                };
                if of.sell(sold).is_ok() {
                    self.customer.grants.plans.put(of);
                    self.settle();
                }
            }
            Step::Open {
                slug,
                cents: wanted,
            } => {
                let (slug, mut purse) = (SLUGS[slug], self.purse());
                let mut parts = purse.begin(slug, self.now);
                let room = purse.room(slug, day, &parts);
                let ways = [HoldWay::exactly(cents(wanted))];
                let held = purse.hold((slug, day), (Amount::ZERO, &mut parts), &ways);
                assert_eq!(held.is_ok(), cents(wanted) <= room, "{held:?} of {room}");
                if let Ok(held) = held {
                    let stops = self.customer.grants.plans.stop(slug);
                    let of_grants = total(&parts);
                    assert!(!stops || of_grants == held.amount, "the balance pays");
                    self.keep(purse);
                    let amount = held.amount;
                    self.holds.push(Open {
                        slug,
                        amount,
                        parts,
                    });
                }
            }
            Step::Grow { hold, cents: more } | Step::Shrink { hold, cents: more } => {
                if self.holds.is_empty() {
                    return;
                }
                let at = hold % self.holds.len();
                let mut open = self.holds.remove(at);
                let mut purse = self.purse();
                let picos = cents(more).picos();
                let to = match step {
                    Step::Grow { .. } => open.amount.picos() + picos,
                    _ => (open.amount.picos() - picos).max(0),
                };
                let now = (open.amount, &mut open.parts);
                let held = purse.move_to((open.slug, day), now, Amount::from_picos(to));
                open.amount = held.unwrap().amount;
                self.keep(purse);
                self.holds.push(open);
            }
            Step::End { hold, cents: cost } => {
                if !self.holds.is_empty() {
                    let open = self.holds.remove(hold % self.holds.len());
                    self.end(&open, cents(cost));
                }
            }
            Step::Pass { hours } => {
                let later = self.now.millis() + hours * 3_600_000;
                self.now = Timestamp::from_millis(later);
                self.settle();
            }
            Step::Pause { plan } => self.change(plan, Subscription::pause),
            Step::Resume { plan } => self.change(plan, Subscription::resume),
            Step::Cancel { plan } => self.change(plan, Subscription::end),
        }
    }

    fn change(
        &mut self,
        number: usize,
        change: impl Fn(&mut Subscription, Timestamp) -> Result<(), Refusal>,
    ) {
        let Some(mut of) = self.subscription(number) else {
            return;
        };
        if change(&mut of, self.now).is_ok() {
            self.customer.grants.plans.put(of);
        }
    }

    fn end(&mut self, open: &Open, cost: Amount) {
        let (day, mut purse) = (UtcDay::of(self.now), self.purse());
        let room = purse.room(open.slug, day, &open.parts);
        let ending = purse.account.finish(open.amount, cost, room).unwrap();
        let stops = purse.grants.plans.stop(open.slug);
        let of_pool = open.amount.checked_sub(total(&open.parts)).unwrap();
        let of_hold = (open.amount, open.parts.as_slice());
        let (paid, _) = purse.pay((open.slug, day), of_hold, &ending);
        if !paid.is_empty() {
            assert_eq!(total(&paid), ending.charge);
        }
        let pool = paid.iter().filter(|part| part.grant.is_none());
        let pool = pool.fold(Amount::ZERO, |all, part| {
            all.checked_add(part.amount).unwrap()
        });
        assert!(
            !stops || pool <= of_pool,
            "the balance pays beyond what was held of it"
        );
        self.keep(purse);
    }

    fn check(&self) {
        let Customer {
            account, grants, ..
        } = &self.customer;
        assert!(account.is_sound(), "{account:?}");
        assert!(!grants.pool(*account).is_negative() && !grants.pool_free(*account).is_negative());
        let left = grants
            .iter()
            .map(|grant| grant.remaining.picos())
            .sum::<i64>();
        assert_eq!(
            account.balance().picos(),
            grants.pool(*account).picos() + left
        );
        for grant in grants.iter() {
            assert!(
                Amount::ZERO <= grant.held && grant.held <= grant.remaining,
                "{grant:?}"
            );
            let of_it = self.parts().filter(|part| part.grant == Some(grant.id));
            assert_eq!(
                grant.held.picos(),
                of_it.map(|part| part.amount.picos()).sum::<i64>()
            );
        }
        for window in grants.plans.windows() {
            let used = window.charged.checked_add(window.held).unwrap();
            assert!(used <= window.bound, "{window:?}");
            let of_it = self
                .parts()
                .filter(|part| part.windows.contains(&window.id));
            assert_eq!(
                window.held.picos(),
                of_it.map(|part| part.amount.picos()).sum::<i64>()
            );
        }
        for open in &self.holds {
            assert!(total(&open.parts) <= open.amount);
        }
    }

    fn parts(&self) -> impl Iterator<Item = &MoneyPart> {
        self.holds.iter().flat_map(|hold| &hold.parts)
    }
}

fn total(parts: &[MoneyPart]) -> Amount {
    Amount::from_picos(parts.iter().map(|part| part.amount.picos()).sum())
}

fn new(
    (number, id): (usize, SubscriptionId),
    customer: CustomerId,
    now: Timestamp,
) -> Subscription {
    Subscription::new((id, customer), &plan(number), ("test", now))
}

fn cases(full: u32) -> Config {
    let is_full = std::env::var_os("FAREBOX_FULL").is_some();
    Config::with_cases(if is_full { full } else { full / 50 })
}

proptest! {
    #![proptest_config(cases(100_000))]

    /// A window never has more than its bound, charged and held; every amount is in one place; what stops lets the balance pay nothing.
    #[test]
    fn windows_hold_and_every_amount_is_in_one_place(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World::begin();
        for step in &steps {
            world.step(step);
            world.check();
        }
    }

    /// However often and late somebody looks, the same periods have begun and ended.
    #[test]
    fn what_time_does_does_not_depend_on_who_looks(
        periods in 1..5_u32, looks in proptest::collection::vec(1..100_i64, 0..12),
    ) {
        let (mut often, mut once) = (World::begin(), World::begin());
        for world in [&mut often, &mut once] {
            world.step(&Step::Sell { plan: 0, periods });
        }
        for hours in &looks {
            often.step(&Step::Pass { hours: *hours });
            often.check();
        }
        once.step(&Step::Pass { hours: looks.iter().sum() });
        once.check();
        let seen = |world: &World| {
            let running = world.subscription(0).map(|of| (of.state, of.moved));
            let grants: Vec<_> = world.customer.grants.iter().cloned().collect();
            (running, grants, world.customer.account)
        };
        prop_assert_eq!(seen(&often), seen(&once));
    }
}
