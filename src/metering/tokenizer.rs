//! The public tokenizer, for local counts.
//!
//! Its vocabulary is loaded on first use, which takes 0.1 s, and counting is slow too: call this only on a blocking thread. The time
//! is linear in the length of any text.

pub(super) fn tokens(text: &str) -> u64 {
    bpe_vocabularies::o200k_base().count(text) as u64
}
