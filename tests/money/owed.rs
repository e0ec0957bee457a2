//! A provider's bill is charged, booked as loss, or visible as exposure, at the target that bills it, whatever goes wrong.
//!
//! Two billing upstreams serve one slug; customers leave, streams break, usage is missing or absurd, and the first upstream fails
//! after it was asked. Everyday runs send 300 requests, `FAREBOX_FULL=1` 10,000, checked for each 100 of a key and over all.

use std::collections::HashMap;
use std::time::Duration;

use farebox::clock;
use farebox_ledger::{Amount, Evidence, MarginBy, MarginOrder, MarginQuery, Timestamp};
use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::customer::sessions::Visitor;
use crate::process::cli::Cli;
use crate::support::billing::{Billed, prompt, words};
use crate::support::load::{Dice, sized};
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{Answer, CATALOG, Gateway, TestKey, ask, chat, path};

/// Keys that ask at the same time.
const KEYS: u64 = 6;
/// Requests of one key after which its bill is compared.
const ROUND: u64 = 100;
/// One context of the test model, in picodollars.
const CONTEXT: i64 = 200_000 * 3_000_000;
const TEXT: &str =
    "Some words of an answer, 1,024 of them in all, and then a few more of them for everybody. ";

/// The fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Honest,
    Silent,
    Absurd,
    /// The stream breaks after some words.
    Breaks,
    /// The first target reads the request and closes.
    Fails,
    /// The first target begins a whole answer and breaks it.
    Tears,
    /// The first target refuses with an error of its own.
    Error,
    /// The customer leaves in the middle.
    Leaves,
    /// The customer leaves before the first word.
    LeavesEarly,
}

use Fate::*;

/// Each with its weight, of a hundred.
const FATES: [(Fate, u64); 9] = [
    (Honest, 48),
    (Silent, 10),
    (Absurd, 5),
    (Breaks, 8),
    (Fails, 6),
    (Tears, 4),
    (Error, 4),
    (Leaves, 9),
    (LeavesEarly, 6),
];

impl Fate {
    fn of(dice: &mut Dice) -> Self {
        let mut left = dice.below(100);
        for (fate, weight) in FATES {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return fate,
            }
        }
        Honest
    }

    fn streams(self, dice: &mut Dice) -> bool {
        match self {
            Tears => false,
            Breaks | Leaves | LeavesEarly => true,
            _ => dice.below(2) == 0,
        }
    }

    /// Whether the provider alone is to blame for what it did not deliver.
    fn is_the_providers(self) -> bool {
        matches!(self, Breaks | Fails | Tears)
    }

    /// Its form in the request, for the upstreams.
    fn written(self) -> String {
        format!("fate {self:?}.")
    }

    fn read(body: &Value) -> Self {
        let text = body.to_string();
        FATES
            .into_iter()
            .map(|(fate, _)| fate)
            .find(|fate| text.contains(&fate.written()))
            .unwrap()
    }
}

fn text() -> String {
    TEXT.repeat(3)
}

/// The answer of the first or the second upstream.
pub(super) fn reply(seen: &Seen, first: bool) -> Reply {
    let body = seen.json();
    let fate = Fate::read(&body);
    let place = seen.path.split('?').next().unwrap();
    let family = Family::ALL
        .into_iter()
        .find(|family| place.ends_with(family.protocol().path))
        .unwrap();
    let usage = ReportedUsage {
        input: prompt(&body),
        output: words(&text()),
        ..ReportedUsage::default()
    };
    let speech = Speech::new(family, &text()).usage(usage);
    let speech = match fate {
        Silent => speech.claims(Value::Null),
        Absurd => speech.claims(json!({
            "prompt_tokens": -5, "completion_tokens": -5, "input_tokens": -5, "output_tokens": -5,
        })),
        _ => speech,
    };
    let reply = if body["stream"] == true {
        speech.stream()
    } else {
        speech.whole()
    };
    match fate {
        Breaks => reply.reset_after(20),
        Fails if first => reply.reset(),
        Tears if first => reply.in_pieces_of(200).reset_after(1),
        Error if first => Reply::error(500, "server_error", None, "out of order"),
        Leaves => reply.paced(Duration::from_millis(4)),
        LeavesEarly => reply
            .late(Duration::from_millis(60))
            .paced(Duration::from_millis(1)),
        _ => reply,
    }
}

