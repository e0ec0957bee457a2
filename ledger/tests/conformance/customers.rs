//! Customers: their acts, several keys of one purse, caps of both, and moves.

use std::sync::Arc;

use super::*;
use farebox_ledger::{
    CustomerAct, CustomerChange, CustomerQuery, CustomerStatus, EntryQuery, NewCustomer, NewMove,
    NewPayment, Perform, PersonalData, Scope, TokenRole, UnappliedAct, UnappliedEnd,
};

pub(super) fn customer(number: u64) -> CustomerId {
    CustomerId::from_random(1_000 + number)
}

pub(super) fn new_customer(number: u64, operation: u64, external_id: Option<&str>) -> NewCustomer {
    let mut new = common::new_customer(number, operation);
    new.id = customer(number);
    new.settings.external_id = external_id.map(str::to_owned);
    new
}

/// A key of a customer.
pub(super) fn key_of(number: u64, of: u64, operation: u64) -> NewKey {
    let mut new = new_key(number, operation, None);
    new.within.customer = Some(customer(of));
    new
}

pub(super) fn hold_of(number: u64, of: u64, request: u64, usd: &str) -> NewHold {
    NewHold {
        customer: customer(of),
        ..new_hold(number, request, usd)
    }
}

pub(super) fn credit_of(of: u64, operation: u64, usd: &str, reference: &str) -> Credit {
    Credit {
        to: customer(of).into(),
        ..top_up(1, operation, usd, reference)
    }
}

async fn change(
    ledger: &SharedLedger,
    of: u64,
    operation: u64,
    change: CustomerAct,
) -> Result<farebox_ledger::Customer, LedgerError> {
    ledger
        .perform(CustomerChange {
            customer: customer(of),
            change,
            act: act(operation, 2),
        })
        .await
}

fn give(from: u64, into: u64, operation: u64, usd_of: &str, reference: &str) -> NewMove {
    NewMove {
        from: customer(from),
        into: customer(into),
        amount: usd(usd_of),
        reference: reference.to_owned(),
        act: act(operation, 3),
    }
}

/// Two keys spend one purse; each is charged for itself, and the books name both.
pub(crate) async fn several_keys_spend_one_purse(ledger: SharedLedger) {
    let made = ledger.perform(new_customer(1, 10, None)).await;
    assert_eq!(made.unwrap().status, CustomerStatus::Active);
    for (number, operation) in [(1, 11), (2, 12)] {
        let key = ledger.perform(key_of(number, 1, operation)).await;
        assert_eq!(key.unwrap().customer.id, customer(1));
    }
    let posted = ledger.perform(credit_of(1, 13, "5", "paid")).await.unwrap();
    assert_eq!((posted.entry.key, posted.key), (None, None));
    assert_eq!(posted.customer.account.credit, usd("5"));
    ledger.perform(hold_of(1, 1, 20, "3")).await.unwrap();
    let refusal = refused(ledger.perform(hold_of(2, 1, 21, "3")).await);
    assert!(matches!(refusal, Refusal::Insufficient { .. }), "{refusal}");
    ledger.perform(hold_of(2, 1, 22, "2")).await.unwrap();
    for of in [Scope::Key(key(2)), Scope::Customer(customer(1))] {
        let open = ledger.open_holds(Some(of), 9).await.unwrap();
        assert_eq!(open.len(), if of == key(2).into() { 1 } else { 2 });
    }
    for request in [20, 22] {
        ledger.perform(Arc::new(finish(request, 10))).await.unwrap();
    }
    let entries = ledger.entries(EntryQuery {
        customer: Some(customer(1)),
        ..EntryQuery::default()
    });
    let entries = entries.await.unwrap();
    let keys: Vec<_> = entries.iter().map(|entry| (entry.seq, entry.key)).collect();
    assert_eq!(
        keys,
        [(1, None), (2, Some(key(1))), (3, Some(key(2)))],
        "one chain"
    );
    let of_key = EntryQuery {
        key: Some(key(2)),
        ..EntryQuery::default()
    };
    assert_eq!(ledger.entries(of_key).await.unwrap(), entries[2..]);
    let used = ledger.usage_by_key(customer(1), at(0), at(99_999)).await;
    let used = used.unwrap();
    assert_eq!(used.len(), 2);
    for (of, rows) in used {
        assert_eq!(ledger.usage(of, at(0), at(99_999)).await.unwrap(), rows);
    }
    // A hold that names another customer than its key's is none.
    let refusal = refused(ledger.perform(hold_of(1, 2, 23, "1")).await);
    assert!(matches!(refusal, Refusal::NoSuchKey(_)), "{refusal}");
    sound(&*ledger).await;
}

