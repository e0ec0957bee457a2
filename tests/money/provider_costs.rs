//! What answers tell of their own cost is the operator's cost: sums, entries and alerts follow it, and nothing of it is charged or shown
//! to a customer.

use farebox_ledger::{Amount, CostSource, MarginBy, MarginOrder, MarginQuery, Margins, Timestamp};
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::classes::charge_of;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Speech};
use crate::support::{Answer, CATALOG, Gateway, TestKey, ask, path};

/// What 100 tokens in and 50 out cost at `cost` of the first target.
const LISTED: i64 = 100 * 1_500_000 + 50 * 7_500_000;

fn routes(first: &str, second: &str) -> String {
    format!(
        r#"
[provider.one]
base_url = "{first}"
speaks   = ["chat", "responses", "messages"]
keys     = [ {{ env = "KEY" }}, {{ env = "KEY_2" }} ]
[provider.two]
kind     = "xai"
base_url = "{second}"
speaks   = ["chat", "responses", "messages"]
key      = {{ env = "KEY" }}
[[route]]
slug    = "test-model"
targets = [ {{ provider = "one", model = "m", cost = {{ input = "1.50", output = "7.50" }} }} ]
[[route]]
slug    = "test-blind"
targets = [ {{ provider = "two", model = "b" }} ]
"#
    )
}

/// An answer whose usage says this, too.
fn telling(cost: &Value) -> Reply {
    let mut usage = json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150});
    let members = cost.as_object().unwrap().clone();
    usage.as_object_mut().unwrap().extend(members);
    Speech::new(Family::Chat, "one two three four five")
        .claims(usage)
        .whole()
}

/// USD of so many picodollars, as a provider writes it.
fn usd(picos: i64) -> Value {
    serde_json::from_str(&Amount::from_picos(picos).to_string()).unwrap()
}