/// An honest provider's bill for a request that it has seen.
pub(super) fn billed(seen: &Seen, first: bool) -> i64 {
    let body = seen.json();
    let (input, all) = (prompt(&body), words(&text()));
    let parts = reply(seen, first).parts().max(1) as u64;
    let output = match Fate::read(&body) {
        Error if first => return 0,
        Fails if first => 0,
        _ if body["stream"] != true => all,
        _ => all * (seen.sent.load(std::sync::atomic::Ordering::SeqCst) as u64).min(parts) / parts,
    };
    Billed {
        input,
        output,
        ..Billed::default()
    }
    .cost()
}

pub(super) fn routes(first: &str, second: &str) -> String {
    let provider = |name: &str, url: &str| {
        format!(
            "[provider.{name}]\nbase_url = \"{url}\"\nspeaks = [\"chat\", \"responses\", \"messages\"]\nkey = {{ env = \"KEY\" }}\nprobe_budget = \"0\"\n"
        )
    };
    let targets = r#"
[[route]]
slug    = "test-model"
breaker = { failures = 1000, open = "1s" }
targets = [ { provider = "one", model = "m", cost = { input = "1.50", output = "7.50" } }, { provider = "two", model = "m" } ]
[[route]]
slug    = "test-blind"
targets = [ { provider = "two", model = "b" } ]
"#;
    provider("one", first) + &provider("two", second) + targets
}

/// One customer's request; whoever leaves reads at most a few words.
pub(super) async fn one_request(
    gateway: &Gateway,
    key: &TestKey,
    fate: Fate,
    mark: &str,
    dice: &mut Dice,
) {
    let family = Family::ALL[dice.below(3) as usize];
    let mut body = ask(family, "test-model", fate.streams(dice));
    let filler = "The quick brown fox jumps over the lazy dog at 8,412 metres. "
        .repeat(dice.below(40) as usize);
    let said = format!("{} {mark} {filler}", fate.written());
    body[if family == Family::Responses {
        "input"
    } else {
        "messages"
    }] = json!([{"role": "user", "content": said}]);
    let asking = gateway
        .client
        .post(format!("{}{}", gateway.base, path(family)))
        .bearer_auth(&key.secret)
        .json(&body)
        .send();
    match fate {
        LeavesEarly => {
            let _ = tokio::time::timeout(Duration::from_millis(25), asking).await;
        }
        Leaves => {
            let mut answer = asking.await.unwrap();
            for _ in 0..8 + dice.below(20) {
                let _ = answer.chunk().await;
            }
        }
        _ => {
            let answer = Answer::read(asking.await.unwrap()).await;
            assert_eq!(answer.status, 200, "{fate:?}: {}", answer.text);
        }
    }
}

/// A key's sums in the ledger: charged or lost, and exposed.
#[derive(Debug, Clone, Copy, Default)]
struct Booked {
    charged: i64,
    exposed: i64,
}

/// As the requests of a round say it to the upstreams.
fn mark(key: usize, round: usize) -> String {
    format!("customer {key} round {round}.")
}

