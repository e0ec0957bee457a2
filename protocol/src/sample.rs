//! A small random sample of a long text, taken while the text passes by.
//!
//! A text of up to [`TextSample::MOST`] bytes is kept whole. Of a longer one, blocks of equal size are kept, each with the same
//! probability (reservoir sampling), so that a tokenizer can read four kilobytes and estimate megabytes. The seed must be secret:
//! someone who knows it can write a text whose sample is unlike the rest. Must not keep more than [`TextSample::MOST`] bytes.

use std::fmt;

use crate::json::{Cursor, JsonError, Kind, Value, unescape};
use crate::{TextSize, token_estimate};

/// Bytes of one block.
const BLOCK: usize = 256;
/// Bytes at each edge of a block that are searched for a space.
const LONGEST_WORD: usize = 32;
/// Blocks kept.
// With blocks of 256 bytes 4 KiB, the size of the texts over which the likely factors are medians.
const BLOCKS: u64 = 16;

/// The sample of one text, in its JSON form.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TextSample {
    kept: Vec<u8>,
    /// Bytes that have passed.
    seen: u64,
    state: u64,
    /// Where the current block is kept.
    slot: Option<usize>,
}

impl TextSample {
    /// Most bytes that are kept.
    pub const MOST: usize = BLOCK * BLOCKS as usize;

    /// An empty sample that chooses by a secret seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            state: seed,
            ..Self::default()
        }
    }

    /// Adds text in its JSON form.
    pub fn add(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let within = usize::try_from(self.seen % BLOCK as u64).unwrap_or(0);
            if within == 0 {
                self.slot = self.next_slot();
            }
            let (now, later) = rest.split_at(rest.len().min(BLOCK - within));
            if let Some(slot) = self.slot {
                self.keep(slot * BLOCK + within, now);
            }
            self.seen += now.len() as u64;
            rest = later;
        }
    }

    /// Adds output that an answer shows, and its size.
    pub(crate) fn show(&mut self, cursor: &Cursor<'_>, value: &Value, size: &mut TextSize) {
        if value.kind == Kind::Null {
            return;
        }
        size.add(value.text_size());
        let raw = cursor.slice(value.span.clone());
        let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
        self.add(inner.filter(|_| value.kind == Kind::String).unwrap_or(raw));
    }

    /// Steps over the next value, which an answer shows.
    pub(crate) fn shown(
        &mut self,
        cursor: &mut Cursor<'_>,
        size: &mut TextSize,
    ) -> Result<(), JsonError> {
        let value = cursor.skip()?;
        self.show(cursor, &value, size);
        Ok(())
    }

    fn next_slot(&mut self) -> Option<usize> {
        let block = self.seen / BLOCK as u64;
        let slot = if block < BLOCKS {
            block
        } else {
            token_estimate::random(&mut self.state) % (block + 1)
        };
        usize::try_from(slot).ok().filter(|_| slot < BLOCKS)
    }

    fn keep(&mut self, at: usize, bytes: &[u8]) {
        if self.kept.len() < at + bytes.len() {
            self.kept.resize(at + bytes.len(), b' ');
        }
        if let Some(place) = self.kept.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Bytes that have passed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// How many of them were kept, as far as [`TextSample::text`] shows them.
    pub fn kept(&self) -> u64 {
        self.parts().map(|part| part.len() as u64).sum()
    }

    /// What was kept: all of a short text; of a longer one its blocks, without the words and characters cut at a block's edge,
    /// because a tokenizer makes more of two half words than of the whole word.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let whole = self.seen <= Self::MOST as u64;
        let length = if whole { Self::MOST } else { BLOCK };
        self.kept
            .chunks(length)
            .map(move |block| if whole { block } else { between_words(block) })
    }

    /// What was kept, as the model reads it: without JSON escapes.
    pub fn text(&self) -> String {
        self.parts().fold(String::new(), |text, part| {
            text + &unescape(&String::from_utf8_lossy(part))
        })
    }

    /// Whether more than a quarter of it is not ASCII, or is runs of symbols.
    pub(crate) fn is_odd(&self) -> bool {
        // Byte counters, one chunk at a time, so that the compiler vectorises the loop: it runs for every request.
        const CHUNK: usize = 128;
        let odd = |(byte, before): (&u8, &u8)| {
            let in_row = byte.is_ascii_punctuation() & before.is_ascii_punctuation();
            u8::from(in_row | !byte.is_ascii())
        };
        let Some((first, rest)) = self.kept.split_first() else {
            return false;
        };
        let chunks = rest.chunks(CHUNK).zip(self.kept.chunks(CHUNK));
        let odd: usize = chunks
            .map(|(bytes, before)| usize::from(bytes.iter().zip(before).map(odd).sum::<u8>()))
            .sum();
        odd + usize::from(!first.is_ascii()) > self.kept.len() / 4
    }

    /// The fast estimate for what was kept, in 64ths of a token.
    pub fn weight(&self) -> u64 {
        let exactly = |part| token_estimate::exactly(&String::from_utf8_lossy(part));
        self.parts().map(exactly).fold(0, u64::saturating_add)
    }
}

