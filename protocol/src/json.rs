//! Walks JSON bytes without building a tree, and splices them.
//!
//! A [`Cursor`] is strict (RFC 8259, depth at most [`MAX_DEPTH`], valid UTF-8) and works by pull: the caller asks for what it
//! expects next. It must not allocate for what is skipped within that depth, and must look at each byte a bounded number of times.
//! Positions always refer to the whole text, even if a cursor was set to a value inside it.

mod edit;
mod scan;
mod text;

use std::borrow::Cow;
use std::ops::Range;

use crate::{Additions, TextSize};

pub(crate) use edit::{Cuts, set_members, without_member};
pub use edit::{Edit, pieces, splice};
pub use text::{quoted, unescape};

/// Deepest accepted nesting of arrays and objects.
// A bit of a `u128` for each level says whether it is an object; serde_json, which reads the small parts, stops there, too.
pub const MAX_DEPTH: usize = 128;

/// Why bytes are not the expected JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonError {
    /// Where, in bytes from the start.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// A skipped value: its position, and its size without white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// Its bytes, quotes or braces included.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
    /// Its bytes without white space between tokens.
    pub size: TextSize,
    /// A string that may contain escapes.
    escaped: bool,
}

impl Value {
    /// A string's size without its quotes; the whole size of any other value.
    pub fn text_size(&self) -> TextSize {
        let quotes = if self.kind == Kind::String { 2 } else { 0 };
        TextSize {
            ascii: self.size.ascii.saturating_sub(quotes),
            other: self.size.other,
        }
    }
}

/// A member's name and where the member begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberName<'a> {
    /// Position of the name's opening quote.
    pub at: usize,
    /// The name, unescaped.
    pub name: Cow<'a, str>,
    /// Position after the colon.
    pub value: usize,
}

/// State of a walk over one object's members or one array's elements.
#[derive(Debug)]
pub struct JsonWalk {
    first: bool,
}

/// A place in a JSON text.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// How deep a skipped value may be. An entered one is never deeper than [`MAX_DEPTH`], because its caller may recurse.
    deepest: usize,
    other: u64,
    blank: u64,
    /// What the provider of an answer may add to it; nothing, if that is not known.
    additions: Option<&'a dyn Additions>,
}

impl<'a> Cursor<'a> {
    /// A cursor at the beginning.
    ///
    /// # Errors
    /// The bytes are not UTF-8.
    pub fn new(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let text = simdutf8::compat::from_utf8(bytes).map_err(|error| JsonError {
            at: error.valid_up_to(),
            what: "invalid UTF-8",
        })?;
        Ok(Self {
            text,
            at: 0,
            depth: 0,
            deepest: MAX_DEPTH,
            other: 0,
            blank: 0,
            additions: None,
        })
    }

    /// A cursor in an upstream's answer, in which skipped values may be nested to any depth: a customer can ask a model for deep
    /// nesting, and an unreadable answer would be free.
    ///
    /// # Errors
    /// The bytes are not UTF-8.
    pub fn of_answer(bytes: &'a [u8]) -> Result<Self, JsonError> {
        Ok(Self {
            deepest: usize::MAX,
            ..Self::new(bytes)?
        })
    }

    /// A cursor at `at` in the same text: at a value that this one has already passed.
    #[must_use]
    pub fn back_to(&self, at: usize) -> Self {
        Self {
            text: self.text,
            at,
            depth: 0,
            deepest: self.deepest,
            other: 0,
            blank: 0,
            additions: self.additions,
        }
    }

    /// A cursor in an answer to which its provider may add this.
    #[must_use]
    pub fn allowing(mut self, additions: Option<&'a dyn Additions>) -> Self {
        self.additions = additions;
        self
    }

