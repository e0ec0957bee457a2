//! What the commands print and `/api/v1` answers: customers, keys, caps, payments, and what an operation came to. The field names
//! are stable: scripts read them.

use farebox_ledger::text::visible;
use farebox_ledger::{
    Amount, Caps, CountedCap, Customer, DailyBound, JournalEntry, Key, Lot, MarginRow, Margins,
    Outcome, Payment, PaymentStatus, PersonalData, Scope, Timestamp, Token, TokenToday, UtcDay,
    VoucherCode, WaitingReversal, document,
};
use serde_json::{Map, Value, json};

use super::auto_top_up;
use crate::clock;

/// A key; its money first.
pub fn key(key: &Key, now: Timestamp) -> Value {
    json!({
        "id": key.id,
        "label": visible(&key.settings.label),
        "status": key.status(now),
        "balance": key.customer.account.balance(),
        "held": key.customer.account.held,
        "available": key.spendable(now),
        "models": key.settings.models,
        "expires_at": key.settings.expires_at,
        "rate": key.settings.rate,
        "concurrency": key.settings.concurrency,
        "caps": caps(key.id.into(), &key.caps, now),
        "created_at": key.created_at,
        "customer": key.belongs_to,
        "owner": key.is_owner,
        "made_by": key.made_by,
    })
}

/// A customer; its money first.
pub fn customer(customer: &Customer) -> Value {
    let (settings, account) = (&customer.settings, customer.account);
    json!({
        "id": customer.id,
        "label": visible(&settings.label),
        "external_id": settings.external_id,
        "status": customer.status,
        "balance": account.balance(),
        "held": account.held,
        "available": account.available(),
        "claim": customer.claim,
        "credit": account.credit,
        "spent": account.spent,
        "low_balance": settings.low_balance,
        "rate": settings.rate,
        "concurrency": settings.concurrency,
        "caps": caps(customer.id.into(), &customer.caps, clock::now()),
        "auto_top_up": auto_top_up::document(customer, clock::now()),
        "created_at": customer.created_at,
    })
}

/// A key among others of its customer: what it spent and holds itself.
pub fn key_of_customer(key: &Key, spent: Amount, held: Amount, now: Timestamp) -> Value {
    let mut shown = self::key(key, now);
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("key_spent".to_owned(), json!(spent));
        fields.insert("key_held".to_owned(), json!(held));
    }
    shown
}

/// Caps and what their windows have counted.
pub fn caps(of: Scope, caps: &Caps, now: Timestamp) -> Vec<Value> {
    let today = UtcDay::of(now);
    let document = |counted: &CountedCap| {
        let CountedCap { cap, made_by, .. } = counted;
        let (state, limits) = (counted.reached(of, today, Amount::ZERO), counted.limits());
        json!({
            "interval": cap.interval,
            "model": cap.model,
            "limit": cap.limit,
            "made_by": made_by,
            "seller_limit": limits.seller,
            "owner_limit": limits.owner,
            "spent": state.spent,
            "held": state.held,
            "room": state.room,
            "resets_at": state.resets_at,
        })
    };
    caps.iter().map(document).collect()
}

/// A key with its secret, right after it was made: the only time it is shown.
pub fn key_with_secret(made: &Key, secret: &str, now: Timestamp) -> Value {
    let mut with_secret = Map::new();
    if let Value::Object(fields) = key(made, now) {
        for (name, value) in fields {
            let after_id = name == "id";
            with_secret.insert(name, value);
            if after_id {
                with_secret.insert("secret".to_owned(), json!(secret));
            }
        }
    }
    Value::Object(with_secret)
}

/// What is known of a person.
pub fn personal(data: &PersonalData) -> Value {
    json!({ "name": data.name, "address": data.address, "metadata": data.metadata })
}

/// A payment, and what of it went back.
pub fn payment(payment: &Payment) -> Value {
    let (status, why) = payment_status(payment);
    json!({
        "reference": payment.reference,
        "customer": payment.customer,
        "status": status,
        "why": why,
        "currency": payment.paid.currency,
        "gross": payment.paid.gross,
        "tax": payment.paid.tax,
        "amount": payment.credit,
        "refunded": payment.registers.refunded,
        "withdrawn": payment.registers.withdrawn,
        "reinstated": payment.registers.reinstated,
        "reversed": payment.due(),
        "waiting": payment.waiting.iter().map(waiting).collect::<Vec<_>>(),
        "actor": payment.actor,
        "at": payment.at,
    })
}

