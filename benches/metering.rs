//! What counting costs: price lines, costs and terms. A plain harness, as in the other crates: `cargo bench --bench metering`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for its developers")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use farebox::config::{self, ProcessSecrets, Source};
use farebox::metering::{estimate, price, terms};
use farebox_ledger::{Amount, Usage};
use farebox_protocol::{Content, TextSize};

const ROUND: Duration = Duration::from_millis(40);
const ROUNDS: u32 = 12;

fn main() {
    let catalog = Source::new("catalog.toml", include_str!("../catalog.toml"));
    let routes = Source::new("routes.toml", include_str!("../routes.toml"));
    let config = config::load(&catalog, &routes, &ProcessSecrets { lenient: false }).0.unwrap();
    let model = config.catalog.models.last().unwrap();
    let usage = Usage { input: 812, cache_read: 48_000, cache_write: 1_200, output: 733, ..Usage::default() };
    measure("price lines", || drop(black_box(price::lines(black_box(&model.price), black_box(&usage)))));
    measure("cost", || {
        let _ = black_box(price::cost(black_box(&model.price), black_box(&usage)));
    });

    let content = Content { text: TextSize { ascii: 60_000, other: 400 }, messages: 30, tools: 12, ..Content::default() };
    measure("estimate and terms", || {
        let ask = terms::Ask {
            stream: true,
            declared: Some(32_000),
            choices: 1,
            thinking_budget: None,
            predicted: 0,
            images: 0,
            one_hour_cache: false,
            in_flight: 1,
            estimate: estimate::input(black_box(&content), &model.limits),
            reasons_outside: false,
        };
        let _ = black_box(terms::decide(&ask, &model.price, &model.limits, Amount::from_picos(5_000_000_000_000)));
    });
}

/// Prints the best round, in nanoseconds for one call.
fn measure(name: &str, mut call: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (began, mut calls) = (Instant::now(), 0_u32);
        while began.elapsed() < ROUND {
            call();
            calls += 1;
        }
        best = best.min(began.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
    }
    println!("{name:<24} {best:>9.1} ns");
}
