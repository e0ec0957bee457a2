//! Custom tools on targets that only know functions: free text is sent wrapped in `{"input": …}` and comes back unwrapped.
//!
//! If a model answers in another shape, the caller gets the arguments as they are, never an error.

use crate::json::{Cursor, Kind, quoted, unescape};

/// The schema of a wrapped tool.
// One required text and nothing else: the fewer the choices, the more reliably small models fill it in.
pub(crate) const SCHEMA: &str = r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}"#;

/// What precedes and follows free text in a function's arguments, escaped.
pub(crate) const WRAP: [&str; 2] = ["{\\\"input\\\":\\\"", "\\\"}"];

/// Free text as a function's arguments.
pub(crate) fn wrapped(input: &str) -> String {
    format!("{{\"input\":{}}}", quoted(input))
}

/// Whether a call's arguments, unescaped, are one whole JSON object.
pub(crate) fn is_object(arguments: &str) -> bool {
    let kind = Cursor::new(arguments.as_bytes()).and_then(|mut cursor| {
        let value = cursor.skip()?;
        cursor.end().map(|()| value.kind)
    });
    kind == Ok(Kind::Object)
}

/// How far the arguments have been parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    /// Before the text: how much of [`HEAD`] has matched.
    #[default]
    Head,
    /// Inside the text.
    Text,
    /// After it.
    Done,
    /// They have another shape.
    Raw,
}

/// What precedes the text, ignoring white space.
const HEAD: &str = "{\"input\":\"";

/// Extracts the text from arguments as they arrive.
#[derive(Debug, Default)]
pub(crate) struct Unwrap {
    at: At,
    /// Input held back: the head, or half an escape.
    held: String,
}

impl Unwrap {
    /// The next piece of the arguments, escaped as their upstream wrote it; the available part of the text goes to `out`, escaped.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        let json = unescape(piece);
        match self.at {
            At::Raw => out.push_str(piece),
            At::Done => {}
            At::Text => {
                self.held.push_str(&json);
                self.text(out);
            }
            At::Head => {
                self.held.push_str(&json);
                self.head(out);
            }
        }
    }

    /// The end of the arguments: held text that never matched is emitted unchanged.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if self.at == At::Head {
            out.push_str(&super::text::escape(&self.held));
        }
        self.held.clear();
        self.at = At::Done;
    }

    fn head(&mut self, out: &mut String) {
        let mut wanted = HEAD.chars().peekable();
        let mut inside = false;
        for (at, c) in self.held.char_indices() {
            if !inside && c.is_ascii_whitespace() {
                continue;
            }
            // Another shape. What was held back is passed on first, or the arguments would lack their beginning.
            if wanted.next() != Some(c) {
                self.at = At::Raw;
                out.push_str(&super::text::escape(&self.held));
                self.held.clear();
                return;
            }
            inside ^= c == '"';
            if wanted.peek().is_none() {
                self.held.drain(..at + c.len_utf8());
                self.at = At::Text;
                self.text(out);
                return;
            }
        }
    }

    /// Emits the complete part of the text: its escaping fits the caller's string as it is.
    fn text(&mut self, out: &mut String) {
        let bytes = self.held.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    out.push_str(self.held.get(..at).unwrap_or_default());
                    self.held.clear();
                    self.at = At::Done;
                    return;
                }
                b'\\' => {
                    let length = if bytes.get(at + 1) == Some(&b'u') {
                        6
                    } else {
                        2
                    };
                    if at + length > bytes.len() {
                        break;
                    }
                    at += length;
                }
                _ => at += 1,
            }
        }
        // A broken escape may end inside a character; then the held text only waits for its end.
        if let Some(whole) = self.held.get(..at) {
            push_valid(whole, out);
            self.held.drain(..at);
        }
    }
}

/// Unchecked text from inside a JSON string: control characters and unknown escapes are made valid.
fn push_valid(text: &str, out: &mut String) {
    let quoted_text = format!("\"{text}\"");
    let good = Cursor::new(quoted_text.as_bytes())
        .and_then(|mut cursor| cursor.skip().and_then(|_| cursor.end()))
        .is_ok();
    if good {
        out.push_str(text);
    } else {
        out.push_str(&super::text::escape(&unescape(text)));
    }
}

/// The text of complete arguments, escaped; the arguments themselves if they have another shape.
pub(crate) fn unwrapped(arguments: &str) -> String {
    let json = unescape(arguments);
    sole_input(&json).unwrap_or_else(|| arguments.to_owned())
}

fn sole_input(json: &str) -> Option<String> {
    let mut cursor = Cursor::new(json.as_bytes()).ok()?;
    let mut walk = cursor.enter_object().ok()?;
    let key = cursor.member(&mut walk).ok()??;
    let value = cursor.skip().ok()?;
    (key.name == "input" && value.kind == Kind::String)
        .then(|| cursor.raw_text(&value).map(str::to_owned))?
}
