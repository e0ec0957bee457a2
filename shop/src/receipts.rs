//! A receipt of the gateway's as lines for people.

use serde_json::Value;

/// An instant for people, to the second.
fn to_the_second(at: &str) -> String {
    match at.split_once('T') {
        Some((day, time)) => format!("{day} {} UTC", time.get(..8).unwrap_or(time)),
        None => at.to_owned(),
    }
}

/// The lines of a receipt for people, from the gateway's document.
pub(crate) fn lines(document: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| match document.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        _ => None,
    };
    let currency = text("currency").unwrap_or_default();
    let money = |name: &str| text(name).map(|sum| format!("{sum} {currency}"));
    let usd = text("credit").map(|sum| format!("{sum} USD"));
    [
        ("Number", text("number")),
        ("Date", text("at").map(|at| to_the_second(&at))),
        ("Customer", text("customer")),
        ("Name", text("name")),
        ("Address", text("address")),
        ("Payment", text("reference")),
        ("Net", money("net")),
        ("Tax", money("tax")),
        ("Total", money("gross")),
        ("Credit", usd),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}
