//! Request bodies: a small question, a typical request of a coding client, and a batch of texts. The same bytes in every run.

use serde_json::{Value, json};

use crate::answers::{BenchFamily, SLUG, TEXTS};

/// Names of a coding client's tools.
const TOOLS: [&str; 12] = [
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search_text",
    "run_command",
    "fetch_page",
    "ask_user",
    "make_plan",
    "run_tests",
    "look_up_symbol",
    "rename_symbol",
];

const PROMPT: &str = "You are a careful programmer who works in the user's repository. Read before you write; change as little as \
    possible; run the tests after every change.\n\n# Tone\n- Answer in one or two sentences.\n- Say \"I do not know\" when you \
    do not know.\n\n# Files\nPaths are relative to the repository. Quote code in fences (```rust … ```), never tabs\tin prose.\n";

/// The tokens that answers may have: those of most requests, and those of 100 KiB, which have 34,040.
pub(crate) const USUAL: u64 = 4_096;
pub(crate) const MANY: u64 = 40_000;

/// A body of exactly 1 KiB, for an answer of at most so many tokens.
pub(crate) fn small(family: BenchFamily, stream: bool, most: u64) -> Vec<u8> {
    let question = "Why does \"parse\" return an empty list when the file ends without a newline? Answer in one paragraph.\n";
    exactly(1024, |padding| {
        let text = format!("{question}{padding}");
        let mut body = match family {
            BenchFamily::Chat | BenchFamily::Embeddings => json!({"model": SLUG, "messages": [
                {"role": "system", "content": "You answer questions about programs."}, {"role": "user", "content": text}]}),
            BenchFamily::Messages => {
                json!({"model": SLUG, "system": "You answer questions about programs.",
                "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]})
            }
        };
        settings(&mut body, family, stream, most);
        body
    })
}

/// A coding client's body of exactly this size: a long prompt, tools, and turns of calls with their results.
pub(crate) fn coding(family: BenchFamily, size: usize) -> Vec<u8> {
    let one_turn = turns(family, 1)
        .iter()
        .map(|message| message.to_string().len() + 1)
        .sum::<usize>();
    let fixed = body_of(family, 0, "").to_string().len();
    let count = size.saturating_sub(fixed + 1_000) / (one_turn + 8);
    exactly(size, |padding| body_of(family, count, padding))
}

/// A batch of as many texts as one request may have, of exactly this size.
pub(crate) fn batch(size: usize) -> Vec<u8> {
    let share = size / TEXTS - 4;
    let text = |number| file(number).repeat(2);
    let length = |characters: usize| {
        let text: String = text(0).chars().take(characters).collect();
        json!(text).to_string().len()
    };
    // Numbers of fixed width keep every text as long as the first.
    let characters = (1..).take_while(|most| length(*most) < share).count();
    exactly(size, |padding| {
        let mut texts: Vec<String> = (0..TEXTS)
            .map(|number| text(number).chars().take(characters).collect())
            .collect();
        texts[0].push_str(padding);
        json!({"model": BenchFamily::Embeddings.slug(), "input": texts, "encoding_format": "base64"})
    })
}

/// Fills a body up with words.
fn exactly(size: usize, body: impl Fn(&str) -> Value) -> Vec<u8> {
    let length = body("").to_string().len();
    let words = "and then look at the next line ".repeat(size.saturating_sub(length) / 31 + 1);
    let bytes = body(words.get(..size.saturating_sub(length)).unwrap_or_default())
        .to_string()
        .into_bytes();
    assert!(
        bytes.len() == size,
        "{} instead of {size} bytes",
        bytes.len()
    );
    bytes
}

fn settings(body: &mut Value, family: BenchFamily, stream: bool, most: u64) {
    let limit = match family {
        BenchFamily::Chat | BenchFamily::Embeddings => "max_completion_tokens",
        BenchFamily::Messages => "max_tokens",
    };
    body[limit] = json!(most);
    body["temperature"] = json!(0.2);
    if stream {
        body["stream"] = json!(true);
        if family == BenchFamily::Chat {
            body["stream_options"] = json!({"include_usage": true});
        }
    }
}

fn body_of(family: BenchFamily, count: usize, padding: &str) -> Value {
    let prompt = PROMPT.repeat(16);
    let question = format!("Please find out why the last test fails, and mend it.\n{padding}");
    let mut body = match family {
        BenchFamily::Chat | BenchFamily::Embeddings => {
            let mut messages = vec![json!({"role": "system", "content": prompt})];
            messages.extend(turns(family, count));
            messages.push(json!({"role": "user", "content": question}));
            json!({"model": SLUG, "messages": messages, "tool_choice": "auto", "tools": tools(family)})
        }
        BenchFamily::Messages => {
            let mut messages = turns(family, count);
            messages.push(json!({"role": "user", "content": [{"type": "text", "text": question}]}));
            let system =
                json!([{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}]);
            json!({"model": SLUG, "system": system, "messages": messages, "tools": tools(family)})
        }
    };
    settings(&mut body, family, false, USUAL);
    body
}

fn tools(family: BenchFamily) -> Vec<Value> {
    TOOLS
        .iter()
        .map(|name| {
            let description = format!("Does what \"{name}\" says, in the user's repository.\nFails when a path leads out of it. {}", PROMPT.trim());
            let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
                "path": {"type": "string", "description": "A path relative to the repository"},
                "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "description": "Which lines, 1 is the first"},
                "mode": {"type": "string", "enum": ["quick", "thorough"], "default": "quick"}}});
            match family {
                BenchFamily::Chat | BenchFamily::Embeddings => json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}}),
                BenchFamily::Messages => json!({"name": name, "description": description, "input_schema": schema}),
            }
        })
        .collect()
}

