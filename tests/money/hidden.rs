//! A model that reasons without showing it, as it is sold to keys of tests.

use crate::support::{CATALOG, Gateway, TestKey};

/// The catalog with a model that reasons; `speeds` are further limits.
pub(super) fn catalog(speeds: &str) -> String {
    CATALOG
        .replacen(
            "\"tools\", \"streaming\"]",
            "\"tools\", \"streaming\", \"reasoning\"]",
            1,
        )
        .replacen(
            "max_output = 64_000",
            &format!("max_output = 64_000{speeds}"),
            1,
        )
}

/// All that a key was charged, in picodollars.
pub(super) async fn charged(gateway: &Gateway, key: &TestKey) -> i64 {
    let charges = gateway.charges(key).await;
    charges.iter().map(|charge| -charge.amount.picos()).sum()
}
