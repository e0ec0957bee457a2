//! Answers to requests of the admin API, kept for repetitions. Pure.

use crate::{OperationId, SecretHash, Timestamp, TokenId};

/// How long an answer is kept for repetitions, in milliseconds: a day.
const KEPT: i64 = 24 * 60 * 60 * 1_000;

/// The hash of who asked, path and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AnswerId(pub(crate) [u8; 32]);

/// An answer as it is stored: status and body, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    /// The HTTP status.
    pub status: u16,
    /// JSON, as it was sent the first time but for secrets.
    pub body: String,
}

/// An answer that is kept for repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptAnswer {
    pub(crate) id: AnswerId,
    pub(crate) token: Option<TokenId>,
    pub(crate) at: Timestamp,
    /// The operation that it answers: one that is applied again after a commit without an answer is no repetition.
    pub(crate) operation: Option<OperationId>,
    /// SHA-256 of the request's body.
    pub(crate) body: SecretHash,
    pub(crate) answer: ApiAnswer,
}

impl KeptAnswer {
    /// The newest instant of answers that are kept no longer.
    pub(crate) const fn forgotten(now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.millis().saturating_sub(KEPT))
    }
}
