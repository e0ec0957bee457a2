//! Commands: moving, showing screens, sorting, refreshing. Nothing here changes the ledger.

use super::command::{CommandContext, ConsoleCommand};
use super::config_page;
use super::detail::{BalanceCheck, Tab};
use super::keys::{From, PAGE};
use super::message::Effect;
use super::modal::{Find, Hidden, Modal};
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
            ConsoleCommand::Period => self.with_sums(super::margins::Sums::next_period),
            ConsoleCommand::NextTab | ConsoleCommand::PreviousTab
                if self.sums().is_some() && !self.detail_open =>
            {
                self.with_sums(|sums| sums.step(command == ConsoleCommand::NextTab))
            }
            ConsoleCommand::Verify => self.verify(),
            ConsoleCommand::TopUp
            | ConsoleCommand::NewKey
            | ConsoleCommand::NewCustomer
            | ConsoleCommand::Move
            | ConsoleCommand::Edit
            | ConsoleCommand::Rotate
            | ConsoleCommand::Revoke
            | ConsoleCommand::Adjust
            | ConsoleCommand::Refund
            | ConsoleCommand::Export
            | ConsoleCommand::Block
            | ConsoleCommand::Link => self.begin(command),
            ConsoleCommand::CopyId => {
                let id = self.selected_id().unwrap_or_default();
                vec![Effect::Copy(Hidden(id))]
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
        let step = |selected: usize, rows: usize| {
            selected
                .saturating_add_signed(lines)
                .min(rows.saturating_sub(1))
        };
        match self.place() {
            CommandContext::Keys => {
                let more = self.keys.move_by(lines);
                let mut effects: Vec<Effect> = more.map(Effect::LoadKeys).into_iter().collect();
                effects.extend(self.after_move());
                return effects;
            }
            CommandContext::Customers => {
                let all = self.customers.lines().len();
                self.customers.selected = step(self.customers.selected, all);
                let more = self.customers.request_more();
                let more = more.map(Effect::LoadCustomers);
                return more.into_iter().chain(self.after_move()).collect();
            }
            CommandContext::Detail | CommandContext::Customer => {
                return self.move_in_detail(lines);
            }
            CommandContext::Live => {
                self.live.selected = step(self.live.selected, self.live.shown().len())
            }
            CommandContext::Models => {
                self.models.selected = step(self.models.selected, self.model_rows())
            }
            CommandContext::Routes => {
                self.routes.selected = step(self.routes.selected, self.shown_routes().len())
            }
            CommandContext::Holds => {
                self.holds.selected = step(self.holds.selected, self.shown_holds().len())
            }
            CommandContext::Config => {
                self.config.selected = step(self.config.selected, config_page::lines(self).len())
            }
            CommandContext::Exposure => self.exposure.move_by(lines),
            CommandContext::Margin => self.margin.move_by(lines),
            CommandContext::Nodes => {
                self.selected_node = step(self.selected_node, self.nodes().len())
            }
            CommandContext::Spend => {
                let lines = self.spend.lines(self.now).len();
                self.spend.selected = step(self.spend.selected, lines)
            }
            CommandContext::Alerts => {
                self.selected_alert = step(self.selected_alert, self.alerts().len())
            }
            CommandContext::Audit => {
                let shown = self.shown_audit().len();
                self.audit.selected = step(self.audit.selected, shown);
                if self.audit.selected + 20 > shown && !self.audit.end && !self.audit.loading {
                    self.audit.loading = true;
                    return vec![Effect::LoadAudit {
                        before: self.audit.rows.last().map(|act| act.position),
                    }];
                }
            }
        }
        Vec::new()
    }

    fn move_in_detail(&mut self, lines: isize) -> Vec<Effect> {
        let Some(detail) = self.detail.as_mut() else {
            return Vec::new();
        };
        let last = detail.rows().saturating_sub(1);
        detail.selected = detail.selected.saturating_add_signed(lines).min(last);
        let near_end = detail.tab == Tab::Entries && detail.selected + PAGE / 4 > last;
        if !near_end || detail.entries_end || detail.loading_more {
            return Vec::new();
        }
        let Some(oldest) = detail.entries.last() else {
            return Vec::new();
        };
        detail.loading_more = true;
        vec![Effect::MoreEntries {
            of: detail.of,
            before: oldest.position,
        }]
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
