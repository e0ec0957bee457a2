//! The lists on the page of a key or customer, one for each tab.

use farebox_ledger::{Amount, AuditRecord, GrantRecord, JournalEntry, OpenHold, RunSum, UsageRow};
use farebox_selling::subscription::{PlanPeriodDocument, PlanWindowDocument, SubscriptionDocument};
use farebox_selling::value::Instant;

use super::cell::{
    ListCell, age, count, date, faint, id, number, plain, signed, state, text, tokens, unknown,
    when, within,
};
use super::list::{ListColumn, ListRow, fill, left, right};
use super::party::{MemberKey, state_word};
use super::tone::Tone;
use crate::format;

/// Entries of a customer, which name their keys.
pub(crate) const ENTRIES: &[ListColumn<JournalEntry>] = &[
    left("UTC", 11, 0).falling(6, |entry, now| {
        when(entry.at, now).by(number(entry.position))
    }),
    left("KIND", 7, 0).rising(3, |entry, _| plain(format::kind(entry.kind))),
    right("AMOUNT", 14, 0).falling(1, |entry, _| signed(entry.amount)),
    right("BALANCE", 12, 1).rising(2, |entry, _| within(entry.balance_after, 12)),
    fill("WHAT").rising(4, |entry, _| {
        let bill = entry.bill.as_ref();
        let lost = bill.is_some_and(|bill| bill.loss.is_positive());
        plain(format::what(entry)).toned(Tone::Warn.when(lost))
    }),
    left("KEY", 12, 2).rising(5, |entry, _| entry.key.map_or_else(|| id(""), id)),
];
pub(crate) const ENTRIES_OF_KEY: &[ListColumn<JournalEntry>] = ENTRIES.split_at(5).0;

/// Keys of a customer.
pub(crate) const MEMBERS: &[ListColumn<MemberKey>] = &[
    left("KEY", 12, 0).rising(7, |member, _| id(member.key.id)),
    fill("LABEL").rising(6, |member, _| plain(&member.key.settings.label)),
    left("KIND", 6, 1).rising(5, |member, _| faint(member.kind())),
    right("SPENT", 11, 0).falling(1, |member, _| within(member.spent, 11)),
    right("HELD", 9, 2).falling(2, |member, _| within(member.held, 9).faint()),
    right("ROOM", 11, 0).falling(3, |member, now| {
        within(member.key.spendable(now), 11).strong()
    }),
    left("STATE", 7, 0).rising(4, |member, now| state(state_word(&member.key, now))),
];

/// Grants of a customer.
pub(crate) const GRANTS: &[ListColumn<GrantRecord>] = &[
    left("GRANT", 12, 0).rising(7, |record, _| id(record.grant.id)),
    right("GIVEN", 11, 0).falling(1, |record, _| within(record.grant.amount, 11)),
    right("LEFT", 11, 0).falling(2, |record, now| {
        within(record.grant.remaining_at(now), 11).strong()
    }),
    right("USE", 3, 2).rising(3, |record, _| {
        plain(record.grant.priority).by(number(record.grant.priority))
    }),
    left("UNTIL", 10, 0).rising(4, |record, _| match record.grant.expires_at {
        Some(end) => plain(format::date(end)).by(number(end.millis())),
        None => faint("never").by(number(i64::MAX)),
    }),
    fill("WHAT").rising(6, |record, _| {
        let grant = &record.grant;
        let name = record.reference.0.as_ref();
        let name = name.map(|name| format!("{name}, "));
        let models = grant.models.as_ref();
        let models = models.map(|models| format!(" for {}", models.join(", ")));
        let [name, models] = [name, models].map(Option::unwrap_or_default);
        plain(format!("{name}{}{models}", grant.kind.as_str()))
    }),
    left("STATE", 9, 0).rising(5, |record, now| state(record.grant.status_at(now).as_str())),
];

/// Subscriptions of a customer. Where room is short, its windows say more than the end of a period, which is that of what is paid.
pub(crate) const PLANS: &[ListColumn<SubscriptionDocument>] = &[
    left("SUBSCRIPTION", 12, 5).rising(8, |of, _| id(&of.id)),
    fill("PLAN").rising(6, |of, _| plain(&of.plan)),
    right("LEFT", 9, 0).falling(1, |of, _| {
        of_period(of, |period| within(period.remaining.0, 9).strong())
    }),
    right("OF", 9, 4).falling(2, |of, _| {
        of_period(of, |period| within(period.allowance.0, 9))
    }),
    // Of the window that leaves least.
    right("WINDOW", 9, 2).falling(3, |of, _| {
        of_period(of, |_| match tightest(of) {
            Some(window) => within(window.available.0, 9),
            None => faint("none"),
        })
    }),
    left("OPENS", 11, 2).rising(4, |of, now| {
        let opens = tightest(of).and_then(|window| window.opens_at);
        opens.map_or_else(
            || faint("").by(number(i64::MIN)),
            |Instant(at)| when(at, now),
        )
    }),
    left("PERIOD TO", 10, 3).rising(5, |of, _| of_period(of, |period| date(period.ends_at.0))),
    left("PAID TO", 10, 1).rising(7, |of, _| match of.paid_until {
        Some(Instant(end)) => date(end),
        None => faint("not paid"),
    }),
    left("STATE", 7, 0).rising(9, |of, _| state(of.status.0.as_str())),
];

