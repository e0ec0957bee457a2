//! Caps: a key spends no more in a day, a week, a month or in all than its caps say, and is told which one refused.

use std::cell::Cell;
use std::time::Duration;

use farebox_ledger::{
    Amount, Cap, CapInterval, Change, CustomerAct, CustomerChange, EndReason, KeySettings, Perform,
};
use farebox_protocol::{ChatLimit, Family};
use serde_json::json;

use crate::support::upstream::{Gate, Script, ScriptedUpstream, Speech};
use crate::support::{Gateway, TestKey, act, ask, chat, path, speech_for, talking};

async fn cap(gateway: &Gateway, key: &TestKey, interval: CapInterval, usd: &str) {
    let cap = Cap {
        interval,
        model: None,
        limit: Amount::from_usd_str(usd).unwrap(),
    };
    gateway.change(key, Change::SetCap(cap)).await;
}

#[tokio::test]
async fn a_request_that_a_cap_has_no_room_for_is_refused_with_its_figures() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("9").await;
    cap(&gateway, &key, CapInterval::Week, "5").await;
    cap(&gateway, &key, CapInterval::Day, "0.000001").await;
    for family in Family::ALL {
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", false))
            .await;
        assert_eq!(answer.status, 429, "{family}: {}", answer.text);
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        let error = &answer.json()["error"];
        let message = error["message"].as_str().unwrap();
        for words in [
            "cap reached: this request needs ",
            "the key's cap of 0.000001 USD per day has room for 0.000001 USD, spent 0.00 USD",
            "You exceeded your current quota",
            "the exceeded quota will reset at ",
            "T00:00:00.000Z",
        ] {
            assert!(message.contains(words), "{family}: {message}");
        }
        if family == Family::Messages {
            continue;
        }
        assert_eq!(error["code"], "insufficient_quota");
        let details = &error["details"];
        assert_eq!(
            (&details["scope"], &details["interval"], &details["limit"]),
            (&json!("key"), &json!("day"), &json!("0.000001"))
        );
        assert_eq!(
            (&details["spent"], &details["held"]),
            (&json!("0.00"), &json!("0.00"))
        );
        assert!(
            details["resets_at"]
                .as_str()
                .unwrap()
                .ends_with("T00:00:00.000Z")
        );
        assert!(details["model"].is_null());
    }
    assert_eq!(upstream.requests().len(), 0);
    let own = &gateway.get("/v1/key", &key).await.json()["data"];
    assert_eq!(own["limit_reset"], "daily");
    assert_eq!(
        (&own["limit"], &own["limit_remaining"]),
        (&json!(0.000001), &json!(0.000001))
    );
    // What a member is shown of its customer's purse is what it may spend of it.
    assert_eq!(
        (&own["balance"], &own["available"]),
        (&json!("0.000001"), &json!("0.000001"))
    );
    let clear = Change::ClearCap {
        interval: CapInterval::Day,
        model: None,
    };
    gateway.change(&key, clear).await;
    let served = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    assert_eq!(served.status, 200, "{}", served.text);
    assert_eq!(
        gateway.get("/v1/key", &key).await.json()["data"]["limit_reset"],
        "weekly"
    );
}

/// Bounds what all keys of a key's customer spend.
async fn cap_of_customer(gateway: &Gateway, key: &TestKey, model: Option<&str>, usd: &str) {
    let cap = Cap {
        interval: CapInterval::Total,
        model: model.map(str::to_owned),
        limit: Amount::from_usd_str(usd).unwrap(),
    };
    let change = CustomerChange {
        customer: gateway.account(key).await.customer.id,
        change: CustomerAct::SetCap(cap),
        act: act(),
    };
    gateway.ledger.perform(change).await.unwrap();
}

#[tokio::test]
async fn a_customers_cap_is_told_as_its_own_and_to_a_member_without_sums() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let owner = gateway.owner("9").await;
    let member = gateway.member(&owner, KeySettings::default()).await;
    let body = chat("test-model", false);
    let served = gateway.post("/v1/chat/completions", &owner, &body).await;
    assert_eq!(served.status, 200, "{}", served.text);
    let spent = gateway.charges(&owner).await.remove(0).amount;
    let spent = spent.checked_neg().unwrap().to_string();
    // Before the body is read, and when the money is held.
    for model in [None, Some("test-model")] {
        cap_of_customer(&gateway, &owner, model, "0.0000013").await;
        for (key, is_owner) in [(&owner, true), (&member, false)] {
            let refused = gateway.post("/v1/chat/completions", key, &body).await;
            assert_eq!(refused.status, 429, "{}", refused.text);
            let error = &refused.json()["error"];
            let (details, message) = (&error["details"], error["message"].as_str().unwrap());
            assert_eq!(
                (&details["scope"], &details["interval"], &details["model"]),
                (&json!("customer"), &json!("total"), &json!(model))
            );
            let told = |name: &str| details.get(name).is_some();
            assert_eq!(
                [told("limit"), told("spent"), told("held")],
                [is_owner; 3],
                "{details}"
            );
            assert_eq!(refused.text.contains(&spent), is_owner, "{}", refused.text);
            assert_eq!(
                refused.text.contains("0.0000013 USD"),
                is_owner,
                "{message}"
            );
            let words = if is_owner {
                "the account's cap of 0.0000013 USD in all"
            } else {
                "a limit of this account has room for 0.00 USD"
            };
            assert!(message.contains(words), "{message}");
            assert!(message.contains("Ask the seller of this key"), "{message}");
        }
        let own = &gateway.get("/v1/key", &member).await.json()["data"];
        let left = own["limit_remaining"].as_f64();
        assert_eq!(left == Some(0.0), model.is_none(), "{own}");
        assert!(!own.to_string().contains(&spent), "{own}");
        let clear = CustomerChange {
            customer: gateway.account(&owner).await.customer.id,
            change: CustomerAct::ClearCap {
                interval: CapInterval::Total,
                model: model.map(str::to_owned),
            },
            act: act(),
        };
        gateway.ledger.perform(clear).await.unwrap();
    }
}

