//! Undo of what only changes the view: filters, sorting and marks. Acts on the ledger are undone by other acts.

use super::marks::Marks;
use super::message::Effect;
use super::money::MoneyTab;
use super::order::ListOrder;
use super::{ConsoleApp, Screen};

/// Steps that are remembered.
const STEPS: usize = 100;

/// How a screen lists its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    screen: Screen,
    money: MoneyTab,
    filter: String,
    order: ListOrder,
    marks: Marks,
}

impl Look {
    /// Whether it is one of the same list.
    fn is_of(&self, other: &Self) -> bool {
        (self.screen, self.money) == (other.screen, other.money)
    }

    /// What differs from another look, in a word.
    fn differs(&self, other: &Self) -> &'static str {
        if self.filter != other.filter {
            "filter"
        } else if self.marks != other.marks {
            "marks"
        } else {
            "order"
        }
    }
}

/// The looks before the last changes.
#[derive(Debug, Default)]
pub(super) struct Undo {
    before: Vec<Look>,
    /// The look before a filter that is still being typed.
    typing: Option<Look>,
    /// The last action was an undo, which is no change to remember.
    undone: bool,
}

impl Undo {
    /// Whether nothing can be undone.
    pub(super) fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// The look to compare with after an action: before the first letter of a filter, else now.
    pub(super) fn before(&mut self, now: Look) -> Look {
        self.undone = false;
        self.typing.take().unwrap_or(now)
    }
}

impl ConsoleApp {
    /// How this screen lists its rows now.
    pub(super) fn look(&self) -> Look {
        let list = self.list_at(self.screen_place());
        Look {
            screen: self.screen,
            money: self.money.tab,
            filter: self.filter_text(),
            order: list.map(|list| list.order).unwrap_or_default(),
            marks: self.marks.clone(),
        }
    }

    /// Remembers a look if an action has changed it.
    pub(super) fn note(&mut self, before: Look) {
        if self.filtering.is_some() {
            self.undo.typing = Some(before);
        } else if !self.undo.undone && before.is_of(&self.look()) && before != self.look() {
            self.undo.before.push(before);
            let surplus = self.undo.before.len().saturating_sub(STEPS);
            self.undo.before.drain(..surplus);
        }
    }

    /// Goes back to the look before the last change, on its screen.
    pub(super) fn undo(&mut self) -> Vec<Effect> {
        let Some(look) = self.undo.before.pop() else {
            return Vec::new();
        };
        self.undo.undone = true;
        let here = look.is_of(&self.look()) && !self.detail_open;
        if look.screen == Screen::Money {
            self.money.tab = look.money;
        }
        let mut effects = if here {
            Vec::new()
        } else {
            self.show(look.screen)
        };
        let now = self.look();
        self.say(format!("undone: {}", now.differs(&look)), false);
        self.marks = look.marks;
        if now.order != look.order {
            effects.extend(self.set_order(look.order));
        }
        if now.filter != look.filter {
            effects.extend(self.set_filter(look.filter, false));
        }
        effects
    }
}
