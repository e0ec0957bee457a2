//! What a tokenizer counts for a request: every text that the model reads, tools as compact JSON, and what frames them.

use std::collections::HashMap;

use farebox_protocol::Family;
use serde_json::Value;
use tiktoken_rs::CoreBPE;

use crate::bodies::SampleRequest;

/// Tokens around a message, and around the prompt: as published for chat.
const MESSAGE: usize = 3;
const PROMPT: usize = 3;

/// A tokenizer that remembers the texts it has seen.
pub(crate) struct Tokenizer {
    pub(crate) name: &'static str,
    bpe: &'static CoreBPE,
    known: HashMap<String, usize>,
}

impl Tokenizer {
    /// Both public vocabularies; they come with the crate.
    pub(crate) fn both() -> [Self; 2] {
        [
            ("o200k", tiktoken_rs::o200k_base_singleton()),
            ("cl100k", tiktoken_rs::cl100k_base_singleton()),
        ]
        .map(|(name, bpe)| Self {
            name,
            bpe,
            known: HashMap::new(),
        })
    }

    /// Tokens of a request.
    pub(crate) fn request(&mut self, request: &SampleRequest) -> usize {
        let body = &request.body;
        let (list, system) = match request.family {
            Family::Chat => ("messages", ""),
            Family::Responses => ("input", "instructions"),
            Family::Messages => ("messages", "system"),
        };
        let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        // Searches that run at the provider are taken out.
        let offered = tools.iter().filter(|tool| {
            !tool["type"]
                .as_str()
                .unwrap_or("")
                .starts_with("web_search")
        });
        let mut count = PROMPT
            + offered
                .map(|tool| self.text(&tool.to_string()))
                .sum::<usize>();
        if !body[system].is_null() {
            count += MESSAGE + 1 + self.content(&body[system]);
        }
        match &body[list] {
            Value::Array(messages) => {
                count
                    + messages
                        .iter()
                        .map(|message| self.message(message))
                        .sum::<usize>()
            }
            text => count + MESSAGE + 1 + self.content(text),
        }
    }

    /// A message or input item: its role, and all that it says.
    fn message(&mut self, message: &Value) -> usize {
        let mut count = MESSAGE + 1;
        for field in ["content", "output", "summary", "reasoning_content"] {
            count += self.content(&message[field]);
        }
        for call in message["tool_calls"]
            .as_array()
            .map_or(&[][..], Vec::as_slice)
        {
            count += self.call(&call["function"]);
        }
        count + self.call(message)
    }

    /// A call of a tool: its name and its arguments.
    fn call(&mut self, call: &Value) -> usize {
        let texts = [&call["name"], &call["arguments"]].map(|text| text.as_str().unwrap_or(""));
        let input = if call["input"].is_object() {
            self.text(&call["input"].to_string())
        } else {
            0
        };
        texts.map(|text| self.text(text)).iter().sum::<usize>() + input
    }

    /// A text, or a list of parts.
    fn content(&mut self, content: &Value) -> usize {
        match content {
            Value::String(text) => self.text(text),
            Value::Array(parts) => parts.iter().map(|part| self.content(part)).sum(),
            Value::Object(part) => {
                let texts = ["text", "thinking", "content"]
                    .iter()
                    .filter_map(|name| part.get(*name));
                texts.map(|text| self.content(text)).sum::<usize>() + self.call(content)
            }
            _ => 0,
        }
    }

    fn text(&mut self, text: &str) -> usize {
        if let Some(count) = self.known.get(text) {
            return *count;
        }
        let count = self.bpe.encode_ordinary(text).len();
        self.known.insert(text.to_owned(), count);
        count
    }
}
