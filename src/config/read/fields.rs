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

use crate::config::findings::code::Code;
use crate::config::findings::report::{ConfigFile, Finding, Placed, Report, Span};
use crate::config::findings::suggest::did_you_mean;
use crate::config::schema::{FORMER_LIMIT_FIELDS, FORMER_MODEL_FIELDS, LIMIT_FIELDS, MODEL_FIELDS};

/// The fields of one table.
#[derive(Debug)]
pub(crate) struct Fields<'r, 'i> {
    table: &'r DeTable<'i>,
    /// The header or opening of the table.
    pub(crate) span: Span,
    /// The thing that the table describes, for messages: ``model `x` ``.
    pub(crate) what: String,
    known: &'static [&'static str],
    /// Known fields that are present under another spelling, and are not also reported as missing.
    misspelt: Vec<&'static str>,
}

impl<'r, 'i> Fields<'r, 'i> {
    /// Opens a table and records every field that is not one of `known`.
    pub(crate) fn open(
        report: &mut Report<'_>,
        table: &'r DeTable<'i>,
        span: Span,
        what: impl Into<String>,
        known: &'static [&'static str],
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
            if !known.contains(&name) {
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
        if let Some(job) = former(known, name) {
            let span = Span::new(self.span.file, key.span());
            let message = format!("`{name}` of {} is no longer used", self.what);
            report.add(Code::FormerField, span, message).help(job);
            return;
        }
        let suggestion = if report.suggestions_left > 0 {
            did_you_mean(name, known).or_else(|| synonym(name, known))
        } else {
            None
        };
        let job = done_otherwise(name).filter(|_| suggestion.is_none());
        report.suggestions_left = report.suggestions_left.saturating_sub(1);
        self.misspelt.extend(suggestion);
        let dotted = matches!(value, DeValue::Table(_)) && self.what.starts_with("provider ");
        if dotted {
            // The rest of the provider is in the inner table.
            self.misspelt.extend(known);
        }
        let span = Span::new(self.span.file, key.span());
        let finding = report.add(
            Code::UnknownField,
            span,
            format!("unknown field `{}` in {}", shorten(name), self.what),
        );
        if let Some(known) = suggestion {
            finding.help(format!("did you mean `{known}`?"));
        } else if let Some(job) = job {
            finding.help(job);
        } else if let Some(file) = other_file(&self.what, name) {
            finding.help(format!(
                "`{name}` belongs in the other file, the {file}; if the two are swapped, see --catalog and --routes"
            ));
        } else if let Some(home) = home_of(name) {
            finding.help(format!("`{name}` belongs in `{home}`"));
        } else if dotted {
            finding.help("a dot in a table header starts a nested table; put the name in quotes: [provider.\"a.b\"]");
        } else {
            finding.help(format!("known fields are {}", listed(known)));
        }
    }

    pub(crate) fn get(&self, name: &'static str) -> Option<Entry<'r, 'i>> {
        debug_assert!(self.known.contains(&name), "the schema has no `{name}`");
        let (key, node) = self.table.get_key_value(name)?;
        Some(Entry {
            key: Span::new(self.span.file, key.span()),
            node,
            file: self.span.file,
            name,
        })
    }

