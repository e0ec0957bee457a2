//! A customer with a price list is charged by it, whatever it asks and however it is served, and is told by it.
//!
//! What is expected is reckoned from the tokens of the upstream that bills (`support/billing.rs`) and from the table below, which says the
//! prices of the catalog once more.

use std::collections::HashMap;

use farebox::proxy::record;
use farebox_ledger::{
    Amount, CustomerAct, CustomerChange, CustomerEdit, Ledger, Perform as _, Said,
};
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::customer::sessions::Visitor;
use crate::support::billing::{Bills, Manner};
use crate::support::upstream::classes::{Class, Serves, asked};
use crate::support::upstream::{Gate, Script, ScriptedUpstream};
use crate::support::{CATALOG, Gateway, TestKey, act, ask, path, routes, speech_for, talking};

const TEXT: &str = "one two three four five six seven eight nine ten eleven twelve";
const LISTS: [&str; 4] = ["cheap", "bare", "table", "marked"];

const PRICED: &str = r#"
[[model]]
model             = "Test"
slug              = "direct"
provider          = "Tests"
best_path         = "chat"
best_environments = ["tests"]
price             = { input = "3.00", output = "15.00", cache_read = "0.30", cache_write = "3.75", classes = { flex = "0.5", fast = "2", us = "1.1" } }
capabilities      = ["tools", "streaming"]
limits            = { context = 200_000, max_output = 64_000 }

[[model]]
model             = "Crossed"
slug              = "crossed"
provider          = "Tests"
best_path         = "messages"
best_environments = ["tests"]
price             = { input = "1.00", output = "2.00" }
capabilities      = ["tools", "streaming"]
limits            = { context = 200_000, max_output = 64_000 }

[[price_list]]
name = "cheap"
price.direct = { input = "2.00", output = "10.00", cache_read = "0.20", cache_write = "2.50", classes = { flex = "0.5", fast = "2", us = "1.1" } }

[[price_list]]
name = "bare"
price.direct  = { input = "4.00", output = "20.00" }
price.crossed = { input = "5.00", output = "25.00", classes = { fast = "2" } }

[[price_list]]
name = "table"
only = true
price.direct = { input = "2.50", output = "12.50", cache_read = "0.25", cache_write = "3.125", classes = { fast = { input = "6.00", output = "30.00", cache_read = "0.60", cache_write = "7.50" } } }

[[price_list]]
name   = "marked"
markup = "1.5"
"#;

fn priced_routes(base_url: &str) -> String {
    format!(
        r#"
[provider.up]
base_url = "{base_url}"
speaks   = ["chat", "responses", "messages"]
key      = {{ env = "K" }}

[provider.native]
base_url = "{base_url}"
speaks   = ["messages"]
key      = {{ env = "K" }}

[[route]]
slug    = "direct"
targets = [ {{ provider = "up", model = "u", cost = {{ input = "1.20", output = "6.00", cache_read = "0.12", cache_write = "1.50", classes = {{ flex = "0.5" }} }} }} ]

[[route]]
slug    = "crossed"
targets = [ {{ provider = "native", model = "u", cost = {{ input = "0.80", output = "1.60" }} }} ]
"#
    )
}

/// Picodollars of a token of fresh input, output, input from the cache and to it; `None` where that is not sold.
fn rates(list: &str, slug: &str, class: Class) -> Option<[i64; 4]> {
    const ALL: &[Class] = &[Class::Flex, Class::Fast, Class::Us, Class::FastUs];
    let (standard, sold): ([i64; 4], &[Class]) = match (list, slug) {
        ("cheap", "direct") => ([2_000_000, 10_000_000, 200_000, 2_500_000], ALL),
        ("cheap", "crossed") => ([1_000_000, 2_000_000, 1_000_000, 1_000_000], &[]),
        ("bare", "direct") => ([4_000_000, 20_000_000, 4_000_000, 4_000_000], &[]),
        ("bare", "crossed") => (
            [5_000_000, 25_000_000, 5_000_000, 5_000_000],
            &[Class::Fast],
        ),
        ("table", "direct") if class == Class::Fast => {
            return Some([6_000_000, 30_000_000, 600_000, 7_500_000]);
        }
        ("table", "direct") => ([2_500_000, 12_500_000, 250_000, 3_125_000], &[]),
        ("marked", "direct") => ([1_800_000, 9_000_000, 180_000, 2_250_000], &[Class::Flex]),
        ("marked", "crossed") => ([1_200_000, 2_400_000, 1_200_000, 1_200_000], &[]),
        _ => return None,
    };
    let is_sold = class == Class::Standard || sold.contains(&class);
    is_sold.then(|| standard.map(|rate| rate * class.times() / 1_000))
}

