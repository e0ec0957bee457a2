//! The rules of grants one by one: the order of use, holds and charges, ends, notices, what goes back. What holds for any of them in any
//! order is in `laws`.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test ends at the first surprise"
)]

use super::*;
use crate::Account;
use crate::rule::account::sum;

#[path = "tests/laws.rs"]
mod laws;

const DAY: i64 = 86_400_000;
/// Noon of a day in 2026, and the present of these tests.
const NOW: i64 = 1_795_000_000_000;

fn picos(picos: i64) -> Amount {
    Amount::from_picos(picos)
}

fn day(days: i64) -> Timestamp {
    Timestamp::from_millis(NOW + days * DAY)
}

fn id(number: u64) -> GrantId {
    GrantId::from_random(number)
}

/// One that is used from now on, of 100, for all models, promotional and without an end.
fn grant(number: u64) -> Grant {
    Grant {
        id: id(number),
        customer: CustomerId::from_random(1),
        kind: GrantKind::Promotional,
        amount: picos(100),
        priority: Grant::PRIORITY,
        effective_at: day(0),
        expires_at: None,
        models: None,
        remaining: picos(100),
        held: Amount::ZERO,
        status: GrantStatus::Active,
        told: None,
    }
}

fn until(number: u64, end: i64) -> Grant {
    Grant {
        expires_at: Some(day(end)),
        ..grant(number)
    }
}

fn paid(number: u64, end: i64) -> Grant {
    Grant {
        kind: GrantKind::Paid,
        ..until(number, end)
    }
}

fn only_for(grant: Grant, slug: &str) -> Grant {
    Grant {
        models: Some(vec![slug.to_owned()]),
        ..grant
    }
}

/// An account with these grants, so much in the pool, and nothing held or spent.
fn purse(pool: i64, grants: impl IntoIterator<Item = Grant>) -> (Grants, Account) {
    let grants = Grants::of(grants.into_iter().collect());
    let counted = grants
        .iter()
        .filter(|grant| grant.status != GrantStatus::Pending);
    let credit = counted.fold(picos(pool), |all, grant| sum(all, grant.remaining));
    let account = Account {
        credit,
        ..Account::default()
    };
    (grants, account)
}

/// What time does next where there are no plans.
fn turn_of(grants: &Grants, now: Timestamp) -> Option<(OperationId, GrantTurn, Grant)> {
    match grants.turn(now)? {
        (operation, MoneyTurn::Grant(turn, grant)) => Some((operation, turn, grant)),
        (_, MoneyTurn::Plan(..)) => None,
    }
}

fn part(number: u64, amount: i64) -> MoneyPart {
    MoneyPart::of(Some(id(number)), picos(amount))
}

fn of_pool(amount: i64) -> MoneyPart {
    MoneyPart::of(None, picos(amount))
}

/// Holds so much for a slug; the account and the parts afterwards.
fn held(grants: &mut Grants, account: Account, slug: &str, size: i64) -> (Account, Vec<MoneyPart>) {
    let mut parts = Vec::new();
    grants.hold(account, slug, &mut parts, picos(size));
    let held = sum(account.held, picos(size));
    (Account { held, ..account }, parts)
}

/// What is free of the pool, and of each grant by its number.
fn free(grants: &Grants, account: Account) -> (i64, Vec<i64>) {
    let of_each = grants.iter().map(|grant| grant.free().picos());
    (grants.pool_free(account).picos(), of_each.collect())
}

