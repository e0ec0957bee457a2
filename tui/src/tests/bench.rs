//! The console with a store that answers every query at once, from made-up data.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use farebox_ledger::{
    Amount, Customer, CustomerStatus, EntryKind, JournalEntry, Key, KeyId, LinkToken, MarginBy,
    MarginQuery, MarginRow, Margins, PublishedSlug, Scope, Secret, SlugUse, Totals, VerifyReport,
};
use farebox_selling::NewSecret;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::fixture::*;
use crate::acts::{NEW_CUSTOMER, NEW_KEY};
use crate::admin::OneRequest;
use crate::app::customers::{CustomersPage, CustomersRequest};
use crate::app::detail::{BalanceCheck, DetailData};
use crate::app::keys::{KeysPage, MatchCount};
use crate::app::message::{Effect, Message};
use crate::app::modal::{ActOutcome, Hit, OutcomeLookup};
use crate::app::money::sums::{KeyLabel, SumsPage};
use crate::app::mouse::{Pane, Spot};
use crate::app::party::{MemberKey, Party};
use crate::app::{Action, ConsoleApp, Options};
use crate::plan::{self, Pending};
use crate::view::Theme;
use crate::{input, view};

const fn same() -> u128 {
    0xfeed_beef
}

/// The console with its store.
pub(super) struct Bench {
    pub(super) app: ConsoleApp,
    /// What was sent to the ledger.
    pub(super) sent: Vec<Pending>,
    /// Every requested effect.
    pub(super) asked: Vec<Effect>,
    /// How the ledger answers an act; by default it is applied.
    pub(super) answer: Option<fn(&Pending) -> Message>,
    pub(super) keys: Vec<Key>,
    pub(super) customers: Vec<Customer>,
    pub(super) answers: bool,
    /// What the gateway knows of every request, and whether the journal has it.
    pub(super) known: Option<OneRequest>,
    pub(super) settled: bool,
    /// What every search finds.
    pub(super) hit: Result<Hit, String>,
}

impl Bench {
    pub(super) fn new(width: u16, height: u16) -> Self {
        Self::with(width, height, keys(), same)
    }

    pub(super) fn with(width: u16, height: u16, keys: Vec<Key>, random: fn() -> u128) -> Self {
        let options = Options {
            ledger: "farebox.db".to_owned(),
            admin: "http://127.0.0.1:9090".to_owned(),
            read_only: false,
            public_url: Some("https://api.example.com".to_owned()),
            operator: "ada".to_owned(),
            theme: crate::background::ThemeChoice::Auto,
            random,
        };
        let (app, first) = ConsoleApp::new(options, (width, height), now());
        let mut bench = Self {
            app,
            sent: Vec::new(),
            asked: Vec::new(),
            answer: None,
            keys,
            customers: customers(),
            answers: true,
            known: None,
            settled: true,
            hit: Ok(Hit::Request(operation(8), None)),
        };
        bench.run(first);
        bench.tell(Message::Pulse {
            now: now(),
            totals: Ok(Totals {
                keys: bench.keys.len() as u64,
                ..totals()
            }),
        });
        bench
    }

    /// With a running gateway.
    pub(super) fn live(mut self) -> Self {
        self.tell(Message::Status(Ok(Box::new(status()))));
        self.tell(Message::Live(events()));
        self
    }

    pub(super) fn tell(&mut self, message: Message) {
        let effects = self.app.update(Action::Message(message));
        self.run(effects);
    }

