//! Who of several gateways asks a target itself, and what another one found.

/// Who asks a target itself now, among the gateways that share a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeLease {
    /// This gateway.
    Ours,
    /// Another one; what it found last, if it has found anything.
    Theirs(Option<TargetFinding>),
}

/// What another gateway found when it asked a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFinding {
    /// Grows with each finding.
    pub number: i64,
    /// What it found, in the gateway's words.
    pub found: String,
    /// How many milliseconds ago it asked.
    pub asked_ms: i64,
    /// How many milliseconds ago it knew.
    pub found_ms: i64,
}
