//! Tokens of the admin API: roles, daily bounds, and requests that are made once.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::plans::{changed, coder, purchase, sale, subscription};
use super::refused;

const SHOP: u8 = 1;
const OTHER: u8 = 2;

/// Two tokens that sell, of ten dollars a day each, one that reads, and one that manages.
async fn tokens(ledger: &dyn Ledger) {
    for (number, role, daily) in [
        (SHOP, TokenRole::Sell, Some("10")),
        (OTHER, TokenRole::Sell, Some("10")),
        (3, TokenRole::Read, None),
        (4, TokenRole::Manage, None),
    ] {
        let new = new_token(number, 900 + u64::from(number), role, daily);
        ledger.perform(new).await.unwrap();
    }
}

fn customer(number: u64) -> CustomerId {
    CustomerId::from_random(number)
}

/// The customer with its first key.
fn enrol(number: u64, operation: u64) -> Operation {
    let mut first = new_key(number, operation + 1, None);
    first.within.customer = Some(customer(number));
    Enrolment {
        customer: new_customer(number, operation),
        key: first,
    }
    .into()
}

fn pay(number: u64, operation: u64, dollars: &str, reference: &str) -> Operation {
    Operation::Pay(Box::new(new_payment(number, operation, dollars, reference)))
}

async fn balance(ledger: &dyn Ledger, number: u64) -> Amount {
    let found = ledger.find_customer(customer(number)).await.unwrap();
    found.unwrap().account.balance()
}

async fn not_allowed(ledger: &dyn Ledger, token: u8, operation: Operation) {
    let what = format!("{operation:?}");
    let refusal = refused(ledger.ask(asked(token, 400, operation)).await);
    assert!(
        matches!(refusal, Refusal::NotAllowed(_)),
        "{what}: {refusal}"
    );
}

pub(crate) async fn tokens_are_made_found_and_revoked(ledger: SharedLedger) {
    tokens(&*ledger).await;
    let again = new_token(SHOP, 901, TokenRole::Sell, Some("10"));
    let made = ledger.perform(again).await.unwrap();
    assert_eq!(made.label, "shop 1");
    let twin = NewToken {
        label: "shop 1".to_owned(),
        ..new_token(9, 950, TokenRole::Read, None)
    };
    let twin = refused(ledger.perform(twin).await);
    assert!(matches!(twin, Refusal::NotApplicable(_)), "{twin}");
    let unbounded = new_token(9, 951, TokenRole::Sell, None);
    refused(ledger.perform(unbounded).await);
    let found = ledger.find_token(secret(SHOP)).await.unwrap();
    assert_eq!(found, Some(made.clone()));
    assert_eq!(ledger.find_token(secret(77)).await.unwrap(), None);
    ledger
        .perform(RevokeToken {
            token: made.id,
            act: act(952, 100),
        })
        .await
        .unwrap();
    let again = ledger
        .perform(RevokeToken {
            token: made.id,
            act: act(952, 100),
        })
        .await
        .unwrap();
    assert!(again.is_revoked);
    let stopped = refused(ledger.ask(asked(SHOP, 400, enrol(1, 10))).await);
    assert_eq!(stopped, Refusal::TokenStopped(TokenStatus::Revoked));
    let unknown = refused(
        ledger
            .perform(RevokeToken {
                token: TokenId::from_random(99),
                act: act(953, 1),
            })
            .await,
    );
    assert!(matches!(unknown, Refusal::NoSuchToken(_)));
    let all = ledger.all::<Token>().await.unwrap();
    assert_eq!(all.iter().filter(|token| !token.is_revoked).count(), 3);
    let acts = ledger.house_acts().await.unwrap();
    let last = acts.last().unwrap();
    assert_eq!(
        (last.seq, &*last.act, last.of),
        (5, "revoke_token", HouseSubject::Token(made.id))
    );
    assert!(
        acts.iter()
            .all(|act| !act.details.contains(&"01".repeat(32)))
    );
    let expired = NewToken {
        expires_at: Some(at(300)),
        ..new_token(5, 960, TokenRole::Manage, None)
    };
    ledger.perform(expired).await.unwrap();
    let stopped = refused(ledger.ask(asked(5, 300, enrol(1, 10))).await);
    assert_eq!(stopped, Refusal::TokenStopped(TokenStatus::Expired));
    ledger.ask(asked(5, 299, enrol(1, 10))).await.unwrap();
    // No token makes tokens, and none does what only the gateway does.
    let new = new_token(6, 970, TokenRole::Read, None);
    not_allowed(&*ledger, 4, Operation::CreateToken(Box::new(new))).await;
    not_allowed(&*ledger, 4, CloseSessions(key(1)).into()).await;
    sound(&*ledger).await;
}

