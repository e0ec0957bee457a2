//! Who acts with a customer's key: judged in the transaction of the effect, whatever was looked at before.

use farebox_ledger::*;

use super::common::*;
use super::refused;

/// An owner, and a member of the same customer; the seller's cap of ten dollars a day on both.
pub(super) const OWNER: u64 = 1;
const MEMBER: u64 = 2;
/// A key of another customer.
const STRANGER: u64 = 3;

fn own() -> CustomerId {
    CustomerId::made_for(key(OWNER))
}

fn cap(limit: &str) -> Cap {
    Cap {
        interval: CapInterval::Day,
        model: None,
        limit: usd(limit),
    }
}

async fn people(ledger: &dyn Ledger) {
    let mut owner = new_key(OWNER, 10, Some("20"));
    owner.within.is_owner = true;
    ledger.perform(owner).await.unwrap();
    let mut member = new_key(MEMBER, 11, None);
    member.within.customer = Some(own());
    ledger.perform(member).await.unwrap();
    let stranger = new_key(STRANGER, 12, Some("20"));
    ledger.perform(stranger).await.unwrap();
    for (operation, of) in [(13, Scope::Key(key(MEMBER))), (14, Scope::Customer(own()))] {
        set_cap(ledger, of, cap("10"), operation).await;
    }
    ledger.perform(new_lot(1, 15, 9)).await.unwrap();
}

async fn set_cap(ledger: &dyn Ledger, of: Scope, cap: Cap, operation: u64) {
    match of {
        Scope::Key(_) => {
            let set = change(MEMBER, operation, Change::SetCap(cap));
            ledger.perform(set).await.unwrap();
        }
        Scope::Customer(customer) => {
            let change = CustomerChange {
                customer,
                change: CustomerAct::SetCap(cap),
                act: act(operation, 200),
            };
            ledger.perform(change).await.unwrap();
        }
    }
}

fn of_customer(change: CustomerAct, operation: u64) -> Operation {
    Operation::ChangeCustomer(Box::new(CustomerChange {
        customer: own(),
        change,
        act: act(operation, 400),
    }))
}

fn of_key(number: u64, what: Change, operation: u64) -> Operation {
    Operation::Change(Box::new(change(number, operation, what)))
}

fn rotate() -> Change {
    Change::Rotate {
        secret: secret(9),
        old_until: None,
    }
}

fn new_member(number: u64, operation: u64) -> Operation {
    let mut new = new_key(number, operation, None);
    new.within = Membership {
        customer: Some(own()),
        is_owner: false,
        made_by: Some(key(OWNER)),
    };
    Operation::Create(Box::new(new))
}

fn low_balance(label: Option<&str>) -> CustomerAct {
    CustomerAct::Edit(CustomerEdit {
        label: label.map(str::to_owned),
        low_balance: Said::Set(usd("3")),
        ..CustomerEdit::default()
    })
}

pub(super) fn by_owner(operation: Operation) -> Asked {
    Asked {
        by: Asker::Owner(key(OWNER)),
        at: at(400),
        once: None,
        expected: None,
        operation,
    }
}

/// Everything that a holder of the owner key can do, under operations from `first` on. Each returns whether it was done.
async fn acts(ledger: &dyn Ledger, first: u64) -> Vec<(&'static str, bool)> {
    let mut done = Vec::new();
    let clear = || CustomerAct::ClearCap {
        interval: CapInterval::Day,
        model: None,
    };
    let clear_of_key = Change::ClearCap {
        interval: CapInterval::Day,
        model: None,
    };
    for (what, operation) in [
        ("make", new_member(100 + first, first)),
        ("block", of_key(MEMBER, Change::Block, first + 1)),
        ("unblock", of_key(MEMBER, Change::Unblock, first + 2)),
        ("rotate", of_key(MEMBER, rotate(), first + 3)),
        (
            "cap of a key",
            of_key(MEMBER, Change::SetCap(cap("5")), first + 4),
        ),
        ("clear it", of_key(MEMBER, clear_of_key, first + 5)),
        (
            "cap of all",
            of_customer(CustomerAct::SetCap(cap("6")), first + 6),
        ),
        ("clear that", of_customer(clear(), first + 7)),
        ("low balance", of_customer(low_balance(None), first + 8)),
    ] {
        done.push((what, ledger.ask(by_owner(operation)).await.is_ok()));
    }
    let code = 200 + u8::try_from(first / 100).unwrap();
    let voucher = ledger.perform(redemption(code, OWNER, first + 20)).await;
    done.push(("voucher", voucher.is_ok()));
    let hold = ledger.perform(new_hold(OWNER, first + 21, "0.5")).await;
    done.push(("request", hold.is_ok()));
    let link = secret(u8::try_from(first / 100).unwrap());
    let made = ledger.perform(NewLink {
        key: key(OWNER),
        token: link,
        expires: at(900),
        act: act(first + 22, 400),
    });
    done.push(("link", made.await.is_ok()));
    done
}

