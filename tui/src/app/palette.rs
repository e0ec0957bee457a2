//! The palette: every action by name, with the values that some of them take. Typing narrows the list, tab completes the selected
//! line, enter does it.

use super::bindings::{BINDINGS, works_at};
use super::command::ConsoleCommand;
use super::detail::Tab;
use super::message::Effect;
use super::modal::{Find, Hidden, Modal};
use super::money::MoneyTab;
use super::money::sums::Period;
use super::order::ListOrder;
use super::{Action, ConsoleApp};
use crate::background::ThemeChoice;
use crate::field::TextField;

#[derive(Debug, Clone)]
pub(crate) struct PaletteLine {
    /// What is typed for it.
    pub(crate) text: String,
    /// The key that does the same, if there is one.
    pub(crate) key: &'static str,
    pub(crate) help: String,
    /// Why it is not available now.
    pub(crate) reason: Option<String>,
    does: PaletteAct,
}

/// What a line does.
#[derive(Debug, Clone)]
enum PaletteAct {
    Command(ConsoleCommand),
    Sort(&'static str),
    Tab(Tab),
    Period(Period),
    Money(MoneyTab),
    Theme(ThemeChoice),
    Filter(String),
    Find(String),
}

impl PaletteLine {
    fn with_value(word: &str, value: &str, help: &str, does: PaletteAct) -> Self {
        Self {
            text: format!("{word} {value}"),
            key: "",
            help: help.to_owned(),
            reason: None,
            does,
        }
    }

    /// Whether the typed words are all in it.
    fn fits(&self, typed: &str) -> bool {
        let text = format!("{} {}", self.text, self.help).to_lowercase();
        typed.split_whitespace().all(|word| text.contains(word))
    }
}

impl ConsoleApp {
    /// What the palette offers now. Values are offered once something is typed.
    pub(crate) fn palette_lines(&self) -> Vec<PaletteLine> {
        let typed = self.palette.as_ref().map(|palette| palette.field.text());
        let typed = typed.unwrap_or_default().trim_start();
        let lower = typed.to_lowercase();
        let place = self.place();
        let here = BINDINGS
            .iter()
            .filter(|binding| !binding.command.moves() && binding.works_at(place));
        let mut lines: Vec<PaletteLine> = here
            .map(|binding| PaletteLine {
                text: binding.name.to_owned(),
                key: binding.key,
                help: binding.help.to_owned(),
                reason: binding.command.reason_against(self),
                does: PaletteAct::Command(binding.command),
            })
            .collect();
        if !lower.is_empty() {
            lines.extend(self.lines_with_values());
        }
        lines.retain(|line| line.fits(&lower));
        // Names that begin with the typed text come first.
        lines.sort_by_key(|line| !line.text.to_lowercase().starts_with(&lower));
        lines.splice(0..0, self.lines_with_text(typed));
        lines
    }

    /// The lines whose values are known.
    fn lines_with_values(&self) -> Vec<PaletteLine> {
        let line = PaletteLine::with_value;
        let orders = self.orders().into_iter().filter(|order| order.sorts());
        let sorts = orders.map(|ListOrder { column, .. }| {
            line(
                "sort",
                column,
                "sort by this column; again reverses",
                PaletteAct::Sort(column),
            )
        });
        let mut lines: Vec<PaletteLine> = sorts.collect();
        let theme = |(choice, name)| {
            line(
                "theme",
                name,
                "colours for such a terminal",
                PaletteAct::Theme(choice),
            )
        };
        lines.extend(ThemeChoice::ALL.map(theme));
        if let Some(detail) = self.detail.as_ref().filter(|_| self.detail_open) {
            let tab = |(tab, name): &(Tab, &str)| {
                line("tab", name, "show this tab", PaletteAct::Tab(*tab))
            };
            lines.extend(detail.tabs().iter().map(tab));
        } else if self.sums().is_some() {
            let of = |period: Period| {
                line(
                    "period",
                    period.name(),
                    "add these days up",
                    PaletteAct::Period(period),
                )
            };
            lines.extend(Period::ALL.map(of));
        }
        let money = MoneyTab::ALL
            .map(|(tab, name)| line("money", name, "show this tab", PaletteAct::Money(tab)));
        lines.extend(money);
        lines
    }

    /// The line whose value is the rest of what was typed: `filter acme`, `find inv-8902`.
    fn lines_with_text(&self, typed: &str) -> Option<PaletteLine> {
        let (word, value) = typed.split_once(' ')?;
        let value = value.trim();
        let (help, does) = match word {
            _ if value.is_empty() => return None,
            "filter" => (
                "show only lines that match",
                PaletteAct::Filter(value.to_owned()),
            ),
            "find" => ("go to it", PaletteAct::Find(value.to_owned())),
            "period" if self.sums().is_some() => (
                "add these days up",
                PaletteAct::Period(Period::typed(value)?),
            ),
            _ => return None,
        };
        let shown = crate::sanitize::mask(value);
        let mut line = PaletteLine::with_value(word, &shown, help, does);
        if word == "filter" && !works_at(ConsoleCommand::Filter, self.place()) {
            line.reason = Some("this screen has no filter".to_owned());
        }
        Some(line)
    }

    /// Handles a key in the palette.
    pub(crate) fn in_palette(&mut self, action: Action) -> Vec<Effect> {
        let lines = self.palette_lines();
        let Some(palette) = self.palette.as_mut() else {
            return Vec::new();
        };
        let chosen = lines.get(palette.selected);
        match action {
            Action::Edit(edit) => {
                palette.field.edit(&edit);
                palette.selected = 0;
            }
            Action::Complete => {
                if let Some(line) = chosen {
                    let takes_more = lines.iter().any(|other| {
                        let longer = other.text.strip_prefix(&line.text);
                        longer.is_some_and(|rest| rest.starts_with(' '))
                    }) || matches!(line.text.as_str(), "filter" | "find" | "sort");
                    let space = if takes_more { " " } else { "" };
                    palette.field = TextField::new(format!("{}{space}", line.text));
                    palette.selected = 0;
                }
            }
            Action::Next | Action::Scroll(1) => {
                palette.selected = (palette.selected + 1).min(lines.len().saturating_sub(1))
            }
            Action::Previous | Action::Scroll(-1) => {
                palette.selected = palette.selected.saturating_sub(1)
            }
            Action::Escape => self.palette = None,
            Action::Enter | Action::Submit => {
                let chosen = chosen.cloned();
                self.palette = None;
                return chosen.map(|line| self.run_line(line)).unwrap_or_default();
            }
            _ => {}
        }
        Vec::new()
    }

    fn run_line(&mut self, line: PaletteLine) -> Vec<Effect> {
        if let Some(reason) = line.reason {
            self.say(format!("not now: {reason}"), true);
            return Vec::new();
        }
        match line.does {
            PaletteAct::Command(command) => self.perform(command),
            PaletteAct::Sort(column) => self.sort_column(column),
            PaletteAct::Filter(text) => self.set_filter(text, false),
            PaletteAct::Period(period) => self.with_sums(|sums| sums.show(period)),
            PaletteAct::Theme(theme) => {
                self.theme = theme;
                Vec::new()
            }
            PaletteAct::Money(tab) => self.show_money(tab),
            PaletteAct::Tab(tab) => {
                if let Some(detail) = self.detail.as_mut() {
                    detail.show(tab);
                }
                Vec::new()
            }
            PaletteAct::Find(text) => {
                self.modal = Some(Modal::Find(Find {
                    field: TextField::new(text.clone()),
                    looking: true,
                    problem: None,
                }));
                vec![Effect::Find(Hidden(text))]
            }
        }
    }
}
