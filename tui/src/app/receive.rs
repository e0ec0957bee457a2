//! Applies the store's messages to the state. Outdated answers are dropped; nothing is drawn unless something changed.

use std::collections::BTreeSet;

use farebox_ledger::{Customer, JournalEntry, OpenHold, OperationId, Scope, Timestamp, Totals};

use super::command::CommandContext;
use super::customers::CustomersPage;
use super::detail::{BalanceCheck, PartyDetail, Tab};
use super::keys::{KeysPage, WINDOW};
use super::live::GatewayLink;
use super::message::{Effect, Message};
use super::modal::{ListedOperation, Modal, OutcomeLookup};
use super::money::sums::ROWS;
use super::party::Party;
use super::{AllBooks, ConsoleApp, Screen};
use crate::admin::OneRequest;

/// Between two reads of what is visible while no money moves.
const REREAD_SECONDS: i64 = 5;

impl ConsoleApp {
    /// Applies one message.
    pub(crate) fn receive(&mut self, message: Message) -> Vec<Effect> {
        match message {
            Message::Pulse { now, totals } => return self.pulse(now, totals),
            Message::Keys(page) => return self.take_keys(page),
            Message::Visible(rows) => {
                for (key, _) in &rows {
                    self.freshen(&key.clone().into());
                }
                self.dirty |= self.keys.refresh(rows);
                return Vec::new();
            }
            Message::Customers(page) => return self.take_customers_page(page),
            Message::VisibleCustomers(fresh) => {
                self.take_customers(fresh);
                return Vec::new();
            }
            Message::KeysOf { customer, keys } => {
                self.dirty |= self.customers.take_keys(customer, keys);
                return Vec::new();
            }
            Message::Detail(data) => return self.take_detail(*data),
            Message::Applied { operation, result } => return self.applied(operation, result),
            Message::Resolved {
                operation,
                tries,
                found,
                outcome,
            } => return self.resolved(operation, tries, found, outcome),
            Message::Live(events) => {
                self.gateway.link = GatewayLink::Live;
                self.live.take(events);
                self.dirty = true;
                return self.labels_of_live();
            }
            Message::Holds(Ok(rows)) => return self.take_holds(rows),
            Message::Found(hit) => return self.found(hit),
            Message::Margins {
                view,
                query,
                answer,
            } => {
                self.dirty |= self.money.sums_mut(view).take(query, answer);
                self.say_unsorted(CommandContext::Money, ROWS, "sums are listed");
            }
            Message::Waiting(answer) => {
                self.money.waiting.take(answer);
                self.dirty = true;
            }
            Message::Spend(answer) => self.dirty |= self.money.spend.take(self.now, answer),
            Message::Status(status) => self.take_status(status),
            plain => {
                self.dirty = true;
                self.receive_plain(plain);
            }
        }
        Vec::new()
    }

    fn take_keys(&mut self, page: KeysPage) -> Vec<Effect> {
        let (generation, first) = (page.generation, page.from == super::keys::From::Start);
        self.keys.take(page);
        self.dirty = true;
        self.say_unsorted(CommandContext::Keys, WINDOW, "keys match");
        let mut effects = self.after_move();
        if self.keys.is_by_day() {
            let all = self.keys.rows.iter().map(|row| row.key.id).collect();
            effects.push(Effect::Visible(all));
        }
        // A filtered list that fits its window is counted by its length.
        if first
            && generation == self.keys.generation
            && !self.keys.filter.is_empty()
            && !self.keys.is_whole()
        {
            effects.push(Effect::CountKeys {
                generation,
                filter: self.keys.filter.clone(),
            });
        }
        effects
    }

    /// Takes fresher values of customers.
    fn take_customers(&mut self, fresh: Vec<Customer>) {
        for customer in fresh {
            self.dirty |= self.customers.refresh(&customer);
            self.freshen(&customer.into());
        }
    }

    /// Takes a page of them.
    fn take_customers_page(&mut self, page: CustomersPage) -> Vec<Effect> {
        self.customers.take(page);
        self.dirty = true;
        self.say_unsorted(CommandContext::Customers, WINDOW, "customers match");
        self.after_move()
    }

    /// Says that a column is only sorted where all rows are here.
    fn say_unsorted(&mut self, place: CommandContext, most: usize, what: &str) {
        if let Some(column) = self.list_mut(place).and_then(|list| list.unsorted.take()) {
            let most = crate::format::count(most as u64);
            let text =
                format!("not sorted by {column}: more than {most} {what}; filter them first");
            self.say(text, true);
        }
    }

