//! The examples of the OpenAPI document: a story in the order of the routes, which a test lives through.

use serde_json::{Map, Value, json};

use super::fields::{Absence, ApiField, FieldKind};
use super::table::{ApiRoute, ApiTask, Least};

const CUSTOMER: &str = "c_7f3q9d2xw1";
const OTHER: &str = "c_9k2m4n6p8q";
const KEY: &str = "k_7f3q9d2xw1";
const TOP_UP: &str = "auto-top-up:c_7f3q9d2xw1-4";
const LOT: &str = "l_7f3q9d2xw1";
const REQUEST: &str = "req_01kaxv8m3n5p7q9r1s3t5v7w9x";

/// An example of a path's parameter.
pub(super) fn parameter(route: &ApiRoute, name: &str) -> &'static str {
    match (name, route.task) {
        ("customer", _) => CUSTOMER,
        ("key", _) => KEY,
        ("request", _) => REQUEST,
        ("top_up", _) => TOP_UP,
        ("lot", _) => LOT,
        (_, ApiTask::Assign) => "pi_2001",
        (_, ApiTask::Return) => "pi_2002",
        _ => "pi_1001",
    }
}

/// An example of a body.
pub(super) fn body(route: &ApiRoute) -> Value {
    match route.task {
        ApiTask::CreateCustomer => json!({
            "label": "Ada", "external_id": "crm-7", "name": "Ada L.", "metadata": { "plan": "starter" },
            "key": { "label": "laptop", "owner": true },
        }),
        ApiTask::EditCustomer => json!({ "label": "Ada L.", "rate": 20 }),
        ApiTask::CreateKey => json!({ "label": "notebook", "expires_at": "2099-01-31" }),
        ApiTask::EditKey => json!({ "label": "notebook of Ada", "concurrency": 4 }),
        ApiTask::TopUp => json!({
            "amount": "10", "reference": "pi_1001", "currency": "EUR", "gross": "11.90", "tax": "1.90",
        }),
        ApiTask::SetAutoTopUp => json!({ "threshold": "50", "amount": "20", "per_month": 4 }),
        ApiTask::TopUpFailed => json!({ "reason": "card_declined" }),
        ApiTask::Reverse => json!({
            "payment": "pi_1001", "kind": "refund", "cumulative": "5.95", "reference": "re_1001",
        }),
        ApiTask::Adjust => {
            json!({ "amount": "+2.50", "reason": "a slow day", "reference": "sorry-1001" })
        }
        ApiTask::SetCapOfCustomer | ApiTask::SetCapOfKey => {
            json!({ "interval": "day", "limit": "5" })
        }
        ApiTask::CreateLot => {
            json!({ "count": 3, "amount": "5", "expires_at": "2099-01-31", "once_per_customer": true })
        }
        ApiTask::Rotate => json!({ "overlap": "1h" }),
        ApiTask::Assign => json!({ "to": CUSTOMER }),
        ApiTask::Return => json!({ "reason": "sent back by bank transfer" }),
        ApiTask::Refund => {
            json!({ "amount": "0.00001", "reason": "a broken answer", "reference": "rf-1001" })
        }
        ApiTask::Move => json!({ "into": OTHER, "amount": "1", "reference": "one-purse-1001" }),
        ApiTask::Close => json!({ "write_off": "off-1001", "reason": "moved away" }),
        _ => json!({}),
    }
}

/// An example of an answer.
pub(super) fn answer(route: &ApiRoute) -> Option<Value> {
    if route.least == Least::Anybody {
        return None;
    }
    let one = document(route.answer);
    Some(if route.lists {
        json!({ "data": [one], "has_more": false, "next_cursor": null })
    } else {
        one
    })
}

/// A document with these members; what may be left out is.
fn document(fields: &[ApiField]) -> Value {
    let always = fields
        .iter()
        .filter(|field| field.absence != Absence::LeftOut);
    let members: Map<String, Value> = always
        .map(|field| (field.name.to_owned(), sample(field)))
        .collect();
    Value::Object(members)
}

fn sample(field: &ApiField) -> Value {
    let text = match field.name {
        "key" | "made_by" | "id" if matches!(field.kind, FieldKind::Text) => KEY,
        "label" => "Ada",
        "external_id" => "crm-7",
        "currency" => "EUR",
        "gross" => "11.90",
        "tax" => "1.90",
        "reference" => "pi_1001",
        "kind" => "top_up",
        "actor" => "my-shop",
        "slug" | "customer_slug" | "model" => "example-large",
        "provider" => "Example",
        "best_path" => "chat",
        "service_price" => "$3.00 in, $15.00 out per million tokens",
        "request_id" => REQUEST,
        "evidence" => "provider",
        "name" => KEY,
        _ => "text",
    };
    match field.kind {
        FieldKind::Object(fields) if field.absence == Absence::Never => document(fields),
        FieldKind::List(_) | FieldKind::Texts => json!([]),
        FieldKind::Pairs => json!({}),
        FieldKind::Any if field.absence == Absence::Never => json!({}),
        _ if field.absence == Absence::Null => Value::Null,
        FieldKind::Usd | FieldKind::Correction => json!("10.00"),
        FieldKind::Gross if text == "text" => json!("0.00"),
        FieldKind::Count | FieldKind::Number => json!(1),
        FieldKind::Flag => json!(false),
        FieldKind::Instant => json!("2026-11-25T12:00:00.000Z"),
        FieldKind::Word(words) => json!(words.first()),
        FieldKind::Customer => json!(CUSTOMER),
        _ => json!(text),
    }
}
