//! Events: told in the transaction of their cause, once, and read so that none is missed.

use std::sync::Arc;

use farebox_ledger::*;
use serde_json::{Value, json};

use super::common::*;
use super::refused;

/// The kinds of all events, once there are so many.
async fn kinds(ledger: &SharedLedger, count: usize) -> Vec<&'static str> {
    let events = events(&**ledger, count).await;
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// The particulars of the newest event, once there are so many.
async fn newest(ledger: &SharedLedger, count: usize) -> Value {
    let events = events(&**ledger, count).await;
    assert_eq!(events.len(), count, "{events:?}");
    events.last().unwrap().document()["data"].clone()
}

/// Charges so many millionths of a dollar.
async fn charge(ledger: &SharedLedger, operation: u64, millionths: u64) {
    let hold = new_hold(1, operation, "0.000001");
    ledger.perform(hold).await.unwrap();
    ledger
        .perform(Arc::new(finish(operation, millionths)))
        .await
        .unwrap();
}

pub(crate) async fn what_happens_is_told_once(ledger: SharedLedger) {
    for _ in 0..2 {
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        ledger.perform(top_up(1, 11, "2", "inv-1")).await.unwrap();
        let rotate = Change::Rotate {
            secret: secret(2),
            old_until: None,
        };
        for (operation, change_to) in [(12, Change::Block), (13, Change::Block), (14, rotate)] {
            ledger
                .perform(change(1, operation, change_to))
                .await
                .unwrap();
        }
        for (operation, act_on) in [
            (15, CustomerAct::Resume),
            (16, CustomerAct::Suspend),
            (17, CustomerAct::Suspend),
            (18, CustomerAct::Resume),
        ] {
            let change = CustomerChange {
                customer: CustomerId::made_for(key(1)),
                change: act_on,
                act: act(operation, 250),
            };
            ledger.perform(change).await.unwrap();
        }
        ledger.perform(change(1, 19, Change::Revoke)).await.unwrap();
    }
    let told = kinds(&ledger, 9).await;
    assert_eq!(
        told,
        [
            "customer.created",
            "key.created",
            "top_up.booked",
            "top_up.booked",
            "key.blocked",
            "key.rotated",
            "customer.suspended",
            "customer.resumed",
            "key.revoked",
        ]
    );
    let events = events(&*ledger, 9).await;
    let numbers: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=9).map(Some).collect::<Vec<_>>(), "no gaps");
    let of = Some(CustomerId::made_for(key(1)));
    assert!(events.iter().all(|event| event.customer == of));
    assert_eq!(
        events[3].document()["data"],
        json!({ "amount": "2.00", "reference": "inv-1", "balance": "7.00", "key": key(1), "actor": "ada" })
    );
    // What is refused tells nothing.
    assert!(ledger.perform(top_up(1, 30, "0", "inv-2")).await.is_err());
    assert_eq!(kinds(&ledger, 9).await.len(), 9);
    sound(&*ledger).await;
}

pub(crate) async fn a_balance_is_told_once_until_it_is_well(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    // A tenth of the last top-up is low; what is held is not.
    ledger.perform(new_hold(1, 20, "0.95")).await.unwrap();
    ledger.perform(Arc::new(finish(20, 890_000))).await.unwrap();
    assert_eq!(kinds(&ledger, 3).await.len(), 3);
    charge(&ledger, 21, 10_001).await;
    let low = json!({ "balance": "0.099999", "threshold": "0.10" });
    assert_eq!(newest(&ledger, 4).await, low);
    charge(&ledger, 22, 9_999).await;
    charge(&ledger, 23, 90_000).await;
    let gone = json!({ "balance": "0.00", "threshold": "0.10" });
    assert_eq!(newest(&ledger, 5).await, gone);
    ledger.perform(top_up(1, 30, "4", "inv-4")).await.unwrap();
    let back = json!({ "balance": "4.00", "threshold": "0.40" });
    assert_eq!(newest(&ledger, 7).await, back);
    charge(&ledger, 24, 3_700_000).await;
    let told = kinds(&ledger, 8).await;
    assert_eq!(
        told[3..],
        [
            "balance.low",
            "balance.depleted",
            "top_up.booked",
            "balance.restored",
            "balance.low"
        ]
    );
    // Its own threshold is judged from the next settlement on.
    let set = CustomerChange {
        customer: CustomerId::made_for(key(1)),
        change: CustomerAct::Edit(CustomerEdit {
            low_balance: Said::Set(usd("0.1")),
            ..CustomerEdit::default()
        }),
        act: act(40, 300),
    };
    ledger.perform(set).await.unwrap();
    charge(&ledger, 25, 1).await;
    assert_eq!(
        newest(&ledger, 9).await,
        json!({ "balance": "0.299999", "threshold": "0.10" })
    );
    sound(&*ledger).await;
}

