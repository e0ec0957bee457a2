//! Which members of an answer customers see, and where it names the model.
//!
//! This is the table for every object in which a family describes the answer itself: the answer, its choices, messages, deltas,
//! content blocks, output items, parts and usage. Members that reveal who served the answer are removed; every model name becomes
//! the public slug. When a name is repeated, some clients read the last and others the first, so a second `model` is removed. What
//! a model or a customer wrote (texts, arguments and inputs of tools, metadata) is never touched.

use std::ops::Range;

use crate::json::{Cursor, Cuts, Key};

/// Members that identify the provider, its account, or its request.
const IDENTIFYING: [&str; 3] = ["provider", "request_id", "x_groq"];

/// Collects the members of one object in their order.
#[derive(Default)]
pub(crate) struct Members {
    cuts: Cuts,
    model: Option<Range<usize>>,
    named: bool,
    /// More members to hide from customers.
    hidden: &'static [&'static str],
}

/// Positions in an answer or a frame that are changed, collected over all its objects.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The first model name, and all others.
    pub(crate) models: (Option<Range<usize>>, Vec<Range<usize>>),
    pub(crate) cuts: Vec<Range<usize>>,
}

impl Members {
    /// For an object in which these members are also hidden.
    pub(crate) fn hiding(hidden: &'static [&'static str]) -> Self {
        Self {
            hidden,
            ..Self::default()
        }
    }

    /// The next member; its value has just been read.
    pub(crate) fn take(&mut self, cursor: &Cursor<'_>, key: &Key<'_>) {
        let stays = match key.name.as_ref() {
            "model" => self.take_model(cursor, key),
            name => !IDENTIFYING.contains(&name) && !self.hidden.contains(&name),
        };
        self.cuts.take(key.at..cursor.at(), stays);
    }

    /// A name is replaced, `null` stays, and anything that a client cannot read as a name is removed.
    fn take_model(&mut self, cursor: &Cursor<'_>, key: &Key<'_>) -> bool {
        if std::mem::replace(&mut self.named, true) {
            return false;
        }
        let value = cursor.slice(key.value..cursor.at());
        let begin = cursor.at() - value.trim_start().len();
        if value.ends_with('"') {
            self.model = Some(begin..cursor.at());
        }
        value.ends_with('"') || value.ends_with("null")
    }

    /// Whether all members are removed.
    pub(crate) fn nothing_stays(&self) -> bool {
        self.cuts.nothing_stays()
    }

    /// Adds the findings to the positions of the whole.
    pub(crate) fn finish(self, places: &mut Places) {
        let cuts = self.cuts.finish();
        if !cuts.is_empty() {
            places.cuts.extend(cuts);
        }
        places.add_model(self.model);
    }
}

impl Places {
    fn add_model(&mut self, model: Option<Range<usize>>) {
        match (&self.models.0, model) {
            (None, model) => self.models.0 = model,
            (Some(_), model) => self.models.1.extend(model),
        }
    }

    /// Adds the findings of an object that was read separately.
    pub(crate) fn add(&mut self, other: Self) {
        self.cuts.extend(other.cuts);
        self.add_model(other.models.0);
        self.models.1.extend(other.models.1);
    }
}
