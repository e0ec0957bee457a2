//! Made-up data, and a store that answers every query from it at once.

use std::sync::atomic::{AtomicU64, Ordering};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use farebox_ledger::{
    Account, Amount, AuditRecord, Bill, Credit, CreditKind, EndReason, Entry, EntryKind, Key,
    KeyId, KeySettings, Line, LinkToken, MarginBy, MarginQuery, MarginRow, Margins, OpenHold,
    OperationId, PublishedSlug, Secret, SecretHash, SlugUse, Status, Timestamp, Totals, Usage,
    UsageRow, VerifyReport,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::app::detail::{Check, DetailData};
use crate::app::keys::{Count, KeysPage};
use crate::app::margins::Answer;
use crate::app::message::{Effect, Message};
use crate::app::modal::{Found, Outcome};
use crate::app::{Action, App, Options};
use crate::plan::{Pending, Plan};
use crate::view::Theme;
use crate::{admin, input, view};

pub(super) const HOUR: i64 = 3_600_000;

/// 2026-11-21 12:04:11 UTC.
pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(1_795_262_651_000)
}

pub(super) fn ago(millis: i64) -> Timestamp {
    Timestamp::from_millis(now().millis() - millis)
}

pub(super) fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

pub(super) fn operation(number: u128) -> OperationId {
    OperationId::new(now(), number)
}

pub(super) fn key(number: u64, label: &str, credit: &str, spent: &str, held: &str) -> Key {
    Key {
        id: KeyId::from_random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 13),
        settings: KeySettings {
            label: label.to_owned(),
            ..KeySettings::default()
        },
        stored_status: Status::Active,
        secret: SecretHash([0; 32]),
        old_secret: None,
        account: Account {
            credit: usd(credit),
            spent: usd(spent),
            held: usd(held),
        },
        created_at: ago(HOUR * 24 * 260 + i64::try_from(number).unwrap() * 1000),
        created_by: "alice".to_owned(),
        last_entry_at: (number != 3)
            .then(|| ago(2_000 * i64::try_from(number * number * number).unwrap())),
    }
}

pub(super) fn keys() -> Vec<Key> {
    let mut keys = vec![
        key(1, "acme-build@ci", "250", "250", "0"),
        key(2, "acme-sandbox", "10", "9.98", "0"),
        key(3, "never used", "0", "0", "0"),
        key(4, "ops@acme.example", "250", "249.5879", "0.38"),
        key(5, "acme-tools", "20", "18.81", "0"),
        key(6, "evil\u{202e}gpj\x1b[31m label", "5", "1.2501", "1"),
        key(
            7,
            "漢字のラベル with a very long tail that no column can hold",
            "1000000",
            "0.000001",
            "0",
        ),
        key(8, "left the company", "50", "10", "0"),
        key(9, "trial", "5", "1", "0"),
    ];
    keys[4].stored_status = Status::Blocked;
    keys[7].stored_status = Status::Revoked;
    keys[8].settings.expires_at = Some(ago(1));
    keys[3].settings.rate = Some(20);
    keys[3].settings.concurrency = Some(8);
    for number in 10..40 {
        keys.push(key(
            number,
            &format!("customer-{number}"),
            &format!("{number}.50"),
            "0.25",
            "0",
        ));
    }
    keys
}

fn entry(position: i64, kind: EntryKind, amount: &str, after: &str) -> Entry {
    Entry {
        position,
        seq: position,
        key: keys()[3].id,
        operation: operation(position.unsigned_abs().into()),
        kind,
        amount: usd(amount),
        balance_after: usd(after),
        at: ago((9 - position) * HOUR),
        actor: "gateway".to_owned(),
        reference: None,
        reason: None,
        refunds: None,
        bill: None,
    }
}

pub(super) fn charge(position: i64) -> Entry {
    let lines = vec![
        Line {
            what: "input".into(),
            count: 8120,
            rate: usd("0.0000003"),
        },
        Line {
            what: "output".into(),
            count: 412,
            rate: usd("0.0000015"),
        },
    ];
    let bill = Bill {
        slug: "large-model".to_owned(),
        family: "messages".to_owned(),
        target: "north/large-1".to_owned(),
        status: 200,
        end_reason: EndReason::Stop,
        first_byte_ms: Some(900),
        total_ms: 8_200,
        hold: usd("0.05"),
        usage: Usage {
            input: 8120,
            output: 412,
            ..Usage::default()
        },
        lines,
        evidence: Some(farebox_ledger::Evidence::Provider),
        ..Bill::default()
    };
    Entry {
        bill: Some(bill),
        ..entry(position, EntryKind::Charge, "-0.003054", "0.4121")
    }
}

