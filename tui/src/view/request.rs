//! The page of one request or payment: its entry in the journal, its running and failed attempts, and what its customer was told.
//!
//! A charge is in the journal for ever. What was refused, and which attempts failed, only the gateway remembers.

use ratatui::layout::Rect;

use super::entry::entry_facts;
use super::fields::FactList;
use super::pen::Pen;
use super::theme::Theme;
use crate::admin::{LiveEvent, ReportedUnderWay};
use crate::app::ConsoleApp;
use crate::app::modal::RequestPage;
use crate::format;

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, page: &RequestPage) {
    let is_request = page.entry.as_ref().is_none_or(|entry| entry.bill.is_some());
    let (what, prefix) = match is_request {
        true => ("Request", "req"),
        false => ("Entry", "op"),
    };
    let inner = pen.frame(area, &format!("{what} {prefix}_{}", page.request));
    let theme = pen.theme;
    let mut list = FactList::default();
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
fn record<'a>(app: &'a ConsoleApp, page: &'a RequestPage) -> Option<&'a LiveEvent> {
    let known = page.known.as_deref();
    known.and_then(|known| known.record.as_ref()).or_else(|| {
        let mut events = app.live.events.iter();
        events.find(|event| event.request_id.parse() == Ok(page.request))
    })
}

/// A request that is not in the journal: it runs, or no money was held for it.
fn unsettled(app: &ConsoleApp, theme: Theme, list: &mut FactList, page: &RequestPage) {
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
fn under_way(app: &ConsoleApp, theme: Theme, list: &mut FactList, now: &ReportedUnderWay) {
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
fn remembered(theme: Theme, list: &mut FactList, record: &LiveEvent) {
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
