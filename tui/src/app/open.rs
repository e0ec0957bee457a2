//! Opening what is selected, and going back: pages of keys, customers, requests and acts.

use farebox_ledger::{OperationId, Scope};

use super::audit::Audited;
use super::detail::{PartyDetail, Tab};
use super::marks::Marks;
use super::message::Effect;
use super::modal::{Modal, RequestPage};
use super::money::MoneyTab;
use super::party::Party;
use super::selection::SelectedRow;
use super::{ConsoleApp, reading};

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
        match self.selected() {
            Some(SelectedRow::Party(of)) => self.open_party(of),
            Some(SelectedRow::OnPage(_)) => self.open_on_page(),
            Some(SelectedRow::Request(event)) => {
                let key = event.key.as_ref().and_then(|key| key.parse().ok());
                match event.request_id.parse() {
                    Ok(request) => self.open_request(request, key.map(Scope::Key)),
                    Err(_) => Vec::new(),
                }
            }
            Some(SelectedRow::Hold(hold)) => {
                let (request, key) = (hold.request, hold.key);
                self.open_request(request, Some(key.into()))
            }
            Some(SelectedRow::Act(_) | SelectedRow::Route(_) | SelectedRow::Alert(_)) => {
                self.modal = self.reading().map(Modal::Reading);
                Vec::new()
            }
            Some(SelectedRow::Sum(name)) => match name.parse() {
                Ok(id) => self.open_party(Scope::Key(id)),
                Err(_) => Vec::new(),
            },
            Some(SelectedRow::Slug(slug)) => {
                let slug = slug.to_owned();
                self.show_slug(slug)
            }
            None => Vec::new(),
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
                let act = detail.selected_act().map(Audited::Key).map(reading::of_act);
                self.modal = act.map(Modal::Reading);
                None
            }
            Tab::Grants | Tab::Plans | Tab::Keys | Tab::Models | Tab::Runs | Tab::Charts => None,
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
        let spend = &mut self.money.spend;
        let lines = spend.lines(self.now);
        match lines.iter().position(|line| line.slug == slug) {
            Some(line) => spend.list.selected = line,
            None => spend.wanted = Some(slug),
        }
        self.show_money(MoneyTab::Spend)
    }
}
