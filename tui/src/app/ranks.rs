//! What each column of each list sorts by: the values behind the cells, not their texts.

use farebox_ledger::{
    Amount, AuditRecord, Customer, JournalEntry, MarginRow, OpenHold, PublishedSlug, SlugUse,
    Timestamp, UsageRow,
};

use super::order::SortRank;
use super::party::{MemberKey, customer_word, state_word};
use crate::admin::{LiveEvent, ReportedModel, ReportedNode, ReportedTarget};
use crate::format;

/// An amount as the gateway writes it; unknown ones are below all others.
fn written(text: Option<&str>) -> SortRank {
    let amount = text.and_then(|text| Amount::from_usd_str(text).ok());
    SortRank::number(amount.map_or(i64::MIN, Amount::picos))
}

/// A column of the Live screen.
pub(super) fn live(event: &LiveEvent, label: &str, column: &str) -> SortRank {
    let usage = &event.usage;
    match column {
        "CHARGE" if event.status == 0 => written(event.hold.as_deref()),
        "CHARGE" => written(event.charge.as_deref()),
        "TOKENS" => SortRank::number(
            [usage.input, usage.cache_read, usage.cache_write]
                .into_iter()
                .chain([usage.output, usage.reasoning])
                .fold(0, u64::saturating_add),
        ),
        "TTFB" => SortRank::number(event.first_byte_ms.map_or(-1, i128::from)),
        "WHOLE" => SortRank::number(event.total_ms),
        "ST" => SortRank::number(event.status),
        "KEY" => SortRank::text(event.key.as_deref().unwrap_or_default()),
        "LABEL" => SortRank::text(label),
        "MODEL" if event.slug.is_empty() => SortRank::text(&event.asked),
        "MODEL" => SortRank::text(&event.slug),
        "PATH" => SortRank::text(&event.family),
        "ENDED" => SortRank::text(&event.end_reason),
        "VIA" => SortRank::text(&event.target),
        _ => SortRank::text(&event.at),
    }
}

/// A column of the Models screen.
pub(super) fn model(model: &ReportedModel, used: Option<&SlugUse>, column: &str) -> SortRank {
    match column {
        "REQS 7 d" => SortRank::number(used.map_or(0, |used| used.requests)),
        "KEYS 7 d" => SortRank::number(used.map_or(0, |used| used.keys)),
        "IN $/M" => written(Some(&model.price.input)),
        "OUT $/M" => written(Some(&model.price.output)),
        "CACHED" => written(Some(&model.price.cache_read)),
        "CONTEXT" => SortRank::number(model.context),
        "MODEL" => SortRank::text(&model.model),
        "PROVIDER" => SortRank::text(&model.provider),
        "PATH" => SortRank::text(&model.best_path),
        "ENVIRONMENTS" => SortRank::text(model.best_environments.join(", ")),
        "ABILITIES" => SortRank::text(model.capabilities.join(", ")),
        _ => SortRank::text(&model.slug),
    }
}

/// A column of the Models screen without a gateway.
pub(super) fn published(slug: &PublishedSlug, used: Option<&SlugUse>, column: &str) -> SortRank {
    match column {
        "REQS 7 d" => SortRank::number(used.map_or(0, |used| used.requests)),
        "KEYS 7 d" => SortRank::number(used.map_or(0, |used| used.keys)),
        "PUBLISHED" => SortRank::number(slug.since.millis()),
        _ => SortRank::text(&slug.slug),
    }
}

/// A column of the Routes screen.
pub(super) fn target(target: &ReportedTarget, column: &str) -> SortRank {
    match column {
        "ERRORS" => SortRank::share(target.errors, target.requests),
        "REQUESTS" => SortRank::number(target.requests),
        "NOW" => SortRank::number(target.in_flight),
        // The worst first.
        "STATE" => SortRank::number(match target.state.as_str() {
            "open" => 0,
            "half_open" => 1,
            _ => 2,
        }),
        "PROVIDER" => SortRank::text(&target.provider),
        "WHY" => SortRank::text(target.reason.as_deref().unwrap_or("~")),
        _ => SortRank::text(format!("{} {}", target.slug, target.target)),
    }
}