/// What an act would move.
async fn everything(ledger: &dyn Ledger) -> String {
    let totals = ledger.totals().await.unwrap();
    let acts = ledger.audit(None, None, 999).await.unwrap();
    let mut keys = Vec::new();
    for number in [OWNER, MEMBER] {
        keys.push(ledger.find_key(key(number)).await.unwrap());
    }
    format!("{totals:?} {} {keys:?}", acts.len())
}

/// How a key or its customer is stopped, what takes that back, and whether its sessions still show its history.
fn stops() -> Vec<(&'static str, Operation, Option<Operation>, bool)> {
    let expired = |end: Option<i64>| {
        Change::Edit(KeyEdit {
            expires_at: end.map(at).into(),
            ..KeyEdit::default()
        })
    };
    let key = |what, operation| of_key(OWNER, what, operation);
    vec![
        (
            "blocked",
            key(Change::Block, 50),
            Some(key(Change::Unblock, 51)),
            false,
        ),
        (
            "expired",
            key(expired(Some(399)), 52),
            Some(key(expired(None), 53)),
            true,
        ),
        (
            "suspended",
            of_customer(CustomerAct::Suspend, 54),
            Some(of_customer(CustomerAct::Resume, 55)),
            true,
        ),
        ("revoked", key(Change::Revoke, 56), None, false),
    ]
}

pub(crate) async fn nothing_moves_but_for_who_is_active(ledger: SharedLedger) {
    people(&*ledger).await;
    let session = |number: u8| Session {
        token: secret(number),
        key: key(OWNER),
        at: at(500),
        expires: at(600),
    };
    let all = acts(&*ledger, 100).await;
    assert!(all.iter().all(|(_, done)| *done), "{all:?}");
    let mut first = 200;
    for (name, stop, back, looks) in stops() {
        let number = u8::try_from(first / 100).unwrap() + 100;
        ledger.perform(session(number)).await.unwrap();
        let link = secret(number + 50);
        let made = ledger.perform(NewLink {
            key: key(OWNER),
            token: link,
            expires: at(900),
            act: act(first + 90, 400),
        });
        made.await.unwrap();
        ledger.apply(stop).await.unwrap();
        let before = everything(&*ledger).await;
        let all = acts(&*ledger, first).await;
        assert!(all.iter().all(|(_, done)| !done), "{name}: {all:?}");
        assert_eq!(everything(&*ledger).await, before, "{name}");
        let signed_in = ledger.find_session(secret(number), at(550)).await.unwrap();
        assert_eq!(signed_in.is_some(), looks, "{name}");
        let again = ledger.perform(session(number + 20)).await;
        assert_eq!(again.is_ok(), looks, "{name}");
        let entered = ledger.consume_link(link, at(500)).await.unwrap();
        assert_eq!(entered, None, "{name}");
        let Some(back) = back else { continue };
        ledger.apply(back).await.unwrap();
        first += 100;
        let all = acts(&*ledger, first).await;
        assert!(all.iter().all(|(_, done)| *done), "{name} no more: {all:?}");
        first += 100;
    }
    sound(&*ledger).await;
}

pub(crate) async fn a_closed_customer_looks_and_does_nothing(ledger: SharedLedger) {
    let mut owner = new_key(OWNER, 10, None);
    owner.within.is_owner = true;
    ledger.perform(owner).await.unwrap();
    let mut member = new_key(MEMBER, 11, None);
    member.within.customer = Some(own());
    ledger.perform(member).await.unwrap();
    ledger.perform(new_lot(1, 15, 9)).await.unwrap();
    let session = Session {
        token: secret(100),
        key: key(OWNER),
        at: at(500),
        expires: at(600),
    };
    ledger.perform(session).await.unwrap();
    ledger
        .apply(of_customer(CustomerAct::Close, 50))
        .await
        .unwrap();
    let before = everything(&*ledger).await;
    let all = acts(&*ledger, 100).await;
    assert!(all.iter().all(|(_, done)| !done), "{all:?}");
    assert_eq!(everything(&*ledger).await, before);
    let signed_in = ledger.find_session(secret(100), at(550)).await.unwrap();
    assert_eq!(signed_in, Some(key(OWNER)));
    sound(&*ledger).await;
}

