//! Commands: moving, showing screens, sorting, refreshing. Nothing here changes the ledger.

use super::command::{CommandContext, ConsoleCommand};
use super::detail::{BalanceCheck, Tab};
use super::keys::{From, PAGE};
use super::message::Effect;
use super::modal::{Find, Hidden, Modal};
use super::money::sums::Sums;
use super::{AllBooks, ConsoleApp, Palette};
use crate::field::TextField;

impl ConsoleApp {
    /// Performs the action of a key or the palette, or shows why it cannot.
    pub(crate) fn perform(&mut self, command: ConsoleCommand) -> Vec<Effect> {
        if let Some(reason) = command.reason_against(self) {
            self.say(format!("not now: {reason}"), true);
            return Vec::new();
        }
        let height = isize::try_from(self.page_height()).unwrap_or(1);
        match command {
            ConsoleCommand::Up => self.move_by(-1),
            ConsoleCommand::Down => self.move_by(1),
            ConsoleCommand::HalfUp => self.move_by(-(height / 2).max(1)),
            ConsoleCommand::HalfDown => self.move_by((height / 2).max(1)),
            ConsoleCommand::PageUp => self.move_by(-height),
            ConsoleCommand::PageDown => self.move_by(height),
            ConsoleCommand::First => self.jump(false),
            ConsoleCommand::Last => self.jump(true),
            ConsoleCommand::Show(screen) => self.show(screen),
            ConsoleCommand::Back => self.go_back(),
            ConsoleCommand::Open => self.open(),
            ConsoleCommand::OpenKey => self
                .selected_key_id()
                .map(|id| self.open_party(id.into()))
                .unwrap_or_default(),
            ConsoleCommand::OpenCustomer => self
                .selected_party()
                .map(|party| self.open_party(party.customer().id.into()))
                .unwrap_or_default(),
            ConsoleCommand::Fold => self.fold(),
            ConsoleCommand::Refresh => self.refresh(),
            ConsoleCommand::Sort | ConsoleCommand::Reverse => {
                self.sort_next(command == ConsoleCommand::Sort)
            }
            ConsoleCommand::Undo => self.undo(),
            ConsoleCommand::Mark => self.mark(),
            ConsoleCommand::Mouse => self.turn_mouse(),
            ConsoleCommand::Charts => self.toggle_charts(),
            ConsoleCommand::By => self.with_sums(Sums::next_by),
            ConsoleCommand::Period => self.with_sums(Sums::next_period),
            ConsoleCommand::NextTab | ConsoleCommand::PreviousTab
                if self.place() == CommandContext::Money =>
            {
                self.step_money(command == ConsoleCommand::NextTab)
            }
            ConsoleCommand::Verify => self.verify(),
            ConsoleCommand::TopUp
            | ConsoleCommand::NewKey
            | ConsoleCommand::NewCustomer
            | ConsoleCommand::Move
            | ConsoleCommand::GiveGrant
            | ConsoleCommand::VoidGrant
            | ConsoleCommand::SellPlan
            | ConsoleCommand::ChangePlan
            | ConsoleCommand::PausePlan
            | ConsoleCommand::EndPlan
            | ConsoleCommand::Edit
            | ConsoleCommand::Rotate
            | ConsoleCommand::Revoke
            | ConsoleCommand::Adjust
            | ConsoleCommand::Refund
            | ConsoleCommand::Export
            | ConsoleCommand::Block
            | ConsoleCommand::Link => self.begin(command),
            ConsoleCommand::CopyId => {
                vec![Effect::Copy(Hidden(self.selected_id().unwrap_or_default()))]
            }
            plain => {
                self.perform_plain(plain);
                Vec::new()
            }
        }
    }

    fn turn_mouse(&mut self) -> Vec<Effect> {
        self.mouse = !self.mouse;
        let text = match self.mouse {
            true => "the mouse is on: M turns it off",
            false => "the mouse is off: the terminal selects text; M turns it on",
        };
        self.say(text, false);
        vec![Effect::Mouse(self.mouse)]
    }

