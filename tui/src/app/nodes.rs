//! The lists of the Nodes screen: the gateways that share the ledger, as each last described itself, and the servers of its database.

use super::ConsoleApp;
use super::cell::{age_of, count, faint, number, plain, strong, text};
use super::list::{ListColumn, ListRow, fill, left, right, sorted};
use super::tone::Tone;
use crate::admin::{ReportedNode, ReportedServer};
use crate::format;

/// Gateways silent for longer are marked; a gateway renews every second.
// One late renewal is nothing; the other gateways take one for dead after ten seconds.
const SILENT: i64 = 3_000;

/// A gateway.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeLine<'a> {
    node: &'a ReportedNode,
    /// It runs other files than the first one.
    pub(crate) differs: bool,
}

impl ListRow for NodeLine<'static> {
    type At<'a> = NodeLine<'a>;
}

/// The gateways.
pub(crate) const NODES: &[ListColumn<NodeLine>] = &[
    right("EPOCH", 6, 3).falling(8, |line, _| {
        faint(line.node.epoch).by(number(line.node.epoch))
    }),
    fill("NAME").rising(4, |line, _| strong(&line.node.name)),
    left("VERSION", 8, 2).rising(5, |line, _| plain(&line.node.version)),
    left("SINCE", 8, 4).falling(6, |NodeLine { node, .. }, _| {
        faint(format::clock_of(&node.started_at)).by(text(&node.started_at))
    }),
    right("REQUESTS/S", 10, 0).falling(1, |line, _| count(line.node.per_second)),
    right("HOLDS", 6, 0).falling(2, |line, _| count(line.node.holds)),
    right("SILENT", 7, 0).falling(3, |line, _| {
        let silent = line.node.silent_ms;
        age_of(silent).toned(if silent >= SILENT {
            Tone::Bad
        } else {
            Tone::Good
        })
    }),
    left("FILES", 25, 1).rising(7, |NodeLine { node, differs }, _| {
        let files = match node.configuration.as_str() {
            "" => "not told yet",
            files => files,
        };
        let tone = if differs { Tone::Warn } else { Tone::Faint };
        plain(files).toned(tone)
    }),
];

/// The servers of the database, as the gateway last saw them.
pub(crate) const SERVERS: &[ListColumn<ReportedServer>] = &[
    left("SERVER", 24, 0).shows(|server, _| plain(&server.place)),
    left("NAME", 10, 1).shows(|server, _| strong(&server.name)),
    fill("STATE").shows(|server, _| {
        let tone = if server.stale {
            Tone::Bad
        } else {
            Tone::Good.when(server.used)
        };
        plain(&server.state).toned(tone)
    }),
];

impl ListRow for ReportedServer {
    type At<'a> = &'a Self;
}

impl ConsoleApp {
    /// The gateways that share the ledger.
    pub(crate) fn nodes(&self) -> Vec<NodeLine<'_>> {
        let nodes = self
            .gateway
            .status
            .as_ref()
            .map(|status| status.nodes.as_slice());
        let nodes = nodes.unwrap_or_default();
        let differs = |node: &ReportedNode| {
            let first = nodes.first();
            first.is_some_and(|first| node.configuration != first.configuration)
        };
        let line = |node| NodeLine {
            node,
            differs: differs(node),
        };
        sorted(
            NODES,
            nodes.iter().map(line).collect(),
            self.node_list.order,
            self.now,
        )
    }

    /// The servers of the ledger's database.
    pub(crate) fn servers(&self) -> &[ReportedServer] {
        let status = self.gateway.status.as_ref();
        status.map_or(&[], |status| &status.servers)
    }
}
