//! What each column of each list sorts by: the values behind the cells, not their texts.

use farebox_ledger::{
    Amount, AuditRecord, JournalEntry, MarginRow, OpenHold, PublishedSlug, SlugUse, Timestamp,
    UsageRow,
};

use super::audited::Audited;
use super::keys::{ListedKey, state_word};
use super::order::Rank;
use crate::admin::{LiveEvent, ReportedModel, ReportedNode, ReportedTarget};
use crate::format;

/// An amount as the gateway writes it; unknown ones are below all others.
fn written(text: Option<&str>) -> Rank {
    let amount = text.and_then(|text| Amount::from_usd_str(text).ok());
    Rank::number(amount.map_or(i64::MIN, Amount::picos))
}

/// A column of the Keys screen that the ledger has no order for.
pub(super) fn key(row: &ListedKey, column: &str, now: Timestamp) -> Rank {
    match column {
        "LABEL" => Rank::text(&row.key.settings.label),
        "24 h" => Rank::number(row.day.map_or(-1, Amount::picos)),
        "STATE" => Rank::text(state_word(&row.key, now)),
        _ => Rank::text(row.key.id.to_string()),
    }
}

/// A column of the Live screen.
pub(super) fn live(event: &LiveEvent, label: &str, column: &str) -> Rank {
    let usage = &event.usage;
    match column {
        "CHARGE" if event.status == 0 => written(event.hold.as_deref()),
        "CHARGE" => written(event.charge.as_deref()),
        "TOKENS" => Rank::number(
            [usage.input, usage.cache_read, usage.cache_write]
                .into_iter()
                .chain([usage.output, usage.reasoning])
                .fold(0, u64::saturating_add),
        ),
        "TTFB" => Rank::number(event.first_byte_ms.map_or(-1, i128::from)),
        "WHOLE" => Rank::number(event.total_ms),
        "ST" => Rank::number(event.status),
        "KEY" => Rank::text(event.key.as_deref().unwrap_or_default()),
        "LABEL" => Rank::text(label),
        "MODEL" if event.slug.is_empty() => Rank::text(&event.asked),
        "MODEL" => Rank::text(&event.slug),
        "PATH" => Rank::text(&event.family),
        "ENDED" => Rank::text(&event.end_reason),
        "VIA" => Rank::text(&event.target),
        _ => Rank::text(&event.at),
    }
}

/// A column of the Models screen.
pub(super) fn model(model: &ReportedModel, used: Option<&SlugUse>, column: &str) -> Rank {
    match column {
        "REQS 7 d" => Rank::number(used.map_or(0, |used| used.requests)),
        "KEYS 7 d" => Rank::number(used.map_or(0, |used| used.keys)),
        "IN $/M" => written(Some(&model.price.input)),
        "OUT $/M" => written(Some(&model.price.output)),
        "CACHED" => written(Some(&model.price.cache_read)),
        "CONTEXT" => Rank::number(model.context),
        "MODEL" => Rank::text(&model.model),
        "PROVIDER" => Rank::text(&model.provider),
        "PATH" => Rank::text(&model.best_path),
        "ENVIRONMENTS" => Rank::text(model.best_environments.join(", ")),
        "ABILITIES" => Rank::text(model.capabilities.join(", ")),
        _ => Rank::text(&model.slug),
    }
}

/// A column of the Models screen without a gateway.
pub(super) fn published(slug: &PublishedSlug, used: Option<&SlugUse>, column: &str) -> Rank {
    match column {
        "REQS 7 d" => Rank::number(used.map_or(0, |used| used.requests)),
        "KEYS 7 d" => Rank::number(used.map_or(0, |used| used.keys)),
        "PUBLISHED" => Rank::number(slug.since.millis()),
        _ => Rank::text(&slug.slug),
    }
}