pub(crate) async fn a_shop_does_its_own_business_and_no_other(ledger: SharedLedger) {
    tokens(&*ledger).await;
    ledger.ask(asked(SHOP, 400, enrol(1, 10))).await.unwrap();
    ledger.ask(asked(OTHER, 400, enrol(2, 20))).await.unwrap();
    let first = ledger.find_key(key(1)).await.unwrap().unwrap();
    let shop = TokenId::from_random(SHOP.into());
    assert_eq!(
        (first.token, first.customer.token),
        (Some(shop), Some(shop))
    );
    let selling = ledger.find_token(secret(SHOP)).await.unwrap().unwrap();
    let foreign = ledger.find_customer(customer(2)).await.unwrap().unwrap();
    assert!(selling.may_read(&first.customer) && !selling.may_read(&foreign));
    // Any active customer can be topped up.
    ledger
        .ask(asked(SHOP, 400, pay(2, 30, "2", "pi-2")))
        .await
        .unwrap();
    ledger
        .ask(asked(SHOP, 400, pay(1, 31, "3", "pi-1")))
        .await
        .unwrap();
    assert_eq!(balance(&*ledger, 2).await, usd("2"));
    // It reverses what it booked, and nothing else.
    let back =
        |payment, operation| Operation::Reverse(Box::new(refund_of(payment, operation, "1")));
    ledger
        .ask(asked(SHOP, 400, back("pi-2", 40)))
        .await
        .unwrap();
    not_allowed(&*ledger, OTHER, back("pi-1", 41)).await;
    ledger.perform(top_up(1, 42, "1", "typed")).await.unwrap();
    not_allowed(&*ledger, SHOP, back("typed", 43)).await;
    let early = refused(ledger.ask(asked(SHOP, 400, back("pi-9", 44))).await);
    assert!(matches!(early, Refusal::NoSuchPayment(_)));
    ledger.ask(asked(4, 400, back("typed", 45))).await.unwrap();
    // A second key, another one's customer, settings, blocks, moves and readers' writes are refused.
    let mut second = new_key(5, 50, None);
    second.within.customer = Some(customer(1));
    not_allowed(&*ledger, SHOP, Operation::Create(Box::new(second))).await;
    not_allowed(
        &*ledger,
        SHOP,
        Operation::Create(Box::new(new_key(6, 51, None))),
    )
    .await;
    for change in [
        Change::Block,
        Change::Edit(KeyEdit::default()),
        Change::Rotate {
            secret: secret(8),
            old_until: None,
        },
    ] {
        let change = KeyChange {
            key: key(1),
            change,
            act: act(52, 400),
        };
        not_allowed(&*ledger, SHOP, Operation::Change(Box::new(change))).await;
    }
    let suspend = CustomerChange {
        customer: customer(1),
        change: CustomerAct::Suspend,
        act: act(53, 400),
    };
    let suspend = Operation::ChangeCustomer(Box::new(suspend));
    not_allowed(&*ledger, SHOP, suspend.clone()).await;
    not_allowed(&*ledger, 3, suspend.clone()).await;
    // Suspended, it takes no more of the shop's money, which is kept.
    ledger.ask(asked(4, 400, suspend)).await.unwrap();
    let plain = Credit {
        to: customer(1).into(),
        ..top_up(1, 54, "1", "cash")
    };
    let stopped = refused(
        ledger
            .ask(asked(SHOP, 400, Operation::Credit(Box::new(plain))))
            .await,
    );
    assert_eq!(stopped, Refusal::CustomerStopped(CustomerStatus::Suspended));
    ledger
        .ask(asked(SHOP, 400, pay(1, 55, "1", "pi-3")))
        .await
        .unwrap();
    let kept = ledger.unapplied().await.unwrap();
    assert!(kept.len() == 1 && kept[0].token == Some(shop));
    sound(&*ledger).await;
}