pub(crate) async fn an_owner_manages_its_own_customer_and_nothing_else(ledger: SharedLedger) {
    people(&*ledger).await;
    let not_allowed = [
        of_key(OWNER, Change::Block, 100),
        of_key(MEMBER, Change::Revoke, 101),
        of_key(MEMBER, Change::Reissue { secret: secret(9) }, 102),
        of_key(MEMBER, Change::Edit(KeyEdit::default()), 103),
        of_customer(low_balance(Some("another label")), 104),
        of_customer(CustomerAct::Suspend, 105),
        of_customer(CustomerAct::Resume, 106),
        of_customer(CustomerAct::Erase, 107),
        Operation::Credit(Box::new(top_up(OWNER, 108, "5", "free"))),
        Operation::CreateCustomer(Box::new(new_customer(9, 109))),
        Operation::CreateLot(Box::new(new_lot(2, 110, 3))),
        Operation::Create(Box::new(new_key(9, 111, None))),
    ];
    for operation in not_allowed {
        let what = format!("{operation:?}");
        let refusal = refused(ledger.ask(by_owner(operation)).await);
        assert!(
            matches!(refusal, Refusal::NotAllowed(_)),
            "{what}: {refusal}"
        );
    }
    let mut owner = new_key(9, 112, None);
    owner.within = Membership {
        customer: Some(own()),
        is_owner: true,
        made_by: Some(key(OWNER)),
    };
    let refusal = refused(
        ledger
            .ask(by_owner(Operation::Create(Box::new(owner))))
            .await,
    );
    assert!(matches!(refusal, Refusal::NotAllowed(_)), "{refusal}");
    let theirs = of_key(STRANGER, Change::Block, 113);
    let refusal = refused(ledger.ask(by_owner(theirs)).await);
    assert_eq!(refusal, Refusal::NoSuchKey(key(STRANGER)));
    // A member manages nothing.
    let asked = Asked {
        by: Asker::Owner(key(MEMBER)),
        ..by_owner(of_key(MEMBER, rotate(), 114))
    };
    let refusal = refused(ledger.ask(asked).await);
    assert!(matches!(refusal, Refusal::NotAllowed(_)), "{refusal}");
    // What was looked at is what is changed.
    let of = Scope::Key(key(MEMBER));
    let position = ledger.last_act(of).await.unwrap();
    ledger
        .perform(change(MEMBER, 115, Change::Block))
        .await
        .unwrap();
    let stale = Asked {
        expected: Some(ExpectedAct { of, position }),
        ..by_owner(of_key(MEMBER, Change::Unblock, 116))
    };
    let refusal = refused(ledger.ask(stale).await);
    assert!(matches!(refusal, Refusal::ChangedSince { .. }), "{refusal}");
    sound(&*ledger).await;
}

