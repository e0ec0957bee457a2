//! Compares the estimate of a request's input with what public tokenizers count: `cargo run --release -p farebox-bench-estimate`.
//!
//! Shows estimated over actual input: its least, middle, and high values for each kind of text and over all. Below 1 less was
//! held than the input costs.

#![expect(clippy::print_stdout, reason = "a bench shows its figures")]

mod actual;
mod bodies;
mod kinds;

use std::path::Path;

use actual::Tokenizer;
use bodies::SampleRequest;
use farebox::config::ModelLimits;
use farebox::metering::estimate;
use farebox_protocol::{BadRequest, Family};
use kinds::SampleKind;

/// Characters of a message: tiny to long.
const LENGTHS: [usize; 5] = [12, 120, 1_200, 12_000, 120_000];
const LIMITS: ModelLimits = ModelLimits {
    context: 10_000_000,
    max_output: 64_000,
    max_reasoning: None,
    speed: None,
    image_bytes: None,
    picture_tokens: None,
    tools: None,
};

/// Ratios for one tokenizer.
#[derive(Debug, Default, Clone)]
struct Ratios {
    estimate: Vec<f64>,
    /// Of the count that leans the other way, for what no provider counts.
    bound: Vec<f64>,
}

fn main() -> Result<(), BadRequest> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kinds = kinds::all(&root);
    let mut tokenizers = Tokenizer::both();
    let mut total = [Ratios::default(), Ratios::default()];
    println!(
        "{:<34}{:<10}{:>6}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}",
        "estimated / actual input",
        "tokenizer",
        "bodies",
        "min",
        "p50",
        "p90",
        "p99",
        "max",
        "bound"
    );
    let prompt = prompt(&kinds);
    let clients = bodies::recorded(&root, &prompt);
    for (name, requests) in families(&clients, &kinds) {
        for (tokenizer, total) in tokenizers.iter_mut().zip(&mut total) {
            let ratios = ratios(&requests, tokenizer)?;
            show(&name, tokenizer.name, &ratios);
            total.estimate.extend(&ratios.estimate);
            total.bound.extend(&ratios.bound);
        }
    }
    for (tokenizer, total) in tokenizers.iter().zip(&total) {
        show("ALL", tokenizer.name, total);
        let under = total.estimate.iter().filter(|ratio| **ratio < 1.0).count();
        println!(
            "{:.1} % of the estimates are below the count",
            under as f64 * 100.0 / total.estimate.len().max(1) as f64
        );
    }
    Ok(())
}

/// What clients say before anybody has said anything: instructions in prose, with tables and code.
fn prompt(kinds: &[SampleKind]) -> String {
    let parts = ["english.txt", "manual.md", "code.sh", "table.md", "code.ts"];
    kinds
        .iter()
        .filter(|kind| parts.contains(&&*kind.name))
        .map(|kind| kind.text.as_str())
        .collect()
}

/// All bodies, by name: clients as recorded, and for each kind of text plain requests of every length and clients who read it.
fn families(clients: &[SampleRequest], kinds: &[SampleKind]) -> Vec<(String, Vec<SampleRequest>)> {
    let mut all = vec![("recorded clients".to_owned(), clients.to_vec())];
    for kind in kinds {
        let texts: Vec<String> = LENGTHS
            .iter()
            .map(|length| bodies::of_length(&kind.text, *length))
            .collect();
        let plain = Family::ALL
            .iter()
            .flat_map(|family| texts.iter().map(|text| bodies::plain(*family, text)));
        all.push((format!("{}, alone", kind.name), plain.collect()));
        let read = clients.iter().flat_map(|client| {
            texts
                .iter()
                .skip(2)
                .map(|text| bodies::with_result(client.clone(), text))
        });
        all.push((format!("{}, in clients", kind.name), read.collect()));
    }
    all
}

fn ratios(requests: &[SampleRequest], tokenizer: &mut Tokenizer) -> Result<Ratios, BadRequest> {
    let mut ratios = Ratios::default();
    for request in requests {
        let seen = request
            .family
            .protocol()
            .inspect(request.body.to_string().as_bytes(), 0)?;
        let found = estimate::input(&seen.content, &LIMITS);
        let actual = tokenizer.request(request).max(1) as f64;
        ratios.estimate.push(found.input as f64 / actual);
        ratios.bound.push(found.bound as f64 / actual);
    }
    Ok(ratios)
}

fn show(name: &str, tokenizer: &str, ratios: &Ratios) {
    let mut sorted = ratios.estimate.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        sorted
            .get(((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0.0)
    };
    let bound = ratios.bound.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "{name:<34}{tokenizer:<10}{:>6}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{bound:>8.2}",
        sorted.len(),
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}
