//! The only place that reads the wall clock and the system's randomness, for the programs that use the ledger.
//!
//! No operation calls it: they get instants and ids passed in, so that they can be repeated exactly. Reads do where there are grants, to
//! reckon in what time has done to them.
//!
//! Ids and seeds come from a ChaCha12 generator per thread, seeded by the system: nobody can predict them, and a request makes no
//! system call for them. Secrets come from the system itself.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::{CustomerId, KeyId, OperationId, Timestamp, TokenId};

/// Where the clock stands for a test; the lowest number where it runs.
#[cfg(feature = "reference")]
static STANDS_AT: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(i64::MIN);

/// Lets the clock of the whole process stand at an instant, so that a test can move it; `None` lets it run.
#[cfg(feature = "reference")]
pub fn stand_at(instant: Option<Timestamp>) {
    let at = instant.map_or(i64::MIN, Timestamp::millis);
    STANDS_AT.store(at, std::sync::atomic::Ordering::SeqCst);
}

/// The instant at which a test lets the clock stand.
#[cfg(feature = "reference")]
pub(crate) fn standing() -> Option<Timestamp> {
    let at = STANDS_AT.load(std::sync::atomic::Ordering::SeqCst);
    (at != i64::MIN).then_some(Timestamp::from_millis(at))
}

/// The instant that a database tells, in microseconds since 1970; a test's where it lets the clock stand.
pub(crate) fn of_database(micros: i64) -> i64 {
    #[cfg(feature = "reference")]
    if let Some(standing) = standing() {
        return standing.millis().saturating_mul(1_000);
    }
    micros
}

/// Now, by the wall clock.
pub fn now() -> Timestamp {
    #[cfg(feature = "reference")]
    if let Some(standing) = standing() {
        return standing;
    }
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
