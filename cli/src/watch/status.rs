//! `farebox status`: what the running gateway does at this moment, for terminals without the console; `watch farebox status` repeats it.

use serde::Deserialize;
use serde_json::Value;

use crate::args::{Args, OutputFormat};
use crate::gateway;
use crate::output::{self, CommandFailed, count};

/// The parts of `/status` that are shown.
#[derive(Deserialize)]
struct RunningStatus {
    version: String,
    started_at: String,
    public_url: String,
    ready: bool,
    draining: bool,
    /// Its token was not sent.
    #[serde(default)]
    shortened: bool,
    generation: u64,
    /// `ok`, or `rejected` if newer files have mistakes.
    state: String,
    alerts: Vec<ToldAlert>,
    targets: Vec<TargetLine>,
    ledger: LedgerLine,
}

#[derive(Deserialize)]
struct ToldAlert {
    kind: String,
    text: String,
}

#[derive(Deserialize)]
struct TargetLine {
    slug: String,
    provider: String,
    target: String,
    /// The breaker's.
    state: String,
    /// The alert that tells of it.
    alert: Option<String>,
    requests: u64,
    errors: u64,
    in_flight: u64,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct LedgerLine {
    writable: bool,
    queue: u64,
    commit_p99_us: Option<u64>,
    totals: Option<MoneyLine>,
}

/// US dollars since the ledger began.
#[derive(Deserialize)]
struct MoneyLine {
    credit: String,
    spent: String,
    held: String,
    loss: String,
}

const HEADINGS: [&str; 7] = [
    "slug", "target", "state", "requests", "errors", "running", "reason",
];

pub(crate) async fn run(args: &Args) -> Result<(), CommandFailed> {
    if args.format() == OutputFormat::Json {
        let whole: Value = gateway::status(args)
            .await
            .map_err(CommandFailed::refused)?;
        output::print_json(&whole);
        return Ok(());
    }
    let running: RunningStatus = gateway::status(args)
        .await
        .map_err(CommandFailed::refused)?;
    output::print(&page(&running));
    if running.shortened {
        output::note(&gateway::left_out(args));
    }
    Ok(())
}

fn page(running: &RunningStatus) -> String {
    let state = match (running.draining, running.ready) {
        (true, _) => "stopping",
        (_, true) => "ready",
        _ => "not ready",
    };
    let files = if running.state == "ok" {
        String::new()
    } else {
        ", newer files have mistakes: farebox check".to_owned()
    };
    let under_way: u64 = running.targets.iter().map(|target| target.in_flight).sum();
    let mut parts = vec![
        format!(
            "Farebox {} at {}: {state} since {}, generation {}{files}",
            output::plain(&running.version),
            output::plain(&running.public_url),
            output::plain(&running.started_at),
            running.generation,
        ),
        format!(
            "{} at providers; {}",
            count(under_way, "request"),
            money(&running.ledger)
        ),
    ];
    let alerts = running.alerts.iter();
    parts.extend(alerts.map(|alert| {
        format!(
            "! {}: {}",
            output::plain(&alert.kind),
            output::plain(&alert.text)
        )
    }));
    let rows: Vec<Vec<String>> = running.targets.iter().map(cells).collect();
    parts.push(String::new());
    parts.push(output::table(&HEADINGS, &rows));
    parts.join("\n")
}

fn money(ledger: &LedgerLine) -> String {
    let writing = if ledger.writable {
        ""
    } else {
        ", not writable"
    };
    let commit = ledger
        .commit_p99_us
        .map_or_else(String::new, |us| format!(", p99 of a commit {us} µs"));
    let totals = ledger.totals.as_ref().map_or_else(String::new, |totals| {
        format!(
            "paid {}, spent {}, held {}, lost {} USD; ",
            totals.credit, totals.spent, totals.held, totals.loss
        )
    });
    format!("{totals}ledger: {} waiting{commit}{writing}", ledger.queue)
}

fn cells(target: &TargetLine) -> Vec<String> {
    vec![
        output::plain(&target.slug),
        output::plain(&format!("{}/{}", target.provider, target.target)),
        output::plain(target.alert.as_ref().unwrap_or(&target.state)),
        target.requests.to_string(),
        target.errors.to_string(),
        target.in_flight.to_string(),
        output::plain(target.reason.as_deref().unwrap_or_default()),
    ]
}
