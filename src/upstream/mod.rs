//! Room 4: calling out. The only room that knows reqwest; it knows nothing of money.
//!
//! [`Upstreams::dispatch`] tries the targets of a route in order and returns only after the first *frame* of a good answer (a
//! 200 can begin with an error), or the last failure. After that there is no retry: a customer never gets two beginnings.
//! Dropping an [`Answer`] closes the upstream connection at once.

use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::{Family, Frame, UpstreamError};

use crate::config::{Config, Route, Target};

/// Connections and health of every target; survives reloads for targets that did not change.
#[derive(Debug)]
pub struct Upstreams {}

/// One request to send somewhere.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Where it may go.
    pub route: &'a Route,
    /// The customer's family; only targets that speak it are tried.
    pub family: Family,
    /// Appended to the family's path (`/count_tokens`), usually empty.
    pub path_suffix: &'a str,
    /// Whether a stream is asked for.
    pub stream: bool,
}

/// A request as one target gets it, made by the caller for each try.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// The body.
    pub body: Bytes,
    /// Headers besides those of authentication and content type: lower-case name and value.
    pub headers: Vec<(String, Bytes)>,
}

/// A good answer, begun.
#[derive(Debug)]
pub struct Answer {
    /// Who answered.
    pub target: Target,
    /// What it said.
    pub content: AnswerContent,
}

/// Whole or streamed.
#[derive(Debug)]
pub enum AnswerContent {
    /// All of it.
    Whole(Bytes),
    /// Its first frame, already checked not to be an error, and the rest.
    Stream(Frame, FrameStream),
}

/// The frames of a running answer. Dropping it cancels the upstream call.
#[derive(Debug)]
pub struct FrameStream {}

impl FrameStream {
    /// The next frame, `None` at the end of the upstream's bytes.
    ///
    /// # Errors
    /// When the connection broke, went silent for the provider's idle limit, or sent a frame over the size limit.
    pub async fn next(&mut self) -> Result<Option<Frame>, StreamBroken> {
        unimplemented!()
    }
}

/// Why a running answer stopped arriving.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StreamBroken(pub String);

/// Why no target gave an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchError {
    /// The last target asked says that the customer's request is at fault (its 400 or 413), scrubbed of everything that
    /// identifies the provider's account.
    ClientFault {
        /// 400 or 413 (or 422, sent on as 400).
        status: u16,
        /// The upstream's wording.
        error: UpstreamError,
        /// Who said so.
        target: String,
    },
    /// The answer is not what was asked for or no target could be reached.
    NoTarget {
        /// For the log and metrics, never for the customer: one word each.
        attempts: Vec<Attempt>,
        /// When a breaker or an upstream names a time after which to come back.
        retry_after: Option<Duration>,
    },
}

/// One try that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// `provider/model`.
    pub target: String,
    /// What went wrong, in words for the operator's log. Never a secret.
    pub why: String,
}

impl Upstreams {
    /// Pools for every provider of a snapshot.
    ///
    /// # Errors
    /// When a client cannot be built.
    pub fn new(_config: &Config) -> Result<Self, String> {
        unimplemented!()
    }

    /// Follows a new snapshot: unchanged targets keep connections and health.
    pub fn reconcile(&self, _config: &Config) {
        unimplemented!()
    }

    /// Sends a request to the first target that answers.
    ///
    /// # Errors
    /// See [`DispatchError`].
    pub async fn dispatch(
        &self,
        _call: Call<'_>,
        _prepare: &(dyn Fn(&Target) -> Prepared + Send + Sync),
    ) -> Result<Answer, DispatchError> {
        unimplemented!()
    }
}