#[test]
fn the_order_of_use_is_priority_end_kind_beginning_id() {
    let with = |priority: u8, grant: Grant| Grant { priority, ..grant };
    let begun = |days: i64, grant: Grant| Grant {
        effective_at: day(days),
        ..grant
    };
    // Shuffled; the numbers say the order that is wanted.
    let all = [
        with(51, until(9, 1)),
        grant(7),
        until(4, 9),
        paid(5, 9),
        begun(-3, until(3, 9)),
        with(0, grant(1)),
        begun(-9, grant(6)),
        until(2, 8),
        begun(-1, with(51, until(8, 1))),
    ];
    let (grants, account) = purse(10, all);
    let order: Vec<GrantId> = grants.usable().iter().map(|grant| grant.id).collect();
    assert_eq!(order, (1..10).map(id).collect::<Vec<_>>());
    // The pool's place is behind promotional grants without an end, and before those of a higher priority.
    let mut charged = grants.clone();
    let done = charged.charge(account, "m", (Amount::ZERO, &[]), picos(711));
    let mut expected: Vec<MoneyPart> = (1..8).map(|number| part(number, 100)).collect();
    expected.push(of_pool(10));
    expected.push(part(8, 1));
    assert_eq!(done.parts, expected);
    assert_eq!(charged.get(id(7)).unwrap().status, GrantStatus::Exhausted);
    assert_eq!(charged.get(id(8)).unwrap().remaining, picos(99));
}

#[test]
fn the_pool_is_first_of_what_is_paid_and_has_no_end() {
    // A paid grant has an end, so that it comes before the pool unless its priority is higher.
    let late = Grant {
        priority: 51,
        ..paid(1, 9)
    };
    let (mut grants, account) = purse(100, [late, paid(2, 9)]);
    let done = grants.charge(account, "m", (Amount::ZERO, &[]), picos(250));
    assert_eq!(done.parts, [part(2, 100), of_pool(100), part(1, 50)]);
    // A paid one without an end, as a copy of a damaged ledger may have it, comes behind the pool, whenever it began.
    let odd = Grant {
        expires_at: None,
        effective_at: day(-900),
        ..paid(1, 9)
    };
    let (mut grants, account) = purse(100, [odd]);
    let done = grants.charge(account, "m", (Amount::ZERO, &[]), picos(150));
    assert_eq!(done.parts, [of_pool(100), part(1, 50)]);
}

#[test]
fn a_hold_takes_from_the_end_of_the_order() {
    let (mut grants, account) = purse(30, [until(1, 5), grant(2), only_for(until(3, 1), "x")]);
    let (account, parts) = held(&mut grants, account, "m", 20);
    assert_eq!(parts, [], "all of the pool");
    assert_eq!(free(&grants, account), (10, vec![100, 100, 100]));
    let (account, parts) = held(&mut grants, account, "m", 150);
    assert_eq!(parts, [part(2, 100), part(1, 40)]);
    assert_eq!(free(&grants, account), (0, vec![60, 0, 100]));
    assert_eq!(grants.available(account, "m", &[]), picos(60));
    assert_eq!(grants.available(account, "x", &[]), picos(160));
    assert_eq!(grants.balance(account, "m", &[]), picos(230), "held or not");
    assert_eq!(grants.balance(account, "x", &[]), picos(330));
    let (account, parts) = held(&mut grants, account, "x", 160);
    assert_eq!(parts, [part(1, 60), part(3, 100)]);
    assert_eq!(free(&grants, account), (0, vec![0, 0, 0]));
}

#[test]
fn a_charge_takes_what_is_used_first_of_what_is_free_and_its_own() {
    let (mut grants, account) = purse(100, [until(1, 5), until(2, 9)]);
    let (account, parts) = held(&mut grants, account, "m", 150);
    assert_eq!(parts, [part(2, 50)], "and the whole pool");
    let done = grants.charge(account, "m", (picos(150), &parts), picos(120));
    assert_eq!(done.parts, [part(1, 100), part(2, 20)]);
    assert_eq!(done.losses, []);
    let account = Account {
        held: Amount::ZERO,
        spent: picos(120),
        ..account
    };
    assert_eq!(free(&grants, account), (100, vec![0, 80]));
    assert_eq!(grants.get(id(1)).unwrap().status, GrantStatus::Exhausted);
    // What another request holds is not taken, however early its source is used.
    let (mut grants, account) = purse(100, [until(1, 5)]);
    let (account, _) = held(&mut grants, account, "m", 200);
    let done = grants
        .clone()
        .charge(account, "m", (picos(100), &[]), picos(100));
    assert_eq!(done.parts, [], "the pool alone");
    let done = grants.charge(account, "m", (picos(100), &[part(1, 100)]), picos(60));
    assert_eq!(done.parts, [part(1, 60)]);
    assert_eq!(grants.get(id(1)).unwrap().free(), picos(40));
}