#[tokio::test]
async fn a_cap_of_one_model_leaves_the_others_alone() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("9").await;
    let of_model = |model: &str| {
        Change::SetCap(Cap {
            interval: CapInterval::Total,
            model: Some(model.to_owned()),
            limit: Amount::from_usd_str("0.000001").unwrap(),
        })
    };
    gateway.change(&key, of_model("another-model")).await;
    let body = chat("test-model", false);
    assert_eq!(
        gateway
            .post("/v1/chat/completions", &key, &body)
            .await
            .status,
        200
    );
    gateway.change(&key, of_model("test-model")).await;
    let refused = gateway.post("/v1/chat/completions", &key, &body).await;
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.status, &error["details"]["model"]),
        (429, &json!("test-model"))
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("in all for test-model") && message.contains("nothing else will reset"),
        "{message}"
    );
}

#[tokio::test]
async fn parallel_requests_on_a_cap_for_three_reach_the_upstream_three_times() {
    let gate = Gate::new();
    let held_back = gate.clone();
    let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
        speech_for(seen, "PONG").gated(&held_back)
    }))
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("9").await;
    // Each holds its declared 1,000 output tokens at $15 and a few input tokens.
    cap(&gateway, &key, CapInterval::Month, "0.0465").await;
    let mut body = chat("test-model", false);
    body["max_tokens"] = json!(1_000);
    let refused = Cell::new(0);
    let requests = (0..10).map(async |_| {
        let answer = gateway.post("/v1/chat/completions", &key, &body).await;
        refused.set(refused.get() + usize::from(answer.status == 429));
        answer
    });
    let answers = async { futures_util::future::join_all(requests).await };
    let release = async {
        while upstream.requests().len() + refused.get() < 10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        gate.open();
    };
    let both = async { tokio::join!(answers, release) };
    let (answers, ()) = gateway.waited_out(both).await;
    let served = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((served, upstream.requests().len()), (3, 3));
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        let code = refused.json()["error"]["code"].clone();
        assert_eq!(
            (refused.status, code),
            (429, json!("balance_in_use")),
            "{}",
            refused.text
        );
        assert_eq!(
            refused.header("retry-after"),
            Some("1"),
            "what is only held comes back"
        );
    }
    gateway.settled().await;
    let counted = gateway.account(&key).await.own.caps;
    let counts = counted.iter().next().unwrap().current;
    let spent = gateway.account(&key).await.customer.account.spent;
    assert_eq!((counts.charged, counts.held), (spent, Amount::ZERO));
}

#[tokio::test]
async fn a_stream_that_a_cap_ends_says_so_in_its_last_words() {
    let upstream = ScriptedUpstream::start(talking("")).await;
    let gateway = Gateway::before(&upstream).await;
    for family in Family::ALL {
        let stop = match family {
            Family::Chat => "length",
            Family::Responses => "incomplete",
            Family::Messages => "max_tokens",
        };
        let limited = Speech::new(family, &"word ".repeat(500)).stop(stop);
        upstream.follow(limited.stream());
        let key = gateway.key("9").await;
        cap(&gateway, &key, CapInterval::Day, "0.02").await;
        let mut body = ask(family, "test-model", true);
        let limit = family.protocol().limit_field(ChatLimit::MaxTokens, None);
        body[limit] = json!(60_000);
        let answer = gateway.post(path(family), &key, &body).await;
        assert!(
            answer
                .text
                .contains("(cap reached: this answer was limited to "),
            "{family}: {}",
            answer.text.len()
        );
        gateway.settled().await;
        let charge = &gateway.charges(&key).await[0];
        assert_eq!(
            charge.bill.as_ref().unwrap().end_reason,
            EndReason::Length,
            "{family}"
        );
        let used = charge.amount.checked_neg().unwrap();
        assert!(used <= Amount::from_usd_str("0.02").unwrap(), "{used}");
    }
}

/// A cap that starts again would not help a key whose balance is too small.
#[tokio::test]
async fn the_balance_is_judged_before_a_cap() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0.00001").await;
    cap(&gateway, &key, CapInterval::Day, "0.000001").await;
    let body = chat("test-model", false);
    let refused = gateway.post("/v1/chat/completions", &key, &body).await;
    let error = &refused.json()["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("out of balance"), "{message}");
    assert_eq!(
        (
            &error["details"]["available"],
            error["details"].get("interval")
        ),
        (&json!("0.00001"), None)
    );
}
