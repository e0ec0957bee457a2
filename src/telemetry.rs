//! What operators see of the traffic: one log line for each request. Ids and counts, never bodies, never secrets.

use tracing_subscriber::EnvFilter;

use crate::proxy::{Observer, Record, record};

/// Starts logging to standard error. `FAREBOX_LOG` sets the filter, as in `FAREBOX_LOG=farebox=debug`.
pub fn start_logging(default_level: &str) {
    let filter = EnvFilter::try_from_env("FAREBOX_LOG").unwrap_or_else(|_| EnvFilter::new(default_level));
    let started = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).try_init();
    if started.is_err() {
        tracing::debug!("logging was already started");
    }
}

/// Writes one line for each ended request.
#[derive(Debug, Default)]
pub struct RequestLog;

impl Observer for RequestLog {
    fn ended(&self, record: Record) {
        let key = record.key.map(|key| key.to_string()).unwrap_or_default();
        let usage = record.usage;
        tracing::info!(
            request = %record::request_id(record.request_id),
            key = %key,
            slug = %record.slug,
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
            first_byte_ms = record.first_byte_ms,
            total_ms = record.total_ms,
            attempts = %record.attempts.join("; "),
            "request"
        );
    }
}
