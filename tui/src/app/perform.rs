//! Commands: moving, opening, sorting, and starting an act. Nothing here changes the ledger.

use farebox_ledger::{KeyId, KeyStatus, OperationId};

use super::command::{CommandContext, ConsoleCommand};
use super::config_page;
use super::detail::{BalanceCheck, KeyDetail, Tab};
use super::form::{ConsoleExport, Form, FormPurpose};
use super::keys::{From, PAGE};
use super::margins::Sums;
use super::marks::Marks;
use super::message::Effect;
use super::modal::{ActReview, Find, Hidden, Modal, RequestPage};
use super::{AllBooks, ConsoleApp, Palette, Screen, reading};
use crate::field::TextField;
use crate::plan::{ActPlan, Pending};

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
            ConsoleCommand::Back => self.back(),
            ConsoleCommand::Open => self.open(),
            ConsoleCommand::OpenKey => self
                .selected_key_id()
                .map(|id| self.open_key(id))
                .unwrap_or_default(),
            ConsoleCommand::Refresh => self.refresh(),
            ConsoleCommand::Sort | ConsoleCommand::Reverse => {
                self.sort_next(command == ConsoleCommand::Sort)
            }
            ConsoleCommand::Undo => self.undo(),
            ConsoleCommand::Mark => self.mark(),
            ConsoleCommand::Mouse => {
                self.mouse = !self.mouse;
                let text = match self.mouse {
                    true => "the mouse is on: M turns it off",
                    false => "the mouse is off: the terminal selects text; M turns it on",
                };
                self.say(text, false);
                vec![Effect::Mouse(self.mouse)]
            }
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
                    detail.show(detail.tab.step(command == ConsoleCommand::NextTab));
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
            CommandContext::Detail => return self.move_in_detail(lines),
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
            id: detail.id,
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

    /// Requests data that newly visible rows still lack, and the detail beside the list.
    pub(crate) fn after_move(&mut self) -> Vec<Effect> {
        if self.screen != Screen::Keys || self.detail_open {
            return Vec::new();
        }
        let mut effects = Vec::new();
        let unknown = self
            .keys
            .visible(self.page_height())
            .any(|row| self.keys.rows.get(row).is_some_and(|row| row.day.is_none()));
        if unknown {
            effects.push(Effect::Visible(self.visible_ids()));
        }
        if let Some(key) = self
            .keys
            .row()
            .filter(|_| self.is_wide())
            .map(|row| row.key.clone())
            && self
                .detail
                .as_ref()
                .is_none_or(|detail| detail.id != key.id)
        {
            effects.push(Effect::LoadDetail {
                id: key.id,
                debounce: true,
            });
            self.detail = Some(KeyDetail::new(key.id, Some(key)));
        }
        effects
    }

    /// The visible keys.
    pub(crate) fn visible_ids(&self) -> Vec<KeyId> {
        let range = self.keys.visible(self.page_height());
        range
            .filter_map(|row| self.keys.rows.get(row))
            .map(|row| row.key.id)
            .collect()
    }

    pub(super) fn show(&mut self, screen: Screen) -> Vec<Effect> {
        self.screen = screen;
        self.detail_open = false;
        self.filtering = None;
        match screen {
            Screen::Keys => {
                let mut effects = self.after_move();
                effects.push(Effect::Visible(self.visible_ids()));
                effects
            }
            Screen::Holds => vec![Effect::LoadHolds],
            Screen::Audit => vec![Effect::LoadAudit { before: None }],
            Screen::Models => vec![Effect::LoadSlugs, Effect::ReadStatus],
            Screen::Live => {
                let mut effects = vec![Effect::ReadStatus, Effect::LoadHolds];
                effects.extend(self.load_labels());
                effects
            }
            Screen::Routes | Screen::Config | Screen::Nodes | Screen::Alerts => {
                vec![Effect::ReadStatus]
            }
            Screen::Exposure | Screen::Margin | Screen::Spend => self.load_sums(),
        }
    }

    /// Requests what the keys on the Live screen are called.
    pub(crate) fn load_labels(&mut self) -> Option<Effect> {
        let unknown = self.live.unknown();
        (!unknown.is_empty()).then_some(Effect::LoadLabels(unknown))
    }

    fn back(&mut self) -> Vec<Effect> {
        if self.detail_open {
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

    fn open(&mut self) -> Vec<Effect> {
        match self.place() {
            CommandContext::Keys => self
                .keys
                .row()
                .map(|row| row.key.id)
                .map(|id| self.open_key(id))
                .unwrap_or_default(),
            CommandContext::Detail => {
                let Some(detail) = self.detail.as_ref() else {
                    return Vec::new();
                };
                let request = match detail.tab {
                    Tab::Entries => detail.selected_entry().map(|entry| entry.operation),
                    Tab::Running => detail.selected_hold().map(|hold| hold.request),
                    Tab::Payments => detail.selected_act().map(|act| act.operation),
                    Tab::Acts => {
                        let act = detail.selected_act().map(reading::of_act);
                        self.modal = act.map(Modal::Reading);
                        None
                    }
                    Tab::Models | Tab::Charts => None,
                };
                let key = detail.id;
                request
                    .map(|request| self.open_request(request, Some(key)))
                    .unwrap_or_default()
            }
            CommandContext::Live => {
                let shown = self.live.shown();
                let Some(event) = shown.get(self.live.selected) else {
                    return Vec::new();
                };
                let key = event.key.as_ref().and_then(|key| key.parse().ok());
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
                hold.map(|(request, key)| self.open_request(request, Some(key)))
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
                .map(|id| self.open_key(id))
                .unwrap_or_default(),
            CommandContext::Models => {
                let slug = self.selected_id();
                slug.map(|slug| self.show_slug(slug)).unwrap_or_default()
            }
            CommandContext::Config | CommandContext::Nodes | CommandContext::Spend => Vec::new(),
        }
    }

    pub(super) fn open_request(&mut self, request: OperationId, key: Option<KeyId>) -> Vec<Effect> {
        self.modal = Some(Modal::Request(RequestPage {
            request,
            key,
            entry: None,
            known: None,
            read: false,
            problem: None,
            scroll: 0,
        }));
        vec![Effect::LoadRequest(request)]
    }

    /// Opens the page of a key, wherever its id was shown.
    pub(crate) fn open_key(&mut self, id: KeyId) -> Vec<Effect> {
        let known = self
            .keys
            .rows
            .iter()
            .find(|row| row.key.id == id)
            .map(|row| row.key.clone());
        self.modal = None;
        self.detail_open = true;
        if self.detail.as_ref().is_none_or(|detail| detail.id != id) {
            self.detail = Some(KeyDetail::new(id, known));
        }
        vec![Effect::LoadDetail {
            id,
            debounce: false,
        }]
    }

    pub(super) fn selected_key_id(&self) -> Option<KeyId> {
        match self.place() {
            CommandContext::Live => self
                .live
                .shown()
                .get(self.live.selected)?
                .key
                .as_ref()?
                .parse()
                .ok(),
            CommandContext::Holds => self
                .shown_holds()
                .get(self.holds.selected)
                .map(|hold| hold.key),
            CommandContext::Audit => self.shown_audit().get(self.audit.selected)?.key(),
            CommandContext::Exposure | CommandContext::Margin => {
                self.sums()?.selected_name()?.parse().ok()
            }
            CommandContext::Alerts => self.alert()?.key.parse().ok(),
            _ => None,
        }
    }

    fn refresh(&mut self) -> Vec<Effect> {
        match self.place() {
            CommandContext::Keys => vec![Effect::LoadKeys(self.keys.request(
                From::Start,
                true,
                false,
            ))],
            CommandContext::Detail => self
                .detail
                .as_ref()
                .map(|detail| Effect::LoadDetail {
                    id: detail.id,
                    debounce: false,
                })
                .into_iter()
                .collect(),
            _ => self.show(self.screen),
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

    fn verify(&mut self) -> Vec<Effect> {
        match (self.place(), self.detail.as_mut()) {
            (CommandContext::Detail, Some(detail)) => {
                detail.check = BalanceCheck::Running;
                vec![Effect::CheckKey(detail.id)]
            }
            (CommandContext::Config, _) if self.books != AllBooks::Running => {
                self.books = AllBooks::Running;
                vec![Effect::Verify]
            }
            _ => Vec::new(),
        }
    }

    /// Opens the form of an act, or its review if it needs no form.
    fn begin(&mut self, command: ConsoleCommand) -> Vec<Effect> {
        let in_bulk = [
            ConsoleCommand::TopUp,
            ConsoleCommand::Adjust,
            ConsoleCommand::Block,
            ConsoleCommand::Revoke,
        ];
        if self.acts_on_marks() && in_bulk.contains(&command) {
            return self.begin_bulk(command);
        }
        let key = self.selected_key().cloned();
        let entry = self
            .detail
            .as_ref()
            .filter(|_| self.detail_open)
            .and_then(KeyDetail::selected_entry);
        let purpose = match command {
            ConsoleCommand::TopUp => FormPurpose::TopUp,
            ConsoleCommand::NewKey => FormPurpose::NewKey,
            ConsoleCommand::Edit => FormPurpose::Edit,
            ConsoleCommand::Rotate => FormPurpose::Rotate,
            ConsoleCommand::Revoke => FormPurpose::Revoke,
            ConsoleCommand::Adjust => FormPurpose::Adjust,
            ConsoleCommand::Refund => {
                let bill = entry.and_then(|entry| {
                    Some((
                        entry.operation,
                        entry.amount.checked_neg()?,
                        entry.bill.as_ref()?,
                    ))
                });
                let Some((request, charge, bill)) = bill else {
                    return Vec::new();
                };
                FormPurpose::Refund {
                    request,
                    charge,
                    slug: bill.slug.clone(),
                }
            }
            ConsoleCommand::Export => FormPurpose::Export(self.exported(key.as_ref())),
            ConsoleCommand::Block | ConsoleCommand::Link => {
                let plan = match key.as_ref().map(|key| key.stored_status) {
                    _ if command == ConsoleCommand::Link => ActPlan::Link,
                    Some(KeyStatus::Blocked) => ActPlan::Unblock,
                    _ => ActPlan::Block,
                };
                self.modal = key.map(|key| Modal::Review(self.review_of(plan, key)));
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        let (id, about) = match (&purpose, key) {
            (FormPurpose::NewKey, _) | (_, None) => (self.new_key_id(), None),
            (_, Some(key)) => (key.id, Some(key)),
        };
        let form = Form::new(purpose, id, about, self.new_operation());
        self.modal = Some(Modal::Form(form));
        Vec::new()
    }

    /// What an export from here writes.
    fn exported(&self, key: Option<&farebox_ledger::Key>) -> ConsoleExport {
        match (self.place(), key, self.sums()) {
            (CommandContext::Audit, ..) => ConsoleExport::Audit,
            (CommandContext::Detail, Some(key), _) => ConsoleExport::Entries(key.id),
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

    fn review_of(&self, plan: ActPlan, key: farebox_ledger::Key) -> ActReview {
        let pending = Pending {
            operation: self.new_operation(),
            key: key.id,
            label: key.settings.label.clone(),
            plan,
            actor: self.options.operator.clone(),
            at: self.now,
        };
        ActReview {
            form: None,
            pending,
            key: Some(Box::new(key)),
        }
    }
}