    fn take_holds(&mut self, rows: Vec<OpenHold>) -> Vec<Effect> {
        self.dirty = true;
        // Without a gateway they are left over, and not running.
        let running = self.gateway.link == GatewayLink::Live;
        self.live.run(if running { &rows } else { &[] });
        (self.holds.rows, self.holds.error, self.holds.loaded) = (rows, None, true);
        self.holds.list.stay_in(self.holds.rows.len());
        self.labels_of_live()
    }

    /// On the Live screen, requests the labels that it lacks.
    fn labels_of_live(&mut self) -> Vec<Effect> {
        let unknown = (self.screen == Screen::Live).then(|| self.load_labels());
        unknown.flatten().into_iter().collect()
    }

    fn receive_plain(&mut self, message: Message) {
        match message {
            Message::KeysFailed { generation, error } if generation == self.keys.generation => {
                (self.keys.error, self.keys.loading, self.keys.loaded) = (Some(error), false, true);
            }
            Message::Count { generation, count } if generation == self.keys.generation => {
                self.keys.count = Some(count)
            }
            Message::Labels(labels) => self.live.name(labels),
            Message::FilesActs(acts) => self.files_acts = acts,
            Message::HouseActs(acts) => self.house_acts = acts,
            Message::Holds(Err(error)) => {
                (self.holds.error, self.holds.loaded) = (Some(error), true)
            }
            Message::Audit {
                before,
                records,
                end,
            } => self.take_audit(before, records, end),
            Message::Slugs { used, published } => (self.used, self.published) = (used, published),
            Message::Verified {
                report: Ok(report),
                took_ms,
                at,
            } => {
                self.books = AllBooks::Checked {
                    report,
                    took_ms,
                    at,
                }
            }
            Message::Verified {
                report: Err(error), ..
            } => self.books = AllBooks::Failed(error),
            Message::Operations(listed) => self.list_operations(listed),
            Message::Exported(Ok(text)) => self.say(text, false),
            Message::Exported(Err(error)) => self.say(format!("not exported: {error}"), true),
            other => self.receive_for_page(other),
        }
    }

    /// This page, if it is still open.
    fn open_detail(&mut self, of: Scope) -> Option<&mut PartyDetail> {
        self.detail.as_mut().filter(|detail| detail.of == of)
    }

    /// Messages for one open page; nothing if it was left meanwhile.
    fn receive_for_page(&mut self, message: Message) {
        match message {
            Message::Entries {
                of,
                before,
                entries,
                end,
            } => {
                let Some(detail) = self.open_detail(of) else {
                    return;
                };
                detail.loading_more = false;
                let last = detail.entries.last();
                if last.is_some_and(|entry| entry.position == before) {
                    detail.entries.extend(entries);
                    detail.entries_end = end;
                }
            }
            Message::Checked { of, check } => {
                if let Some(detail) = self.open_detail(of) {
                    detail.check = check;
                }
            }
            Message::DetailFailed { of, error } => {
                if let Some(detail) = self.open_detail(of) {
                    (detail.error, detail.loaded) = (Some(error), true);
                }
            }
            Message::Request {
                request,
                entry,
                known,
            } => self.take_request(request, entry, known),
            Message::SecretWritten(result) => {
                let Some(Modal::Secret(page)) = self.modal.as_mut() else {
                    return;
                };
                match result {
                    Ok(path) => (page.written, page.problem) = (Some(path), None),
                    Err(error) => page.problem = Some(format!("not written: {error}")),
                }
            }
            Message::Copied => match self.modal.as_mut() {
                Some(Modal::Secret(page)) => page.copied = true,
                _ => self.say(
                    "sent to the clipboard (OSC 52; the terminal must allow it)",
                    false,
                ),
            },
            _ => {}
        }
    }

    /// What is known of an open request.
    fn take_request(
        &mut self,
        request: OperationId,
        entry: Result<Option<Box<JournalEntry>>, String>,
        known: Option<Box<OneRequest>>,
    ) {
        let open = self.modal.as_mut();
        let Some(Modal::Request(page)) = open.filter(|modal| is_request(modal, request)) else {
            return;
        };
        page.read = true;
        let key = known
            .as_ref()
            .and_then(|known| known.record.as_ref()?.key.as_ref());
        let key = key.and_then(|key| key.parse().ok()).map(Scope::Key);
        page.of = page.of.or(key);
        page.known = known.or(page.known.take());
        match entry {
            Ok(entry) => {
                let of = entry.as_ref().map(|entry| match entry.key {
                    Some(key) => Scope::Key(key),
                    None => Scope::Customer(entry.customer),
                });
                page.of = page.of.or(of);
                page.entry = entry;
            }
            Err(error) => page.problem = Some(error),
        }
    }

