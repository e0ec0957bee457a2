//! Classes as an upstream serves and names them: at its own prices, whatever it was asked for.
#![cfg(test)]

use serde_json::{Value, json};

/// A class, as this upstream knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Class {
    #[default]
    Standard,
    Flex,
    Fast,
    Us,
    FastUs,
}

impl Class {
    /// Its price, in thousandths of the standard one.
    pub(crate) fn times(self) -> i64 {
        match self {
            Self::Standard => 1_000,
            Self::Flex => 500,
            Self::Fast => 2_000,
            Self::Us => 1_100,
            Self::FastUs => 2_200,
        }
    }

    /// What a family can say: messages has no flex, the others no place.
    fn of(self, messages: bool) -> Self {
        match (self, messages) {
            (Self::Flex, true) | (Self::Us, false) => Self::Standard,
            (Self::FastUs, false) => Self::Fast,
            (class, _) => class,
        }
    }

    fn tier(self) -> &'static str {
        match self {
            Self::Standard | Self::Us => "default",
            Self::Flex => "flex",
            Self::Fast | Self::FastUs => "priority",
        }
    }
}

/// What a request asks for.
pub(crate) fn asked(body: &Value) -> Class {
    let fast = body["speed"] == "fast"
        || ["priority", "fast"]
            .iter()
            .any(|word| body["service_tier"] == *word);
    match (fast, body["inference_geo"] == "us") {
        (true, true) => Class::FastUs,
        (true, false) => Class::Fast,
        (false, true) => Class::Us,
        _ if body["service_tier"] == "flex" => Class::Flex,
        _ => Class::Standard,
    }
}

/// Which class an upstream serves, and what its answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Serves {
    /// As asked, and it says nothing.
    #[default]
    Silent,
    /// As asked, and it says so.
    AsAsked,
    /// Always this.
    Always(Class),
    /// The first event of a stream repeats the request, and the standard is served.
    Echoes,
    /// As asked, in a word that nobody knows.
    Unknown,
    /// As asked, in an object.
    Object,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Saying {
    /// What is billed, in thousandths; 0 is 1,000.
    pub(crate) times: i64,
    names: Names,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Names {
    #[default]
    Nothing,
    Class(Class),
    /// The first class in the frames before the last, the other then.
    Changes(Class, Class),
    Unknown,
    Object,
}

impl Serves {
    /// What it bills and says; `messages`: in that family.
    pub(crate) fn saying(self, asked: Class, messages: bool) -> Saying {
        let (served, names) = match self {
            Self::Silent => (asked, Names::Nothing),
            Self::AsAsked => (asked, Names::Class(asked)),
            Self::Always(class) => {
                let class = class.of(messages);
                (class, Names::Class(class))
            }
            Self::Echoes => (Class::Standard, Names::Changes(asked, Class::Standard)),
            Self::Unknown => (asked, Names::Unknown),
            Self::Object => (asked, Names::Object),
        };
        Saying {
            times: served.times(),
            names,
        }
    }
}

impl Saying {
    fn word(self, ends: bool) -> Option<Value> {
        match self.names {
            Names::Nothing => None,
            Names::Class(class) => Some(json!(class.tier())),
            Names::Changes(_, last) if ends => Some(json!(last.tier())),
            Names::Changes(first, _) => Some(json!(first.tier())),
            Names::Unknown => Some(json!("turbo")),
            Names::Object => Some(json!({"tier": "priority"})),
        }
    }

    /// A chunk, or a whole answer.
    pub(crate) fn chat(self, answer: &mut Value, ends: bool) {
        if let Some(word) = self.word(ends) {
            answer["service_tier"] = word;
        }
    }

    pub(crate) fn response(self, response: &mut Value, ends: bool) {
        self.chat(response, ends);
    }

    /// The usage of a whole answer, or of the event that begins a stream: nothing is said after that.
    pub(crate) fn message(self, usage: &mut Value) {
        if !usage.is_object() {
            return;
        }
        match self.names {
            Names::Nothing => {}
            Names::Unknown => usage["speed"] = json!("turbo"),
            Names::Object => usage["speed"] = json!({"tier": "fast"}),
            // There the first event stands, so that it says what is served.
            Names::Class(class) | Names::Changes(_, class) => {
                let fast = matches!(class, Class::Fast | Class::FastUs);
                let us = matches!(class, Class::Us | Class::FastUs);
                usage["speed"] = json!(if fast { "fast" } else { "standard" });
                usage["inference_geo"] = json!(if us { "us" } else { "global" });
                usage["service_tier"] = json!("standard");
            }
        }
    }
}
