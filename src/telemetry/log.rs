//! The log on standard error: for people, or as JSON for machines; one line for each request. Ids and counts, never bodies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use farebox_ledger::{KeyId, clock, lock};
use tracing_subscriber::EnvFilter;

use super::log_writer::{LogGuard, LogWriter};
use super::request_line::{LogFormat, RequestLine};
use crate::proxy::{Observer, Record};

/// Starts logging to standard error. `filter` is written as in `farebox=debug`; an invalid one is replaced by `default`. The
/// guard writes the last lines when it is dropped.
pub fn start_logging(filter: Option<&str>, default: &str, format: LogFormat) -> LogGuard {
    let (filter, unreadable) = match filter.map(EnvFilter::try_new) {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(default), Some(error)),
        None => (EnvFilter::new(default), None),
    };
    let writer = LogWriter::start(std::io::stderr(), format);
    let guard = writer.guard();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_target(false);
    // Drops a line that cannot be formatted: reporting that would itself need standard error.
    let lines = lines.log_internal_errors(false);
    let started = match format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init(),
        LogFormat::Text => lines.with_ansi(false).try_init(),
        LogFormat::Coloured => lines.with_ansi(true).try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging was already started");
    }
    if let Some(error) = unreadable {
        tracing::warn!(%error, "FAREBOX_LOG is not a valid filter; it is ignored");
    }
    // The standard hook writes to standard error directly, and would block there in the middle of a request.
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("{}", panic.to_string().replace('\n', " "))
    }));
    guard
}

/// Lines for the refused requests of one key, or of all strangers, in each window of a second.
const REFUSED_LINES: u64 = 10;

/// Writes one line for each request for which money was held, and some for refused ones.
#[derive(Debug)]
pub struct RequestLog {
    refused: RefusedLines,
    writer: LogWriter,
}

impl LogGuard {
    /// The log of requests, in this log.
    pub fn requests(&self) -> RequestLog {
        RequestLog {
            refused: RefusedLines::default(),
            writer: self.0.clone(),
        }
    }
}

/// Refused requests cost nothing, so of each key's, and of those without a key, at most 10 a second get a line; the rest is counted.
/// Otherwise a stranger or a key without money could fill the disk.
#[derive(Debug, Default)]
struct RefusedLines(Mutex<Window>);

/// Requests refused within one second.
#[derive(Debug, Default)]
struct Window {
    since: i64,
    asked: HashMap<Option<KeyId>, u64>,
}

impl RefusedLines {
    /// Whether a request gets a line.
    fn admits(&self, record: &Record) -> bool {
        let was_refused = !record.message.is_empty();
        if !was_refused {
            return true;
        }
        let mut window = lock(&self.0);
        if record.at.millis().saturating_sub(window.since) >= 1_000 {
            let left_out: u64 = window
                .asked
                .values()
                .map(|asked| asked.saturating_sub(REFUSED_LINES))
                .sum();
            *window = Window {
                since: record.at.millis(),
                asked: HashMap::new(),
            };
            if left_out > 0 {
                tracing::info!(left_out, "more refused requests");
            }
        }
        let asked = window.asked.entry(record.key).or_default();
        *asked += 1;
        *asked <= REFUSED_LINES
    }
}

impl Observer for RequestLog {
    fn ended(&self, record: Arc<Record>) {
        if tracing::enabled!(tracing::Level::INFO) && self.refused.admits(&record) {
            let at_micros = clock::micros();
            self.writer.request(RequestLine { at_micros, record });
        }
    }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{OperationId, Timestamp};
    use farebox_protocol::Family;
    use tokio::time::Instant;

    use super::*;
    use crate::proxy::{Failure, Origin, RefusedFacts};

    #[test]
    fn refused_requests_of_a_key_or_of_nobody_are_written_ten_times_a_second() {
        let log = RefusedLines::default();
        let record = |at: i64, key: Option<KeyId>| {
            let id = OperationId::new(Timestamp::from_millis(at), 1);
            let failure = Failure::Unauthenticated("no key was sent");
            let known = RefusedFacts {
                key,
                ..RefusedFacts::default()
            };
            let record = Record::refused(
                &failure,
                Family::Chat,
                known,
                id,
                Instant::now(),
                Origin::default(),
            );
            Record {
                at: Timestamp::from_millis(at),
                ..record
            }
        };
        let written = |at, key| (0..100).filter(|_| log.admits(&record(at, key))).count();
        let (ann, bob) = (Some(KeyId::from_random(1)), Some(KeyId::from_random(2)));
        assert_eq!(
            (
                written(5_000, None),
                written(5_999, None),
                written(6_000, None)
            ),
            (10, 0, 10)
        );
        assert_eq!(
            (
                written(6_000, ann),
                written(6_001, bob),
                written(6_002, ann),
                written(7_000, ann)
            ),
            (10, 10, 0, 10)
        );
        let held = Record {
            message: String::new(),
            ..record(7_000, ann)
        };
        assert!(
            (0..100).all(|_| log.admits(&held)),
            "requests for which money was held are all written"
        );
    }
}
