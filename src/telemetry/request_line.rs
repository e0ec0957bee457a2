//! The line of an ended request: byte for byte what `tracing`'s own formatter makes of the same fields (`tests` compares them).
//!
//! Every request has one, so it is written by hand, on the log's thread, without an event and a visitor for each field.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use farebox_ledger::Timestamp;

use crate::proxy::Record;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For people with a colour terminal.
    Coloured,
    /// One JSON object a line.
    Json,
}

/// An ended request on its way to the log.
#[derive(Debug)]
pub(super) struct RequestLine {
    /// When it was handed over, in µs since 1970.
    pub(super) at_micros: i64,
    pub(super) record: Arc<Record>,
}

/// Writes request lines, one after the other.
#[derive(Debug)]
pub(super) struct LineFormatter {
    format: LogFormat,
    /// The second of the last line, and how it is written.
    second: (i64, String),
}

impl LineFormatter {
    pub(super) const fn new(format: LogFormat) -> Self {
        Self {
            format,
            second: (i64::MIN, String::new()),
        }
    }

    /// Appends the line with its line feed.
    pub(super) fn append(&mut self, line: &RequestLine, out: &mut String) {
        let at = line.at_micros;
        let second = at.div_euclid(1_000_000);
        if self.second.0 != second {
            let mut shown = Timestamp::from_millis(second.saturating_mul(1_000)).to_string();
            shown.truncate(shown.len().saturating_sub(".000Z".len()));
            self.second = (second, shown);
        }
        let at = format_args!("{}.{:06}Z", self.second.1, at.rem_euclid(1_000_000));
        // Writing to a string cannot fail.
        let _ = match self.format {
            LogFormat::Json => write!(
                out,
                r#"{{"timestamp":"{at}","level":"INFO","message":"request""#
            ),
            LogFormat::Text => write!(out, "{at}  INFO request"),
            LogFormat::Coloured => {
                write!(out, "\x1b[2m{at}\x1b[0m \x1b[32m INFO\x1b[0m request")
            }
        };
        match self.format {
            LogFormat::Json => fields(&line.record, &mut JsonFields(out)),
            LogFormat::Text => fields(&line.record, &mut TextFields(out, ["", "="])),
            LogFormat::Coloured => fields(
                &line.record,
                &mut TextFields(out, ["\x1b[3m", "\x1b[0m\x1b[2m=\x1b[0m"]),
            ),
        }
        out.push_str(match self.format {
            LogFormat::Json => "}\n",
            LogFormat::Text | LogFormat::Coloured => "\n",
        });
    }
}

/// How a format writes a field.
trait LineFields {
    /// As it displays itself.
    fn shown(&mut self, name: &str, value: impl Display);
    /// A text between quotes.
    fn quoted(&mut self, name: &str, value: &str);
    /// A number or a truth value.
    fn bare(&mut self, name: &str, value: impl Display);
}

/// The fields of the line, in their order.
fn fields(record: &Record, out: &mut impl LineFields) {
    let usage = &record.usage;
    out.shown("request", format_args!("req_{}", record.request_id));
    match record.key {
        Some(key) => out.shown("key", key),
        None => out.shown("key", ""),
    }
    match record.origin.client {
        Some(client) => out.shown("client", client),
        None => out.shown("client", ""),
    }
    out.bare("tls", record.origin.secure);
    out.shown("slug", &record.slug);
    out.shown("asked", &record.asked);
    out.quoted("family", record.family);
    out.shown("target", &record.target);
    out.bare("status", record.status);
    out.shown("end", &record.end_reason);
    out.bare("input", usage.input);
    out.bare("cache_read", usage.cache_read);
    out.bare("cache_write", usage.cache_written());
    out.bare("output", usage.all_output());
    if let Some(class) = &record.class {
        out.quoted("class", class);
    }
    out.shown("charge", record.charge);
    out.shown("loss", record.loss);
    if record.exposure.is_positive() {
        out.quoted("exposure", &record.exposure.to_string());
    }
    if let Some(cost) = record.cost {
        out.quoted("cost", &cost.to_string());
    }
    if let Some(first_byte) = record.first_byte_ms {
        out.bare("first_byte_ms", first_byte);
    }
    out.bare("total_ms", record.total_ms);
    if let Some(own) = record.own_us {
        out.bare("own_us", own);
    }
    if let Some(told) = &record.told {
        out.quoted("code", &told.code);
        if !told.field.is_empty() {
            out.quoted("field", &told.field);
        }
    }
    if !record.removed.is_empty() {
        out.quoted("removed", &record.removed);
    }
    if !record.lost.is_empty() {
        out.quoted("lost", &record.lost);
    }
    if record.attempts.is_empty() {
        out.shown("attempts", "");
    } else {
        let attempts: Vec<_> = record.attempts.iter().map(ToString::to_string).collect();
        out.shown("attempts", attempts.join("; "));
    }
}

/// For people: what stands before a name, and between it and the value.
struct TextFields<'a>(&'a mut String, [&'static str; 2]);

impl TextFields<'_> {
    fn name(&mut self, name: &str) {
        let [before, between] = self.1;
        for part in [" ", before, name, between] {
            self.0.push_str(part);
        }
    }
}

impl LineFields for TextFields<'_> {
    fn shown(&mut self, name: &str, value: impl Display) {
        self.name(name);
        let _ = write!(self.0, "{value}");
    }

    fn quoted(&mut self, name: &str, value: &str) {
        self.name(name);
        let _ = write!(self.0, "{value:?}");
    }

    fn bare(&mut self, name: &str, value: impl Display) {
        self.shown(name, value);
    }
}

/// For machines.
struct JsonFields<'a>(&'a mut String);

impl JsonFields<'_> {
    fn name(&mut self, name: &str) {
        for part in [",\"", name, "\":"] {
            self.0.push_str(part);
        }
    }
}

impl LineFields for JsonFields<'_> {
    fn shown(&mut self, name: &str, value: impl Display) {
        self.name(name);
        let begin = self.0.len();
        let _ = write!(self.0, "\"{value}\"");
        // Ids, amounts and addresses have nothing to escape; names that customers and operators chose may.
        let plain = |text: &str| {
            text.bytes()
                .all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\'))
        };
        let end = self.0.len().saturating_sub(1);
        if let Some(text) = self.0.get(begin.saturating_add(1)..end)
            && !plain(text)
        {
            let text = text.to_owned();
            self.0.truncate(begin);
            self.0.push_str(&escaped(&text));
        }
    }

    fn quoted(&mut self, name: &str, value: &str) {
        self.shown(name, value);
    }

    fn bare(&mut self, name: &str, value: impl Display) {
        self.name(name);
        let _ = write!(self.0, "{value}");
    }
}

fn escaped(text: &str) -> String {
    // A string is always written.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
#[path = "request_line_tests.rs"]
mod tests;
