//! Which members of an answer customers see, and where it names the model.
//!
//! Two rules. Of an answer's *envelope* (the answer, its choices, its usage, an event) only the family's own members pass: what a
//! provider adds there names its account, its hosts or its price, and tomorrow's names are not known today. Other members are
//! removed and counted, unless the provider's `pass_answer` lists them. Inside messages, deltas, blocks, items and parts everything
//! passes but members that are known to identify: there new members belong to new abilities.
//!
//! Every model name becomes the public slug. When a name is repeated, some clients read the last and others the first, so a second
//! `model` is removed. What a model or a customer wrote (texts, arguments and inputs of tools, metadata) is never touched.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{Cursor, Cuts, JsonError, Kind, MemberName};

/// Members that identify the provider, its account, or its request.
const IDENTIFYING: [&str; 3] = ["provider", "request_id", "x_groq"];

/// The names of an envelope's own members.
pub(crate) type Own = fn(&str) -> bool;

/// Collects the members of one object in their order.
#[derive(Default)]
pub(crate) struct Members {
    cuts: Cuts,
    model: Option<Range<usize>>,
    named: bool,
    /// The object is an envelope with these members.
    own: Option<Own>,
    strange: bool,
}

/// Positions in an answer or a frame that are changed, collected over all its objects.
#[derive(Debug, Default)]
pub(crate) struct MemberPlaces {
    /// The first model name, and all others.
    pub(crate) models: (Option<Range<usize>>, Vec<Range<usize>>),
    pub(crate) cuts: Vec<Range<usize>>,
    /// Some removed member of an envelope is not the family's.
    pub(crate) strange: bool,
}

impl Members {
    /// For an envelope with these members.
    pub(crate) fn of(own: Own) -> Self {
        Self {
            own: Some(own),
            ..Self::default()
        }
    }

    /// The next member, which the reader knows as one of the envelope's own: its name is not looked up again.
    pub(crate) fn keep(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) {
        self.cuts.take(key.at..cursor.at(), true);
    }

    /// The next member; its value has just been read.
    pub(crate) fn take(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) {
        let stays = match key.name.as_ref() {
            "model" => self.take_model(cursor, key),
            name => match self.own {
                None => !IDENTIFYING.contains(&name),
                Some(own) => own(name) || self.stranger(cursor, name),
            },
        };
        self.cuts.take(key.at..cursor.at(), stays);
    }

    /// The next member of an object that only counts something: what is neither a number nor another object is removed.
    pub(crate) fn take_count(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>, kind: Kind) {
        let stays = !matches!(kind, Kind::String | Kind::Array) || self.stranger(cursor, &key.name);
        self.cuts.take(key.at..cursor.at(), stays);
    }

    /// Whether a member that the family does not have passes all the same.
    #[cold]
    fn stranger(&mut self, cursor: &Cursor<'_>, name: &str) -> bool {
        let passes = cursor.may_add(name);
        self.strange |= !passes;
        passes
    }

    /// A name is replaced, `null` stays, and anything that a client cannot read as a name is removed.
    fn take_model(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) -> bool {
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
    pub(crate) fn finish(self, places: &mut MemberPlaces) {
        let cuts = self.cuts.finish();
        if !cuts.is_empty() {
            places.cuts.extend(cuts);
        }
        places.strange |= self.strange;
        places.add_model(self.model);
    }
}

/// The names of removed members; `cuts` are their places in an answer or a frame. Names that say nothing new are left out.
pub(crate) fn names<'a>(
    text: &'a [u8],
    cuts: &'a [Range<usize>],
) -> impl Iterator<Item = Cow<'a, str>> {
    cuts.iter().filter_map(move |cut| {
        let text = str::from_utf8(text.get(cut.clone())?).ok()?;
        let begin = text.find('"')?;
        let mut cursor = Cursor::new(text.as_bytes()).ok()?.back_to(begin);
        let name = cursor.skip().ok()?;
        cursor.text_of(&name).filter(|name| name != "model")
    })
}

/// The edits to an event that the family does not have: it has no known envelope.
pub(crate) fn of_unfamiliar(mut cursor: Cursor<'_>) -> Result<MemberPlaces, JsonError> {
    let (mut members, mut places) = (Members::default(), MemberPlaces::default());
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        cursor.skip()?;
        members.take(&cursor, &key);
    }
    members.finish(&mut places);
    Ok(places)
}

impl MemberPlaces {
    fn add_model(&mut self, model: Option<Range<usize>>) {
        match (&self.models.0, model) {
            (None, model) => self.models.0 = model,
            (Some(_), model) => self.models.1.extend(model),
        }
    }

    /// Adds the findings of an object that was read separately.
    pub(crate) fn add(&mut self, other: Self) {
        self.cuts.extend(other.cuts);
        self.strange |= other.strange;
        self.add_model(other.models.0);
        self.models.1.extend(other.models.1);
    }
}
