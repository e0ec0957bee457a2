//! `/status`: the running configuration, the state of the files, targets and ledger, as one JSON document.
//!
//! The console and `farebox diff` read it; its field names are stable (`docs/reference.md`). It contains no secret: keys and
//! header values are only counted. Who has no token sees it shortened.

use std::collections::HashMap;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use farebox_ledger::{
    Blocker, Gateway, LedgerTrouble, Server, Standby, Timestamp, Totals, WriterStats, amount,
};
use salvo::prelude::{Depot, Response, handler};
use serde_json::{Value, json};

use super::{Admin, Sight, SumsSeen, alerts};
use crate::clock;
use crate::config::{
    Config, Diagnostic, DiffRow, Endpoint, LoadStatus, Lookup, Model, OnDisconnect, Paint, Provider,
};
use crate::server::{failure, models};
use crate::telemetry::DriftingField;
use crate::telemetry::alerts::StandingAlert;
use crate::telemetry::webhooks::WebhookSeen;
use crate::upstream::AccountSeen;

/// Answers `/status`.
pub(super) struct StatusHandler {
    admin: Arc<Admin>,
}

#[handler]
impl StatusHandler {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self { admin }
    }

    async fn handle(&self, depot: &mut Depot, res: &mut Response) {
        let (admin, sight) = (Arc::clone(&self.admin), Sight::of(depot));
        let sums = admin.sums().await;
        // Writing thousands of models takes too long for a thread that serves requests.
        let write = move || admin.status(&sums, sight).to_string();
        let written = tokio::task::spawn_blocking(write).await;
        failure::json(res, written.unwrap_or_default());
    }
}

