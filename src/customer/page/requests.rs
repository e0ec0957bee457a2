//! Every request of the key, page by page, and the newest refusals with their remedies.

use std::collections::BTreeMap;

use farebox_ledger::{Bill, JournalEntry, KeyId};
use maud::{Markup, html};

use super::display;
use super::table::{column, table};
use crate::customer::activity::RefusedRequest;
use crate::customer::newest::{FailureRun, NewestRequests};
use crate::customer::receipt;
use crate::proxy::record;

/// The labels of a customer's keys, which only its owner sees.
pub(in crate::customer) type KeyLabels = BTreeMap<KeyId, String>;

/// The table of requests; with `labels`, it names the key of each.
pub(in crate::customer) fn rows(entries: &[JournalEntry], labels: Option<&KeyLabels>) -> Markup {
    listed(entries.iter().map(|entry| (entry, None)), labels)
}

/// The table of the overview, in which a row may be several failures.
pub(in crate::customer) fn newest(newest: &NewestRequests, labels: Option<&KeyLabels>) -> Markup {
    let rows = newest.rows.iter();
    listed(rows.map(|row| (&row.entry, row.run)), labels)
}

fn listed<'a>(
    entries: impl Iterator<Item = (&'a JournalEntry, Option<FailureRun>)> + Clone,
    labels: Option<&KeyLabels>,
) -> Markup {
    let mut columns = vec![
        column("Time (UTC)", "time"),
        column("Model", "name"),
        column("Status", ""),
        column("Tokens", ""),
        column("USD", "number cost"),
        column("First byte", "number"),
        column("Receipt", "id"),
    ];
    columns.extend(labels.map(|_| column("Key", "")));
    let places = display::places(entries.clone().map(|(entry, _)| receipt::charged(entry)));
    let is_empty = entries.clone().next().is_none();
    let rows = entries.map(|(entry, run)| row(entry, run, places, labels));
    html! { @if is_empty { p.empty { "No requests yet. The Set up view has settings that are ready to paste." } } @else {
        (table("stacked requests", "Requests, newest first", &columns, rows))
    } }
}

/// How often a failure was repeated, and where all of them are listed.
fn repeated(entry: &JournalEntry, bill: &Bill, run: FailureRun) -> Markup {
    let key = entry.key.map(|key| key.to_string()).unwrap_or_default();
    // A slug needs no escaping in a query.
    let all = format!(
        "/dashboard/requests?model={}&day=&status=cut&key={key}",
        bill.slug
    );
    html! { " " span.times {
        a href=(all) { @if run.has_more { "at least " } (run.count) " times" } " since " (display::time(run.since))
    } }
}

fn row(
    entry: &JournalEntry,
    run: Option<FailureRun>,
    places: usize,
    labels: Option<&KeyLabels>,
) -> Vec<Markup> {
    let blank = Bill::default();
    let bill = entry.bill.as_ref().unwrap_or(&blank);
    let usage = bill.usage;
    let good = receipt::is_good(bill);
    let id = record::request_id(entry.operation);
    let key = labels.zip(entry.key).map(|(labels, key)| {
        html! { @match labels.get(&key) {
            Some(label) if !label.is_empty() => (label),
            _ => code { (key) },
        } }
    });
    let cells = [
        html! { (display::time(entry.at)) },
        html! { (bill.slug) @if let Some(class) = bill.served.class() { " " span.hint { (class) } } },
        html! {
            span class=(if good { "pill good" } else { "pill bad" }) title=(display::explain(bill.end_reason.as_str())) {
                (bill.status) " " (bill.end_reason.as_str().replace('_', " "))
            }
            @if let Some(run) = run { (repeated(entry, bill, run)) }
        },
        html! {
            (display::count(usage.prompt())) " in"
            @if usage.cache_read > 0 { " (" (display::count(usage.cache_read)) " cached)" }
            ", " (display::count(usage.all_output())) " out"
        },
        html! { (display::aligned(receipt::charged(entry), places)) },
        html! { @match bill.first_byte_ms { Some(ms) => (display::duration(ms)), None => "–" } },
        html! { a href=(format!("/dashboard/requests/{id}")) title=(id) { code { "…" (ending(&id)) } } },
    ];
    cells.into_iter().chain(key).collect()
}

/// The end of a request id, which differs in any two of a page; the link has all of it.
fn ending(id: &str) -> &str {
    id.get(id.len().saturating_sub(8)..).unwrap_or(id)
}

