//! Requests what the tabs of the Money screen add up.

use farebox_ledger::Timestamp;

use super::message::Effect;
use super::money::MoneyTab;
use super::money::spend::{HOUR, month_before};
use super::money::sums::Sums;
use super::{ConsoleApp, Screen};

impl ConsoleApp {
    pub(crate) fn show_money(&mut self, tab: MoneyTab) -> Vec<Effect> {
        self.money.tab = tab;
        self.show(Screen::Money)
    }

    /// Shows the next tab or the one before.
    pub(super) fn step_money(&mut self, forward: bool) -> Vec<Effect> {
        let all = MoneyTab::ALL.len();
        let here = (MoneyTab::ALL.iter()).position(|(tab, _)| *tab == self.money.tab);
        let step = if forward { 1 } else { all - 1 };
        let next = (here.unwrap_or_default() + step) % all;
        let next = MoneyTab::ALL.get(next).map(|(tab, _)| *tab);
        self.show_money(next.unwrap_or_default())
    }

    /// Requests the sums of all slugs, unless they are on their way: on a large ledger they take a while.
    fn load_spend(&mut self) -> Option<Effect> {
        if std::mem::replace(&mut self.money.spend.loading, true) {
            return None;
        }
        let to = Timestamp::from_millis(self.now.millis().saturating_add(HOUR));
        let from = month_before(self.now);
        Some(Effect::LoadSpend { from, to })
    }

    /// Shows or hides the charts above the sums of Margin and Exposure.
    pub(super) fn toggle_charts(&mut self) -> Vec<Effect> {
        self.money.charts = !self.money.charts;
        let asked = self.money.charts.then(|| self.load_spend());
        asked.flatten().into_iter().collect()
    }

    /// Requests the sums of this tab, and those of its charts.
    pub(crate) fn load_sums(&mut self) -> Vec<Effect> {
        let (tab, charts) = (self.money.tab, self.money.charts);
        let asked = match tab {
            MoneyTab::Spend => None,
            MoneyTab::Waiting => Some(Effect::LoadWaiting),
            MoneyTab::Sums(view) => {
                let query = self.money.sums_mut(view).ask(self.now);
                Some(Effect::LoadMargins { view, query })
            }
        };
        let charted = charts && tab != MoneyTab::Waiting || tab == MoneyTab::Spend;
        let charted = charted.then(|| self.load_spend()).flatten();
        asked.into_iter().chain(charted).collect()
    }

    /// Changes what this tab adds up, and requests it.
    pub(super) fn with_sums(&mut self, change: impl FnOnce(&mut Sums)) -> Vec<Effect> {
        if let MoneyTab::Sums(view) = self.money.tab {
            change(self.money.sums_mut(view));
        }
        self.load_sums()
    }
}
