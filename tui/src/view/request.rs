//! The page of one request or payment: its entry in the journal, its running and failed attempts, and what its customer was told.
//!
//! A charge is in the journal for ever. What was refused, and which attempts failed, only the gateway remembers.

use farebox_ledger::{Bill, Entry};
use ratatui::layout::Rect;

use super::fields::Facts;
use super::pen::Pen;
use super::theme::Theme;
use crate::admin::{LiveEvent, UnderWay};
use crate::app::App;
use crate::app::modal::RequestPage;
use crate::format;

/// Draws it.
pub(super) fn draw(app: &App, pen: &mut Pen<'_>, area: Rect, page: &RequestPage) {
    let is_request = page.entry.as_ref().is_none_or(|entry| entry.bill.is_some());
    let (what, prefix) = match is_request {
        true => ("Request", "req"),
        false => ("Entry", "op"),
    };
    let inner = pen.frame(area, &format!("{what} {prefix}_{}", page.request));
    let theme = pen.theme;
    let mut list = Facts::default();
    if let Some(entry) = &page.entry {
        entry_facts(&mut list, theme, entry);
    } else if let Some(problem) = &page.problem {
        list.styled("", problem, theme.bad());
    } else if !page.read {
        list.styled("", "reading the journal …", theme.warn());
    } else {
        unsettled(app, theme, &mut list, page);
    }
    let known = page.known.as_deref();
    if let Some(now) = known.and_then(|known| known.under_way.as_ref()) {
        under_way(app, theme, &mut list, now);
    }
    if let Some(record) = record(app, page) {
        remembered(theme, &mut list, record);
    }
    list.draw_from(pen, area, inner, page.scroll);
}

/// The request as it ended: from its own page of the gateway, else from the live list.
fn record<'a>(app: &'a App, page: &'a RequestPage) -> Option<&'a LiveEvent> {
    let known = page.known.as_deref();
    known.and_then(|known| known.record.as_ref()).or_else(|| {
        let mut events = app.live.events.iter();
        events.find(|event| event.request_id.parse() == Ok(page.request))
    })
}

/// A request that is not in the journal: it runs, or no money was held for it.
fn unsettled(app: &App, theme: Theme, list: &mut Facts, page: &RequestPage) {
    let of_key = app.detail.iter().flat_map(|detail| &detail.holds);
    let mut holds = app.holds.rows.iter().chain(of_key);
    let hold = holds.find(|hold| hold.request == page.request);
    match (hold, record(app, page)) {
        (Some(hold), None) => {
            let age = format::age(app.now.millis() - hold.at.millis());
            list.plain("Key", &hold.key.to_string());
            list.styled(
                "Running",
                &format!("for {age} on {}", hold.slug),
                theme.good(),
            );
            let held = format!("{} USD, used {} so far", hold.amount, hold.used);
            list.plain("Held", &held);
        }
        (_, Some(event)) => {
            list.if_any("Key", event.key.as_deref().unwrap_or_default());
            let asked = [&event.asked, &event.slug]
                .into_iter()
                .find(|name| !name.is_empty());
            let asked = asked.map_or("nothing", String::as_str);
            list.plain("Asked for", &format!("{asked} · path {}", event.family));
            let text = format!(
                "not in the journal: it ended with {} {} before money was held",
                event.status, event.end_reason
            );
            list.styled("Ended", &text, theme.warn());
        }
        (None, None) => {
            list.styled("", "this request is not in the journal", theme.warn());
        }
    }
}

/// Where a running request is now, after which failures.
fn under_way(app: &App, theme: Theme, list: &mut Facts, now: &UnderWay) {
    for attempt in &now.attempts {
        list.styled("Failed", attempt, theme.warn());
    }
    if now.target.is_empty() {
        return;
    }
    let does = if now.answers { "answers" } else { "was asked" };
    let text = format!("{} {does}, since {}", now.target, app.since(&now.since));
    list.styled("Now", &text, theme.good());
}

/// What the gateway remembers beyond the journal.
fn remembered(theme: Theme, list: &mut Facts, record: &LiveEvent) {
    for attempt in &record.attempts {
        list.styled("Failed", attempt, theme.warn());
    }
    list.if_any("Told", &record.message);
    list.if_any("Code", &record.code);
    list.if_any("Field", &record.field);
    list.if_any("Answer", &record.answer_id);
    list.if_any("Removed", &record.removed);
    list.if_any("Lost", &record.lost);
}

fn entry_facts(list: &mut Facts, theme: Theme, entry: &Entry) {
    list.plain("Key", &format!("{} · its entry {}", entry.key, entry.seq));
    list.plain("Ended", &format!("{} UTC", format::stamp(entry.at)));
    let (amount, after) = (entry.amount, entry.balance_after);
    list.plain("Amount", &format!("{amount} USD, balance after it {after}"));
    match &entry.bill {
        Some(bill) => bill_facts(list, theme, bill),
        None => payment_facts(list, entry),
    }
}

/// An entry that no request made.
fn payment_facts(list: &mut Facts, entry: &Entry) {
    let kind = format::kind(entry.kind);
    list.plain("Kind", &format!("{kind} by {}", entry.actor));
    list.plain("Reference", entry.reference.as_deref().unwrap_or("—"));
    list.plain("Reason", entry.reason.as_deref().unwrap_or("—"));
    if let Some(request) = entry.refunds {
        list.plain("Gives back", &format!("req_{request}"));
    }
}

/// A request's end and each line of its bill.
fn bill_facts(list: &mut Facts, theme: Theme, bill: &Bill) {
    list.plain("Model", &format!("{} · path {}", bill.slug, bill.family));
    let target = match bill.target.as_str() {
        "" => "none was reached",
        target => target,
    };
    list.plain("Target", target);
    let first = bill
        .first_byte_ms
        .map_or_else(|| "no".to_owned(), |ms| format::span(ms.into()));
    let whole = format::span(bill.total_ms.into());
    let (status, reason) = (bill.status, &bill.end_reason);
    let ending = format!("{status} {reason} · first byte {first}, whole {whole}");
    list.plain("Ending", &ending);
    let counted = bill.counted_by().map_or(
        "not counted: nothing was produced",
        farebox_ledger::document::evidence,
    );
    list.plain("Counted by", counted);
    list.plain("Held", &format!("{} USD", bill.hold));
    if bill.exposure.is_positive() {
        let exposure = bill.exposure;
        let text = format!("{exposure} USD more may be billed to the operator");
        list.plain("Exposure", &text);
    }
    if let Some(cost) = bill.cost {
        list.plain("Cost", &format!("{cost} USD at the operator's own prices"));
    }
    if bill.loss.is_positive() {
        let loss = bill.loss;
        let text = format!("{loss} USD: the operator's loss, because the key had no more");
        list.plain("Loss", &text);
    }
    for (index, line) in bill.lines.iter().enumerate() {
        let cost = farebox_ledger::Amount::times(line.rate, line.count)
            .map_or_else(|| "?".to_owned(), |cost| cost.to_string());
        let count = format::count(line.count);
        let text = format!("{:<14} {count:>11} × {} = {cost}", line.what, line.rate);
        list.plain(if index == 0 { "Bill" } else { "" }, &text);
    }
    if bill.lines.is_empty() {
        list.styled("Bill", "free", theme.good());
    }
}