/// A column of a list of holds. Ages grow as their beginnings fall.
pub(super) fn hold(hold: &OpenHold, column: &str) -> SortRank {
    match column {
        "HELD" => SortRank::number(hold.amount.picos()),
        "USED" => SortRank::number(hold.used.picos()),
        "AGE" => SortRank::number(hold.at.millis().saturating_neg()),
        "KEY" => SortRank::text(hold.key.to_string()),
        "MODEL" => SortRank::text(&hold.slug),
        "PATH" => SortRank::text(&hold.family),
        "STATE" => SortRank::number(hold.epoch),
        _ => SortRank::text(hold.request.to_string()),
    }
}

/// A column of the Exposure and Margin screens that the ledger has no order for.
pub(super) fn sums(row: &MarginRow, column: &str) -> SortRank {
    match column {
        "OF CHARGED" => SortRank::share(row.exposure.picos(), row.charge.picos()),
        "OF" => SortRank::share(
            row.margin().map_or(i64::MIN, Amount::picos),
            row.priced.picos(),
        ),
        _ => SortRank::number(row.requests),
    }
}

/// A column of the Nodes screen.
pub(super) fn node(node: &ReportedNode, column: &str) -> SortRank {
    match column {
        "REQUESTS/S" => SortRank::number(node.per_second),
        "HOLDS" => SortRank::number(node.holds),
        "SILENT" => SortRank::number(node.silent_ms),
        "NAME" => SortRank::text(&node.name),
        "VERSION" => SortRank::text(&node.version),
        "SINCE" => SortRank::text(&node.started_at),
        "FILES" => SortRank::text(&node.configuration),
        _ => SortRank::number(node.epoch),
    }
}

/// A column of a key's entries.
pub(super) fn entry(entry: &JournalEntry, column: &str) -> SortRank {
    match column {
        "AMOUNT" => SortRank::number(entry.amount.picos()),
        "BALANCE" => SortRank::number(entry.balance_after.picos()),
        "KIND" => SortRank::text(format::kind(entry.kind)),
        "WHAT" => SortRank::text(format::what(entry)),
        "KEY" => SortRank::text(entry.key.map(|key| key.to_string()).unwrap_or_default()),
        _ => SortRank::number(entry.position),
    }
}

/// A column of a key's payments or acts.
pub(super) fn act(act: &AuditRecord, column: &str) -> SortRank {
    match column {
        "AMOUNT" => SortRank::number(format::paid(act).picos()),
        "REFERENCE" => SortRank::text(format::act_fact(act, "reference")),
        "KIND" | "ACT" => SortRank::text(&act.act),
        "BY" | "BY, WHY" => SortRank::text(&act.actor),
        "DETAILS" => SortRank::text(format::act_details(&act.details)),
        _ => SortRank::number(act.position),
    }
}

/// A column of a key's models.
pub(super) fn of_model(row: &UsageRow, column: &str) -> SortRank {
    let usage = &row.usage;
    match column {
        "REQUESTS" => SortRank::number(row.requests),
        "INPUT" => SortRank::number(usage.input.saturating_add(usage.cache_write)),
        "CACHED" => SortRank::number(usage.cache_read),
        "OUTPUT" => SortRank::number(usage.output.saturating_add(usage.reasoning)),
        "MODEL" => SortRank::text(&row.slug),
        _ => SortRank::number(row.charge.picos()),
    }
}

/// A column of a customer's keys.
pub(super) fn member(row: &MemberKey, at: Timestamp, column: &str) -> SortRank {
    let key = &row.key;
    match column {
        "SPENT" => SortRank::number(row.spent.picos()),
        "HELD" => SortRank::number(row.held.picos()),
        "ROOM" => SortRank::number(key.spendable(at).picos()),
        "KIND" => SortRank::text(row.kind()),
        "STATE" => SortRank::text(state_word(key, at)),
        "KEY" => SortRank::text(key.id.to_string()),
        "LABEL" => SortRank::text(&key.settings.label),
        _ => SortRank::number(key.created_at.millis()),
    }
}

/// A column of the Customers screen that the ledger has no order for.
pub(super) fn customer(customer: &Customer, column: &str) -> SortRank {
    let settings = &customer.settings;
    match column {
        "LABEL" => SortRank::text(&settings.label),
        "EXTERNAL ID" => SortRank::text(settings.external_id.as_deref().unwrap_or_default()),
        "STATE" => SortRank::text(customer_word(customer)),
        "AVAILABLE" => SortRank::number(customer.account.available().picos()),
        _ => SortRank::text(customer.id.to_string()),
    }
}
