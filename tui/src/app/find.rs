//! The search for one thing by any of its names: a request, an answer, a payment, a key, a customer or a label.

use super::message::Effect;
use super::modal::{Find, Hidden, Hit, Modal};
use super::{Action, ConsoleApp, Screen};

impl ConsoleApp {
    /// Handles a key while something is searched for.
    pub(super) fn in_find(&mut self, mut page: Find, action: &Action) -> Vec<Effect> {
        let mut effects = Vec::new();
        match action {
            Action::Escape => return effects,
            Action::Edit(edit) if !page.looking => {
                page.field.edit(edit);
                page.problem = None;
            }
            Action::Enter | Action::Submit if !page.looking => {
                let text = page.field.text().trim().to_owned();
                page.looking = !text.is_empty();
                if page.looking {
                    effects.push(Effect::Find(Hidden(text)));
                }
            }
            _ => {}
        }
        self.modal = Some(Modal::Find(page));
        effects
    }

    /// Goes to what was found, unless the search was given up.
    pub(super) fn found(&mut self, hit: Result<Hit, String>) -> Vec<Effect> {
        let Some(Modal::Find(page)) = self.modal.as_mut() else {
            return Vec::new();
        };
        self.dirty = true;
        page.looking = false;
        match hit {
            Err(problem) => {
                page.problem = Some(problem);
                Vec::new()
            }
            Ok(hit) => {
                self.modal = None;
                self.go_to(hit)
            }
        }
    }

    fn go_to(&mut self, hit: Hit) -> Vec<Effect> {
        match hit {
            Hit::Key(id) => self.open_party(id.into()),
            Hit::Customer(id) => self.open_party(id.into()),
            Hit::Request(request, of) => self.open_request(request, of),
            Hit::Label(label) => {
                self.screen = Screen::Keys;
                self.detail_open = false;
                self.set_filter(format!("label~{label}"), false)
            }
            Hit::Customers(text) => {
                self.screen = Screen::Customers;
                self.detail_open = false;
                self.set_filter(text, false)
            }
        }
    }
}