#[test]
fn a_charge_takes_nothing_of_a_grant_for_other_models() {
    let (mut grants, account) = purse(50, [only_for(until(1, 5), "x"), only_for(grant(2), "m")]);
    assert_eq!(grants.available(account, "m", &[]), picos(150));
    assert_eq!(grants.available(account, "other", &[]), picos(50));
    let done = grants.charge(account, "m", (Amount::ZERO, &[]), picos(120));
    assert_eq!(done.parts, [part(2, 100), of_pool(20)]);
}

#[test]
fn what_comes_back_of_a_hold_leaves_free_what_is_used_first() {
    let (mut grants, account) = purse(10, [until(1, 5), until(2, 9)]);
    let (_, mut parts) = held(&mut grants, account, "m", 210);
    assert_eq!(parts, [part(2, 100), part(1, 100)]);
    let losses = grants.give_back("m", (picos(210), &mut parts), picos(130));
    assert_eq!((losses, &parts[..]), (vec![], &[part(2, 70)][..]));
    let losses = grants.give_back("m", (picos(80), &mut parts), picos(75));
    // The pool gives the last 5 of these, and keeps 5.
    assert_eq!((losses, &parts[..]), (vec![], &[][..]));
    assert_eq!(free(&grants, account).1, [100, 100]);
}

#[test]
fn what_has_ended_is_given_back_last_and_is_nobodys() {
    let (mut grants, account) = purse(10, [until(1, 5), until(2, 9)]);
    let (account, mut parts) = held(&mut grants, account, "m", 210);
    let (mut grants, account) = grants.at(account, day(5));
    assert_eq!(account.credit, picos(210), "nothing of it was free");
    let losses = grants.give_back("m", (picos(210), &mut parts), picos(110));
    assert_eq!((losses, &parts[..]), (vec![], &[part(1, 100)][..]));
    let losses = grants.give_back("m", (picos(100), &mut parts), picos(30));
    let loss = GrantLoss {
        grant: id(1),
        status: GrantStatus::Expired,
        amount: picos(30),
    };
    assert_eq!((losses, &parts[..]), (vec![loss], &[part(1, 70)][..]));
    let ended = grants.get(id(1)).unwrap();
    assert_eq!((ended.remaining, ended.held), (picos(70), picos(70)));
    // The rest is spent to its end, and what is not is lost with it.
    let account = Account {
        credit: picos(180),
        held: picos(70),
        ..account
    };
    let done = grants.charge(account, "m", (picos(70), &parts), picos(60));
    let loss = GrantLoss {
        amount: picos(10),
        ..loss
    };
    assert_eq!((done.parts, done.losses), (vec![part(1, 60)], vec![loss]));
    assert_eq!(grants.open().iter().count(), 1, "it is over");
}

