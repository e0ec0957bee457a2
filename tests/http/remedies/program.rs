//! A program that reads `error.details` and changes its request accordingly. It knows the contract, and nothing of single refusals.

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::super::translation::PNG;

/// A request that a program can change.
pub(super) struct Request {
    pub(super) family: Family,
    pub(super) body: Value,
    pub(super) headers: Vec<(&'static str, &'static str)>,
}

impl Request {
    /// Does what the details say. `param` is the field that the error names, `models` the list of what is sold.
    pub(super) fn heed(&mut self, details: &Value, param: &str, models: &Value) {
        if let Some(members) = details["remedies"][0].as_object() {
            for (name, value) in members {
                self.set(name, value);
            }
        }
        for name in details["unsupported"].as_array().into_iter().flatten() {
            self.set(name.as_str().unwrap(), &Value::Null);
        }
        if let Some(path) = details["remove"].as_str() {
            self.remove(path);
        }
        if let Some(path) = details["inline"].as_str() {
            self.inline(path);
        }
        for (what, most) in details["at_most"].as_object().into_iter().flatten() {
            self.lower(what, most.as_u64().unwrap(), param);
        }
        if let Some(ability) = details["needs"].as_str() {
            let mut list = models["data"].as_array().unwrap().iter();
            let able = |model: &&Value| {
                let named = model["capabilities"].as_array().unwrap();
                named.contains(&json!(ability))
            };
            self.body["model"] = list.find(able).expect("a model that can")["id"].clone();
        }
    }

    /// Puts a member into the request; `null` leaves it out. What nobody stores goes along itself.
    fn set(&mut self, name: &str, value: &Value) {
        let members = self.body.as_object_mut().unwrap();
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.to_owned(), value.clone());
        }
        let items = members.get_mut("input").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            if item["type"] == "item_reference" {
                *item = json!({"role": "user", "content": "what was said"});
            }
        }
    }

    /// Takes out what is at this path, and a message of which nothing is left; one without a place means each member and each part of
    /// that name.
    fn remove(&mut self, path: &str) {
        self.headers.retain(|(name, _)| *name != path);
        if !path.contains('[') {
            let names: Vec<&str> = path.split('.').collect();
            return without_each(&mut self.body, &names);
        }
        let pointer = pointer(path);
        let (holder, last) = pointer.rsplit_once('/').unwrap();
        match self.body.pointer_mut(holder).unwrap() {
            Value::Array(list) if list.len() > 1 || !holder.ends_with("/content") => {
                list.remove(last.parse().unwrap());
            }
            Value::Array(_) => {
                let message = path.rsplit_once(".content").unwrap().0;
                self.remove(message);
            }
            Value::Object(members) => drop(members.remove(last)),
            other => panic!("{path} is inside {other}"),
        }
    }

    /// Sends inline what is at this path: the part that it is in, or everything in this field that is no text.
    fn inline(&mut self, path: &str) {
        let family = self.family;
        if let Some((part, _)) = path.rsplit_once(']') {
            let part = self.body.pointer_mut(&pointer(part)).unwrap();
            *part = inlined(family, part);
            return;
        }
        for turn in self.body[path].as_array_mut().unwrap() {
            for part in turn["content"].as_array_mut().into_iter().flatten() {
                if part["text"].is_null() {
                    *part = inlined(family, part);
                }
            }
        }
    }

    fn lower(&mut self, what: &str, most: u64, param: &str) {
        let length = usize::try_from(most).unwrap();
        let field = self.family.protocol().conversation_field();
        match what {
            "tools" => self.body["tools"].as_array_mut().unwrap().truncate(length),
            "stop" => self.body[param].as_array_mut().unwrap().truncate(length),
            "budget_tokens" => self.body["thinking"]["budget_tokens"] = json!(most),
            // A word has less than two tokens.
            "input_tokens" => {
                self.body[field][0]["content"] = json!("word ".repeat(length / 2));
            }
            "image_bytes" => self.inline(field),
            other => panic!("at most {most} {other}?"),
        }
    }
}

/// The part with its data, as a picture if it was one, else as a document.
fn inlined(family: Family, part: &Value) -> Value {
    use base64::Engine as _;
    let pdf = crate::support::pdf::pdf(&["a page"]);
    let pdf = base64::engine::general_purpose::STANDARD.encode(pdf);
    let picture = part.to_string().contains("image");
    let (media, data) = if picture {
        ("image/png", PNG.to_owned())
    } else {
        ("application/pdf", pdf)
    };
    let url = format!("data:{media};base64,{data}");
    match (family, picture) {
        (Family::Chat, true) => json!({"type": "image_url", "image_url": {"url": url}}),
        (Family::Chat, false) => {
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url}})
        }
        (Family::Responses, true) => json!({"type": "input_image", "image_url": url}),
        (Family::Responses, false) => {
            json!({"type": "input_file", "filename": "a.pdf", "file_data": url})
        }
        (Family::Messages, _) => {
            let kind = if picture { "image" } else { "document" };
            json!({"type": kind, "source": {"type": "base64", "media_type": media, "data": data}})
        }
    }
}

/// `a[0].b` as a JSON pointer.
fn pointer(path: &str) -> String {
    let steps = path
        .split(['.', '['])
        .map(|step| step.trim_end_matches(']'));
    steps.map(|step| format!("/{step}")).collect()
}

fn without_each(value: &mut Value, names: &[&str]) {
    let [first, rest @ ..] = names else { return };
    match value {
        Value::Array(list) => {
            list.retain(|part| !rest.is_empty() || part["type"] != *first);
            list.iter_mut().for_each(|inner| without_each(inner, names));
        }
        Value::Object(members) => {
            if rest.is_empty() {
                members.remove(*first);
            } else if let Some(inner) = members.get_mut(*first).and_then(Value::as_object_mut) {
                let mut held = Value::Object(std::mem::take(inner));
                without_each(&mut held, rest);
                *inner = held.as_object().unwrap().clone();
            }
            members
                .values_mut()
                .for_each(|inner| without_each(inner, names));
        }
        _ => {}
    }
}
