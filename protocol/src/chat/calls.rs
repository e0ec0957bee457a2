//! Assembles the tool calls of a streamed chat answer from fragments, however they are numbered.
//!
//! Only the first unfinished call is emitted; later ones wait in order. A call is finished when the braces of its arguments are
//! closed.

use super::chunk::Fragment;
use super::pieces::{self, CallPiece, Called, KnownCall};
use crate::translate::event::{BlockStart, Sink};
use crate::translate::flow::Flow;
use crate::translate::freeform::WRAP;
use crate::translate::ids::made_id;
use crate::translate::text::escape;

#[derive(Debug, Default)]
pub(super) struct AnswerCalls {
    list: Vec<StreamedCall>,
    /// How many are closed.
    closed: usize,
    /// The answer ended at its limit, so its last call may be incomplete.
    pub(super) cut: bool,
}

#[derive(Debug, Default)]
struct StreamedCall {
    known: KnownCall,
    /// Arguments not emitted yet, escaped.
    waiting: String,
    depth: Depth,
    opened: bool,
    sent: bool,
}

impl Called for StreamedCall {
    fn known(&self) -> &KnownCall {
        &self.known
    }

    fn is_whole(&self) -> Option<bool> {
        Some(self.depth.whole)
    }
}

impl AnswerCalls {
    /// Whether there are any.
    pub(super) fn any(&self) -> bool {
        !self.list.is_empty()
    }

    /// Whether a call has begun that is not finished.
    pub(super) fn unfinished(&self) -> bool {
        self.closed < self.list.len()
    }

    /// Appends a fragment to the call it belongs to.
    pub(super) fn take(&mut self, fragment: &Fragment<'_>) {
        let piece = CallPiece {
            index: fragment.index,
            id: &fragment.id,
            name: &fragment.name,
            arguments: !fragment.arguments.is_empty(),
        };
        let at = pieces::place(&self.list, piece).unwrap_or_else(|| {
            let mut begun = StreamedCall::default();
            begun.known.index = fragment.index;
            self.list.push(begun);
            self.list.len() - 1
        });
        let closed = at < self.closed;
        let Some(call) = self.list.get_mut(at).filter(|_| !closed) else {
            return;
        };
        if call.known.id.is_empty() {
            call.known.id = fragment.id.to_string();
        }
        if call.known.name.is_empty() {
            call.known.name = fragment.name.to_string();
        }
        call.depth.free |= fragment.free;
        if !call.depth.whole {
            call.depth.follow(&fragment.arguments);
            call.waiting.push_str(&fragment.arguments);
        }
    }

    /// Emits what can be emitted now; everything, if these were the `last` fragments.
    pub(super) fn advance(&mut self, last: bool, flow: &mut Flow, sink: &mut dyn Sink) {
        let count = self.list.len();
        while let Some(call) = self.list.get_mut(self.closed) {
            if call.known.name.is_empty() {
                if !last {
                    return;
                }
                // A call without an id or a name, which the client could not answer.
                self.closed += 1;
                continue;
            }
            if !call.opened {
                call.opened = true;
                let KnownCall { id, made, name, .. } = &mut call.known;
                if id.is_empty() {
                    (*id, *made) = (made_id(&[name, &self.closed.to_string()]), true);
                }
                flow.open(BlockStart::Call { id, name }, sink);
                if call.depth.free {
                    flow.delta(WRAP[0], sink);
                }
            }
            call.sent |= !call.waiting.is_empty();
            if call.depth.free {
                flow.delta(&escape(&call.waiting), sink);
            } else {
                flow.delta(&call.waiting, sink);
            }
            call.waiting.clear();
            if !call.depth.whole && !last {
                return;
            }
            self.closed += 1;
            if self.cut && self.closed == count && !call.depth.whole {
                return;
            }
            if call.depth.free {
                flow.delta(WRAP[1], sink);
            } else if !call.sent {
                flow.delta("{}", sink);
            }
            flow.close(sink);
        }
    }
}

/// Tracks JSON in escaped form until its outermost bracket is closed.
#[derive(Debug, Default)]
struct Depth {
    depth: u32,
    inside: bool,
    escaped: bool,
    /// The text is not JSON.
    free: bool,
    whole: bool,
}

impl Depth {
    fn follow(&mut self, escaped: &str) {
        let mut bytes = escaped.bytes();
        while let Some(byte) = bytes.next() {
            let c = match byte {
                b'\\' => match bytes.next() {
                    Some(b'u') => {
                        let code: String = bytes.by_ref().take(4).map(char::from).collect();
                        u8::from_str_radix(&code, 16).unwrap_or(b'x')
                    }
                    Some(c @ (b'"' | b'\\' | b'/')) => c,
                    _ => b' ',
                },
                other => other,
            };
            self.step(c);
        }
    }

    fn step(&mut self, c: u8) {
        if self.escaped {
            self.escaped = false;
            return;
        }
        match c {
            b'\\' if self.inside => self.escaped = true,
            b'"' => self.inside = !self.inside,
            b'{' | b'[' if !self.inside => self.depth += 1,
            b'}' | b']' if !self.inside => {
                self.depth = self.depth.saturating_sub(1);
                self.whole |= self.depth == 0 && !self.free;
            }
            _ => {}
        }
    }
}