/// A column of the Routes screen.
pub(super) fn target(target: &ReportedTarget, column: &str) -> Rank {
    match column {
        "ERRORS" => Rank::share(target.errors, target.requests),
        "REQUESTS" => Rank::number(target.requests),
        "NOW" => Rank::number(target.in_flight),
        // The worst first.
        "STATE" => Rank::number(match target.state.as_str() {
            "open" => 0,
            "half_open" => 1,
            _ => 2,
        }),
        "PROVIDER" => Rank::text(&target.provider),
        "WHY" => Rank::text(target.reason.as_deref().unwrap_or("~")),
        _ => Rank::text(format!("{} {}", target.slug, target.target)),
    }
}

/// A column of a list of holds. Ages grow as their beginnings fall.
pub(super) fn hold(hold: &OpenHold, column: &str) -> Rank {
    match column {
        "HELD" => Rank::number(hold.amount.picos()),
        "USED" => Rank::number(hold.used.picos()),
        "AGE" => Rank::number(hold.at.millis().saturating_neg()),
        "KEY" => Rank::text(hold.key.to_string()),
        "MODEL" => Rank::text(&hold.slug),
        "PATH" => Rank::text(&hold.family),
        "STATE" => Rank::number(hold.epoch),
        _ => Rank::text(hold.request.to_string()),
    }
}

/// A column of the Audit screen.
pub(super) fn audited(act: &Audited<'_>, column: &str) -> Rank {
    match column {
        "BY" => Rank::text(act.actor()),
        "ACT" => Rank::text(act.act()),
        "KEY" => Rank::text(act.key().map(|key| key.to_string()).unwrap_or_default()),
        "DETAILS" => Rank::text(act.details()),
        "OPERATION" => Rank::text(act.operation().to_string()),
        _ => Rank::number(act.at().millis()),
    }
}

/// A column of the Exposure and Margin screens that the ledger has no order for.
pub(super) fn sums(row: &MarginRow, column: &str) -> Rank {
    match column {
        "OF CHARGED" => Rank::share(row.exposure.picos(), row.charge.picos()),
        "OF" => Rank::share(
            row.margin().map_or(i64::MIN, Amount::picos),
            row.priced.picos(),
        ),
        _ => Rank::number(row.requests),
    }
}

/// A column of the Nodes screen.
pub(super) fn node(node: &ReportedNode, column: &str) -> Rank {
    match column {
        "REQUESTS/S" => Rank::number(node.per_second),
        "HOLDS" => Rank::number(node.holds),
        "SILENT" => Rank::number(node.silent_ms),
        "NAME" => Rank::text(&node.name),
        "VERSION" => Rank::text(&node.version),
        "SINCE" => Rank::text(&node.started_at),
        "FILES" => Rank::text(&node.configuration),
        _ => Rank::number(node.epoch),
    }
}

/// A column of a key's entries.
pub(super) fn entry(entry: &JournalEntry, column: &str) -> Rank {
    match column {
        "AMOUNT" => Rank::number(entry.amount.picos()),
        "BALANCE" => Rank::number(entry.balance_after.picos()),
        "KIND" => Rank::text(format::kind(entry.kind)),
        "WHAT" => Rank::text(format::what(entry)),
        _ => Rank::number(entry.position),
    }
}

/// A column of a key's payments or acts.
pub(super) fn act(act: &AuditRecord, column: &str) -> Rank {
    match column {
        "AMOUNT" => Rank::number(format::paid(act).picos()),
        "REFERENCE" => Rank::text(format::act_fact(act, "reference")),
        "KIND" | "ACT" => Rank::text(&act.act),
        "BY" | "BY, WHY" => Rank::text(&act.actor),
        "DETAILS" => Rank::text(format::act_details(act)),
        _ => Rank::number(act.position),
    }
}

/// A column of a key's models.
pub(super) fn of_model(row: &UsageRow, column: &str) -> Rank {
    let usage = &row.usage;
    match column {
        "REQUESTS" => Rank::number(row.requests),
        "INPUT" => Rank::number(usage.input.saturating_add(usage.cache_write)),
        "CACHED" => Rank::number(usage.cache_read),
        "OUTPUT" => Rank::number(usage.output.saturating_add(usage.reasoning)),
        "MODEL" => Rank::text(&row.slug),
        _ => Rank::number(row.charge.picos()),
    }
}
