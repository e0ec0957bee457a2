//! Counts text as another vendor's tokenizer would: by ours, corrected script by script with what was measured.
//!
//! The factors are in `protocol/src/scripts.rs`. Where none is known, the target's own counts correct ours.

use farebox_protocol::scripts::ModelTokenizer;

use super::tokenizer::tokens;

/// Counts text as a model does: by our tokenizer, corrected by what is known of its vendor's.
#[derive(Debug, Clone, Copy)]
pub struct TextCounter(ModelTokenizer);

impl TextCounter {
    /// As our tokenizer counts.
    pub const PLAIN: Self = Self(ModelTokenizer::Own);

    /// For a model of this upstream name.
    #[must_use]
    pub fn of(upstream_model: &str) -> Self {
        Self(ModelTokenizer::of(upstream_model))
    }

    /// Tokens of a text.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        match self.0 {
            ModelTokenizer::Of(vendor) if !text.is_ascii() => sum(vendor.cut(text)),
            ModelTokenizer::Own | ModelTokenizer::Of(_) | ModelTokenizer::Unknown => tokens(text),
        }
    }

    /// The most that the model's tokenizer makes of an honest text.
    #[must_use]
    pub fn most(self, text: &str) -> u64 {
        sum(self.0.cut_high(text))
    }
}

fn sum<'a>(pieces: impl Iterator<Item = (u64, &'a str)>) -> u64 {
    let counts = pieces.map(|(factor, run)| tokens(run).saturating_mul(factor).div_ceil(100));
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_its_upstream_name() {
        let source = |name| match TextCounter::of(name) {
            TextCounter(ModelTokenizer::Of(vendor)) => vendor.source(),
            TextCounter(ModelTokenizer::Own | ModelTokenizer::Unknown) => "",
        };
        assert!(source("anthropic/Claude-sonnet-4-5").contains("anthropic"));
        assert!(source("deepseek-r1-distill-llama-3.3-70b").contains("llama3"));
        assert!(source("deepseek-r1-distill-qwen-32b").contains("qwen"));
        assert_eq!((source("gpt-5.4"), source("mixtral-8x7b")), ("", ""));
    }

    /// Texts that were not measured for the factors, and what the vendors' tokenizers make of them (`bench/token_factors.py --fixture`).
    #[test]
    fn texts_count_as_the_vendors_public_tokenizers_count_them() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers");
        let counts = std::fs::read_to_string(folder.join("counts.json")).unwrap();
        let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
        let plain = TextCounter::PLAIN;
        for (language, by) in counts.as_object().unwrap() {
            let text = std::fs::read_to_string(folder.join(format!("{language}.txt"))).unwrap();
            let text = text.trim();
            assert_eq!(Some(plain.count(text)), by["o200k"].as_u64(), "{language}");
            for name in [
                "claude",
                "qwen",
                "mistral-small",
                "llama3",
                "llama4",
                "deepseek",
            ] {
                let truth = by[name.trim_end_matches("-small")].as_u64().unwrap();
                let counter = TextCounter::of(name);
                assert!(counter.most(text) >= truth, "{language} {name}");
                let share = counter.count(text) * 1_000 / truth;
                println!("| {language} | {name} | {share} ‰ |");
                assert!((880..=1_100).contains(&share), "{language} {name}: {share}");
            }
        }
    }

    #[test]
    fn latin_text_counts_as_ever() {
        let text = "Ordinary words, some code: let x = 5; naïve façade.";
        let (plain, claude) = (TextCounter::PLAIN, TextCounter::of("claude-sonnet-4-5"));
        assert_eq!(plain.count(text), claude.count(text));
    }
}
