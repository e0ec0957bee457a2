//! What operators see of the traffic: a log line, counters and the last requests, all built from one [`Record`] per request.
//!
//! It observes and decides nothing. Ids and counts only: no body, no secret, and no customer's text as a label.

pub mod alerts;
mod drift;
mod exposition;
mod live;
mod log;
mod log_writer;
mod metrics;
mod miscounts;
mod oddities;
mod recent;
mod request_line;
mod strange;
mod told_costs;
pub mod webhooks;

use std::sync::Arc;

pub use drift::{Drift, DriftingField};
pub use exposition::{Exposition, seconds};
pub use live::{LiveFollower, LiveRing};
pub use log::{RequestLog, start_logging};
pub use log_writer::{LogGuard, last_words, lost_lines};
pub use metrics::Metrics;
pub use miscounts::{Breaking, Miscounting, Miscounts};
pub use oddities::Oddities;
pub use recent::{REMEMBERED, Recent};
pub use request_line::LogFormat;
pub use strange::StrangeMembers;
pub use told_costs::ToldCosts;

use crate::proxy::{Observer, Record};

/// Everything kept about ended requests.
#[derive(Debug, Default)]
pub struct Telemetry {
    /// Counters since the start.
    pub metrics: Metrics,
    /// What the operator should know now.
    pub alerts: alerts::Board,
    /// How webhooks are doing.
    pub webhooks: webhooks::WebhookBoard,
    /// What targets count at the end of answers.
    pub miscounts: Miscounts,
    /// What targets serve otherwise than they were asked.
    pub oddities: Oddities,
    /// What answers told of their cost.
    pub told_costs: ToldCosts,
    /// What customers do not see of answers.
    pub strange: StrangeMembers,
    /// Which fields customers send that are not served.
    pub drift: Drift,
    /// The last requests, to be found by their ids.
    pub recent: Recent,
    /// The last requests, and each new one.
    pub live: LiveRing,
}

impl Observer for Telemetry {
    fn ended(&self, record: Arc<Record>) {
        self.metrics.note(&record);
        self.miscounts.note(&record);
        self.oddities.note(&record);
        self.told_costs.note(&record);
        self.strange.note(&record);
        self.drift.note(&record);
        self.recent.note(&record);
        self.live.push(record);
    }
}
