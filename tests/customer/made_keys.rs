//! Keys that a program makes with an owner key over `/v1/keys`: the whole surface, what it refuses, and that no purse is passed in any race.

use std::collections::BTreeSet;
use std::time::Duration;

use farebox_ledger::key::Change;
use farebox_ledger::{Amount, Cap, CapInterval, KeySettings, Secret};
use reqwest::Method;
use serde_json::{Value, json};

use super::sessions::gateway;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, TestKey, chat, pass, talking};

/// Calls a path with a key, and with a name under which a repetition is recognised.
async fn call(
    gateway: &Gateway,
    key: &TestKey,
    (method, path): (Method, &str),
    (body, once): (Option<&Value>, Option<&str>),
) -> Answer {
    let url = format!("{}{path}", gateway.base);
    let mut request = gateway.client.request(method, url).bearer_auth(&key.secret);
    if let Some(body) = body {
        request = request.json(body);
    }
    if let Some(once) = once {
        request = request.header("idempotency-key", once);
    }
    Answer::read(request.send().await.unwrap()).await
}

/// Makes a key, as often as the rate of free paths turns it away.
async fn make(gateway: &Gateway, owner: &TestKey, body: &Value) -> Answer {
    loop {
        let made = call(
            gateway,
            owner,
            (Method::POST, "/v1/keys"),
            (Some(body), None),
        )
        .await;
        let is_hasty = made.status == 429 && !made.text.contains("a minute");
        if !is_hasty {
            return made;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn change(gateway: &Gateway, owner: &TestKey, hash: &str, body: &Value) -> Answer {
    let path = format!("/v1/keys/{hash}");
    call(gateway, owner, (Method::PATCH, &path), (Some(body), None)).await
}

async fn read(gateway: &Gateway, owner: &TestKey, path: &str) -> Answer {
    call(gateway, owner, (Method::GET, path), (None, None)).await
}

/// The key of an answer with its secret.
fn secret(answer: &Answer) -> TestKey {
    let secret = answer.json()["key"].as_str().expect("a secret").to_owned();
    let (id, _) = Secret::parse(&secret).unwrap();
    TestKey { id, secret }
}

async fn ask(gateway: &Gateway, key: &TestKey) -> Answer {
    let body = chat("test-model", false);
    gateway.post("/v1/chat/completions", key, &body).await
}

#[tokio::test]
async fn an_owner_key_makes_lists_changes_and_ends_keys() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("5").await;
    let body = json!({ "name": "run 1", "limit": 0.2, "limit_reset": "daily", "expires_in": 3600, "models": ["test-model"], "metadata": { "task": "17" } });
    let made = make(&gateway, &owner, &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let run = secret(&made);
    let data = made.json()["data"].clone();
    assert_eq!(data["hash"], run.id.to_string());
    assert_eq!(
        (&data["name"], &data["label"]),
        (&json!("run 1"), &json!("run 1"))
    );
    assert_eq!(
        (
            &data["limit"],
            &data["limit_remaining"],
            &data["limit_reset"]
        ),
        (&json!(0.2), &json!(0.2), &json!("daily"))
    );
    assert_eq!(
        (&data["disabled"], &data["usage"], &data["models"]),
        (&json!(false), &json!(0.0), &json!(["test-model"]))
    );
    assert_eq!(data["metadata"], json!({ "task": "17" }));
    assert!(!data.to_string().contains(&run.secret));

    assert_eq!(ask(&gateway, &run).await.status, 200);
    let path = format!("/v1/keys/{}", run.id);
    let one = read(&gateway, &owner, &path).await.json()["data"].clone();
    assert!(one["usage"].as_f64().unwrap() > 0.0, "{one}");
    assert_eq!(one["usage"], one["usage_daily"]);
    // What the key is told of itself is the same.
    let own = gateway.get("/v1/key", &run).await.json()["data"].clone();
    for member in [
        "limit",
        "limit_remaining",
        "limit_reset",
        "usage",
        "expires_at",
    ] {
        assert_eq!(own[member], one[member], "{member}");
    }

    let other = make(&gateway, &owner, &json!({ "label": "run 2", "limit": "1" })).await;
    let other = secret(&other);
    let list = read(&gateway, &owner, "/v1/keys?limit=1").await.json();
    assert_eq!(list["data"][0]["hash"], other.id.to_string());
    assert_eq!(
        (&list["has_more"], &list["next_cursor"]),
        (&json!(true), &json!(other.id.to_string()))
    );
    let next = format!("/v1/keys?after={}", other.id);
    let list = read(&gateway, &owner, &next).await.json();
    assert_eq!(list["data"][0]["hash"], run.id.to_string());
    assert_eq!(list["has_more"], false);

    let renamed = change(
        &gateway,
        &owner,
        &run.id.to_string(),
        &json!({ "name": "run one", "limit": 0.1 }),
    )
    .await;
    assert_eq!(renamed.status, 200, "{}", renamed.text);
    let renamed = renamed.json()["data"].clone();
    assert_eq!(
        (&renamed["name"], &renamed["limit"], &renamed["metadata"]),
        (&json!("run one"), &json!(0.1), &json!({ "task": "17" }))
    );
    let stopped = change(
        &gateway,
        &owner,
        &run.id.to_string(),
        &json!({ "disabled": true }),
    )
    .await;
    assert_eq!(stopped.json()["data"]["disabled"], true);
    assert_eq!(ask(&gateway, &run).await.status, 403);
    let hashes = async |path: &str| -> usize {
        let list = read(&gateway, &owner, path).await.json();
        list["data"].as_array().unwrap().len()
    };
    assert_eq!(hashes("/v1/keys").await, 1);
    assert_eq!(hashes("/v1/keys?include_disabled=true").await, 2);
    change(
        &gateway,
        &owner,
        &run.id.to_string(),
        &json!({ "disabled": false }),
    )
    .await;
    assert_eq!(ask(&gateway, &run).await.status, 200);
    let gone = call(&gateway, &owner, (Method::DELETE, &path), (None, None)).await;
    assert_eq!(
        (gone.status, gone.json()),
        (200, json!({ "deleted": true }))
    );
    assert_eq!(ask(&gateway, &run).await.status, 403);
    assert_eq!(read(&gateway, &owner, &path).await.status, 404);
}

#[tokio::test]
async fn a_repeated_request_makes_one_key_and_reissue_replaces_a_lost_secret() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("5").await;
    let order = json!({ "name": "run", "limit": 1 });
    let send = async |body: &Value, once: &str| {
        call(
            &gateway,
            &owner,
            (Method::POST, "/v1/keys"),
            (Some(body), Some(once)),
        )
        .await
    };
    let first = send(&order, "run-1").await;
    let again = send(&order, "run-1").await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.json()["data"], first.json()["data"]);
    assert_eq!(again.json()["key"], Value::Null);
    let other = send(&json!({ "name": "run", "limit": 2 }), "run-1").await;
    assert_eq!(
        (other.status, &other.json()["error"]["code"]),
        (422, &json!("idempotency_key_reused"))
    );
    assert_eq!(send(&order, "two words").await.status, 400);
    let hash = first.json()["data"]["hash"].as_str().unwrap().to_owned();
    let fresh = secret(&change(&gateway, &owner, &hash, &json!({ "reissue": true })).await);
    assert_eq!(ask(&gateway, &secret(&first)).await.status, 401);
    assert_eq!(ask(&gateway, &fresh).await.status, 200);
    let late = change(&gateway, &owner, &hash, &json!({ "reissue": true })).await;
    assert_eq!(late.status, 400, "{}", late.text);
    assert!(late.text.contains("has been used"), "{}", late.text);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_makes_nothing() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("2").await;
    for (body, at) in [
        (json!({ "name": "a" }), "limit"),
        (json!({ "name": "a", "limit": 0 }), "limit"),
        (json!({ "name": "a", "limit": -1 }), "limit"),
        (json!({ "name": "a", "limit": "0.0000000000001" }), "limit"),
        (json!({ "name": "a", "limit": "2.01" }), "limit"),
        (json!({ "limit": 1 }), "name"),
        (json!({ "name": "a\nb", "limit": 1 }), ""),
        (
            json!({ "name": "a", "limit": 1, "metadata": ["17"] }),
            "metadata",
        ),
        (
            json!({ "name": "a", "limit": 1, "metadata": { "task": "7".repeat(257) } }),
            "",
        ),
        (
            json!({ "name": "a", "limit": 1, "metadata": { "key": "sk-fb-" } }),
            "",
        ),
        (
            json!({ "name": "a", "limit": 1, "expires_in": 2_592_001 }),
            "expires_in",
        ),
        (
            json!({ "name": "a", "limit": 1, "limit_reset": "hourly" }),
            "limit_reset",
        ),
        (
            json!({ "name": "a", "limit": 1, "unlimited": true }),
            "unlimited",
        ),
        (json!([]), ""),
    ] {
        let refused = make(&gateway, &owner, &body).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text);
        let param = refused.json()["error"]["param"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert_eq!(param, at, "{body}: {}", refused.text);
    }
    let above = make(&gateway, &owner, &json!({ "name": "a", "limit": 3 })).await;
    assert_eq!(above.json()["error"]["code"], "limit_above_room");
    assert!(
        above.text.contains("3.00 USD") && above.text.contains("2.00 USD"),
        "{}",
        above.text
    );
    let poor = gateway.owner("0").await;
    let refused = make(&gateway, &poor, &json!({ "name": "a", "limit": 0.01 })).await;
    assert_eq!(refused.json()["error"]["code"], "limit_above_room");
    let list = read(&gateway, &owner, "/v1/keys").await.json();
    assert_eq!(list["data"], json!([]));
    for path in [
        "/v1/keys?page=2",
        "/v1/keys?limit=0",
        "/v1/keys?limit=x",
        "/v1/keys?include_disabled=perhaps",
    ] {
        pass(Duration::from_millis(200)).await;
        assert_eq!(read(&gateway, &owner, path).await.status, 400, "{path}");
    }
}

#[tokio::test]
async fn members_and_whoever_may_not_act_make_nothing() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("5").await;
    let member = gateway.member(&owner, KeySettings::default()).await;
    let order = json!({ "name": "a", "limit": 1 });
    let made = secret(&make(&gateway, &owner, &order).await);
    for who in [&member, &made] {
        let refused = make(&gateway, who, &order).await;
        assert_eq!(refused.status, 403, "{}", refused.text);
        assert_eq!(refused.json()["error"]["code"], "owner_key_required");
        assert_eq!(read(&gateway, who, "/v1/keys").await.status, 403);
    }
    // Another owner's keys, and those that nobody made here, do not exist.
    let stranger = gateway.owner("5").await;
    for (who, hash) in [
        (&stranger, made.id),
        (&owner, member.id),
        (&owner, owner.id),
    ] {
        let path = format!("/v1/keys/{hash}");
        assert_eq!(read(&gateway, who, &path).await.status, 404);
        let deleted = call(&gateway, who, (Method::DELETE, &path), (None, None)).await;
        assert_eq!(deleted.status, 404);
        assert_eq!(
            change(
                &gateway,
                who,
                &hash.to_string(),
                &json!({ "disabled": true })
            )
            .await
            .status,
            404
        );
    }
    // What the seller has blocked stays blocked.
    gateway.change(&made, Change::Block).await;
    let kept = change(
        &gateway,
        &owner,
        &made.id.to_string(),
        &json!({ "disabled": false }),
    )
    .await;
    assert_eq!(kept.status, 400, "{}", kept.text);
    gateway.change(&owner, Change::Block).await;
    assert_eq!(make(&gateway, &owner, &order).await.status, 403);
}

