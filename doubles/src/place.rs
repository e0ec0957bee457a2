//! Places in a request: JSON pointers with `*` for every item and conditions on members.
//!
//! `/messages/*[role=user|system]/content/*[type=text]/text`. A place that begins with `@` is a header, by its name in lower case.

use serde_json::Value;

/// Every value at a place, each with its pointer.
pub(crate) fn find<'v>(root: &'v Value, place: &str) -> Vec<(String, &'v Value)> {
    let mut found = vec![(String::new(), root)];
    for step in place.split('/').filter(|step| !step.is_empty()) {
        let (name, condition) = step.split_once('[').unwrap_or((step, ""));
        let next = found
            .into_iter()
            .flat_map(|(at, value)| below(&at, value, name));
        found = next.filter(|(_, value)| meets(value, condition)).collect();
    }
    found
}

fn below<'v>(at: &str, value: &'v Value, name: &str) -> Vec<(String, &'v Value)> {
    match (name, value) {
        ("*", Value::Array(items)) => {
            let numbered = items.iter().enumerate();
            numbered
                .map(|(number, item)| (format!("{at}/{number}"), item))
                .collect()
        }
        ("*", Value::Object(members)) => members
            .iter()
            .map(|(name, member)| (format!("{at}/{}", escaped(name)), member))
            .collect(),
        (name, Value::Object(members)) => members
            .get(name)
            .map(|member| (format!("{at}/{}", escaped(name)), member))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// `role=user|system]`: the member is one of these texts.
fn meets(value: &Value, condition: &str) -> bool {
    let Some((member, texts)) = condition.trim_end_matches(']').split_once('=') else {
        return true;
    };
    let text = value.get(member).and_then(Value::as_str);
    text.is_some_and(|text| texts.split('|').any(|known| known == text))
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// `/messages/0/content` as vendors write it: `messages[0].content`.
pub(crate) fn spoken(pointer: &str) -> String {
    let mut out = String::new();
    for step in pointer.split('/').filter(|step| !step.is_empty()) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str(&format!("[{step}]"));
        } else {
            let dot = if out.is_empty() { "" } else { "." };
            out.push_str(&format!("{dot}{step}"));
        }
    }
    out
}
