//! Races for the last dollar, and ends at every frame of a stream: balances that run out, customers who leave.
//!
//! Three families, both disconnect policies. Each request has exactly one charge, never above its hold, and nothing stays held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farebox::clock;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Amount, Change, Credit, CreditKind, JournalEntry, KeyChange, Ledger, Perform,
};
use farebox_protocol::{Family, ReportedUsage};
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::support::load::{
    Dice, Mark, PIECE, before_pieces, both_policies, ends_properly, family_of, marked, open,
    speech, usd,
};
use crate::support::upstream::{Gate, Script, ScriptedUpstream};
use crate::support::{Gateway, TestKey, act, path, payment, sized};

const SLUGS: [&str; 2] = ["test-model", "test-drain"];

async fn gateway(upstream: &ScriptedUpstream) -> Gateway {
    let (catalog, routes) = both_policies(&upstream.base_url());
    Gateway::start(&catalog, &routes).await
}

/// An upstream whose input is what an estimate expects at most.
fn modest() -> Script {
    Script::by(|seen, _| {
        let (mark, speech) = speech(seen);
        let speech = speech.usage(ReportedUsage {
            input: 10,
            output: mark.pieces * PIECE,
            ..ReportedUsage::default()
        });
        if seen.json()["stream"] == true {
            speech.stream()
        } else {
            speech.whole()
        }
    })
}

fn limited(family: Family, slug: &str, stream: bool, mark: Mark, limit: u64) -> serde_json::Value {
    let mut body = marked(family, slug, stream, mark);
    for name in ["max_tokens", "max_output_tokens"] {
        if body[name].is_u64() {
            body[name] = limit.into();
        }
    }
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_for_the_last_dollar_over_all_families_never_overdraws() {
    let upstream = ScriptedUpstream::start(modest()).await;
    let gateway = gateway(&upstream).await;
    let beside = open(&gateway.ledger_path());
    let (mut dice, mut served) = (Dice::new(3), 0);
    for round in 0..sized(20, 500) {
        let first =
            Amount::from_picos(i64::try_from(20_000_000_000 + dice.below(80_000_000_000)).unwrap());
        let key = gateway.key(&first.to_string()).await;
        let (before, over) = (upstream.requests().len(), AtomicBool::new(false));
        let requests = (0..12_u64).map(|number| {
            let (family, slug) = (
                Family::ALL[(number % 3) as usize],
                SLUGS[(number / 3 % 2) as usize],
            );
            let body = limited(
                family,
                slug,
                number % 2 == 0,
                Mark {
                    number,
                    pieces: 6,
                    pace: 0,
                },
                1_000,
            );
            let (gateway, key) = (&gateway, &key);
            async move { gateway.post(path(family), key, &body).await }
        });
        let all = async {
            let answers = join_all(requests).await;
            gateway.settled().await;
            over.store(true, Ordering::SeqCst);
            answers
        };
        let (answers, paid, samples) = tokio::join!(
            all,
            meddle(&beside, &key, &mut dice, round),
            watch(&beside, &key, &over)
        );
        let served_now = answers.iter().filter(|answer| answer.status == 200).count();
        assert!(
            answers
                .iter()
                .all(|answer| [200, 403, 429].contains(&answer.status)),
            "{answers:?}"
        );
        let seen = upstream.requests().split_off(before);
        assert_eq!(
            seen.len(),
            served_now,
            "what was refused was not bought, and what was bought was served"
        );
        let charges = gateway.charges(&key).await;
        let made: i64 = seen
            .iter()
            .map(|seen| {
                Mark::of(seen).unwrap().pieces.cast_signed() * 150 * 15_000_000 + 30_000_000
            })
            .sum();
        let charged: i64 = charges.iter().map(|entry| -entry.amount.picos()).sum();
        let account = gateway.account(&key).await.customer.account;
        assert_eq!(
            (charged, account.held),
            (made, Amount::ZERO),
            "round {round}"
        );
        assert_eq!(
            account.balance().picos(),
            first.picos() + paid - made,
            "round {round}, {samples} samples"
        );
        assert!(
            account.balance().picos() >= 0
                && charges
                    .iter()
                    .all(|entry| entry.bill.as_ref().unwrap().loss == Amount::ZERO)
        );
        served += served_now;
    }
    println!(
        "{} rounds of 12 requests, {served} of them served",
        sized(20, 500)
    );
    assert!(served > 0);
}

/// Pays, and in some rounds blocks, while the race runs. Returns what was paid.
async fn meddle(beside: &SqliteLedger, key: &TestKey, dice: &mut Dice, round: u64) -> i64 {
    let (mut paid, amount) = (0, usd("0.01"));
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_micros(dice.below(4_000))).await;
        let reference = format!("race-{}", clock::operation_id());
        paid += beside
            .perform(payment(key.id, amount, reference))
            .await
            .unwrap()
            .entry
            .amount
            .picos();
    }
    if round % 4 == 3 {
        beside
            .perform(KeyChange {
                key: key.id,
                change: Change::Block,
                act: act(),
            })
            .await
            .unwrap();
    }
    paid
}