pub(crate) async fn caps_are_told_at_80_and_at_100_per_cent(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("9"))).await.unwrap();
    let cap = |limit| {
        Change::SetCap(Cap {
            interval: CapInterval::Total,
            model: None,
            limit: usd(limit),
        })
    };
    ledger.perform(change(1, 11, cap("1"))).await.unwrap();
    let of_customer = CustomerChange {
        customer: CustomerId::made_for(key(1)),
        change: CustomerAct::SetCap(Cap {
            interval: CapInterval::Month,
            model: Some("small".to_owned()),
            limit: usd("1.25"),
        }),
        act: act(12, 200),
    };
    ledger.perform(of_customer).await.unwrap();
    charge(&ledger, 20, 790_000).await;
    assert_eq!(
        kinds(&ledger, 3).await.len(),
        3,
        "held money is not charged"
    );
    charge(&ledger, 21, 10_000).await;
    let most = json!({
        "scope": key(1), "interval": "total", "model": null, "limit": "1.00", "charged": "0.80", "percent": 80,
        "since": "1970-01-01T00:00:00.000Z", "resets_at": null,
    });
    assert_eq!(newest(&ledger, 4).await, most);
    charge(&ledger, 22, 100_000).await;
    charge(&ledger, 23, 100_000).await;
    let events = events(&*ledger, 6).await;
    let told: Vec<_> = events[3..]
        .iter()
        .map(|event| {
            let data = event.document()["data"].clone();
            (data["scope"].clone(), data["percent"].clone())
        })
        .collect();
    let customer = CustomerId::made_for(key(1));
    assert_eq!(
        told,
        [
            (json!(key(1)), json!(80)),
            (json!(key(1)), json!(100)),
            (json!(customer), json!(80))
        ],
        "each once for its window"
    );
    // Above a higher limit it can be told again.
    ledger.perform(change(1, 13, cap("1.3"))).await.unwrap();
    charge(&ledger, 24, 50_000).await;
    assert_eq!(newest(&ledger, 7).await["charged"], "1.05");
    sound(&*ledger).await;
}

pub(crate) async fn money_that_goes_back_is_told(ledger: SharedLedger) {
    let made = ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    charge(&ledger, 20, 2_000_000).await;
    for _ in 0..2 {
        ledger.perform(refund_of("first-1", 30, "5")).await.unwrap();
    }
    let told = kinds(&ledger, 6).await;
    assert_eq!(
        told[3..],
        ["claim.opened", "reversal.booked", "balance.depleted"]
    );
    let events = events(&*ledger, 6).await;
    assert_eq!(
        events[4].document()["data"],
        json!({
            "payment": "first-1", "kind": "refund", "amount": "-3.00", "reference": "refund-30", "balance": "0.00",
            "claim": "2.00", "actor": "ada",
        })
    );
    ledger.perform(top_up(1, 31, "6", "inv-1")).await.unwrap();
    let told = kinds(&ledger, 9).await;
    assert_eq!(
        told[6..],
        ["top_up.booked", "claim.paid", "balance.restored"],
        "judged once, when the claim is paid"
    );
    let close = CustomerChange {
        customer: made.customer.id,
        change: CustomerAct::Suspend,
        act: act(32, 300),
    };
    ledger.perform(close).await.unwrap();
    let off = CreditKind::WriteOff {
        reason: "gone".to_owned(),
    };
    ledger
        .perform(credit(1, 33, off, "-4", "off"))
        .await
        .unwrap();
    let close = CustomerChange {
        customer: made.customer.id,
        change: CustomerAct::Close,
        act: act(34, 300),
    };
    ledger.perform(close).await.unwrap();
    let late = NewPayment {
        customer: made.customer.id,
        paid: PaidSum::in_usd(usd("7")),
        credit: usd("7"),
        reference: "late".to_owned(),
        addressee: None,
        expected: None,
        reservation: None,
        plan: None,
        unsold: None,
        act: act(35, 400),
    };
    ledger.perform(late).await.unwrap();
    let told = kinds(&ledger, 12).await;
    assert_eq!(
        told[9..],
        ["customer.suspended", "balance.depleted", "top_up.unapplied"]
    );
    sound(&*ledger).await;
}

