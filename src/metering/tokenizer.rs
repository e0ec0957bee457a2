//! Public tokenizers, for counts that no provider made.
//!
//! A vocabulary is read on first use, which takes a tenth of a second, and counting takes longer than anything else here: call
//! this only on a thread that nobody waits for. The work is linear in the text, whatever the text.

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
