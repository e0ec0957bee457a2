//! Which gateway of a fleet asks a target itself, and who keeps what asking costs: the ledger, which this room does not know.
//!
//! One gateway asks at a time. The others use what it found as if they had asked, but for connections: each has its own network.

use std::time::Duration;

use farebox_ledger::Amount;

use super::classify::TargetFault;
use super::probing::ProbeVerdict;

/// Decides which gateway may ask.
pub trait Referee: Send + Sync + 'static {
    /// Whether this gateway may ask a target (`provider/model`) at a place of it; `None` if that cannot be told now.
    fn lease(&self, target: &str, place: &str) -> impl Future<Output = Option<Lease>> + Send;

    /// Tells the other gateways what was found at a place.
    fn tell(&self, place: &str, found: &str) -> impl Future<Output = ()> + Send;

    /// Adds what a request to a target cost to the operator's books.
    fn paid(&self, target: &str, cost: Amount) -> impl Future<Output = ()> + Send;
}

/// Who may ask now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// This gateway.
    Ours {
        /// What the requests of all gateways to this target have cost today.
        spent: Amount,
    },
    /// Another gateway's; what it found last, if it has found anything.
    Theirs(Option<Heard>),
}

/// What another gateway found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Grows with each finding.
    pub number: i64,
    /// As it was told.
    pub found: String,
    /// How long ago it asked.
    pub asked: Duration,
    /// How long ago it knew.
    pub known: Duration,
}

/// What a finding is called; `None` if it says nothing to others.
pub(super) fn words(verdict: ProbeVerdict) -> Option<String> {
    match verdict {
        ProbeVerdict::Passed => Some("passed".to_owned()),
        ProbeVerdict::Accepted => Some("accepted".to_owned()),
        ProbeVerdict::Unasked => Some("unasked".to_owned()),
        ProbeVerdict::Failed(TargetFault {
            unreachable: false,
            rest,
        }) => {
            let rest = rest.unwrap_or_default().as_millis();
            Some(format!("failed {rest}"))
        }
        ProbeVerdict::Failed(_)
        | ProbeVerdict::Reached
        | ProbeVerdict::Listed
        | ProbeVerdict::Nothing => None,
    }
}

/// The finding of these words; `None` if a later version uses others.
pub(super) fn verdict(words: &str) -> Option<ProbeVerdict> {
    match words.split_once(' ') {
        None if words == "passed" => Some(ProbeVerdict::Passed),
        None if words == "accepted" => Some(ProbeVerdict::Accepted),
        None if words == "unasked" => Some(ProbeVerdict::Unasked),
        Some(("failed", rest)) => {
            let rest = Duration::from_millis(rest.parse().ok()?);
            Some(ProbeVerdict::Failed(TargetFault {
                unreachable: false,
                rest: Some(rest).filter(|rest| !rest.is_zero()),
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_understood_by_other_gateways() {
        let failed = |unreachable, rest| ProbeVerdict::Failed(TargetFault { unreachable, rest });
        let rest = Some(Duration::from_millis(1_500));
        for told in [
            ProbeVerdict::Passed,
            ProbeVerdict::Accepted,
            ProbeVerdict::Unasked,
            failed(false, None),
            failed(false, rest),
        ] {
            assert_eq!(verdict(&words(told).unwrap()), Some(told));
        }
        for own in [
            ProbeVerdict::Nothing,
            ProbeVerdict::Reached,
            ProbeVerdict::Listed,
            failed(true, rest),
        ] {
            assert_eq!(words(own), None);
        }
        for unknown in ["", "passed 1", "failed", "failed x", "rested"] {
            assert_eq!(verdict(unknown), None, "{unknown:?}");
        }
    }
}
