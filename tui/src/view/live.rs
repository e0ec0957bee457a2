//! The Live screen: one line of charts, the newest running requests, and those that ended, newest first.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Pen, below};
use crate::app::ConsoleApp;
use crate::app::live::{GatewayLink, LIVE, unknown_field};
use crate::format;

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let live = &app.live;
    let shown = live.shown(app.now);
    let filter = match unknown_field(&live.list.filter) {
        Some(field) => {
            format!(" · no filter is called {field}: use status>=, status:, key: or model:")
        }
        None => live.list.filter_in_title(),
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
            live.list.order.in_title()
        ),
    );
    if shown.is_empty() && live.events.is_empty() && app.gateway.link != GatewayLink::Live {
        return super::no_gateway(app, pen, inner);
    }
    charts(app, pen, inner);
    if shown.is_empty() {
        let text = if live.list.filter.is_empty() {
            "no request has ended yet"
        } else {
            "no request matches this filter; esc clears it"
        };
        pen.text(inner, 0, 2, text, pen.theme.faint());
        return;
    }
    pen.list(below(inner, 2), LIVE, &shown, &live.list);
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
