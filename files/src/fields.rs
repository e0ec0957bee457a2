//! Low-level reading: typed access to the syntax tree of one file.
//!
//! Nothing here knows the meaning of a field. Every reader returns `None` after recording what is wrong, so that its callers
//! continue with the next field and all mistakes of a file are reported together. Values never get into messages here, because they
//! may be secrets.

use std::ops::RangeInclusive;
use std::time::Duration;

use farebox_ledger::grouped;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::code::Code;
use crate::keys::ConfigTable;
use crate::report::{ConfigFile, Finding, Placed, Report, Span};
use crate::suggest::did_you_mean;

/// The fields of one table.
#[derive(Debug)]
pub struct Fields<'r, 'i> {
    table: &'r DeTable<'i>,
    /// The header or opening of the table.
    pub span: Span,
    /// The thing that the table describes, for messages: ``model `x` ``.
    pub what: String,
    known: &'static ConfigTable,
    /// Known fields that are present under another spelling, and are not also reported as missing.
    misspelt: Vec<&'static str>,
}

impl<'r, 'i> Fields<'r, 'i> {
    /// Opens a table and records every field that is not one of `known`.
    pub fn open(
        report: &mut Report<'_>,
        table: &'r DeTable<'i>,
        span: Span,
        what: impl Into<String>,
        known: &'static ConfigTable,
    ) -> Self {
        let mut fields = Self {
            table,
            span,
            what: what.into(),
            known,
            misspelt: Vec::new(),
        };
        for (key, value) in table {
            let name: &str = key.get_ref();
            if !known.has(name) {
                fields.unknown(report, key, value.get_ref());
            }
        }
        fields
    }

    fn unknown(
        &mut self,
        report: &mut Report<'_>,
        key: &Spanned<impl AsRef<str>>,
        value: &DeValue<'_>,
    ) {
        let known = self.known;
        let name = key.get_ref().as_ref();
        if let Some(job) = known.former(name) {
            let span = Span::new(self.span.file, key.span());
            let message = format!("`{name}` of {} is no longer used", self.what);
            report.add(Code::FormerField, span, message).help(job);
            return;
        }
        let names: Vec<&str> = known.names().collect();
        let suggestion = if report.suggestions_left > 0 {
            did_you_mean(name, &names).or_else(|| known.meant(name))
        } else {
            None
        };
        report.suggestions_left = report.suggestions_left.saturating_sub(1);
        self.misspelt.extend(suggestion);
        let dotted = matches!(value, DeValue::Table(_)) && self.what.starts_with("provider ");
        if dotted {
            // The rest of the provider is in the inner table.
            self.misspelt.extend(&names);
        }
        let span = Span::new(self.span.file, key.span());
        let finding = report.add(
            Code::UnknownField,
            span,
            format!("unknown field `{}` in {}", shorten(name), self.what),
        );
        if let Some(known) = suggestion {
            finding.help(format!("did you mean `{known}`?"));
        } else if let Some(job) = known.done_otherwise(name) {
            finding.help(job);
        } else if let Some(file) = known.other_file(name) {
            finding.help(format!("`{name}` belongs in {file}"));
        } else if let Some(home) = known.home_of(name) {
            finding.help(format!("`{name}` belongs in {home}"));
        } else if dotted {
            finding.help("a dot in a table header starts a nested table; put the name in quotes: [provider.\"a.b\"]");
        } else {
            finding.help(format!("known fields are {}", listed(&names)));
        }
    }

    /// The value of a field that the table knows.
    pub fn get(&self, name: &'static str) -> Option<Entry<'r, 'i>> {
        debug_assert!(self.known.has(name), "keys.toml has no `{name}`");
        let (key, node) = self.table.get_key_value(name)?;
        Some(Entry {
            key: Span::new(self.span.file, key.span()),
            node,
            file: self.span.file,
            name,
        })
    }

    /// Whether the table may have a field.
    pub fn knows(&self, name: &str) -> bool {
        self.known.has(name)
    }

    /// Whether a field is there under another spelling.
    pub fn misspells(&self, name: &str) -> bool {
        self.misspelt.contains(&name)
    }

