//! The Nodes screen: the gateways that share the ledger, as each last described itself, and the servers of its database.

use ratatui::layout::Rect;

use super::pen::{Pen, above, below, last};
use crate::admin::ReportedServer;
use crate::app::ConsoleApp;
use crate::app::nodes::{NODES, NodeLine, SERVERS};
use crate::app::order::ListOrder;
use crate::format;

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let (nodes, servers) = (app.nodes(), app.servers());
    let inner = pen.frame(
        area,
        &format!(
            "Nodes · {}{}",
            format::many(nodes.len(), "gateway"),
            app.node_list.order.in_title()
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
    pen.list(list, NODES, &nodes, &app.node_list);
    // Behind an empty line; heads and one row need two.
    let place = below(above(inner, 1), list.height.saturating_add(1));
    if !servers.is_empty() && place.height >= 2 {
        let servers: Vec<&ReportedServer> = servers.iter().collect();
        pen.rows(place, SERVERS, &servers, ListOrder::default());
    }
    foot(&nodes, pen, inner);
}

/// The last line: what to do, or how to read the page.
fn foot(nodes: &[NodeLine<'_>], pen: &mut Pen<'_>, inner: Rect) {
    let differ = nodes.iter().any(|line| line.differs);
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
    pen.text(last(inner, 1), 2, 0, hint, style);
}
