//! Anthropic's own service.

pub(crate) mod blocks;
pub(crate) mod count;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod order;
pub(crate) mod schema;
pub(crate) mod tools;

use serde_json::Value;

/// The version that a model's name says: `claude-sonnet-4-5-20250929` is 4.5. `None` for models of others, of which nothing is known.
pub(crate) fn version(body: &Value) -> Option<(u32, u32)> {
    let name = body["model"].as_str()?.rsplit('/').next()?;
    let parts = name.strip_prefix("claude-")?.split(['-', '.', '@']);
    // A longer number is a date.
    let mut numbers = parts
        .filter(|part| part.len() < 3)
        .filter_map(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

/// The model is of this version or later.
pub(crate) fn since(body: &Value, major: u32, minor: u32) -> bool {
    version(body).is_some_and(|version| version >= (major, minor))
}

/// All blocks of all messages, with the number of their message.
pub(crate) fn blocks(body: &Value) -> impl Iterator<Item = (usize, &Value)> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.enumerate().flat_map(|(number, message)| {
        let blocks = message["content"].as_array().into_iter().flatten();
        blocks.map(move |block| (number, block))
    })
}