/// All requests of one customer, and what each round added to the books. A request that is not answered ends behind it.
async fn customer(gateway: &Gateway, number: u64, requests: u64) -> Vec<Booked> {
    let (key, mut dice) = (gateway.key("1000").await, Dice::new(number + 7));
    let (mut rounds, mut before) = (Vec::new(), Booked::default());
    for round in 0..requests.div_ceil(ROUND) {
        let mark = mark(number as usize, round as usize);
        for _ in round * ROUND..requests.min((round + 1) * ROUND) {
            let fate = Fate::of(&mut dice);
            one_request(gateway, &key, fate, &mark, &mut dice).await;
        }
        while !gateway
            .ledger
            .open_holds(Some((key.id).into()), 1)
            .await
            .unwrap()
            .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let hours = gateway
            .ledger
            .usage(
                key.id,
                Timestamp::default(),
                Timestamp::from_millis(clock::now().millis() + 1),
            )
            .await;
        let all = hours
            .unwrap()
            .iter()
            .fold(Booked::default(), |sum, hour| Booked {
                charged: sum.charged + hour.charge.picos() + hour.loss.picos(),
                exposed: sum.exposed + hour.exposure.picos(),
            });
        rounds.push(Booked {
            charged: all.charged - before.charged,
            exposed: all.exposed - before.exposed,
        });
        before = all;
    }
    rounds
}

/// Of each round, what the providers bill is in the books; and what a customer made them bill is charged (P10).
fn judge_rounds(rounds: &[Vec<Booked>], upstreams: [&ScriptedUpstream; 2]) -> String {
    let mut bills: HashMap<String, (i64, i64)> = HashMap::new();
    for (upstream, first) in upstreams.into_iter().zip([true, false]) {
        for seen in upstream.requests() {
            let text = seen.json().to_string();
            let at = text.find("customer ").unwrap();
            let mark = &text[at..=at + text[at..].find('.').unwrap()];
            let bill = bills.entry(mark.to_owned()).or_default();
            let cost = billed(&seen, first);
            bill.0 += cost;
            bill.1 += if Fate::read(&seen.json()).is_the_providers() {
                cost
            } else {
                0
            };
        }
    }
    let (mut ratios, mut over) = (Vec::new(), Vec::new());
    for (key, rounds) in rounds.iter().enumerate() {
        for (round, booked) in rounds.iter().enumerate() {
            let (billed, broken) = bills[&mark(key, round)];
            let seen = booked.charged + booked.exposed;
            ratios.push(billed as f64 / seen as f64);
            over.push((billed - broken - booked.charged) as f64 / billed as f64);
            // A context of this model is 0.60 USD, more than a round's whole bill. A hundredth of it is one of these requests.
            let bound = billed / 10 + CONTEXT / 100;
            assert!(
                billed - seen <= bound && seen <= billed * 2,
                "key {key}, round {round}: billed {billed}, seen {seen}"
            );
            assert!(
                billed - broken - booked.charged <= bound,
                "key {key}, round {round}: billed {billed}, {booked:?}"
            );
        }
    }
    ratios.sort_by(f64::total_cmp);
    over.sort_by(f64::total_cmp);
    let (few, many) = (ratios[0], ratios[ratios.len() - 1]);
    format!(
        "{} rounds: billed / (charges + loss + exposure) from {few:.3} to {many:.3}, middle {:.3}; billed without the provider's \
         own breaks beyond the charges at most {:.1} % of the bill",
        ratios.len(),
        ratios[ratios.len() / 2],
        over[over.len() - 1] * 100.0
    )
}

