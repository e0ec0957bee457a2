//! Estimates how many tokens a tokenizer makes of a text.
//!
//! Tokenizers cut where the kind of character changes, and cut long runs again. So every character weighs by its class, and more at
//! the start of a run. The weights were fitted to public tokenizers over many kinds of text (`bench/estimate`) and are slightly
//! high. Text is read in its JSON form. Long requests are only sampled, because reading all of them would cost more than it gains.
//! A secret seed places the samples, so nobody can write a text in which only the light parts are read.

use std::fmt;
use std::ops::Range;

/// Weight of one token.
const TOKEN: u64 = 64;
/// The first bytes of a request are all read.
const WHOLE: u64 = 1_024;
/// Of what follows, `SAMPLE` bytes in every `STRIDE` stand for all, at a random place in each.
const STRIDE: u64 = 256;
const SAMPLE: u64 = 16;
/// From here on one in every `LONG_STRIDE`: the more samples there are already, the less another one tells.
const MANY: u64 = 32 * 1_024;
const LONG_STRIDE: u64 = 1_024;
/// Weight of one byte of text that cannot be read: one token per 3.5 bytes.
const UNREAD: u64 = 18;
/// Characters of sealed reasoning per token.
const SEALED: u64 = 6;

/// The weight of one request's text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    weight: u64,
    /// Bytes weighed or skipped.
    seen: u64,
    /// Where the next stride begins, and the sample of this one; both count as `seen` does.
    stride: u64,
    sample: u64,
    /// Of this stride.
    length: u64,
    state: u64,
}

impl Weight {
    /// Starts at zero; the seed places the samples.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut state = seed;
        // The first stride begins at a random offset, so that every byte has the same chance of being sampled.
        let stride = WHOLE - random(&mut state) % STRIDE;
        let sample = stride + random(&mut state) % (STRIDE - SAMPLE + 1);
        Self {
            weight: 0,
            seen: 0,
            stride: stride + STRIDE,
            sample,
            length: STRIDE,
            state,
        }
    }

    /// The estimated number of tokens.
    pub fn tokens(&self) -> u64 {
        self.weight.div_ceil(TOKEN)
    }

    /// Adds text in its JSON form.
    pub fn add(&mut self, text: &str) {
        let begin = self.seen;
        let end = begin + text.len() as u64;
        self.seen = end;
        if begin < WHOLE {
            self.read(text, begin, begin..end.min(WHOLE), 1);
        }
        while self.sample < end {
            let behind = self.sample + SAMPLE;
            self.read(
                text,
                begin,
                self.sample.max(begin).max(WHOLE)..behind.min(end),
                self.length / SAMPLE,
            );
            if behind > end {
                return;
            }
            if self.stride >= MANY {
                self.length = LONG_STRIDE;
            }
            self.sample = self.stride + random(&mut self.state) % (self.length - SAMPLE + 1);
            self.stride += self.length;
        }
    }

    /// Weighs a part of a text that begins at `begin`; both count as `seen` does.
    fn read(&mut self, text: &str, begin: u64, part: Range<u64>, times: u64) {
        let place = |at: u64| usize::try_from(at.saturating_sub(begin)).unwrap_or(usize::MAX);
        let (bytes, from) = (text.as_bytes(), place(part.start));
        let Some(now) = bytes.get(from..place(part.end)) else {
            return;
        };
        let before = bytes
            // At the beginning this wraps to a place that no text has.
            .get(from.wrapping_sub(1))
            .map_or(BREAK, |byte| class(*byte));
        self.weight = self.weight.saturating_add(times * read(now, before));
    }

    /// What so many bytes weighed that were added since an earlier state of this one; of what no sample has met, as what cannot be
    /// read.
    pub(crate) fn since(&self, earlier: &Self, bytes: u64) -> u64 {
        let added = self.weight.saturating_sub(earlier.weight);
        added.max(bytes.saturating_mul(UNREAD))
    }

    /// Adds once more what was weighed before.
    pub(crate) fn add_weighed(&mut self, weight: u64) {
        self.weight = self.weight.saturating_add(weight);
    }

    /// Adds bytes of text that cannot be read here.
    pub fn add_unread(&mut self, bytes: u64) {
        self.weight = self.weight.saturating_add(bytes.saturating_mul(UNREAD));
    }

    /// Adds bytes of reasoning that only its provider can read.
    pub fn add_sealed(&mut self, bytes: u64) {
        self.weight = self
            .weight
            .saturating_add(bytes.saturating_mul(TOKEN) / SEALED);
    }
}

