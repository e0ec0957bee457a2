//! Recorded streams stretched over two seconds of paused time: all words arrive, with the right end, charge and blame.
//!
//! A replay without pacing hides the effects of time: a stream cut off after a second, money metered by the clock.

use std::fmt::Write as _;
use std::path::PathBuf;

use farebox_ledger::Bill;
use farebox_protocol::FrameReader;
use serde_json::Value;

use super::*;
use crate::upstream::Recorded;

/// How long each stream takes.
pub(super) const LENGTH: Duration = Duration::from_secs(2);

/// The result of one stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// What the customer got.
    pub(super) shown: String,
    pub(super) bill: Bill,
    /// In picodollars.
    pub(super) charge: i64,
    /// Failures counted against the target.
    pub(super) blamed: u64,
    /// How long the customer read.
    pub(super) took: Duration,
}

/// A stream's events, evenly spread over [`LENGTH`].
pub(super) fn stretched(events: &[String]) -> Recorded {
    let gap = LENGTH / u32::try_from(events.len()).unwrap();
    Recorded {
        pieces: events
            .iter()
            .map(|event| (gap, Bytes::from(event.clone())))
            .collect(),
        broken: false,
    }
}

/// Asks for the stream, reads all of it and waits for its settlement.
pub(super) async fn played(family: Family, body: String, recorded: Recorded) -> Outcome {
    let house = House::new();
    house.proxy.upstreams.play(recorded);
    let key = house.key("50").await;
    let began = Instant::now();
    let shown = match house.send(&key, family, body).await {
        Ok(reply) => read(stream(Ok(reply))).await,
        Err(failure) => {
            String::from_utf8(failure.body(family, "req".to_owned()).to_json()).unwrap()
        }
    };
    let took = began.elapsed();
    let charge = house.charges().await.remove(0);
    let blamed = house
        .proxy
        .upstreams
        .states()
        .iter()
        .map(|state| state.errors)
        .sum();
    let bill = charge.bill.unwrap();
    // What nobody counted is exposed by the time that it took.
    let exposure = match bill.evidence {
        Some(Evidence::Provider) => bill.exposure,
        _ => Amount::ZERO,
    };
    let bill = Bill {
        total_ms: 0,
        first_byte_ms: None,
        exposure,
        ..bill
    };
    Outcome {
        shown,
        bill,
        charge: -charge.amount.picos(),
        blamed,
        took,
    }
}

/// A request for a long stream.
pub(super) fn asked(family: Family) -> String {
    body(family, "quick", 10, Some(60_000))
}

/// The JSON data of a stream's events.
pub(super) fn data(stream: &str) -> Vec<Value> {
    let mut reader = FrameReader::new();
    reader.push(Bytes::copy_from_slice(stream.as_bytes()));
    let mut found = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        found.extend(
            frame
                .data()
                .and_then(|data| serde_json::from_slice(&data).ok()),
        );
    }
    found
}

/// Every word of a stream's deltas, choice by choice.
pub(super) fn words(stream: &str) -> String {
    let mut by_choice = std::collections::BTreeMap::<u64, String>::new();
    for event in data(stream) {
        for choice in event["choices"].as_array().into_iter().flatten() {
            strings(
                &choice["delta"],
                by_choice
                    .entry(choice["index"].as_u64().unwrap_or_default())
                    .or_default(),
            );
        }
        if event["type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("delta") && kind != "message_delta")
        {
            strings(&event["delta"], by_choice.entry(0).or_default());
        }
    }
    by_choice.into_values().collect()
}

fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => out.push_str(text),
        Value::Array(list) => list.iter().for_each(|one| strings(one, out)),
        Value::Object(map) => map.values().for_each(|one| strings(one, out)),
        _ => {}
    }
}

/// How the customer's stream ended, in one word.
pub(super) fn end(family: Family, shown: &str) -> &'static str {
    let events = data(shown);
    if events
        .iter()
        .any(|event| event["error"].is_object() || event["type"] == "response.failed")
    {
        return "error";
    }
    let ended = match family {
        Family::Chat => shown.trim_end().ends_with("data: [DONE]"),
        Family::Responses => events.last().is_some_and(|last| {
            last["response"]["status"] != "in_progress" && last["response"].is_object()
        }),
        Family::Messages => events
            .last()
            .is_some_and(|last| last["type"] == "message_stop"),
    };
    if ended { "end" } else { "nothing" }
}