impl Admin {
    fn status(&self, sums: &SumsSeen, sight: Sight) -> Value {
        let config = self.front.proxy.config.current();
        let loaded = self.reloader.as_ref().map(|reloader| reloader.status());
        let (targets, in_flight) = self.targets();
        let mut status = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "started_at": self.started_at,
            "public_url": self.front.public_url,
            "shortened": sight == Sight::Shortened,
            "ready": self.obstacle().is_none(),
            "draining": self.draining.load(Ordering::Relaxed),
            "generation": config.generation,
            // Keys and webhooks are not in it, and `farebox diff` compares it as it is.
            "summary": config.summary(),
        });
        let parts = [
            files(loaded.as_deref(), self.started_at),
            json!({
                "last_changes": self.last_changes.load().iter().map(DiffRow::document).collect::<Vec<_>>(),
                "providers": config.providers.iter().map(|provider| self.provider(provider, &in_flight)).collect::<Vec<_>>(),
                "routes": config.catalog.models.iter().map(|model| of_route(model)).collect::<Vec<_>>(),
                "targets": targets,
                "alerts": self.alerts(&sums.gateways).iter().map(StandingAlert::document).collect::<Vec<_>>(),
                "webhooks": self.telemetry.webhooks.seen().iter().map(WebhookSeen::document).collect::<Vec<_>>(),
                "removed_members": self.removed_members(),
                "client_fields": self.client_fields(),
                "nodes": sums.gateways.iter().map(node).collect::<Vec<_>>(),
                "servers": self.ledger.servers().iter().map(server).collect::<Vec<_>>(),
                "models": config.catalog.models.iter().map(|model| of_model(model)).collect::<Vec<_>>(),
                "retired": of_retired(&config),
                "plans": config.catalog.plans.iter().filter(|plan| config.catalog.plan(&plan.name).is_ok()).collect::<Vec<_>>(),
                "lists": config.catalog.lists.iter().map(|list| &list.name).collect::<Vec<_>>(),
                "ledger": self.ledger_status(sums.totals.as_ref()),
            }),
        ];
        for mut part in parts {
            sight.shorten(&mut part);
            if let (Some(status), Value::Object(part)) = (status.as_object_mut(), part) {
                status.extend(part);
            }
        }
        status
    }

    fn ledger_status(&self, totals: Option<&Totals>) -> Value {
        let troubles = self.ledger.troubles();
        let mut shown = ledger(&self.ledger.stats(), &self.ledger.place(), totals);
        if let Some(fields) = shown.as_object_mut() {
            let writable = !troubles.iter().any(|trouble| trouble.stops);
            fields.insert("writable".to_owned(), writable.into());
            let troubles = troubles.iter().map(trouble).collect::<Vec<_>>();
            fields.insert("trouble".to_owned(), troubles.into());
        }
        shown
    }

    /// Members of answers that customers do not see; `pass_answer` of the provider shows them.
    fn removed_members(&self) -> Vec<Value> {
        let all = self.telemetry.strange.all().into_iter();
        all.map(|(provider, member, answers)| {
            json!({ "provider": provider, "member": member, "answers": answers })
        })
        .collect()
    }

    /// Fields of requests that are not served; a provider's `pass` lets some through.
    fn client_fields(&self) -> Vec<Value> {
        let all = self.telemetry.drift.all().into_iter();
        all.map(
            |(
                DriftingField {
                    family,
                    field,
                    fate,
                },
                requests,
            )| {
                json!({ "family": family, "field": field, "fate": fate, "requests": requests })
            },
        )
        .collect()
    }

    /// A provider, and what each of its accounts has done.
    fn provider(&self, provider: &Provider, in_flight: &HashMap<String, u64>) -> Value {
        let accounts = self.front.proxy.upstreams.accounts(&provider.name);
        let weights = provider.keys.iter().map(|key| key.weight);
        let accounts = accounts.iter().zip(weights.chain(iter::repeat(1)));
        json!({
            "name": provider.name,
            "simulated": provider.endpoint == Endpoint::Simulated,
            "speaks": provider.speaks.iter().map(|family| family.name()).collect::<Vec<_>>(),
            "in_flight": in_flight.get(&provider.name).copied().unwrap_or_default(),
            "max_concurrent": provider.max_concurrent,
            "max_tokens_per_minute": provider.max_tokens_per_minute,
            "probe_budget": provider.probe_budget.to_string(),
            "keys": provider.keys.len(),
            "accounts": accounts.map(of_account).collect::<Vec<_>>(),
        })
    }

    /// What a target's answers have taught, by the class that served them.
    fn taught(&self, config: &Config, slug: &str, target: &str) -> Vec<Value> {
        let named = match config.catalog.find(slug) {
            Lookup::Found(model) => model.limits.speed,
            Lookup::Retired(..) | Lookup::Unknown(..) => None,
        };
        let known = self.front.proxy.calibrations.by_class(target, named);
        let known = known.into_iter().map(|(class, learned)| {
            json!({
                "class": class,
                "pace": learned.pace,
                "own_tokens": learned.own_tokens,
                "ratio": learned.ratio,
                "own_prompts": learned.own_prompts,
                "hides": learned.hides,
                "caches": learned.caches,
                "writes_unmarked": learned.writes_unmarked,
                "limit_proved": learned.limit_proved,
            })
        });
        known.collect()
    }

    /// Every target, and the requests under way at each provider.
    fn targets(&self) -> (Vec<Value>, HashMap<String, u64>) {
        let mut in_flight: HashMap<String, u64> = HashMap::new();
        let mut targets = Vec::new();
        let config = self.front.proxy.config.current();
        let exceeded = self.front.proxy.calibrations.exceeded(clock::now());
        for state in self.front.proxy.upstreams.states() {
            let (provider, model) = state.target.split_once('/').unwrap_or((&state.target, ""));
            *in_flight.entry(provider.to_owned()).or_default() += state.in_flight;
            let excess = exceeded.iter().find(|known| known.target == state.target);
            targets.push(json!({
                "taught": self.taught(&config, &state.slug, &state.target),
                "excess": excess.map(|known| json!({"tokens": known.tokens, "customers": known.customers})),
                "slug": state.slug,
                "target": model,
                "provider": provider,
                "state": state.state.name(),
                "failures": state.failures,
                "requests": state.requests,
                "errors": state.errors,
                "keys_closed": state.keys_closed,
                "in_flight": state.in_flight,
                "probes": {
                    "sent": state.probes.sent, "failed": state.probes.failed, "cost": state.probes.cost.to_string(),
                },
                "alert": state.trouble.as_ref().map(|trouble| alerts::kind_of(&trouble.what).id),
                "reason": state.trouble.as_ref().map_or(state.last_reason.as_deref(), |trouble| Some(&trouble.reason)),
            }));
        }
        (targets, in_flight)
    }
}

fn of_account((seen, weight): (&AccountSeen, u32)) -> Value {
    json!({
        "weight": weight,
        "requests": seen.requests,
        "input": seen.input,
        "cached": seen.cached,
        "spills": seen.spills,
    })
}

