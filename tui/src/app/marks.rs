//! Marked keys: what acts in bulk apply to. A mark stays while its key is filtered out or scrolled away.

use std::collections::BTreeMap;
use std::sync::Arc;

use farebox_ledger::{Key, KeyId};

use super::ConsoleApp;
use super::keys::WINDOW;
use super::message::Effect;

/// The marked keys, as they were last read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    keys: BTreeMap<KeyId, Arc<Key>>,
    /// The last one, where a range begins.
    last: Option<KeyId>,
}

impl PartialEq for Marks {
    fn eq(&self, other: &Self) -> bool {
        // A key that was only read again is no change to undo.
        self.keys.keys().eq(other.keys.keys())
    }
}

impl Eq for Marks {}

impl Marks {
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn has(&self, id: KeyId) -> bool {
        self.keys.contains_key(&id)
    }

    /// The keys, by their ids.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.values().map(|key| &**key)
    }

    /// Takes fresher values of a key, if it is marked.
    pub(crate) fn freshen(&mut self, key: &Key) {
        if let Some(marked) = self.keys.get_mut(&key.id) {
            *marked = Arc::new(key.clone());
        }
    }

    pub(crate) fn remove(&mut self, id: KeyId) {
        self.keys.remove(&id);
    }

    fn add(&mut self, key: &Key) {
        if self.keys.len() < WINDOW {
            self.keys.insert(key.id, Arc::new(key.clone()));
        }
        self.last = Some(key.id);
    }
}

impl ConsoleApp {
    /// Marks the selected key, or takes its mark away, and goes on to the next.
    pub(super) fn mark(&mut self) -> Vec<Effect> {
        let Some(key) = self.keys.row().map(|row| row.key.clone()) else {
            return Vec::new();
        };
        if self.marks.has(key.id) {
            self.marks.remove(key.id);
        } else {
            self.marks.add(&key);
        }
        self.move_by(1)
    }

    /// Marks everything from the last mark to the selected key.
    pub(super) fn mark_range(&mut self) {
        let rows = &self.keys.rows;
        let last = self.marks.last;
        let from = rows.iter().position(|row| Some(row.key.id) == last);
        let here = self.keys.list.selected;
        let from = from.unwrap_or(here);
        let (first, end) = (from.min(here), (from.max(here) + 1).min(rows.len()));
        for row in rows.range(first.min(end)..end) {
            self.marks.add(&row.key);
        }
    }

    /// Marks every key that the filter lets through, or takes all marks away if they all have one.
    pub(super) fn mark_all(&mut self) {
        let rows = &self.keys.rows;
        if rows.iter().all(|row| self.marks.has(row.key.id)) {
            self.marks = Marks::default();
            return;
        }
        for row in rows {
            self.marks.add(&row.key);
        }
        if !self.keys.is_whole() {
            let marked = crate::format::count(self.marks.len() as u64);
            let text = format!("{marked} keys are marked: those that were read; filter to see all");
            self.say(text, true);
        }
    }
}