pub(crate) async fn events_are_read_on_from_the_last_one(ledger: SharedLedger) {
    assert_eq!(ledger.events(None, 9).await.unwrap(), []);
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    let act = FilesAct {
        operation: op(700),
        at: at(7),
        actor: "ada".to_owned(),
        details: "{}".to_owned(),
    };
    let news = ["small", "large"].map(|slug| News {
        kind: EventKind::PriceChanged,
        data: json!({ "slug": slug }).to_string(),
    });
    for _ in 0..2 {
        let told = ledger
            .perform(NoteFiles {
                act: act.clone(),
                news: news.to_vec(),
            })
            .await;
        told.unwrap();
    }
    let all = events(&*ledger, 5).await;
    assert_eq!(all.len(), 5);
    assert_eq!((all[4].customer, all[4].seq), (None, None));
    assert_eq!(all[4].document()["data"]["slug"], "large");
    let (mut after, mut read) = (None, Vec::new());
    loop {
        let page = ledger.events(after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        read.extend(page);
    }
    assert_eq!(read, all);
    assert_eq!(
        refused(ledger.events(Some(op(999)), 9).await),
        Refusal::NoSuchEvent(op(999))
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_delivery_is_due_until_it_is_there(ledger: SharedLedger) {
    ledger.recover(at(1)).await.unwrap();
    assert_eq!(ledger.newest_event().await.unwrap(), None);
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    let told = events(&*ledger, 3).await;
    let url = "https://shop.example/hook".to_owned();
    let webhook = WebhookId::of(&url);
    let [first, second, third] = [&told[0], &told[1], &told[2]].map(|event| event.id);
    assert_eq!(ledger.newest_event().await.unwrap(), Some(third));
    let hand = DeliveryStep::Hand {
        webhook,
        events: vec![first, second],
        handed: third,
        due: at(100),
    };
    let register = DeliveryStep::Register {
        url,
        handed: None,
        at: at(50),
    };
    for _ in 0..2 {
        let steps = vec![register.clone(), hand.clone()];
        ledger.perform(DeliverySteps(steps)).await.unwrap();
    }
    let known = ledger.webhooks().await.unwrap();
    assert_eq!(
        (known.len(), known[0].handed, known[0].waiting),
        (1, Some(third), 2)
    );
    let due = async |seconds, free| {
        let wanted = WantedDeliveries {
            webhook,
            free,
            running: 0,
        };
        let due = ledger.due_deliveries(vec![wanted], at(seconds)).await;
        let mut due: Vec<_> = due
            .unwrap()
            .iter()
            .map(|due| (due.event.id, due.tries))
            .collect();
        due.sort();
        due
    };
    assert_eq!(due(99, 9).await, []);
    assert_eq!(due(100, 9).await.len(), 2);
    let tried = |event, tries, outcome| DeliveryStep::Tried {
        webhook,
        event,
        tries,
        outcome,
    };
    let again = DeliveryOutcome::Again {
        due: at(200),
        why: "it answered 500".to_owned(),
    };
    let steps = vec![
        tried(first, 1, DeliveryOutcome::Delivered),
        tried(second, 1, again.clone()),
        hand,
    ];
    let failed = || ledger.failed_delivery(webhook);
    assert_eq!(failed().await.unwrap(), None);
    ledger.perform(DeliverySteps(steps)).await.unwrap();
    let most = FailedDelivery {
        event: second,
        tries: 1,
        due: at(200),
        why: "it answered 500".to_owned(),
        arrived: Some(at(100)),
    };
    assert_eq!(failed().await.unwrap(), Some(most));
    let other = WebhookId::of("https://other.example");
    assert_eq!(ledger.failed_delivery(other).await.unwrap(), None);
    assert_eq!(due(199, 9).await, []);
    // What waits for its next try is due at once, and has all of its tries again.
    let enable = DeliveryStep::Enable {
        webhook,
        due: at(150),
    };
    ledger.perform(DeliverySteps(vec![enable])).await.unwrap();
    assert_eq!(failed().await.unwrap(), None);
    assert_eq!(due(150, 9).await, [(second, 0)]);
    ledger
        .perform(DeliverySteps(vec![tried(second, 1, again)]))
        .await
        .unwrap();
    assert_eq!(due(199, 9).await, []);
    assert_eq!(due(200, 9).await, [(second, 1)]);
    let why = "it answered 410 Gone".to_owned();
    let up = DeliveryOutcome::GivenUp { why: why.clone() };
    let disable = DeliveryStep::Disable {
        webhook,
        at: at(300),
        why: why.clone(),
    };
    ledger
        .perform(DeliverySteps(vec![tried(second, 2, up), disable]))
        .await
        .unwrap();
    let known = ledger.webhooks().await.unwrap();
    assert_eq!(
        (&known[0].disabled, known[0].waiting),
        (&Some((at(300), why)), 0)
    );
    let enable = DeliveryStep::Enable {
        webhook,
        due: at(400),
    };
    let replay = DeliveryStep::Replay {
        webhook,
        events: vec![first],
        due: at(400),
    };
    ledger
        .perform(DeliverySteps(vec![enable, replay]))
        .await
        .unwrap();
    assert_eq!(ledger.webhooks().await.unwrap()[0].disabled, None);
    let mut both = vec![(first, 0), (second, 0)];
    both.sort();
    assert_eq!(due(400, 9).await, both);
    sound(&*ledger).await;
}
