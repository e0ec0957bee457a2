//! Public tokenizers, for local counts.
//!
//! A vocabulary is loaded on first use, which takes 0.1 s, and counting is slow too: call this only on a blocking thread. The time
//! is linear in the length of any text.

use crate::config::Tokenizer;

impl Tokenizer {
    /// Tokens of a text.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        let tokenizer = match self {
            Self::O200k => bpe_vocabularies::o200k_base(),
            Self::Cl100k => bpe_vocabularies::cl100k_base(),
        };
        tokenizer.count(text) as u64
    }
}
