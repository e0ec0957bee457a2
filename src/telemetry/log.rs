//! The log on standard error: for people, or as JSON for machines; one line for each request. Ids and counts, never bodies.

use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::EnvFilter;

use super::log_writer::{LogGuard, LogWriter};
use crate::proxy::{Observer, Record, record};

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

/// Starts logging to standard error. `filter` is written as in `farebox=debug`; an invalid one is replaced by `default`. The
/// guard writes the last lines when it is dropped.
pub fn start_logging(filter: Option<&str>, default: &str, format: LogFormat) -> LogGuard {
    let (filter, unreadable) = match filter.map(EnvFilter::try_new) {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(default), Some(error)),
        None => (EnvFilter::new(default), None),
    };
    let writer = LogWriter::start(std::io::stderr());
    let guard = writer.guard();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_target(false);
    // Drops a line that cannot be formatted: reporting that would itself need standard error.
    let lines = lines.log_internal_errors(false);
    let started = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init(),
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
    std::panic::set_hook(Box::new(|panic| tracing::error!("{}", panic.to_string().replace('\n', " "))));
    guard
}

/// Lines for requests without a key, in each window of a second.
const ANONYMOUS_LINES: u64 = 10;

/// Writes one line for each ended request. Requests without a valid key get at most 10 lines a second plus a count of the rest, so
/// that a stranger cannot fill the disk.
#[derive(Debug, Default)]
pub struct RequestLog {
    anonymous: Mutex<Window>,
}

/// Lines requested within one second.
#[derive(Debug, Default)]
struct Window {
    since: i64,
    asked: u64,
}

impl RequestLog {
    /// Whether a request gets a line.
    fn admits(&self, record: &Record) -> bool {
        if record.key.is_some() {
            return true;
        }
        let mut window = self.anonymous.lock().unwrap_or_else(PoisonError::into_inner);
        if record.at.millis().saturating_sub(window.since) >= 1_000 {
            let left_out = window.asked.saturating_sub(ANONYMOUS_LINES);
            *window = Window { since: record.at.millis(), asked: 0 };
            if left_out > 0 {
                tracing::info!(left_out, "more requests without a key");
            }
        }
        window.asked += 1;
        window.asked <= ANONYMOUS_LINES
    }
}

impl Observer for RequestLog {
    fn ended(&self, record: Arc<Record>) {
        if !tracing::enabled!(tracing::Level::INFO) || !self.admits(&record) {
            return;
        }
        let key = record.key.map(|key| key.to_string()).unwrap_or_default();
        let client = record.origin.client.map(|client| client.to_string()).unwrap_or_default();
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
            cache_write = usage.cache_write + usage.cache_write_1h,
            output = usage.output + usage.reasoning,
            charge = %record.charge,
            loss = %record.loss,
            exposure = record.exposure.is_positive().then(|| record.exposure.to_string()),
            cost = record.cost.map(|cost| cost.to_string()),
            first_byte_ms = record.first_byte_ms,
            total_ms = record.total_ms,
            own_us = record.own_us,
            lost = (!record.lost.is_empty()).then_some(record.lost.as_str()),
            attempts = %record.attempts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            "request"
        );
    }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{KeyId, OperationId, Timestamp};
    use farebox_protocol::Family;
    use tokio::time::Instant;

    use super::*;
    use crate::proxy::{Failure, Known, Origin};

    #[test]
    fn requests_without_a_key_are_written_ten_times_a_second() {
        let log = RequestLog::default();
        let record = |at: i64, key: Option<KeyId>| {
            let id = OperationId::new(Timestamp::from_millis(at), 1);
            let failure = Failure::Unauthenticated("no key was sent");
            let known = Known { key, ..Known::default() };
            let record = Record::refused(&failure, Family::Chat, known, id, Instant::now(), Origin::default());
            Record { at: Timestamp::from_millis(at), ..record }
        };
        let written = |at| (0..100).filter(|_| log.admits(&record(at, None))).count();
        assert_eq!((written(5_000), written(5_999), written(6_000)), (10, 0, 10));
        let key = Some(KeyId::from_random(1));
        assert!((0..100).all(|_| log.admits(&record(6_000, key))), "customers' requests are all written");
    }
}
