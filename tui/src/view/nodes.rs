//! The Nodes screen: the gateways that share the ledger, as each last described itself, and the servers of its database.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Column, Pen, left, right};
use crate::admin::{ReportedNode, ReportedServer};
use crate::app::ConsoleApp;
use crate::app::keys::window;
use crate::app::order::ListOrder;
use crate::{format, sanitize};

const NODES: &[Column] = &[
    right("EPOCH", 6, 3),
    left("NAME", 0, 0),
    left("VERSION", 8, 2),
    left("SINCE", 8, 4),
    right("REQUESTS/S", 10, 0),
    right("HOLDS", 6, 0),
    right("SILENT", 7, 0),
    left("FILES", 25, 1),
];

const SERVERS: &[Column] = &[
    left("SERVER", 24, 0),
    left("NAME", 10, 1),
    left("STATE", 0, 0),
];

/// Gateways silent for longer are marked; a gateway renews every second.
const SILENT: i64 = 3_000;

/// Draws it.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let (nodes, servers) = (app.nodes(), app.servers());
    let inner = pen.frame(
        area,
        &format!(
            "Nodes · {}{}",
            format::many(nodes.len(), "gateway"),
            app.nodes_order.in_title()
        ),
    );
    if nodes.is_empty() {
        let why = match &app.gateway.status {
            Some(_) => {
                "the ledger is a file, which one gateway serves; several share a ledger on PostgreSQL"
            }
            None => "no gateway answers; start it or pass --admin",
        };
        pen.paragraph(inner, 1, why, pen.theme.faint());
        return;
    }
    let room = inner.height.saturating_sub(1);
    let rows = u16::try_from(nodes.len()).unwrap_or(u16::MAX);
    let list = Rect {
        height: rows.saturating_add(1).min(room),
        ..inner
    };
    gateways(app, pen, list);
    // Behind an empty line; heads and one row need two.
    let place = Rect {
        y: list.bottom().saturating_add(1),
        height: room.saturating_sub(list.height).saturating_sub(1),
        ..inner
    };
    if !servers.is_empty() && place.height >= 2 {
        database(servers, pen, place);
    }
    foot(&nodes, pen, inner);
}

/// The gateways, below their heads.
fn gateways(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let nodes = app.nodes();
    let placed = pen.heads(area, 0, NODES, app.nodes_order);
    let list = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let range = window(app.selected_node, nodes.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some(node) = nodes.get(index) else {
            continue;
        };
        let differs = nodes
            .first()
            .is_some_and(|first| node.configuration != first.configuration);
        let cells = row(node, differs, pen);
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        pen.line(list, y, NODES, &placed, &cells, index == app.selected_node);
    }
}

fn row(node: &ReportedNode, differs: bool, pen: &Pen<'_>) -> [(String, Style); 8] {
    let files = if node.configuration.is_empty() {
        "not told yet"
    } else {
        &node.configuration
    };
    let silence = if node.silent_ms >= SILENT {
        pen.theme.bad()
    } else {
        pen.theme.good()
    };
    let files_style = if differs {
        pen.theme.warn()
    } else {
        pen.theme.faint()
    };
    [
        (node.epoch.to_string(), pen.theme.faint()),
        (sanitize::clean(&node.name).into_owned(), pen.theme.strong()),
        (sanitize::clean(&node.version).into_owned(), Style::new()),
        (format::clock_of(&node.started_at), pen.theme.faint()),
        (format::count(node.per_second), Style::new()),
        (format::count(node.holds), Style::new()),
        (format::age(node.silent_ms), silence),
        (sanitize::clean(files).into_owned(), files_style),
    ]
}

/// The servers of the database, as the gateway last saw them.
fn database(servers: &[ReportedServer], pen: &mut Pen<'_>, area: Rect) {
    let placed = pen.heads(area, 0, SERVERS, ListOrder::default());
    let list = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    for (y, server) in servers.iter().take(usize::from(list.height)).enumerate() {
        let style = if server.stale {
            pen.theme.bad()
        } else if server.used {
            pen.theme.good()
        } else {
            Style::new()
        };
        let cells = [
            (sanitize::clean(&server.place).into_owned(), Style::new()),
            (
                sanitize::clean(&server.name).into_owned(),
                pen.theme.strong(),
            ),
            (sanitize::clean(&server.state).into_owned(), style),
        ];
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        pen.line(list, y, SERVERS, &placed, &cells, false);
    }
}

/// The last line: what to do, or how to read the page.
fn foot(nodes: &[&ReportedNode], pen: &mut Pen<'_>, inner: Rect) {
    let bottom = Rect {
        y: inner.bottom().saturating_sub(1),
        height: 1,
        ..inner
    };
    let differ = nodes.windows(2).any(|two| match two {
        [one, other] => one.configuration != other.configuration,
        _ => false,
    });
    let (hint, style) = if differ {
        (
            "the gateways run different files: give all of them the same catalog and routes",
            pen.theme.warn(),
        )
    } else {
        (
            "a gateway that is silent for 10 s counts as dead, and its holds are ended",
            pen.theme.faint(),
        )
    };
    pen.text(bottom, 2, 0, hint, style);
}