    /// Whether a field is there, right or wrong.
    pub fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Reads an optional field.
    pub fn optional<T>(
        &self,
        report: &mut Report<'_>,
        name: &'static str,
        read: impl FnOnce(Entry<'r, 'i>, &mut Report<'_>) -> Option<T>,
    ) -> Option<T> {
        read(self.get(name)?, report)
    }

    /// Reads a field that may be left out: `Some(None)` if it is, and `None` if it is there and wrong.
    pub fn given<T>(
        &self,
        report: &mut Report<'_>,
        name: &'static str,
        read: impl FnOnce(Entry<'r, 'i>, &mut Report<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.get(name) {
            Some(value) => read(value, report).map(Some),
            None => Some(None),
        }
    }

    /// Records two fields that exclude each other, if both are there.
    pub fn exclude(&self, report: &mut Report<'_>, one: &'static str, other: &'static str) {
        if let (Some(one), Some(other)) = (self.get(one), self.get(other)) {
            let message = format!("{} has both `{}` and `{}`", self.what, one.name, other.name);
            report
                .add(Code::Contradiction, other.key, message)
                .also(one.key, "the other one");
        }
    }

    /// Reads one of a few words, if the field is there.
    pub fn word<T: Copy>(
        &self,
        report: &mut Report<'_>,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Option<Option<T>> {
        self.given(report, name, |value, report| value.word(report, words))
    }

    /// Reads a required field. `example` shows a complete line.
    pub fn required<T>(
        &self,
        report: &mut Report<'_>,
        name: &'static str,
        example: &str,
        read: impl FnOnce(Entry<'r, 'i>, &mut Report<'_>) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = self.get(name) else {
            if !self.misspelt.contains(&name) {
                let message = format!("`{name}` is missing in {}", self.what);
                report
                    .add(Code::MissingField, self.span, message)
                    .help(format!("add {example}"));
            }
            return None;
        };
        read(value, report)
    }
}

/// A value in the tree.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'r, 'i> {
    /// The position of its name.
    pub key: Span,
    node: &'r Spanned<DeValue<'i>>,
    file: ConfigFile,
    /// The name of its field.
    pub name: &'static str,
}

impl<'r, 'i> Entry<'r, 'i> {
    /// Its position.
    pub fn span(&self) -> Span {
        Span::new(self.file, self.node.span())
    }

    /// The value itself.
    pub fn node(&self) -> &'r DeValue<'i> {
        self.node.get_ref()
    }

    /// A value inside this one.
    pub fn member(&self, node: &'r Spanned<DeValue<'i>>) -> Self {
        Self {
            key: self.key,
            node,
            file: self.file,
            name: self.name,
        }
    }

    /// Records a wrong type.
    pub fn expected<'f>(&self, report: &'f mut Report<'_>, what: &str) -> &'f mut Finding {
        let found = type_name(self.node());
        report
            .add(
                Code::WrongType,
                self.span(),
                format!("`{}` must be {what}, not {found}", self.name),
            )
            .label(format!("expected {what}"))
    }

