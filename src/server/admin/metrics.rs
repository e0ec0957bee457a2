//! `/metrics`: counters since the start, and the current state of targets, ledger and files, in Prometheus text format.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use farebox_ledger::{Gateway, LogStats, Standby, Totals, WriterStats, amount};
use salvo::http::{HeaderValue, StatusCode};
use salvo::prelude::{Depot, Response, handler};

use super::{Admin, Sight, SumsSeen, text};
use crate::clock;
use crate::telemetry::alerts::StandingAlert;
use crate::telemetry::{Exposition, lost_lines, seconds};
use crate::turns;

/// Answers `/metrics`.
pub(super) struct MetricsHandler {
    admin: Arc<Admin>,
}

#[handler]
impl MetricsHandler {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self { admin }
    }

    async fn handle(&self, depot: &mut Depot, res: &mut Response) {
        let (admin, sight) = (Arc::clone(&self.admin), Sight::of(depot));
        let sums = admin.sums().await;
        // Writing thousands of targets takes too long for a thread that serves requests.
        let write = move || write(&admin, &sums, sight);
        let written = tokio::task::spawn_blocking(write).await;
        text(res, StatusCode::OK, written.unwrap_or_default());
        let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        res.headers_mut().insert("content-type", kind);
    }
}

fn write(admin: &Admin, sums: &SumsSeen, sight: Sight) -> String {
    let gateways = &sums.gateways;
    let mut out = Exposition::default();
    process(&mut out, admin);
    admin.telemetry.metrics.write(&mut out);
    targets(&mut out, admin);
    let writable = admin.ledger.obstacle().is_none();
    writer(&mut out, &admin.ledger.stats(), writable);
    if let Some(totals) = &sums.totals {
        books(&mut out, totals);
    }
    files(&mut out, admin);
    standing(&mut out, &admin.alerts(gateways), sight);
    drift(&mut out, admin);
    if !gateways.is_empty() {
        let differ = u8::from(Gateway::differ(gateways));
        out.one(
            "farebox_nodes",
            "Gateways that share the ledger and run.",
            gateways.len(),
        );
        out.one(
            "farebox_nodes_differ",
            "1 while they run different files.",
            differ,
        );
    }
    out.finish()
}

/// One series for each alert that stands, so that a rule needs no threshold of its own; one for all whose subjects look the same to this
/// reader.
fn standing(out: &mut Exposition, alerts: &[StandingAlert], sight: Sight) {
    out.metric(
        "farebox_alert",
        "1 for each alert that stands; /status has its reason.",
    );
    let mut told = BTreeSet::new();
    for StandingAlert { alert, .. } in alerts {
        let (kind, severity) = (alert.kind.id, alert.kind.severity.name());
        told.insert((kind, severity, sight.text(&alert.subject)));
    }
    for (kind, severity, subject) in told {
        let labels = [
            ("kind", kind),
            ("severity", severity),
            ("subject", subject.as_ref()),
        ];
        out.sample(&labels, 1);
    }
}

fn drift(out: &mut Exposition, admin: &Admin) {
    out.metric(
        "farebox_client_fields_total",
        "Requests with a top-level field that was taken out or refused.",
    );
    for (drifting, requests) in admin.telemetry.drift.all() {
        let labels = [
            ("family", drifting.family),
            ("field", drifting.field.as_str()),
            ("fate", drifting.fate),
        ];
        out.sample(&labels, requests);
    }
}

fn process(out: &mut Exposition, admin: &Admin) {
    let version = env!("CARGO_PKG_VERSION");
    out.metric("farebox_build_info", "The program's version.")
        .sample(&[("version", version)], 1);
    out.one(
        "farebox_start_time_seconds",
        "When the gateway started, seconds since 1970.",
        admin.started_at.millis() / 1_000,
    );
    out.one(
        "farebox_ready",
        "1 while requests are served.",
        u8::from(admin.obstacle().is_none()),
    );
    out.one(
        "farebox_draining",
        "1 while the gateway is stopping.",
        u8::from(admin.draining.load(Ordering::Relaxed)),
    );
    out.one(
        "farebox_requests_in_flight",
        "Requests that have a place among those of their customer, and perhaps a hold.",
        admin.front.rate_limits.running(),
    );
    let stopped = admin.front.rate_limits.stopped(clock::now()).len();
    out.one(
        "farebox_keys_stopped",
        "Keys that get nothing more for now, because of their exposure.",
        stopped,
    );
    bounds(out, admin);
    out.one(
        "farebox_live_readers",
        "Readers of /live.",
        admin.telemetry.live.readers(),
    );
    out.one(
        "farebox_log_lines_lost_total",
        "Log lines dropped because nobody read standard error in time.",
        lost_lines(),
    );
}