#[tokio::test]
async fn a_cap_of_the_maker_bounds_what_it_made_and_says_no_sums() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("5").await;
    let made = secret(&make(&gateway, &owner, &json!({ "name": "a", "limit": 1 })).await);
    let cap = Cap {
        interval: CapInterval::Total,
        model: None,
        limit: Amount::from_usd_str("0.000001").unwrap(),
    };
    gateway.change(&owner, Change::SetCap(cap)).await;
    let refused = ask(&gateway, &made).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    let error = refused.json()["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("a limit of this account has room for 0.000001 USD"),
        "{message}"
    );
    assert_eq!(error["details"]["scope"], "customer");
    assert_eq!(error["details"]["spent"], Value::Null);
    let own = gateway.get("/v1/key", &made).await.json()["data"].clone();
    assert_eq!(own["limit_remaining"], json!(0.000001));
}

#[tokio::test]
async fn of_a_hundred_at_once_as_many_are_made_as_may_be() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("50").await;
    let orders = (0..100).map(|run| {
        let (gateway, owner) = (&gateway, &owner);
        async move {
            make(
                gateway,
                owner,
                &json!({ "name": format!("run {run}"), "limit": 0.2 }),
            )
            .await
        }
    });
    let answers = futures_util::future::join_all(orders).await;
    let made = answers.iter().filter(|answer| answer.status == 201);
    let hashes: BTreeSet<String> = made.map(|answer| secret(answer).id.to_string()).collect();
    assert_eq!(hashes.len(), 60);
    let refused = answers.iter().find(|answer| answer.status != 201).unwrap();
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert!(
        refused.text.contains("at most 60 keys a minute"),
        "{}",
        refused.text
    );
}

