//! `kill -9` at any moment under mixed load, checked from outside; many open holds at startup; a stop with open streams.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use farebox::clock;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Amount, Bill, BillLine, Cap, CapInterval, Change, CustomerId, EntryKind, EntryQuery, Evidence,
    GrantId, GrantKind, HoldMove, KeyChange, KeyId, Ledger, NewGrant, NewHold, NewSize, Perform,
    SettleGrants, Timestamp, Usage,
};
use farebox_protocol::Family;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::bodies::{picture, png};
use super::yesterday::{check_turned, made_yesterday};
use crate::support::billing::prompt;
use crate::support::checker::{Judged, Outside, Payment, judge, reading};
use crate::support::load::{
    self, Dice, Load, Mark, UPSTREAM_KEY, create, ends_properly, honest, marked, open, place, usd,
};
use crate::support::process::{Served, client, farebox};
use crate::support::upstream::{Gate, Script, ScriptedUpstream, Speech};
use crate::support::{TestKey, act, path, payment, sized};

/// Kills per ledger, before the next round starts with a new one.
const ERA: u64 = 20;
/// What the fourth key may spend in all: a few rounds' worth.
const CAP: &str = "1";
/// Far above the time of a restart on any machine; the actual time is printed.
const FAR: Duration = Duration::from_secs(60);

/// Starts the gateway, waits until it is ready, and returns how long that took.
async fn start(folder: &Path, durability: &str) -> (Served, Duration) {
    let begun = Instant::now();
    let served = Served::start_with(folder, &["--durability", durability], &[UPSTREAM_KEY]);
    let ready = client()
        .get(format!("{}/readyz", served.admin))
        .send()
        .await
        .unwrap();
    assert_eq!(ready.status().as_u16(), 200, "{}", served.log());
    let took = begun.elapsed();
    assert!(took < FAR, "{took:?}");
    (served, took)
}

/// Credit that begins and ends while the gateway is killed, so that holds are made of it, and ends come between a hold and its charge.
/// Returns when the last of it has ended.
async fn give(ledger: &SqliteLedger, key: &TestKey) -> Timestamp {
    let customer = ledger.find_key(key.id).await.unwrap().unwrap().belongs_to;
    let now = clock::now().millis();
    let begins = |number: i64| now + number * 150;
    for number in 0..16 {
        let begin = begins(number);
        let new = NewGrant {
            id: GrantId::from_random(u64::from_be_bytes(clock::random())),
            customer,
            kind: GrantKind::Promotional,
            amount: usd("0.05"),
            priority: 20,
            effective_at: Some(Timestamp::from_millis(begin)),
            expires_at: Some(Timestamp::from_millis(begin + 700)),
            models: None,
            reference: format!("given-{number}"),
            act: act(),
        };
        ledger.perform(new).await.unwrap();
    }
    Timestamp::from_millis(begins(16) + 700)
}

/// One ledger, killed `kills` times.
struct Era {
    upstream: ScriptedUpstream,
    folder: tempfile::TempDir,
    ledger: PathBuf,
    keys: Vec<TestKey>,
    numbers: Arc<AtomicU64>,
    outside: Outside,
    dice: Dice,
    credit_ends: Timestamp,
    durability: &'static str,
}

impl Era {
    async fn new(seed: u64) -> Self {
        let upstream = ScriptedUpstream::start(honest()).await;
        let (folder, ledger) = place(&upstream);
        // Periods of plans end and begin under the kills.
        let ([rich, poor], turned) = made_yesterday(&ledger);
        let first = open(&ledger);
        // The third key is nearly always out of money; payments come while it spends.
        let keys = vec![
            load::key(&first, "900").await,
            rich,
            poor,
            load::key(&first, "900").await,
        ];
        // The fourth may spend a little of what it has, and soon has spent it.
        let cap = Change::SetCap(Cap {
            interval: CapInterval::Total,
            model: None,
            limit: usd(CAP),
        });
        let change = KeyChange {
            key: keys[3].id,
            change: cap,
            act: act(),
        };
        first.perform(change).await.unwrap();
        let credit_ends = turned.max(give(&first, &keys[0]).await);
        first.close();
        Self {
            upstream,
            folder,
            ledger,
            keys,
            numbers: Arc::new(AtomicU64::new(1)),
            outside: Outside::default(),
            dice: Dice::new(seed),
            credit_ends,
            durability: if seed.is_multiple_of(2) {
                "prompt"
            } else {
                "strict"
            },
        }
    }

