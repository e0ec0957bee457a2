//! The list of each place: which of its rows is selected, and whose key that is about.

use farebox_ledger::{KeyId, OpenHold, Scope};

use super::audit::Audited;
use super::catalog_lists::RouteLine;
use super::command::CommandContext;
use super::detail::PartyDetail;
use super::money::MoneyTab;
use super::order::ListState;
use super::{ConsoleApp, config_page};
use crate::admin::{LiveEvent, ReportedAlert};

/// What is under the cursor.
#[derive(Debug, Clone, Copy)]
pub(super) enum SelectedRow<'a> {
    /// A key or customer.
    Party(Scope),
    OnPage(&'a PartyDetail),
    Request(&'a LiveEvent),
    Hold(&'a OpenHold),
    Act(Audited<'a>),
    Sum(&'a str),
    Route(RouteLine<'a>),
    Alert(&'a ReportedAlert),
    Slug(&'a str),
}

impl ConsoleApp {
    pub(super) fn selected(&self) -> Option<SelectedRow<'_>> {
        let place = self.place();
        let row = self.list_at(place)?.selected;
        Some(match place {
            CommandContext::Keys => SelectedRow::Party(self.keys.row()?.key.id.into()),
            CommandContext::Customers => SelectedRow::Party(self.customers.scope()?),
            CommandContext::Detail | CommandContext::Customer => {
                SelectedRow::OnPage(self.detail.as_ref()?)
            }
            CommandContext::Live => SelectedRow::Request(self.live.shown(self.now).get(row)?.event),
            CommandContext::Holds => SelectedRow::Hold(self.shown_holds().get(row)?.hold),
            CommandContext::Audit => SelectedRow::Act(*self.shown_audit().get(row)?),
            CommandContext::Money if self.money.tab == MoneyTab::Waiting => {
                SelectedRow::Party(self.money.waiting.selected(self.now)?.customer.0.into())
            }
            CommandContext::Money => SelectedRow::Sum(self.sums()?.selected_name()?),
            CommandContext::Routes => SelectedRow::Route(*self.shown_routes().get(row)?),
            CommandContext::Alerts => SelectedRow::Alert(self.alert()?),
            CommandContext::Models if self.gateway.status.is_some() => {
                SelectedRow::Slug(&self.shown_models().get(row)?.0.slug)
            }
            CommandContext::Models => SelectedRow::Slug(&self.shown_published().get(row)?.0.slug),
            CommandContext::Config | CommandContext::Nodes => return None,
        })
    }

    /// The selected id, for copying.
    pub(crate) fn selected_id(&self) -> Option<String> {
        Some(match self.selected()? {
            SelectedRow::Party(of) => of.to_string(),
            SelectedRow::OnPage(detail) => {
                let of_row = detail.selected_name();
                of_row.unwrap_or_else(|| detail.of.to_string())
            }
            SelectedRow::Request(event) => event.request_id.clone(),
            SelectedRow::Hold(hold) => format!("req_{}", hold.request),
            SelectedRow::Act(act) => format!("op_{}", act.operation()),
            SelectedRow::Route(line) => line.target()?.target.clone(),
            SelectedRow::Alert(alert) => alert.kind.clone(),
            SelectedRow::Sum(name) | SelectedRow::Slug(name) => name.to_owned(),
        })
    }

    /// The key of the selected line, on screens that are about something else.
    pub(super) fn selected_key_id(&self) -> Option<KeyId> {
        match self.selected()? {
            SelectedRow::Request(event) => event.key.as_ref()?.parse().ok(),
            SelectedRow::Hold(hold) => Some(hold.key),
            SelectedRow::Act(act) => act.key(),
            SelectedRow::Sum(name) => name.parse().ok(),
            SelectedRow::Alert(alert) => alert.key.parse().ok(),
            SelectedRow::Party(_)
            | SelectedRow::OnPage(_)
            | SelectedRow::Route(_)
            | SelectedRow::Slug(_) => None,
        }
    }

    pub(crate) fn list_at(&self, place: CommandContext) -> Option<&ListState> {
        Some(match place {
            CommandContext::Keys => &self.keys.list,
            CommandContext::Customers => &self.customers.list,
            CommandContext::Detail | CommandContext::Customer => &self.detail.as_ref()?.list,
            CommandContext::Live => &self.live.list,
            CommandContext::Models => &self.models,
            CommandContext::Routes => &self.routes,
            CommandContext::Holds => &self.holds.list,
            CommandContext::Audit => &self.audit.list,
            CommandContext::Config => &self.config,
            CommandContext::Money => self.money.list(),
            CommandContext::Nodes => &self.node_list,
            CommandContext::Alerts => &self.alert_list,
        })
    }

    /// The same, to change it.
    pub(super) fn list_mut(&mut self, place: CommandContext) -> Option<&mut ListState> {
        Some(match place {
            CommandContext::Keys => &mut self.keys.list,
            CommandContext::Customers => &mut self.customers.list,
            CommandContext::Detail | CommandContext::Customer => &mut self.detail.as_mut()?.list,
            CommandContext::Live => &mut self.live.list,
            CommandContext::Models => &mut self.models,
            CommandContext::Routes => &mut self.routes,
            CommandContext::Holds => &mut self.holds.list,
            CommandContext::Audit => &mut self.audit.list,
            CommandContext::Config => &mut self.config,
            CommandContext::Money => self.money.list_mut(),
            CommandContext::Nodes => &mut self.node_list,
            CommandContext::Alerts => &mut self.alert_list,
        })
    }

    /// How many rows a list has.
    pub(super) fn rows_at(&self, place: CommandContext) -> usize {
        match place {
            CommandContext::Keys => self.keys.rows.len(),
            CommandContext::Customers => self.customers.lines().len(),
            CommandContext::Detail | CommandContext::Customer => {
                self.detail.as_ref().map_or(0, PartyDetail::rows)
            }
            CommandContext::Live => self.live.shown(self.now).len(),
            CommandContext::Models if self.gateway.status.is_some() => self.shown_models().len(),
            CommandContext::Models => self.shown_published().len(),
            CommandContext::Routes => self.shown_routes().len(),
            CommandContext::Holds => self.shown_holds().len(),
            CommandContext::Audit => self.shown_audit().len(),
            CommandContext::Config => config_page::lines(self).len(),
            CommandContext::Money => self.money.rows(self.now),
            CommandContext::Nodes => self.nodes().len(),
            CommandContext::Alerts => self.alerts().len(),
        }
    }
}