    /// Whether a field is there under another spelling.
    pub(crate) fn misspells(&self, name: &str) -> bool {
        self.misspelt.contains(&name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Reads an optional field.
    pub(crate) fn optional<T>(
        &self,
        report: &mut Report<'_>,
        name: &'static str,
        read: impl FnOnce(Entry<'r, 'i>, &mut Report<'_>) -> Option<T>,
    ) -> Option<T> {
        read(self.get(name)?, report)
    }

    /// Reads a required field. `example` shows a complete line.
    pub(crate) fn required<T>(
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
pub(crate) struct Entry<'r, 'i> {
    /// The position of its name.
    pub(crate) key: Span,
    node: &'r Spanned<DeValue<'i>>,
    file: ConfigFile,
    /// The name of its field.
    pub(crate) name: &'static str,
}

impl<'r, 'i> Entry<'r, 'i> {
    pub(crate) fn span(&self) -> Span {
        Span::new(self.file, self.node.span())
    }

    pub(crate) fn node(&self) -> &'r DeValue<'i> {
        self.node.get_ref()
    }

    /// A value inside this one.
    pub(crate) fn member(&self, node: &'r Spanned<DeValue<'i>>) -> Self {
        Self {
            key: self.key,
            node,
            file: self.file,
            name: self.name,
        }
    }

    /// Records a wrong type.
    pub(crate) fn expected<'f>(&self, report: &'f mut Report<'_>, what: &str) -> &'f mut Finding {
        let found = type_name(self.node());
        report
            .add(
                Code::WrongType,
                self.span(),
                format!("`{}` must be {what}, not {found}", self.name),
            )
            .label(format!("expected {what}"))
    }

    pub(crate) fn text(self, report: &mut Report<'_>) -> Option<Placed<&'r str>> {
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
    pub(crate) fn printable(self, report: &mut Report<'_>, most: usize) -> Option<Placed<&'r str>> {
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

    pub(crate) fn boolean(self, report: &mut Report<'_>) -> Option<bool> {
        match self.node() {
            DeValue::Boolean(value) => Some(*value),
            _ => {
                self.expected(report, "true or false");
                None
            }
        }
    }

    pub(crate) fn integer(
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

    pub(crate) fn small(
        self,
        report: &mut Report<'_>,
        range: RangeInclusive<u32>,
    ) -> Option<Placed<u32>> {
        let wide = self.integer(report, u64::from(*range.start())..=u64::from(*range.end()))?;
        Some(Placed {
            value: u32::try_from(wide.value).ok()?,
            span: wide.span,
        })
    }

    /// The members of an array.
    pub(crate) fn list(self, report: &mut Report<'_>, of: &str) -> Option<Vec<Self>> {
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

    pub(crate) fn table(
        self,
        report: &mut Report<'_>,
        what: &str,
    ) -> Option<(&'r DeTable<'i>, Span)> {
        match self.node() {
            DeValue::Table(table) => Some((table, self.span())),
            _ => {
                self.expected(report, what);
                None
            }
        }
    }

    /// A table of known fields.
    pub(crate) fn fields(
        self,
        report: &mut Report<'_>,
        what: &str,
        known: &'static [&'static str],
    ) -> Option<Fields<'r, 'i>> {
        let (table, span) = self.table(report, "a table")?;
        Some(Fields::open(report, table, span, what, known))
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(
        self,
        report: &mut Report<'_>,
        words: &[(&str, T)],
    ) -> Option<Placed<T>> {
        let text = self.text(report)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.value) {
            return Some(Placed {
                value: *value,
                span: text.span,
            });
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
    pub(crate) fn duration(
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
                .help("write a whole number and a unit, in quotes: \"250ms\", \"5s\", \"2m\" or \"1h\"");
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

/// An optional field: `None` if it is present and wrong.
pub(crate) fn given<'r, 'i, T>(
    fields: &Fields<'r, 'i>,
    report: &mut Report<'_>,
    name: &'static str,
    read: impl FnOnce(Entry<'r, 'i>, &mut Report<'_>) -> Option<T>,
) -> Option<Option<T>> {
    match fields.get(name) {
        Some(value) => read(value, report).map(Some),
        None => Some(None),
    }
}

/// Our name for a field that other programs call differently.
fn synonym(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let meant = match name.to_ascii_lowercase().replace('-', "_").as_str() {
        "api_key" | "apikey" | "token" | "secret" | "password" => "key",
        "api_keys" | "tokens" => "keys",
        "url" | "endpoint" | "api_base" | "base" | "host" => "base_url",
        "families" | "protocols" | "dialects" => "speaks",
        "name" | "title" => "model",
        "id" => "slug",
        "path" | "family" => "best_path",
        "environments" => "best_environments",
        "prices" | "pricing" => "price",
        "abilities" | "features" => "capabilities",
        "concurrency" => "max_concurrent",
        "tpm" | "tokens_per_minute" => "max_tokens_per_minute",
        "retries" => "retry",
        "fallbacks" | "upstreams" => "targets",
        "prompt" => "input",
        "completion" => "output",
        "context_window" | "context_length" | "max_context" | "max_input_tokens" => "context",
        "max_tokens" | "max_output_tokens" | "max_completion_tokens" => "max_output",
        _ => return None,
    };
    known.contains(&meant).then_some(meant)
}

/// What does the job of a field that other programs have, where no field has its meaning or it is in another table.
fn done_otherwise(name: &str) -> Option<&'static str> {
    Some(match name {
        "context_window" | "context_length" | "max_context" | "max_input_tokens" => {
            "the size of a model's context is `context`, in its `limits`: limits = { context = 200_000, max_output = 64_000 }"
        }
        "max_tokens" | "max_output_tokens" | "max_completion_tokens" => {
            "the most output is `max_output`, in the `limits` of the model: limits = { context = 200_000, max_output = 64_000 }"
        }
        "weight" | "weights" | "priority" => {
            "targets are asked in their order, the next one when one fails; several accounts of one provider are its `keys`, each with a `weight`"
        }
        "cost" => {
            "what a target costs you stands in the target: targets = [ { provider = \"…\", model = \"…\", cost = { … } } ]"
        }
        _ => return None,
    })
}

/// What does the job of a field that the table had in earlier versions.
fn former(known: &[&str], name: &str) -> Option<&'static str> {
    let of_earlier = if known == MODEL_FIELDS {
        FORMER_MODEL_FIELDS
    } else if known == LIMIT_FIELDS {
        FORMER_LIMIT_FIELDS
    } else {
        return None;
    };
    let job = match name {
        "tokenizer" => {
            "leave it out: the vendor, which the target's `model` shows, decides how text is counted"
        }
        "hidden_speed" => {
            "leave it out: a hold depends on no speed any more; for what is charged where nobody counted, write `speed` in the target or its provider"
        }
        _ => {
            "leave it out: an answer whose request declares no limit may have `max_output`, or what the money buys"
        }
    };
    of_earlier.contains(&name).then_some(job)
}

/// The right file for a table that is in the wrong one.
fn other_file(what: &str, table: &str) -> Option<&'static str> {
    match (what, table) {
        ("the catalog", "provider" | "route") => Some("routes"),
        ("the routes file", "model" | "retired" | "shop") => Some("catalog"),
        _ => None,
    }
}

/// The right table for a known field that was written one level too high.
fn home_of(name: &str) -> Option<&'static str> {
    match name {
        "input" | "output" | "cache_read" | "cache_write" | "cache_write_1h"
        | "cache_write_12h" | "per_image" | "per_request" | "classes" | "tiers" => Some("price"),
        "context" | "max_output" | "max_reasoning" | "speed" | "image_bytes" | "picture_tokens"
        | "tools" => Some("limits"),
        "connect" | "first_byte" | "idle" | "whole" => Some("timeouts"),
        "failures" | "open" => Some("breaker"),
        "on_disconnect" | "targets" | "retry" | "breaker" => Some("[[route]]"),
        "base_url"
        | "speaks"
        | "key"
        | "keys"
        | "auth"
        | "headers"
        | "timeouts"
        | "max_concurrent"
        | "max_tokens_per_minute"
        | "probe_budget"
        | "limit"
        | "stops" => Some("[provider.NAME]"),
        _ => None,
    }
}

/// Names for a sentence: `a`, `b` and `c`.
pub(crate) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// A text from the file, short enough for a sentence. It ends with its line: after a lost quote, the next lines are not part of it
/// and may contain anything.
pub(crate) fn shorten(text: &str) -> String {
    let end = text
        .char_indices()
        .find(|(at, character)| *at >= 60 || character.is_control());
    end.map_or_else(|| text.to_owned(), |(at, _)| format!("{}…", &text[..at]))
}
