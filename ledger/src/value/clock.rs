//! The only place that reads the wall clock and the system's randomness, for the programs that use the ledger.
//!
//! The ledger itself never calls it: operations get instants and ids passed in, so that they can be repeated exactly.
//!
//! Ids and seeds come from a ChaCha12 generator per thread, seeded by the system: nobody can predict them, and a request makes no
//! system call for them. Secrets come from the system itself.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::{CustomerId, KeyId, OperationId, Timestamp, TokenId};

/// Now, by the wall clock.
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Now, in microseconds since 1970, for logs.
pub fn micros() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A fresh id for an operation or request.
pub fn operation_id() -> OperationId {
    OperationId::new(now(), rand::random())
}

/// A fresh public key id.
pub fn key_id() -> KeyId {
    KeyId::from_random(rand::random())
}

/// A fresh public customer id.
pub fn customer_id() -> CustomerId {
    CustomerId::from_random(rand::random())
}

/// A fresh public token id.
pub fn token_id() -> TokenId {
    TokenId::from_random(rand::random())
}

/// A fresh random seed, so that a customer cannot predict which parts of a text are sampled.
pub fn seed() -> u64 {
    rand::random()
}

/// Random bytes for secrets. A machine without randomness cannot create keys, so there is no fallback.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(
        clippy::expect_used,
        reason = "a system without randomness cannot make unguessable secrets"
    )]
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}