pub(crate) async fn a_token_sells_plans_and_ends_what_it_sold(ledger: SharedLedger) {
    tokens(&*ledger).await;
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let large = sale(20, purchase(1, 1, coder()));
    // A period counts with its allowance.
    let kept = ledger
        .ask(asked(SHOP, 400, Operation::Pay(Box::new(large))))
        .await
        .unwrap();
    assert!(format!("{kept:?}").contains("Unapplied"));
    let small = PlanTerms {
        allowance: usd("8"),
        carry: usd("0"),
        ..coder()
    };
    let sold = sale(21, purchase(1, 1, small));
    ledger
        .ask(asked(SHOP, 400, Operation::Pay(Box::new(sold))))
        .await
        .unwrap();
    let end = |operation| Operation::ChangePlan(Box::new(changed(1, operation, PlanAct::End)));
    not_allowed(&*ledger, OTHER, end(30)).await;
    let paused = changed(1, 31, PlanAct::Pause);
    not_allowed(&*ledger, SHOP, Operation::ChangePlan(Box::new(paused))).await;
    ledger.ask(asked(SHOP, 400, end(32))).await.unwrap();
    assert_eq!(
        subscription(&*ledger, 1).await.state.status,
        SubscriptionStatus::Ended
    );
}

pub(crate) async fn a_first_key_comes_with_its_customer_or_later(ledger: SharedLedger) {
    tokens(&*ledger).await;
    // With the payment, and the key when the buyer asks for it.
    let first = |number, operation: u64, reference: &str| {
        let payment = new_payment(number, operation + 1, "3", reference);
        Operation::from(FirstPayment {
            customer: new_customer(number, operation),
            payment,
        })
    };
    ledger
        .ask(asked(SHOP, 400, first(1, 10, "pi-1")))
        .await
        .unwrap();
    let again = ledger
        .ask(asked(SHOP, 400, first(2, 20, "PI-1")))
        .await
        .unwrap();
    let Some(Outcome::Payment(again)) = again.outcome else {
        panic!("{again:?}")
    };
    assert_eq!((again.repeated, again.customer.id), (true, customer(1)));
    assert_eq!(ledger.find_customer(customer(2)).await.unwrap(), None);
    assert_eq!(balance(&*ledger, 1).await, usd("3"));
    let mut new = new_key(1, 30, None);
    new.within.customer = Some(customer(1));
    let create = Operation::Create(Box::new(new.clone()));
    not_allowed(&*ledger, OTHER, create.clone()).await;
    ledger.ask(asked(SHOP, 400, create)).await.unwrap();
    new.act = act(31, 400);
    let taken = ledger
        .ask(asked(SHOP, 400, Operation::Create(Box::new(new))))
        .await;
    refused(taken);
    // Its secret can be replaced until a request has used it.
    let reissue = |operation, number| {
        let change = Change::Reissue {
            secret: secret(number),
        };
        Operation::Change(Box::new(KeyChange {
            key: key(1),
            change,
            act: act(operation, 400),
        }))
    };
    not_allowed(&*ledger, OTHER, reissue(40, 50)).await;
    ledger.ask(asked(SHOP, 400, reissue(41, 51))).await.unwrap();
    let found = ledger.find_key(key(1)).await.unwrap().unwrap();
    assert_eq!((found.own.secret, found.own.old_secret), (secret(51), None));
    ledger.perform(new_hold(1, 60, "1")).await.unwrap();
    let used = refused(ledger.ask(asked(SHOP, 400, reissue(42, 52))).await);
    assert!(matches!(used, Refusal::NotApplicable(_)), "{used}");
    ledger.perform(Arc::new(finish(60, 10))).await.unwrap();
    let used = refused(ledger.ask(asked(4, 400, reissue(43, 52))).await);
    assert!(matches!(used, Refusal::NotApplicable(_)), "{used}");
    // Neither is made if one cannot be.
    let mut broken = new_key(7, 71, None);
    broken.settings.label = "x".repeat(300);
    broken.within.customer = Some(customer(7));
    let both = Enrolment {
        customer: new_customer(7, 70),
        key: broken,
    }
    .into();
    refused(ledger.ask(asked(SHOP, 400, both)).await);
    assert_eq!(ledger.find_customer(customer(7)).await.unwrap(), None);
    sound(&*ledger).await;
}

