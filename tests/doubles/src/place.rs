//! Places in a request: JSON pointers with `*` for every item and conditions on members.
//!
//! `/messages/*[role=user|system]/content/*[type=text]/text`. A place that begins with `@` is a header, by its name in lower case.
//!
//! A double judges each request by hundreds of rules, so their places are read once, into a [`Tree`]: one walk of a request finds
//! every value at every place.

use serde_json::Value;

/// Many places, each with the numbers that were added at it.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    here: Vec<usize>,
    /// Below the members of these names, in order.
    members: Vec<(&'static str, Steps)>,
    /// Below every item or member.
    each: Option<Box<Steps>>,
}

/// What is below a value, by what the value is.
#[derive(Debug, Default)]
struct Steps {
    /// Whatever it is.
    any: Tree,
    /// Where a member of it, by its name, is one of some texts.
    some: Vec<(&'static str, Cases)>,
}

/// Below values whose member is one of these texts.
type Cases = Vec<(Vec<&'static str>, Tree)>;

/// The way from the root to a value: it becomes a pointer only where something is wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way<'w> {
    Root,
    Member(&'w Way<'w>, &'w str),
    Item(&'w Way<'w>, usize),
}

impl Tree {
    /// Adds a number at a place.
    pub(crate) fn add(&mut self, place: &'static str, number: usize) {
        let mut tree = self;
        for step in place.split('/').filter(|step| !step.is_empty()) {
            let (name, condition) = step.split_once('[').unwrap_or((step, ""));
            tree = tree.steps(name).below(condition);
        }
        tree.here.push(number);
    }

    fn steps(&mut self, name: &'static str) -> &mut Steps {
        if name == "*" {
            return self.each.get_or_insert_default();
        }
        let place = self.members.binary_search_by_key(&name, |known| known.0);
        let at = place.unwrap_or_else(|at| {
            self.members.insert(at, (name, Steps::default()));
            at
        });
        &mut self.members[at].1
    }

    /// Shows every value at every place, with the numbers added there.
    pub(crate) fn walk<'v>(
        &self,
        value: &'v Value,
        way: Way<'_>,
        show: &mut impl FnMut(&[usize], Way<'_>, &'v Value),
    ) {
        if !self.here.is_empty() {
            show(&self.here, way, value);
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let way = Way::Member(&way, name);
                    let known = |known: &(&str, Steps)| known.0.cmp(name);
                    if let Ok(at) = self.members.binary_search_by(known) {
                        self.members[at].1.walk(member, way, show);
                    }
                    if let Some(each) = &self.each {
                        each.walk(member, way, show);
                    }
                }
            }
            Value::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    if let Some(each) = &self.each {
                        each.walk(item, Way::Item(&way, number), show);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Steps {
    /// Where a condition holds: `role=user|system]`, or nothing.
    fn below(&mut self, condition: &'static str) -> &mut Tree {
        let Some((member, texts)) = condition.trim_end_matches(']').split_once('=') else {
            return &mut self.any;
        };
        let trees = found_or(
            &mut self.some,
            |some| some.0 == member,
            || (member, Vec::new()),
        );
        let texts: Vec<&str> = texts.split('|').collect();
        let tree = found_or(
            &mut trees.1,
            |tree| tree.0 == texts,
            || (texts.clone(), Tree::default()),
        );
        &mut tree.1
    }

    fn walk<'v>(
        &self,
        value: &'v Value,
        way: Way<'_>,
        show: &mut impl FnMut(&[usize], Way<'_>, &'v Value),
    ) {
        self.any.walk(value, way, show);
        for (member, trees) in &self.some {
            let Some(text) = value.get(*member).and_then(Value::as_str) else {
                continue;
            };
            for (_, tree) in trees.iter().filter(|tree| tree.0.contains(&text)) {
                tree.walk(value, way, show);
            }
        }
    }
}

/// The item that fits, or a new one at the end.
fn found_or<T>(items: &mut Vec<T>, fits: impl Fn(&T) -> bool, new: impl Fn() -> T) -> &mut T {
    let at = items.iter().position(fits).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    });
    &mut items[at]
}

impl Way<'_> {
    /// As a JSON pointer.
    pub(crate) fn pointer(self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Member(before, name) => {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                format!("{}/{escaped}", before.pointer())
            }
            Self::Item(before, number) => format!("{}/{number}", before.pointer()),
        }
    }
}

/// `/messages/0/content` as vendors write it: `messages[0].content`.
pub(crate) fn spoken(pointer: &str) -> String {
    let mut out = String::new();
    for step in pointer.split('/').filter(|step| !step.is_empty()) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str(&format!("[{step}]"));
        } else {
            let dot = if out.is_empty() { "" } else { "." };
            out.push_str(&format!("{dot}{step}"));
        }
    }
    out
}