#[test]
fn a_hold_made_after_an_end_takes_nothing_of_it() {
    let (mut grants, account) = purse(0, [until(1, 5), grant(2)]);
    let (account, parts) = held(&mut grants, account, "m", 130);
    let (mut grants, account) = grants.at(account, day(5));
    assert_eq!(account.credit, picos(130), "70 of it were free");
    assert_eq!(grants.available(account, "m", &[]), Amount::ZERO);
    let mut grown = parts.clone();
    grants.hold(account, "m", &mut grown, picos(1));
    assert_eq!(grown, parts, "there is nothing to take");
    let ended = grants.get(id(1)).unwrap();
    assert_eq!((ended.remaining, ended.held), (picos(30), picos(30)));
    let mut last = grants.clone();
    let done = last.charge(account, "m", (picos(130), &parts), picos(130));
    assert_eq!(done.parts, [part(1, 30), part(2, 100)]);
    assert!(last.open().is_empty());
    // An end is the first instant at which it cannot be used.
    let (begun, _) = purse(0, [until(1, 5)]);
    let before = Timestamp::from_millis(day(5).millis() - 1);
    assert_eq!(
        begun
            .clone()
            .at(Account::default(), before)
            .0
            .usable()
            .len(),
        1
    );
    assert!(begun.at(Account::default(), day(5)).0.is_empty());
}

#[test]
fn a_pending_grant_counts_once_it_begins() {
    let pending = Grant {
        status: GrantStatus::Pending,
        effective_at: day(3),
        ..until(1, 60)
    };
    let (grants, account) = purse(7, [pending.clone()]);
    assert_eq!((account.credit, grants.pool(account)), (picos(7), picos(7)));
    assert_eq!(grants.next_at(), Some(day(3)));
    let (same, unchanged) = grants.clone().at(account, day(2));
    assert_eq!((&same, unchanged), (&grants, account));
    let (begun, after) = grants.clone().at(account, day(3));
    assert_eq!((after.credit, begun.pool(after)), (picos(107), picos(7)));
    assert_eq!(begun.usable().len(), 1);
    // One that nobody looked at before it was over begins and ends.
    let (over, after) = grants.at(account, day(60));
    assert_eq!((over, after), (Grants::default(), account));
}

#[test]
fn it_is_told_30_7_and_1_days_before_its_end_once() {
    let told_at = |first: Grant, days: &[i64]| {
        let (mut grants, mut told) = (Grants::of(vec![first]), Vec::new());
        for days in days {
            while let Some((_, turn, after)) = turn_of(&grants, day(*days)) {
                if let GrantTurn::Nears(left) = turn {
                    told.push((*days, left));
                }
                grants.put(after);
            }
        }
        told
    };
    let each: Vec<i64> = (0..50).flat_map(|day| [day, day]).collect();
    assert_eq!(told_at(until(1, 40), &each), [(10, 30), (33, 7), (39, 1)]);
    assert_eq!(
        told_at(until(1, 30), &each),
        [(23, 7), (29, 1)],
        "given within it"
    );
    assert_eq!(told_at(until(1, 1), &each), []);
    assert_eq!(told_at(grant(1), &each), []);
    assert_eq!(
        told_at(until(1, 40), &[36]),
        [(36, 7)],
        "what is missed is not told"
    );
    assert_eq!(told_at(until(1, 40), &[36, 39]), [(36, 7), (39, 1)]);
    assert_eq!(told_at(until(1, 40), &[40]), [], "it is over");
    let pending = Grant {
        status: GrantStatus::Pending,
        effective_at: day(20),
        ..until(1, 40)
    };
    assert_eq!(told_at(pending, &each), [(33, 7), (39, 1)]);
    let used_up = Grant {
        status: GrantStatus::Exhausted,
        remaining: Amount::ZERO,
        ..until(1, 40)
    };
    assert_eq!(told_at(used_up, &each), []);
}

#[test]
fn every_turn_has_one_operation_whoever_looks_and_when() {
    let (grants, _) = purse(0, [until(1, 40), until(2, 40)]);
    let operation = |now| turn_of(&grants, now).map(|(operation, ..)| operation);
    assert_eq!(operation(day(9)), None);
    assert_eq!(operation(day(10)), operation(day(32)));
    assert_eq!(operation(day(40)), operation(day(41)));
    let mut seen = std::collections::BTreeSet::new();
    let mut grants = grants.clone();
    for now in 0..42 {
        while let Some((operation, _, after)) = turn_of(&grants, day(now)) {
            assert!(seen.insert(operation), "of its own for each");
            grants.put(after);
        }
    }
    assert_eq!(seen.len(), 8);
}

