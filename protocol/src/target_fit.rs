//! What one target takes of requests: one value for each, made when the files are loaded. The gateway asks no other table.

use std::sync::LazyLock;

use crate::translate::Abilities;
use crate::{ChatLimit, Family};

/// What one target takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFit {
    /// What it can do, as far as its service, its model and the operator say it for all families.
    pub abilities: Abilities,
    /// The chat field in which it reads an output limit.
    pub chat_limit: ChatLimit,
    /// The fields of classes in which its provider's account must not decide.
    pub pin: Vec<&'static str>,
    /// Top-level fields that it accepts although no table knows them.
    pub pass: Vec<String>,
    /// Fields that are left out and named, each as a path of names through objects and lists: `tools.strict`.
    pub drop: Vec<String>,
    /// The members of an assistant's turn that its chat API knows; empty if it takes any.
    pub turn_members: Vec<String>,
    /// It refuses optional members that are `null`.
    pub refuses_nulls: bool,
    /// It has marks of the prompt cache, or ignores them.
    pub takes_marks: bool,
    /// It has the `reasoning` of router clients in chat, or nothing is known about that.
    pub takes_reasoning: bool,
}

impl Default for TargetFit {
    /// A target that takes everything.
    fn default() -> Self {
        Self {
            abilities: Abilities::careful(Family::Chat),
            chat_limit: ChatLimit::AsDeclared,
            pin: Vec::new(),
            pass: Vec::new(),
            drop: Vec::new(),
            turn_members: Vec::new(),
            refuses_nulls: false,
            takes_marks: true,
            takes_reasoning: true,
        }
    }
}

impl TargetFit {
    /// A target that takes everything.
    #[must_use]
    pub fn anything() -> &'static Self {
        static ANYTHING: LazyLock<TargetFit> = LazyLock::new(TargetFit::default);
        &ANYTHING
    }

    /// Whether it is never sent a top-level field.
    pub fn leaves_out(&self, name: &str) -> bool {
        !self.abilities.takes(name) || self.drops(name)
    }

    /// Whether the operator drops what stands at a path.
    pub fn drops(&self, path: &str) -> bool {
        self.drop.iter().any(|dropped| dropped == path)
    }

    /// Whether the operator drops something inside of what stands at a path.
    pub(crate) fn drops_within(&self, path: &str) -> bool {
        let below = |dropped: &String| {
            dropped
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        self.drop.iter().any(below)
    }
}