pub(crate) async fn caps_of_seller_and_owner_stand_beside_each_other(ledger: SharedLedger) {
    people(&*ledger).await;
    let all = Scope::Customer(own());
    let known = async || {
        let customer = ledger.find_customer(own()).await.unwrap().unwrap();
        let caps: Vec<_> = customer.caps.iter().cloned().collect();
        let of = |counted: &CountedCap| {
            let CapLimits { seller, owner } = counted.limits();
            (counted.cap.limit, counted.made_by, seller, owner)
        };
        caps.first().map(of)
    };
    let set = |limit: &str, operation| of_customer(CustomerAct::SetCap(cap(limit)), operation);
    let clear = |operation| {
        let (interval, model) = (CapInterval::Day, None);
        of_customer(CustomerAct::ClearCap { interval, model }, operation)
    };
    let above = refused(ledger.ask(by_owner(set("11", 100))).await);
    assert!(above.to_string().contains("10.00 USD per day"), "{above}");
    let cleared = refused(ledger.ask(by_owner(clear(101))).await);
    assert!(cleared.to_string().contains("only the seller"), "{cleared}");
    ledger.ask(by_owner(set("4", 102))).await.unwrap();
    let (ten, four) = (Some(usd("10")), Some(usd("4")));
    let stands = Some((usd("4"), CapMaker::Owner, ten, four));
    assert_eq!(known().await, stands);
    let full = refused(ledger.perform(new_hold(OWNER, 103, "4.1")).await);
    let Refusal::CapReached(reached) = full else {
        panic!("{full}")
    };
    assert_eq!((reached.made_by, reached.scope), (CapMaker::Owner, all));
    ledger.perform(new_hold(OWNER, 104, "4")).await.unwrap();
    // The seller lowers his below it, and lifts it: the owner's is still there.
    set_cap(&*ledger, all, cap("3"), 105).await;
    let stands = Some((usd("3"), CapMaker::Seller, Some(usd("3")), four));
    assert_eq!(known().await, stands);
    ledger.apply(clear(106)).await.unwrap();
    let stands = Some((usd("4"), CapMaker::Owner, None, four));
    assert_eq!(known().await, stands);
    set_cap(&*ledger, all, cap("8"), 107).await;
    ledger.ask(by_owner(clear(108))).await.unwrap();
    let stands = Some((usd("8"), CapMaker::Seller, Some(usd("8")), None));
    assert_eq!(known().await, stands);
    ledger.perform(new_hold(OWNER, 109, "4")).await.unwrap();
    refused(ledger.perform(new_hold(OWNER, 110, "0.1")).await);
    sound(&*ledger).await;
}

pub(crate) async fn a_key_that_was_used_is_not_reissued(ledger: SharedLedger) {
    let shop = new_token(1, 901, TokenRole::Sell, Some("50"));
    ledger.perform(shop).await.unwrap();
    for number in 1..=4 {
        let mut first = new_key(number, 11 + number * 10, None);
        first.within.customer = Some(CustomerId::made_for(key(number)));
        let enrol = Enrolment {
            customer: new_customer(number, 10 + number * 10),
            key: first,
        };
        ledger.ask(asked(1, 400, enrol.into())).await.unwrap();
    }
    let reissue = |number, operation| {
        let change = change(number, operation, Change::Reissue { secret: secret(9) });
        asked(1, 400, Operation::Change(Box::new(change)))
    };
    ledger.ask(reissue(1, 100)).await.unwrap();
    // A call, a session, or a request: each is a first use.
    ledger
        .perform(MarkUsed {
            key: key(1),
            now: at(500),
        })
        .await
        .unwrap();
    ledger
        .perform(MarkUsed {
            key: key(1),
            now: at(501),
        })
        .await
        .unwrap();
    let marked = ledger.find_key(key(1)).await.unwrap().unwrap();
    assert_eq!(marked.used_at, Some(at(500)));
    let session = Session {
        token: secret(40),
        key: key(2),
        at: at(500),
        expires: at(600),
    };
    ledger.perform(session).await.unwrap();
    for (number, operation) in [(1, 101), (2, 102)] {
        let refusal = refused(ledger.ask(reissue(number, operation)).await);
        assert!(refusal.to_string().contains("has been used"), "{refusal}");
    }
    // Nobody replaces the secret of a key that is stopped, or whose customer is.
    ledger.perform(change(3, 103, Change::Block)).await.unwrap();
    let refusal = refused(ledger.ask(reissue(3, 104)).await);
    assert_eq!(refusal, Refusal::NotActive(KeyStatus::Blocked));
    let suspend = CustomerChange {
        customer: CustomerId::made_for(key(4)),
        change: CustomerAct::Suspend,
        act: act(105, 400),
    };
    ledger.perform(suspend).await.unwrap();
    let refusal = refused(ledger.ask(reissue(4, 106)).await);
    assert_eq!(refusal, Refusal::CustomerStopped(CustomerStatus::Suspended));
    // Of a key that no token made nothing is noted.
    ledger.perform(new_key(9, 107, None)).await.unwrap();
    ledger
        .perform(MarkUsed {
            key: key(9),
            now: at(500),
        })
        .await
        .unwrap();
    let plain = ledger.find_key(key(9)).await.unwrap().unwrap();
    assert_eq!(plain.used_at, None);
    sound(&*ledger).await;
}