/// What was paid is what came for money, or from another customer, less what went.
pub(crate) async fn what_nobody_paid_is_told_from_what_was_paid(ledger: SharedLedger) {
    for number in [1, 2] {
        let made = new_customer(number, 10 + number, None);
        ledger.perform(made).await.unwrap();
    }
    let given = async |of| ledger.given(customer(of)).await.unwrap();
    ledger.perform(credit_of(1, 13, "5", "paid")).await.unwrap();
    assert_eq!(given(1).await, Amount::ZERO);
    let gift = Credit {
        kind: CreditKind::Adjust {
            reason: "for a bad day".to_owned(),
            is_paid: false,
        },
        ..credit_of(1, 14, "3", "gift")
    };
    ledger.perform(gift).await.unwrap();
    assert_eq!(given(1).await, usd("3"));
    let moved = give(1, 2, 15, "2", "moved");
    ledger.perform(moved).await.unwrap();
    assert_eq!((given(1).await, given(2).await), (usd("3"), Amount::ZERO));
    assert_eq!(given(9).await, Amount::ZERO, "nobody");
    sound(&*ledger).await;
}

/// A customer's cap counts all of its keys, a key's only that key, and a refusal names whose cap it was.
pub(crate) async fn caps_of_both_bound_a_request(ledger: SharedLedger) {
    ledger.perform(new_customer(1, 10, None)).await.unwrap();
    ledger
        .perform(credit_of(1, 11, "100", "paid"))
        .await
        .unwrap();
    for (number, operation) in [(1, 12), (2, 13)] {
        ledger.perform(key_of(number, 1, operation)).await.unwrap();
    }
    // What happened before counts in a new cap.
    ledger.perform(hold_of(1, 1, 20, "2")).await.unwrap();
    let cap = |usd_of: &str| Cap {
        interval: CapInterval::Day,
        model: None,
        limit: usd(usd_of),
    };
    let capped = change(&ledger, 1, 14, CustomerAct::SetCap(cap("5"))).await;
    assert_eq!(
        capped.unwrap().caps.iter().next().unwrap().current.held,
        usd("2")
    );
    let of_key = KeyChange {
        key: key(2),
        change: Change::SetCap(cap("1")),
        act: act(15, 2),
    };
    ledger.perform(of_key).await.unwrap();
    for (request, number, asked, scope) in [
        (21, 2, "2", Scope::Key(key(2))),
        (22, 1, "4", Scope::Customer(customer(1))),
    ] {
        match refused(ledger.perform(hold_of(number, 1, request, asked)).await) {
            Refusal::CapReached(reached) => assert_eq!(reached.scope, scope),
            other => panic!("{other}"),
        }
    }
    ledger.perform(hold_of(2, 1, 23, "1")).await.unwrap();
    let key_2 = ledger.find_key(key(2)).await.unwrap().unwrap();
    assert_eq!(key_2.spendable(clock::now()), Amount::ZERO);
    let key_1 = ledger.find_key(key(1)).await.unwrap().unwrap();
    assert_eq!(key_1.spendable(clock::now()), usd("2"));
    sound(&*ledger).await;
    for request in [20, 23] {
        ledger.perform(Arc::new(finish(request, 10))).await.unwrap();
    }
    // A refund gives room back to both.
    let before = ledger.find_key(key(2)).await.unwrap().unwrap();
    let back = Credit {
        kind: CreditKind::Refund {
            request: op(23),
            reason: "sorry".to_owned(),
        },
        ..top_up(2, 30, "0.00001", "back")
    };
    ledger.perform(back).await.unwrap();
    let after = ledger.find_key(key(2)).await.unwrap().unwrap();
    let charged = |caps: &farebox_ledger::Caps| caps.iter().next().unwrap().current.charged;
    assert!(charged(&after.caps) < charged(&before.caps));
    assert!(charged(&after.customer.caps) < charged(&before.customer.caps));
    sound(&*ledger).await;
}