    /// Presses keys: letters, or names in `<>`.
    pub(super) fn press(&mut self, keys: &str) -> &mut Self {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let (code, used) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
                Some((name, _)) => (named(name), name.len() + 2),
                None => (KeyCode::Char(first), first.len_utf8()),
            };
            self.event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
            rest = &rest[used..];
        }
        self
    }

    pub(super) fn event(&mut self, event: &Event) {
        let spots = match event {
            Event::Mouse(_) => self.draw(Theme::Dark).1,
            _ => Vec::new(),
        };
        if let Some(action) = input::action(&self.app, &spots, event) {
            let effects = self.app.update(action);
            self.run(effects);
        }
    }

    fn run(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.asked.push(effect.clone());
            if let Effect::Apply(pending) = &effect {
                self.sent.push((**pending).clone());
            }
            if self.answers
                && let Some(message) = self.reply(effect)
            {
                self.tell(message);
            }
        }
    }

    fn reply(&self, effect: Effect) -> Option<Message> {
        Some(match effect {
            Effect::LoadKeys(request) => {
                let filter = &request.filter;
                let fits = |key: &&Key| {
                    filter
                        .text
                        .as_ref()
                        .is_none_or(|label| key.settings.label.contains(label))
                        && filter.id.is_none_or(|id| key.id == id)
                };
                let rows = self.keys.iter().filter(fits).cloned().collect();
                let (generation, from) = (request.generation, request.from);
                Message::Keys(KeysPage {
                    generation,
                    from,
                    rows,
                    ended: true,
                    took_ms: 3,
                    at: now(),
                })
            }
            Effect::CountKeys { generation, .. } => Message::Count {
                generation,
                count: MatchCount {
                    keys: 10_000,
                    more: true,
                },
            },
            Effect::Visible(ids) => {
                let found = |id: KeyId| {
                    self.keys
                        .iter()
                        .find(|key| key.id == id)
                        .cloned()
                        .map(|key| (key, Some(usd("4.97"))))
                };
                Message::Visible(ids.into_iter().filter_map(found).collect())
            }
            Effect::LoadCustomers(request) => self.customers_page(&request),
            Effect::VisibleCustomers(ids) => {
                let all = self.customers.iter();
                let visible = all.filter(|customer| ids.contains(&customer.id));
                Message::VisibleCustomers(visible.cloned().collect())
            }
            Effect::LoadKeysOf(customer) => Message::KeysOf {
                customer,
                keys: Ok(self.keys_of(customer.into())),
            },
            Effect::LoadDetail { of, .. } => Message::Detail(Box::new(self.detail(of))),
            Effect::MoreEntries { of, before } => Message::Entries {
                of,
                before,
                entries: vec![charge(2)],
                end: true,
            },
            Effect::CheckBooks { of, .. } => Message::Checked {
                of,
                check: BalanceCheck::Sound {
                    entries: 8,
                    balance: self
                        .detail(of)
                        .party
                        .map_or(Amount::ZERO, |party| party.customer().account.balance()),
                    at: now(),
                },
            },
            Effect::LoadHolds => Message::Holds(Ok(holds())),
            Effect::LoadAudit { before } => Message::Audit {
                before,
                records: Ok(acts()),
                end: true,
            },
            Effect::LoadSlugs => Message::Slugs {
                used: vec![SlugUse {
                    slug: "gpt-5-mini".to_owned(),
                    keys: 12,
                    requests: 34_567,
                }],
                published: vec![PublishedSlug {
                    slug: "gpt-5-mini".to_owned(),
                    since: ago(HOUR * 1000),
                }],
            },
            Effect::LoadMargins { view, query } => Message::Margins {
                view,
                query,
                answer: Ok(self.sums(query)),
            },
            Effect::LoadWaiting => Message::Waiting(Ok(waiting())),
            Effect::LoadSpend { .. } => Message::Spend(Ok(slug_hours())),
            Effect::Verify => {
                let report = VerifyReport {
                    customers: 39,
                    keys: 39,
                    entries: 9,
                    holds: 3,
                    anchors: 0,
                    faults: vec!["key k_1: entry 7: the chain is broken".to_owned()],
                    notes: Vec::new(),
                };
                Message::Verified {
                    report: Ok(report),
                    took_ms: 1234,
                    at: now(),
                }
            }
            Effect::LoadRequest(request) => Message::Request {
                request,
                entry: Ok(self.settled.then(|| Box::new(charge(8)))),
                known: self.known.clone().map(Box::new),
            },
            Effect::Find(_) => Message::Found(self.hit.clone()),
            Effect::LoadLabels(ids) => Message::Labels(
                ids.into_iter()
                    .enumerate()
                    .map(|(number, id)| (id, format!("customer {number}")))
                    .collect(),
            ),
            Effect::Apply(pending) => self
                .answer
                .map_or_else(|| self.applied(&pending), |answer| answer(&pending)),
            Effect::Resolve(pending) => Message::Resolved {
                operation: pending.operation,
                tries: 1,
                found: OutcomeLookup::NotApplied,
                outcome: ActOutcome::default(),
            },
            Effect::Export { .. } => {
                Message::Exported(Ok("39 rows written to farebox-keys.csv".to_owned()))
            }
            Effect::WriteSecret { .. } => Message::SecretWritten(Ok("k.key".to_owned())),
            Effect::Copy(_) => Message::Copied,
            Effect::Forget(_) | Effect::ReadStatus | Effect::Mouse(_) => return None,
        })
    }

    /// Made-up sums; the second target has no price of the operator's.
    pub(super) fn sums(&self, query: MarginQuery) -> SumsPage {
        let row = |name: &str, requests, charge: &str, cost: &str, exposure: &str, loss: &str| {
            MarginRow {
                name: name.to_owned(),
                requests,
                charge: usd(charge),
                cost: usd(cost),
                // Answers of one of the two providers tell it.
                told: if name.contains('/') {
                    usd(cost)
                } else {
                    Amount::ZERO
                },
                priced: if cost == "0" {
                    Amount::ZERO
                } else {
                    usd(charge)
                },
                exposure: usd(exposure),
                loss: usd(loss),
                own: Amount::ZERO,
            }
        };
        let id = |number: usize| {
            self.keys
                .get(number)
                .map_or_else(String::new, |key| key.id.to_string())
        };
        let rows = match query.by {
            MarginBy::Key => vec![
                row(&id(3), 812, "1.42", "2.9", "3.0712", "0"),
                row(&id(0), 40_210, "1204.5", "803.2", "12.4", "0.5"),
                row(&id(6), 3, "0.0004", "0", "0.0001", "0"),
            ],
            MarginBy::Target => vec![
                row(
                    "anthropic/claude-sonnet-4-5-20250929",
                    39_001,
                    "1190.1",
                    "806.1",
                    "15.1",
                    "0.5",
                ),
                row(
                    "anthropic-eu/claude-sonnet-4-5-20250929",
                    2_020,
                    "15.8204",
                    "0",
                    "0.2713",
                    "0",
                ),
                row("", 4, "0", "0", "0.1", "0"),
            ],
            MarginBy::Customer => vec![row("c_0000000001", 812, "1.42", "0.9", "0", "0")],
            MarginBy::Slug => vec![row("small", 812, "1.42", "0.9", "0", "0")],
            MarginBy::Provider => vec![row("anthropic", 812, "1.42", "0.9", "0", "0")],
            MarginBy::Account => vec![row("anthropic/eu", 812, "1.42", "0.9", "0", "0")],
            MarginBy::Class => vec![
                row("standard", 40_025, "1190.9204", "796.1", "15.4713", "0.5"),
                row("fast,us", 1_000, "15", "10", "0", "0"),
            ],
            MarginBy::Day => (0..9)
                .map(|day| {
                    let name: String = ago(day * 24 * HOUR).to_string().chars().take(10).collect();
                    row(
                        &name,
                        4_000 + day.unsigned_abs(),
                        "134.2",
                        "89.5",
                        &format!("{day}.7"),
                        "0.05",
                    )
                })
                .collect(),
        };
        let mut total = row("", 41_025, "1205.9204", "806.1", "15.4713", "0.5");
        total.priced = usd("1205.92");
        let labels = self.keys.iter().map(|key| {
            let label = key.settings.label.clone();
            let customer = String::new();
            (key.id.to_string(), KeyLabel { label, customer })
        });
        let labels = labels.collect();
        SumsPage {
            page: Margins {
                count: rows.len(),
                rows,
                total,
            },
            labels,
        }
    }

    fn customers_page(&self, request: &CustomersRequest) -> Message {
        let filter = &request.filter;
        let fits = |customer: &&Customer| {
            let settings = &customer.settings;
            let has = |text: &String| {
                let external_id = settings.external_id.as_ref();
                settings.label.contains(text) || external_id.is_some_and(|id| id.contains(text))
            };
            filter.text.as_ref().is_none_or(has) && filter.id.is_none_or(|id| customer.id == id)
        };
        Message::Customers(CustomersPage {
            generation: request.generation,
            more: request.after.is_some(),
            rows: Ok(self.customers.iter().filter(fits).cloned().collect()),
            ended: true,
            at: now(),
        })
    }

    fn keys_of(&self, of: Scope) -> Vec<Key> {
        let all = self.keys.iter().cloned().chain(members());
        all.filter(|key| Scope::Customer(key.belongs_to) == of)
            .collect()
    }

    fn party(&self, of: Scope) -> Option<Party> {
        match of {
            Scope::Key(id) => {
                let mut all = self.keys.iter().cloned().chain(members());
                all.find(|key| key.id == id).map(Party::from)
            }
            Scope::Customer(id) => {
                let mut all = self.customers.iter();
                all.find(|customer| customer.id == id)
                    .cloned()
                    .map(Party::from)
            }
        }
    }

    fn detail(&self, of: Scope) -> DetailData {
        let party = self.party(of);
        let busy = (party.as_ref()).is_some_and(|party| party.account().credit.is_positive());
        let member = |key: Key| MemberKey {
            key,
            spent: usd("4.08"),
            held: Amount::ZERO,
        };
        let keys = self.keys_of(of).into_iter().map(member).collect();
        let unapplied = vec![unapplied()];
        DetailData {
            of,
            at: now(),
            party,
            entries: if busy { entries() } else { Vec::new() },
            entries_end: true,
            usage: if busy { usage() } else { Vec::new() },
            runs: if busy { runs() } else { Vec::new() },
            acts: if busy { acts() } else { Vec::new() },
            holds: if busy { holds() } else { Vec::new() },
            keys,
            unapplied: unapplied
                .into_iter()
                .filter(|payment| of == payment.customer.into())
                .collect(),
            grants: (grants().into_iter())
                .filter(|record| of == record.grant.customer.into())
                .collect(),
        }
    }

    fn applied(&self, pending: &Pending) -> Message {
        let plan = &pending.plan;
        let of = plan.of.filter(|_| *plan.kind != NEW_KEY);
        let made = |number| key(number, &pending.label, "25", "0", "0");
        let mut about = match of.and_then(|of| self.party(of)) {
            None if *plan.kind == NEW_CUSTOMER => made(78).customer.into(),
            known => known.unwrap_or_else(|| made(77).into()),
        };
        let customer = match &mut about {
            Party::Key(key) => &mut key.customer,
            Party::Customer(customer) => &mut **customer,
        };
        if let Some(Ok(account)) = plan.after(customer.account) {
            customer.account = account;
        }
        customer.status = match plan.kind.name {
            "Suspend" => CustomerStatus::Suspended,
            "Close" => CustomerStatus::Closed,
            "Resume" => CustomerStatus::Active,
            _ => customer.status,
        };
        let id = about.key().map(|key| key.id);
        let secret = || NewSecret::Secret(Secret::generate(id.unwrap(), [7; 32]));
        let shown_once = match plan.kind.name {
            "New key" | "Rotate" => Some(secret()),
            "Dashboard link" => Some(NewSecret::Link(LinkToken::generate([0xab; 32]))),
            _ => None,
        };
        let outcome = ActOutcome {
            entry: posted(pending, &about).map(Box::new),
            about: Some(about),
            shown_once,
            ..ActOutcome::default()
        };
        Message::Applied {
            operation: pending.operation,
            result: Ok(outcome),
        }
    }

    /// The screen as text.
    pub(super) fn screen(&self) -> String {
        self.terminal(Theme::Dark).backend().to_string()
    }

    pub(super) fn terminal(&self, theme: Theme) -> Terminal<TestBackend> {
        self.draw(theme).0
    }

    /// The screen, and what is where on it.
    pub(super) fn draw(&self, theme: Theme) -> (Terminal<TestBackend>, view::Spots) {
        let (width, height) = self.app.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut spots = view::Spots::new();
        terminal
            .draw(|frame| spots = view::draw(&self.app, theme, frame))
            .unwrap();
        (terminal, spots)
    }

    /// Clicks on the first place where the screen has this text.
    pub(super) fn click(&mut self, text: &str) -> &mut Self {
        let terminal = self.terminal(Theme::Dark);
        let buffer = terminal.backend().buffer();
        let width = buffer.area.width;
        let symbols: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let place = symbols
            .windows(letters.len())
            .position(|cells| cells == letters)
            .unwrap_or_else(|| panic!("{text:?} is not on\n{}", self.screen()));
        let place = u16::try_from(place).unwrap();
        self.mouse(
            MouseEventKind::Down(MouseButton::Left),
            (place % width, place / width),
        )
    }

    /// The columns whose headings are on the screen.
    pub(super) fn heads(&self) -> Vec<&'static str> {
        let spots = self.draw(Theme::Dark).1.into_iter();
        spots
            .filter_map(|(_, spot)| match spot {
                Spot::Head(Pane::List, column) => Some(column),
                _ => None,
            })
            .collect()
    }

    /// One event of the mouse.
    pub(super) fn mouse(&mut self, kind: MouseEventKind, (column, row): (u16, u16)) -> &mut Self {
        self.event(&Event::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        }));
        self
    }
}

/// The entry of a credit.
fn posted(pending: &Pending, about: &Party) -> Option<JournalEntry> {
    let word = match pending.plan.kind.name {
        "Top up" => EntryKind::TopUp,
        "Adjust" => EntryKind::Adjust,
        "Refund" => EntryKind::Refund,
        _ => return None,
    };
    let (_, amount) = pending.plan.money()?;
    Some(JournalEntry {
        key: about.key().map(|key| key.id),
        customer: about.customer().id,
        operation: pending.operation,
        amount,
        reference: pending.plan.body.get("reference").map(plan::typed),
        actor: pending.actor.clone(),
        balance_after: about.account().balance(),
        ..entry(9, word, "0", "0")
    })
}

/// Ctrl-s, which ends a form from any field.
pub(super) fn submit() -> Event {
    Event::Key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL))
}

fn named(name: &str) -> KeyCode {
    match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backtab" => KeyCode::BackTab,
        "down" => KeyCode::Down,
        "up" => KeyCode::Up,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "back" => KeyCode::Backspace,
        "space" => KeyCode::Char(' '),
        "pgdn" => KeyCode::PageDown,
        "pgup" => KeyCode::PageUp,
        _ => KeyCode::Null,
    }
}