/// What went back of a payment and is not booked.
fn waiting(waiting: &WaitingReversal) -> Value {
    json!({
        "kind": waiting.kind,
        "cumulative": waiting.cumulative,
        "reference": waiting.reference,
        "at": Timestamp::from_millis(waiting.at),
    })
}

/// The word for where a payment is, and why it is not booked.
pub fn payment_status(payment: &Payment) -> (&'static str, Option<&str>) {
    match &payment.status {
        PaymentStatus::Booked => ("booked", None),
        PaymentStatus::Unapplied { why } => ("unapplied", Some(why)),
        PaymentStatus::Returned => ("returned", None),
    }
}

/// What an operation came to. Without secrets: the ledger never has one.
pub fn outcome(outcome: &Outcome) -> Value {
    let now = clock::now();
    match outcome {
        Outcome::Key(changed) => key(changed, now),
        Outcome::Customer(changed) => customer(changed),
        Outcome::Posted(posted) => {
            let entry = document::json(&posted.entry);
            match &posted.key {
                Some(named) => json!({ "entry": entry, "key": key(named, now) }),
                None => json!({ "entry": entry, "customer": customer(&posted.customer) }),
            }
        }
        Outcome::Moved(moved) => {
            json!({ "from": customer(&moved.from), "into": customer(&moved.into) })
        }
        Outcome::Payment(moved) => json!({
            "payment": payment(&moved.payment),
            "entry": moved.entry.as_ref().map(document::json),
            "customer": customer(&moved.customer),
        }),
        Outcome::Token(made) => {
            let today = TokenToday::of(made.id, UtcDay::of(now), []);
            token(made, &today, now)
        }
        Outcome::Lot(made) => lot(made, now),
        _ => json!({}),
    }
}

/// The same with an HTTP status, as a function: an answer that is stored with its effect is made by the ledger's writer.
pub fn outcome_of(status: u16) -> impl Fn(&Outcome) -> (u16, Value) + Send + Sync {
    move |done| (status, outcome(done))
}

/// A token of the admin API, without its secret.
pub fn token(token: &Token, today: &TokenToday, now: Timestamp) -> Value {
    let bounds = DailyBound::ALL.into_iter().filter_map(|what| {
        let (most, done) = (today.most(token, what)?, today.day.done(what));
        Some(json!({ "what": what, "most": what.shown(most), "done": what.shown(done) }))
    });
    json!({
        "id": token.id,
        "label": visible(&token.label),
        "role": token.role,
        "status": token.status(now),
        "daily": token.daily,
        "today": today.day.booked,
        "bounds": bounds.collect::<Vec<_>>(),
        "expires_at": token.expires_at,
        "created_at": token.created_at,
        "created_by": token.created_by,
    })
}

/// A lot of vouchers, without its codes.
pub fn lot(lot: &Lot, now: Timestamp) -> Value {
    json!({
        "id": lot.id,
        "status": lot_status(lot, now),
        "count": lot.count,
        "redeemed": lot.redeemed,
        "amount": lot.amount,
        "expires_at": lot.expires_at,
        "once_per_customer": lot.once_per_customer,
        "created_at": lot.created_at,
        "created_by": lot.created_by,
    })
}

/// The codes of a lot, right after they were made: the only time they are shown.
pub fn codes(codes: &[VoucherCode]) -> Value {
    codes.iter().map(VoucherCode::reveal).collect()
}

/// The word for what a lot's vouchers are worth.
pub fn lot_status(lot: &Lot, now: Timestamp) -> &'static str {
    match (lot.is_void, lot.is_good(now)) {
        (true, _) => "void",
        (false, true) => "good",
        (false, false) => "expired",
    }
}

/// Journal entries.
pub fn entries(entries: &[JournalEntry]) -> Vec<Value> {
    entries.iter().map(document::json).collect()
}

/// Charges, cost and possible debts, and their sum.
pub fn margins(margins: &Margins) -> Value {
    let row = |row: &MarginRow| {
        let mut shown = json!(row);
        if let Some(fields) = shown.as_object_mut() {
            fields.insert("margin".to_owned(), json!(row.margin()));
        }
        shown
    };
    let rows: Vec<Value> = margins.rows.iter().map(row).collect();
    json!({ "rows": rows, "count": margins.count, "total": row(&margins.total) })
}
