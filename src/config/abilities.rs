//! A target's abilities beyond the cautious defaults, as configured by the operator; they decide how requests of other families are
//! encoded for it.
//!
//! Only what is set here overrides [`Abilities::careful`] and the catalog's facts about the model. Nothing here can fail.

use std::fmt;

use farebox_protocol::translate::Abilities;
use farebox_protocol::translate::abilities::{
    ReasoningEcho, Sampling, SystemRole, ThinkingWay, ToolIds,
};
use farebox_protocol::translate::neutral::Effort;

/// `abilities` of a target; what is unset keeps its default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetAbilities {
    /// Which of temperature and `top_p` it takes.
    pub sampling: Option<Sampling>,
    /// How it is asked to reason.
    pub thinking: Option<ThinkingWay>,
    /// Those it knows, instead of low, medium and high.
    pub efforts: Option<Vec<Effort>>,
    /// It goes on with a last assistant turn.
    pub prefill: bool,
    /// It takes system messages between turns.
    pub system_midway: bool,
    /// It keeps to the `strict` schemas of tools.
    pub strict_tools: Option<bool>,
    /// It answers by a JSON schema.
    pub json_schema: Option<bool>,
    /// It takes tools whose input is text instead of JSON.
    pub custom_tools: Option<bool>,
    /// It takes marks of the prompt cache in chat's own form.
    pub cache_breakpoints: bool,
    /// It gets a cache mark where the request has none, if cache writes are priced.
    pub auto_cache: bool,
    /// Which earlier thinking it wants back.
    pub reasoning_echo: Option<ReasoningEcho>,
    /// `vision`; the model's own when unset.
    pub vision: Option<bool>,
    /// It reads documents.
    pub files: bool,
    /// Which ids of calls it takes.
    pub tool_id: Option<ToolIds>,
    /// The role in which it takes the system prompt.
    pub system_role: Option<SystemRole>,
}

impl TargetAbilities {
    /// These settings on top of a family's defaults.
    pub fn over(&self, careful: Abilities) -> Abilities {
        Abilities {
            sampling: self.sampling.unwrap_or(careful.sampling),
            thinking: self.thinking.unwrap_or(careful.thinking),
            efforts: self.efforts.clone().unwrap_or(careful.efforts),
            prefill: self.prefill,
            system_midway: self.system_midway,
            strict_tools: self.strict_tools.unwrap_or(careful.strict_tools),
            json_schema: self.json_schema.unwrap_or(careful.json_schema),
            custom_tools: self.custom_tools.unwrap_or(careful.custom_tools),
            cache_breakpoints: self.cache_breakpoints,
            auto_cache: self.auto_cache,
            reasoning_echo: self.reasoning_echo.unwrap_or(careful.reasoning_echo),
            vision: self.vision.unwrap_or(careful.vision),
            files: self.files,
            tool_ids: self.tool_id.unwrap_or(careful.tool_ids),
            system_role: self.system_role.unwrap_or(careful.system_role),
            ..careful
        }
    }

    /// The settings in words, for the operator.
    pub fn shown(&self) -> String {
        let flags = [
            ("prefill", self.prefill),
            ("system_midway", self.system_midway),
            ("cache_breakpoints", self.cache_breakpoints),
            ("auto_cache", self.auto_cache),
            ("files", self.files),
        ];
        let flags = flags
            .into_iter()
            .filter(|(_, set)| *set)
            .map(|(name, _)| name.to_owned());
        let efforts = self.efforts.as_ref().map(|efforts| {
            let names: Vec<&str> = efforts.iter().map(|effort| effort.name()).collect();
            format!("efforts {}", names.join("/"))
        });
        let words = [
            in_words("sampling", self.sampling),
            in_words("thinking", self.thinking),
            efforts,
            in_words("reasoning_echo", self.reasoning_echo),
            in_words("vision", self.vision),
            in_words("strict_tools", self.strict_tools),
            in_words("json_schema", self.json_schema),
            in_words("custom_tools", self.custom_tools),
            in_words("tool_id", self.tool_id),
            in_words("system_role", self.system_role),
        ];
        words
            .into_iter()
            .flatten()
            .chain(flags)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn in_words(name: &str, value: Option<impl fmt::Debug>) -> Option<String> {
    let value = format!("{:?}", value?).to_lowercase();
    Some(format!("{name} {value}"))
}