#[test]
fn a_void_takes_what_is_free_once() {
    let (mut grants, account) = purse(0, [until(1, 5), grant(2)]);
    let (account, parts) = held(&mut grants, account, "m", 130);
    let (voided, taken) = grants.void(id(1)).unwrap();
    assert_eq!(
        (taken, voided.remaining, voided.held),
        (picos(70), picos(30), picos(30))
    );
    assert_eq!(grants.void(id(1)), None, "it was voided before");
    assert_eq!(grants.void(id(9)), None, "there is none");
    let account = Account {
        credit: picos(130),
        ..account
    };
    // What its hold has it spends; it does not end a second time.
    let (mut grants, same) = grants.at(account, day(9));
    assert_eq!(same, account);
    let done = grants.charge(account, "m", (picos(130), &parts), picos(10));
    let loss = GrantLoss {
        grant: id(1),
        status: GrantStatus::Voided,
        amount: picos(20),
    };
    assert_eq!((done.parts, done.losses), (vec![part(1, 10)], vec![loss]));
    let pending = Grant {
        status: GrantStatus::Pending,
        effective_at: day(3),
        ..grant(1)
    };
    let (mut grants, account) = purse(7, [pending]);
    let (voided, taken) = grants.void(id(1)).unwrap();
    assert_eq!(
        (taken, voided.remaining),
        (Amount::ZERO, Amount::ZERO),
        "it was in no sum"
    );
    assert_eq!(
        grants.open().at(account, day(9)),
        (Grants::default(), account)
    );
}

#[test]
fn payments_go_back_from_the_pool_and_then_from_what_is_used_last() {
    let (mut grants, account) = purse(30, [paid(1, 5), paid(2, 9), until(3, 20)]);
    assert_eq!(grants.paid_free(account), picos(230));
    assert_eq!(
        grants.clone().take_paid(account, picos(30)),
        [],
        "the pool alone"
    );
    let parts = grants.take_paid(account, picos(180));
    assert_eq!(parts, [of_pool(30), part(2, 100), part(1, 50)]);
    assert_eq!(grants.get(id(2)).unwrap().status, GrantStatus::Exhausted);
    assert_eq!(grants.get(id(3)).unwrap().remaining, picos(100));
}

#[test]
fn refunds_give_back_what_was_taken_last() {
    let parts = [part(1, -40), of_pool(-30), part(2, -30)];
    let back = |before, amount| refunded_parts(picos(100), &parts, picos(before), picos(amount));
    assert_eq!(back(0, 30), [part(2, 30)]);
    assert_eq!(back(0, 100), [part(2, 30), of_pool(30), part(1, 40)]);
    assert_eq!(back(10, 40), [part(2, 20), of_pool(20)]);
    assert_eq!(back(60, 40), [part(1, 40)]);
    assert_eq!(
        refunded_parts(picos(100), &[], picos(90), picos(10)),
        [of_pool(10)]
    );
    let is_open = |status, end: i64| {
        let grant = Grant {
            status,
            ..until(1, end)
        };
        grant.can_take_back(day(0))
    };
    assert!(is_open(GrantStatus::Active, 1) && is_open(GrantStatus::Exhausted, 1));
    assert!(!is_open(GrantStatus::Exhausted, 0), "it has ended unseen");
    assert!(!is_open(GrantStatus::Expired, 1) && !is_open(GrantStatus::Voided, 1));
}

#[test]
fn there_are_at_most_32_that_live() {
    let all = |count: u64| Grants::of((1..=count).map(grant).collect());
    assert!(all(31).check_room().is_ok());
    assert!(matches!(all(32).check_room(), Err(Refusal::NotApplicable(why)) if why.contains("32")));
    let mut full = all(32);
    full.put(Grant {
        held: picos(1),
        status: GrantStatus::Expired,
        ..grant(1)
    });
    assert!(full.check_room().is_ok(), "one of them has ended");
}

