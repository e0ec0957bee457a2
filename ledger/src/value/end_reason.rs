//! Why a request ended, in the words that journal, log, receipt, console and dashboard share.
//!
//! The words are stable: scripts read them, and entries hash them. A word unknown to this program, from an older or newer version,
//! is kept as it is, so that the entry still loads and verifies.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! reasons {
    ($($(#[$doc:meta])+ $variant:ident = $word:literal;)+) => {
        /// Why a request ended.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
        pub enum EndReason {
            $($(#[$doc])+ $variant,)+
            /// A word that this program does not know.
            Other(Box<str>),
        }

        impl EndReason {
            /// Every named reason.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word that is stored and shown.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for EndReason {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.into()),
                }
            }
        }
    };
}

reasons! {
    /// The model ended its answer.
    #[default]
    Stop = "stop";
    /// The answer reached its output limit.
    Length = "length";
    /// The model asks for tool calls.
    ToolCalls = "tool_calls";
    /// The provider's filter ended the answer.
    ContentFilter = "content_filter";
    /// The model refused.
    Refusal = "refusal";
    /// The model paused in the middle of a turn and expects to be continued.
    Pause = "pause";
    /// The provider ended it for an unknown reason.
    Unnamed = "other";
    /// The customer left.
    ClientGone = "client_gone";
    /// The gateway closed the customer's connection.
    GatewayClosed = "gateway_closed";
    /// The key's money was used up.
    Balance = "balance";
    /// A cap of the key or its customer had no more room.
    Cap = "cap";
    /// The key was blocked, revoked or expired while the answer ran.
    KeyState = "key_state";
    /// The provider broke off.
    UpstreamBroken = "upstream_broken";
    /// The provider refused the request.
    UpstreamRefused = "upstream_refused";
    /// No provider could be reached.
    UpstreamUnavailable = "upstream_unavailable";
    /// It exceeded the longest time a request may run.
    MaxDuration = "max_duration";
    /// The request cannot be served.
    BadRequest = "bad_request";
    /// The request or its answer is too large.
    TooLarge = "request_too_large";
    /// The ledger could not be written.
    LedgerUnavailable = "ledger_unavailable";
    /// Too many bytes were in flight.
    Overloaded = "overloaded";
    /// A fault of the gateway.
    Internal = "internal";
    /// Used by checkpoints: the request was still running.
    Interrupted = "interrupted";
    /// Its hold was dropped before it was settled.
    Dropped = "dropped";
    /// The gateway died, and the next start ended the hold.
    Recovered = "recovered";
}

impl EndReason {
    /// Whether the answer reached the end that the model gave it.
    pub fn is_own_end(&self) -> bool {
        match self {
            Self::Stop
            | Self::Length
            | Self::ToolCalls
            | Self::ContentFilter
            | Self::Refusal
            | Self::Pause
            | Self::Unnamed => true,
            Self::ClientGone
            | Self::GatewayClosed
            | Self::Balance
            | Self::Cap
            | Self::KeyState
            | Self::UpstreamBroken
            | Self::UpstreamRefused
            | Self::UpstreamUnavailable
            | Self::MaxDuration
            | Self::BadRequest
            | Self::TooLarge
            | Self::LedgerUnavailable
            | Self::Overloaded
            | Self::Internal
            | Self::Interrupted
            | Self::Dropped
            | Self::Recovered
            | Self::Other(_) => false,
        }
    }
}

impl FromStr for EndReason {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(Self::from(word))
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl Serialize for EndReason {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EndReason {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input).map(|word| Self::from(word.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_its_reason_and_unknown_ones_are_kept() {
        for reason in EndReason::ALL {
            assert_eq!(&EndReason::from(reason.as_str()), reason);
            assert!(!matches!(
                EndReason::from(reason.as_str()),
                EndReason::Other(_)
            ));
        }
        for word in ["", "Stop", "a_word_of_another_time"] {
            let read: EndReason = serde_json::from_value(word.into()).unwrap();
            assert_eq!(
                (read.as_str(), &read),
                (word, &EndReason::Other(word.into()))
            );
        }
    }
}
