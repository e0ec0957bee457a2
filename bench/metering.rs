//! The cost of counting (price lines, costs, terms) and of translating a streamed text: `cargo bench --bench metering`. A plain
//! harness, as in the other crates. It only measures time, on a quiet machine; the guard counts instructions.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench is a program for its developers"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use farebox::config::{self, LimitBinds, ProcessSecrets, Source};
use farebox::metering::bound::Patience;
use farebox::metering::{Ask, Lifetimes, estimate, price};
use farebox_ledger::Usage;
use farebox_protocol::translate::{AnswerWish, Memo, Translator};
use farebox_protocol::{Classes, Content, Family, FrameReader, TextSize};

const ROUND: Duration = Duration::from_millis(40);
const ROUNDS: u32 = 12;
/// The text deltas of one translated stream.
const DELTAS: u32 = 1_000;

fn main() {
    let catalog = Source::new("catalog.toml", include_str!("../catalog.toml"));
    let routes = Source::new("routes.toml", include_str!("../routes.toml"));
    let config = config::load(&catalog, &routes, &ProcessSecrets { lenient: false })
        .0
        .unwrap();
    let model = config.catalog.models.last().unwrap();
    let usage = Usage {
        input: 812,
        cache_read: 48_000,
        cache_write: 1_200,
        output: 733,
        ..Usage::default()
    };
    measure("price lines", 1, || {
        drop(black_box(price::lines(
            black_box(&model.price),
            black_box(&usage),
            &[],
            None,
        )))
    });
    measure("cost", 1, || {
        let _ = black_box(price::picos(
            black_box(&model.price),
            black_box(&usage),
            &[],
        ));
    });

    let content = Content {
        text: TextSize {
            ascii: 60_000,
            other: 400,
        },
        messages: 30,
        tools: 12,
        ..Content::default()
    };
    measure("estimate and bound", 1, || {
        let ask = Ask {
            declared: Some(32_000),
            choices: 1,
            thinking_budget: None,
            reasons: false,
            formed: false,
            predicted: 0,
            images: 0,
            lifetimes: Lifetimes::default(),
            classes: Classes::STANDARD,
            writes: false,
            compacts_from: None,
            estimate: estimate::input(black_box(&content), &model.limits),
            cached: None,
            binds: LimitBinds::All,
            excess: 0,
        };
        let _ = black_box(ask.ways(&model.price, &model.limits, Patience::Fresh));
    });

    let stream = chat_deltas();
    for caller in [Family::Messages, Family::Responses] {
        measure(&format!("chat delta to {caller}"), DELTAS, || {
            translate(black_box(&stream), caller)
        });
    }
}

/// A chat stream's chunks as a provider sends them, each in a read of its own: the role, then text that differs from chunk to chunk.
fn chat_deltas() -> Vec<Bytes> {
    let chunk = |delta: String| {
        Bytes::from(format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n"
        ))
    };
    let first = chunk(r#"{"role":"assistant","content":""}"#.to_owned());
    let deltas =
        (0..DELTAS).map(|at| chunk(format!(r#"{{"content":" some words of text {at}"}}"#)));
    std::iter::once(first).chain(deltas).collect()
}

/// From the upstream's bytes to the bytes that the caller is sent.
fn translate(stream: &[Bytes], caller: Family) {
    let mut cutter = FrameReader::new();
    let wish = AnswerWish {
        model: "slug",
        id: "req1",
        created: 7,
        request: b"{}",
    };
    let mut translator = Translator::new(Family::Chat, caller, Memo::default(), &wish);
    for bytes in stream {
        cutter.push(bytes.clone());
        let frame = cutter.next_frame().unwrap().unwrap();
        black_box(translator.frame(&frame));
    }
}

/// Prints the best round, in nanoseconds for one of the `items` that a call handles.
fn measure(name: &str, items: u32, mut call: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (began, mut calls) = (Instant::now(), 0_u32);
        while began.elapsed() < ROUND {
            call();
            calls += 1;
        }
        best = best.min(began.elapsed().as_secs_f64() * 1e9 / f64::from(calls) / f64::from(items));
    }
    println!("{name:<24} {best:>9.1} ns");
}