    /// A string.
    pub fn text(self, report: &mut Report<'_>) -> Option<Placed<&'r str>> {
        match self.node() {
            DeValue::String(text) => Some(Placed {
                value: text.as_ref(),
                span: self.span(),
            }),
            _ => {
                self.expected(report, "a string");
                None
            }
        }
    }

    /// A text for people: not empty, at most `most` characters, no control characters.
    pub fn printable(self, report: &mut Report<'_>, most: usize) -> Option<Placed<&'r str>> {
        let text = self.text(report)?;
        let problem = if text.value.trim().is_empty() {
            "is empty".to_owned()
        } else if text.value.chars().count() > most {
            format!("is longer than {most} characters")
        } else if text.value.chars().any(char::is_control) {
            "has a control character in it".to_owned()
        } else {
            return Some(text);
        };
        report.add(
            Code::BadText,
            text.span,
            format!("`{}` {problem}", self.name),
        );
        None
    }

    /// `true` or `false`.
    pub fn boolean(self, report: &mut Report<'_>) -> Option<bool> {
        match self.node() {
            DeValue::Boolean(value) => Some(*value),
            _ => {
                self.expected(report, "true or false");
                None
            }
        }
    }

    /// A whole number within limits.
    pub fn integer(
        self,
        report: &mut Report<'_>,
        range: RangeInclusive<u64>,
    ) -> Option<Placed<u64>> {
        let DeValue::Integer(integer) = self.node() else {
            let number = |text: &str| {
                text.bytes()
                    .all(|byte| byte.is_ascii_digit() || b",._ ".contains(&byte))
            };
            let is_number = matches!(self.node(), DeValue::String(text) if number(text))
                || matches!(self.node(), DeValue::Float(_));
            let finding = self.expected(report, "a whole number");
            if is_number {
                finding.help("write digits without quotes, points and commas, for reading with underscores: 400_000");
            }
            return None;
        };
        match i128::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .and_then(|value| u64::try_from(value).ok())
        {
            Some(value) if range.contains(&value) => Some(Placed {
                value,
                span: self.span(),
            }),
            _ => {
                let (least, most) = (grouped(*range.start()), grouped(*range.end()));
                report.add(
                    Code::OutOfRange,
                    self.span(),
                    format!("`{}` must be between {least} and {most}", self.name),
                );
                None
            }
        }
    }

    /// An integer in this range.
    pub fn small(self, report: &mut Report<'_>, range: RangeInclusive<u32>) -> Option<Placed<u32>> {
        let wide = self.integer(report, u64::from(*range.start())..=u64::from(*range.end()))?;
        Some(Placed {
            value: u32::try_from(wide.value).ok()?,
            span: wide.span,
        })
    }

    /// The members of an array.
    pub fn list(self, report: &mut Report<'_>, of: &str) -> Option<Vec<Self>> {
        match self.node() {
            DeValue::Array(nodes) => Some(nodes.iter().map(|node| self.member(node)).collect()),
            DeValue::String(_) if matches!(of, "strings" | "families") => {
                let finding = self.expected(report, &format!("a list of {of}"));
                finding.help(format!(
                    "write brackets around it, also for one: {} = [\"…\"]",
                    self.name
                ));
                None
            }
            _ => {
                self.expected(report, &format!("a list of {of}"));
                None
            }
        }
    }

    /// The members of an array, read one by one; `None` if any of them is wrong.
    pub fn each<T>(
        self,
        report: &mut Report<'_>,
        of: &str,
        mut read: impl FnMut(Self, &mut Report<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let members = self.list(report, of)?.into_iter();
        let read: Vec<Option<T>> = members.map(|member| read(member, report)).collect();
        read.into_iter().collect()
    }

    /// A table of any fields.
    pub fn table(self, report: &mut Report<'_>, what: &str) -> Option<(&'r DeTable<'i>, Span)> {
        match self.node() {
            DeValue::Table(table) => Some((table, self.span())),
            _ => {
                self.expected(report, what);
                None
            }
        }
    }

    /// A table of known fields.
    pub fn fields(
        self,
        report: &mut Report<'_>,
        what: &str,
        known: &'static ConfigTable,
    ) -> Option<Fields<'r, 'i>> {
        let (table, span) = self.table(report, "a table")?;
        Some(Fields::open(report, table, span, what, known))
    }

    /// One of a few words.
    pub fn word<T: Copy>(self, report: &mut Report<'_>, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(report)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.value) {
            return Some(*value);
        }
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let suggestion = did_you_mean(text.value, &names);
        let finding = report.add(
            Code::UnknownWord,
            text.span,
            format!("`{}` cannot be `{}`", self.name, shorten(text.value)),
        );
        match suggestion {
            Some(word) => finding.help(format!("did you mean \"{word}\"?")),
            None => finding.help(format!("write one of {}", listed(&names))),
        };
        None
    }

    /// A duration like `"5s"`, within limits.
    pub fn duration(
        self,
        report: &mut Report<'_>,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let duration = match self.node() {
            DeValue::String(text) => parse_duration(text),
            _ => None,
        };
        let Some(duration) = duration else {
            report
                .add(Code::BadDuration, self.span(), format!("`{}` is not a duration", self.name))
                .help("write a whole number and a unit, in quotes: \"250ms\", \"5s\", \"2m\", \"1h\" or \"3d\"");
            return None;
        };
        if !range.contains(&duration) {
            let message = format!(
                "`{}` must be between {:?} and {:?}",
                self.name,
                range.start(),
                range.end()
            );
            report.add(Code::OutOfRange, self.span(), message);
            return None;
        }
        Some(duration)
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// Names for a sentence: `a`, `b` and `c`.
pub fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// A text from the file, short enough for a sentence. It ends with its line: after a lost quote, the next lines are not part of it
/// and may contain anything.
pub fn shorten(text: &str) -> String {
    let end = text
        .char_indices()
        .find(|(at, character)| *at >= 60 || character.is_control());
    end.map_or_else(|| text.to_owned(), |(at, _)| format!("{}…", &text[..at]))
}
