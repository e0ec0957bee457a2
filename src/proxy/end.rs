//! The ways an admitted request can end: what is charged, the reason, and the status the customer saw.
//!
//! The reason is what the upstream said or what the gateway did. Journal, log, receipt, console and dashboard use the same word.

use farebox_ledger::EndReason;
use farebox_protocol::StopReason;

use crate::metering::Ending;

/// How an admitted request ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) ending: Ending,
    pub(super) reason: EndReason,
    pub(super) status: u16,
}

impl End {
    /// The provider's stream broke.
    pub(super) const BROKEN: Self = Self {
        ending: Ending::Broken,
        reason: EndReason::UpstreamBroken,
        status: 200,
    };
    /// The provider blamed the customer's request in the stream, after it had already produced or counted something.
    pub(super) const REFUSED: Self = Self::cut(EndReason::UpstreamRefused);
    /// The provider's stream broke after a slow customer had kept us from reading it.
    pub(super) const UNREAD: Self = Self::cut(EndReason::UpstreamBroken);
    /// The customer left while the answer ran.
    pub(super) const CLIENT_GONE: Self = Self::cut(EndReason::ClientGone);
    /// The answer reached a stop string of the customer, which its target does not know: a leaving, as far as money goes.
    pub(super) const AT_STOP: Self = Self::cut(EndReason::Stop);
    /// The customer left before the first frame, which arrived later.
    pub(super) const LEFT_EARLY: Self = Self {
        ending: Ending::Cut,
        reason: EndReason::ClientGone,
        status: 499,
    };
    /// The customer left, and no answer ever began.
    pub(super) const NEVER_BEGUN: Self = Self::nothing(EndReason::ClientGone, 499);
    /// We closed the customer's connection, after `self` had been reached.
    pub(super) const fn closed_by_us(&self, begun: bool) -> Self {
        Self {
            ending: match self.ending {
                Ending::Nothing => Ending::Nothing,
                Ending::Complete | Ending::Cut | Ending::Broken | Ending::Lost => Ending::Lost,
            },
            reason: EndReason::GatewayClosed,
            status: if begun { 200 } else { 503 },
        }
    }

    /// The answer took longer than a request may.
    pub(super) const TOO_LONG: Self = Self::cut(EndReason::MaxDuration);
    /// The gateway died while the answer ran. Only checkpoints carry this reason.
    pub(super) const INTERRUPTED: Self = Self::cut(EndReason::Interrupted);

    /// A cut that is charged and yet shown to the customer as an error.
    pub(super) fn is_charged_error(&self) -> bool {
        *self == Self::REFUSED || *self == Self::UNREAD
    }

    /// The provider finished its answer; `None` if it gave no reason.
    pub(super) const fn complete(stop: Option<StopReason>) -> Self {
        Self {
            ending: Ending::Complete,
            reason: reason(stop),
            status: 200,
        }
    }

    /// Cut by us or by the customer while it ran.
    pub(super) const fn cut(reason: EndReason) -> Self {
        Self {
            ending: Ending::Cut,
            reason,
            status: 200,
        }
    }

    /// An answer began but is useless to the customer, so nothing is charged.
    pub(super) const fn lost(reason: EndReason, status: u16) -> Self {
        Self {
            ending: Ending::Lost,
            reason,
            status,
        }
    }

    /// Nothing was produced, so nothing is charged.
    pub(super) const fn nothing(reason: EndReason, status: u16) -> Self {
        Self {
            ending: Ending::Nothing,
            reason,
            status,
        }
    }
}

/// The journal's word for the upstream's stop reason.
const fn reason(stop: Option<StopReason>) -> EndReason {
    match stop {
        None | Some(StopReason::End) => EndReason::Stop,
        Some(StopReason::Length) => EndReason::Length,
        Some(StopReason::ToolCalls) => EndReason::ToolCalls,
        Some(StopReason::ContentFilter) => EndReason::ContentFilter,
        Some(StopReason::Refusal) => EndReason::Refusal,
        Some(StopReason::Pause) => EndReason::Pause,
        Some(StopReason::Other) => EndReason::Unnamed,
    }
}