/// What customers' bodies cost in CPU time before they are paid for, and how it is shared.
fn work(out: &mut Exposition, admin: &Admin) {
    let counts = admin.front.proxy.turns.counts();
    out.metric(
        "farebox_work_seconds_total",
        "CPU time for reading bodies and documents and counting tokens: at once, or aside in turns.",
    )
    .sample(&[("where", "at_once")], seconds(counts.inline))
    .sample(&[("where", "aside")], seconds(counts.aside));
    out.one(
        "farebox_work_waiting",
        "Such jobs that wait for their customer's turn.",
        counts.waiting,
    );
    out.one(
        "farebox_work_refused_total",
        "Requests whose turn did not come in time.",
        counts.refused,
    );
    out.one(
        "farebox_work_over_budget",
        "Customers beyond their budget of CPU time.",
        counts.over_budget,
    );
    let budgets = [("customer", turns::OF_CUSTOMER), ("unpaid", turns::UNPAID)];
    let mut metric = out.metric(
        "farebox_work_budget_seconds",
        "The budgets of each customer: CPU time for each second, and what may be saved up.",
    );
    for (of, budget) in budgets {
        metric = metric
            .sample(&[("of", of), ("per", "second")], seconds(budget.rate))
            .sample(&[("of", of), ("per", "burst")], seconds(budget.burst));
    }
}

/// What is limited for all customers together.
fn bounds(out: &mut Exposition, admin: &Admin) {
    let counts = admin.front.connections.counts();
    out.one(
        "farebox_connections",
        "Open connections of customers.",
        counts.open,
    );
    out.one(
        "farebox_connections_safe",
        "Those on which a customer's request is under way; none of them is closed for a new one.",
        counts.safe,
    );
    out.metric(
        "farebox_strangers",
        "Unfinished heads, and requests under way, of nobody's key.",
    )
    .sample(&[("with", "head")], counts.heads)
    .sample(&[("with", "request")], counts.strangers);
    out.metric(
        "farebox_connections_limit",
        "Limit of customers' connections: all, of one peer, of a trusted proxy, safe ones of one customer, in each pool of strangers.",
    )
    .sample(&[("of", "all")], counts.most)
    .sample(&[("of", "peer")], counts.most_of_peer)
    .sample(&[("of", "proxy")], counts.most_of_proxy)
    .sample(&[("of", "safe")], counts.most_safe)
    .sample(&[("of", "strangers")], counts.most_of_strangers);
    out.metric(
        "farebox_connections_closed_total",
        "Connections closed at a limit: refused new ones, idle ones, and strangers' in a full pool.",
    )
    .sample(&[("which", "new")], counts.refused)
    .sample(&[("which", "idle")], counts.evicted)
    .sample(&[("which", "stranger")], counts.crowded);
    work(out, admin);
    let (answers, most_answers) = admin.front.proxy.upstreams.answer_bytes();
    let bodies = &admin.front.body_room;
    out.metric(
        "farebox_bytes_in_flight",
        "Bytes of request bodies and of answers in memory.",
    )
    .sample(&[("of", "bodies")], bodies.in_use())
    .sample(&[("of", "answers")], answers);
    out.metric("farebox_bytes_in_flight_limit", "Limit of these bytes.")
        .sample(&[("of", "bodies")], bodies.total())
        .sample(&[("of", "answers")], most_answers);
}

fn targets(out: &mut Exposition, admin: &Admin) {
    let states = admin.front.proxy.upstreams.states();
    out.metric(
        "farebox_target_state",
        "1 for the state that a target's breaker is in.",
    );
    for target in &states {
        out.sample(
            &[
                ("slug", &target.slug),
                ("target", &target.target),
                ("state", target.state.name()),
            ],
            1,
        );
    }
    let mut each = |name, help, value: fn(&_) -> u64| {
        out.metric(name, help);
        for target in &states {
            let labels = [
                ("slug", target.slug.as_str()),
                ("target", target.target.as_str()),
            ];
            out.sample(&labels, value(target));
        }
    };
    each(
        "farebox_target_requests_total",
        "Attempts at a target.",
        |target| target.requests,
    );
    each(
        "farebox_target_errors_total",
        "Attempts that failed through the target's fault.",
        |target| target.errors,
    );
    each(
        "farebox_target_in_flight",
        "Attempts and answers in progress.",
        |target| target.in_flight,
    );
    each(
        "farebox_target_keys_closed",
        "Keys that a target is closed to because of their own failures.",
        |target| target.keys_closed as u64,
    );
    probes(out, admin);
}

/// The gateway's own requests to targets in trouble.
fn probes(out: &mut Exposition, admin: &Admin) {
    let mut states = admin.front.proxy.upstreams.states();
    states.retain(|target| target.probes.sent > 0);
    out.metric(
        "farebox_target_probes_total",
        "The gateway's own requests to a target in trouble.",
    );
    for target in &states {
        let (passed, failed) = (
            target.probes.sent.saturating_sub(target.probes.failed),
            target.probes.failed,
        );
        for (outcome, count) in [("passed", passed), ("failed", failed)] {
            out.sample(
                &[
                    ("slug", &target.slug),
                    ("target", &target.target),
                    ("outcome", outcome),
                ],
                count,
            );
        }
    }
    out.metric(
        "farebox_target_probe_cost_usd_total",
        "What these requests may have cost the operator.",
    );
    for target in &states {
        out.sample(
            &[("slug", &target.slug), ("target", &target.target)],
            target.probes.cost,
        );
    }
}