/// A suspended customer's keys are refused, a closed one's forever, and it is closed only when nothing is left.
pub(crate) async fn customers_are_suspended_resumed_and_closed(ledger: SharedLedger) {
    ledger
        .perform(new_customer(1, 10, Some("crm-1")))
        .await
        .unwrap();
    ledger.perform(key_of(1, 1, 11)).await.unwrap();
    ledger.perform(credit_of(1, 12, "5", "paid")).await.unwrap();
    ledger.perform(hold_of(1, 1, 20, "1")).await.unwrap();
    change(&ledger, 1, 13, CustomerAct::Suspend).await.unwrap();
    let refusal = refused(ledger.perform(hold_of(1, 1, 21, "1")).await);
    assert_eq!(refusal, Refusal::CustomerStopped(CustomerStatus::Suspended));
    let refusal = refused(ledger.perform(moved(20, "2", 10)).await);
    assert_eq!(refusal, Refusal::CustomerStopped(CustomerStatus::Suspended));
    let refusal = refused(change(&ledger, 1, 14, CustomerAct::Close).await);
    assert!(refusal.to_string().contains("held by running"), "{refusal}");
    ledger.perform(Arc::new(finish(20, 0))).await.unwrap();
    let refusal = refused(change(&ledger, 1, 15, CustomerAct::Close).await);
    assert!(refusal.to_string().contains("5.00 USD left"), "{refusal}");
    ledger
        .perform(credit_of(1, 16, "1", "while it is suspended"))
        .await
        .unwrap();
    let off = Credit {
        amount: usd("6").checked_neg().unwrap(),
        kind: CreditKind::WriteOff {
            reason: "it is over".to_owned(),
        },
        ..credit_of(1, 17, "6", "off")
    };
    ledger.perform(off).await.unwrap();
    change(&ledger, 1, 18, CustomerAct::Close).await.unwrap();
    for act in [CustomerAct::Resume, CustomerAct::Suspend] {
        let refusal = refused(change(&ledger, 1, 19, act).await);
        assert!(refusal.to_string().contains("is closed"), "{refusal}");
    }
    assert!(ledger.perform(credit_of(1, 30, "1", "late")).await.is_err());
    assert!(ledger.perform(key_of(2, 1, 31)).await.is_err());
    sound(&*ledger).await;
}

/// Ids of other systems are unique and found; personal data goes without a trace in the books.
pub(crate) async fn customers_are_found_and_forgotten(ledger: SharedLedger) {
    let data = PersonalData {
        name: Some("Ada L.".to_owned()),
        metadata: [("plan".to_owned(), "gold".to_owned())].into(),
        salt: [7; 32],
        ..PersonalData::default()
    };
    let new = NewCustomer {
        personal: Some(data.clone()),
        ..new_customer(1, 10, Some("crm-1"))
    };
    let made = ledger.perform(new.clone()).await.unwrap();
    assert_eq!(ledger.perform(new).await.unwrap(), made);
    let refusal = refused(ledger.perform(new_customer(2, 11, Some("crm-1"))).await);
    assert_eq!(
        refusal,
        Refusal::ExternalIdUsed {
            external_id: "crm-1".to_owned(),
            customer: customer(1)
        }
    );
    for bad in [" crm", "", "a\u{200b}b", "a\nb", "a\0b"] {
        let new = new_customer(3, 12, Some(bad));
        assert!(ledger.perform(new).await.is_err(), "{bad:?}");
    }
    ledger.perform(new_customer(2, 13, None)).await.unwrap();
    let found = ledger.find_external("crm-1").await.unwrap().unwrap();
    assert_eq!(found.id, customer(1));
    assert_eq!(ledger.find_external("CRM-1").await.unwrap(), None);
    let query = CustomerQuery {
        text: Some("CRM".to_owned()),
        limit: 9,
        ..CustomerQuery::default()
    };
    assert_eq!(ledger.list_customers(query).await.unwrap(), [found]);
    let page = |after| CustomerQuery {
        after,
        limit: 1,
        ..CustomerQuery::default()
    };
    let first = ledger.list_customers(page(None)).await.unwrap();
    let place = page(None).order.place_of_customer(&first[0]);
    let second = ledger.list_customers(page(Some(place))).await.unwrap();
    assert_ne!(first[0].id, second[0].id);
    assert_eq!(ledger.personal_data(customer(1)).await.unwrap(), Some(data));
    sound(&*ledger).await;
    let erased = change(&ledger, 1, 14, CustomerAct::Erase).await.unwrap();
    assert_eq!(erased.personal, None);
    assert_eq!(ledger.personal_data(customer(1)).await.unwrap(), None);
    sound(&*ledger).await;
    let told = ledger.audit(None, None, 99).await.unwrap();
    assert!(told.iter().all(|act| !act.details.contains("Ada")));
}

