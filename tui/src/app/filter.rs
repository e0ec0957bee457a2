//! The line that narrows a screen's list while it is typed.

use super::keys::From;
use super::message::Effect;
use super::party_filter::{CustomerFilter, KeyFilter};
use super::{Action, ConsoleApp, Screen};
use crate::field::TextField;

impl ConsoleApp {
    /// The filter of this screen.
    pub(crate) fn filter_text(&self) -> String {
        let list = self.list_at(self.screen_place());
        list.map(|list| list.filter.clone()).unwrap_or_default()
    }

    /// Filters this screen.
    pub(crate) fn set_filter(&mut self, text: String, debounce: bool) -> Vec<Effect> {
        match self.screen {
            Screen::Keys => return self.filter_keys(text, debounce),
            Screen::Customers => return self.filter_customers(text, debounce),
            _ => {}
        }
        if let Some(list) = self.list_mut(self.screen_place()) {
            (list.filter, list.selected) = (text, 0);
        }
        Vec::new()
    }

    fn filter_keys(&mut self, text: String, debounce: bool) -> Vec<Effect> {
        match KeyFilter::parse(&text) {
            Ok(filter) => {
                // A secret is never kept: only the public id inside it was needed.
                self.keys.list.filter = match filter.id {
                    Some(id) if text.contains("sk-") => id.to_string(),
                    _ => text,
                };
                self.keys.filter_error = None;
                if filter == self.keys.filter && self.keys.loaded {
                    return Vec::new();
                }
                self.keys.filter = filter;
                self.keys.list.selected = 0;
                vec![Effect::LoadKeys(self.keys.request(
                    From::Start,
                    false,
                    debounce,
                ))]
            }
            Err(error) => {
                // Nor is a part of one that is still being typed.
                self.keys.list.filter = if text.contains("sk-") {
                    String::new()
                } else {
                    text
                };
                self.keys.filter_error = Some(error);
                Vec::new()
            }
        }
    }

    fn filter_customers(&mut self, text: String, debounce: bool) -> Vec<Effect> {
        let parsed = CustomerFilter::parse(&text);
        let screen = &mut self.customers;
        screen.list.filter = text;
        match parsed {
            Err(error) => {
                screen.filter_error = Some(error);
                Vec::new()
            }
            Ok(filter) => {
                screen.filter_error = None;
                if filter == screen.filter && screen.loaded {
                    return Vec::new();
                }
                (screen.filter, screen.list.selected) = (filter, 0);
                vec![Effect::LoadCustomers(screen.request(false, debounce))]
            }
        }
    }

    /// Handles a key in the filter line.
    pub(crate) fn in_filter(&mut self, action: Action) -> Vec<Effect> {
        let Some(field) = self.filtering.as_mut() else {
            return Vec::new();
        };
        match action {
            Action::Edit(edit) => {
                field.edit(&edit);
                let text = field.text().to_owned();
                let effects = self.set_filter(text.clone(), true);
                if self.screen == Screen::Keys
                    && text.contains("sk-")
                    && self.keys.filter_error.is_none()
                {
                    self.filtering = Some(TextField::new(self.keys.list.filter.clone()));
                }
                effects
            }
            Action::Enter | Action::Submit => {
                self.filtering = None;
                Vec::new()
            }
            Action::Escape => {
                self.filtering = None;
                self.set_filter(String::new(), false)
            }
            _ => Vec::new(),
        }
    }
}
