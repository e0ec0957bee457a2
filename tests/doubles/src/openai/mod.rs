//! OpenAI's own service, whose wires others copied.

pub(crate) mod chat;
pub(crate) mod items;
pub(crate) mod messages;
pub(crate) mod response_tools;
pub(crate) mod responses;
pub(crate) mod tools;

use serde_json::Value;

/// Models of the o and 5 series, without the chat ones.
pub(crate) fn reasons(body: &Value) -> bool {
    let model = model(body);
    ["o1", "o3", "o4", "gpt-5"]
        .iter()
        .any(|series| model.starts_with(series))
        && !model.contains("chat")
}

/// Routers put the vendor in front.
pub(crate) fn model(body: &Value) -> &str {
    let name = body["model"].as_str().unwrap_or_default();
    name.rsplit('/').next().unwrap_or_default()
}

/// A field that is only allowed together with another.
fn needs(
    body: &Value,
    given: &str,
    other: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<(), String> {
    let is_given = body.get(given).is_some_and(|value| !value.is_null());
    if is_given && !fits(&body[other]) {
        return Err(format!("'{given}' is only allowed with '{other}'"));
    }
    Ok(())
}
