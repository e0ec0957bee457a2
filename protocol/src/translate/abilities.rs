//! A target's abilities, as far as they matter for a translation. Configured by the operator; the defaults are the cautious values.

use super::neutral::Effort;
use crate::Family;

/// Which sampling parameters a target accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// Temperature and top_p.
    Full,
    /// One of them.
    One,
    /// Neither.
    None,
}

/// How reasoning is requested from a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ThinkingWay {
    /// It cannot be requested.
    None,
    /// By an effort.
    Effort,
    /// By a number of tokens.
    Budget,
    /// By itself, with an effort.
    Adaptive,
    /// On or off: `thinking: {type}`.
    Switch,
}

/// Which earlier thinking a chat target expects back as `reasoning_content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasoningEcho {
    /// None.
    None,
    /// Of turns with calls.
    Tools,
    /// Of all turns; a turn without any sends a space.
    All,
}

/// Which call ids a chat target accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolIds {
    /// Any.
    Any,
    /// Exactly nine letters and digits.
    Nine,
}

impl ToolIds {
    /// Every kind with its name.
    pub const NAMES: [(&'static str, Self); 2] = [("any", Self::Any), ("mistral9", Self::Nine)];
}

/// The role in which a chat target takes the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SystemRole {
    /// `system`
    System,
    /// `developer`
    Developer,
    /// `user`: the model has no system prompt.
    User,
}

/// A target's abilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// The name of a chat target's limit field.
    pub limit_field: &'static str,
    /// Hints that a chat target refuses by their names.
    pub leave_out: Vec<String>,
    /// A chat target wants the first call of each turn signed.
    pub signed_calls: bool,
    /// A chat target takes an effort beside function tools.
    pub effort_with_tools: bool,
    /// A native target thinks whatever it is told, and refuses to be told not to.
    pub thinks_always: bool,
    /// It takes stop strings, if its family has them.
    pub stops: bool,
    /// Which of temperature and `top_p` it takes.
    pub sampling: Sampling,
    /// A chat target's `top_k`.
    pub top_k: bool,
    /// How it is asked to reason.
    pub thinking: ThinkingWay,
    /// Efforts it knows.
    pub efforts: Vec<Effort>,
    /// The answer may continue a last assistant turn.
    pub prefill: bool,
    /// System messages may appear between turns.
    pub system_midway: bool,
    /// `strict` schemas of tools.
    pub strict_tools: bool,
    /// Answers by a JSON schema.
    pub json_schema: bool,
    /// Tools whose input is text instead of JSON.
    pub custom_tools: bool,
    /// Marks of the prompt cache in chat's own form.
    pub cache_breakpoints: bool,
    /// Cache writes of one hour are priced.
    pub long_cache: bool,
    /// A cache mark is added to conversations without one, if cache writes are priced.
    pub auto_cache: bool,
    /// Earlier thinking.
    pub reasoning_echo: ReasoningEcho,
    /// The longest output it gives.
    pub max_output: u32,
    /// Pictures.
    pub vision: bool,
    /// Documents.
    pub files: bool,
    /// Ids of calls.
    pub tool_ids: ToolIds,
    /// The role of the system prompt.
    pub system_role: SystemRole,
}

impl Abilities {
    /// The assumptions about an unknown target of this family. Strict tools, JSON schemas and tools with free text are part of the
    /// responses family itself.
    #[must_use]
    pub fn careful(family: Family) -> Self {
        // A wrong guess upwards is a 400 for the customer, a wrong guess downwards only a weaker request: so what a vendor may
        // lack is assumed to be missing.
        let responses = family == Family::Responses;
        Self {
            // The older name: servers that know only the newer one are rare, and their presets say so.
            limit_field: "max_tokens",
            leave_out: Vec::new(),
            signed_calls: false,
            effort_with_tools: true,
            thinks_always: false,
            stops: true,
            sampling: if family == Family::Messages {
                // Newer models of this family reject a request that sets both.
                Sampling::One
            } else {
                Sampling::Full
            },
            top_k: false,
            thinking: ThinkingWay::None,
            efforts: vec![Effort::Low, Effort::Medium, Effort::High],
            prefill: false,
            system_midway: false,
            strict_tools: responses,
            json_schema: responses,
            custom_tools: responses,
            cache_breakpoints: false,
            long_cache: false,
            auto_cache: false,
            reasoning_echo: ReasoningEcho::None,
            // Few models give less. With a larger guess a small one would reject the request for its limit.
            max_output: 8_192,
            vision: false,
            files: false,
            tool_ids: ToolIds::Any,
            system_role: if responses {
                SystemRole::Developer
            } else {
                SystemRole::System
            },
        }
    }

    /// The same if it is known whether the model reasons: on responses, a reasoning model takes an effort and no sampling
    /// parameters.
    #[must_use]
    pub fn of_reasoning(self, reasons: bool, family: Family) -> Self {
        match (reasons, family) {
            // Vendors of this family answer 400 to a temperature for a model that reasons.
            (true, Family::Responses) => Self {
                thinking: ThinkingWay::Effort,
                sampling: Sampling::None,
                ..self
            },
            _ => self,
        }
    }

    /// Whether the target takes this hint.
    pub(crate) fn takes(&self, hint: &str) -> bool {
        !self.leave_out.iter().any(|left| left == hint)
    }

    /// The supported effort closest to this one: the next lower one, else the lowest.
    pub fn effort(&self, wanted: Effort) -> Option<Effort> {
        let known = self
            .efforts
            .iter()
            .copied()
            .filter(|effort| *effort != Effort::None);
        known
            .clone()
            .filter(|effort| *effort <= wanted)
            .max()
            .or_else(|| known.min())
    }
}