/// A block from its first space to its last, if these are near its edges; else without the characters that the edges cut.
fn between_words(block: &[u8]) -> &[u8] {
    let inner = |byte: &u8| byte & 0xc0 == 0x80;
    let from = match block
        .iter()
        .take(LONGEST_WORD)
        .position(|byte| *byte == b' ')
    {
        Some(space) => space,
        None => block.iter().take(3).take_while(|byte| inner(byte)).count(),
    };
    let rest = block.get(from..).unwrap_or_default();
    let to = match rest
        .iter()
        .rev()
        .take(LONGEST_WORD)
        .position(|byte| *byte == b' ')
    {
        Some(behind) => rest.len() - behind - 1,
        None => match std::str::from_utf8(rest) {
            Err(error) if rest.len() - error.valid_up_to() < 4 => error.valid_up_to(),
            _ => rest.len(),
        },
    };
    rest.get(..to).unwrap_or_default()
}

/// Never the text itself: it is the customer's.
impl fmt::Debug for TextSample {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Sample of {} bytes", self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_kept_whole_however_it_is_cut() {
        let text: String = (0..400).map(|number| format!("{number},")).collect();
        let (mut once, mut pieces) = (TextSample::seeded(1), TextSample::seeded(2));
        once.add(&text);
        text.split_inclusive(',')
            .for_each(|piece| pieces.add(piece));
        assert!(text.len() < TextSample::MOST);
        assert_eq!((once.text(), pieces.text()), (text.clone(), text));
    }

    #[test]
    fn every_part_of_a_long_text_has_the_same_chance() {
        let mut kept = [0_u32; 10];
        for seed in 0..400_u64 {
            let mut sample = TextSample::seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            (0..10_u8).for_each(|part| {
                sample.add(&char::from(b'0' + part).to_string().repeat(10 * BLOCK))
            });
            sample
                .text()
                .bytes()
                .for_each(|byte| kept[usize::from(byte - b'0')] += 1);
        }
        let fair = 400 * TextSample::MOST as u32 / 10;
        assert!(
            kept.iter().all(|part| part.abs_diff(fair) * 5 < fair),
            "{kept:?} around {fair}"
        );
    }

    #[test]
    fn rare_scripts_and_signs_in_a_row_are_odd() {
        let odd = |text: &str| {
            let mut sample = TextSample::seeded(7);
            sample.add(&text.repeat(900));
            sample.is_odd()
        };
        for text in ["~^`|@#", "ܐܒܓܕ", "𒀀𒀁", "Привет, мир. ", "~!a~!b"] {
            assert!(odd(text), "{text}");
        }
        for text in [
            "if let Some(value) = map.get(&key) { total += 1; }\n",
            "Straße und Gänse. ",
            "| a | b | 12.5 |\n",
            "MIIB+a/9xZ",
        ] {
            assert!(!odd(text), "{text}");
        }
    }

    #[test]
    fn escapes_are_taken_out_and_cut_characters_do_no_harm() {
        let mut sample = TextSample::default();
        sample.add(r"a\nb\u00e4");
        assert_eq!(sample.text(), "a\nbä");
        let mut cut = TextSample::seeded(3);
        cut.add(&"é\\n".repeat(9_999));
        assert!(cut.text().chars().count() > 1_000);
    }
}
