//! Which members of an answer customers see, and where it names the model.
//!
//! This is the table for every object in which a family writes about the answer itself: the answer, its choices, messages,
//! deltas, content blocks, output items, parts and usage. What says who served the answer goes; every name of the model becomes
//! the public slug. Of a name that stands twice, clients read the last and others the first: the second `model` goes. What a model
//! or a customer wrote (texts, arguments and inputs of tools, metadata) is never looked into.

use std::ops::Range;

use crate::json::{Cursor, Cuts, Key};

/// Members that identify the provider, its account, or its request.
const IDENTIFYING: [&str; 3] = ["provider", "request_id", "x_groq"];

/// Notes the members of one object in their order.
#[derive(Default)]
pub(crate) struct Members {
    cuts: Cuts,
    model: Option<Range<usize>>,
    named: bool,
    /// More members that customers do not see.
    hidden: &'static [&'static str],
}

/// Places in an answer or a frame that are changed: found in all its objects.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The first, and all others.
    pub(crate) models: (Option<Range<usize>>, Vec<Range<usize>>),
    pub(crate) cuts: Vec<Range<usize>>,
}

impl Members {
    /// Of an object in which these members are hidden, too.
    pub(crate) fn hiding(hidden: &'static [&'static str]) -> Self {
        Self { hidden, ..Self::default() }
    }

    /// The next member; its value has just been read.
    pub(crate) fn take(&mut self, cursor: &Cursor<'_>, key: &Key<'_>) {
        let stays = match key.name.as_ref() {
            "model" => self.take_model(cursor, key),
            name => !IDENTIFYING.contains(&name) && !self.hidden.contains(&name),
        };
        self.cuts.take(key.at..cursor.at(), stays);
    }

    /// A name is replaced, nothing stays nothing, and what a client cannot read as a name goes.
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

    /// Whether all members go.
    pub(crate) fn nothing_stays(&self) -> bool {
        self.cuts.nothing_stays()
    }

    /// Adds what was found to the places of the whole.
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

    /// Adds those of an object that was read apart.
    pub(crate) fn add(&mut self, other: Self) {
        self.cuts.extend(other.cuts);
        self.add_model(other.models.0);
        self.models.1.extend(other.models.1);
    }
}