/// `count` turns: each a call with its words, and the file that came back.
fn turns(family: BenchFamily, count: usize) -> Vec<Value> {
    (0..count).flat_map(|turn| turn_of(family, turn)).collect()
}

fn turn_of(family: BenchFamily, turn: usize) -> [Value; 2] {
    // Numbers of fixed width keep every turn as long as the first.
    let id = format!("call_{turn:06}");
    let said = format!(
        "Turn {turn:06}: I will read the file first, then decide → the caller may be wrong, too."
    );
    let name = TOOLS[turn % 2];
    let arguments =
        json!({"path": format!("src/part_{turn:06}.rs"), "lines": [1, 2, 40], "mode": "thorough"});
    let result = file(turn);
    match family {
        BenchFamily::Chat | BenchFamily::Embeddings => [
            json!({"role": "assistant", "content": said, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}]}),
            json!({"role": "tool", "tool_call_id": id, "content": result}),
        ],
        BenchFamily::Messages => [
            json!({"role": "assistant", "content": [
                {"type": "text", "text": said}, {"type": "tool_use", "id": id, "name": name, "input": arguments}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]}),
        ],
    }
}

/// A source file as a tool returns it: numbered lines with quotes, backslashes, tabs and letters beyond ASCII.
fn file(turn: usize) -> String {
    let line = |number: usize| match number % 4 {
        0 => format!("{number:>6}\t/// Opens the “{turn:06}” file; C:\\temp is refused.\n"),
        1 => format!("{number:>6}\tpub fn open_{turn:06}(path: &str) -> Result<File, Error> {{\n"),
        2 => format!("{number:>6}\t    println!(\"{{path}}: {{}} é\", \"caf\\u{{e9}}\");\n"),
        _ => format!("{number:>6}\t}}\n"),
    };
    (1..=48).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{MANY, batch, coding, small};
    use crate::answers::BenchFamily;

    #[test]
    fn bodies_have_their_size_and_are_json() {
        let body: serde_json::Value = serde_json::from_slice(&batch(8 << 20)).unwrap();
        let texts = body["input"].as_array().unwrap();
        assert!(
            texts.len() == 2_048
                && texts
                    .iter()
                    .all(|text| text.as_str().unwrap().len() < 30_000)
        );
        for family in BenchFamily::CONVERSATIONS {
            assert_eq!(small(family, true, MANY).len(), 1024);
            for size in [100 * 1024, 1024 * 1024] {
                let body: serde_json::Value =
                    serde_json::from_slice(&coding(family, size)).unwrap();
                assert!(body["messages"].as_array().unwrap().len() > 20);
            }
        }
    }
}
