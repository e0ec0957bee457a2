//! Reads `abilities = { … }` of a target into [`TargetAbilities`]. Every field is optional; a mistake in one loses the target.

use farebox_protocol::translate::abilities::{
    ReasoningEcho, Sampling, SystemRole, ThinkingWay, ToolIds,
};
use farebox_protocol::translate::neutral::Effort;
use farebox_toml::{Entry, KEYS, Report};

use crate::config::TargetAbilities;

const SAMPLING: &[(&str, Sampling)] = &[
    ("full", Sampling::Full),
    ("one", Sampling::One),
    ("none", Sampling::None),
];
const THINKING: &[(&str, ThinkingWay)] = &[
    ("none", ThinkingWay::None),
    ("effort", ThinkingWay::Effort),
    ("budget", ThinkingWay::Budget),
    ("adaptive", ThinkingWay::Adaptive),
    ("switch", ThinkingWay::Switch),
];
const ECHO: &[(&str, ReasoningEcho)] = &[
    ("none", ReasoningEcho::None),
    ("tools", ReasoningEcho::Tools),
    ("all", ReasoningEcho::All),
];
const SYSTEM_ROLE: &[(&str, SystemRole)] = &[
    ("system", SystemRole::System),
    ("developer", SystemRole::Developer),
    ("user", SystemRole::User),
];

/// Reads the abilities of a target; `None` if something in them is wrong.
pub(super) fn read_abilities(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
) -> Option<TargetAbilities> {
    let fields = value.fields(
        report,
        &format!("the abilities of a target of {what}"),
        &KEYS.abilities,
    )?;
    let sampling = fields.word(report, "sampling", SAMPLING);
    let thinking = fields.word(report, "thinking", THINKING);
    let reasoning_echo = fields.word(report, "reasoning_echo", ECHO);
    let tool_id = fields.word(report, "tool_id", &ToolIds::NAMES);
    let system_role = fields.word(report, "system_role", SYSTEM_ROLE);
    let efforts = fields.given(report, "efforts", |value, report| {
        let words = Effort::NAMES.map(|(effort, name)| (name, effort));
        value.each(report, "efforts", |member, report| {
            member.word(report, &words)
        })
    });
    let mut flag = |name| fields.given(report, name, Entry::boolean);
    let [prefill, system_midway, cache_breakpoints, auto_cache, files] = [
        "prefill",
        "system_midway",
        "cache_breakpoints",
        "auto_cache",
        "files",
    ]
    .map(|name| flag(name).map(|set| set.unwrap_or(false)));
    let [strict_tools, json_schema, custom_tools, vision] =
        ["strict_tools", "json_schema", "custom_tools", "vision"].map(&mut flag);
    Some(TargetAbilities {
        sampling: sampling?,
        thinking: thinking?,
        efforts: efforts?,
        prefill: prefill?,
        system_midway: system_midway?,
        strict_tools: strict_tools?,
        json_schema: json_schema?,
        custom_tools: custom_tools?,
        cache_breakpoints: cache_breakpoints?,
        auto_cache: auto_cache?,
        reasoning_echo: reasoning_echo?,
        vision: vision?,
        files: files?,
        tool_id: tool_id?,
        system_role: system_role?,
    })
}
