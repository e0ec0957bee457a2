//! The Money screen: its tabs, and the one that is shown.

mod spend;
mod sums;
mod waiting;

use ratatui::layout::Rect;

use super::pen::{Pen, below};
use crate::app::ConsoleApp;
use crate::app::money::MoneyTab;
use crate::app::mouse::Spot;

/// A lower screen names its tab in its title alone.
const TABS_FROM: u16 = 12;

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let title = match app.money.sums() {
        Some(sums) => sums::title(sums),
        None if app.money.tab == MoneyTab::Waiting => waiting::title(app),
        None => spend::title(app),
    };
    let mut inner = pen.frame(area, &title);
    if inner.height >= TABS_FROM {
        let here = app.money.tab;
        let tabs = MoneyTab::ALL.iter();
        let tabs = tabs.map(|(tab, name)| ((*name).to_owned(), *tab == here, Spot::Money(*tab)));
        pen.tabs(inner, tabs);
        inner = below(inner, 1);
    }
    match app.money.sums() {
        Some(sums) => sums::draw(app, sums, pen, inner),
        None if app.money.tab == MoneyTab::Waiting => waiting::draw(app, pen, inner),
        None => spend::draw(app, pen, inner),
    }
}