/// An agent framework gives each of fifty runs that go side by side a purse of its own.
#[tokio::test]
async fn fifty_runs_pass_no_purse_and_the_owners_balance_ends_exact() {
    // Two thousand tokens, three cents.
    let upstream = ScriptedUpstream::start(talking(&"word ".repeat(2_000))).await;
    let gateway = Gateway::before(&upstream).await;
    let owner = gateway.owner("9").await;
    let purse = Amount::from_usd_str("0.20").unwrap();
    let runs = (0..50).map(|run| {
        let (gateway, owner) = (&gateway, &owner);
        async move {
            let order = json!({ "name": format!("run {run}"), "limit": 0.20, "expires_in": 600 });
            let made = make(gateway, owner, &order).await;
            assert_eq!(made.status, 201, "{}", made.text);
            let key = secret(&made);
            // Three steps of the run at a time, until its purse is empty.
            let mut served = 0;
            for _ in 0..6 {
                let steps = (0..3).map(|_| ask(gateway, &key));
                for step in futures_util::future::join_all(steps).await {
                    assert!([200, 429].contains(&step.status), "{}", step.text);
                    served += usize::from(step.status == 200);
                }
            }
            assert!(served > 0);
            key
        }
    });
    let keys = futures_util::future::join_all(runs).await;
    gateway.settled().await;
    let mut spent = Amount::ZERO;
    for key in &keys {
        let charges = gateway.charges(key).await;
        let own = charges
            .iter()
            .map(|entry| entry.amount.checked_neg().unwrap());
        let own = Amount::checked_sum(own).unwrap();
        assert!(own <= purse, "{own}");
        assert!(own.is_positive());
        spent = spent.checked_add(own).unwrap();
    }
    let account = gateway.account(&owner).await.customer.account;
    assert_eq!((account.spent, account.held), (spent, Amount::ZERO));
    let left = Amount::from_usd_str("9")
        .unwrap()
        .checked_sub(spent)
        .unwrap();
    assert_eq!(account.balance(), left);
    gateway.ledger.verify().await.unwrap();
}
