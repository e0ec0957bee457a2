//! Opening what is selected, and going back: pages of keys, customers, requests and acts.

use farebox_ledger::{OperationId, Scope};

use super::command::CommandContext;
use super::detail::{PartyDetail, Tab};
use super::marks::Marks;
use super::message::Effect;
use super::modal::{Modal, RequestPage};
use super::party::Party;
use super::{ConsoleApp, Screen, reading};

impl ConsoleApp {
    /// Closes the page, takes the marks away, or clears the filter.
    pub(super) fn go_back(&mut self) -> Vec<Effect> {
        if self.detail_open {
            if let Some(before) = self.trail.pop() {
                return self.turn_to(before);
            }
            self.detail_open = false;
            return self.after_move();
        }
        if self.acts_on_marks() {
            self.marks = Marks::default();
            return Vec::new();
        }
        if self.filter_text().is_empty() {
            return Vec::new();
        }
        self.set_filter(String::new(), false)
    }

    /// Opens what is selected.
    pub(super) fn open(&mut self) -> Vec<Effect> {
        match self.place() {
            CommandContext::Keys => self
                .keys
                .row()
                .map(|row| row.key.id)
                .map(|id| self.open_party(id.into()))
                .unwrap_or_default(),
            CommandContext::Customers => self
                .customers
                .scope()
                .map(|scope| self.open_party(scope))
                .unwrap_or_default(),
            CommandContext::Detail | CommandContext::Customer => self.open_on_page(),
            CommandContext::Live => {
                let shown = self.live.shown();
                let Some(event) = shown.get(self.live.selected) else {
                    return Vec::new();
                };
                let key = event.key.as_ref().and_then(|key| key.parse().ok());
                let key = key.map(Scope::Key);
                let request = event.request_id.parse::<OperationId>().ok();
                request
                    .map(|request| self.open_request(request, key))
                    .unwrap_or_default()
            }
            CommandContext::Holds => {
                let hold = self
                    .shown_holds()
                    .get(self.holds.selected)
                    .map(|hold| (hold.request, hold.key));
                hold.map(|(request, key)| self.open_request(request, Some(key.into())))
                    .unwrap_or_default()
            }
            CommandContext::Audit => {
                let shown = self.shown_audit();
                let act = shown.get(self.audit.selected);
                self.modal = act.map(|act| Modal::Reading(reading::of_audited(act)));
                Vec::new()
            }
            CommandContext::Routes | CommandContext::Alerts => {
                self.modal = self.reading().map(Modal::Reading);
                Vec::new()
            }
            CommandContext::Exposure | CommandContext::Margin => self
                .selected_key_id()
                .map(|id| self.open_party(id.into()))
                .unwrap_or_default(),
            CommandContext::Models => {
                let slug = self.selected_id();
                slug.map(|slug| self.show_slug(slug)).unwrap_or_default()
            }
            CommandContext::Config | CommandContext::Nodes | CommandContext::Spend => Vec::new(),
        }
    }

    /// Opens the selected line of a key's or customer's page.
    fn open_on_page(&mut self) -> Vec<Effect> {
        let Some(detail) = self.detail.as_ref() else {
            return Vec::new();
        };
        if let Some(member) = detail.selected_member() {
            return self.open_party(member.key.id.into());
        }
        let request = match detail.tab {
            Tab::Entries => detail.selected_entry().map(|entry| entry.operation),
            Tab::Running => detail.selected_hold().map(|hold| hold.request),
            Tab::Payments => detail.selected_act().map(|act| act.operation),
            Tab::Acts => {
                let act = detail.selected_act().map(reading::of_act);
                self.modal = act.map(Modal::Reading);
                None
            }
            Tab::Keys | Tab::Models | Tab::Charts => None,
        };
        let of = detail.of;
        request
            .map(|request| self.open_request(request, Some(of)))
            .unwrap_or_default()
    }

    /// Opens the page of a request or payment, and whose it is.
    pub(super) fn open_request(&mut self, request: OperationId, of: Option<Scope>) -> Vec<Effect> {
        self.modal = Some(Modal::Request(RequestPage {
            request,
            of,
            entry: None,
            known: None,
            read: false,
            problem: None,
            scroll: 0,
        }));
        vec![Effect::LoadRequest(request)]
    }

    /// Opens the page of a key or customer, wherever its id was shown. `esc` returns to the page that is open now.
    pub(crate) fn open_party(&mut self, of: Scope) -> Vec<Effect> {
        if let Some(detail) = self.detail.as_ref().filter(|_| self.detail_open)
            && detail.of != of
        {
            let here = detail.of;
            // Back and forth between two pages is one step.
            self.trail.retain(|scope| *scope != of && *scope != here);
            self.trail.push(here);
        }
        self.turn_to(of)
    }

    /// Shows the page of a key or customer.
    fn turn_to(&mut self, of: Scope) -> Vec<Effect> {
        self.modal = None;
        self.detail_open = true;
        if self.detail.as_ref().is_none_or(|detail| detail.of != of) {
            self.detail = Some(PartyDetail::new(of, self.listed(of)));
        }
        vec![Effect::LoadDetail {
            of,
            debounce: false,
        }]
    }

    /// A key or customer as a list has it.
    pub(crate) fn listed(&self, of: Scope) -> Option<Party> {
        match of {
            Scope::Key(id) => {
                let mut rows = self.keys.rows.iter();
                let row = rows.find(|row| row.key.id == id)?;
                Some(row.key.clone().into())
            }
            Scope::Customer(id) => {
                let mut rows = self.customers.rows.iter();
                Some(rows.find(|row| row.id == id)?.clone().into())
            }
        }
    }

    /// Shows the charts of a slug.
    pub(super) fn show_slug(&mut self, slug: String) -> Vec<Effect> {
        let lines = self.spend.lines(self.now);
        match lines.iter().position(|line| line.slug == slug) {
            Some(line) => self.spend.selected = line,
            None => self.spend.wanted = Some(slug),
        }
        self.show(Screen::Spend)
    }
}
