//! The mouse: what a click or the wheel does at the places that the view has named. It selects, opens, sorts, scrolls and changes
//! tabs; nothing that changes the ledger is applied with it.

use super::ConsoleApp;
use super::bindings::works_at;
use super::command::ConsoleCommand;
use super::detail::Tab;
use super::message::Effect;
use super::money::MoneyTab;
use super::{Action, Screen};

/// Lines that one notch of the wheel moves.
const NOTCH: i16 = 3;

/// Which part of a divided screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pane {
    #[default]
    List,
    /// The page of one key or customer.
    Detail,
}

/// What the view has drawn at a place, for the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// The lines of a list; the first shows this row.
    Rows(Pane, usize),
    /// A column's heading.
    Head(Pane, &'static str),
    Tab(Tab),
    Money(MoneyTab),
    Screen(Screen),
    /// A key in the footer.
    Command(ConsoleCommand),
    /// What `esc` does.
    Escape,
    /// The lines of the palette; the first shows this one.
    Palette(usize),
}

impl ConsoleApp {
    /// A click on a place, `line` lines below its top.
    pub(super) fn click(&mut self, spot: Spot, line: usize) -> Vec<Effect> {
        // Under a page, and beside the palette, nothing of the screen acts.
        let covered = self.modal.is_some() || self.help.is_some();
        let acts = match spot {
            Spot::Escape => true,
            Spot::Palette(_) => self.palette.is_some(),
            _ => !covered && self.palette.is_none(),
        };
        if !acts {
            return Vec::new();
        }
        match spot {
            Spot::Escape => self.change(Action::Escape),
            Spot::Command(command) => self.perform(command),
            Spot::Screen(screen) => self.show(screen),
            Spot::Money(tab) => self.show_money(tab),
            Spot::Tab(tab) => {
                self.focus(Pane::Detail);
                if let Some(detail) = self.detail.as_mut() {
                    detail.show(tab);
                }
                Vec::new()
            }
            Spot::Head(pane, column) => {
                self.focus(pane);
                self.sort_column(column)
            }
            Spot::Rows(pane, first) => self.click_row(pane, first.saturating_add(line)),
            Spot::Palette(first) => {
                let lines = self.palette_lines().len();
                if let Some(palette) = self.palette.as_mut()
                    && first.saturating_add(line) < lines
                {
                    palette.selected = first.saturating_add(line);
                    return self.in_palette(Action::Enter);
                }
                Vec::new()
            }
        }
    }

    /// Selects a row; one that is selected already is opened.
    fn click_row(&mut self, pane: Pane, row: usize) -> Vec<Effect> {
        let focused = self.focus(pane);
        let here = self.list_at(self.place()).map_or(0, |list| list.selected);
        if here == row && focused {
            return match works_at(ConsoleCommand::Open, self.place()) {
                true => self.perform(ConsoleCommand::Open),
                false => Vec::new(),
            };
        }
        let lines = |number: usize| isize::try_from(number).unwrap_or(isize::MAX);
        self.move_by(lines(row).saturating_sub(lines(here)))
    }

    /// Gives a pane the focus; whether it had it.
    fn focus(&mut self, pane: Pane) -> bool {
        let had = self.detail_open == (pane == Pane::Detail);
        self.detail_open = pane == Pane::Detail;
        had
    }

    /// The wheel, up or down.
    pub(super) fn wheel(&mut self, down: bool) -> Vec<Effect> {
        let step = if down { NOTCH } else { -NOTCH };
        if self.help.is_some() || self.modal.is_some() {
            self.in_modal(Action::Scroll(step))
        } else if self.palette.is_some() {
            self.in_palette(Action::Scroll(step.signum()))
        } else {
            self.move_by(isize::from(step))
        }
    }
}
