//! The Money screen: what was charged over time, what of it is left, what may be billed beyond it, and what waits for a person, a tab each.

pub(crate) mod exposure;
pub(crate) mod margin;
pub(crate) mod spend;
pub(crate) mod sums;
pub(crate) mod waiting;

use farebox_ledger::Timestamp;

use super::list::orders;
use super::order::{ListOrder, ListState};
use spend::{SPEND, Spend};
use sums::{MarginView, Sums};
use waiting::{WAITING, WaitingList};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MoneyTab {
    /// Charges by hour and day.
    #[default]
    Spend,
    Sums(MarginView),
    /// What waits for a person.
    Waiting,
}

impl MoneyTab {
    /// All, with their names.
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::Spend, "Spend"),
        (Self::Sums(MarginView::Margin), "Margin"),
        (Self::Sums(MarginView::Exposure), "Exposure"),
        (Self::Waiting, "Waiting"),
    ];
}

/// The screen.
#[derive(Debug)]
pub(crate) struct Money {
    pub(crate) tab: MoneyTab,
    pub(crate) spend: Spend,
    pub(crate) margin: Sums,
    pub(crate) exposure: Sums,
    pub(crate) waiting: WaitingList,
    /// Whether Margin and Exposure have charts above their sums.
    pub(crate) charts: bool,
}

impl Default for Money {
    fn default() -> Self {
        Self {
            tab: MoneyTab::default(),
            spend: Spend::default(),
            margin: Sums::new(MarginView::Margin, margin::LIST),
            exposure: Sums::new(MarginView::Exposure, exposure::LIST),
            waiting: WaitingList::default(),
            charts: false,
        }
    }
}

impl Money {
    /// The sums of a tab.
    pub(crate) const fn sums_mut(&mut self, view: MarginView) -> &mut Sums {
        match view {
            MarginView::Margin => &mut self.margin,
            MarginView::Exposure => &mut self.exposure,
        }
    }

    /// The sums of this tab.
    pub(crate) const fn sums(&self) -> Option<&Sums> {
        match self.tab {
            MoneyTab::Spend | MoneyTab::Waiting => None,
            MoneyTab::Sums(MarginView::Margin) => Some(&self.margin),
            MoneyTab::Sums(MarginView::Exposure) => Some(&self.exposure),
        }
    }

    pub(crate) const fn list(&self) -> &ListState {
        match self.tab {
            MoneyTab::Spend => &self.spend.list,
            MoneyTab::Sums(MarginView::Margin) => &self.margin.list,
            MoneyTab::Sums(MarginView::Exposure) => &self.exposure.list,
            MoneyTab::Waiting => &self.waiting.list,
        }
    }

    pub(crate) const fn list_mut(&mut self) -> &mut ListState {
        match self.tab {
            MoneyTab::Spend => &mut self.spend.list,
            MoneyTab::Sums(view) => &mut self.sums_mut(view).list,
            MoneyTab::Waiting => &mut self.waiting.list,
        }
    }

    pub(crate) fn rows(&self, now: Timestamp) -> usize {
        match self.sums() {
            Some(sums) => sums.page.rows.len(),
            None if self.tab == MoneyTab::Waiting => self.waiting.lines(now).len(),
            None => self.spend.lines(now).len(),
        }
    }

    pub(crate) fn orders(&self) -> Vec<ListOrder> {
        match self.sums() {
            Some(sums) => orders(sums.columns),
            None if self.tab == MoneyTab::Waiting => orders(WAITING),
            None => orders(SPEND),
        }
    }
}
