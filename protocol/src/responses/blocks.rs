//! The blocks of a streamed responses answer, by the item they belong to. Only the first unfinished one is emitted.

use crate::translate::event::{Open, Sink};
use crate::translate::flow::Flow;
use crate::translate::freeform::WRAP;
use crate::translate::ids::made_id;
use crate::translate::text::escape;

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Text,
    Refusal,
    Summary,
    Reasoning,
    Call,
}

/// All blocks of an answer.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    list: Vec<Block>,
    /// How many are closed.
    closed: usize,
    /// Items that have ended.
    ended: Vec<Option<u64>>,
}

#[derive(Debug)]
struct Block {
    index: Option<u64>,
    class: Class,
    id: String,
    name: String,
    /// Escaped text not emitted yet.
    waiting: String,
    /// For a call: everything that has arrived, to compare with what its end repeats.
    all: String,
    /// Whether any text arrived.
    some: bool,
    /// The last part that brought text.
    part: u64,
    /// Its arguments are free text, which events wrap as a function's.
    free: bool,
    opened: bool,
    done: bool,
}

impl Blocks {
    /// Whether any event named the item. Some servers number no events; then any of them may have belonged to it.
    pub(super) fn knows(&self, index: u64) -> bool {
        let mut heard = self
            .ended
            .iter()
            .copied()
            .chain(self.list.iter().map(|block| block.index));
        heard.any(|heard| heard.is_none_or(|heard| heard == index))
    }

    /// A call is announced, or finally named.
    pub(super) fn call(&mut self, index: Option<u64>, id: &str, name: &str, free: bool) {
        if self.ended.contains(&index) {
            return;
        }
        let at = self.place(index, Class::Call);
        if let Some(block) = self.list.get_mut(at).filter(|block| !block.opened) {
            block.id = id.to_owned();
            block.name = name.to_owned();
            block.free = free;
        }
    }

    /// The block's position, a new one if it is unknown. Without an index it is the last block of its kind.
    fn place(&mut self, index: Option<u64>, class: Class) -> usize {
        let found = self.list.iter().rposition(|block| {
            let same = block.class == class && !block.done;
            same && (block.index == index || index.is_none())
        });
        found.unwrap_or_else(|| {
            let texts = (String::new(), String::new());
            self.list.push(Block {
                index,
                class,
                id: String::new(),
                name: String::new(),
                waiting: texts.0,
                all: texts.1,
                some: false,
                part: 0,
                free: false,
                opened: false,
                done: false,
            });
            self.list.len() - 1
        })
    }

    /// More text of a block.
    pub(super) fn delta(
        &mut self,
        index: Option<u64>,
        class: Class,
        part: u64,
        text: &str,
        flow: &mut Flow,
        sink: &mut dyn Sink,
    ) {
        if text.is_empty()
            || self.ended.contains(&index) && index.is_some()
            || self.other_thinking(index, class)
        {
            return;
        }
        let at = self.place(index, class);
        let first = at == self.closed;
        let Some(block) = self.list.get_mut(at) else {
            return;
        };
        if class == Class::Summary && block.some && part != block.part {
            block.waiting.push_str("\\n\\n");
        }
        block.part = part;
        block.some = true;
        if class == Class::Call {
            block.all.push_str(text);
        }
        if first && block.opened && !block.free && block.waiting.is_empty() {
            return flow.delta(text, sink);
        }
        block.waiting.push_str(text);
        self.show(flow, sink);
    }

    /// A block as its final event repeats it: text that was not streamed is emitted now.
    pub(super) fn whole(
        &mut self,
        index: Option<u64>,
        class: Class,
        text: &str,
        flow: &mut Flow,
        sink: &mut dyn Sink,
    ) {
        let over = index.is_some() && self.ended.contains(&index);
        if text.is_empty() || over || self.other_thinking(index, class) {
            return;
        }
        let at = self.place(index, class);
        let Some(block) = self.list.get_mut(at) else {
            return;
        };
        let rest = match class {
            Class::Call => text.strip_prefix(block.all.as_str()).unwrap_or_default(),
            _ if block.some => "",
            _ => text,
        };
        block.some = true;
        block.waiting.push_str(rest);
        if class == Class::Call {
            block.all.push_str(rest);
        }
        self.show(flow, sink);
    }

    /// Reasoning arrives as text or as its summary; whichever comes first is emitted, the other is not.
    fn other_thinking(&self, index: Option<u64>, class: Class) -> bool {
        let other = match class {
            Class::Summary => Class::Reasoning,
            Class::Reasoning => Class::Summary,
            _ => return false,
        };
        self.list
            .iter()
            .any(|block| block.index == index && block.class == other)
    }

    /// An item has ended. One that was cut stays open; the answer's end closes it.
    pub(super) fn done(
        &mut self,
        index: Option<u64>,
        cut: bool,
        flow: &mut Flow,
        sink: &mut dyn Sink,
    ) {
        let last = self.list.len();
        for (at, block) in self.list.iter_mut().enumerate() {
            block.done |= (index.is_none() || block.index == index) && !(cut && at + 1 == last);
        }
        if index.is_some() {
            self.ended.push(index);
        }
        self.show(flow, sink);
    }

    /// The answer has ended; at the limit its last block may be cut.
    pub(super) fn finish(&mut self, cut: bool, flow: &mut Flow, sink: &mut dyn Sink) {
        let last = self.list.len();
        for (at, block) in self.list.iter_mut().enumerate() {
            block.done |= !(cut && at + 1 == last);
        }
        self.show(flow, sink);
    }

    /// Emits what can be emitted.
    pub(super) fn show(&mut self, flow: &mut Flow, sink: &mut dyn Sink) {
        let after = self.list.len();
        while let Some(block) = self.list.get_mut(self.closed) {
            let nameless = block.class == Class::Call && block.name.is_empty();
            if !block.opened && !nameless && (block.some || block.class == Class::Call) {
                block.opened = true;
                if block.class == Class::Call && block.id.is_empty() {
                    block.id = made_id(&[&block.name, &self.closed.to_string()]);
                }
                flow.open(block.open(), sink);
                if block.free {
                    flow.delta(WRAP[0], sink);
                }
            }
            if block.opened {
                if block.free {
                    flow.delta(&escape(&block.waiting), sink);
                } else {
                    flow.delta(&block.waiting, sink);
                }
                block.waiting.clear();
            }
            // A server that omits an item's end continues with the next one.
            let left = self.closed + 1 < after && block.class != Class::Call;
            if !block.done && !left {
                return;
            }
            block.done = true;
            if block.opened {
                if block.free {
                    flow.delta(WRAP[1], sink);
                } else if block.class == Class::Call && !block.some {
                    flow.delta("{}", sink);
                }
                flow.close(sink);
            }
            self.closed += 1;
        }
    }
}

impl Block {
    fn open(&self) -> Open<'_> {
        match self.class {
            Class::Text => Open::Text,
            Class::Refusal => Open::Refusal,
            Class::Summary | Class::Reasoning => Open::Thinking,
            Class::Call => Open::Call {
                id: &self.id,
                name: &self.name,
            },
        }
    }
}
