//! How an act begins: with its form, or with its review if it asks for nothing.

use farebox_ledger::{
    CustomerStatus, GrantRecord, JournalEntry, KeyStatus, Scope, SubscriptionStatus,
};
use farebox_selling::subscription::SubscriptionDocument;
use serde_json::{Value, json};

use super::ConsoleApp;
use super::command::{CommandContext, ConsoleCommand};
use super::detail::PartyDetail;
use super::form::{ActForm, ConsoleExport, Form, FormPurpose, RefundedCharge};
use super::message::Effect;
use super::modal::Modal;
use super::money::sums::Sums;
use super::party::Party;
use crate::acts;
use crate::plan::{ActKind, ActPlan};

impl ConsoleApp {
    /// Opens the form of an act, or its review if it needs no form.
    pub(super) fn begin(&mut self, command: ConsoleCommand) -> Vec<Effect> {
        if command == ConsoleCommand::Export {
            let purpose = FormPurpose::Export(self.exported());
            let form = Form::file(purpose, None, self.new_operation());
            self.modal = Some(Modal::Form(form));
            return Vec::new();
        }
        let marked = if self.acts_on_marks() && command.acts_on_many() {
            self.marks.len()
        } else {
            0
        };
        let about = match (command, self.selected_party()) {
            _ if marked > 0 => None,
            (ConsoleCommand::NewCustomer, _) => None,
            // From the list of keys: the new one is not of the selected key's customer, but gets one of its own.
            (ConsoleCommand::NewKey, Some(Party::Key(_))) => None,
            (_, about) => about,
        };
        let Some(kind) = self.kind(command, about.as_ref()) else {
            return Vec::new();
        };
        let charge = self.charge().filter(|_| *kind == acts::REFUND);
        // The entry of a refund names the key, also on the customer's page.
        let key = self.selected_charge().and_then(|entry| entry.key);
        let key = key.filter(|_| charge.is_some()).map(Scope::Key);
        let of = key.or_else(|| about.as_ref().map(Party::scope));
        let row = self.selected_row_of(command);
        if kind.asks.is_empty() && kind.permanent.is_none() {
            let mut plan = ActPlan::plain(kind, of);
            plan.body.extend(row);
            return self.show_review(plan, about, None, marked);
        }
        let act = ActForm {
            kind,
            about,
            charge,
            row,
            marked,
        };
        let form = Form::act(act, of, self.new_operation(), self.now);
        self.modal = Some(Modal::Form(form));
        Vec::new()
    }

    /// What a command does to a key, a customer or all marked keys.
    fn kind(&self, command: ConsoleCommand, party: Option<&Party>) -> Option<&'static ActKind> {
        let is_customer = matches!(party, Some(Party::Customer(_)));
        Some(match command {
            ConsoleCommand::TopUp => &acts::TOP_UP,
            ConsoleCommand::NewKey => &acts::NEW_KEY,
            ConsoleCommand::NewCustomer => &acts::NEW_CUSTOMER,
            ConsoleCommand::Move => &acts::MOVE,
            ConsoleCommand::GiveGrant => &acts::GIVE_GRANT,
            ConsoleCommand::VoidGrant => &acts::VOID_GRANT,
            ConsoleCommand::SellPlan => &acts::SELL_PLAN,
            ConsoleCommand::ChangePlan => &acts::CHANGE_PLAN,
            ConsoleCommand::PausePlan => match self.selected_plan()?.status.0 {
                SubscriptionStatus::Paused => &acts::RESUME_PLAN,
                SubscriptionStatus::Active
                | SubscriptionStatus::Lapsed
                | SubscriptionStatus::Ended => &acts::PAUSE_PLAN,
            },
            ConsoleCommand::EndPlan => &acts::END_PLAN,
            ConsoleCommand::Edit if is_customer => &acts::EDIT_CUSTOMER,
            ConsoleCommand::Edit => &acts::EDIT,
            ConsoleCommand::Rotate => &acts::ROTATE,
            ConsoleCommand::Revoke if is_customer => &acts::CLOSE,
            ConsoleCommand::Revoke => &acts::REVOKE,
            ConsoleCommand::Adjust => &acts::ADJUST,
            ConsoleCommand::Refund => &acts::REFUND,
            ConsoleCommand::Link => &acts::LINK,
            ConsoleCommand::Block => match party {
                Some(Party::Customer(of)) if of.status == CustomerStatus::Suspended => {
                    &acts::RESUME
                }
                Some(Party::Customer(_)) => &acts::SUSPEND,
                Some(Party::Key(key)) if key.stored_status == KeyStatus::Blocked => &acts::UNBLOCK,
                Some(Party::Key(_)) => &acts::BLOCK,
                None => {
                    let stopped = [KeyStatus::Blocked, KeyStatus::Revoked];
                    let mut marked = self.marks.keys();
                    match marked.all(|key| stopped.contains(&key.stored_status)) {
                        true => &acts::UNBLOCK,
                        false => &acts::BLOCK,
                    }
                }
            },
            _ => return None,
        })
    }

    /// The selected entry of the open page.
    fn selected_charge(&self) -> Option<&JournalEntry> {
        let detail = self.detail.as_ref().filter(|_| self.detail_open);
        detail.and_then(PartyDetail::selected_entry)
    }

    /// The selected grant of the open page.
    pub(super) fn selected_grant(&self) -> Option<&GrantRecord> {
        let detail = self.detail.as_ref().filter(|_| self.detail_open);
        detail.and_then(PartyDetail::selected_grant)
    }

    /// The selected subscription of the open page.
    pub(super) fn selected_plan(&self) -> Option<&SubscriptionDocument> {
        let detail = self.detail.as_ref().filter(|_| self.detail_open);
        detail.and_then(PartyDetail::selected_plan)
    }

    /// The selected line that a command is about, as a member of its act.
    fn selected_row_of(&self, command: ConsoleCommand) -> Option<(String, Value)> {
        let (name, id) = match command {
            ConsoleCommand::VoidGrant => (acts::GRANT, json!(self.selected_grant()?.grant.id)),
            ConsoleCommand::ChangePlan | ConsoleCommand::PausePlan | ConsoleCommand::EndPlan => {
                (acts::SUBSCRIPTION, json!(self.selected_plan()?.id))
            }
            _ => return None,
        };
        Some((name.to_owned(), id))
    }

    fn charge(&self) -> Option<RefundedCharge> {
        let entry = self.selected_charge()?;
        Some(RefundedCharge {
            request: entry.operation,
            amount: entry.amount.checked_neg()?,
            slug: entry.bill.as_ref()?.slug.clone(),
        })
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
}