/// A receipt is addressed to who paid: to the buyer, if a shop sold it, else to the customer as it was then. All of it goes with the
/// customer's own data.
pub(crate) async fn payments_keep_whom_they_are_addressed_to(ledger: SharedLedger) {
    let person = |name: &str, salt| PersonalData {
        name: Some(name.to_owned()),
        salt: [salt; 32],
        ..PersonalData::default()
    };
    let (ada, eve) = (person("Ada L.", 7), person("Evelyn Q.", 8));
    let new = NewCustomer {
        personal: Some(ada.clone()),
        ..new_customer(1, 10, None)
    };
    ledger.perform(new).await.unwrap();
    ledger.perform(new_customer(2, 11, None)).await.unwrap();
    let shop = new_token(1, 20, TokenRole::Sell, Some("100"));
    ledger.perform(shop).await.unwrap();
    let paid = |operation, reference: &str, addressee: Option<&PersonalData>| NewPayment {
        customer: customer(1),
        addressee: addressee.cloned(),
        ..new_payment(1, operation, "10", reference)
    };
    // By the seller; by anybody through a shop, who says who it is, or does not.
    ledger.perform(paid(30, "by-seller", None)).await.unwrap();
    for (operation, reference, buyer) in [(31, "By-Eve", Some(&eve)), (32, "by-nobody", None)] {
        let sale = Operation::Pay(Box::new(paid(operation, reference, buyer)));
        ledger.ask(asked(1, 310, sale)).await.unwrap();
    }
    let plain = Credit {
        to: customer(1).into(),
        ..top_up(1, 33, "5", "plain")
    };
    ledger.perform(plain).await.unwrap();
    let addressed = async |number: u64| {
        let found = ledger.addressees(customer(number)).await.unwrap();
        let to = |payment| {
            found
                .of(payment)
                .map(|to: Option<&PersonalData>| to.cloned())
        };
        ["BY-SELLER", "by-eve", "by-nobody", "plain", "unknown"].map(to)
    };
    assert_eq!(
        addressed(1).await,
        [
            Some(Some(ada.clone())),
            Some(Some(eve.clone())),
            Some(None),
            Some(Some(ada.clone())),
            None
        ]
    );
    // What the customer is called later changes nothing of what was paid.
    let later = CustomerAct::Describe(person("Ada King", 9));
    change(&ledger, 1, 40, later).await.unwrap();
    assert_eq!(addressed(1).await[0], Some(Some(ada)));
    // A payment that is assigned keeps its addressee, and goes with whose it is now.
    change(&ledger, 2, 41, CustomerAct::Close).await.unwrap();
    let late = NewPayment {
        customer: customer(2),
        ..paid(42, "late", Some(&eve))
    };
    ledger.perform(late).await.unwrap();
    let assign = UnappliedAct {
        payment: "late".to_owned(),
        end: UnappliedEnd::Assign(customer(1)),
        act: act(43, 500),
    };
    ledger.perform(assign).await.unwrap();
    let of_it = ledger.addressees(customer(1)).await.unwrap();
    assert_eq!(of_it.of("late"), Some(Some(&eve)));
    assert_eq!(
        ledger.addressees(customer(2)).await.unwrap().of("late"),
        None
    );
    sound(&*ledger).await;
    change(&ledger, 1, 44, CustomerAct::Erase).await.unwrap();
    let nobody = Some(None);
    assert_eq!(
        addressed(1).await,
        [nobody.clone(), nobody.clone(), nobody.clone(), nobody, None]
    );
    sound(&*ledger).await;
    let told = ledger.audit(None, None, 99).await.unwrap();
    assert!(told.iter().all(|act| !act.details.contains("Evelyn")));
}

