//! The items of a responses answer as blocks: events are keyed by the item they name, and only one item is emitted at a time.
//!
//! Items may arrive interleaved, and servers differ in how they name them: by index, by id, by both or by neither; some change the
//! id of an item from event to event, others number every item 0. No item ends because another begins: the others wait until it
//! has ended, or until the answer has.

use crate::json::unescape;
use crate::translate::event::{BlockStart, Sink};
use crate::translate::flow::Flow;
use crate::translate::freeform::{WRAP, is_object};
use crate::translate::ids::made_id;
use crate::translate::text::escape;

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextClass {
    Text,
    Refusal,
    Summary,
    Reasoning,
    Call,
}

/// The kind of an item; one that no other family has by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputItemKind {
    Message,
    Reasoning,
    Call,
    Own(&'static str),
}

impl TextClass {
    fn kind(self) -> OutputItemKind {
        match self {
            Self::Text | Self::Refusal => OutputItemKind::Message,
            Self::Summary | Self::Reasoning => OutputItemKind::Reasoning,
            Self::Call => OutputItemKind::Call,
        }
    }
}

/// What an event says about the item it belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventItem<'n> {
    pub(super) index: Option<u64>,
    pub(super) id: &'n str,
    /// For a call: its `call_id`, the tool's name, and whether its arguments are free text.
    pub(super) call: &'n str,
    pub(super) name: &'n str,
    pub(super) free: bool,
}

/// The moment of an item at which it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Begins,
    Goes,
    Ends,
    /// The answer repeats it at its end.
    Repeated,
}

/// All items of an answer.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    list: Vec<ItemBlock>,
    /// How many are emitted completely.
    closed: usize,
    /// Ids change between the events of one item, so a new one does not mean another item.
    rotates: bool,
}

#[derive(Debug)]
struct ItemBlock {
    kind: OutputItemKind,
    index: Option<u64>,
    ids: Vec<String>,
    /// An event announced it, rather than a delta.
    announced: bool,
    /// Its end has been seen.
    done: bool,
    /// The answer's end has repeated it.
    repeated: bool,
    /// Texts of one class each, in order; all but the last have ended.
    texts: Vec<TextBlock>,
    /// How many texts are emitted completely.
    shown: usize,
    /// The parts of which something has arrived.
    parts: Vec<(TextClass, u64)>,
    call: CallBlock,
}

#[derive(Debug)]
struct TextBlock {
    class: TextClass,
    /// Escaped, not emitted yet.
    waiting: String,
    opened: bool,
}

/// What a call has besides its text.
#[derive(Debug, Default)]
struct CallBlock {
    id: String,
    name: String,
    /// All arguments that have arrived, escaped, to compare with what its end repeats.
    arguments: String,
    /// They are free text, which events wrap as a function's.
    free: bool,
    /// They are complete.
    whole: bool,
}

impl ItemBlock {
    fn new(kind: OutputItemKind, named: EventItem<'_>) -> Self {
        Self {
            kind,
            index: named.index,
            ids: Vec::new(),
            announced: false,
            done: false,
            repeated: false,
            texts: Vec::new(),
            shown: 0,
            parts: Vec::new(),
            call: CallBlock::default(),
        }
    }

    fn has(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }

    /// The last text, a new one for another class.
    fn text(&mut self, class: TextClass) -> &mut TextBlock {
        if self.texts.last().is_none_or(|last| last.class != class) {
            self.texts.push(TextBlock {
                class,
                waiting: String::new(),
                opened: false,
            });
        }
        let last = self.texts.len() - 1;
        &mut self.texts[last]
    }

    /// Reasoning arrives as text or as its summary; whichever comes first is emitted, the other is not.
    fn shows(&self, class: TextClass) -> bool {
        self.kind != OutputItemKind::Reasoning
            || self.texts.first().is_none_or(|first| first.class == class)
    }

    /// Whether something of it can be emitted: text, or the name of a call.
    fn is_visible(&self) -> bool {
        match self.kind {
            OutputItemKind::Call => !self.call.name.is_empty(),
            _ => !self.texts.is_empty(),
        }
    }

    fn has_opened(&self) -> bool {
        self.texts.iter().any(|text| text.opened)
    }

    fn is_complete(&self) -> bool {
        self.done || self.call.whole
    }

    /// A call whose arguments break off.
    fn is_cut_call(&self) -> bool {
        let broken = || self.call.free || !is_object(&unescape(&self.call.arguments));
        self.kind == OutputItemKind::Call && !self.is_complete() && broken()
    }
}