/// The state of the files; if they are not watched, their state at startup.
fn files(loaded: Option<&LoadStatus>, started_at: Timestamp) -> Value {
    let Some(loaded) = loaded else {
        return json!({
            "loaded_at": started_at, "catalog_hash": "", "routes_hash": "",
            "state": "ok", "rejected_at": null, "diagnostics": [],
        });
    };
    json!({
        "loaded_at": Timestamp::from_millis(loaded.loaded_at_ms),
        "catalog_hash": loaded.catalog_hash,
        "routes_hash": loaded.routes_hash,
        "state": if loaded.current { "ok" } else { "rejected" },
        "rejected_at": (!loaded.current).then(|| Timestamp::from_millis(loaded.attempted_at_ms)),
        "diagnostics": loaded.diagnostics.0.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Diagnostic) -> Value {
    let mut shown = json!(finding);
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("rendered".to_owned(), finding.render(Paint::Plain).into());
    }
    shown
}

fn of_route(model: &Model) -> Value {
    let on_disconnect = match model.route.on_disconnect {
        OnDisconnect::Cancel => "cancel",
        OnDisconnect::Drain => "drain",
    };
    json!({ "slug": model.slug, "on_disconnect": on_disconnect })
}

fn of_model(model: &Model) -> Value {
    json!({
        "slug": model.slug,
        "model": model.name,
        "provider": model.provider,
        "best_path": model.best_path.name(),
        "best_environments": model.best_environments,
        "price": models::price(&model.price.base),
        "tiers": model.price.tiers.len(),
        "capabilities": model.capabilities.iter().map(|capability| capability.name()).collect::<Vec<_>>(),
        "context": model.limits.context,
        "max_output": model.limits.max_output,
        "aliases": model.aliases,
    })
}

fn of_retired(config: &Config) -> Vec<Value> {
    let retired = config.catalog.retired.iter();
    retired.map(|retired| json!({ "slug": retired.slug, "since": retired.since, "use": retired.replacement })).collect()
}

fn node(gateway: &Gateway) -> Value {
    json!({
        "epoch": gateway.epoch,
        "name": gateway.name,
        "version": gateway.version,
        "configuration": gateway.configuration,
        "started_at": gateway.started_at,
        "silent_ms": gateway.silent_ms,
        "per_second": gateway.per_second,
        "holds": gateway.holds,
    })
}

fn server(server: &Server) -> Value {
    json!({
        "place": server.place,
        "name": server.name,
        "system": server.system,
        "timeline": server.timeline,
        "used": server.used,
        "stale": server.stale,
        "state": server.state,
    })
}

fn ledger(stats: &WriterStats, place: &str, totals: Option<&Totals>) -> Value {
    json!({
        "path": place,
        "log": stats.log.as_ref().map(|log| json!({ "bytes": log.bytes, "limit": log.limit })),
        "clock_off_ms": stats.clock_off_ms,
        "standbys": stats.standby.count(),
        "single": stats.standby == Standby::Single,
        "unknown_commits": stats.unknown_commits,
        "queue": stats.queued,
        "unresolved": stats.unresolved,
        "commits": stats.commits,
        "operations": stats.operations,
        "commit_p99_us": commit_p99(stats),
        "totals": totals.map(|totals| json!({
            "credit": amount::exact(totals.credit), "spent": amount::exact(totals.spent), "held": amount::exact(totals.held),
            "loss": amount::exact(totals.loss), "exposure": amount::exact(totals.exposure), "cost": amount::exact(totals.cost),
        })),
    })
}

fn trouble(trouble: &LedgerTrouble) -> Value {
    let fault = &trouble.fault;
    json!({
        "kind": fault.kind.name(),
        "cause": fault.cause,
        "remedy": fault.remedy,
        "sqlstate": fault.sqlstate,
        "blocked_by": fault.blockers.iter().map(blocker).collect::<Vec<_>>(),
        "since": trouble.since,
        "seconds": trouble.lasts.as_secs(),
        "stops": trouble.stops,
    })
}

fn blocker(blocker: &Blocker) -> Value {
    json!({
        "pid": blocker.pid,
        "name": blocker.name,
        "table": blocker.table,
        "query": blocker.query,
        "file": blocker.file.as_ref().map(|file| file.display().to_string()),
    })
}

/// The bound that 99 of 100 commits stayed below; if commits took longer than every bound, the last commit's time.
fn commit_p99(stats: &WriterStats) -> Option<u64> {
    let enough = stats
        .commits
        .checked_sub(stats.commits / 100)
        .filter(|enough| *enough > 0)?;
    let mut below = 0;
    let at = stats.histogram.iter().position(|count| {
        below += count;
        below >= enough
    })?;
    let bound = WriterStats::BOUNDS
        .get(at)
        .copied()
        .unwrap_or(stats.last_commit);
    u64::try_from(bound.as_micros()).ok()
}
