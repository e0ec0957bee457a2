//! Request lines are what `tracing`'s own formatter makes of the same fields.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use farebox_ledger::{Amount, KeyId, OperationId, Timestamp, Usage};
use farebox_protocol::Family;
use proptest::prelude::*;
use tokio::time::Instant;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use super::*;
use crate::proxy::record::{self, Told};
use crate::proxy::{Failure, Origin, RefusedFacts};
use crate::upstream::{Attempt, FailureClass, redact};

/// 2026-11-25T19:05:16.000042Z.
const AT: i64 = 1_795_633_516_000_042;
const SHOWN: &str = "2026-11-25T19:05:16.000042Z";

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

struct ThatTime;

impl FormatTime for ThatTime {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        out.write_str(SHOWN)
    }
}

/// What `tracing` writes.
fn traced(record: &Record, format: LogFormat) -> String {
    let kept = Kept::default();
    let lines = tracing_subscriber::fmt()
        .with_writer(kept.clone())
        .with_target(false)
        .with_timer(ThatTime);
    let line = || traced_event(record);
    match format {
        LogFormat::Json => tracing::subscriber::with_default(
            lines
                .json()
                .flatten_event(true)
                .with_current_span(false)
                .with_span_list(false)
                .finish(),
            line,
        ),
        LogFormat::Text => tracing::subscriber::with_default(lines.with_ansi(false).finish(), line),
        LogFormat::Coloured => {
            tracing::subscriber::with_default(lines.with_ansi(true).finish(), line)
        }
    }
    let bytes = std::mem::take(&mut *kept.0.lock().unwrap());
    String::from_utf8(bytes).unwrap()
}

fn traced_event(record: &Record) {
    let key = record.key.map(|key| key.to_string()).unwrap_or_default();
    let client = record
        .origin
        .client
        .map(|client| client.to_string())
        .unwrap_or_default();
    let usage = record.usage;
    tracing::info!(
        request = %record::request_id(record.request_id),
        key = %key,
        client = %client,
        tls = record.origin.secure,
        slug = %record.slug,
        asked = %record.asked,
        family = record.family,
        target = %record.target,
        status = record.status,
        end = %record.end_reason,
        input = usage.input,
        cache_read = usage.cache_read,
        cache_write = usage.cache_written(),
        output = usage.output + usage.reasoning,
        class = record.class.as_deref(),
        charge = %record.charge,
        loss = %record.loss,
        exposure = record.exposure.is_positive().then(|| record.exposure.to_string()),
        cost = record.cost.map(|cost| cost.to_string()),
        first_byte_ms = record.first_byte_ms,
        total_ms = record.total_ms,
        own_us = record.own_us,
        code = record.told.as_ref().map(|told| told.code.as_str()),
        field = record.told.as_ref().map(|told| told.field.as_str()).filter(|field| !field.is_empty()),
        removed = (!record.removed.is_empty()).then_some(record.removed.as_str()),
        lost = (!record.lost.is_empty()).then_some(record.lost.as_str()),
        attempts = %record.attempts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        "request"
    );
}

fn written(record: &Record, format: LogFormat) -> String {
    let line = RequestLine {
        at_micros: AT,
        record: Arc::new(record.clone()),
    };
    let mut out = String::new();
    LineFormatter::new(format).append(&line, &mut out);
    out
}

/// With nothing that a record may leave out.
fn bare() -> Record {
    let id = OperationId::new(Timestamp::from_millis(AT / 1_000), 7);
    let refused = Record::refused(
        &Failure::Internal,
        Family::Messages,
        RefusedFacts::default(),
        id,
        Instant::now(),
        Origin::default(),
    );
    Record {
        told: None,
        ..refused
    }
}

fn any_record() -> impl Strategy<Value = Record> {
    // What a record holds is cleaned before, but the formats may not rely on that.
    let text = || prop_oneof![Just(String::new()), any::<String>(), "[a-z./-]{1,30}"];
    let texts = (text(), text(), text(), text(), text(), text(), text());
    let numbers = (
        any::<[u32; 6]>(),
        any::<[Option<u32>; 2]>(),
        100..600_u16,
        any::<bool>(),
    );
    let money = (any::<[i64; 3]>(), any::<Option<i64>>());
    let origin = (any::<Option<u64>>(), any::<Option<std::net::IpAddr>>());
    (texts, numbers, money, origin).prop_map(|(texts, numbers, money, origin)| {
        let (slug, asked, target, end_reason, code, removed, lost) = texts;
        let (counts, [first_byte_ms, own_us], status, secure) = numbers;
        let ([charge, loss, exposure], cost) = money;
        let [input, cache_read, cache_write, output, reasoning, total_ms] = counts;
        Record {
            key: origin.0.map(KeyId::from_random),
            origin: Origin {
                client: origin.1,
                secure,
            },
            slug,
            asked,
            target,
            status,
            end_reason,
            told: (!code.is_empty()).then(|| Told {
                field: lost.clone(),
                message: String::new(),
                code: code.clone(),
            }),
            usage: Usage {
                input: input.into(),
                cache_read: cache_read.into(),
                cache_write: cache_write.into(),
                output: output.into(),
                reasoning: reasoning.into(),
                ..Usage::default()
            },
            class: secure.then_some(Cow::Owned(code)),
            charge: Amount::from_picos(charge),
            loss: Amount::from_picos(loss),
            exposure: Amount::from_picos(exposure),
            cost: cost.map(Amount::from_picos),
            first_byte_ms,
            total_ms,
            own_us,
            removed,
            lost,
            ..bare()
        }
    })
}

proptest! {
    #[test]
    fn a_line_is_what_tracing_writes(record in any_record()) {
        for format in [LogFormat::Text, LogFormat::Coloured, LogFormat::Json] {
            prop_assert_eq!(written(&record, format), traced(&record, format));
        }
    }
}

#[test]
fn failed_attempts_stand_in_the_line_as_tracing_writes_them() {
    let mut record = bare();
    let attempt = Attempt {
        target: "acme/one".to_owned(),
        class: FailureClass::Broken,
        reason: redact::plain("a \"quoted\" reason"),
        worked: None,
    };
    record.attempts = vec![attempt.clone(), attempt];
    for format in [LogFormat::Text, LogFormat::Coloured, LogFormat::Json] {
        assert_eq!(written(&record, format), traced(&record, format));
    }
}

/// The second is kept from line to line; its fraction is not.
#[test]
fn the_time_is_written_to_the_microsecond() {
    let mut formatter = LineFormatter::new(LogFormat::Text);
    for (at_micros, shown) in [
        (AT, SHOWN),
        (AT + 1, "2026-11-25T19:05:16.000043Z"),
        (AT + 1_000_000, "2026-11-25T19:05:17.000042Z"),
        (AT, SHOWN),
        (-1, "1969-12-31T23:59:59.999999Z"),
    ] {
        let mut out = String::new();
        let record = Arc::new(bare());
        formatter.append(&RequestLine { at_micros, record }, &mut out);
        assert!(out.starts_with(&format!("{shown}  INFO request ")), "{out}");
    }
}
