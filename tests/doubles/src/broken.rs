//! A broken request for each rule: from the rule's own edits, or made from what must hold.

use serde_json::{Value, json};

use crate::place::{Tree, Way};
use crate::plan::RulePlan;
use crate::{Must, Wire, WireRule};

/// A request that breaks a rule.
#[derive(Debug, Clone)]
pub struct Broken {
    /// The rule's id.
    pub rule: String,
    /// The request's headers.
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub body: Value,
}

/// A request that breaks this rule, made from the first of the wire's examples in which its place occurs. `None`: no example shows
/// the place, or the rule needs edits of its own.
#[must_use]
pub fn broken(wire: &Wire, rule: &'static WireRule) -> Option<Broken> {
    let examples = wire.examples();
    let mut found = examples.into_iter().filter_map(|(headers, body)| {
        let (headers, body) = break_it(rule, headers, body)?;
        // An edit that makes the rule hold for no such request breaks nothing.
        let breaks = !RulePlan::new([rule]).faults(&headers, &body).is_empty();
        breaks.then(|| Broken {
            rule: rule.id(wire),
            headers,
            body,
        })
    });
    found.next()
}

type Parts = (Vec<(String, String)>, Value);

fn break_it(rule: &WireRule, mut headers: Vec<(String, String)>, mut body: Value) -> Option<Parts> {
    if !rule.broken.is_empty() {
        for (place, json) in rule.broken {
            if let Some(name) = place.strip_prefix('@') {
                headers.retain(|(known, _)| known != name);
                if !json.is_empty() {
                    headers.push((name.to_owned(), (*json).to_owned()));
                }
            } else {
                edit(&mut body, place, json)?;
            }
        }
        return Some((headers, body));
    }
    if let Some(name) = rule.place.strip_prefix('@') {
        let (_, value) = headers.iter_mut().find(|(known, _)| known == name)?;
        match rule.must {
            Must::Once => headers.retain(|(known, _)| known != name),
            must => *value = wrong(must, &json!(value))?.as_str()?.to_owned(),
        }
        return Some((headers, body));
    }
    // Any occurrence will do, but some are judged by more than this rule's condition.
    let (mut places, mut first) = (Tree::default(), None);
    places.add(rule.place, 0);
    places.walk(&body, Way::Root, &mut |_, way, value| {
        first.get_or_insert_with(|| (way.pointer(), value));
    });
    let (pointer, value) = first?;
    let value = wrong(rule.must, value)?;
    *body.pointer_mut(&pointer)? = value;
    Some((headers, body))
}

/// Sets or removes what a pointer names; its parent exists.
fn edit(body: &mut Value, pointer: &str, json: &str) -> Option<()> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let parent = body.pointer_mut(parent)?;
    let value = || serde_json::from_str::<Value>(json).ok();
    match parent {
        Value::Object(members) if json.is_empty() => {
            members.remove(name)?;
        }
        Value::Object(members) => {
            members.insert(name.to_owned(), value()?);
        }
        Value::Array(items) if name == "-" => items.push(value()?),
        Value::Array(items) if json.is_empty() => {
            items.remove(name.parse().ok().filter(|at| *at < items.len())?);
        }
        Value::Array(items) => *items.get_mut(name.parse::<usize>().ok()?)? = value()?,
        _ => return None,
    }
    Some(())
}

/// A value near this one that does not hold.
fn wrong(must: Must, value: &Value) -> Option<Value> {
    let mut value = value.clone();
    Some(match must {
        Must::Closed(_) => {
            value["no_such_member"] = json!(true);
            value
        }
        Must::Needs(names) => {
            value.as_object_mut()?.remove(*names.first()?)?;
            value
        }
        Must::Be(kinds) => {
            let others = [json!({"a": 1}), json!([[]]), json!("text"), json!(true)];
            let is = |value: &Value| kinds.iter().any(|kind| kind.is(value));
            others.into_iter().find(|other| !is(other))?
        }
        Must::Between(_, most) => json!(most + 1.0),
        Must::OneOf(_) => json!("no-such-word"),
        Must::Long(least, most) => match value {
            Value::String(_) if most < usize::MAX => json!("x".repeat(most + 1)),
            Value::String(_) => json!("x".repeat(least.checked_sub(1)?)),
            Value::Array(items) if most < usize::MAX => {
                json!(vec![items.first()?.clone(); most + 1])
            }
            Value::Array(items) => json!(items.get(..least.checked_sub(1)?)?),
            Value::Object(_) if most < usize::MAX => {
                (0..=most).map(|n| (format!("k{n}"), json!("v"))).collect()
            }
            _ => return None,
        },
        Must::Spelt(_) => json!("näme with spaces"),
        Must::Start(_) => json!("?"),
        Must::Absent | Must::Once | Must::Hold(_) => return None,
    })
}
