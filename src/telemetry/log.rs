//! The log on standard error: for people, or as JSON for machines; one line for each request. Ids and counts, never bodies.

use std::sync::Arc;

use tracing_subscriber::EnvFilter;

use crate::proxy::{Observer, Record, record};

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For people with a colour terminal.
    Coloured,
    /// One JSON object a line.
    Json,
}

/// Starts logging to standard error. `filter` is written as in `farebox=debug`; one that makes no sense becomes `default`.
pub fn start_logging(filter: Option<&str>, default: &str, format: LogFormat) {
    let (filter, unreadable) = match filter.map(EnvFilter::try_new) {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(default), Some(error)),
        None => (EnvFilter::new(default), None),
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let started = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init(),
        LogFormat::Text => lines.with_ansi(false).try_init(),
        LogFormat::Coloured => lines.with_ansi(true).try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging was already started");
    }
    if let Some(error) = unreadable {
        tracing::warn!(%error, "FAREBOX_LOG cannot be read; logging as if it were not set");
    }
}

/// Writes one line for each ended request.
#[derive(Debug, Default)]
pub struct RequestLog;

impl Observer for RequestLog {
    fn ended(&self, record: Arc<Record>) {
        if !tracing::enabled!(tracing::Level::INFO) {
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
            own_us = record.own_us,
            attempts = %record.attempts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            "request"
        );
    }
}