#[test]
fn what_makes_no_grant_is_refused() {
    let good = NewGrant {
        id: id(1),
        customer: CustomerId::from_random(1),
        kind: GrantKind::Promotional,
        amount: picos(100),
        priority: 100,
        effective_at: None,
        expires_at: Some(day(1)),
        models: None,
        reference: "school 2026".to_owned(),
        act: Act {
            operation: OperationId::from_bytes([1; 16]),
            actor: "ada".to_owned(),
            at: day(0),
        },
    };
    good.check()
        .and_then(|()| good.check_times(day(0)))
        .unwrap();
    // By the ledger's clock, whatever the caller's is.
    assert!(good.check_times(day(1)).is_err());
    let refused = |change: fn(&mut NewGrant)| {
        let mut new = good.clone();
        change(&mut new);
        let checked = new.check().and_then(|()| new.check_times(day(0)));
        checked.unwrap_err().to_string()
    };
    let amount = "a grant is more than zero and at most";
    assert!(refused(|new| new.amount = Amount::ZERO).contains(amount));
    assert!(refused(|new| new.amount = picos(-1)).contains(amount));
    assert!(
        refused(|new| new.amount = picos(Amount::MAX_TOP_UP.picos() + 1)).contains(amount),
        "no more than a payment"
    );
    assert!(refused(|new| new.priority = 101).contains("between 0 and 100"));
    assert!(refused(|new| new.effective_at = Some(day(2))).contains("must end after it begins"));
    assert!(refused(|new| new.effective_at = Some(day(1))).contains("must end after it begins"));
    let over = refused(|new| (new.effective_at, new.expires_at) = (Some(day(-2)), Some(day(-1))));
    assert!(over.contains("is over"), "{over}");
    let without_end = refused(|new| (new.kind, new.expires_at) = (GrantKind::Paid, None));
    assert!(without_end.contains("top-up"), "{without_end}");
    assert!(refused(|new| new.models = Some(vec![])).contains("at least one model"));
    assert!(refused(|new| new.reference = String::new()).contains("reference"));
}

#[test]
fn the_same_facts_under_the_same_name_are_the_same_grant() {
    let new = NewGrant {
        id: id(1),
        customer: CustomerId::from_random(1),
        kind: GrantKind::Paid,
        amount: picos(100),
        priority: 3,
        effective_at: None,
        expires_at: Some(day(9)),
        models: Some(vec!["m".to_owned()]),
        reference: "School 2026".to_owned(),
        act: Act {
            operation: OperationId::from_bytes([1; 16]),
            actor: "ada".to_owned(),
            at: day(0),
        },
    };
    let known = GrantRecord {
        grant: Grant {
            remaining: picos(1),
            ..new.grant(day(1))
        },
        reference: GrantName(Some(reference::normal(&new.reference))),
        created_at: day(1),
        created_by: "ada".to_owned(),
    };
    assert!(new.repeats(&known));
    let differs = |change: fn(&mut NewGrant)| {
        let mut other = new.clone();
        change(&mut other);
        !other.repeats(&known)
    };
    assert!(
        !differs(|new| new.id = id(2)),
        "whoever repeats may choose another id"
    );
    assert!(!differs(|new| new.reference = "sCHOOL 2026".to_owned()));
    assert!(differs(|new| new.amount = picos(101)));
    assert!(differs(|new| new.priority = 4));
    assert!(differs(|new| new.kind = GrantKind::Promotional));
    assert!(differs(|new| new.expires_at = Some(day(8))));
    assert!(differs(|new| new.effective_at = Some(day(2))));
    assert!(differs(|new| new.models = None));
    assert!(differs(|new| new.customer = CustomerId::from_random(2)));
    assert!(differs(|new| new.reference = "another".to_owned()));
}
