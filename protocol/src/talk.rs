//! How far two requests of a conversation are the same, told from hashes of their messages.
//!
//! Providers cache the beginning of a prompt: tools and system prompt, then message by message. Whoever knows how much of the last
//! request was cached knows how much of the next one is, as far as both begin alike. Only positions are noted while a request is
//! inspected; no text is kept. Cache marks are left out, because clients move them along as a conversation grows, and so are fields
//! that the model never reads.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

/// Where the repeating parts of a request are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Talk {
    /// The conversation: the value of `messages` or `input`.
    pub(crate) place: Range<usize>,
    /// Its messages, in order.
    pub(crate) turns: Vec<TalkTurn>,
    /// One of them has a member that not every service knows.
    pub(crate) extended: bool,
    /// One of them calls a tool, or answers a call.
    pub(crate) calls: bool,
    /// Members that are no part of what is cached: marks, limits and the like, without their commas.
    pub(crate) aside: Vec<Range<usize>>,
}

/// One message of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkTurn {
    /// Where it ends in the body.
    pub end: usize,
    /// Pictures and documents up to there.
    pub media: usize,
}

/// A beginning of a request: everything outside its conversation, and its messages up to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning {
    /// Equal for equal beginnings.
    pub hash: u64,
    /// Bytes of the messages in it.
    pub bytes: usize,
    /// Pictures and documents in it.
    pub media: usize,
}

/// Top-level fields that change from request to request without changing what the model reads. The cache key of a request and who
/// asks are not among them: they decide which cache is looked at.
pub(crate) fn is_aside(name: &str) -> bool {
    matches!(
        name,
        "stream"
            | "stream_options"
            | "usage"
            | "metadata"
            | "client_metadata"
            | "max_tokens"
            | "max_completion_tokens"
            | "max_output_tokens"
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

    /// Hashes a part of a request as if what is no part of what is cached had never been in it.
    pub(crate) fn hash_part(&self, body: &[u8], part: Range<usize>, hash: &mut impl Hasher) {
        let inside = |cut: &&Range<usize>| part.start <= cut.start && cut.end <= part.end;
        let mut from = part.start;
        for cut in self.aside.iter().filter(inside) {
            let cut = with_comma(body, cut);
            hash.write(body.get(from..cut.start.max(from)).unwrap_or_default());
            from = cut.end;
        }
        hash.write(body.get(from..part.end).unwrap_or_default());
    }

    /// The beginnings of a request, the shortest first: without any message, with one, with two. `hasher` must be secret, so that
    /// nobody can write two conversations whose hashes are equal.
    #[must_use]
    pub fn beginnings(&self, body: &[u8], hasher: &impl BuildHasher) -> Vec<Beginning> {
        let mut aside = self.aside.clone();
        aside.sort_by_key(|range| range.start);
        let mut hash = hasher.build_hasher();
        let mut text = TalkText {
            body,
            aside: &aside,
        };
        text.hash(0..self.place.start, &mut hash);
        text.aside = &aside;
        text.hash(self.place.end..body.len(), &mut hash);
        text.aside = &aside;
        let mut beginnings = Vec::with_capacity(self.turns.len() + 1);
        beginnings.push(Beginning {
            hash: hash.finish(),
            bytes: 0,
            media: 0,
        });
        let mut from = self.place.start;
        for turn in &self.turns {
            text.hash(between(body, from..turn.end), &mut hash);
            beginnings.push(Beginning {
                hash: hash.finish(),
                bytes: turn.end.saturating_sub(self.place.start),
                media: turn.media,
            });
            from = turn.end;
        }
        beginnings
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

/// The body without what is left out of it; its parts are asked for in order.
struct TalkText<'a> {
    body: &'a [u8],
    aside: &'a [Range<usize>],
}

impl TalkText<'_> {
    fn hash(&mut self, range: Range<usize>, hash: &mut impl Hasher) {
        let mut from = range.start;
        while let Some((next, later)) = self.aside.split_first() {
            if next.start >= range.end {
                break;
            }
            self.aside = later;
            if next.start < from {
                continue;
            }
            let cut = with_comma(self.body, next);
            hash.write(self.body.get(from..cut.start.max(from)).unwrap_or_default());
            from = cut.end;
        }
        hash.write(self.body.get(from..range.end).unwrap_or_default());
    }
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
