//! How an act begins: with its form, or with its review if it asks for nothing.

use farebox_ledger::{CustomerStatus, JournalEntry, KeyStatus, Scope};

use super::ConsoleApp;
use super::command::{CommandContext, ConsoleCommand};
use super::detail::PartyDetail;
use super::form::{ConsoleExport, Form, FormPurpose};
use super::margins::Sums;
use super::message::Effect;
use super::modal::{ActReview, Modal};
use super::party::Party;
use crate::plan::{ActPlan, Pending};

impl ConsoleApp {
    /// Opens the form of an act, or its review if it needs no form.
    pub(super) fn begin(&mut self, command: ConsoleCommand) -> Vec<Effect> {
        let in_bulk = [
            ConsoleCommand::TopUp,
            ConsoleCommand::Adjust,
            ConsoleCommand::Block,
            ConsoleCommand::Revoke,
            ConsoleCommand::Edit,
        ];
        if self.acts_on_marks() && in_bulk.contains(&command) {
            return self.begin_bulk(command);
        }
        let party = self.selected_party();
        if matches!(command, ConsoleCommand::Block | ConsoleCommand::Link) {
            self.modal = party.and_then(|party| {
                let plan = plan_without_form(command, &party)?;
                Some(Modal::Review(self.review_of(plan, party)))
            });
            return Vec::new();
        }
        let Some(purpose) = self.purpose(command, party.as_ref()) else {
            return Vec::new();
        };
        let (of, about) = match (&purpose, party) {
            (FormPurpose::NewCustomer, _) => (self.new_customer_id().into(), None),
            (FormPurpose::NewKey, Some(Party::Customer(customer))) => {
                (self.new_key_id().into(), Some(Party::Customer(customer)))
            }
            (FormPurpose::NewKey, _) | (_, None) => (self.new_key_id().into(), None),
            // The entry of a refund names the key, also on the customer's page.
            (FormPurpose::Refund { .. }, Some(party)) => {
                let key = self.refunded_key();
                (key.unwrap_or_else(|| party.scope()), Some(party))
            }
            (_, Some(party)) => (party.scope(), Some(party)),
        };
        let form = Form::new(purpose, of, about, self.new_operation());
        self.modal = Some(Modal::Form(form));
        Vec::new()
    }

    /// The form of a command.
    fn purpose(&self, command: ConsoleCommand, party: Option<&Party>) -> Option<FormPurpose> {
        let is_customer = matches!(party, Some(Party::Customer(_)));
        Some(match command {
            ConsoleCommand::TopUp => FormPurpose::TopUp,
            ConsoleCommand::NewKey => FormPurpose::NewKey,
            ConsoleCommand::NewCustomer => FormPurpose::NewCustomer,
            ConsoleCommand::Move => FormPurpose::Move,
            ConsoleCommand::Edit if is_customer => FormPurpose::EditCustomer,
            ConsoleCommand::Edit => FormPurpose::Edit,
            ConsoleCommand::Rotate => FormPurpose::Rotate,
            ConsoleCommand::Revoke if is_customer => FormPurpose::Close,
            ConsoleCommand::Revoke => FormPurpose::Revoke,
            ConsoleCommand::Adjust => FormPurpose::Adjust,
            ConsoleCommand::Refund => {
                let entry = self.selected_charge()?;
                FormPurpose::Refund {
                    request: entry.operation,
                    charge: entry.amount.checked_neg()?,
                    slug: entry.bill.as_ref()?.slug.clone(),
                }
            }
            ConsoleCommand::Export => FormPurpose::Export(self.exported()),
            _ => return None,
        })
    }

    /// The selected entry of the open page.
    fn selected_charge(&self) -> Option<&JournalEntry> {
        let detail = self.detail.as_ref().filter(|_| self.detail_open);
        detail.and_then(PartyDetail::selected_entry)
    }

    fn refunded_key(&self) -> Option<Scope> {
        self.selected_charge()?.key.map(Scope::Key)
    }

    /// What an export from here writes.
    fn exported(&self) -> ConsoleExport {
        match (self.place(), &self.detail, self.sums()) {
            (CommandContext::Audit, ..) => ConsoleExport::Audit,
            (CommandContext::Detail | CommandContext::Customer, Some(detail), _) => {
                ConsoleExport::Entries(detail.of)
            }
            (
                ..,
                Some(Sums {
                    view,
                    asked: Some(query),
                    ..
                }),
            ) => ConsoleExport::Sums(*view, *query),
            _ => ConsoleExport::Keys,
        }
    }

    fn review_of(&self, plan: ActPlan, party: Party) -> ActReview {
        let pending = Pending {
            operation: self.new_operation(),
            of: party.scope(),
            label: party.label().to_owned(),
            plan,
            actor: self.options.operator.clone(),
            at: self.now,
        };
        ActReview {
            form: None,
            pending,
            about: Some(party),
        }
    }
}

/// The act of a command that asks for nothing.
fn plan_without_form(command: ConsoleCommand, party: &Party) -> Option<ActPlan> {
    Some(match (command, party) {
        (ConsoleCommand::Link, Party::Key(_)) => ActPlan::Link,
        (ConsoleCommand::Block, Party::Key(key)) => match key.stored_status {
            KeyStatus::Blocked => ActPlan::Unblock,
            _ => ActPlan::Block,
        },
        (ConsoleCommand::Block, Party::Customer(customer)) => match customer.status {
            CustomerStatus::Suspended => ActPlan::Resume,
            _ => ActPlan::Suspend,
        },
        _ => return None,
    })
}
