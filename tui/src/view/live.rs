//! The Live screen: one line of charts, the newest running requests, and those that ended, newest first.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Cell, Column, Pen, left, right};
use crate::admin::LiveEvent;
use crate::app::ConsoleApp;
use crate::app::keys::window;
use crate::app::live::{GatewayLink, amount, unknown_field};
use crate::{clock, format};

const COLUMNS: &[Column] = &[
    left("UTC", 8, 0),
    left("KEY", 12, 4),
    left("LABEL", 16, 1),
    left("MODEL", 0, 0),
    left("PATH", 5, 3),
    right("ST", 3, 0),
    right("TOKENS", 11, 2),
    right("CHARGE", 10, 0),
    right("TTFB", 6, 5),
    right("WHOLE", 6, 7),
    left("ENDED", 11, 6),
    left("VIA", 28, 8),
];

/// Draws it.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let live = &app.live;
    let shown = live.shown();
    let filter = match unknown_field(&live.filter) {
        Some(field) => {
            format!(" · no filter is called {field}: use status>=, status:, key: or model:")
        }
        None if live.filter.is_empty() => String::new(),
        None => format!(" · {}", live.filter),
    };
    let paused = if live.paused {
        format!(" · PAUSED, {} waiting", live.waiting())
    } else {
        String::new()
    };
    let status = app.gateway.status.as_ref();
    let left_out = match status.is_some_and(|status| status.shortened) {
        true => " · key ids are left out, see 7",
        false => "",
    };
    let inner = pen.frame(
        area,
        &format!(
            "Live{filter} · last {}{}{left_out}{paused}",
            format::many(shown.len(), "request"),
            live.order.in_title()
        ),
    );
    if shown.is_empty() && live.events.is_empty() && app.gateway.link != GatewayLink::Live {
        return super::no_gateway(app, pen, inner);
    }
    charts(app, pen, inner);
    if shown.is_empty() {
        let text = if live.filter.is_empty() {
            "no request has ended yet"
        } else {
            "no request matches this filter; esc clears it"
        };
        pen.text(inner, 0, 2, text, pen.theme.faint());
        return;
    }
    let table = Rect {
        y: inner.y + 2,
        height: inner.height.saturating_sub(2),
        ..inner
    };
    let placed = pen.heads(table, 0, COLUMNS, live.order);
    let list = Rect {
        y: table.y + 1,
        height: table.height.saturating_sub(1),
        ..table
    };
    let range = window(live.selected, shown.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some(event) = shown.get(index) else {
            continue;
        };
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            COLUMNS,
            &placed,
            &cells(app, pen, event),
            index == live.selected,
        );
    }
}

fn charts(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let theme = pen.theme;
    let seconds = app.live.seconds(app.now);
    let bars = usize::from(area.width / 4).min(seconds.len());
    let tail = seconds
        .get(seconds.len().saturating_sub(bars)..)
        .unwrap_or_default();
    let requests: Vec<u64> = tail.iter().map(|second| second.requests).collect();
    let charges: Vec<u64> = tail
        .iter()
        .map(|second| second.charge.max(0).unsigned_abs())
        .collect();
    let spent: i128 = seconds.iter().map(|second| i128::from(second.charge)).sum();
    let mut x = pen.text(area, 0, 0, "req/s ", theme.faint());
    x += pen.bars(area, x, 0, &requests, theme.good());
    x += pen.text(area, x, 0, "  $ ", theme.faint());
    x += pen.bars(area, x, 0, &charges, theme.good());
    let spent = format!("  {} in 60 s", format::total(spent));
    pen.text(area, x, 0, &spent, Style::new());
}

fn cells(app: &ConsoleApp, pen: &Pen<'_>, event: &LiveEvent) -> Vec<Cell> {
    let theme = pen.theme;
    let runs = event.status == 0;
    let status = match event.status {
        0..400 => theme.good(),
        429 => theme.warn(),
        400..500 => Style::new(),
        _ => theme.bad(),
    };
    let key = event.key.clone().unwrap_or_default();
    let label = match app.live.label(event) {
        "" => key.clone(),
        label => label.to_owned(),
    };
    let whole = match clock::parse(&event.at).filter(|_| runs) {
        Some(begun) => format::age(app.now.millis() - begun.millis()),
        None => format::span(event.total_ms),
    };
    let lost = amount(event.loss.as_deref()).is_some_and(|loss| loss.is_positive());
    let family = match event.family.as_str() {
        "responses" => "resp",
        "messages" => "nat",
        other => other,
    };
    vec![
        (format::clock_of(&event.at), theme.faint()),
        (key, theme.key()),
        (label, Style::new()),
        // The requested model, if it is not one of ours.
        if event.slug.is_empty() {
            (event.asked.clone(), theme.warn())
        } else {
            (event.slug.clone(), Style::new())
        },
        (family.to_owned(), theme.faint()),
        (
            match runs {
                true => "···".to_owned(),
                false => event.status.to_string(),
            },
            status,
        ),
        (counts(event), Style::new()),
        (
            charge(event).unwrap_or_default(),
            if lost { theme.warn() } else { Style::new() },
        ),
        (
            event.first_byte_ms.map(format::span).unwrap_or_default(),
            theme.faint(),
        ),
        (whole, theme.faint()),
        (
            event.end_reason.clone(),
            if event.status >= 400 {
                theme.warn()
            } else {
                theme.faint()
            },
        ),
        (event.target.clone(), theme.faint()),
    ]
}

/// Tokens in and out, if any were counted.
fn counts(event: &LiveEvent) -> String {
    let usage = &event.usage;
    let input = usage
        .input
        .saturating_add(usage.cache_read)
        .saturating_add(usage.cache_write);
    let output = usage.output.saturating_add(usage.reasoning);
    if input.saturating_add(output) == 0 {
        return String::new();
    }
    format!("{}→{}", format::tokens(input), format::tokens(output))
}

/// What was charged; while it runs, what is held, with an `h`.
fn charge(event: &LiveEvent) -> Option<String> {
    if event.status == 0 {
        let held = amount(event.hold.as_deref())?;
        return Some(format!("{}h", format::within(held, 9)));
    }
    let charge = amount(event.charge.as_deref()).filter(|charge| charge.is_positive())?;
    Some(format::within(charge, 10))
}