    fn pulse(&mut self, now: Timestamp, totals: Result<Totals, String>) -> Vec<Effect> {
        let second = now.millis().div_euclid(1000) != self.now.millis().div_euclid(1000);
        self.now = now;
        self.dirty |= second && self.shows_time();
        let totals = match totals {
            Ok(totals) => totals,
            Err(error) => {
                self.dirty |= self.ledger_error.as_ref() != Some(&error);
                self.ledger_error = Some(error);
                return Vec::new();
            }
        };
        let due = second && now.millis().div_euclid(1000) % REREAD_SECONDS == 0;
        let sums_due = due && self.screen == Screen::Money;
        let unchanged = self.totals == Some(totals) && self.ledger_error.is_none();
        if unchanged {
            // Blocking a key or changing its settings moves no total.
            let mut effects = if due { self.reread() } else { Vec::new() };
            if sums_due && !self.detail_open {
                effects.extend(self.load_sums());
            }
            effects.extend(self.reread_request().filter(|_| second));
            return effects;
        }
        let first = self.totals.is_none();
        let keys_came = self.totals.is_some_and(|old| old.keys != totals.keys);
        (self.totals, self.ledger_error, self.dirty) = (Some(totals), None, true);
        let mut effects = if first {
            Vec::new()
        } else {
            self.follow(keys_came)
        };
        if sums_due && !self.detail_open {
            effects.extend(self.load_sums());
        }
        effects.extend(self.reread_request());
        effects
    }

    /// Reads an open request again that has not ended.
    fn reread_request(&self) -> Option<Effect> {
        match &self.modal {
            Some(Modal::Request(page)) if page.read && page.entry.is_none() => {
                Some(Effect::LoadRequest(page.request))
            }
            _ => None,
        }
    }

    /// Reads the visible keys or customers again; nothing is drawn unless one of them changed.
    fn reread(&self) -> Vec<Effect> {
        match &self.detail {
            Some(detail) if self.detail_open => vec![super::act::reread(detail.of)],
            _ if self.screen == Screen::Customers => self.visible_customers(),
            _ if self.screen == Screen::Keys => vec![Effect::Visible(self.visible_ids())],
            _ => Vec::new(),
        }
    }

    /// The totals changed: reads everything on the screen again.
    fn follow(&mut self, keys_came: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        let beside = matches!(self.screen, Screen::Keys | Screen::Customers);
        let detail_shown = self.detail_open || (self.is_wide() && beside);
        if let Some(detail) = self.detail.as_ref().filter(|_| detail_shown) {
            effects.push(Effect::LoadDetail {
                of: detail.of,
                debounce: false,
            });
        }
        // On the other screens too, so that their lists are complete when they are shown again.
        let list_grew = keys_came && self.keys.is_whole() && !self.keys.loading;
        if list_grew {
            effects.push(Effect::LoadKeys(self.keys.request(
                super::keys::From::Start,
                true,
                false,
            )));
        }
        match self.screen {
            _ if self.detail_open => {}
            Screen::Keys if !list_grew => effects.push(Effect::Visible(self.visible_ids())),
            // A key that came may have brought its customer.
            Screen::Customers if keys_came && self.customers.ended && !self.customers.loading => {
                let all = self.customers.request(true, false);
                effects.push(Effect::LoadCustomers(all));
            }
            Screen::Customers => effects.extend(self.visible_customers()),
            Screen::Holds | Screen::Live => effects.push(Effect::LoadHolds),
            // Only at the top: the first page takes the place of all that were read.
            Screen::Audit if self.audit.list.selected == 0 => {
                effects.push(Effect::LoadAudit { before: None })
            }
            _ => {}
        }
        effects
    }