/// Never the seed's state, which must stay secret.
impl fmt::Debug for Weight {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Weight")
            .field("weight", &self.weight)
            .field("seen", &self.seen)
            .finish()
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::seeded(0)
    }
}

/// The next number of a random sequence (`splitmix64`).
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The weight of a whole text, in 64ths of a token, however long it is.
pub(crate) fn exactly(text: &str) -> u64 {
    text.as_bytes()
        .chunks(1 << 20)
        .map(|chunk| read(chunk, BREAK))
        .fold(0, u64::saturating_add)
}

fn read(bytes: &[u8], mut before: u8) -> u64 {
    let mut weight: u32 = 0;
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        let mut now = class(*byte);
        if *byte == b'\\' {
            let length;
            (now, length) = escape(rest.as_slice());
            rest = rest.as_slice().get(length..).unwrap_or_default().iter();
        }
        weight += u32::from(WEIGHTS[usize::from(before << 4 | now)]);
        before = now;
    }
    u64::from(weight)
}

/// Class and length of an escape, after its backslash.
fn escape(bytes: &[u8]) -> (u8, usize) {
    match bytes {
        [b'n' | b'r' | b't', ..] => (BREAK, 1),
        [b'u', rest @ ..] => {
            let unit = |at: usize| {
                let hex = rest
                    .get(at..at + 4)
                    .and_then(|hex| std::str::from_utf8(hex).ok());
                hex.and_then(|hex| u16::from_str_radix(hex, 16).ok())
            };
            let first = unit(0).unwrap_or(0);
            match char::from_u32(u32::from(first)) {
                Some(char) => (
                    class(
                        char.encode_utf8(&mut [0; 4])
                            .as_bytes()
                            .first()
                            .copied()
                            .unwrap_or(0),
                    ),
                    5,
                ),
                None if rest.get(4..6) == Some(b"\\u")
                    && matches!(unit(6), Some(0xdc00..=0xdfff)) =>
                {
                    (FAR, 11)
                }
                // Readers treat half a pair as a character.
                None => (FAR, 5),
            }
        }
        _ => (MARK, 1),
    }
}

fn class(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

// Classes of characters, by their first byte.
const SPACE: u8 = 0;
/// Ends of lines and tabs.
const BREAK: u8 = 1;
const LOWER: u8 = 2;
const UPPER: u8 = 3;
const DIGIT: u8 = 4;
/// Punctuation.
const MARK: u8 = 5;
/// The continuation bytes of a character; this class and all after it are not ASCII.
const INSIDE: u8 = 6;
/// Everything without another class: mostly emoji.
const FAR: u8 = 15;

/// For each class the weight of a character that begins a run, and of one that continues it.
const RUNS: [(u8, u8); 16] = [
    (44, 2),    // space
    (34, 13),   // ends of lines, tabs
    (22, 7),    // lower case
    (6, 27),    // upper case
    (72, 26),   // digits
    (76, 5),    // punctuation
    (0, 0),     // inside a character
    (170, 28),  // U+0080: Latin with accents, Greek
    (104, 23),  // U+0400: Cyrillic, Hebrew, Arabic
    (64, 62),   // U+0800: Indic, Thai
    (72, 72),   // U+1000: more Latin with accents, Georgian, Khmer
    (128, 45),  // U+2000: symbols
    (96, 70),   // U+3000: Kana
    (96, 78),   // U+4000: Chinese characters
    (128, 45),  // U+A000: Hangul
    (230, 120), // everything else
];
/// A letter next to a digit, a capital after a small letter: rare in words, frequent in encoded data.
const STUCK: u8 = 96;

const CLASSES: [u8; 256] = {
    let mut classes = [MARK; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b' ' => SPACE,
            b'\n' | b'\r' | b'\t' => BREAK,
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            0..0x80 => MARK,
            0x80..0xc0 => INSIDE,
            0xc0..0xd0 => 7,
            0xd0..0xe0 => 8,
            0xe0 => 9,
            0xe1 => 10,
            0xe2 => 11,
            0xe3 => 12,
            0xe4..0xea => 13,
            0xea..0xee => 14,
            _ => FAR,
        };
        byte += 1;
    }
    classes
};