impl Blocks {
    /// The item that an event names, a new one if it is unknown. `None` for a repetition of one that has ended.
    fn place(
        &mut self,
        kind: OutputItemKind,
        named: EventItem<'_>,
        moment: Moment,
    ) -> Option<usize> {
        let at = match self.find(kind, named, moment) {
            Some(at) => at,
            None => {
                self.list.push(ItemBlock::new(kind, named));
                self.list.len() - 1
            }
        };
        let item = self.list.get_mut(at)?;
        if !named.id.is_empty() && !item.has(named.id) {
            self.rotates |= !item.ids.is_empty();
            item.ids.push(named.id.to_owned());
        }
        item.announced |= moment != Moment::Goes;
        if !named.name.is_empty() && !item.has_opened() {
            named.call.clone_into(&mut item.call.id);
            named.name.clone_into(&mut item.call.name);
            item.call.free = named.free;
        }
        let over = item.done || moment == Moment::Repeated && item.repeated;
        item.repeated |= moment == Moment::Repeated;
        (!over).then_some(at)
    }

    fn find(&self, kind: OutputItemKind, named: EventItem<'_>, moment: Moment) -> Option<usize> {
        let last = |fits: &dyn Fn(&ItemBlock) -> bool| {
            self.list
                .iter()
                .rposition(|item| item.kind == kind && fits(item))
        };
        let by_id = || last(&|item| !named.id.is_empty() && item.has(named.id));
        let by_call = || last(&|item| !named.call.is_empty() && item.call.id == named.call);
        let other_call = |item: &ItemBlock| {
            !named.call.is_empty() && !item.call.id.is_empty() && item.call.id != named.call
        };
        let stranger = |item: &ItemBlock| {
            !named.id.is_empty() && !item.ids.is_empty() && !self.rotates || other_call(item)
        };
        let otherwise = || match moment {
            // Another id at the same index is another item, if the first was announced by its own.
            Moment::Begins => last(&|item| {
                item.index == named.index
                    && !item.done
                    && !(item.announced && stranger(item))
                    && (named.index.is_some() || !item.announced)
            }),
            Moment::Goes => last(&|item| item.index == named.index && named.index.is_some())
                .or_else(|| last(&|item| named.index.is_none() && !item.done)),
            Moment::Ends => {
                let same = |item: &ItemBlock| item.index == named.index && !other_call(item);
                last(&|item| same(item) && !item.done)
                    .or_else(|| {
                        last(&|item| same(item) && named.index.is_some() && !stranger(item))
                    })
                    .or_else(|| {
                        last(&|item| named.index.is_none() && !item.done && !other_call(item))
                    })
            }
            // Positions in the repeated list are no indices: items may be missing there.
            Moment::Repeated => self
                .list
                .iter()
                .position(|item| item.kind == kind && !item.repeated && !stranger(item)),
        };
        by_id().or_else(by_call).or_else(otherwise)
    }