    /// Whether the screen shows something that changes with time.
    fn shows_time(&self) -> bool {
        let running = self.detail_open
            && self
                .detail
                .as_ref()
                .is_some_and(|detail| detail.tab == Tab::Running && !detail.holds.is_empty());
        let live = self.screen == Screen::Live
            && self
                .live
                .seconds(self.now)
                .iter()
                .any(|second| second.requests > 0);
        let holds = matches!(self.screen, Screen::Holds | Screen::Live);
        let waits = matches!(&self.modal, Some(Modal::Request(page)) if page.entry.is_none());
        let alerts = self.screen == Screen::Alerts && !self.alerts().is_empty();
        let lists = live || alerts || (holds && !self.holds.rows.is_empty());
        running || waits || (!self.detail_open && lists)
    }

    /// Updates a key or customer wherever it is shown.
    fn freshen(&mut self, fresh: &Party) {
        if let Some(key) = fresh.key() {
            self.marks.freshen(key);
            if let Some(Modal::Bulk(act)) = self.modal.as_mut() {
                self.dirty |= act.freshen(key, self.now);
            }
        }
        let detail = self.detail.as_mut();
        let detail = detail.filter(|detail| detail.of == fresh.scope());
        let review = match self.modal.as_mut() {
            Some(Modal::Review(review)) => review.about.as_mut(),
            _ => None,
        };
        let review = review.filter(|shown| shown.scope() == fresh.scope());
        if let Some(detail) = detail {
            self.dirty |= detail.party.as_ref() != Some(fresh);
            detail.party = Some(fresh.clone());
        }
        if let Some(shown) = review {
            self.dirty |= shown != fresh;
            shown.clone_from(fresh);
        }
    }

    fn take_detail(&mut self, data: super::detail::DetailData) -> Vec<Effect> {
        if let Some(party) = &data.party {
            self.freshen(party);
        }
        match &data.party {
            Some(Party::Key(key)) => self.keys.refresh(vec![((**key).clone(), None)]),
            Some(Party::Customer(customer)) => self.customers.refresh(customer),
            None => false,
        };
        self.dirty = true;
        let Some(detail) = self.detail.as_mut() else {
            return Vec::new();
        };
        let of = data.of;
        let customer = data.party.as_ref().map(|party| party.customer().id);
        let check = detail.take(data);
        if matches!(detail.check, BalanceCheck::NotYet) {
            detail.check = BalanceCheck::Running;
        }
        let check = customer.filter(|_| check);
        let check = check.map(|customer| Effect::CheckBooks { of, customer });
        check.into_iter().collect()
    }

    fn take_audit(
        &mut self,
        before: Option<i64>,
        records: Result<Vec<farebox_ledger::AuditRecord>, String>,
        end: bool,
    ) {
        self.audit.loading = false;
        self.audit.loaded = true;
        match records {
            Err(error) => self.audit.error = Some(error),
            Ok(records) => {
                self.audit.error = None;
                match before {
                    None => self.audit.rows = records,
                    Some(before)
                        if self
                            .audit
                            .rows
                            .last()
                            .is_some_and(|act| act.position == before) =>
                    {
                        self.audit.rows.extend(records)
                    }
                    Some(_) => return,
                }
                self.audit.end = end;
                self.audit.list.stay_in(self.audit.rows.len());
            }
        }
    }

    fn take_status(&mut self, status: Result<Box<crate::admin::StatusReport>, String>) {
        match status {
            Ok(status) => {
                self.dirty |= self.gateway.link != GatewayLink::Live
                    || self.gateway.status.as_ref() != Some(&status);
                (self.gateway.link, self.gateway.status) = (GatewayLink::Live, Some(status));
                let alerts = self.alerts().len();
                self.alert_list.stay_in(alerts);
            }
            Err(error) => {
                let link = GatewayLink::Down(error);
                self.dirty |= self.gateway.link != link;
                self.gateway.link = link;
            }
        }
        let keys = self.alerts().iter().map(|alert| alert.key.clone());
        let stopped: BTreeSet<String> = keys.filter(|key| !key.is_empty()).collect();
        self.money.exposure.stop(stopped);
    }

    fn list_operations(&mut self, listed: Vec<ListedOperation>) {
        self.operations = listed;
        // What another console is working on it tells its own user.
        let known = |listed: &ListedOperation| matches!(listed.found, OutcomeLookup::Elsewhere(_));
        if self.modal.is_none() && !self.operations.iter().all(known) {
            self.modal = Some(Modal::Operations(0));
        }
    }
}

fn is_request(modal: &Modal, request: OperationId) -> bool {
    matches!(modal, Modal::Request(page) if page.request == request)
}