pub(crate) async fn a_token_credits_no_more_than_its_daily_bound(ledger: SharedLedger) {
    use ReversalKind::{Dispute, DisputeWon};
    tokens(&*ledger).await;
    ledger.ask(asked(SHOP, 400, enrol(1, 10))).await.unwrap();
    ledger
        .ask(asked(SHOP, 400, pay(1, 20, "6", "pi-1")))
        .await
        .unwrap();
    ledger
        .ask(asked(SHOP, 400, pay(1, 21, "6", "pi-1")))
        .await
        .unwrap();
    let back = |operation, kind, cumulative: &str| {
        Operation::Reverse(Box::new(NewReversal {
            kind,
            ..refund_of("pi-1", operation, cumulative)
        }))
    };
    ledger
        .ask(asked(SHOP, 400, back(30, Dispute, "6")))
        .await
        .unwrap();
    ledger
        .ask(asked(SHOP, 400, back(31, DisputeWon, "3")))
        .await
        .unwrap();
    let today = UtcDay::of(clock::now());
    let sold = async || {
        let days = ledger.token_days(TokenToday::since(today)).await.unwrap();
        TokenToday::of(TokenId::from_random(SHOP.into()), today, &days)
    };
    assert_eq!(sold().await.day.booked, usd("9"));
    let shop = ledger.find_token(secret(SHOP)).await.unwrap().unwrap();
    let near = sold().await.nearly_reached(&shop);
    assert_eq!(near, Some(DailyBound::Credit));
    let more = ledger.ask(asked(SHOP, 400, back(32, DisputeWon, "6")));
    let Some(Outcome::Payment(more)) = more.await.unwrap().outcome else {
        panic!("no payment")
    };
    assert_eq!((more.entry, more.payment.waiting.len()), (None, 1));
    assert_eq!(balance(&*ledger, 1).await, usd("3"));
    let plain = Credit {
        to: customer(1).into(),
        ..top_up(1, 33, "1.5", "cash")
    };
    let more = ledger
        .ask(asked(SHOP, 400, Operation::Credit(Box::new(plain))))
        .await;
    assert!(matches!(refused(more), Refusal::DailyReached(_)));
    // A payment that came is kept, and does not count.
    ledger
        .ask(asked(SHOP, 400, pay(1, 34, "1.5", "pi-2")))
        .await
        .unwrap();
    let kept = ledger.payment("pi-2").await.unwrap();
    let kept = kept.into_iter().collect::<Vec<_>>();
    assert!(
        matches!(&kept[0].status, PaymentStatus::Unapplied { why } if why.contains("10.00 USD a day")),
        "{kept:?}"
    );
    ledger
        .ask(asked(SHOP, 400, pay(1, 35, "1", "pi-3")))
        .await
        .unwrap();
    assert_eq!(sold().await.day.booked, usd("10"));
    assert_eq!(balance(&*ledger, 1).await, usd("4"));
    // Who needs no token has no bound.
    ledger.perform(top_up(1, 36, "100", "typed")).await.unwrap();
    sound(&*ledger).await;
}

pub(crate) async fn a_request_with_a_key_is_made_once(ledger: SharedLedger) {
    tokens(&*ledger).await;
    ledger.ask(asked(SHOP, 400, enrol(1, 10))).await.unwrap();
    let day = 86_400;
    let ask = async |token, seconds, key: &str, body: &str, operation| {
        let operation = pay(1, operation, "1", &format!("pi-{operation}"));
        ledger
            .ask(once(asked(token, seconds, operation), key, body))
            .await
    };
    let first = ask(SHOP, 400, "a", "body", 20).await.unwrap();
    assert!(!first.is_replay());
    // Another operation of the same request, as a retrying client makes it: the first answer.
    let again = ask(SHOP, 500, "a", "body", 21).await.unwrap();
    assert!(again.is_replay());
    assert_eq!(again.answer, first.answer);
    assert_eq!(balance(&*ledger, 1).await, usd("1"));
    // The very same operation, as the ledger repeats it after a commit without an answer: no replay.
    let same = ask(SHOP, 500, "a", "body", 20).await.unwrap();
    assert!(!same.is_replay());
    let other = refused(ask(SHOP, 500, "a", "another", 22).await);
    assert_eq!(other, Refusal::KeyOfOtherBody);
    // Another key, another token: other requests.
    assert!(!ask(SHOP, 500, "b", "body", 23).await.unwrap().is_replay());
    assert!(!ask(OTHER, 500, "a", "body", 24).await.unwrap().is_replay());
    assert_eq!(balance(&*ledger, 1).await, usd("3"));
    // A refusal is no answer.
    let broken = || pay(1, 25, "0", "pi-25");
    refused(
        ledger
            .ask(once(asked(SHOP, 500, broken()), "c", "body"))
            .await,
    );
    assert!(!ask(SHOP, 500, "c", "body", 26).await.unwrap().is_replay());
    // A day later it is forgotten; the reference is not.
    assert!(
        ask(SHOP, 399 + day, "a", "body", 27)
            .await
            .unwrap()
            .is_replay()
    );
    assert!(
        !ask(SHOP, 400 + day, "a", "other", 28)
            .await
            .unwrap()
            .is_replay()
    );
    let known = ledger.ask(once(
        asked(SHOP, 400 + day, pay(1, 29, "1", "PI-20")),
        "d",
        "",
    ));
    let Some(Outcome::Payment(known)) = known.await.unwrap().outcome else {
        panic!("no payment")
    };
    assert!(known.repeated);
    assert_eq!(balance(&*ledger, 1).await, usd("5"));
    sound(&*ledger).await;
}

