//! Recognises, without parsing it, a frame that differs from the previous one only in its text delta.
//!
//! Most frames of a stream repeat each other byte for byte around the text. A decoder or reader teaches its shape here; a later
//! frame of the same shape means the same with another text. Must never match a frame whose parse could come out differently: event
//! numbers and padding may change, because nobody reads them, and anything else is parsed again.

use std::ops::Range;

use memchr::memmem;

use crate::{Frame, FrameFacts, FrameMarks, Step, TextSample, TextSize};

/// What may differ between two frames of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    /// The delta.
    Text,
    Digits,
    /// A string without escapes.
    Word,
}

/// Members that nobody reads, by the text before their value.
const UNREAD: [(&[u8], Hole); 2] = [
    (b"\"sequence_number\":", Hole::Digits),
    (b"\"obfuscation\":\"", Hole::Word),
];

/// The last frame that was a text delta. Its buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    raw: Vec<u8>,
    holes: Vec<(Range<usize>, Hole)>,
}

impl Shape {
    /// Forgets the frame.
    pub(crate) fn forget(&mut self) {
        self.holes.clear();
    }

    /// Learns a frame that meant nothing but a delta with this text, which is inside its bytes as a JSON string.
    pub(crate) fn learn(&mut self, raw: &[u8], text: Range<usize>) {
        self.forget();
        let quoted = text
            .start
            .checked_sub(1)
            .is_some_and(|before| raw.get(before) == Some(&b'"'));
        if !quoted || raw.get(text.end) != Some(&b'"') {
            return;
        }
        self.raw.clear();
        self.raw.extend_from_slice(raw);
        for part in [0..text.start, text.end..raw.len()] {
            for (marker, hole) in UNREAD {
                let inside = raw.get(part.clone()).unwrap_or_default();
                let Some(found) = memmem::find(inside, marker) else {
                    continue;
                };
                let start = part.start + found + marker.len();
                let length = raw.get(start..part.end).and_then(|rest| hole.length(rest));
                self.holes
                    .extend(length.map(|length| (start..start + length, hole)));
            }
        }
        self.holes.push((text, Hole::Text));
        self.holes.sort_unstable_by_key(|(range, _)| range.start);
    }

    /// The text of a frame of the same shape, escaped. An empty text does not match: a decoder may then look elsewhere.
    pub(crate) fn text<'f>(&self, raw: &'f [u8]) -> Option<&'f str> {
        let (mut at, mut from, mut text) = (0, 0, None);
        for (range, hole) in &self.holes {
            let literal = self.raw.get(from..range.start)?;
            let rest = raw.get(at..)?.strip_prefix(literal)?;
            let length = hole.length(rest)?;
            if *hole == Hole::Text {
                text = rest.get(..length);
            }
            at += literal.len() + length;
            from = range.end;
        }
        let text = text.filter(|text| !text.is_empty())?;
        if raw.get(at..)? != self.raw.get(from..)? {
            return None;
        }
        std::str::from_utf8(text).ok()
    }
}

/// A reader's facts for the last frame that brought nothing but text.
#[derive(Debug, Default)]
pub(crate) struct ShapeFacts {
    shape: Shape,
    marks: FrameMarks,
}

impl ShapeFacts {
    /// The facts of a frame that differs from the last one only in its text.
    pub(crate) fn facts(&self, frame: &Frame, sample: &mut TextSample) -> Option<FrameFacts> {
        let text = self.shape.text(frame.raw())?;
        sample.add(text);
        Some(FrameFacts {
            marks: self.marks.clone(),
            shown: TextSize::of(text),
            ..FrameFacts::default()
        })
    }

    /// Learns a frame that was read. `text` is the position in its bytes of the only text that it shows.
    pub(crate) fn note(&mut self, frame: &Frame, facts: &FrameFacts, text: Option<Range<usize>>) {
        self.shape.forget();
        let Some(text) = text.filter(|_| brings_only_text(facts)) else {
            return;
        };
        self.shape.learn(frame.raw(), text);
        self.marks.clone_from(&facts.marks);
        // Noted once.
        self.marks.strange = false;
        // Positions after a hole shift.
        let first = self.shape.holes.first().map_or(0, |(hole, _)| hole.start);
        let more = self.marks.more().into_iter();
        let more = more.flat_map(|more| more.models.iter().chain(&more.cuts));
        let mut all = self.marks.model.iter().chain(more);
        if all.any(|place| place.end > first) {
            self.shape.forget();
        }
    }
}

