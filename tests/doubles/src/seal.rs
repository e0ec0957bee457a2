//! Seals: what a vendor signs when its model thinks. A double knows its own again without remembering any, because each says what it
//! was made for.
//!
//! - Native: a signature fits the words of its own block, and what stood before it: the system prompt, the tools, and every block of
//!   every message. Cache marks do not count, nor does where one of two neighbouring messages of one role ends.
//! - Responses: encrypted content is known by itself; ids tie an item to the reasoning that it needs.
//! - Gemini: the signature of a call is known by itself.

use serde_json::Value;

const NATIVE: &str = "DoubleM1";
const ITEM: &str = "gAAADouble";
const CALL: &str = "DoubleG1";
/// What the ids of one answer's items have after their kind.
const MADE: &str = "d0";

/// A sum of what it was given: FNV-1a, because it must be the same in every program.
#[derive(Debug, Clone, Copy)]
struct Sum(u64);

impl Sum {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        // Two texts are not their sum.
        self.0 = (self.0 ^ 0xff).wrapping_mul(0x0100_0000_01b3);
    }

    /// Members in any order, without cache marks.
    fn add_value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members
                    .iter()
                    .filter(|(name, _)| *name != "cache_control")
                    .collect();
                members.sort_by_key(|(name, _)| *name);
                self.add(b"{");
                for (name, member) in members {
                    self.add(name.as_bytes());
                    self.add_value(member);
                }
                self.add(b"}");
            }
            Value::Array(items) => {
                self.add(b"[");
                items.iter().for_each(|item| self.add_value(item));
                self.add(b"]");
            }
            Value::String(text) => self.add(text.as_bytes()),
            other => self.add(other.to_string().as_bytes()),
        }
    }

    /// A block as it stands in a conversation: a text alone is a text block.
    fn add_block(&mut self, role: &Value, block: &Value) {
        self.add_value(role);
        match block {
            Value::String(text) => {
                self.add_value(&serde_json::json!({"type": "text", "text": text}));
            }
            block => self.add_value(block),
        }
    }
}

fn sum_of(parts: &[&str]) -> u64 {
    let mut sum = Sum::new();
    parts.iter().for_each(|part| sum.add(part.as_bytes()));
    sum.0
}

/// The signature of a thought after this request and the blocks that its answer has so far. Redacted thinking has no words.
#[must_use]
pub fn signature(body: &Value, said: &[Value], thought: &str) -> String {
    let mut sum = prefix(body);
    for (role, block) in conversation(body) {
        sum.add_block(role, block);
    }
    for block in said {
        sum.add_block(&Value::from("assistant"), block);
    }
    signed(sum.0, thought)
}

fn signed(before: u64, thought: &str) -> String {
    format!("{NATIVE}{before:016x}{:016x}", sum_of(&[NATIVE, thought]))
}

fn prefix(body: &Value) -> Sum {
    let mut sum = Sum::new();
    sum.add_block(&Value::Null, &body["system"]);
    sum.add_value(&body["tools"]);
    sum
}

/// Every block with the role of its message.
fn conversation(body: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.flat_map(|message| {
        let blocks = match &message["content"] {
            Value::Array(blocks) => blocks.as_slice(),
            text => std::slice::from_ref(text),
        };
        blocks.iter().map(move |block| (&message["role"], block))
    })
}

