//! Made-up data: keys, entries, holds, acts and what the gateway tells.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::admin;
use crate::state_file::OpenOperation;
use farebox_ledger::{
    Account, Amount, AuditRecord, Bill, BillLine, Caps, Customer, CustomerId, CustomerSettings,
    CustomerStatus, EndReason, EntryKind, Grant, GrantId, GrantKind, GrantName, GrantRecord,
    GrantStatus, Grants, JournalEntry, Key, KeyId, KeyRecord, KeySettings, KeyStatus, MarginRow,
    OpenHold, OperationId, PaidSum, Payment, PaymentStatus, PeriodAnchor, PlanTerms, PlanWindow,
    Plans, Registers, RunSum, RunningPeriod, SecretHash, Served, ServedRegion, ServedTier,
    SlugHour, StatementMonth, Subscription, SubscriptionId, SubscriptionState, SubscriptionStatus,
    Timestamp, Totals, Usage, UsageRow, WindowId, WindowPlace,
};
use farebox_selling::value::{CustomerName, Instant, Usd};
use farebox_selling::waiting::WaitingThing;
use serde_json::json;

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

/// A file of this act on a key: 50 dollars under a reference.
pub(super) fn open_operation(act: &str, number: u128, of: KeyId) -> OpenOperation {
    let file = serde_json::json!({
        "operation": operation(number).to_string(),
        "ledger": "/x/farebox.db",
        "pid": 1,
        "act": act,
        "of": of.to_string(),
        "label": "acme",
        "actor": "ada",
        "at": now().to_string(),
        "body": { "amount": "50", "reference": "inv-8902" },
    });
    serde_json::from_value(file).unwrap()
}