/// Money changes nothing that an edit is about; every other act does, but for one on another key of the customer.
pub(crate) async fn an_edit_of_what_was_changed_is_refused(ledger: SharedLedger) {
    tokens(&*ledger).await;
    ledger.ask(asked(4, 400, enrol(1, 10))).await.unwrap();
    let of = Scope::Customer(customer(1));
    assert_eq!(ledger.last_act(Scope::Key(key(9))).await.unwrap(), 0);
    let read = ledger.last_act(of).await.unwrap();
    let of_key = ledger.last_act(key(1).into()).await.unwrap();
    assert!(read > 0 && of_key > read);
    ledger
        .ask(asked(4, 400, pay(1, 20, "5", "pi-1")))
        .await
        .unwrap();
    ledger.perform(top_up(1, 21, "1", "typed")).await.unwrap();
    let block = change(1, 22, Change::Block);
    ledger.perform(block).await.unwrap();
    assert_eq!(ledger.last_act(of).await.unwrap(), read);
    let edit = async |operation, label: &str, position| {
        let edit = CustomerEdit {
            label: Some(label.to_owned()),
            ..CustomerEdit::default()
        };
        let change = CustomerChange {
            customer: customer(1),
            change: CustomerAct::Edit(edit),
            act: act(operation, 400),
        };
        let edit = Operation::ChangeCustomer(Box::new(change));
        let expected = Some(ExpectedAct { of, position });
        let asked = Asked {
            expected,
            ..asked(4, 400, edit)
        };
        ledger.ask(asked).await
    };
    edit(30, "first", read).await.unwrap();
    let last = ledger.last_act(of).await.unwrap();
    let refusal = refused(edit(31, "second", read).await);
    let expected = read;
    assert_eq!(refusal, Refusal::ChangedSince { of, last, expected });
    // The very same operation again, as the ledger repeats it after a commit without an answer.
    edit(30, "first", read).await.unwrap();
    edit(32, "third", last).await.unwrap();
    let found = ledger.find_customer(customer(1)).await.unwrap().unwrap();
    assert_eq!(found.settings.label, "third");
    // Of a key: what was read before it was blocked.
    let unblock = Operation::Change(Box::new(change(1, 33, Change::Unblock)));
    let expected = ExpectedAct {
        of: key(1).into(),
        position: of_key,
    };
    let stale = Asked {
        expected: Some(expected),
        ..asked(4, 400, unblock)
    };
    assert!(matches!(
        refused(ledger.ask(stale).await),
        Refusal::ChangedSince { .. }
    ));
    sound(&*ledger).await;
}

/// In every spelling; of a move both sides, the giver first.
pub(crate) async fn references_find_their_entries(ledger: SharedLedger) {
    for number in [1, 2] {
        let new = new_key(number, 10 + number, Some("5"));
        ledger.perform(new).await.unwrap();
    }
    let typed = top_up(1, 20, "1", "Invoice-7");
    let booked = ledger.perform(typed).await.unwrap().entry;
    for spelling in ["Invoice-7", "invoice-7", "INVOICE-7"] {
        let found = search::with_reference(&*ledger, spelling).await.unwrap();
        assert_eq!(found, std::slice::from_ref(&booked), "{spelling}");
    }
    let moved = NewMove {
        from: CustomerId::made_for(key(1)),
        into: CustomerId::made_for(key(2)),
        amount: usd("2"),
        reference: "one purse".to_owned(),
        act: act(21, 200),
    };
    ledger.perform(moved).await.unwrap();
    let found = search::with_reference(&*ledger, "ONE PURSE").await.unwrap();
    let sides: Vec<_> = found.iter().map(|entry| entry.amount).collect();
    assert_eq!(sides, [usd("-2"), usd("2")]);
    for unknown in ["nothing", "", "\0"] {
        let found = ledger.entry_by_reference(unknown).await.unwrap();
        assert_eq!(found, None, "{unknown:?}");
    }
}