    /// The answer repeats items with these ids. If it knows none of them by the id it gave them before, ids mean nothing to it.
    pub(super) fn repeats_ids<'i>(&mut self, mut ids: impl Iterator<Item = &'i str>) {
        self.rotates |= !ids.any(|id| self.list.iter().any(|item| item.has(id)));
    }

    /// An item is announced.
    pub(super) fn begin(&mut self, kind: OutputItemKind, named: EventItem<'_>) {
        // The repetition of one that has ended is none.
        let _ = self.place(kind, named, Moment::Begins);
    }

    /// More text of an item.
    pub(super) fn delta(
        &mut self,
        named: EventItem<'_>,
        class: TextClass,
        part: u64,
        text: &str,
        flow: &mut Flow,
        sink: &mut dyn Sink,
    ) {
        if text.is_empty() {
            return;
        }
        let Some(at) = self.place(class.kind(), named, Moment::Goes) else {
            return;
        };
        let current = at == self.closed;
        let Some(item) = self.list.get_mut(at).filter(|item| item.shows(class)) else {
            return;
        };
        let next_part = class == TextClass::Summary
            && !item.texts.is_empty()
            && item.parts.last() != Some(&(class, part));
        if item.parts.last() != Some(&(class, part)) {
            item.parts.push((class, part));
        }
        if class == TextClass::Call {
            item.call.arguments.push_str(text);
        }
        let free = item.call.free;
        let last = item.text(class);
        if next_part {
            last.waiting.push_str("\\n\\n");
        }
        if current && last.opened && !free && last.waiting.is_empty() {
            return flow.delta(text, sink);
        }
        last.waiting.push_str(text);
        self.show(flow, sink);
    }

    /// What the end of a part repeats: all of it if nothing of the part arrived before.
    pub(super) fn whole(
        &mut self,
        named: EventItem<'_>,
        class: TextClass,
        part: u64,
        text: &str,
        flow: &mut Flow,
        sink: &mut dyn Sink,
    ) {
        let Some(at) = self.place(class.kind(), named, Moment::Goes) else {
            return;
        };
        self.repeats(at, class, Some(part), text);
        if let Some(item) = self.list.get_mut(at).filter(|_| class == TextClass::Call) {
            item.call.whole = true;
        }
        self.show(flow, sink);
    }

    /// An item ends, and repeats its texts. Returns whether this is its first end.
    pub(super) fn end(
        &mut self,
        kind: OutputItemKind,
        named: EventItem<'_>,
        moment: Moment,
        texts: &[(TextClass, String)],
        cut: bool,
    ) -> bool {
        let Some(at) = self.place(kind, named, moment) else {
            return false;
        };
        for (class, text) in texts {
            self.repeats(at, *class, None, text);
        }
        if let Some(item) = self.list.get_mut(at) {
            item.done = !cut;
        }
        true
    }

    /// Takes what a repetition has more than was heard; `part`: it repeats only this part.
    fn repeats(&mut self, at: usize, class: TextClass, part: Option<u64>, text: &str) {
        let Some(item) = self.list.get_mut(at).filter(|item| item.shows(class)) else {
            return;
        };
        let heard = |(known, number): &(TextClass, u64)| {
            *known == class && part.is_none_or(|part| part == *number)
        };
        let rest = match class {
            TextClass::Call => text
                .strip_prefix(item.call.arguments.as_str())
                .unwrap_or_default(),
            _ if item.parts.iter().any(heard) => "",
            _ => text,
        };
        if rest.is_empty() {
            return;
        }
        let between = class == TextClass::Summary && !item.texts.is_empty();
        item.parts.push((class, part.unwrap_or(0)));
        if class == TextClass::Call {
            item.call.arguments.push_str(rest);
        }
        let last = item.text(class);
        if between {
            last.waiting.push_str("\\n\\n");
        }
        last.waiting.push_str(rest);
    }

    /// The answer has ended. At the limit its last item may be cut, and so may calls that wait behind it: these are left out.
    pub(super) fn finish(&mut self, cut: bool, flow: &mut Flow, sink: &mut dyn Sink) {
        if cut {
            let dropped = |item: &ItemBlock| item.is_cut_call() && !item.has_opened();
            self.list.retain(|item| !dropped(item));
            if let Some(open) = self.list.iter().position(ItemBlock::is_cut_call) {
                self.list.truncate(open + 1);
            }
        }
        let last = self.list.len();
        for (at, item) in self.list.iter_mut().enumerate() {
            item.done |= !(cut && at + 1 == last);
        }
        self.show(flow, sink);
    }

    /// Emits what can be emitted.
    pub(super) fn show(&mut self, flow: &mut Flow, sink: &mut dyn Sink) {
        loop {
            let waiting = self.list.get(self.closed..).unwrap_or_default();
            let opened = waiting.first().is_some_and(ItemBlock::has_opened);
            // An item that has nothing to show does not keep the others waiting.
            let next = waiting.iter().position(ItemBlock::is_visible);
            let Some(next) = next.filter(|next| *next == 0 || !opened) else {
                return;
            };
            if let Some(rest) = self.list.get_mut(self.closed..=self.closed + next) {
                // It moves before those that have nothing to show, which keep their order.
                rest.rotate_right(1);
            }
            let Some(item) = self.list.get_mut(self.closed) else {
                return;
            };
            item.show(self.closed, flow, sink);
            if !item.is_complete() {
                return;
            }
            item.close(flow, sink);
            self.closed += 1;
        }
    }
}

impl ItemBlock {
    fn show(&mut self, number: usize, flow: &mut Flow, sink: &mut dyn Sink) {
        if self.kind == OutputItemKind::Call {
            self.text(TextClass::Call);
            if self.call.id.is_empty() {
                self.call.id = made_id(&[&self.call.name, &number.to_string()]);
            }
        }
        while let Some(text) = self.texts.get_mut(self.shown) {
            if !std::mem::replace(&mut text.opened, true) {
                flow.open(open(text.class, &self.call), sink);
                if self.call.free {
                    flow.delta(WRAP[0], sink);
                }
            }
            if self.call.free {
                flow.delta(&escape(&text.waiting), sink);
            } else {
                flow.delta(&text.waiting, sink);
            }
            text.waiting.clear();
            if self.shown + 1 == self.texts.len() {
                return;
            }
            flow.close(sink);
            self.shown += 1;
        }
    }

    fn close(&self, flow: &mut Flow, sink: &mut dyn Sink) {
        if self.call.free {
            flow.delta(WRAP[1], sink);
        } else if self.kind == OutputItemKind::Call && self.call.arguments.is_empty() {
            flow.delta("{}", sink);
        }
        flow.close(sink);
    }
}

fn open(class: TextClass, call: &CallBlock) -> BlockStart<'_> {
    match class {
        TextClass::Text => BlockStart::Text,
        TextClass::Refusal => BlockStart::Refusal,
        TextClass::Summary | TextClass::Reasoning => BlockStart::Thinking,
        TextClass::Call => BlockStart::Call {
            id: &call.id,
            name: &call.name,
        },
    }
}
