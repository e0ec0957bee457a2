//! How far two requests of a conversation are the same, told from hashes of their messages.
//!
//! Providers cache the beginning of a prompt: whatever stands beside the conversation, then message by message. Only positions are
//! noted while a request is inspected; no text is kept. Beside the conversation every field counts but the limit and how the answer is
//! to come: one that differs may be one that the provider looks at. Inside it the marks for caches are left out, because clients move
//! them along as a conversation grows.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher};
use std::iter;
use std::ops::Range;

/// What a picture weighs among bytes of text.
const MEDIA_WEIGHT: u64 = 4_000;

/// Where the repeating parts of a request are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Talk {
    /// The conversation: the value of `messages` or `input`.
    pub(crate) place: Range<usize>,
    /// Its messages, in order.
    pub(crate) turns: Vec<TalkTurn>,
    /// Bytes of text in the request before its conversation.
    pub(crate) before: u64,
    /// One of them has a member that not every service knows.
    pub(crate) extended: bool,
    /// One of them calls a tool, or answers a call.
    pub(crate) calls: bool,
    /// Top-level members that say nothing about what is cached, without their commas.
    pub(crate) aside: Vec<Range<usize>>,
    /// Marks for a cache, without their commas, in order.
    pub(crate) marks: Vec<Range<usize>>,
    /// A picture is given by its address.
    pub(crate) linked: bool,
}

/// One message of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkTurn {
    /// Where it ends in the body.
    pub end: usize,
    /// Bytes of text in the request up to there.
    pub text: u64,
    /// Pictures and documents up to there.
    pub media: usize,
    /// There is a picture that is given by its address: nobody knows what stands behind it the next time.
    pub linked: bool,
}

/// A beginning of a request: everything outside its conversation, and its messages up to one of them, or to a mark in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning {
    /// How many messages are in it, the last one perhaps in part.
    pub turn: u32,
    /// Equal for equal beginnings.
    pub hash: u64,
    /// Its share of the whole, in bytes of text.
    pub weight: u64,
}

/// Where another request may part from this one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beginnings {
    /// The shortest first: without any message, with one, with two; up to the first that has a picture given by its address.
    pub all: Vec<Beginning>,
    /// Those that end at a mark for a cache.
    pub marks: Vec<Beginning>,
    /// What the whole request weighs.
    pub weight: u64,
}

/// Top-level fields that change from request to request without changing what a provider has cached.
pub(crate) fn is_aside(name: &str) -> bool {
    matches!(
        name,
        "stream" | "stream_options" | "max_tokens" | "max_completion_tokens" | "max_output_tokens"
    )
}

impl Talk {
    /// Notes a member of a message besides its role and content.
    pub(crate) fn has(&mut self, name: &str) {
        match name {
            "tool_calls" | "tool_call_id" => self.calls = true,
            _ => self.extended = true,
        }
    }

