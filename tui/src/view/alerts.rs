//! The Alerts screen: everything that is wrong now, each with its reason in full, what customers see, and what to do.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Pen, line_of};
use super::theme::Theme;
use crate::admin::ReportedAlert;
use crate::app::ConsoleApp;
use crate::app::live::GatewayLink;
use crate::format;
use crate::sanitize::{clean, wrap};

/// Cells before the texts of an alert, for the cursor and their names.
const NAME: u16 = 12;

/// One line of the screen.
struct AlertLine {
    /// The alert it belongs to.
    alert: usize,
    name: &'static str,
    text: String,
    style: Style,
}

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let alerts = app.alerts();
    let inner = pen.frame(
        area,
        &format!("Alerts · {}", format::many(alerts.len(), "alert")),
    );
    if app.gateway.link != GatewayLink::Live {
        return super::no_gateway(app, pen, inner);
    }
    if alerts.is_empty() {
        pen.text(inner, 0, 1, "no alert: nothing is wrong", pen.theme.good());
        return;
    }
    let cells = usize::from(inner.width.saturating_sub(NAME)).max(1);
    let blocks = alerts.iter().enumerate();
    let lines: Vec<AlertLine> = blocks
        .flat_map(|(index, alert)| block(app, pen.theme, (index, alert), cells))
        .collect();
    let height = usize::from(inner.height);
    let of_selected = |line: &AlertLine| line.alert == app.alert_list.selected;
    let start = lines.iter().position(of_selected).unwrap_or(0);
    let end = lines
        .iter()
        .rposition(of_selected)
        .map_or(0, |last| last + 1);
    // The whole selected alert is visible, or at least its beginning.
    let first = end.saturating_sub(height).min(start);
    for (y, line) in (0..inner.height).zip(lines.iter().skip(first)) {
        let selected = line.alert == app.alert_list.selected;
        let bar = if selected { "▌" } else { " " };
        pen.text(inner, 0, y, bar, pen.theme.strong());
        pen.text(inner, 2, y, line.name, pen.theme.faint());
        pen.text(inner, NAME, y, &line.text, line.style);
        if line.alert < alerts.len() {
            pen.rows_from(line_of(inner, y), &(line.alert..line.alert + 1));
        }
    }
    pen.extent(area, (first, height, lines.len()), " · j k");
}

/// The lines of one alert, and an empty one.
fn block(
    app: &ConsoleApp,
    theme: Theme,
    (index, alert): (usize, &ReportedAlert),
    cells: usize,
) -> Vec<AlertLine> {
    let style = match alert.severity.as_str() {
        "page" => theme.bad(),
        "warn" => theme.warn(),
        _ => theme.strong(),
    };
    let head = format!("{} {}", alert.kind, alert.subject);
    let mut lines = Vec::new();
    for (name, text, style) in [
        (severity(alert), head.as_str(), style),
        ("since", &app.since(&alert.since), Style::new()),
        ("why", &alert.reason, Style::new()),
        ("customers", &alert.customers, Style::new()),
        ("to do", &alert.remedy, theme.strong()),
    ] {
        for (at, text) in wrap(&clean(text), cells).into_iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            lines.push(AlertLine {
                alert: index,
                name,
                text,
                style,
            });
        }
    }
    lines.push(AlertLine {
        alert: usize::MAX,
        name: "",
        text: String::new(),
        style: Style::new(),
    });
    lines
}

fn severity(alert: &ReportedAlert) -> &'static str {
    match alert.severity.as_str() {
        "page" => "PAGE",
        "warn" => "WARN",
        _ => "info",
    }
}