/// A cell of the period that can be used.
fn of_period(
    of: &SubscriptionDocument,
    cell: impl Fn(&PlanPeriodDocument) -> ListCell,
) -> ListCell {
    of.period.as_ref().map_or_else(|| unknown().faint(), cell)
}

/// The window that leaves least.
fn tightest(of: &SubscriptionDocument) -> Option<&PlanWindowDocument> {
    of.windows.iter().min_by_key(|window| window.available.0)
}

pub(crate) const PAYMENTS: &[ListColumn<AuditRecord>] = &[
    left("UTC", 11, 0).falling(5, |act, now| when(act.at, now).by(number(act.position))),
    left("KIND", 9, 0).rising(4, |act, _| match act.act.as_str() {
        "top_up" | "create" => plain("top-up"),
        other => plain(other),
    }),
    right("AMOUNT", 13, 0).falling(1, |act, _| signed(format::paid(act))),
    left("REFERENCE", 16, 0).rising(2, |act, _| match format::act_fact(act, "reference") {
        none if none.is_empty() => plain(format::act_fact(act, "payment")),
        reference => plain(reference),
    }),
    fill("BY, WHY").rising(3, |act, _| {
        let why = ["reason", "why"]
            .map(|name| format::act_fact(act, name))
            .concat();
        let colon = if why.is_empty() { "" } else { ": " };
        plain(format!("by {}{colon}{why}", act.actor))
    }),
];

/// The last seven days of one model.
#[derive(Debug, Clone)]
pub(crate) struct ModelSum {
    pub(crate) sum: UsageRow,
    /// Charged for all models.
    pub(crate) all: Amount,
}

pub(crate) const MODEL_SUMS: &[ListColumn<ModelSum>] = &[
    fill("MODEL").rising(7, |model, _| plain(&model.sum.slug)),
    right("REQUESTS", 9, 0).falling(1, |model, _| count(model.sum.requests)),
    right("INPUT", 7, 2).falling(2, |ModelSum { sum, .. }, _| {
        tokens(sum.usage.input.saturating_add(sum.usage.cache_write))
    }),
    right("CACHED", 7, 3).falling(3, |model, _| tokens(model.sum.usage.cache_read)),
    right("OUTPUT", 7, 2).falling(4, |ModelSum { sum, .. }, _| tokens(sum.usage.all_output())),
    right("SPENT", 12, 0).falling(5, |model, _| within(model.sum.charge, 12)),
    right("SHARE", 6, 1).falling(6, |ModelSum { sum, all }, _| {
        plain(format::share(sum.charge, *all)).by(number(sum.charge.picos()))
    }),
];

/// The runs of this month.
pub(crate) const RUNS: &[ListColumn<RunSum>] = &[
    fill("RUN").rising(3, |sum, _| match sum.run.as_str() {
        "" => faint("others"),
        name => plain(name),
    }),
    right("REQUESTS", 9, 0).falling(1, |sum, _| count(sum.requests)),
    right("SPENT", 12, 0).falling(2, |sum, _| within(sum.charge, 12)),
];

/// Running requests.
pub(crate) const RUNNING: &[ListColumn<OpenHold>] = &[
    left("REQUEST", 15, 2).rising(6, |hold, _| {
        let request = hold.request.to_string();
        let tail = request.get(14..).unwrap_or(&request);
        faint(format!("…{tail}")).by(text(&request))
    }),
    fill("MODEL").rising(4, |hold, _| plain(&hold.slug)),
    left("PATH", 9, 3).rising(5, |hold, _| plain(&hold.family)),
    right("HELD", 12, 0).falling(1, |hold, _| within(hold.amount, 12)),
    right("USED", 12, 1).falling(2, |hold, _| within(hold.used, 12)),
    right("AGE", 7, 0).falling(3, |hold, now| age(hold.at, now)),
];

pub(crate) const ACTS: &[ListColumn<AuditRecord>] = &[
    left("UTC", 11, 0).falling(4, |act, now| when(act.at, now).by(number(act.position))),
    left("ACT", 8, 0).rising(1, |act, _| plain(&act.act)),
    left("BY", 12, 0).rising(2, |act, _| plain(&act.actor)),
    fill("DETAILS").rising(3, |act, _| plain(format::act_details(&act.details))),
];

impl ListRow for JournalEntry {
    type At<'a> = &'a Self;
}

impl ListRow for MemberKey {
    type At<'a> = &'a Self;
}

impl ListRow for GrantRecord {
    type At<'a> = &'a Self;
}

impl ListRow for SubscriptionDocument {
    type At<'a> = &'a Self;
}

impl ListRow for AuditRecord {
    type At<'a> = &'a Self;
}

impl ListRow for ModelSum {
    type At<'a> = &'a Self;
}

impl ListRow for RunSum {
    type At<'a> = &'a Self;
}

impl ListRow for OpenHold {
    type At<'a> = &'a Self;
}
