//! Prompts seen before, as hashes of their prefixes: what a prompt cache would have kept.
//!
//! Bounded: the oldest prefixes are forgotten first. It holds hashes only, never text.

use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;

use farebox_ledger::lock;
use farebox_protocol::prompt::{BLOCK_CHARS, CHARS_PER_TOKEN};

/// Blocks remembered: about 4 million tokens.
const MOST: usize = 1 << 16;

/// Hashes of the prefixes of prompts.
#[derive(Default)]
pub(super) struct Memory(Mutex<SimulatedPrefixes>);

#[derive(Default)]
struct SimulatedPrefixes {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Memory {
    /// Tokens of the longest prefix seen before; remembers all of the prompt.
    pub(super) fn recall(&self, blocks: &[u64]) -> u64 {
        let mut seen = lock(&self.0);
        let found = blocks
            .iter()
            .take_while(|hash| seen.known.contains(hash))
            .count();
        for &hash in blocks.iter().skip(found).take(MOST) {
            if seen.known.insert(hash) {
                seen.order.push_back(hash);
            }
        }
        while seen.order.len() > MOST {
            if let Some(oldest) = seen.order.pop_front() {
                seen.known.remove(&oldest);
            }
        }
        u64::try_from(found).unwrap_or(0) * (BLOCK_CHARS / CHARS_PER_TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_counts_up_to_its_first_unknown_block() {
        let memory = Memory::default();
        assert_eq!(memory.recall(&[1, 2, 3]), 0);
        assert_eq!(memory.recall(&[1, 2, 9, 3]), 128);
        assert_eq!(memory.recall(&[]), 0);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let memory = Memory::default();
        let many: Vec<u64> = (0..u64::try_from(MOST).unwrap()).collect();
        memory.recall(&many);
        memory.recall(&[u64::MAX]);
        assert_eq!(memory.recall(&[0]), 0);
        assert_eq!(memory.recall(&[u64::MAX]), 64);
    }
}