/// The filter of the view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::customer) struct RequestFilter {
    pub(in crate::customer) model: String,
    /// A day in UTC, as in `2026-11-22`.
    pub(in crate::customer) day: String,
    /// `ok` or `cut`; empty for both.
    pub(in crate::customer) status: String,
    /// Our id of a request, or the id in its answer. It finds one request, whatever else is chosen.
    pub(in crate::customer) id: String,
    /// One of the customer's keys, for an owner; `None` is all of them.
    pub(in crate::customer) key: Option<KeyId>,
}

impl RequestFilter {
    /// Whether anything is left out.
    pub(in crate::customer) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an entry passes the filter.
    pub(in crate::customer) fn passes(&self, entry: &JournalEntry) -> bool {
        let blank = Bill::default();
        let bill = entry.bill.as_ref().unwrap_or(&blank);
        let status = match self.status.as_str() {
            "ok" => receipt::is_good(bill),
            "cut" => !receipt::is_good(bill),
            _ => true,
        };
        status
            && self.key.is_none_or(|key| entry.key == Some(key))
            && (self.model.is_empty() || bill.slug == self.model)
            && (self.day.is_empty() || display::format(entry.at, "%Y-%m-%d") == self.day)
    }

    /// Whether no entry older than this one can pass.
    pub(in crate::customer) fn is_past(&self, entry: &JournalEntry) -> bool {
        !self.day.is_empty() && display::format(entry.at, "%Y-%m-%d") < self.day
    }

    /// The address of the page that begins before an entry.
    fn before(&self, id: &str) -> String {
        if self.is_empty() {
            return format!("/dashboard/requests?before={id}");
        }
        // Every value was checked: slugs, days and words need no escaping.
        let key = self.key.map(|key| key.to_string()).unwrap_or_default();
        format!(
            "/dashboard/requests?model={}&day={}&status={}&key={key}&before={id}",
            self.model, self.day, self.status
        )
    }
}

/// The content of the view.
#[derive(Debug)]
pub(in crate::customer) struct RequestsPage<'a> {
    pub(in crate::customer) entries: &'a [JournalEntry],
    /// Where the next page begins.
    pub(in crate::customer) older: Option<&'a str>,
    /// Whether it begins with the newest.
    pub(in crate::customer) first: bool,
    pub(in crate::customer) filter: &'a RequestFilter,
    /// Slugs to choose from.
    pub(in crate::customer) models: &'a [String],
    pub(in crate::customer) refusals: &'a [RefusedRequest],
    /// For an owner.
    pub(in crate::customer) labels: Option<&'a KeyLabels>,
}

/// The view.
pub(in crate::customer) fn page(page: &RequestsPage<'_>) -> Markup {
    let RequestsPage {
        entries,
        older,
        first,
        filter,
        models,
        refusals,
        labels,
    } = *page;
    html! {
        h1 { "Requests" }
        section.card aria-label="Requests" {
            (choose(filter, models, labels))
            @if entries.is_empty() && !filter.is_empty() {
                p.empty { @if older.is_some() { "No matches in the newest requests searched." }
                    @else if !filter.id.is_empty() { "No charged request of this key has this id." }
                    @else { "None." } }
            } @else {
                div #newest { (rows(entries, labels)) }
            }
            p.pages {
                @if !first || !filter.is_empty() { a href="/dashboard/requests" { "Newest" } }
                @if let Some(before) = older { a href=(filter.before(before)) { "Older" } }
            }
        }
        section.card.screen aria-labelledby="export" {
            h2 #export { "Export" }
            form.inline method="get" action="/dashboard/requests.csv" {
                div { label for="from" { "First day" } input #from type="date" name="from"; }
                div { label for="to" { "Last day" } input #to type="date" name="to"; }
                button { "CSV" }
                button formaction="/dashboard/requests.json" { "JSON" }
            }
            p.hint { "Without days: the last 30. At most 366 days at once." }
        }
        section.card.screen aria-labelledby="refused" {
            h2 #refused { "Refused requests" }
            p.hint { @if labels.is_some() { "With this key. " } "The newest 50 since the gateway's start. A refused request costs nothing." }
            div #refusals { (self::refusals(refusals)) }
        }
    }
}

/// A form that works without a script.
fn choose(filter: &RequestFilter, models: &[String], labels: Option<&KeyLabels>) -> Markup {
    let states = [
        ("", "All"),
        ("ok", "Answered"),
        ("cut", "Failed or cut short"),
    ];
    html! {
        form.inline method="get" action="/dashboard/requests" {
            div { label for="model" { "Model" } select #model name="model" {
                option value="" { "All" }
                @for slug in models { option value=(slug) selected[*slug == filter.model] { (slug) } }
            } }
            div { label for="day" { "Day (UTC)" } input #day type="date" name="day" value=(filter.day); }
            div { label for="status" { "Status" } select #status name="status" {
                @for (value, name) in states { option value=(value) selected[value == filter.status] { (name) } }
            } }
            @if let Some(labels) = labels {
                div { label for="of-key" { "Key" } select #of-key name="key" {
                    option value="" { "All" }
                    @for (key, label) in labels { option value=(key) selected[filter.key == Some(*key)] {
                        @if label.is_empty() { (key) } @else { (label) }
                    } }
                } }
            }
            div { label for="id" { "Id" } input #id type="search" name="id" value=(filter.id) autocomplete="off" spellcheck="false"
                placeholder="req_… or an answer's id"; }
            button { "Show" }
        }
    }
}