/// Watches the account continuously.
async fn watch(beside: &SqliteLedger, key: &TestKey, over: &AtomicBool) -> usize {
    let mut samples = 0;
    while !over.load(Ordering::SeqCst) {
        let account = beside
            .find_key(key.id)
            .await
            .unwrap()
            .unwrap()
            .customer
            .account;
        assert!(
            account.is_sound() && !account.available().is_negative(),
            "{account:?}"
        );
        samples += 1;
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    samples
}

/// Waits until the upstream has sent this many frames of this request.
async fn sent(upstream: &ScriptedUpstream, request: usize, frames: usize) {
    let seen = upstream.request(request).await;
    let sending = async {
        while seen.sent.load(Ordering::SeqCst) < frames {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), sending)
        .await
        .expect("the frames are sent");
}

/// An upstream that waits after this many frames.
fn waiting(frames: usize, gate: &Gate) -> Script {
    let gate = gate.clone();
    Script::by(move |seen, _| speech(seen).1.stream().gate_after(frames, &gate))
}

/// The one charge of a key on which nothing is held any more.
async fn only_charge(gateway: &Gateway, key: &TestKey, what: &str) -> JournalEntry {
    gateway.settled().await;
    let mut charges = gateway.charges(key).await;
    assert_eq!(charges.len(), 1, "{what}: exactly one charge");
    let account = gateway.account(key).await.customer.account;
    assert!(
        account.is_sound() && account.held == Amount::ZERO,
        "{what}: {account:?}"
    );
    charges.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_balance_that_is_taken_at_any_frame_ends_no_stream_and_pays_it() {
    let upstream = ScriptedUpstream::start(modest()).await;
    let gateway = gateway(&upstream).await;
    let (mut request, pieces) = (0, 30);
    for family in Family::ALL {
        for slug in SLUGS {
            let step = sized(6, 1) as usize;
            for frames in (0..=before_pieces(family) + pieces as usize).step_by(step) {
                let what = format!("{} {slug} {frames}", family.name());
                let gate = Gate::new();
                upstream.follow(waiting(frames, &gate));
                let key = gateway.key("1").await;
                let body = marked(
                    family,
                    slug,
                    true,
                    Mark {
                        number: request as u64,
                        pieces,
                        pace: 0,
                    },
                );
                let asking = gateway.post(path(family), &key, &body);
                let emptying = async {
                    sent(&upstream, request, frames).await;
                    take_everything(&gateway, &key).await;
                    gate.open();
                };
                let (answer, ()) = tokio::join!(asking, emptying);
                let charge = only_charge(&gateway, &key, &what).await;
                let bill = charge.bill.unwrap();
                assert!(
                    -charge.amount.picos() <= bill.hold.picos(),
                    "{what}: {bill:?}"
                );
                assert!(
                    bill.loss == Amount::ZERO && ends_properly(family, &answer.text),
                    "{what}: {bill:?} {}",
                    answer.text
                );
                request += 1;
            }
        }
    }
}

/// Takes all that is available.
async fn take_everything(gateway: &Gateway, key: &TestKey) {
    for _ in 0..50 {
        let amount = gateway.account(key).await.customer.account.available();
        if amount == Amount::ZERO {
            return;
        }
        let kind = CreditKind::Adjust {
            reason: "taken".to_owned(),
            is_paid: false,
        };
        let taken = payment(
            key.id,
            amount.checked_neg().unwrap(),
            format!("taken-{}", clock::operation_id()),
        );
        let _ = gateway.ledger.perform(Credit { kind, ..taken }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_customer_who_leaves_at_any_frame_is_charged_once_and_never_too_much() {
    let upstream = ScriptedUpstream::start(modest()).await;
    let gateway = gateway(&upstream).await;
    let (mut request, pieces) = (0, 3);
    for family in Family::ALL {
        for slug in SLUGS {
            let parts = parts(family, pieces);
            for frames in 0..parts {
                let what = format!("{} {slug} {frames}", family.name());
                let gate = Gate::new();
                upstream.follow(waiting(frames, &gate));
                let key = gateway.key("1").await;
                let body = marked(
                    family,
                    slug,
                    true,
                    Mark {
                        number: request as u64,
                        pieces,
                        pace: 0,
                    },
                );
                leave_after(
                    &gateway,
                    &upstream,
                    (family, &key, &body),
                    (request, frames),
                )
                .await;
                let drains = slug == "test-drain";
                // Without a first frame the stream runs on to it.
                if !drains && frames > 0 && frames <= before_pieces(family) + pieces as usize {
                    gateway.settled().await;
                }
                gate.open();
                let charge = only_charge(&gateway, &key, &what).await;
                let seen = upstream.request(request).await;
                let (charged, made) = (
                    -charge.amount.picos(),
                    crate::support::load::true_cost(&seen),
                );
                assert!(charged <= made, "{what}: {charged} of {made}");
                assert!(
                    charged <= charge.bill.as_ref().unwrap().hold.picos(),
                    "{what}"
                );
                if drains {
                    assert_eq!(charged, made, "{what}: read to its end");
                } else if frames > before_pieces(family) {
                    assert!(charged > 0, "{what}: never free after content");
                }
                assert_eq!(family_of(&seen), family);
                request += 1;
            }
        }
    }
    println!("{request} customers left");
}

/// Frames of a stream of this many pieces.
fn parts(family: Family, pieces: u64) -> usize {
    crate::support::upstream::Speech::new(family, &"w ".repeat(pieces as usize))
        .stream()
        .parts()
}

/// Sends a request, and leaves once the upstream has sent this many frames and the customer has seen some.
async fn leave_after(
    gateway: &Gateway,
    upstream: &ScriptedUpstream,
    (family, key, body): (Family, &TestKey, &serde_json::Value),
    (request, frames): (usize, usize),
) {
    let url = format!("{}{}", gateway.base, path(family));
    let asking = gateway
        .client
        .post(url)
        .bearer_auth(&key.secret)
        .json(body)
        .send();
    tokio::select! {
        answer = asking => {
            let mut stream = answer.unwrap().bytes_stream();
            stream.next().await;
            sent(upstream, request, frames).await;
        }
        () = async { sent(upstream, request, 0).await; if frames > 0 { std::future::pending::<()>().await } } => {}
    }
}
