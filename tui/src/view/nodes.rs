//! The Nodes screen: the gateways that share the ledger, as each last described itself.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Column, Pen, left, right};
use crate::admin::Node;
use crate::app::App;
use crate::app::keys::window;
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

/// Gateways silent for longer are marked; a gateway renews every second.
const SILENT: i64 = 3_000;

/// Draws it.
pub(super) fn draw(app: &App, pen: &mut Pen<'_>, area: Rect) {
    let nodes = app.nodes();
    let inner = pen.frame(
        area,
        &format!("Nodes · {}", format::many(nodes.len(), "gateway")),
    );
    let Some(first) = nodes.first() else {
        let why = match &app.gateway.status {
            Some(_) => {
                "the ledger is a file, which one gateway serves; several share a ledger on PostgreSQL"
            }
            None => "no gateway answers; start it or pass --admin",
        };
        pen.paragraph(inner, 1, why, pen.theme.faint());
        return;
    };
    let placed = pen.heads(inner, 0, NODES);
    let list = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(2),
        ..inner
    };
    for (y, index) in window(app.selected_node, nodes.len(), usize::from(list.height)).enumerate() {
        let Some(node) = nodes.get(index) else {
            continue;
        };
        let differs = node.configuration != first.configuration;
        let files = if node.configuration.is_empty() {
            "not told yet"
        } else {
            &node.configuration
        };
        let cells = [
            (node.epoch.to_string(), pen.theme.faint()),
            (sanitize::clean(&node.name).into_owned(), pen.theme.strong()),
            (sanitize::clean(&node.version).into_owned(), Style::new()),
            (format::clock_of(&node.started_at), pen.theme.faint()),
            (format::count(node.per_second), Style::new()),
            (format::count(node.holds), Style::new()),
            (
                format::age(node.silent_ms),
                if node.silent_ms >= SILENT {
                    pen.theme.bad()
                } else {
                    pen.theme.good()
                },
            ),
            (
                sanitize::clean(files).into_owned(),
                if differs {
                    pen.theme.warn()
                } else {
                    pen.theme.faint()
                },
            ),
        ];
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            NODES,
            &placed,
            &cells,
            index == app.selected_node,
        );
    }
    let bottom = Rect {
        y: inner.bottom().saturating_sub(1),
        height: 1,
        ..inner
    };
    let differ = nodes
        .iter()
        .any(|node: &Node| node.configuration != first.configuration);
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