/// Equal refusals: the newest one, their number, and the time of the oldest.
struct RefusalGroup<'a> {
    newest: &'a RefusedRequest,
    count: usize,
    oldest: &'a RefusedRequest,
}

/// Groups equal refusals, in the order of the newest of each. Numbers in the text make no difference.
fn grouped(refusals: &[RefusedRequest]) -> Vec<RefusalGroup<'_>> {
    let words = |refused: &RefusedRequest| {
        refused
            .message
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .collect::<String>()
    };
    let mut groups: Vec<(String, RefusalGroup<'_>)> = Vec::new();
    for refused in refusals {
        let text = words(refused);
        let same = groups.iter_mut().find(|(words, group)| {
            let newest = group.newest;
            (newest.status, &newest.reason, &newest.slug)
                == (refused.status, &refused.reason, &refused.slug)
                && *words == text
        });
        match same {
            Some((_, group)) => {
                group.count += 1;
                group.oldest = refused;
            }
            None => groups.push((
                text,
                RefusalGroup {
                    newest: refused,
                    count: 1,
                    oldest: refused,
                },
            )),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The newest refusals, each kind explained once.
pub(in crate::customer) fn refusals(refusals: &[RefusedRequest]) -> Markup {
    html! { @if refusals.is_empty() { p.empty { "None." } } @else {
        ul.refusals { @for RefusalGroup { newest: refused, count, oldest } in grouped(refusals) {
            li {
                p {
                    (display::time(refused.at)) " "
                    span.pill.bad { (refused.status) " " (refused.reason.replace('_', " ")) } " "
                    span.name { (refused.slug) }
                    @if count > 1 { " " span.times { (count) " times since " (display::time(oldest.at)) } }
                }
                @if !refused.message.is_empty() { p { (refused.message) } }
                p.hint { (display::explain(&refused.reason)) " " code { (record::request_id(refused.request)) } }
            }
        } }
    } }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{OperationId, Timestamp};

    use super::*;

    fn refused(second: i64, slug: &str, message: &str) -> RefusedRequest {
        let at = Timestamp::from_millis(second * 1_000);
        RefusedRequest {
            at,
            request: OperationId::new(at, 7),
            slug: slug.to_owned(),
            family: "chat",
            status: 429,
            reason: "out_of_balance".to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn equal_refusals_are_one_line() {
        let all = [
            refused(9, "a", "needs 0.12, has 0.01"),
            refused(8, "a", "needs 0.34, has 0.01"),
            refused(7, "b", "needs 0.34, has 0.01"),
            refused(6, "a", "needs 9.99, has 0.01"),
        ];
        let groups = grouped(&all);
        assert_eq!(
            groups.iter().map(|group| group.count).collect::<Vec<_>>(),
            [3, 1]
        );
        assert_eq!(
            (groups[0].newest.at.millis(), groups[0].oldest.at.millis()),
            (9_000, 6_000)
        );
        let shown = refusals(&all).into_string();
        assert!(
            shown.contains("3 times since")
                && shown.contains("needs 0.12")
                && !shown.contains("needs 9.99"),
            "{shown}"
        );
    }
}