pub(crate) async fn put_on(ledger: &dyn Ledger, key: &TestKey, list: Option<&str>) {
    let customer = ledger.find_key(key.id).await.unwrap().unwrap().customer.id;
    let price_list = list.map_or(Said::Clear, |name| Said::Set(name.to_owned()));
    let edit = CustomerEdit {
        price_list,
        ..CustomerEdit::default()
    };
    let change = CustomerChange {
        customer,
        change: CustomerAct::Edit(edit),
        act: act(),
    };
    ledger.perform(change).await.unwrap();
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll<T: Copy>(&mut self, of: &[T]) -> T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        of[(self.0 % of.len() as u64) as usize]
    }

    fn request(&mut self, family: Family, slug: &str) -> Value {
        let mut body = ask(family, slug, self.roll(&[false, true]));
        let members = match family {
            Family::Chat | Family::Responses => self.roll(&[
                "{}",
                "{}",
                r#"{"service_tier":"flex"}"#,
                r#"{"service_tier":"priority"}"#,
            ]),
            Family::Messages => self.roll(&[
                "{}",
                "{}",
                r#"{"speed":"fast"}"#,
                r#"{"inference_geo":"us"}"#,
                r#"{"speed":"fast","inference_geo":"us"}"#,
            ]),
        };
        let members: serde_json::Map<String, Value> = serde_json::from_str(members).unwrap();
        body.as_object_mut().unwrap().extend(members);
        let text =
            format!("count {} sheep. ", self.roll(&[7, 11, 13])).repeat(self.roll(&[1, 40, 90]));
        if family == Family::Messages && self.roll(&[true, false]) {
            let mark = json!({"type": "ephemeral"});
            body["messages"][0]["content"] =
                json!([{"type": "text", "text": text, "cache_control": mark}]);
        } else if family == Family::Responses {
            body["input"][0]["content"] = json!(text);
        } else {
            body["messages"][0]["content"] = json!(text);
        }
        body
    }
}