    /// What the answer's provider may add.
    pub(crate) fn additions(&self) -> Option<&'a dyn Additions> {
        self.additions
    }

    /// The text from there on.
    pub(crate) fn rest(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    /// Position of the next byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The text of a range.
    pub fn slice(&self, span: Range<usize>) -> &'a str {
        self.text.get(span).unwrap_or_default()
    }

    /// The kind of the next value.
    ///
    /// # Errors
    /// No value begins here.
    pub fn peek(&mut self) -> Result<Kind, JsonError> {
        self.blanks();
        match self.byte() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(_) => self.fault("a value is expected"),
            None => self.fault("the text ends too early"),
        }
    }

    /// Steps over the next value.
    ///
    /// # Errors
    /// It is not strict JSON.
    pub fn skip(&mut self) -> Result<Value, JsonError> {
        let kind = self.peek()?;
        let (start, other, blank) = (self.at, self.other, self.blank);
        let escaped = self.value(kind)?;
        Ok(Value {
            span: start..self.at,
            kind,
            size: self.size(start, other, blank),
            escaped,
        })
    }

    /// The size of what was passed since `before`, a copy of this cursor, without white space between tokens.
    pub fn size_since(&self, before: &Self) -> TextSize {
        self.size(before.at, before.other, before.blank)
    }

    fn size(&self, start: usize, other: u64, blank: u64) -> TextSize {
        let (other, blank) = (
            self.other.saturating_sub(other),
            self.blank.saturating_sub(blank),
        );
        TextSize {
            ascii: (self.at.saturating_sub(start) as u64).saturating_sub(other + blank),
            other,
        }
    }

    /// Steps into an object.
    ///
    /// # Errors
    /// The next value is no object, or too deep.
    pub fn enter_object(&mut self) -> Result<JsonWalk, JsonError> {
        self.enter(b'{', "an object is expected")
    }

    /// The next member's name; its value must be read before the next call. `None` after the last one.
    ///
    /// # Errors
    /// It is not strict JSON.
    pub fn member(&mut self, walk: &mut JsonWalk) -> Result<Option<MemberName<'a>>, JsonError> {
        if !self.more(walk, b'}')? {
            return Ok(None);
        }
        let at = self.at;
        let escaped = self.string()?;
        let raw = self.slice(at + 1..self.at.saturating_sub(1));
        self.colon()?;
        Ok(Some(MemberName {
            at,
            name: if escaped {
                unescape(raw)
            } else {
                Cow::Borrowed(raw)
            },
            value: self.at,
        }))
    }

    /// Steps into an array.
    ///
    /// # Errors
    /// The next value is no array, or too deep.
    pub fn enter_array(&mut self) -> Result<JsonWalk, JsonError> {
        self.enter(b'[', "an array is expected")
    }

    /// Whether there is a next element; it must be read before the next call.
    ///
    /// # Errors
    /// It is not strict JSON.
    pub fn element(&mut self, walk: &mut JsonWalk) -> Result<bool, JsonError> {
        self.more(walk, b']')
    }

    /// Nothing but white space may follow.
    ///
    /// # Errors
    /// Something follows.
    pub fn end(&mut self) -> Result<(), JsonError> {
        self.blanks();
        if self.at < self.text.len() {
            self.fault("something follows the value")
        } else {
            Ok(())
        }
    }

    /// The text of a skipped string, unescaped. `None` if the value is not a string.
    pub fn text_of(&self, value: &Value) -> Option<Cow<'a, str>> {
        let raw = self.raw_text(value)?;
        Some(if value.escaped {
            unescape(raw)
        } else {
            Cow::Borrowed(raw)
        })
    }

    /// The raw text between the quotes of a skipped string.
    pub fn raw_text(&self, value: &Value) -> Option<&'a str> {
        (value.kind == Kind::String)
            .then(|| self.slice(value.span.start + 1..value.span.end.saturating_sub(1)))
    }

    /// The content of a skipped value: a string's text in its JSON form, the bytes of any other value.
    pub(crate) fn inner(&self, value: &Value) -> &'a str {
        self.raw_text(value)
            .unwrap_or_else(|| self.slice(value.span.clone()))
    }

    /// The text of the string at `span`, quotes included, unescaped.
    pub fn string_at(&self, span: Range<usize>) -> Cow<'a, str> {
        unescape(self.slice(span.start + 1..span.end.saturating_sub(1)))
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[cold]
    fn fault<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError { at: self.at, what })
    }

    /// Usually there is no white space, so the loop is kept out of line.
    #[inline]
    fn blanks(&mut self) {
        if self.byte().is_some_and(|byte| byte <= b' ') {
            self.some_blanks();
        }
    }

    #[inline(never)]
    fn some_blanks(&mut self) {
        let from = self.at;
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
        self.blank += (self.at - from) as u64;
    }

    fn enter(&mut self, bracket: u8, what: &'static str) -> Result<JsonWalk, JsonError> {
        self.blanks();
        if self.byte() != Some(bracket) {
            return self.fault(what);
        }
        self.deeper(MAX_DEPTH)?;
        Ok(JsonWalk { first: true })
    }

    fn deeper(&mut self, deepest: usize) -> Result<(), JsonError> {
        if self.depth >= deepest {
            return self.fault("nested deeper than 128");
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn more(&mut self, walk: &mut JsonWalk, bracket: u8) -> Result<bool, JsonError> {
        self.blanks();
        match self.byte() {
            Some(byte) if byte == bracket => {
                self.at += 1;
                self.depth = self.depth.saturating_sub(1);
                return Ok(false);
            }
            Some(_) if walk.first => {}
            Some(b',') => {
                self.at += 1;
                self.blanks();
            }
            Some(_) => return self.fault("a comma or the end of the list is expected"),
            None => return self.fault("the text ends too early"),
        }
        walk.first = false;
        Ok(true)
    }

    fn colon(&mut self) -> Result<(), JsonError> {
        self.blanks();
        if self.byte() != Some(b':') {
            return self.fault("a colon is expected");
        }
        self.at += 1;
        Ok(())
    }

    /// Steps over a value of this kind; returns whether it is a string that may have escapes.
    #[inline]
    fn value(&mut self, kind: Kind) -> Result<bool, JsonError> {
        match kind {
            Kind::String => return self.string(),
            Kind::Object | Kind::Array => self.container(),
            Kind::Number => self.number(),
            Kind::Bool if self.byte() == Some(b't') => self.literal("true"),
            Kind::Bool => self.literal("false"),
            Kind::Null => self.literal("null"),
        }?;
        Ok(false)
    }

    /// Skips a container in a loop: `objects` has one bit for each open level, set if that level is an object. Levels further out
    /// than its 128 bits are in `outer`.
    fn container(&mut self) -> Result<(), JsonError> {
        let base = self.depth;
        let mut objects: u128 = 0;
        let mut outer: Vec<bool> = Vec::new();
        loop {
            if objects & 1 == 0 {
                self.numbers();
            }
            let kind = self.peek()?;
            match kind {
                Kind::Object | Kind::Array => {
                    self.deeper(self.deepest)?;
                    if self.depth - base > MAX_DEPTH {
                        outer.push(objects >> (MAX_DEPTH - 1) == 1);
                    }
                    objects = (objects << 1) | u128::from(kind == Kind::Object);
                    self.blanks();
                    if !matches!(self.byte(), Some(b'}' | b']')) {
                        self.name_in(objects)?;
                        continue;
                    }
                }
                scalar => {
                    self.value(scalar)?;
                }
            }
            loop {
                self.blanks();
                match self.byte() {
                    Some(b',') => {
                        self.at += 1;
                        self.blanks();
                        self.name_in(objects)?;
                        break;
                    }
                    Some(b'}') if objects & 1 == 1 => {}
                    Some(b']') if objects & 1 == 0 => {}
                    Some(_) => return self.fault("a comma or the end of the list is expected"),
                    None => return self.fault("the text ends too early"),
                }
                self.at += 1;
                self.depth -= 1;
                objects >>= 1;
                if let Some(object) = outer.pop() {
                    objects |= u128::from(object) << (MAX_DEPTH - 1);
                }
                if self.depth == base {
                    return Ok(());
                }
            }
        }
    }

    fn name_in(&mut self, objects: u128) -> Result<(), JsonError> {
        if objects & 1 == 0 {
            return Ok(());
        }
        self.string()?;
        self.colon()
    }

    fn literal(&mut self, word: &'static str) -> Result<(), JsonError> {
        if !self
            .text
            .as_bytes()
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word.as_bytes()))
        {
            return self.fault("a value is expected");
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        self.at = number_end(self.text.as_bytes(), self.at)?;
        Ok(())
    }

    /// Steps over the numbers of an array that a comma follows at once: of no other value does a body have so many.
    #[inline]
    fn numbers(&mut self) {
        let (bytes, mut passed) = (self.text.as_bytes(), 0);
        while let Some(b'-' | b'0'..=b'9') = self.byte() {
            match number_end(bytes, self.at) {
                Ok(end) if bytes.get(end) == Some(&b',') => self.at = end + 1,
                // What it is instead is for the caller to say.
                _ => return,
            }
            passed += 1;
            // Short arrays do not pay for a call.
            if passed % 8 == 0 {
                self.at = scan::integers(bytes, self.at);
            }
        }
    }

    /// Steps over a string; returns whether it may have escapes.
    #[inline]
    fn string(&mut self) -> Result<bool, JsonError> {
        if self.byte() != Some(b'"') {
            return self.fault("a string is expected");
        }
        match scan::short(self.text.as_bytes(), self.at + 1) {
            Some(behind) => {
                self.at = behind;
                Ok(false)
            }
            None => self.long_string(),
        }
    }

    // Out of line, so that short strings do not pay for the registers it saves.
    #[inline(never)]
    fn long_string(&mut self) -> Result<bool, JsonError> {
        let passed = scan::pass(self.text.as_bytes(), self.at + 1);
        self.at = passed.at;
        self.other += passed.other;
        self.string_end(passed.has_escapes)
    }

    /// The rest of a string, one byte at a time: its quote, the end of the text, or where something is wrong.
    fn string_end(&mut self, mut escaped: bool) -> Result<bool, JsonError> {
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at += scan::escape_length(self.text.as_bytes(), self.at)?;
                }
                Some(0..0x20) => return self.fault(CONTROL),
                Some(byte) => {
                    self.at += 1;
                    self.other += u64::from(byte >= 0x80);
                }
                None => return self.fault("the text ends inside a string"),
            }
        }
    }
}

/// The position after the number at `at`.
#[inline]
fn number_end(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    at += usize::from(bytes.get(at) == Some(&b'-'));
    at = match bytes.get(at) {
        Some(b'0') => at + 1,
        _ => digits_end(bytes, at)?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits_end(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = digits_end(bytes, at)?;
    }
    Ok(at)
}

#[inline]
fn digits_end(bytes: &[u8], from: usize) -> Result<usize, JsonError> {
    let mut at = from;
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    if at == from {
        let what = "a digit is expected";
        return Err(JsonError { at, what });
    }
    Ok(at)
}

const CONTROL: &str = "a control character in a string must be escaped";

/// Steps over the next value and returns its position if it is a string.
pub(crate) fn string_span(cursor: &mut Cursor<'_>) -> Result<Option<Range<usize>>, JsonError> {
    let value = cursor.skip()?;
    Ok((value.kind == Kind::String).then_some(value.span))
}
