//! What keys have observed about a target: the last vote of each, and the median of all.
//!
//! One key has one vote, so that no single key decides what others are charged. Pure.

use std::collections::VecDeque;

/// Keys whose votes are remembered.
const VOTERS: usize = 101;

/// The last vote of each key, the newest at the end.
#[derive(Debug, Clone, Default)]
pub struct Votes(VecDeque<(u64, u64)>);

impl Votes {
    /// Records a key's vote in place of its last one.
    pub fn cast(&mut self, voter: u64, vote: u64) {
        self.0.retain(|(other, _)| *other != voter);
        if self.0.len() == VOTERS {
            self.0.pop_front();
        }
        self.0.push_back((voter, vote));
    }

    /// The median of all votes; `None` while fewer than `quorum` keys have voted.
    #[must_use]
    pub fn middle(&self, quorum: usize) -> Option<u64> {
        if self.0.len() < quorum {
            return None;
        }
        let mut votes: Vec<u64> = self.0.iter().map(|(_, vote)| *vote).collect();
        votes.sort_unstable();
        votes.get(votes.len() / 2).copied()
    }
}