fn is_thought(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// The signature of a block of thinking, and its words.
fn seal_of(block: &Value) -> (&str, &str) {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    if block["type"] == "redacted_thinking" {
        (text("data"), "")
    } else {
        (text("signature"), text("thinking"))
    }
}

/// The block's seal is this service's, and its words are those that were sealed.
pub(crate) fn was_signed(block: &Value) -> Result<(), String> {
    let (seal, words) = seal_of(block);
    let known = seal.strip_prefix(NATIVE).and_then(|rest| rest.get(16..));
    if known == Some(format!("{:016x}", sum_of(&[NATIVE, words])).as_str()) {
        return Ok(());
    }
    Err("Invalid `signature` in `thinking` block".to_owned())
}

/// Nothing before a block of thinking has changed since it was signed.
pub(crate) fn prefixes_fit(body: &Value) -> Result<(), String> {
    if !conversation(body).any(|(_, block)| is_thought(block)) {
        return Ok(());
    }
    let mut sum = prefix(body);
    for (role, block) in conversation(body) {
        let (seal, words) = seal_of(block);
        if is_thought(block) && seal != signed(sum.0, words) {
            return Err(
                "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, \
                 or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
                    .to_owned(),
            );
        }
        sum.add_block(role, block);
    }
    Ok(())
}

/// Names the items of an answer to this request: what [`item_id`] and [`encrypted`] are made of.
#[must_use]
pub fn answer_name(body: &Value) -> String {
    let mut sum = Sum::new();
    sum.add_value(body);
    format!("{MADE}{:016x}", sum.0)
}

/// The id of an item: `rs` with the name of its answer for the reasoning, `fc` and `msg` for what needs it.
#[must_use]
pub fn item_id(kind: &str, answer: &str, number: usize) -> String {
    format!("{kind}_{answer}{number:02}")
}

/// The encrypted content of an answer's reasoning.
#[must_use]
pub fn encrypted(answer: &str) -> String {
    format!("{ITEM}{answer}{:016x}", sum_of(&[ITEM, answer]))
}

/// Encrypted content is this service's.
pub(crate) fn was_encrypted(content: &Value) -> Result<(), String> {
    let known = content.as_str().is_none_or(|content| {
        let answer = content.strip_prefix(ITEM).and_then(|rest| rest.get(..18));
        answer.is_some_and(|answer| content == encrypted(answer))
    });
    if known {
        return Ok(());
    }
    Err("The encrypted content could not be verified.".to_owned())
}

/// The answer in which this service made an item, if it was this one.
fn answer_of(item: &Value) -> Option<&str> {
    let (_, name) = item["id"].as_str()?.split_once('_')?;
    name.get(..18).filter(|name| name.starts_with(MADE))
}

/// Reasoning is followed by what it led to, and what needs reasoning follows it.
pub(crate) fn reasoning_and_its_items(input: &Value) -> Result<(), String> {
    let mut thought: Option<&str> = None;
    let items = input.as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, item) in items.iter().enumerate() {
        let id = &item["id"];
        if item["type"] == "reasoning" {
            thought = answer_of(item);
            let next = items.get(number + 1);
            let is_said = |next: &Value| {
                let kind = next["type"].as_str().unwrap_or("message");
                kind == "reasoning" || kind.ends_with("_call") || next["role"] == "assistant"
            };
            if id.is_string() && !next.is_some_and(is_said) {
                return Err(format!(
                    "Item {id} of type 'reasoning' was provided without its required following item."
                ));
            }
            continue;
        }
        let answer = answer_of(item);
        if answer.is_some() && answer != thought {
            let answer = answer.unwrap_or_default();
            return Err(format!(
                "Item {id} was provided without its required 'reasoning' item: 'rs_{answer}00'."
            ));
        }
    }
    Ok(())
}

/// The signature of a call of Gemini's.
#[must_use]
pub fn thought_signature(name: &str, arguments: &str) -> String {
    let made = format!("{:016x}", sum_of(&[name, arguments]));
    format!("{CALL}{made}{:016x}", sum_of(&[CALL, &made]))
}

/// A call's signature is this service's, or the published word for one that never had any.
pub(crate) fn was_thought(signature: &Value) -> Result<(), String> {
    let known = signature.as_str().is_none_or(|signature| {
        let made = signature.strip_prefix(CALL).and_then(|rest| rest.get(..16));
        signature == "skip_thought_signature_validator"
            || made.is_some_and(|made| {
                signature == format!("{CALL}{made}{:016x}", sum_of(&[CALL, made]))
            })
    });
    if known {
        return Ok(());
    }
    Err("Corrupted thought signature.".to_owned())
}