#[tokio::test]
async fn what_providers_bill_is_charged_lost_or_exposed_where_it_is_billed() {
    let one = ScriptedUpstream::start(Script::by(|seen, _| reply(seen, true))).await;
    let two = ScriptedUpstream::start(Script::by(|seen, _| reply(seen, false))).await;
    let gateway = Gateway::fresh(CATALOG, &routes(&one.base_url(), &two.base_url())).await;
    let requests = sized(300, 10_000);
    let customers = (0..KEYS).map(|number| customer(&gateway, number, requests / KEYS));
    let rounds: Vec<Vec<Booked>> = futures_util::future::join_all(customers).await;
    gateway.settled().await;
    println!("{}", judge_rounds(&rounds, [&one, &two]));
    let margins = async |by| {
        let to = Timestamp::from_millis(clock::now().millis() + 1);
        let query = MarginQuery {
            by,
            from: Timestamp::default(),
            to,
            order: MarginOrder::Name,
            reverse: false,
            limit: 100,
        };
        gateway.ledger.margins(query).await.unwrap()
    };
    let targets = margins(MarginBy::Target).await;
    let bills = [("one/m", &one, true), ("two/m", &two, false)].map(|(name, upstream, first)| {
        (
            name,
            upstream
                .requests()
                .iter()
                .map(|seen| billed(seen, first))
                .sum::<i64>(),
        )
    });
    for (name, billed) in bills {
        let row = targets.rows.iter().find(|row| row.name == name).unwrap();
        let seen = row.charge.picos() + row.loss.picos() + row.exposure.picos();
        let charged = (row.charge.picos() + row.loss.picos()) as f64 / billed as f64;
        println!(
            "{name}: billed / (charges + loss + exposure) = {:.4}; charged {charged:.4}",
            billed as f64 / seen as f64
        );
        assert!(
            billed - seen <= CONTEXT / 100 && seen <= billed * 2,
            "{name}: billed {billed}, seen {seen}"
        );
    }
    let (billed, total) = (bills[0].1 + bills[1].1, &targets.total);
    let seen = total.charge.picos() + total.loss.picos() + total.exposure.picos();
    println!(
        "{} requests: billed {billed}, seen {seen}: {:.4}",
        total.requests,
        billed as f64 / seen as f64
    );
    assert!(
        billed - seen <= billed / 20 && seen <= billed * 3 / 2,
        "billed {billed}, seen {seen}"
    );
    assert!(
        total.exposure.picos() > billed / 50,
        "the faults cost something: {}",
        total.exposure
    );
    // The first target's own prices are half of the catalog's: so is its cost, of what it may bill.
    let cost = targets
        .rows
        .iter()
        .find(|row| row.name == "one/m")
        .unwrap()
        .cost
        .picos();
    assert!(
        (cost * 2 - bills[0].1).abs() <= bills[0].1 / 10,
        "{cost} of {}",
        bills[0].1
    );
    for by in [MarginBy::Key, MarginBy::Day] {
        let sums = margins(by).await.total;
        assert_eq!(
            (sums.charge, sums.exposure, sums.cost),
            (total.charge, total.exposure, total.cost),
            "{by:?}"
        );
    }
    assert_eq!(
        gateway.ledger.verify().await.unwrap().faults,
        Vec::<String>::new()
    );
}

