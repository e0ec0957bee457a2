//! Customers who read slowly, in paused time: one who accepts nothing for 30 s counts as gone and pays for what was produced; one
//! who reads a little at a time gets everything.

use serde_json::{Value, json};

use super::*;
use crate::upstream::Recorded;

/// Frames of the stream below, and the seconds between them.
const FRAMES: u64 = 60;
/// Words per frame, one token each.
const WORDS: u64 = 1_000;

/// A chat stream of 300 KB in a minute, with its usage.
fn long() -> Recorded {
    let chunk = |event: Value| {
        let mut event = event;
        event["id"] = "c".into();
        Bytes::from(format!("data: {event}\n\n"))
    };
    let words = " word".repeat(usize::try_from(WORDS).unwrap());
    let said =
        json!({"choices": [{"index": 0, "delta": {"content": words}, "finish_reason": null}]});
    let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": FRAMES * WORDS}});
    let mut pieces: Vec<(Duration, Bytes)> = (0..FRAMES)
        .map(|_| (Duration::from_secs(1), chunk(said.clone())))
        .collect();
    let end = [
        chunk(stop),
        chunk(usage),
        Bytes::from_static(b"data: [DONE]\n\n"),
    ];
    pieces.extend(end.map(|frame| (Duration::ZERO, frame)));
    Recorded {
        pieces,
        broken: false,
    }
}

/// The stream's charge and settlement time, for a customer who takes a chunk at this interval, or none at all.
async fn read_every(pause: Option<Duration>) -> (String, JournalEntry, Duration) {
    let house = House::new().experienced();
    house.proxy.upstreams.play(long());
    let key = house.key("50").await;
    let began = Instant::now();
    let mut receiver = stream(
        house
            .ask(&key, Family::Chat, "quick", 10, Some(60_000))
            .await,
    );
    let mut shown = Vec::new();
    if let Some(pause) = pause {
        while let Some(bytes) = receiver.next().await {
            shown.extend_from_slice(&bytes);
            sleep(pause).await;
        }
    }
    let charge = house.charges().await.remove(0);
    (String::from_utf8(shown).unwrap(), charge, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_customer_who_accepts_nothing_for_30_seconds_is_gone_and_pays() {
    let (_, charge, took) = read_every(None).await;
    let bill = charge.bill.as_ref().unwrap();
    assert_eq!(
        (bill.end_reason.as_str(), bill.evidence),
        ("client_gone", Some(Evidence::Local))
    );
    // 256 KiB wait for the customer; the frame behind them waits for 30 s.
    let frames = 256 * 1_024 / (WORDS * 5 + 100);
    assert!(
        (frames..frames + 3).contains(&(took.as_secs() - 30)),
        "{took:?}"
    );
    let made = frames * WORDS;
    assert!(
        (made * 95 / 100..=made + 2 * WORDS).contains(&bill.usage.output),
        "{:?} of {made}",
        bill.usage
    );
    assert!(bill.usage.input > 0, "{:?}", bill.usage);
}

#[tokio::test(start_paused = true)]
async fn a_customer_who_reads_a_little_every_14_seconds_gets_everything() {
    let (shown, charge, took) = read_every(Some(Duration::from_secs(14))).await;
    assert!(
        took > Duration::from_secs(600) && shown.ends_with("data: [DONE]\n\n"),
        "{took:?}"
    );
    assert_eq!(shown.matches(" word").count() as u64, FRAMES * WORDS);
    let bill = charge.bill.as_ref().unwrap();
    assert_eq!(
        (bill.end_reason.as_str(), bill.evidence),
        ("stop", Some(Evidence::Provider))
    );
    assert_eq!(
        charge.amount.picos(),
        -(100 * 3_000_000 + (FRAMES * WORDS) as i64 * 15_000_000)
    );
}
