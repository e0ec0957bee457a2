//! The ways an admitted request can end: what is charged, the reason, and the status the customer saw.
//!
//! The reason is the true one: what the upstream said, or what was done here. It is the same word in the journal, the log, the
//! receipt, the console and the page.

use farebox_protocol::Stop;

use crate::metering::Ending;

/// How an admitted request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) ending: Ending,
    pub(super) reason: &'static str,
    pub(super) status: u16,
}

impl End {
    /// The provider's stream broke.
    pub(super) const BROKEN: Self = Self { ending: Ending::Broken, reason: "upstream_broken", status: 200 };
    /// The provider says in the stream that the customer's request is at fault, after it had already produced or counted something.
    pub(super) const REFUSED: Self = Self::cut("upstream_refused");
    /// The provider's stream broke after the customer had kept us from reading it.
    pub(super) const UNREAD: Self = Self::cut("upstream_broken");
    /// The customer left while the answer ran.
    pub(super) const CLIENT_GONE: Self = Self::cut("client_gone");
    /// The customer left before the first frame, which arrived later.
    pub(super) const LEFT_EARLY: Self = Self { ending: Ending::Cut, reason: "client_gone", status: 499 };
    /// The customer left, and no answer ever began.
    pub(super) const NEVER_BEGUN: Self = Self::nothing("client_gone", 499);
    /// The answer took longer than a request may.
    pub(super) const TOO_LONG: Self = Self::cut("max_duration");
    /// The gateway died while the answer ran. Only checkpoints carry this reason.
    pub(super) const INTERRUPTED: Self = Self::cut("interrupted");

    /// Whether the customer gets an error, however the request is charged.
    pub(super) fn is_error(self) -> bool {
        self == Self::REFUSED || self == Self::UNREAD
    }

    /// The provider finished its answer; `None` if it gave no reason.
    pub(super) const fn complete(stop: Option<Stop>) -> Self {
        Self { ending: Ending::Complete, reason: reason(stop), status: 200 }
    }

    /// Cut by us or by the customer while it ran.
    pub(super) const fn cut(reason: &'static str) -> Self {
        Self { ending: Ending::Cut, reason, status: 200 }
    }

    /// An answer had begun that is of no use to the customer, so nothing is charged.
    pub(super) const fn lost(reason: &'static str, status: u16) -> Self {
        Self { ending: Ending::Lost, reason, status }
    }

    /// Nothing was made, so nothing is charged.
    pub(super) const fn nothing(reason: &'static str, status: u16) -> Self {
        Self { ending: Ending::Nothing, reason, status }
    }
}

/// The journal's word for the upstream's stop reason.
const fn reason(stop: Option<Stop>) -> &'static str {
    match stop {
        None | Some(Stop::End) => "stop",
        Some(Stop::Length) => "length",
        Some(Stop::ToolCalls) => "tool_calls",
        Some(Stop::ContentFilter) => "content_filter",
        Some(Stop::Refusal) => "refusal",
        Some(Stop::Pause) => "pause",
        Some(Stop::Other) => "other",
    }
}