/// Name and events of each recorded stream of a family.
fn recordings(family: Family) -> Vec<(String, Vec<String>)> {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("protocol/tests/fixtures");
    let mut found = Vec::new();
    for folder in [
        fixtures.join(family.name()),
        fixtures.join("recorded").join(family.name()),
    ] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.ends_with(".sse") {
                found.push((name, events(&std::fs::read(&path).unwrap())));
            } else if name.ends_with(".chunks.txt") {
                found.push((
                    name,
                    of_chunks(family, &std::fs::read_to_string(&path).unwrap()),
                ));
            }
        }
    }
    found.sort();
    found
}

fn events(stream: &[u8]) -> Vec<String> {
    let mut reader = FrameReader::new();
    reader.push(Bytes::copy_from_slice(stream));
    let mut found = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        found.push(String::from_utf8(frame.raw().to_vec()).unwrap());
    }
    // The last event may lack its blank line.
    let read: usize = found.iter().map(String::len).sum();
    found.extend(
        stream
            .get(read..)
            .filter(|rest| !rest.is_empty())
            .map(|rest| String::from_utf8(rest.to_vec()).unwrap()),
    );
    found
}

fn of_chunks(family: Family, text: &str) -> Vec<String> {
    let event = |line: &str| {
        let kind = serde_json::from_str::<Value>(line)
            .ok()
            .and_then(|data| Some(data["type"].as_str()?.to_owned()));
        kind.filter(|_| family != Family::Chat).map_or_else(
            || format!("data: {line}\n\n"),
            |kind| format!("event: {kind}\ndata: {line}\n\n"),
        )
    };
    let done = (family == Family::Chat).then(|| "data: [DONE]\n\n".to_owned());
    text.lines()
        .filter(|line| !line.is_empty())
        .map(event)
        .chain(done)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn recorded_streams_come_whole_and_cost_what_they_say_at_any_pace() {
    let mut table = String::new();
    let mut count = 0;
    for family in Family::ALL {
        for (name, events) in recordings(family) {
            count += 1;
            let upstream = events.concat();
            let slow = played(family, asked(family), stretched(&events)).await;
            let at_once = Recorded {
                pieces: vec![(Duration::ZERO, Bytes::from(upstream.clone()))],
                broken: false,
            };
            let fast = played(family, asked(family), at_once).await;
            assert_eq!(
                (&slow.bill, slow.charge, slow.blamed),
                (&fast.bill, fast.charge, fast.blamed),
                "{name}: pace costs nothing"
            );
            // Some recordings continue with the answer to the next turn: this one ends at its marker.
            let last = events
                .iter()
                .position(|event| event.contains("\"type\":\"message_stop\""))
                .map_or(events.len(), |at| at + 1);
            assert_eq!(
                words(&slow.shown),
                words(&events[..last].concat()),
                "{name}: all words"
            );
            assert_eq!(words(&slow.shown), words(&fast.shown), "{name}");
            let Outcome {
                bill,
                charge,
                blamed,
                ..
            } = &slow;
            let usage = bill.usage;
            let priced = usage.input * 3_000_000
                + usage.cache_read * 300_000
                + (usage.cache_write + usage.cache_write_1h) * 3_750_000
                + (usage.output + usage.reasoning) * 15_000_000;
            assert_eq!(
                u64::try_from(*charge).unwrap(),
                priced,
                "{name}: the charge is the count times the price"
            );
            writeln!(
                table,
                "{family} {name}: {} {} {}+{}r+{}w/{}+{} {} blamed {blamed}",
                bill.end_reason,
                bill.evidence
                    .map_or_else(|| "none".to_owned(), |evidence| format!("{evidence:?}")),
                usage.input,
                usage.cache_read,
                usage.cache_write,
                usage.output,
                usage.reasoning,
                end(family, &slow.shown),
            )
            .unwrap();
        }
    }
    assert!(count >= 35, "{count}");
    insta::assert_snapshot!("paced", table);
}