#[tokio::test]
async fn two_thousand_requests_over_four_lists_are_charged_as_the_provider_counts_at_their_prices()
{
    let bills = Bills::default();
    let manner = Manner {
        serves: Serves::AsAsked,
        caches: true,
        remembers: true,
        ..Manner::default()
    };
    let upstream = ScriptedUpstream::tolerant(bills.answering(TEXT, manner)).await;
    let gateway = Gateway::start(PRICED, &priced_routes(&upstream.base_url())).await;
    let mut keys = HashMap::new();
    for list in LISTS {
        let key = gateway.key("100").await;
        put_on(&*gateway.ledger, &key, Some(list)).await;
        keys.insert(list, key);
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut expected: HashMap<&str, HashMap<String, i64>> = HashMap::new();
    let (mut refused, mut cached) = (0, [0, 0]);
    for _ in 0..2_000 {
        let (list, slug) = (
            dice.roll(&LISTS),
            dice.roll(&["direct", "direct", "crossed"]),
        );
        let family = dice.roll(&Family::ALL);
        let body = dice.request(family, slug);
        let class = asked(&body);
        let before = bills.all().len();
        let answer = gateway.post(path(family), &keys[list], &body).await;
        let what = format!("{list} {family} {slug} {class:?}: {}", answer.text);
        // No target of it has words for flex.
        let has_words = (slug, class) != ("crossed", Class::Flex);
        let Some(rates) = rates(list, slug, class).filter(|_| has_words) else {
            let not_offered = (list, slug) == ("table", "crossed");
            assert_eq!(answer.status, if not_offered { 404 } else { 400 }, "{what}");
            assert_eq!(bills.all().len(), before, "{what}");
            refused += 1;
            continue;
        };
        assert_eq!(answer.status, 200, "{what}");
        let id = answer.header("x-request-id").unwrap().to_owned();
        let billed = bills.all();
        assert_eq!(billed.len(), before + 1, "{what}");
        let billed = billed[before];
        cached = [cached[0] + billed.cached[0], cached[1] + billed.cached[1]];
        expected
            .entry(list)
            .or_default()
            .insert(id, billed.at(rates));
    }
    gateway.settled().await;
    assert!((200..1_400).contains(&refused), "{refused}");
    assert!(cached.iter().all(|tokens| *tokens > 1_000), "{cached:?}");
    for list in LISTS {
        let charges = gateway.charges(&keys[list]).await;
        let charged = charges.iter().map(|entry| {
            let id = record::request_id(entry.operation);
            (id, -entry.amount.picos())
        });
        assert_eq!(charged.collect::<HashMap<_, _>>(), expected[list], "{list}");
        let account = gateway.account(&keys[list]).await.customer.account;
        let sum: i64 = expected[list].values().sum();
        assert_eq!(
            (account.spent.picos(), account.held),
            (sum, Amount::ZERO),
            "{list}"
        );
    }
}

#[tokio::test]
async fn a_list_is_told_in_models_refusals_and_receipts_as_it_is_charged() {
    let upstream = ScriptedUpstream::start(talking(TEXT)).await;
    let gateway = Gateway::start(PRICED, &priced_routes(&upstream.base_url())).await;
    let (usual, cheap) = (gateway.key("0.0005").await, gateway.key("0.0005").await);
    put_on(&*gateway.ledger, &cheap, Some("cheap")).await;
    let models = gateway.get("/v1/models", &cheap).await.json();
    let entry = &models["data"][0];
    assert_eq!(entry["id"], "direct");
    assert_eq!(entry["price"]["input"], "2.00");
    assert_eq!(entry["pricing"]["fast"]["output"], "20.00");
    let shown = "in $2.00 · out $10.00 · cache read $0.20 · cache write $2.50 per 1M tokens · flex ×0.5 · fast ×2 · us ×1.1";
    assert_eq!(entry["service_price"], shown);
    let one = gateway.get("/v1/models/direct", &cheap).await.json();
    assert_eq!(&one, entry);
    let visitor = Visitor::signed_in(&gateway, &cheap).await;
    let page = visitor.get("/models").await.text;
    assert!(page.contains("$2.50") && !page.contains("$3.75"), "{page}");
    // Every rate is two thirds: so is what is needed, and the rest buys half as much again.
    let mut long = ask(Family::Chat, "direct", false);
    long["max_tokens"] = json!(60_000);
    let mut refused = Vec::new();
    for key in [&usual, &cheap] {
        let answer = gateway.post(path(Family::Chat), key, &long).await;
        assert_eq!(answer.status, 429, "{}", answer.text);
        let details = answer.json()["error"]["details"].clone();
        let needed = Amount::from_usd_str(details["needed"].as_str().unwrap()).unwrap();
        refused.push((
            needed.picos(),
            details["affordable_output_tokens"].as_i64().unwrap(),
        ));
    }
    let [(usual_needs, usual_buys), (cheap_needs, cheap_buys)] = refused[..] else {
        unreachable!()
    };
    assert_eq!(usual_needs * 2, cheap_needs * 3);
    assert!(usual_buys < cheap_buys && cheap_buys < 50, "{refused:?}");
    // What is told to be affordable is, by this list alone.
    let mut fitting = long;
    fitting["max_tokens"] = json!(cheap_buys);
    let dear = gateway.post(path(Family::Chat), &usual, &fitting).await;
    assert_eq!(dear.status, 429, "{}", dear.text);
    let answer = gateway.post(path(Family::Chat), &cheap, &fitting).await;
    // A receipt has the rates.
    assert_eq!(answer.status, 200, "{}", answer.text);
    gateway.settled().await;
    let charge = gateway.charges(&cheap).await.pop().unwrap();
    let lines = charge.bill.clone().unwrap().lines;
    let rates: Vec<i64> = lines.iter().map(|line| line.rate.picos()).collect();
    assert_eq!(rates, [2_000_000, 10_000_000]);
    let id = answer.header("x-request-id").unwrap();
    let receipt = gateway
        .get(&format!("/v1/generation?id={id}"), &cheap)
        .await;
    let lines = receipt.text;
    assert!(
        lines.contains("0.000002") && lines.contains("0.00001"),
        "{lines}"
    );
}

#[tokio::test]
async fn a_months_statement_is_what_was_charged_at_a_lists_prices() {
    let bills = Bills::default();
    let upstream = ScriptedUpstream::tolerant(bills.answering(TEXT, Manner::default())).await;
    let gateway = Gateway::start(PRICED, &priced_routes(&upstream.base_url())).await;
    for list in ["cheap", "bare", "marked"] {
        let owner = gateway.owner("5").await;
        put_on(&*gateway.ledger, &owner, Some(list)).await;
        let mut expected = HashMap::new();
        for (number, family) in Family::ALL.into_iter().cycle().take(7).enumerate() {
            let slug = ["direct", "crossed"][number % 2];
            let body = ask(family, slug, number % 3 == 0);
            let answer = gateway.post(path(family), &owner, &body).await;
            assert_eq!(answer.status, 200, "{list} {slug}: {}", answer.text);
            let billed = *bills.all().last().unwrap();
            let charge = billed.at(rates(list, slug, Class::Standard).unwrap());
            *expected.entry(slug).or_insert(0) += charge;
        }
        gateway.settled().await;
        let visitor = Visitor::signed_in(&gateway, &owner).await;
        let page = visitor.get("/payments").await;
        let month = page.text.split("/dashboard/statements/").nth(1).unwrap();
        let month = month.get(..7).unwrap();
        let statement = visitor
            .get(&format!("/statements/{month}.json"))
            .await
            .json();
        let picos = |value: &Value| {
            Amount::from_usd_str(value.as_str().unwrap())
                .unwrap()
                .picos()
        };
        let used = statement["used"].as_array().unwrap().iter();
        let used: HashMap<&str, i64> = used
            .map(|used| (used["model"].as_str().unwrap(), picos(&used["charged"])))
            .collect();
        assert_eq!(used, expected, "{list}: {statement}");
        let sum: i64 = expected.values().sum();
        assert_eq!(picos(&statement["charged"]), sum, "{list}: {statement}");
        let left = picos(&json!("5")) - sum;
        assert_eq!(picos(&statement["closing"]), left, "{list}: {statement}");
    }
}

#[tokio::test]
async fn a_stream_keeps_the_list_that_it_was_admitted_under() {
    let gate = Gate::new();
    let script = {
        let gate = gate.clone();
        Script::by(move |seen, _| speech_for(seen, TEXT).gated(&gate))
    };
    let upstream = ScriptedUpstream::start(script).await;
    let gateway = Gateway::start(PRICED, &priced_routes(&upstream.base_url())).await;
    let key = gateway.key("5").await;
    put_on(&*gateway.ledger, &key, Some("cheap")).await;
    let body = ask(Family::Chat, "direct", true);
    let moved = async {
        upstream.request(0).await;
        put_on(&*gateway.ledger, &key, Some("bare")).await;
        gate.open();
    };
    let (answer, ()) = tokio::join!(gateway.post(path(Family::Chat), &key, &body), moved);
    assert_eq!(answer.status, 200, "{}", answer.text);
    gateway.settled().await;
    let next = gateway.post(path(Family::Chat), &key, &body).await;
    assert_eq!(next.status, 200, "{}", next.text);
    gateway.settled().await;
    let charges = gateway.charges(&key).await;
    let rate = |at: usize| charges[at].bill.clone().unwrap().lines[0].rate.picos();
    assert_eq!((rate(0), rate(1)), (2_000_000, 4_000_000));
}

#[tokio::test]
async fn customers_of_a_list_that_is_not_here_are_refused_and_nobody_else() {
    let upstream = ScriptedUpstream::start(talking(TEXT)).await;
    let gateway = Gateway::start(CATALOG, &routes(&upstream.base_url())).await;
    let (lost, other) = (gateway.key("5").await, gateway.key("5").await);
    put_on(&*gateway.ledger, &lost, Some("cheap")).await;
    for family in Family::ALL {
        let body = ask(family, "test-model", false);
        let refused = gateway.post(path(family), &lost, &body).await;
        assert_eq!(refused.status, 503, "{}", refused.text);
        assert_eq!(refused.header("retry-after"), Some("5"));
        let error = refused.json()["error"].clone();
        if family != Family::Messages {
            assert_eq!(error["code"], "price_list_unknown", "{error}");
        }
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("prices of this account"),
            "{error}"
        );
        let served = gateway.post(path(family), &other, &body).await;
        assert_eq!(served.status, 200, "{}", served.text);
    }
    let count = json!({"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]});
    let counted = gateway
        .post("/native/v1/messages/count_tokens", &lost, &count)
        .await;
    assert_eq!(counted.status, 503, "{}", counted.text);
    for path in ["/v1/models", "/native/v1/models", "/v1/models/test-model"] {
        assert_eq!(gateway.get(path, &lost).await.status, 503, "{path}");
        assert_eq!(gateway.get(path, &other).await.status, 200, "{path}");
    }
    assert_eq!(gateway.get("/v1/key", &lost).await.status, 200);
    assert!(gateway.charges(&lost).await.is_empty());
    assert_eq!(upstream.requests().len(), 3);
    put_on(&*gateway.ledger, &lost, None).await;
    let body = ask(Family::Chat, "test-model", false);
    let served = gateway.post(path(Family::Chat), &lost, &body).await;
    assert_eq!(served.status, 200, "{}", served.text);
}