    fn perform_plain(&mut self, command: ConsoleCommand) {
        match command {
            ConsoleCommand::Quit => self.quit = true,
            ConsoleCommand::Help => self.help = Some(0),
            ConsoleCommand::Palette => self.palette = Some(Palette::default()),
            ConsoleCommand::Filter => self.filtering = Some(TextField::new(self.filter_text())),
            ConsoleCommand::Pause => self.live.pause(),
            ConsoleCommand::Operations if self.operations.is_empty() => {
                self.say("every operation has a known outcome", false)
            }
            ConsoleCommand::Operations => self.modal = Some(Modal::Operations(0)),
            ConsoleCommand::MarkRange => self.mark_range(),
            ConsoleCommand::MarkAll => self.mark_all(),
            ConsoleCommand::Find => self.modal = Some(Modal::Find(Find::default())),
            ConsoleCommand::NextTab | ConsoleCommand::PreviousTab => {
                if let Some(detail) = self.detail.as_mut() {
                    detail.step(command == ConsoleCommand::NextTab);
                }
            }
            _ => {}
        }
    }

    pub(super) fn move_by(&mut self, lines: isize) -> Vec<Effect> {
        let place = self.place();
        let rows = self.rows_at(place);
        if let Some(list) = self.list_mut(place) {
            list.move_by(lines, rows);
        }
        let more = match place {
            CommandContext::Keys => self.keys.request_more(lines > 0).map(Effect::LoadKeys),
            CommandContext::Customers => self.customers.request_more().map(Effect::LoadCustomers),
            CommandContext::Detail | CommandContext::Customer => self.older_entries(),
            CommandContext::Audit => self.older_acts(rows),
            _ => None,
        };
        more.into_iter().chain(self.after_move()).collect()
    }

    /// Requests older acts when the selection comes near the end of those that are shown.
    fn older_acts(&mut self, shown: usize) -> Option<Effect> {
        let audit = &mut self.audit;
        if audit.list.selected + 20 <= shown || audit.end || audit.loading {
            return None;
        }
        audit.loading = true;
        let before = audit.rows.last().map(|act| act.position);
        Some(Effect::LoadAudit { before })
    }

    /// Requests older entries when the selection comes near the end.
    fn older_entries(&mut self) -> Option<Effect> {
        let detail = self.detail.as_mut()?;
        let near_end = detail.list.selected + PAGE / 4 > detail.rows().saturating_sub(1);
        if detail.tab != Tab::Entries || !near_end || detail.entries_end || detail.loading_more {
            return None;
        }
        let before = detail.entries.last()?.position;
        detail.loading_more = true;
        Some(Effect::MoreEntries {
            of: detail.of,
            before,
        })
    }

    fn jump(&mut self, end: bool) -> Vec<Effect> {
        if self.place() == CommandContext::Keys {
            let request = self.keys.jump(end);
            let mut effects: Vec<Effect> = request.map(Effect::LoadKeys).into_iter().collect();
            effects.extend(self.after_move());
            return effects;
        }
        self.move_by(if end { isize::MAX / 2 } else { isize::MIN / 2 })
    }

    fn refresh(&mut self) -> Vec<Effect> {
        match self.place() {
            CommandContext::Keys => vec![Effect::LoadKeys(self.keys.request(
                From::Start,
                true,
                false,
            ))],
            CommandContext::Customers => {
                let request = self.customers.request(true, false);
                vec![Effect::LoadCustomers(request)]
            }
            CommandContext::Detail | CommandContext::Customer => self
                .detail
                .as_ref()
                .map(|detail| Effect::LoadDetail {
                    of: detail.of,
                    debounce: false,
                })
                .into_iter()
                .collect(),
            _ => self.show(self.screen),
        }
    }

    fn verify(&mut self) -> Vec<Effect> {
        match (self.place(), self.detail.as_mut()) {
            (CommandContext::Detail | CommandContext::Customer, Some(detail)) => {
                let Some(party) = &detail.party else {
                    return Vec::new();
                };
                detail.check = BalanceCheck::Running;
                let customer = party.customer().id;
                let of = detail.of;
                vec![Effect::CheckBooks { of, customer }]
            }
            (CommandContext::Config, _) if self.books != AllBooks::Running => {
                self.books = AllBooks::Running;
                vec![Effect::Verify]
            }
            _ => Vec::new(),
        }
    }
}
