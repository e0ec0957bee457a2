//! Registers and claims: cases by hand, and laws over any order.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test ends at the first surprise"
)]

use proptest::prelude::*;

use super::*;

fn gross(parts: i64) -> Gross {
    Gross::from_parts(parts).unwrap()
}

fn paid(parts: i64) -> PaidSum {
    PaidSum {
        currency: "EUR".to_owned(),
        gross: gross(parts),
        tax: Gross::ZERO,
    }
}

fn told(messages: &[(ReversalKind, i64)]) -> Registers {
    let mut registers = Registers::default();
    for (kind, cumulative) in messages {
        registers.tell(*kind, gross(*cumulative));
    }
    registers
}

#[test]
fn a_refund_and_a_dispute_of_one_payment_are_never_both_taken() {
    use ReversalKind::{Dispute, DisputeWon, Refund};
    let due = |messages: &[_]| told(messages).due(&paid(1_190), Amount::from_picos(1_000));
    assert_eq!(due(&[]).picos(), 0);
    assert_eq!(due(&[(Refund, 595)]).picos(), 500);
    assert_eq!(due(&[(Refund, 1)]).picos(), 0, "rounded down");
    assert_eq!(due(&[(Refund, 1_189)]).picos(), 999);
    assert_eq!(due(&[(Refund, 1_190)]).picos(), 1_000, "all of it");
    assert_eq!(due(&[(Refund, 1_190), (Dispute, 1_190)]).picos(), 1_000);
    assert_eq!(due(&[(Dispute, 1_190), (DisputeWon, 1_190)]).picos(), 0);
    let refunded_and_won = [(DisputeWon, 1_190), (Refund, 595), (Dispute, 1_190)];
    assert_eq!(due(&refunded_and_won).picos(), 500);
}

/// A customer whose money was all paid.
fn claimed(account: Account, claim: Amount) -> Claimed {
    Claimed {
        account,
        claim,
        payable: account.available(),
    }
}

#[test]
fn a_claim_stands_only_while_nothing_is_available() {
    let account = Account {
        credit: Amount::from_picos(100),
        spent: Amount::from_picos(70),
        held: Amount::from_picos(10),
    };
    let start = claimed(account, Amount::ZERO);
    let (owing, moved) = start
        .move_due(Amount::ZERO, Amount::from_picos(100))
        .unwrap();
    assert_eq!((moved.picos(), owing.claim.picos()), (-20, 80));
    assert_eq!(owing.account.available(), Amount::ZERO);
    let released = owing.account.release(Amount::from_picos(10)).unwrap();
    let released = claimed(released, owing.claim);
    let (paid, moved) = released.collect().unwrap();
    assert_eq!((moved.picos(), paid.claim.picos()), (-10, 70));
    let (won, moved) = paid
        .move_due(Amount::from_picos(100), Amount::ZERO)
        .unwrap();
    assert_eq!((moved.picos(), won.claim.picos()), (30, 0));
    assert_eq!(won.account.available().picos(), 30);
}

#[test]
fn what_comes_back_passes_the_highest_balance_and_no_more() {
    let full = |credit| {
        let account = Account {
            credit,
            ..Account::default()
        };
        claimed(account, Amount::ZERO)
    };
    let one = Amount::from_picos(1);
    let (won, moved) = full(Amount::MAX_BALANCE)
        .move_due(one, Amount::ZERO)
        .unwrap();
    assert_eq!((moved, won.account.available()), (one, won.account.credit));
    let most = full(Amount::MAX_LIFETIME_CREDIT).move_due(one, Amount::ZERO);
    assert!(matches!(most, Err(Refusal::Limit(_))), "{most:?}");
}

#[test]
fn what_nobody_paid_pays_no_claim() {
    let account = Account {
        credit: Amount::from_picos(100),
        ..Account::default()
    };
    let start = Claimed {
        account,
        claim: Amount::ZERO,
        payable: Amount::from_picos(30),
    };
    let due = Amount::from_picos(50);
    let (owing, moved) = start.move_due(Amount::ZERO, due).unwrap();
    assert_eq!((moved.picos(), owing.claim.picos()), (-30, 20));
    assert_eq!(owing.account.available().picos(), 70);
    assert_eq!(owing.payable, Amount::ZERO);
    assert_eq!(owing.collect().unwrap(), (owing, Amount::ZERO));
}