fn writer(out: &mut Exposition, stats: &WriterStats, writable: bool) {
    out.one(
        "farebox_ledger_writable",
        "0 when the ledger cannot be written.",
        u8::from(writable),
    );
    out.one(
        "farebox_ledger_queue",
        "Operations that wait for a commit.",
        stats.queued,
    );
    out.metric(
        "farebox_ledger_unresolved",
        "Abandoned holds that wait for their settlement, by the database's SQLSTATE.",
    );
    // A database's holds have their SQLSTATE, empty if the connection failed; a file's have none.
    for (sqlstate, holds) in &stats.unresolved_by {
        out.sample(&[("sqlstate", sqlstate)], holds);
    }
    if stats.unresolved_by.is_empty() {
        out.sample(&[], stats.unresolved);
    }
    if let Some(standbys) = stats.standby.count() {
        database(out, stats, standbys);
    }
    if let Some(log) = &stats.log {
        file(out, log);
    }
    out.one(
        "farebox_ledger_operations_total",
        "Committed operations.",
        stats.operations,
    );
    out.one(
        "farebox_ledger_last_commit_seconds",
        "How long the last commit took.",
        seconds(stats.last_commit),
    );
    out.histograms("farebox_ledger_commit_seconds", "How long commits took.")
        .histogram(&[], &WriterStats::BOUNDS, &stats.histogram, stats.total);
}

/// What a database does not have.
fn file(out: &mut Exposition, log: &LogStats) {
    out.one(
        "farebox_ledger_log_bytes",
        "Length of the ledger's write-ahead log.",
        log.bytes,
    );
}

/// What a file does not have.
fn database(out: &mut Exposition, stats: &WriterStats, standbys: u64) {
    let single = u8::from(stats.standby == Standby::Single);
    out.one(
        "farebox_ledger_standbys",
        "Synchronous standbys of the database.",
        standbys,
    );
    out.one(
        "farebox_ledger_single",
        "1 when --allow-single sells without a standby.",
        single,
    );
    out.one(
        "farebox_ledger_unknown_commits_total",
        "Commits that the database did not answer for certain.",
        stats.unknown_commits,
    );
    out.one(
        "farebox_ledger_dropped_connections",
        "Connections that were given up and are still at work.",
        stats.dropped,
    );
}

fn books(out: &mut Exposition, totals: &Totals) {
    out.one("farebox_keys", "Keys.", totals.keys);
    out.one("farebox_entries", "Entries of the journal.", totals.entries);
    out.one("farebox_holds", "Open holds.", totals.holds);
    out.one(
        "farebox_held_usd",
        "Held by running requests.",
        amount::exact(totals.held),
    );
    out.one(
        "farebox_balance_usd",
        "Balances of all keys.",
        amount::exact(totals.credit - totals.spent),
    );
    out.one(
        "farebox_ledger_credit_usd",
        "Paid in since the ledger began.",
        amount::exact(totals.credit),
    );
    out.one(
        "farebox_ledger_spent_usd",
        "Charged since the ledger began.",
        amount::exact(totals.spent),
    );
    out.one(
        "farebox_ledger_loss_usd",
        "The operator's losses since the ledger began.",
        amount::exact(totals.loss),
    );
    out.one(
        "farebox_ledger_exposure_usd",
        "What providers may have billed beyond the charges since the ledger began.",
        amount::exact(totals.exposure),
    );
    out.one(
        "farebox_ledger_cost_usd",
        "At the operator's own prices since the ledger began, where they are known.",
        amount::exact(totals.cost),
    );
}

fn files(out: &mut Exposition, admin: &Admin) {
    let generation = admin.front.proxy.config.current().generation;
    out.one(
        "farebox_config_generation",
        "Number of the configuration snapshot in force.",
        generation,
    );
    let Some(status) = admin.reloader.as_ref().map(|reloader| reloader.status()) else {
        return;
    };
    out.one(
        "farebox_config_current",
        "0 while the files have errors and an older snapshot is in force.",
        u8::from(status.current),
    );
    out.one(
        "farebox_config_loaded_time_seconds",
        "When the snapshot in force was loaded, seconds since 1970.",
        seconds_since_1970(status.loaded_at_ms),
    );
    out.one(
        "farebox_config_last_reload_time_seconds",
        "When the files last changed.",
        seconds_since_1970(status.attempted_at_ms),
    );
    out.metric("farebox_config_reloads_total", "Reloads by outcome.")
        .sample(&[("outcome", "applied")], status.swapped)
        .sample(&[("outcome", "rejected")], status.kept);
    let counts = status.diagnostics.counts();
    out.metric("farebox_config_findings", "Findings of the last reload.")
        .sample(&[("severity", "error")], counts.errors)
        .sample(&[("severity", "warning")], counts.warnings)
        .sample(&[("severity", "note")], counts.notes);
}

fn seconds_since_1970(millis: i64) -> String {
    seconds(Duration::from_millis(
        u64::try_from(millis).unwrap_or_default(),
    ))
}