/// Whether the facts say nothing else, now or through the reader's state: the same frame would mean the same again.
fn brings_only_text(facts: &FrameFacts) -> bool {
    let FrameFacts {
        marks,
        shown: _,
        hidden,
        usage,
        stop,
        last,
        end,
        usage_only,
        unreadable,
        unfamiliar,
        error,
        step,
    } = facts;
    let flags = [
        *hidden,
        *usage,
        *last,
        *end,
        *usage_only,
        *unreadable,
        *unfamiliar,
    ];
    !flags.contains(&true)
        && stop.is_none()
        && error.is_none()
        && *step == Step::None
        && marks.usage_end.is_none()
        && marks.more().is_none_or(|more| more.mended.is_empty())
}

impl Hole {
    /// How many of these bytes are in the hole.
    fn length(self, rest: &[u8]) -> Option<usize> {
        match self {
            Self::Text => string(rest),
            // No other number begins with a zero.
            Self::Digits => {
                let length = rest.iter().position(|byte| !byte.is_ascii_digit())?;
                (length == 1 || length > 1 && rest.first() != Some(&b'0')).then_some(length)
            }
            Self::Word => memchr::memchr(b'"', rest).filter(|end| {
                rest.get(..*end).is_some_and(|word| {
                    word.iter()
                        .all(|byte| byte.is_ascii_graphic() && *byte != b'\\')
                })
            }),
        }
    }
}

/// The inside of a JSON string up to its quote; `None` if only a parser can judge it.
fn string(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match rest.get(at)? {
            b'"' => return Some(at),
            b'\\' => match rest.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                _ => return None,
            },
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(frame: &str, text: &str) -> Shape {
        let mut shape = Shape::default();
        let start = frame.find(text).unwrap();
        shape.learn(frame.as_bytes(), start..start + text.len());
        shape
    }

    #[test]
    fn only_the_text_may_differ() {
        let frame = |text: &str, finish: &str| {
            format!("data: {{\"i\":0,\"t\":\"{text}\",\"finish\":{finish}}}\n\n")
        };
        let shape = learned(&frame("abc", "null"), "abc");
        for text in ["x", "a\\n\\\"b\\\\", "漢 ß"] {
            assert_eq!(shape.text(frame(text, "null").as_bytes()), Some(text));
        }
        for (text, finish) in [
            ("x", "\"stop\""),
            ("", "null"),
            ("\\u00e4", "null"),
            ("\\x", "null"),
            ("\u{1}", "null"),
            ("a\"b", "null"),
        ] {
            assert_eq!(
                shape.text(frame(text, finish).as_bytes()),
                None,
                "{text} {finish}"
            );
        }
        assert_eq!(
            shape.text(format!("event: error\n{}", frame("x", "null")).as_bytes()),
            None
        );
        assert_eq!(Shape::default().text(b""), None);
    }

    #[test]
    fn numbers_of_events_and_padding_may_differ() {
        let frame = |number: u32, text: &str, padding: &str| {
            format!(
                "data: {{\"sequence_number\":{number},\"delta\":\"{text}\",\"obfuscation\":\"{padding}\"}}\n\n"
            )
        };
        let shape = learned(&frame(9, "abc", "xyz"), "abc");
        assert_eq!(shape.text(frame(10, "d", "").as_bytes()), Some("d"));
        assert_eq!(shape.text(frame(0, "d", "").as_bytes()), Some("d"));
        assert_eq!(
            shape.text(frame(10, "d", "").replace("10", "010").as_bytes()),
            None
        );
        assert_eq!(shape.text(frame(11, "d", "a\\\"b").as_bytes()), None);
        assert_eq!(shape.text(frame(11, "d", "a\",\"b\":\"c").as_bytes()), None);
    }
}