/// Messages about two payments, and money that comes, goes and is held meanwhile.
#[derive(Debug, Clone)]
enum Step {
    Tell(usize, ReversalKind, i64),
    Spend(i64),
    Pay(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        Just(ReversalKind::Refund),
        Just(ReversalKind::Dispute),
        Just(ReversalKind::DisputeWon)
    ];
    prop_oneof![
        3 => (0..2_usize, kind, 0..1_300_i64).prop_map(|(of, kind, told)| Step::Tell(of, kind, told)),
        1 => (0..400_i64).prop_map(Step::Spend),
        1 => (1..400_i64).prop_map(Step::Pay),
    ]
}

struct World {
    now: Claimed,
    registers: [Registers; 2],
    booked: i64,
    paid: i64,
}

impl World {
    fn new() -> Self {
        // Most of what was paid is spent, so that what goes back is often not there.
        let account = Account {
            credit: Amount::from_picos(2_000),
            spent: Amount::from_picos(1_500),
            held: Amount::ZERO,
        };
        Self {
            now: claimed(account, Amount::ZERO),
            registers: [Registers::default(); 2],
            booked: 0,
            paid: 2_000,
        }
    }

    fn due(&self) -> i64 {
        let due = |registers: &Registers| registers.due(&paid(1_190), Amount::from_picos(1_000));
        self.registers.iter().map(|of| due(of).picos()).sum()
    }

    fn collect(&mut self) {
        self.now = claimed(self.now.account, self.now.claim);
        let (now, moved) = self.now.collect().unwrap();
        self.booked -= moved.picos();
        self.now = now;
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Tell(of, kind, cumulative) => {
                let before = self.due();
                self.registers[*of].tell(*kind, gross(*cumulative));
                let (before, after) = (Amount::from_picos(before), Amount::from_picos(self.due()));
                let now = claimed(self.now.account, self.now.claim);
                let (now, moved) = now.move_due(before, after).unwrap();
                self.booked -= moved.picos();
                self.now = now;
            }
            Step::Spend(cost) => {
                let account = self.now.account;
                let cost = Amount::from_picos(*cost);
                let ending = account.finish(Amount::ZERO, cost, account.available());
                self.now.account = ending.unwrap().account;
            }
            Step::Pay(amount) => {
                self.paid += amount;
                self.now.account = self
                    .now
                    .account
                    .top_up(Amount::from_picos(*amount))
                    .unwrap();
            }
        }
        self.collect();
        let Claimed {
            account,
            claim,
            payable,
        } = self.now;
        assert_eq!(payable, account.available());
        assert!(account.is_sound());
        assert!(!claim.is_negative());
        assert!(claim == Amount::ZERO || account.available() == Amount::ZERO);
        assert_eq!(self.due(), self.booked + claim.picos());
        assert_eq!(account.credit.picos(), self.paid - self.booked);
    }
}

proptest! {
    #[test]
    fn any_order_and_repetition_ends_in_the_same_registers_claims_and_sums(
        steps in prop::collection::vec(step(), 0..30),
        again in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        order in any::<u64>(),
    ) {
        let mut first = World::new();
        steps.iter().for_each(|step| first.step(step));
        // The same messages, some of them again, in another order, behind the same payments and charges.
        let (mut messages, rest): (Vec<Step>, Vec<Step>) =
            steps.iter().cloned().partition(|step| matches!(step, Step::Tell(..)));
        if !messages.is_empty() {
            let more: Vec<Step> = again.iter().map(|at| at.get(&messages).clone()).collect();
            messages.extend(more);
        }
        let mut rng = order;
        for place in (1..messages.len()).rev() {
            rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            messages.swap(place, (rng >> 33) as usize % (place + 1));
        }
        let pays: Vec<&Step> = rest.iter().filter(|step| matches!(step, Step::Pay(_))).collect();
        let mut second = World::new();
        pays.iter().for_each(|step| second.step(step));
        messages.iter().for_each(|step| second.step(step));
        prop_assert_eq!(first.registers, second.registers);
        prop_assert_eq!(first.due(), second.due());
        // Without spending between them, claims and sums are the same, too.
        let mut third = World::new();
        messages.iter().rev().for_each(|step| third.step(step));
        pays.iter().for_each(|step| third.step(step));
        prop_assert_eq!(second.now, third.now);
        prop_assert_eq!(second.booked, third.booked);
    }
}