async fn asked(gateway: &Gateway, key: &TestKey, slug: &str) -> Answer {
    let mut body = ask(Family::Chat, slug, false);
    // A prompt that may be a hundred tokens.
    body["messages"][0]["content"] = json!("word ".repeat(100));
    let answer = gateway.post(path(Family::Chat), key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

async fn sums(gateway: &Gateway, by: MarginBy) -> Margins {
    let query = MarginQuery {
        by,
        from: Timestamp::default(),
        to: Timestamp::from_millis(farebox::clock::now().millis() + 1),
        order: MarginOrder::Name,
        reverse: false,
        limit: 99,
    };
    gateway.ledger.margins(query).await.unwrap()
}

#[tokio::test]
async fn money_is_the_sum_of_what_providers_told() {
    // Near the list, in dollars; and, where there is no list, in ticks of 1e-10 dollars.
    let near = |number: usize| LISTED - 20_000_000 + 1_000_000 * i64::try_from(number).unwrap();
    let ticks = |number: usize| 3 + 7 * i64::try_from(number).unwrap();
    let one = ScriptedUpstream::start(Script::by(move |_, number| {
        telling(&json!({"cost": usd(near(number))}))
    }))
    .await;
    let two = ScriptedUpstream::start(Script::by(move |_, number| {
        telling(&json!({"cost_in_usd_ticks": ticks(number)}))
    }))
    .await;
    let gateway = Gateway::start(CATALOG, &routes(&one.base_url(), &two.base_url())).await;
    let (first, second) = (gateway.key("5").await, gateway.key("5").await);
    for _ in 0..6 {
        for key in [&first, &second] {
            let answer = asked(&gateway, key, "test-model").await;
            let charge = answer.header("x-farebox-cost").unwrap();
            let shown = answer.json()["usage"]["cost"].to_string();
            assert_eq!(shown, charge, "what is charged, not what was told");
        }
        asked(&gateway, &first, "test-blind").await;
    }
    gateway.settled().await;
    let told = |upstream: &ScriptedUpstream, of: &dyn Fn(usize) -> i64| -> i64 {
        (0..upstream.requests().len()).map(of).sum()
    };
    let (by_one, by_two) = (told(&one, &near), told(&two, &|number| ticks(number) * 100));
    let costs = |margins: &Margins| -> Vec<(String, i64, i64)> {
        let row = |row: &farebox_ledger::MarginRow| {
            (row.name.clone(), row.cost.picos(), row.told.picos())
        };
        margins.rows.iter().map(row).collect()
    };
    for (by, names) in [
        (MarginBy::Provider, ["one", "two"]),
        (MarginBy::Target, ["one/m", "two/b"]),
        (MarginBy::Slug, ["test-model", "test-blind"]),
    ] {
        let mut expected = [
            (names[0].to_owned(), by_one, by_one),
            (names[1].to_owned(), by_two, by_two),
        ];
        let mut found = costs(&sums(&gateway, by).await);
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{by:?}");
    }
    for by in [
        MarginBy::Key,
        MarginBy::Customer,
        MarginBy::Account,
        MarginBy::Class,
        MarginBy::Day,
    ] {
        let total = sums(&gateway, by).await.total;
        let all = Amount::from_picos(by_one + by_two);
        assert_eq!((total.cost, total.told), (all, all), "{by:?}");
    }
    let accounts = sums(&gateway, MarginBy::Account).await;
    assert!(
        accounts.rows.iter().any(|row| row.name.starts_with("one/")),
        "{accounts:?}"
    );
    assert_eq!(
        gateway.ledger.verify().await.unwrap().faults,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn each_service_tells_its_cost_where_its_kind_says() {
    let ticks = LISTED / 100 + 1;
    let own_key = json!({"cost": usd(20_000_000), "is_byok": true, "cost_details": {"upstream_inference_cost": usd(LISTED)}});
    for (kind, said, told) in [
        ("", json!({"cost": usd(LISTED + 1)}), Some(LISTED + 1)),
        ("", json!({"cost_in_usd_ticks": ticks}), None),
        (
            "openrouter",
            json!({"cost": usd(LISTED + 1)}),
            Some(LISTED + 1),
        ),
        ("openrouter", json!({"cost_in_usd_ticks": ticks}), None),
        ("openrouter", own_key, Some(LISTED + 20_000_000)),
        ("xai", json!({"cost": usd(1)}), None),
        (
            "xai",
            json!({"cost_in_usd_ticks": ticks}),
            Some(LISTED + 100),
        ),
        // In whatever unit it is: nothing is known of it, and nothing doubted.
        ("openai", json!({"cost": 12_345}), None),
        ("deepseek", json!({"cost": "free"}), None),
    ] {
        let upstream = ScriptedUpstream::tolerant(telling(&said)).await;
        let url = upstream.base_url();
        let mut routes = routes(&url, &url);
        if !kind.is_empty() {
            routes = routes.replace(
                "[provider.one]",
                &format!("[provider.one]\nkind = \"{kind}\""),
            );
        }
        let gateway = Gateway::start(CATALOG, &routes).await;
        let key = gateway.key("5").await;
        asked(&gateway, &key, "test-model").await;
        let bill = charge_of(&gateway, &key).await;
        let source = told.map_or(CostSource::Listed, |_| CostSource::Told);
        let told = told.map(Amount::from_picos);
        let found = (bill.provider_cost, bill.own_cost(), bill.cost_source);
        let own = told.or(Some(Amount::from_picos(LISTED)));
        assert_eq!(found, (told, own, source), "{kind} {said}");
        let status = gateway.ask("/status").await.text;
        assert!(!status.contains("cost_doubted"), "{kind} {said}: {status}");
    }
}

#[tokio::test]
async fn a_told_cost_that_cannot_be_is_kept_and_not_used() {
    let listed = Amount::from_picos(LISTED);
    for (told, kept, unread) in [
        (
            json!({"cost": usd(LISTED * 10 + 1)}),
            Some(LISTED * 10 + 1),
            None,
        ),
        (
            json!({"cost": usd(LISTED / 10 - 1)}),
            Some(LISTED / 10 - 1),
            None,
        ),
        (json!({"cost": 0}), Some(0), None),
        (json!({"cost": -0.0005}), None, Some("-0.0005")),
        (json!({"cost": "0.0005"}), None, Some("\"0.0005\"")),
        (json!({"cost": true}), None, Some("true")),
    ] {
        let upstream = ScriptedUpstream::tolerant(telling(&told)).await;
        let url = upstream.base_url();
        let gateway = Gateway::start(CATALOG, &routes(&url, &url)).await;
        let key = gateway.key("5").await;
        let answer = asked(&gateway, &key, "test-model").await;
        let charge = answer.header("x-farebox-cost").unwrap();
        let shown = answer.json()["usage"]["cost"].to_string();
        assert_eq!(shown, charge, "{told}");
        let bill = charge_of(&gateway, &key).await;
        assert_eq!(
            (bill.own_cost(), bill.cost_source),
            (Some(listed), CostSource::Doubted),
            "{told}"
        );
        assert_eq!(bill.provider_cost.map(Amount::picos), kept, "{told}");
        let words = bill.facts.get("unread_cost").map(String::as_str);
        assert_eq!(words, unread, "{told}");
        let total = sums(&gateway, MarginBy::Provider).await.total;
        assert_eq!((total.cost, total.told), (listed, Amount::ZERO), "{told}");
        let status = gateway.ask("/status").await.text;
        assert!(status.contains("\"cost_doubted\""), "{told}: {status}");
        let receipt = answer.header("x-request-id").unwrap();
        let receipt = gateway
            .get(&format!("/v1/generation?id={receipt}"), &key)
            .await;
        assert!(!receipt.text.contains("unread_cost"), "{}", receipt.text);
    }
}

#[tokio::test]
async fn a_list_that_is_over_two_percent_off_is_an_alert_with_both_figures() {
    for (percent, requests, alerts) in [(103, 100, true), (103, 99, false), (101, 100, false)] {
        let told = LISTED * percent / 100;
        let reply = telling(&json!({"cost": usd(told)}));
        let upstream = ScriptedUpstream::start(Script::by(move |_, _| reply.clone())).await;
        let url = upstream.base_url();
        let gateway = Gateway::start(CATALOG, &routes(&url, &url)).await;
        let key = gateway.key("5").await;
        for _ in 0..requests {
            asked(&gateway, &key, "test-model").await;
        }
        gateway.settled().await;
        let status = gateway.ask("/status").await.text;
        let what = format!("{percent} %, {requests}: {status}");
        assert_eq!(status.contains("\"cost_differs\""), alerts, "{what}");
        for picos in [told * requests, LISTED * requests] {
            let sum = Amount::from_picos(picos).to_string();
            assert!(!alerts || status.contains(&sum), "{sum}: {what}");
        }
    }
}