/// Ids of other systems are any text that can be typed again, and are found by exactly their bytes.
pub(crate) async fn external_ids_are_any_text_that_can_be_typed_again(ledger: SharedLedger) {
    let longest = "x".repeat(200);
    let good = [
        "a",
        "A",
        "ä",
        "a\u{308}",
        "é",
        "e\u{301}",
        "0",
        "'; DROP TABLE customers; --",
        "%_\\",
        "a  b",
        "漢字",
        "🦀",
        "-1",
        "=1+1",
        "<b>",
        "null",
        "c_7f3q9d2xw1",
        &longest,
    ];
    for (number, id) in (1_u64..).zip(good) {
        let new = new_customer(number, 10 + number, Some(id));
        ledger.perform(new).await.unwrap();
    }
    for (number, id) in (1_u64..).zip(good) {
        let found = ledger.find_external(id).await.unwrap().unwrap();
        assert_eq!(found.id, customer(number), "{id:?}");
        assert_eq!(found.settings.external_id.as_deref(), Some(id));
    }
    let too_long = "x".repeat(201);
    for bad in [
        "",
        " ",
        " a",
        "a ",
        "\ta",
        "a\n",
        "a\0",
        "a\u{7f}",
        "a\u{200b}",
        "a\u{202e}b",
        &too_long,
    ] {
        let new = new_customer(99, 99, Some(bad));
        let refusal = refused(ledger.perform(new).await);
        assert!(!refusal.to_string().is_empty(), "{bad:?}");
        assert_eq!(ledger.find_external(bad).await.unwrap(), None, "{bad:?}");
    }
    sound(&*ledger).await;
}

/// Caps of customers that make no sense: nothing, less than nothing, more than the ledger counts, a wider one below a narrower one, more
/// than there is room for. A model that nobody publishes bounds nothing.
pub(crate) async fn caps_of_customers_that_make_no_sense_are_refused(ledger: SharedLedger) {
    ledger.perform(new_customer(1, 10, None)).await.unwrap();
    ledger.perform(key_of(1, 1, 11)).await.unwrap();
    ledger.perform(credit_of(1, 12, "9", "paid")).await.unwrap();
    let cap = |interval, limit: Amount, model: Option<String>| {
        CustomerAct::SetCap(Cap {
            interval,
            model,
            limit,
        })
    };
    let (week, month) = (CapInterval::Week, CapInterval::Month);
    let of_all = cap(month, usd("5"), None);
    change(&ledger, 1, 20, of_all).await.unwrap();
    let more = Amount::MAX_LIFETIME_CREDIT.checked_add(Amount::from_picos(1));
    for (operation, wrong) in [
        (21, cap(week, usd("0"), None)),
        (22, cap(week, usd("1").checked_neg().unwrap(), None)),
        (23, cap(week, more.unwrap(), None)),
        (24, cap(week, usd("5.01"), None)),
        (25, cap(CapInterval::Total, usd("4.99"), None)),
    ] {
        let refusal = refused(change(&ledger, 1, operation, wrong.clone()).await);
        assert!(!refusal.to_string().is_empty(), "{wrong:?}");
    }
    // A thousand caps: eight are kept, and each further one is refused with that number.
    let mut kept = 1;
    for number in 0..1_000_u64 {
        let model = Some(format!("retired-{number}"));
        match change(&ledger, 1, 100 + number, cap(week, usd("1"), model)).await {
            Ok(customer) => {
                kept += 1;
                assert_eq!(customer.caps.iter().count(), kept);
            }
            Err(error) => assert!(error.to_string().contains('8'), "{error}"),
        }
    }
    assert_eq!(kept, 8);
    // Caps of models that are not asked for have no say.
    ledger.perform(hold_of(1, 1, 2_000, "4")).await.unwrap();
    let refusal = refused(ledger.perform(hold_of(1, 1, 2_001, "2")).await);
    assert!(matches!(refusal, Refusal::CapReached(_)), "{refusal}");
    ledger.perform(Arc::new(finish(2_000, 10))).await.unwrap();
    sound(&*ledger).await;
}