    /// A part of a request as if its marks had never been in it.
    pub(crate) fn unmarked<'a>(&self, body: &'a [u8], part: Range<usize>) -> Cow<'a, [u8]> {
        // Most requests have none.
        if self.marks.is_empty() {
            return Cow::Borrowed(body.get(part).unwrap_or_default());
        }
        let mut pieces = pieces_without(&self.marks, body, part);
        let mut all = Cow::Borrowed(pieces.next().unwrap_or_default());
        for piece in pieces {
            all.to_mut().extend_from_slice(piece);
        }
        all
    }

    /// The beginnings of a request whose text has `text` bytes; `around`: what else is sent with it. `hasher` must be secret, so that
    /// nobody can write two conversations whose hashes are equal.
    pub fn beginnings(
        &self,
        body: &[u8],
        around: &[&[u8]],
        text: u64,
        hasher: &impl BuildHasher,
    ) -> Beginnings {
        let mut hash = hasher.build_hasher();
        for part in around {
            // With the lengths, two lists of parts that differ cannot become the same bytes.
            hash.write_usize(part.len());
            hash.write(part);
        }
        write_without(&self.aside, body, 0..self.place.start, &mut hash);
        write_without(&self.aside, body, self.place.end..body.len(), &mut hash);
        let last = self.turns.last();
        let inside = last.map_or(0, |turn| turn.text.saturating_sub(self.before));
        let weight = |text_up_to: u64, media: usize| {
            let text = (text.saturating_sub(inside)).saturating_add(text_up_to);
            text.saturating_add(MEDIA_WEIGHT.saturating_mul(media as u64))
        };
        let mut found = Beginnings {
            all: Vec::with_capacity(self.turns.len() + 1),
            marks: Vec::new(),
            weight: weight(inside, last.map_or(0, |turn| turn.media)),
        };
        let start = Beginning {
            turn: 0,
            hash: hash.finish(),
            weight: weight(0, 0),
        };
        found.all.push(start);
        let is_inside =
            |mark: &&Range<usize>| self.place.start <= mark.start && mark.end <= self.place.end;
        let mut marks = self.marks.iter().filter(is_inside).peekable();
        if !self.marks.iter().all(|mark| is_inside(&mark)) {
            found.marks.push(start);
        }
        let mut from = self.place.start;
        for (turn, number) in self.turns.iter().zip(1_u32..) {
            // The same address may lead to another picture next time, so nothing from here on is known to be in common.
            if turn.linked {
                break;
            }
            let weight = weight(turn.text.saturating_sub(self.before), turn.media);
            let here = |hash: u64| Beginning {
                turn: number,
                hash,
                weight,
            };
            let message = between(body, from..turn.end);
            let mut at = message.start;
            while let Some(mark) = marks.next_if(|mark| mark.end <= message.end) {
                let cut = with_comma(body, mark);
                hash.write(body.get(at..cut.start.max(at)).unwrap_or_default());
                at = cut.end;
                found.marks.push(here(hash.finish()));
            }
            hash.write(body.get(at..message.end).unwrap_or_default());
            found.all.push(here(hash.finish()));
            from = turn.end;
        }
        found
    }
}

/// A message without the comma or bracket and the white space before it.
fn between(body: &[u8], range: Range<usize>) -> Range<usize> {
    let text = body.get(range.clone()).unwrap_or_default();
    let skipped = text
        .iter()
        .take_while(|byte| matches!(byte, b',' | b'[' | b' ' | b'\t' | b'\n' | b'\r'))
        .count();
    range.start.saturating_add(skipped)..range.end
}

/// Hashes a part of a body without what is left out of it, which is in order.
fn write_without(
    left_out: &[Range<usize>],
    body: &[u8],
    part: Range<usize>,
    hash: &mut impl Hasher,
) {
    for piece in pieces_without(left_out, body, part) {
        hash.write(piece);
    }
}

/// What is left of a part of a body without what is left out of it, which is in order.
fn pieces_without<'a>(
    left_out: &[Range<usize>],
    body: &'a [u8],
    part: Range<usize>,
) -> impl Iterator<Item = &'a [u8]> {
    let Range { start, end } = part;
    let inside = move |cut: &&Range<usize>| start <= cut.start && cut.end <= end;
    let cuts = left_out.iter().filter(inside);
    let cuts = cuts.map(move |cut| with_comma(body, cut));
    let mut from = start;
    cuts.chain(iter::once(end..end)).map(move |cut| {
        let piece = body.get(from..cut.start.max(from)).unwrap_or_default();
        from = cut.end;
        piece
    })
}

/// A member with the comma before it, or else the one after it: the rest reads as if it had never been there.
fn with_comma(body: &[u8], member: &Range<usize>) -> Range<usize> {
    let blank = |byte: &u8| byte.is_ascii_whitespace();
    let (before, after) = (
        body.get(..member.start).unwrap_or_default(),
        body.get(member.end..).unwrap_or_default(),
    );
    let back = before.iter().rev().take_while(|byte| blank(byte)).count();
    let start = member.start - back;
    if before.get(start.wrapping_sub(1)) == Some(&b',') {
        return start - 1..member.end;
    }
    let ahead = after.iter().take_while(|byte| blank(byte)).count();
    let comma = usize::from(after.get(ahead) == Some(&b','));
    member.start..member.end + if comma == 1 { ahead + 1 } else { 0 }
}