    /// Starts, loads and kills the gateway; starts it again and checks what it finds.
    async fn kill_once(&mut self, round: u64) -> Duration {
        let (mut served, took) = start(self.folder.path(), self.durability).await;
        assert_eq!(
            reading(&self.ledger).open_holds(None, 10).await.unwrap(),
            [],
            "recovery is over when it serves"
        );
        self.check_cap().await;
        let load = Load::start(
            &served.base,
            &self.keys,
            9,
            &self.numbers,
            self.dice.below(u64::from(u32::MAX)),
        );
        let poor = self.keys[2].id;
        let reference = format!("paid-{round}");
        let arguments = [
            "keys",
            "top-up",
            &poor.to_string(),
            "0.30",
            "--reference",
            &reference,
        ];
        let mut paying = farebox(self.folder.path(), &arguments)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(60 + self.dice.below(300))).await;
        served.kill();
        if self.dice.below(2) == 0 {
            let _ = paying.kill();
        }
        let acknowledged = paying.wait().unwrap().success();
        self.outside.payments.push(Payment {
            key: poor,
            amount: usd("0.30"),
            reference: reference.clone(),
            acknowledged,
        });
        self.outside.told.extend(load.end().await);
        self.pay_again(poor, reference).await;
        took
    }

    /// What a cap counts is what was charged, and never more than the cap: no kill lets a hold or a charge past it.
    async fn check_cap(&self) {
        let ledger = reading(&self.ledger);
        let key = ledger.find_key(self.keys[3].id).await.unwrap().unwrap();
        let counts = key.caps.iter().next().unwrap().current;
        assert_eq!(
            (counts.charged, counts.held),
            (key.customer.account.spent, Amount::ZERO)
        );
        assert!(counts.charged <= usd(CAP), "{counts:?}");
    }

    /// A payer who does not know whether a payment arrived sends it again.
    async fn pay_again(&mut self, key: KeyId, reference: String) {
        let ledger = open(&self.ledger);
        let posted = ledger
            .perform(payment(key, usd("0.30"), reference))
            .await
            .unwrap();
        let payment = self.outside.payments.last_mut().unwrap();
        assert!(
            posted.repeated || !payment.acknowledged,
            "an acknowledged payment was lost: {payment:?}"
        );
        payment.acknowledged = true;
        ledger.close();
    }

    /// Starts once more, stops normally, and checks the ledger.
    async fn end(self) -> Judged {
        let (mut served, _) = start(self.folder.path(), self.durability).await;
        served.signal("TERM");
        assert!(served.ended().success(), "{}", served.log());
        // What ends while it is judged would be in no entry yet.
        let left = self.credit_ends.millis() - clock::now().millis();
        tokio::time::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0))).await;
        let ledger = open(&self.ledger);
        for key in &self.keys {
            let key = ledger.find_key(key.id).await.unwrap().unwrap();
            let customer = key.belongs_to;
            ledger.perform(SettleGrants { customer }).await.unwrap();
        }
        check_turned(&ledger, &[self.keys[1].id, self.keys[2].id]).await;
        ledger.close();
        judge(&self.ledger, &self.outside, &self.upstream.requests()).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_nothing_is_lost_and_every_picodollar_is_explained() {
    let kills = sized(20, 1_000);
    let (mut slowest, mut all, mut done) = (Duration::ZERO, Judged::default(), 0);
    // Half of the quick run, and every second era of the full one, is strict.
    let era_length = ERA.min(kills / 2);
    for seed in 0.. {
        if done >= kills {
            break;
        }
        let mut era = Era::new(seed).await;
        for round in 0..era_length {
            slowest = slowest.max(era.kill_once(round).await);
            done += 1;
        }
        let judged = era.end().await;
        all.charges += judged.charges;
        all.recovered += judged.recovered;
        all.acknowledged += judged.acknowledged;
    }
    println!("{done} kills; {all:?}; slowest restart {slowest:?}");
    assert!(
        all.acknowledged > 0 && all.recovered > 0,
        "the load was alive when it was killed: {all:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_open_holds_are_ended_before_it_is_ready() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let (folder, path) = place(&upstream);
    let ledger = create(&path);
    let mut keys = Vec::new();
    for _ in 0..100 {
        keys.push(load::key(&ledger, "100").await.id);
    }
    ledger.recover(clock::now()).await.unwrap();
    stream::iter(0..10_000_usize)
        .for_each_concurrent(256, async |number| {
            dead_hold(&ledger, keys[number % 100], number.is_multiple_of(2)).await
        })
        .await;
    assert_eq!(ledger.totals().await.unwrap().holds, 10_000);
    ledger.close();
    drop(ledger);

    let (mut served, took) = start(folder.path(), "prompt").await;
    let ledger = reading(&path);
    let totals = ledger.totals().await.unwrap();
    println!("ready after {took:?} with 10,000 open holds");
    assert_eq!((totals.holds, totals.held, totals.entries), (0, 0, 10_100));
    assert_eq!(
        totals.spent,
        5_000 * 700 * 15_000_000,
        "half had a checkpoint, and the others are free"
    );
    served.signal("TERM");
    assert!(served.ended().success());
    assert_eq!(ledger.verify().await.unwrap().faults, Vec::<String>::new());
}

/// A stream with forty pictures that is still running.
fn pictured() -> Value {
    let mut body = marked(
        Family::Chat,
        "test-model",
        true,
        Mark {
            number: 1,
            pieces: 9,
            pace: 0,
        },
    );
    let url = png(2_048, 768);
    body["messages"][0]["content"] = (0..40).map(|_| picture(Family::Chat, &url)).collect();
    body["max_tokens"] = json!(60_000);
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_stream_with_pictures_is_charged_with_them_at_its_last_checkpoint() {
    let answer = "words of an answer that goes on and on ".repeat(30_000);
    // Long enough to be running when its first minute is stored.
    let reply = Speech::new(Family::Chat, &answer)
        .in_pieces_of(300)
        .stream()
        .paced(Duration::from_millis(100));
    let upstream = ScriptedUpstream::start(reply).await;
    let (folder, file) = place(&upstream);
    let ledger = create(&file);
    let key = load::key(&ledger, "20").await;
    ledger.close();
    let (mut served, _) = start(folder.path(), "prompt").await;
    let asking = client()
        .post(format!("{}{}", served.base, path(Family::Chat)))
        .bearer_auth(&key.secret)
        .json(&pictured());
    let mut answer = asking.send().await.unwrap();
    // After a minute the gateway stores what was shown by then, and the prompt as a tokenizer has counted it meanwhile.
    let prompt = i64::try_from(prompt(&upstream.request(0).await.json())).unwrap() * 3_000_000;
    let begun = Instant::now();
    let stored = loop {
        answer.chunk().await.unwrap().expect("the stream goes on");
        let used = reading(&file).open_holds(None, 1).await.unwrap()[0]
            .used
            .picos();
        if used > prompt + 2_000 * 15_000_000 {
            break used;
        }
        assert!(begun.elapsed() < 2 * FAR, "{used}");
    };
    served.kill();
    drop(answer);
    let (mut served, _) = start(folder.path(), "prompt").await;
    let ledger = reading(&file);
    let query = EntryQuery {
        key: Some(key.id),
        ..EntryQuery::default()
    };
    let charge = ledger
        .entries(query)
        .await
        .unwrap()
        .into_iter()
        .find(|entry| entry.kind == EntryKind::Charge)
        .unwrap();
    let bill = charge.bill.unwrap();
    assert_eq!(
        (bill.end_reason.as_str(), bill.evidence),
        ("recovered", Some(Evidence::Recovered)),
        "{bill:?}"
    );
    assert!(
        -charge.amount.picos() >= stored,
        "{} < {stored}",
        charge.amount
    );
    let input = i64::try_from(bill.usage.input).unwrap() * 3_000_000;
    assert!(
        input * 10 >= prompt * 9 && input <= prompt * 3,
        "forty pictures: {input} of {prompt}"
    );
    assert_eq!(ledger.totals().await.unwrap().holds, 0);
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
}

async fn dead_hold(ledger: &SqliteLedger, key: KeyId, checkpoint: bool) {
    let (request, at) = (clock::operation_id(), clock::now());
    let (slug, family) = ("test-model".to_owned(), "chat".to_owned());
    ledger
        .perform(NewHold {
            request,
            customer: CustomerId::made_for(key),
            key,
            ways: vec![farebox_ledger::HoldWay::exactly(usd("0.03"))],
            slug,
            family,
            at,
        })
        .await
        .unwrap();
    if checkpoint {
        let bill = Bill {
            slug: "test-model".to_owned(),
            family: "chat".to_owned(),
            usage: Usage {
                output: 700,
                ..Usage::default()
            },
            lines: vec![BillLine {
                what: "output".into(),
                count: 700,
                rate: Amount::from_picos(15_000_000),
                class: None,
            }],
            ..Bill::default()
        };
        ledger
            .perform(HoldMove {
                request,
                number: 1,
                to: NewSize::Amount(usd("0.06")),
                checkpoint: Some(bill),
                at,
            })
            .await
            .unwrap();
    }
}

/// A gateway with fifty half-finished streams of all families that has received a stop signal.
struct Stopping {
    _upstream: ScriptedUpstream,
    gate: Gate,
    folder: tempfile::TempDir,
    ledger: PathBuf,
    served: Served,
    answers: Vec<(Family, reqwest::Response)>,
}

async fn stopping() -> Stopping {
    let gate = Gate::new();
    let held_back = gate.clone();
    let script = Script::by(move |seen, _| load::speech(seen).1.stream().gate_after(6, &held_back));
    let upstream = ScriptedUpstream::start(script).await;
    let (folder, ledger) = place(&upstream);
    let first = create(&ledger);
    let key = load::key(&first, "100").await;
    first.close();
    let (mut served, _) = start(folder.path(), "prompt").await;
    let client = client();
    let streams = (0..50_u64).map(|number| {
        let family = Family::ALL[(number % 3) as usize];
        let body = marked(
            family,
            "test-model",
            true,
            Mark {
                number,
                pieces: 10,
                pace: 0,
            },
        );
        let request = client
            .post(format!("{}{}", served.base, path(family)))
            .bearer_auth(&key.secret)
            .json(&body);
        async move { (family, request.send().await.unwrap()) }
    });
    let answers = join_all(streams).await;
    assert_eq!(
        reading(&ledger).open_holds(None, 100).await.unwrap().len(),
        50
    );
    served.signal("TERM");
    served.wait_for_log("waiting for running requests to end");
    Stopping {
        _upstream: upstream,
        gate,
        folder,
        ledger,
        served,
        answers,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_signal_lets_fifty_open_streams_end_and_settles_them() {
    let Stopping {
        _upstream,
        gate,
        folder: _folder,
        ledger,
        mut served,
        answers,
    } = stopping().await;
    gate.open();
    for (family, answer) in answers {
        let text = answer.text().await.unwrap();
        assert!(ends_properly(family, &text), "{text}");
    }
    assert!(served.ended().success(), "{}", served.log());
    let ledger = reading(&ledger);
    let totals = ledger.totals().await.unwrap();
    assert_eq!(
        (totals.holds, totals.spent),
        (0, 50 * (400 * 3_000_000 + 1_500 * 15_000_000))
    );
    assert_eq!(ledger.verify().await.unwrap().faults, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_is_cut_short_is_recovered_by_the_next_start() {
    let Stopping {
        _upstream,
        folder,
        ledger,
        mut served,
        answers,
        ..
    } = stopping().await;
    served.kill();
    for (family, answer) in answers {
        let ended = answer
            .text()
            .await
            .is_ok_and(|text| ends_properly(family, &text));
        assert!(!ended, "a stream that was cut does not look whole");
    }
    let (mut served, _) = start(folder.path(), "prompt").await;
    let totals = reading(&ledger).totals().await.unwrap();
    assert_eq!(
        (totals.holds, totals.held, totals.entries),
        (0, 0, 51),
        "one entry for each request, and the first credit"
    );
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    assert_eq!(
        reading(&ledger).verify().await.unwrap().faults,
        Vec::<String>::new()
    );
}