pub(super) fn key(number: u64, label: &str, credit: &str, spent: &str, held: &str) -> Key {
    let id = KeyId::from_random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 13);
    let created_at = ago(HOUR * 24 * 260 + i64::try_from(number).unwrap() * 1000);
    Key {
        own: KeyRecord {
            id,
            belongs_to: CustomerId::made_for(id),
            is_owner: false,
            made_by: None,
            counts_in: None,
            token: None,
            settings: KeySettings {
                label: label.to_owned(),
                ..KeySettings::default()
            },
            stored_status: KeyStatus::Active,
            secret: SecretHash([0; 32]),
            old_secret: None,
            caps: Caps::default(),
            defaults: Default::default(),
            used_at: None,
            created_at,
            created_by: "alice".into(),
        },
        of_maker: Caps::default(),
        customer: Customer {
            id: CustomerId::made_for(id),
            settings: CustomerSettings {
                label: label.to_owned(),
                ..CustomerSettings::default()
            },
            status: CustomerStatus::Active,
            account: Account {
                credit: usd(credit),
                spent: usd(spent),
                held: usd(held),
            },
            claim: Amount::ZERO,
            caps: Caps::default(),
            defaults: Default::default(),
            grants: Grants::default(),
            auto_top_up: None,
            personal: None,
            created_at,
            created_by: "alice".into(),
            token: None,
            last_entry_at: (number != 3)
                .then(|| ago(2_000 * i64::try_from(number * number * number).unwrap())),
        },
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
    keys[4].stored_status = KeyStatus::Blocked;
    keys[7].stored_status = KeyStatus::Revoked;
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

/// Who owns those keys' money, after a class of three keys with a cap, a claim and a payment that could not be booked.
pub(super) fn customers() -> Vec<Customer> {
    let mut class = key(60, "Class 9b", "50", "12.25", "1.50").customer;
    class.settings.external_id = Some("crm-9".to_owned());
    class.settings.rate = Some(5);
    class.caps = month_cap("40", "12.25", "1.50");
    let open = grants().into_iter().take(2).map(|record| record.grant);
    let plans = Plans::of(subscriptions(), vec![window()]);
    class.grants = Grants::of(open.chain([period()]).collect()).and(plans);
    let mut suspended = key(61, "Ms. Grace", "8", "8", "0").customer;
    suspended.status = CustomerStatus::Suspended;
    suspended.claim = usd("2.50");
    let mut all = vec![class, suspended];
    all.extend(keys().into_iter().map(|key| key.customer));
    all
}

/// Grants of the class, newest first: one that can be used, one that begins later, and one that was taken back.
pub(super) fn grants() -> Vec<GrantRecord> {
    let grant = |number: u64, name: &str, status, days: i64| {
        let (begins, id) = (ago(86_400_000), GrantId::from_random(number));
        let left = ["3", "0"][usize::from(status == GrantStatus::Voided)];
        GrantRecord {
            grant: Grant {
                id,
                customer: key(60, "", "0", "0", "0").customer.id,
                kind: GrantKind::Promotional,
                amount: usd("5"),
                priority: 20,
                effective_at: if status == GrantStatus::Pending {
                    ago(-86_400_000)
                } else {
                    begins
                },
                expires_at: (days > 0).then(|| ago(-86_400_000 * days)),
                models: (number == 92).then(|| vec!["small".to_owned()]),
                remaining: usd(left),
                held: Amount::ZERO,
                status,
                told: None,
            },
            reference: GrantName(Some(name.to_owned())),
            created_at: begins,
            created_by: "alice".into(),
        }
    };
    vec![
        grant(91, "spring-7", GrantStatus::Active, 9),
        grant(92, "next-term", GrantStatus::Pending, 200),
        grant(93, "a slip", GrantStatus::Voided, 0),
    ]
}

/// What the class has bought.
pub(super) fn coder() -> PlanTerms {
    let terms = json!({
        "name": "coder", "title": "Coder, monthly", "price": "20", "allowance": "25",
        "period": "month", "windows": [{ "per": "5h", "usd": "4" }], "grace": 6 * HOUR,
    });
    serde_json::from_value(terms).unwrap()
}

/// The grant of the running period of the class.
fn period() -> Grant {
    let running = subscriptions().remove(0).state.running.unwrap();
    Grant {
        id: running.grant,
        kind: GrantKind::Plan,
        amount: usd("25"),
        effective_at: running.begins,
        expires_at: Some(running.ends),
        remaining: usd("12"),
        ..grants().remove(0).grant
    }
}

/// The window in which the class is.
fn window() -> PlanWindow {
    let begins = ago(2 * HOUR);
    PlanWindow {
        id: WindowId::from_i64(1).unwrap(),
        customer: grants().remove(0).grant.customer,
        place: WindowPlace {
            plan: "coder".to_owned(),
            per: "5h".parse().unwrap(),
        },
        begins,
        ends: ago(-3 * HOUR),
        bound: usd("4"),
        charged: usd("1.50"),
        held: Amount::ZERO,
        told: 0,
    }
}

/// Subscriptions of the class: one whose third period runs, and one that has lapsed.
fn subscriptions() -> Vec<Subscription> {
    let begins = ago(24 * HOUR);
    let of = |number: u64, terms: PlanTerms, running: Option<RunningPeriod>| Subscription {
        id: SubscriptionId::from_random(number),
        customer: grants().remove(0).grant.customer,
        state: SubscriptionState {
            status: match running {
                Some(_) => SubscriptionStatus::Active,
                None => SubscriptionStatus::Lapsed,
            },
            anchor: PeriodAnchor {
                at: begins,
                number: 3,
                period: terms.period,
            },
            terms,
            last: 3,
            sold: Vec::new(),
            running,
            past: None,
            paused_at: None,
            ended_at: None,
            end_wanted: false,
            processor: None,
            created_at: begins,
            created_by: "shop".to_owned(),
            token: None,
        },
        moved: Amount::ZERO,
        told: 0,
    };
    let running = RunningPeriod {
        number: 3,
        grant: GrantId::from_random(94),
        terms: coder(),
        begins,
        ends: ago(-29 * 24 * HOUR),
        payment: Some("pi_3001".to_owned()),
    };
    let team = PlanTerms {
        name: "team".to_owned(),
        ..coder()
    };
    vec![of(95, coder(), Some(running)), of(96, team, None)]
}

/// A cap that has counted this in the current month.
fn month_cap(limit: &str, charged: &str, held: &str) -> Caps {
    // The 1st of November, in days since 1970.
    let since = now().hour().div_euclid(24) - 20;
    let caps = format!(
        r#"[{{"interval":"month","model":null,"limit":"{limit}","current":{{"since":{since},"charged":"{charged}","held":"{held}"}}}}]"#
    );
    serde_json::from_str(&caps).unwrap()
}

/// The keys of the class, an owner first.
pub(super) fn members() -> Vec<Key> {
    let class = customers().remove(0);
    let member = |number: u64, label: &str| {
        let mut made = key(number, label, "0", "0", "0");
        made.own.belongs_to = class.id;
        made.own.is_owner = number == 70;
        made.customer = class.clone();
        made
    };
    vec![
        member(70, "teacher"),
        member(71, "pupil-1"),
        member(72, "pupil-2"),
    ]
}

/// A payment of the class that could not be booked.
pub(super) fn unapplied() -> Payment {
    Payment {
        reference: "pi_3PqK".to_owned(),
        customer: customers().remove(0).id,
        paid: PaidSum::in_usd(usd("30")),
        credit: usd("30"),
        registers: Registers::default(),
        waiting: Vec::new(),
        status: PaymentStatus::Unapplied {
            why: "the highest balance".to_owned(),
        },
        actor: "shop".to_owned(),
        at: ago(HOUR),
        plan: None,
        token: None,
    }
}

/// What waits for a person: that payment, and an auto top-up that failed.
pub(super) fn waiting() -> Vec<WaitingThing> {
    let of = |kind, reference: &str, hours, why: &str, next: &str| WaitingThing {
        kind,
        customer: CustomerName(customers().remove(0).id),
        reference: Some(reference.to_owned()),
        amount: Usd(usd("30")),
        why: why.to_owned(),
        since: Some(Instant(ago(hours * HOUR))),
        next: next.to_owned(),
    };
    vec![
        of(
            "unapplied",
            "pi_3PqK",
            1,
            "the highest balance",
            "farebox customers unapplied assign pi_3PqK --to CUSTOMER",
        ),
        of(
            "top_up_failed",
            "auto-top-up:c_0000000001-7",
            3,
            "card_declined",
            "ask the customer to top up by hand",
        ),
    ]
}

pub(super) fn entry(position: i64, kind: EntryKind, amount: &str, after: &str) -> JournalEntry {
    JournalEntry {
        position,
        seq: position,
        customer: keys()[3].customer.id,
        key: Some(keys()[3].id),
        operation: operation(position.unsigned_abs().into()),
        kind,
        amount: usd(amount),
        balance_after: usd(after),
        at: ago((9 - position) * HOUR),
        actor: "gateway".to_owned(),
        reference: None,
        reason: None,
        refunds: None,
        parts: Vec::new(),
        bill: None,
    }
}

pub(super) fn charge(position: i64) -> JournalEntry {
    let lines = vec![
        BillLine {
            what: "input".into(),
            count: 8120,
            rate: usd("0.0000003"),
            class: None,
        },
        BillLine {
            what: "output".into(),
            count: 412,
            rate: usd("0.0000015"),
            class: None,
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
    JournalEntry {
        parts: Vec::new(),
        bill: Some(bill),
        ..entry(position, EntryKind::Charge, "-0.003054", "0.4121")
    }
}

/// The same, served fast by one of two accounts.
pub(super) fn fast_charge(position: i64) -> JournalEntry {
    let mut entry = charge(position);
    if let Some(bill) = &mut entry.bill {
        bill.served = Served {
            tier: ServedTier::Fast,
            place: ServedRegion::Us,
            context_band: 1,
            account: "second".to_owned(),
        };
        bill.provider_cost = Some(usd("0.0027"));
        for line in &mut bill.lines {
            line.class = Some("fast,us".into());
        }
        if let Some(line) = bill.lines.first_mut() {
            line.what = "cache_write_12h".into();
        }
    }
    entry
}

pub(super) fn entries() -> Vec<JournalEntry> {
    let payment = JournalEntry {
        reference: Some("inv-8841".to_owned()),
        actor: "alice".to_owned(),
        ..entry(1, EntryKind::TopUp, "250", "250")
    };
    let reason = Some("wrong invoice".to_owned());
    let adjust = JournalEntry {
        reference: Some("fix-1".to_owned()),
        actor: "alice".to_owned(),
        reason,
        ..entry(2, EntryKind::Adjust, "-2.5", "247.5")
    };
    let mut entries: Vec<JournalEntry> = (3..9).map(charge).collect();
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
        customer: keys()[usize::try_from(position).unwrap() % 5].customer.id,
        key: Some(keys()[usize::try_from(position).unwrap() % 5].id),
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

pub(super) fn holds() -> Vec<OpenHold> {
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

pub(super) fn runs() -> Vec<RunSum> {
    let run = |name: &str, requests, charge: &str| RunSum {
        month: StatementMonth::of(now()),
        run: name.to_owned(),
        requests,
        charge: usd(charge),
    };
    vec![
        run("nightly/2026-11-21", 48, "3.2"),
        run("", 12_004, "2.75"),
        run("mend the last test", 3, "0.07"),
    ]
}

pub(super) fn usage() -> Vec<UsageRow> {
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

/// Ten days of two slugs, with more by day than by night.
pub(super) fn slug_hours() -> Vec<SlugHour> {
    let mut rows = Vec::new();
    for hours in (0..240).rev() {
        let day = (now().hour() - hours).rem_euclid(24);
        let busy = 15 - (day - 13).abs();
        for (slug, each) in [("gpt-5-mini", 3), ("large-model", 20)] {
            let charge = Amount::from_picos(busy * each * 100_000_000_000);
            rows.push(SlugHour {
                hour: Timestamp::from_millis((now().hour() - hours) * HOUR),
                sums: MarginRow {
                    name: slug.to_owned(),
                    requests: u64::try_from(busy * (50 - each)).unwrap(),
                    charge,
                    cost: Amount::from_picos(charge.picos() * 6 / 10),
                    priced: charge,
                    ..MarginRow::default()
                },
            });
        }
    }
    rows
}

pub(super) fn status() -> admin::StatusReport {
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