/// The weight of each class behind each class.
const WEIGHTS: [u8; 256] = {
    let mut weights = [0; 256];
    let mut pair = 0;
    while pair < 256 {
        let (before, now) = ((pair >> 4) as u8, (pair & 15) as u8);
        let (begins, continues) = RUNS[now as usize];
        let same =
            before == now || before == UPPER && now == LOWER || before >= INSIDE && now >= INSIDE;
        let stuck =
            before == DIGIT && (now == LOWER || now == UPPER) || before == LOWER && now == UPPER;
        weights[pair] = if same {
            continues
        } else if stuck {
            STUCK
        } else {
            begins
        };
        pair += 1;
    }
    weights
};

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> u64 {
        let mut weight = Weight::default();
        weight.add(text);
        weight.tokens()
    }

    #[test]
    fn words_spaces_and_numbers_weigh_about_what_tokenizers_make_of_them() {
        for (text, least, most) in [
            ("", 0, 0),
            ("Hello", 1, 2),
            ("The quick brown fox jumps over the lazy dog.", 10, 15),
            (r#"fn main() {\n    println!(\"hello\");\n}"#, 11, 20),
            ("                                        ", 1, 3),
            ("7f3c9a1e-52d4-4b0e-9a43-1c0d8e6f2b71", 22, 46),
            ("港务局把账簿放在炉子后面", 10, 20),
        ] {
            let found = tokens(text);
            assert!((least..=most).contains(&found), "{text}: {found}");
        }
    }

    #[test]
    fn an_escaped_character_weighs_what_the_character_weighs() {
        for (plain, escaped) in [
            ("Straße", r"Stra\u00dfe"),
            ("港口", r"\u6e2f\u53e3"),
            ("🎉!", r"\ud83c\udf89!"),
            ("A", r"\u0041"),
        ] {
            assert_eq!(tokens(plain), tokens(escaped), "{plain}");
        }
    }

    #[test]
    fn halves_of_pairs_weigh_as_much_as_other_rare_characters() {
        for halves in [r"\udc00", r"\ud800", r"\udc00\ud800", r"\ud800\ud800\udc00"] {
            assert!(tokens(&halves.repeat(40)) >= 40, "{halves}");
        }
    }

    #[test]
    fn samples_of_a_long_text_stand_for_all_of_it_however_it_is_cut() {
        let line = r"let total = prices.iter().map(|price| price.amount).sum::<u64>();\n";
        let text = line.repeat(3_000);
        let exact = read(text.as_bytes(), BREAK) / TOKEN;
        let (mut once, mut lines) = (Weight::default(), Weight::default());
        once.add(&text);
        (0..3_000).for_each(|_| lines.add(line));
        for found in [once.tokens(), lines.tokens()] {
            assert!(found.abs_diff(exact) * 20 < exact, "{found} for {exact}");
        }
    }

    #[test]
    fn no_text_is_light_only_where_it_is_read() {
        // Heavy except for 16 bytes in every 256, wherever these are: an attacker does not know which are read.
        for phase in (0..256).step_by(16) {
            let heavy: String = (0..256_u32)
                .map(|at| char::from(b'!' + (at * 37 % 90) as u8))
                .map(|c| if c == '\\' { '/' } else { c })
                .collect();
            let mut block = heavy.into_bytes();
            block.get_mut(phase..phase + 16).unwrap().fill(b' ');
            let text = String::from_utf8(block).unwrap().repeat(400);
            let exact = exactly(&text) / TOKEN;
            for seed in 0..8 {
                let mut weight = Weight::seeded(seed);
                weight.add(&text);
                assert!(
                    weight.tokens() * 10 > exact * 9,
                    "{} for {exact}, phase {phase}, seed {seed}",
                    weight.tokens()
                );
            }
        }
    }

    #[test]
    fn cut_escapes_and_nonsense_are_weighed_too() {
        for text in [
            r"\", r"\u", r"\u12", r"\ud83c", r"\uzzzz", "\u{0}", "\u{7f}",
        ] {
            assert!(tokens(text) <= 6, "{text:?}");
        }
    }
}
