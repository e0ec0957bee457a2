//! One rule: a place, what must hold there, and who says so.

use serde_json::Value;

use crate::Wire;

/// Whether a rule refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleStanding {
    /// Its source was read, and says it in so many words or types.
    Verified,
    /// Reported or likely, but no source says it. It refuses nothing.
    Unverified,
}

/// A type of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// A string.
    Text,
    /// A number.
    Number,
    /// A number without a fraction.
    Integer,
    /// `true` or `false`.
    Flag,
    /// An array.
    List,
    /// An object.
    Object,
    /// `null`.
    Null,
}

/// What must hold at a place. Everything but `Kind` and `Needs` passes over values of another type: that is another rule's business.
#[derive(Debug, Clone, Copy)]
pub enum Must {
    /// The object has no other members.
    Closed(&'static [&'static str]),
    /// The object has these members.
    Needs(&'static [&'static str]),
    /// The value has one of these types.
    Be(&'static [JsonType]),
    /// The number lies between these, both included.
    Between(f64, f64),
    /// The text is one of these.
    OneOf(&'static [&'static str]),
    /// The text has so many characters, the list so many items, the object so many members.
    Long(usize, usize),
    /// The text has only these letters, digits and signs.
    Spelt(fn(char) -> bool),
    /// The text or header starts with this.
    Start(&'static str),
    /// The place does not occur.
    Absent,
    /// The header occurs exactly once.
    Once,
    /// Whatever a function says about the value.
    Hold(fn(&Value) -> Result<(), String>),
}

/// One rule of a wire.
#[derive(Debug, Clone, Copy)]
pub struct WireRule {
    /// Where, in the notation of `place.rs`.
    pub place: &'static str,
    /// What must hold there.
    pub must: Must,
    /// The page, SDK type or thread, with version and date.
    pub source: &'static str,
    /// Whether it refuses.
    pub standing: RuleStanding,
    /// A name, where place and kind do not tell it.
    pub name: &'static str,
    /// The status of its refusal.
    pub status: u16,
    /// The code of its refusal, where the vendor has one that callers act on.
    pub code: Option<&'static str>,
    /// It holds only for requests like this: usually for some models.
    pub when: Option<fn(&Value) -> bool>,
    /// Edits of an example that break it, pointer and JSON (empty: removed); made from `must` where there are none.
    pub broken: &'static [(&'static str, &'static str)],
}

impl WireRule {
    /// A verified rule whose refusal is a 400.
    #[must_use]
    pub const fn new(place: &'static str, must: Must, source: &'static str) -> Self {
        Self {
            place,
            must,
            source,
            standing: RuleStanding::Verified,
            name: "",
            status: 400,
            code: None,
            when: None,
            broken: &[],
        }
    }

    /// The same rule, not refusing: its source could not be verified.
    #[must_use]
    pub const fn unverified(mut self) -> Self {
        self.standing = RuleStanding::Unverified;
        self
    }

    /// The same rule under a name of its own.
    #[must_use]
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// The same rule with another status.
    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same rule with a code.
    #[must_use]
    pub const fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The same rule for some requests only.
    #[must_use]
    pub const fn when(mut self, when: fn(&Value) -> bool) -> Self {
        self.when = Some(when);
        self
    }

    /// The same rule with edits that break it.
    #[must_use]
    pub const fn broken_by(mut self, edits: &'static [(&'static str, &'static str)]) -> Self {
        self.broken = edits;
        self
    }

    /// `openai chat: /temperature between`.
    #[must_use]
    pub fn id(&self, wire: &Wire) -> String {
        let what = match (self.name, self.must) {
            ("", Must::Closed(_)) => "closed",
            ("", Must::Needs(_)) => "needs",
            ("", Must::Be(_)) => "type",
            ("", Must::Between(..)) => "between",
            ("", Must::OneOf(_)) => "one of",
            ("", Must::Long(..)) => "length",
            ("", Must::Spelt(_)) => "spelling",
            ("", Must::Start(_)) => "start",
            ("", Must::Absent) => "absent",
            ("", Must::Once) => "once",
            ("", Must::Hold(_)) => "holds",
            (name, _) => name,
        };
        format!("{}: {} {what}", wire.name, self.place)
    }

    /// What is wrong with a value at its place, in a request like this.
    pub(crate) fn wrong(&self, body: &Value, value: &Value) -> Option<String> {
        if self.when.is_some_and(|when| !when(body)) {
            return None;
        }
        self.must.wrong(value)
    }

    /// What is wrong with the headers, if that is what it is about.
    pub(crate) fn wrong_header(
        &self,
        headers: &[(String, String)],
        body: &Value,
    ) -> Option<String> {
        let name = self.place.strip_prefix('@')?;
        let is = |known: &&(String, String)| known.0.eq_ignore_ascii_case(name);
        let given: Vec<_> = headers.iter().filter(is).collect();
        if matches!(self.must, Must::Once) && given.len() != 1 {
            return Some(format!(
                "header {name} occurs {} times instead of once",
                given.len()
            ));
        }
        let mut given = given
            .into_iter()
            .map(|(_, value)| Value::from(value.as_str()));
        given.find_map(|value| self.wrong(body, &value))
    }
}

impl Must {
    /// What is wrong with a value.
    fn wrong(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::Closed(known), Value::Object(members)) => members
                .keys()
                .find(|name| !known.contains(&name.as_str()))
                .map(|name| format!("unknown member {name:?}")),
            (Self::Needs(names), value) => names
                .iter()
                .find(|name| value.get(**name).is_none())
                .map(|name| format!("member {name:?} is missing")),
            (Self::Be(kinds), value) => (!kinds.iter().any(|kind| kind.is(value)))
                .then(|| format!("{value} is none of {kinds:?}")),
            (Self::Between(least, most), Value::Number(number)) => number
                .as_f64()
                .filter(|number| number < least || number > most)
                .map(|number| format!("{number} is not between {least} and {most}")),
            (Self::OneOf(known), Value::String(text)) => {
                (!known.contains(&text.as_str())).then(|| format!("{text:?} is none of {known:?}"))
            }
            (Self::Long(least, most), value) => {
                let long = match value {
                    Value::String(text) => text.chars().count(),
                    Value::Array(items) => items.len(),
                    Value::Object(members) => members.len(),
                    _ => return None,
                };
                (long < *least || long > *most)
                    .then(|| format!("its length {long} is not between {least} and {most}"))
            }
            (Self::Spelt(fits), Value::String(text)) => text
                .chars()
                .find(|character| !fits(*character))
                .map(|character| format!("{character:?} in {text:?}")),
            (Self::Start(start), Value::String(text)) => {
                (!text.starts_with(start)).then(|| format!("does not start with {start:?}"))
            }
            (Self::Absent, _) => Some("is not supported".to_owned()),
            (Self::Hold(holds), value) => holds(value).err(),
            _ => None,
        }
    }
}

impl JsonType {
    pub(crate) fn is(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Null => value.is_null(),
        }
    }
}

/// Letters, digits, `_` and `-`: names of tools and ids of calls nearly everywhere.
pub(crate) fn word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}