/// A target that repeatedly miscounts is named with its remedy; what it claims above the bound is exposure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_miscounts_is_an_alert_with_its_remedy() {
    let usage = ReportedUsage {
        input: 10,
        output: 900,
        ..ReportedUsage::default()
    };
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").usage(usage).whole()).await;
    let gateway = Gateway::fresh(CATALOG, &crate::support::routes(&upstream.base_url())).await;
    let key = gateway.key("5").await;
    let mut body = chat("test-model", false);
    body["max_tokens"] = json!(100);
    for _ in 0..5 {
        assert_eq!(
            gateway
                .post("/v1/chat/completions", &key, &body)
                .await
                .status,
            200
        );
    }
    gateway.settled().await;
    let mut exposed = Amount::ZERO;
    for charge in gateway.charges(&key).await {
        let bill = charge.bill.unwrap();
        // The limit, and what can have been made in the time that the answer took.
        let output = i64::try_from(bill.usage.output).unwrap();
        assert!(
            bill.evidence == Some(Evidence::Disputed) && (200..900).contains(&output),
            "bounded: {bill:?}"
        );
        let beyond = Amount::from_picos((900 - output) * 15_000_000);
        assert_eq!(bill.exposure, beyond, "what the provider says beyond it");
        exposed = Amount::from_picos(exposed.picos() + beyond.picos());
    }
    let status = gateway.ask("/status").await.json();
    let words = status["alerts"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        words.contains("`reasoning = \"outside\"` in [provider.up]"),
        "{status}"
    );
    assert_eq!(
        status["ledger"]["totals"]["exposure"],
        exposed.to_string(),
        "of all time: {status}"
    );
    let admin = gateway.admin.trim_start_matches("http://").to_owned();
    let check = tokio::task::spawn_blocking(move || {
        let cli = Cli::new();
        let table = cli.run(&["check", "--admin-listen", &admin]);
        (
            table,
            cli.json(&["check", "--admin-listen", &admin, "--json"]),
            cli.run(&["check", "--admin-listen", "127.0.0.1:9"]),
        )
    });
    let (table, document, alone) = check.await.unwrap();
    let said = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.status.success()
            && said.contains("warning[W411]: up/upstream-model-1: 5 of 5 answers"),
        "{said}"
    );
    assert!(
        said.contains("set `reasoning = \"outside\"` in [provider.up]") && said.contains("ok: "),
        "{said}"
    );
    assert_eq!(
        (&document[0]["code"], &document[0]["severity"]),
        (&json!("W411"), &json!("warning")),
        "{document}"
    );
    assert!(
        !String::from_utf8(alone.stdout).unwrap().contains("W411") && alone.status.success(),
        "no gateway, no alert"
    );
    let metrics = gateway.ask("/metrics").await.text;
    assert!(
        metrics.contains(&format!("farebox_ledger_exposure_usd {exposed}")),
        "{metrics}"
    );
    assert!(
        metrics.contains(
            "farebox_target_counts_total{target=\"up/upstream-model-1\",counted=\"above_limit\"} 5"
        ),
        "{metrics}"
    );
}

/// The customer reads what was not charged; never what the operator pays for it, and to whom.
#[tokio::test]
async fn a_receipt_tells_what_was_not_charged_and_not_what_it_cost() {
    let one = ScriptedUpstream::start(Script::by(|seen, _| reply(seen, true))).await;
    let two = ScriptedUpstream::start(Script::by(|seen, _| reply(seen, false))).await;
    let gateway = Gateway::fresh(CATALOG, &routes(&one.base_url(), &two.base_url())).await;
    let (key, mut dice) = (gateway.key("100").await, Dice::new(5));
    for fate in [Honest, Fails, Breaks] {
        one_request(&gateway, &key, fate, "", &mut dice).await;
    }
    gateway.settled().await;
    let (visitor, charges) = (
        Visitor::signed_in(&gateway, &key).await,
        gateway.charges(&key).await,
    );
    let exposed: Vec<bool> = charges
        .iter()
        .map(|charge| charge.bill.as_ref().unwrap().exposure.is_positive())
        .collect();
    assert_eq!(exposed, [false, true, true]);
    for charge in charges {
        let (request, bill) = (format!("req_{}", charge.operation), charge.bill.unwrap());
        let receipt = gateway
            .get(&format!("/v1/generation?id={request}"), &key)
            .await;
        let uncharged = receipt.json()["data"]["uncharged"].as_f64().unwrap();
        assert!(
            (uncharged - bill.exposure.picos() as f64 / 1e12).abs() < 1e-12,
            "{}",
            receipt.text
        );
        let page = visitor.get(&format!("/requests/{request}")).await;
        assert_eq!(
            page.text.contains("Not charged: about"),
            bill.exposure.is_positive(),
            "{}",
            page.text
        );
        let exports = [
            visitor.get("/requests.csv").await,
            visitor.get("/requests.json").await,
        ];
        for text in [
            &receipt.text,
            &page.text,
            &exports[0].text,
            &exports[1].text,
        ] {
            let cost = bill.cost.map(|cost| cost.to_string());
            assert!(!text.contains("one/m") && !text.contains("two/m"), "{text}");
            assert!(
                cost.is_none_or(|cost| !text.contains(&cost)),
                "{:?} in {text}",
                bill.cost
            );
        }
    }
}