/// Money that is paid and not held moves once, under one reference.
pub(crate) async fn money_moves_between_customers(ledger: SharedLedger) {
    for number in [1, 2] {
        ledger
            .perform(new_customer(number, 10 + number, None))
            .await
            .unwrap();
    }
    ledger.perform(key_of(1, 1, 13)).await.unwrap();
    ledger.perform(credit_of(1, 14, "5", "paid")).await.unwrap();
    ledger.perform(hold_of(1, 1, 20, "2")).await.unwrap();
    let refusal = refused(ledger.perform(give(1, 2, 15, "4", "one purse")).await);
    assert!(matches!(refusal, Refusal::Insufficient { .. }), "{refusal}");
    for (from, into, amount) in [(1, 1, "1"), (1, 9, "1"), (1, 2, "0")] {
        let bad = give(from, into, 16, amount, "bad");
        assert!(ledger.perform(bad).await.is_err());
    }
    let moved = ledger.perform(give(1, 2, 17, "3", "one purse")).await;
    let moved = moved.unwrap();
    let balances = (moved.from.account.balance(), moved.into.account.balance());
    assert_eq!((balances, moved.repeated), ((usd("2"), usd("3")), false));
    let again = ledger.perform(give(1, 2, 18, "3", "ONE purse")).await;
    assert!(again.unwrap().repeated);
    for other in [
        give(1, 2, 19, "1", "one purse"),
        give(2, 1, 21, "3", "one purse"),
    ] {
        let refusal = refused(ledger.perform(other).await);
        assert!(
            matches!(refusal, Refusal::ReferenceUsed { .. }),
            "{refusal}"
        );
    }
    let entries = ledger.entries(EntryQuery::default()).await.unwrap();
    let moves: Vec<_> = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Move)
        .map(|entry| (entry.customer, entry.amount, entry.reason.clone().unwrap()))
        .collect();
    let taken = usd("3").checked_neg().unwrap();
    assert_eq!(
        moves,
        [
            (customer(1), taken, format!("to {}", customer(2))),
            (customer(2), usd("3"), format!("from {}", customer(1)))
        ]
    );
    ledger.perform(Arc::new(finish(20, 10))).await.unwrap();
    sound(&*ledger).await;
}

/// Only an owner key of the same customer makes further ones, and only while it is active.
pub(crate) async fn owners_make_keys(ledger: SharedLedger) {
    for number in [1, 2] {
        ledger
            .perform(new_customer(number, 10 + number, None))
            .await
            .unwrap();
    }
    let mut owner = key_of(1, 1, 13);
    owner.within.is_owner = true;
    assert!(ledger.perform(owner).await.unwrap().is_owner);
    let made = |number: u64, of: u64, by: u64, operation: u64| {
        let mut new = key_of(number, of, operation);
        new.within.made_by = Some(key(by));
        new
    };
    let member = ledger.perform(made(2, 1, 1, 14)).await.unwrap();
    assert_eq!((member.made_by, member.is_owner), (Some(key(1)), false));
    for bad in [made(3, 1, 2, 15), made(3, 2, 1, 16)] {
        let refusal = refused(ledger.perform(bad).await);
        assert!(refusal.to_string().contains("no owner key"), "{refusal}");
    }
    let block = KeyChange {
        key: key(1),
        change: Change::Block,
        act: act(17, 2),
    };
    ledger.perform(block).await.unwrap();
    assert!(ledger.perform(made(3, 1, 1, 18)).await.is_err());
    let query = KeyQuery {
        customer: Some(customer(1)),
        limit: 9,
        ..KeyQuery::default()
    };
    let keys = ledger.list_keys(query).await.unwrap();
    assert_eq!(keys.len(), 2);
    sound(&*ledger).await;
}
