//! The Money screen: what was charged over time, what of it is left, and what may be billed beyond it, a tab each.

pub(crate) mod exposure;
pub(crate) mod margin;
pub(crate) mod spend;
pub(crate) mod sums;

use farebox_ledger::Timestamp;

use super::list::orders;
use super::order::{ListOrder, ListState};
use spend::{SPEND, Spend};
use sums::{MarginView, Sums};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MoneyTab {
    /// Charges by hour and day.
    #[default]
    Spend,
    Sums(MarginView),
}

impl MoneyTab {
    /// All, with their names.
    pub(crate) const ALL: [(Self, &'static str); 3] = [
        (Self::Spend, "Spend"),
        (Self::Sums(MarginView::Margin), "Margin"),
        (Self::Sums(MarginView::Exposure), "Exposure"),
    ];
}

/// The screen.
#[derive(Debug)]
pub(crate) struct Money {
    pub(crate) tab: MoneyTab,
    pub(crate) spend: Spend,
    pub(crate) margin: Sums,
    pub(crate) exposure: Sums,
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
            MoneyTab::Spend => None,
            MoneyTab::Sums(MarginView::Margin) => Some(&self.margin),
            MoneyTab::Sums(MarginView::Exposure) => Some(&self.exposure),
        }
    }

    pub(crate) fn list(&self) -> &ListState {
        self.sums().map_or(&self.spend.list, |sums| &sums.list)
    }

    pub(crate) const fn list_mut(&mut self) -> &mut ListState {
        match self.tab {
            MoneyTab::Spend => &mut self.spend.list,
            MoneyTab::Sums(view) => &mut self.sums_mut(view).list,
        }
    }

    pub(crate) fn rows(&self, now: Timestamp) -> usize {
        match self.sums() {
            Some(sums) => sums.page.rows.len(),
            None => self.spend.lines(now).len(),
        }
    }

    pub(crate) fn orders(&self) -> Vec<ListOrder> {
        match self.sums() {
            Some(sums) => orders(sums.columns),
            None => orders(SPEND),
        }
    }
}