fn entries() -> Vec<Entry> {
    let payment = Entry {
        reference: Some("inv-8841".to_owned()),
        actor: "alice".to_owned(),
        ..entry(1, EntryKind::TopUp, "250", "250")
    };
    let reason = Some("wrong invoice".to_owned());
    let adjust = Entry {
        reference: Some("fix-1".to_owned()),
        actor: "alice".to_owned(),
        reason,
        ..entry(2, EntryKind::Adjust, "-2.5", "247.5")
    };
    let mut entries: Vec<Entry> = (3..9).map(charge).collect();
    entries.reverse();
    entries.extend([adjust, payment]);
    entries
}

pub(super) fn acts() -> Vec<AuditRecord> {
    let act = |position: i64, act: &str, details: &str| AuditRecord {
        position,
        at: ago((20 - position) * 600_000),
        actor: if position % 2 == 0 {
            "bob".to_owned()
        } else {
            "alice".to_owned()
        },
        act: act.to_owned(),
        key: keys()[usize::try_from(position).unwrap() % 5].id,
        operation: operation(position.unsigned_abs().into()),
        details: details.to_owned(),
    };
    let mut acts = vec![
        act(
            1,
            "create",
            r#"{"label":"ops@acme.example","models":null,"credit":"250.00","reference":"inv-8841"}"#,
        ),
        act(2, "top_up", r#"{"amount":"20.00","reference":"inv-8902"}"#),
        act(
            3,
            "adjust",
            r#"{"amount":"-2.50","reference":"fix-1","reason":"wrong invoice"}"#,
        ),
        act(4, "block", "{}"),
        act(5, "rotate", r#"{"secret":"9f3c","old_until":null}"#),
    ];
    acts.reverse();
    acts
}

fn holds() -> Vec<OpenHold> {
    let hold = |number: u128, slug: &str, epoch| OpenHold {
        request: operation(100 + number),
        key: keys()[3].id,
        amount: usd("0.38"),
        used: usd("0.012345"),
        slug: slug.to_owned(),
        family: "messages".to_owned(),
        at: ago(2_100 * i64::try_from(number).unwrap()),
        epoch,
    };
    vec![
        hold(3, "gpt-5-mini", 6),
        hold(2, "large-model", 7),
        hold(1, "gpt-5-mini", 7),
    ]
}

fn usage() -> Vec<UsageRow> {
    let row = |hours: i64, slug: &str, charge: &str| UsageRow {
        hour: Timestamp::from_millis((now().hour() - hours) * HOUR),
        slug: slug.to_owned(),
        requests: 12,
        usage: Usage {
            input: 90_000,
            cache_read: 7_400,
            output: 4_100,
            ..Usage::default()
        },
        charge: usd(charge),
        ..UsageRow::default()
    };
    vec![
        row(0, "large-model", "1.91"),
        row(1, "large-model", "0.7"),
        row(3, "gpt-5-mini", "0.2"),
        row(30, "gpt-5-mini", "1.2"),
        row(100, "gpt-5", "3"),
    ]
}

pub(super) fn status() -> admin::Status {
    serde_json::from_str(include_str!("status.json")).unwrap()
}

pub(super) fn events() -> Vec<admin::LiveEvent> {
    serde_json::from_str(include_str!("live.json")).unwrap()
}

pub(super) fn totals() -> Totals {
    Totals {
        keys: 39,
        entries: 9,
        holds: 3,
        credit: 1_001_590_000_000_000_000,
        spent: 540_000_000_000_000,
        held: 1_380_000_000_000,
        loss: 0,
        exposure: 1_260_000_000_000,
        cost: 312_000_000_000_000,
    }
}

/// Ids that differ and are the same in every run.
pub(super) fn counted() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

const fn same() -> u128 {
    0xfeed_beef
}

/// The console with its store.
pub(super) struct Bench {
    pub(super) app: App,
    /// What was sent to the ledger.
    pub(super) sent: Vec<Pending>,
    /// Every requested effect.
    pub(super) asked: Vec<Effect>,
    /// How the ledger answers an act; by default it is applied.
    pub(super) answer: Option<fn(&Pending) -> Message>,
    pub(super) keys: Vec<Key>,
    pub(super) answers: bool,
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
            random,
        };
        let (app, first) = App::new(options, (width, height), now());
        let mut bench = Self {
            app,
            sent: Vec::new(),
            asked: Vec::new(),
            answer: None,
            keys,
            answers: true,
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
        if let Some(action) = input::action(&self.app, event) {
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
                        .label
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
                count: Count {
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
            Effect::LoadDetail { id, .. } => Message::Detail(Box::new(self.detail(id))),
            Effect::MoreEntries { id, before } => Message::Entries {
                id,
                before,
                entries: vec![charge(2)],
                end: true,
            },
            Effect::CheckKey(id) => Message::Checked {
                id,
                check: Check::Sound {
                    entries: 8,
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
            Effect::Verify => {
                let report = VerifyReport {
                    keys: 39,
                    entries: 9,
                    holds: 3,
                    anchors: 0,
                    faults: vec!["key k_1: entry 7: the chain is broken".to_owned()],
                };
                Message::Verified {
                    report: Ok(report),
                    took_ms: 1234,
                    at: now(),
                }
            }
            Effect::LoadRequest(request) => Message::Request {
                request,
                entry: Ok(Some(Box::new(charge(8)))),
            },
            Effect::Apply(pending) => self
                .answer
                .map_or_else(|| self.applied(&pending), |answer| answer(&pending)),
            Effect::Resolve(pending) => Message::Resolved {
                operation: pending.operation,
                tries: 1,
                found: Found::NotApplied,
                outcome: None,
            },
            Effect::Export { .. } => {
                Message::Exported(Ok("39 rows written to farebox-keys.csv".to_owned()))
            }
            Effect::WriteSecret { .. } => Message::SecretWritten(Ok("k.key".to_owned())),
            Effect::Copy(_) => Message::Copied,
            Effect::Forget(_) | Effect::ReadStatus => return None,
        })
    }

    /// Made-up sums; the second target has no price of the operator's.
    fn sums(&self, query: MarginQuery) -> Answer {
        let row = |name: &str, requests, charge: &str, cost: &str, exposure: &str, loss: &str| {
            MarginRow {
                name: name.to_owned(),
                requests,
                charge: usd(charge),
                cost: usd(cost),
                priced: if cost == "0" {
                    Amount::ZERO
                } else {
                    usd(charge)
                },
                exposure: usd(exposure),
                loss: usd(loss),
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
        let labels = self
            .keys
            .iter()
            .map(|key| (key.id.to_string(), key.settings.label.clone()))
            .collect();
        Answer {
            page: Margins {
                count: rows.len(),
                rows,
                total,
            },
            labels,
        }
    }

    fn detail(&self, id: KeyId) -> DetailData {
        let key = self.keys.iter().find(|key| key.id == id).cloned();
        let busy = key
            .as_ref()
            .is_some_and(|key| key.account.credit.is_positive());
        DetailData {
            id,
            key,
            entries: if busy { entries() } else { Vec::new() },
            entries_end: true,
            usage: if busy { usage() } else { Vec::new() },
            acts: if busy { acts() } else { Vec::new() },
            holds: if busy { holds() } else { Vec::new() },
        }
    }

    fn applied(&self, pending: &Pending) -> Message {
        let old = self.keys.iter().find(|key| key.id == pending.key).cloned();
        let mut key = old.unwrap_or_else(|| Key {
            id: pending.key,
            ..key(77, &pending.label, "25", "0", "0")
        });
        if let Some(Ok(account)) = pending.plan.after(key.account) {
            key.account = account;
        }
        let after = key.account.balance();
        let key = Box::new(key);
        let outcome = match &pending.plan {
            Plan::Create { .. } | Plan::Rotate { .. } => Outcome::Secret {
                secret: Secret::generate(key.id, [7; 32]),
                key,
            },
            Plan::Link => Outcome::Link {
                key,
                token: LinkToken::generate([0xab; 32]),
                expires: ago(-900_000),
            },
            Plan::Credit {
                kind,
                amount,
                reference,
            } => {
                let (operation, actor) = (pending.operation, pending.actor.clone());
                let credit = Credit {
                    operation,
                    key: key.id,
                    kind: kind.clone(),
                    amount: *amount,
                    reference: reference.clone(),
                    actor,
                    at: now(),
                };
                Outcome::Posted {
                    entry: Box::new(posted(&credit, after)),
                    key,
                    repeated: false,
                }
            }
            _ => Outcome::Changed(key),
        };
        Message::Applied {
            operation: pending.operation,
            result: Ok(outcome),
        }
    }

    /// The screen as text.
    pub(super) fn screen(&self) -> String {
        self.terminal(Theme { color: true }).backend().to_string()
    }

    pub(super) fn terminal(&self, theme: Theme) -> Terminal<TestBackend> {
        let mut terminal =
            Terminal::new(TestBackend::new(self.app.size.0, self.app.size.1)).unwrap();
        terminal
            .draw(|frame| view::draw(&self.app, theme, frame))
            .unwrap();
        terminal
    }
}

fn posted(credit: &Credit, after: Amount) -> Entry {
    let kind = match credit.kind {
        CreditKind::TopUp => EntryKind::TopUp,
        CreditKind::Adjust { .. } => EntryKind::Adjust,
        CreditKind::Refund { .. } => EntryKind::Refund,
    };
    Entry {
        key: credit.key,
        operation: credit.operation,
        amount: credit.amount,
        reference: Some(credit.reference.clone()),
        actor: credit.actor.clone(),
        balance_after: after,
        ..entry(9, kind, "0", "0")
    }
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
