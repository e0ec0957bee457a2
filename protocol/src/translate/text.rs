//! Text that keeps its JSON escaping, and a writer that copies it into other JSON unchanged.
//!
//! The inside of one JSON string is valid in any other, so texts cross families without being unescaped.

use std::borrow::Cow;

use crate::json::{quoted, unescape};

/// The inside of a JSON string.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Escaped<'a>(Cow<'a, str>);

impl<'a> Escaped<'a> {
    /// Text that is already escaped.
    pub(crate) fn raw(inner: impl Into<Cow<'a, str>>) -> Self {
        Self(inner.into())
    }

    /// Plain text, escaped here.
    pub(crate) fn of(plain: &str) -> Escaped<'static> {
        Escaped(Cow::Owned(escape(plain)))
    }

    /// As it stands between quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Without escapes.
    pub fn plain(&self) -> Cow<'_, str> {
        unescape(&self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is only white space.
    pub(crate) fn is_blank(&self) -> bool {
        let mut rest = self.0.trim_start();
        while let Some(escape) = rest.strip_prefix('\\') {
            // Rare, and some of these are white space: only then is the text unescaped.
            if escape.starts_with('u') {
                return self.plain().trim().is_empty();
            }
            let Some(after) = escape.strip_prefix(['n', 't', 'r']) else {
                return false;
            };
            rest = after.trim_start();
        }
        rest.is_empty()
    }

    /// The same without trailing white space.
    pub(crate) fn trimmed_end(self) -> Self {
        let mut kept = self.0.as_ref();
        while let Some(shorter) = shorter(kept) {
            kept = shorter;
        }
        if kept.len() == self.0.len() {
            self
        } else {
            Self(Cow::Owned(kept.to_owned()))
        }
    }

    /// The texts one after another, separated by `between` (escaped).
    pub(crate) fn join<'t>(texts: impl IntoIterator<Item = &'t Self>, between: &str) -> Self
    where
        'a: 't,
    {
        let mut texts = texts.into_iter();
        let Some(first) = texts.next() else {
            return Self::default();
        };
        // One text is the usual case, and costs no copy.
        let Some(second) = texts.next() else {
            return first.clone();
        };
        let mut out = first.0.to_string();
        for text in std::iter::once(second).chain(texts) {
            out.push_str(between);
            out.push_str(&text.0);
        }
        Self(Cow::Owned(out))
    }
}

/// The text without one trailing white space; a backslash before `n` is an escape only if it is not itself escaped.
fn shorter(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_suffix(' ') {
        return Some(rest);
    }
    let rest = ["\\n", "\\t", "\\r"]
        .iter()
        .find_map(|escape| text.strip_suffix(escape))?;
    let backslashes = rest.bytes().rev().take_while(|byte| *byte == b'\\').count();
    backslashes.is_multiple_of(2).then_some(rest)
}

/// Plain text as the inside of a JSON string.
pub(crate) fn escape(plain: &str) -> String {
    let mut out = quoted(plain);
    out.pop();
    if !out.is_empty() {
        out.remove(0);
    }
    out
}

/// Writes JSON. It places commas; the caller is responsible for braces and order.
#[derive(Debug, Default)]
pub(crate) struct JsonWriter {
    out: String,
    comma: bool,
}

impl JsonWriter {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            out: String::with_capacity(bytes),
            comma: false,
        }
    }

    fn value(&mut self) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = true;
    }

    /// Begins an object or a list.
    pub(crate) fn open(&mut self, bracket: char) {
        self.value();
        self.out.push(bracket);
        self.comma = false;
    }

    /// Ends an object or a list.
    pub(crate) fn close(&mut self, bracket: char) {
        self.out.push(bracket);
        self.comma = true;
    }

    /// A member's name, which needs no escapes; its value comes next.
    pub(crate) fn name(&mut self, name: &str) -> &mut Self {
        self.value();
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.comma = false;
        self
    }

    /// A value that is already JSON.
    pub(crate) fn raw(&mut self, json: &str) {
        self.value();
        self.out.push_str(json);
    }

    /// A string from its inside.
    pub(crate) fn escaped(&mut self, inner: &str) {
        self.value();
        self.out.push('"');
        self.out.push_str(inner);
        self.out.push('"');
    }

    /// A string from plain text.
    pub(crate) fn plain(&mut self, plain: &str) {
        self.value();
        self.out.push_str(&quoted(plain));
    }

    /// A string from its inside in several pieces.
    pub(crate) fn pieces(&mut self, pieces: &[&str]) {
        self.value();
        self.out.push('"');
        pieces.iter().for_each(|piece| self.out.push_str(piece));
        self.out.push('"');
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.value();
        self.out.push_str(&number.to_string());
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.raw(if flag { "true" } else { "false" });
    }

    /// A member that is JSON, if there is one.
    pub(crate) fn raw_if(&mut self, name: &str, json: Option<&str>) {
        if let Some(json) = json {
            self.name(name).raw(json);
        }
    }

    /// A member that is text, if there is one.
    pub(crate) fn text_if(&mut self, name: &str, text: Option<&Escaped<'_>>) {
        if let Some(text) = text {
            self.name(name).escaped(text.as_str());
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// A JSON text without white space between its tokens.
pub(crate) fn compact(json: &str) -> Cow<'_, str> {
    if !json.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for c in json.chars() {
        if !inside && c.is_ascii_whitespace() {
            continue;
        }
        inside ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        out.push(c);
    }
    Cow::Owned(out)
}
