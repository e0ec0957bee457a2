//! Token classes and the law that makes them disjoint.
//!
//! A [`WireUsage`] is what an upstream wrote, field by field; [`WireUsage::reading`] turns it into disjoint counts. One reader
//! for each family fills it, from the upstream's own frames.

/// Disjoint counts: no token is in two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Fresh input: neither read from nor written to a cache.
    pub input: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache for the default time.
    pub cache_write: u64,
    /// Input written to a cache for one hour.
    pub cache_write_1h: u64,
    /// Output that is not reasoning.
    pub output: u64,
    /// Reasoning.
    pub reasoning: u64,
}

/// What the upstream said, merged over frames. `None`: never said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WireUsage {
    /// Input as the family counts it.
    pub input: Option<u64>,
    /// Read from a cache.
    pub cache_read: Option<u64>,
    /// Written to a cache, all durations.
    pub cache_write: Option<u64>,
    /// Of which for one hour.
    pub cache_write_1h: Option<u64>,
    /// Output as the family counts it.
    pub output: Option<u64>,
    /// Reasoning.
    pub reasoning: Option<u64>,
    /// Whether `input` contains the cached classes (chat and responses) or stands beside them (messages).
    pub input_is_total: bool,
    /// Some count was not a non-negative integer.
    pub malformed: bool,
}

/// A usage that can be priced, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The upstream never said how much output there was.
    Missing,
    /// Disjoint counts.
    Counted(Usage),
    /// A negative or fractional count, or cached above prompt.
    Absurd,
}

impl WireUsage {
    /// Takes over what a later frame says.
    pub fn merge(&mut self, later: &Self) {
        let _ = later;
    }

    /// Disjoint counts, or why there are none. `reasoning_outside`: the provider counts reasoning beside its output.
    #[must_use]
    pub fn reading(&self, reasoning_outside: bool) -> Reading {
        let _ = reasoning_outside;
        Reading::Missing
    }
}
