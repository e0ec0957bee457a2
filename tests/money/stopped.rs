//! Customers that are stopped while their keys are at work: suspended in the middle of a stream, and closed.

use farebox_ledger::{
    Amount, Credit, CreditKind, CustomerAct, CustomerChange, EndReason, KeySettings, NewMove,
    Perform,
};
use farebox_protocol::Family;
use serde_json::json;

use crate::support::load::usd;
use crate::support::upstream::{Gate, ScriptedUpstream, Speech};
use crate::support::{Gateway, TestKey, act, ask, chat, path, payment, talking};

async fn customer_act(gateway: &Gateway, key: &TestKey, change: CustomerAct) {
    let customer = gateway.account(key).await.customer.id;
    let act = act();
    let change = CustomerChange {
        customer,
        change,
        act,
    };
    gateway.ledger.perform(change).await.unwrap();
}

/// A stream goes on as far as its hold reaches, then ends as at an empty balance; new requests of every key are refused meanwhile.
#[tokio::test]
async fn a_customer_that_is_suspended_within_a_stream_pays_what_it_got() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    // All families are relayed alike, and each one takes some seconds.
    for family in [Family::Messages] {
        let gate = Gate::new();
        let endless = Speech::new(family, &"word ".repeat(30_000)).stream();
        upstream.follow(endless.gate_after(40, &gate));
        let key = gateway.key("9").await;
        let other = gateway.member(&key, KeySettings::default()).await;
        let body = ask(family, "test-model", true);
        let asking = gateway.post(path(family), &key, &body);
        let suspending = async {
            let request = upstream.requests().len();
            let seen = upstream.request(request).await;
            while seen.sent.load(std::sync::atomic::Ordering::SeqCst) < 40 {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
            customer_act(&gateway, &key, CustomerAct::Suspend).await;
            for key in [&key, &other] {
                let refused = gateway
                    .post(path(family), key, &ask(family, "test-model", false))
                    .await;
                assert_eq!(refused.status, 403, "{family}: {}", refused.text);
                assert!(refused.text.contains("suspended"), "{}", refused.text);
            }
        };
        let began = std::time::Instant::now();
        let (answer, ()) = tokio::join!(asking, suspending);
        assert_eq!(answer.status, 200, "{family}");
        assert!(began.elapsed().as_secs() < 12, "{:?}", began.elapsed());
        gateway.settled().await;
        let charges = gateway.charges(&key).await;
        assert_eq!(charges.len(), 1, "{family}");
        let bill = charges[0].bill.as_ref().unwrap();
        let charged = charges[0].amount.checked_neg().unwrap();
        assert!(
            charged.is_positive() && bill.loss == Amount::ZERO,
            "{family}: {bill:?}"
        );
        assert_eq!(bill.end_reason, EndReason::KeyState, "{family}");
        let account = gateway.account(&key).await.customer.account;
        assert_eq!((account.held, account.spent), (Amount::ZERO, charged));
        customer_act(&gateway, &key, CustomerAct::Resume).await;
        upstream.follow(talking("PONG"));
        let served = gateway
            .post("/v1/chat/completions", &other, &chat("test-model", false))
            .await;
        assert_eq!(served.status, 200, "{family}: {}", served.text);
    }
}

#[tokio::test]
async fn the_key_of_a_closed_customer_is_refused_for_ever() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("9").await;
    let taken = Credit {
        kind: CreditKind::Adjust {
            reason: "paid back".to_owned(),
            is_paid: false,
        },
        ..payment(key.id, usd("9").checked_neg().unwrap(), "back".to_owned())
    };
    gateway.ledger.perform(taken).await.unwrap();
    customer_act(&gateway, &key, CustomerAct::Close).await;
    for family in Family::ALL {
        let refused = gateway
            .post(path(family), &key, &ask(family, "test-model", false))
            .await;
        assert_eq!(refused.status, 403, "{family}: {}", refused.text);
        assert!(
            refused.text.contains("closed"),
            "{family}: {}",
            refused.text
        );
    }
    assert_eq!(upstream.requests().len(), 0);
    let own = gateway.get("/v1/key", &key).await;
    assert_eq!(own.status, 403, "{}", own.text);
}

/// Both stream while money goes back and forth: only what neither holds moves, and each pays its own.
#[tokio::test]
async fn money_moves_between_two_customers_that_both_stream() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let gate = Gate::new();
    let words = Speech::new(Family::Chat, &"word ".repeat(200)).stream();
    upstream.follow(words.gate_after(20, &gate));
    let keys = [gateway.key("1").await, gateway.key("1").await];
    let mut body = chat("test-model", true);
    body["max_tokens"] = json!(1_000);
    let asking = keys
        .iter()
        .map(|key| gateway.post("/v1/chat/completions", key, &body));
    let asking = futures_util::future::join_all(asking);
    let moving = async {
        for request in 0..2 {
            let seen = upstream.request(request).await;
            while seen.sent.load(std::sync::atomic::Ordering::SeqCst) < 20 {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        }
        let [one, other] = [
            gateway.account(&keys[0]).await.customer,
            gateway.account(&keys[1]).await.customer,
        ];
        assert!(one.account.held.is_positive() && other.account.held.is_positive());
        let give = |from, into, amount: Amount, reference: &str| {
            gateway.ledger.perform(NewMove {
                from,
                into,
                amount,
                reference: reference.to_owned(),
                act: act(),
            })
        };
        let more = one.account.available().checked_add(Amount::from_picos(1));
        let refused = give(one.id, other.id, more.unwrap(), "too much").await;
        assert!(refused.is_err(), "held money does not move: {refused:?}");
        for turn in 0..10 {
            let (from, into) = if turn % 2 == 0 {
                (one.id, other.id)
            } else {
                (other.id, one.id)
            };
            give(from, into, usd("0.5"), &format!("move {turn}"))
                .await
                .unwrap();
        }
        gate.open();
    };
    let (answers, ()) = tokio::join!(asking, moving);
    gateway.settled().await;
    for (key, answer) in keys.iter().zip(&answers) {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let charges = gateway.charges(key).await;
        assert_eq!(charges.len(), 1);
        let bill = charges[0].bill.as_ref().unwrap();
        assert_eq!(bill.end_reason, EndReason::Stop);
        let account = gateway.account(key).await.customer.account;
        let charged = charges[0].amount.checked_neg().unwrap();
        assert_eq!(
            (account.held, account.balance()),
            (Amount::ZERO, usd("1").checked_sub(charged).unwrap())
        );
    }
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}
