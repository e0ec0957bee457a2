//! The list of the Holds screen: money reserved by running requests.

use farebox_ledger::OpenHold;

use super::ConsoleApp;
use super::cell::{age, faint, id, plain, state, within};
use super::list::{ListColumn, ListRow, fill, left, right, sorted};
use super::live::GatewayLink;

/// An open hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HoldLine<'a> {
    pub(crate) hold: &'a OpenHold,
    state: &'static str,
}

impl ListRow for HoldLine<'static> {
    type At<'a> = HoldLine<'a>;
}

pub(crate) const HOLDS: &[ListColumn<HoldLine>] = &[
    left("REQUEST", 26, 4).rising(8, |line, _| faint(line.hold.request)),
    left("KEY", 12, 0).rising(4, |line, _| id(line.hold.key)),
    fill("MODEL").rising(5, |line, _| plain(&line.hold.slug)),
    left("PATH", 9, 3).rising(6, |line, _| faint(&line.hold.family)),
    right("HELD", 13, 0).falling(1, |line, _| within(line.hold.amount, 13).strong()),
    right("USED", 12, 2).falling(2, |line, _| within(line.hold.used, 12)),
    right("AGE", 7, 0).falling(3, |line, now| age(line.hold.at, now)),
    left("STATE", 9, 1).rising(7, |line, _| state(line.state)),
];

impl ConsoleApp {
    /// Holds that pass the filter. One of an epoch before the newest belongs to a gateway that no longer runs.
    pub(crate) fn shown_holds(&self) -> Vec<HoldLine<'_>> {
        let filter = self.holds.list.filter.to_ascii_lowercase();
        let passes = |hold: &&OpenHold| {
            filter.split_whitespace().all(|word| {
                let word = word.split_once(':').map_or(word, |(_, rest)| rest);
                hold.slug.to_ascii_lowercase().contains(word)
                    || hold.key.to_string().contains(word)
                    || hold.request.to_string().contains(word)
            })
        };
        let newest = self.holds.rows.iter().map(|hold| hold.epoch).max();
        let state = |hold: &OpenHold| match self.gateway.link {
            _ if Some(hold.epoch) < newest => "left over",
            GatewayLink::Live => "running",
            GatewayLink::Trying | GatewayLink::Down(_) => "open",
        };
        let holds = self.holds.rows.iter().filter(passes);
        let lines = holds
            .map(|hold| HoldLine {
                hold,
                state: state(hold),
            })
            .collect();
        sorted(HOLDS, lines, self.holds.list.order, self.now)
    }
}
