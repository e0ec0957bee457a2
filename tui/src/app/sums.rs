//! Requests what Spend, Exposure and Margin add up.

use farebox_ledger::Timestamp;

use super::margins::Sums;
use super::message::Effect;
use super::spend::{HOUR, month_before};
use super::{ConsoleApp, Screen};

impl ConsoleApp {
    /// Requests the sums of all slugs, unless they are on their way: on a large ledger they take a while.
    pub(super) fn load_spend(&mut self) -> Vec<Effect> {
        if std::mem::replace(&mut self.spend.loading, true) {
            return Vec::new();
        }
        let to = Timestamp::from_millis(self.now.millis().saturating_add(HOUR));
        let from = month_before(self.now);
        vec![Effect::LoadSpend { from, to }]
    }

    /// Shows or hides the charts above the sums of Margin and Exposure.
    pub(super) fn toggle_charts(&mut self) -> Vec<Effect> {
        self.charts = !self.charts;
        if self.charts {
            self.load_spend()
        } else {
            Vec::new()
        }
    }

    /// Requests the sums of this screen, and those of its charts.
    pub(crate) fn load_sums(&mut self) -> Vec<Effect> {
        let now = self.now;
        let asked = self.sums_mut().map(|sums| (sums.view, sums.ask(now)));
        let charted = self.screen == Screen::Spend || (self.charts && asked.is_some());
        let mut effects: Vec<Effect> = asked
            .map(|(view, query)| Effect::LoadMargins { view, query })
            .into_iter()
            .collect();
        if charted {
            effects.extend(self.load_spend());
        }
        effects
    }

    /// Changes what this screen adds up, and requests it.
    pub(super) fn with_sums(&mut self, change: impl FnOnce(&mut Sums)) -> Vec<Effect> {
        if let Some(sums) = self.sums_mut() {
            change(sums);
        }
        self.load_sums()
    }
}
