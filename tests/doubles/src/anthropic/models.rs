//! What depends on the model, and on whether it thinks.

use serde_json::Value;

use super::{since, version};
use crate::rule::{Must, WireRule};
use crate::seal::prefixes_fit;

use Must::{Absent, Hold, OneOf};

const NO_BUDGET: &str = "400 \"thinking.type.enabled is not supported for this model\" with opus-4-8, opus-5, fable-5, sonnet-5, 2026-09-08: github.com/handochan/aelix-ai/issues/258; with sonnet-5-5, measured 2026-09-29 in github.com/aakshintala/fiber (\"Anthropic Messages facts, probed\", #132)";
const ALWAYS: &str = "400 \"thinking.type.disabled is not supported for this model\" with opus-5-5, 2026-09-23: github.com/NousResearch/hermes-agent/issues/120069; with fable-5, probed 2026-08-20: github.com/NousResearch/hermes-agent/pull/90948; with fable-5 and mythos-5: platform.claude.com/docs/en/models/fable-5/migration-guide, read 2026-11-28";
const NO_ADAPTIVE: &str = "400 \"adaptive thinking is not supported on this model\" with sonnet-4-5, 2026-07-06: github.com/vellum-ai/vellum-assistant/pull/37276";
const NO_SAMPLING: &str = "400 \"temperature is deprecated for this model\", 2026-07-01: github.com/dust-tt/dust/pull/28308; other values than the default, from 4.7 on: github.com/immersive-translate/immersive-translate/issues/3971";
const ONE_SAMPLING: &str = "400 \"temperature and top_p cannot both be specified for this model\" with sonnet-4-5 and 4-6, 2025-10-01: github.com/n8n-io/n8n/issues/20240, 2026-05-16: github.com/Vali-98/ChatterUI/issues/564";
const BUDGET: &str = "budget_tokens less than max_tokens: anthropic 2.12.0 (PyPI, 2026-11-23): types/thinking_config_enabled_param.py; 400 \"Thinking may not be enabled when tool_choice forces tool use\", 2025-09-05: github.com/mastra-ai/mastra/issues/7507, 2026-03-09: github.com/can1357/oh-my-pi/issues/341; 400 \"`temperature` may only be set to 1 when thinking is enabled\", 2025-03-05: github.com/MartialBE/one-hub/issues/529";
const PREFILL: &str = "400 \"This model does not support assistant message prefill. The conversation must end with a user message.\" from 4.6 on, 2026-02-18: github.com/Skyvern-AI/skyvern/pull/4795, 2026-04-02: github.com/anomalyco/opencode/issues/13768; anthropic 2.12.0 (PyPI, 2026-11-23): types/message_create_params.py, messages";
const THINKING_FIRST: &str = "400 \"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block\", 2025-08-04: github.com/deepset-ai/haystack-core-integrations/issues/2146; 2026-01-20: github.com/Kilo-Org/kilocode/issues/5219";

const BOUND: &str = "400 \"The block is bound to a different conversation\" where system, tools, an earlier message or thinking differ, from fable-5-1 on, unless `drop_block` is asked for: platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks.md, read 2026-11-23; github.com/anomalyco/opencode/issues/48637, 2026-09-12; cache marks are left out: docs.litellm.ai/docs/providers/anthropic_preserved_thinking.md, 2026-10-14";

/// Rules about the model.
#[rustfmt::skip]
pub(crate) const MODELS: &[WireRule] = &[
    WireRule::new("/thinking/type", OneOf(&["adaptive", "disabled", "between_tools"]), NO_BUDGET)
        .named("adaptive only").when(is_adaptive_only)
        .broken_by(&[("/model", "\"claude-sonnet-5-5\""), ("/thinking", r#"{"type":"enabled","budget_tokens":1024}"#)]),
    WireRule::new("/thinking/type", OneOf(&["enabled", "disabled"]), NO_ADAPTIVE)
        .named("budget only").when(is_budget_only)
        .broken_by(&[("/model", "\"claude-sonnet-4-5-20250929\""), ("/thinking", r#"{"type":"adaptive"}"#)]),
    WireRule::new("/thinking/type", OneOf(&["adaptive", "enabled", "between_tools"]), ALWAYS)
        .named("always").when(always_thinks)
        .broken_by(&[("/model", "\"claude-fable-5\""), ("/thinking", r#"{"type":"disabled"}"#)]),
    WireRule::new("/temperature", Hold(is_default), NO_SAMPLING)
        .named("no sampling").when(is_adaptive_only)
        .broken_by(&[("/model", "\"claude-sonnet-5-5\""), ("/temperature", "0.5")]),
    WireRule::new("/top_p", Hold(is_default), NO_SAMPLING)
        .named("no sampling").when(is_adaptive_only)
        .broken_by(&[("/model", "\"claude-sonnet-5-5\""), ("/top_p", "0.5")]),
    WireRule::new("/top_k", Absent, NO_SAMPLING)
        .named("no sampling").when(is_adaptive_only)
        .broken_by(&[("/model", "\"claude-sonnet-5-5\""), ("/top_k", "5")]),
    WireRule::new("/top_p", Absent, ONE_SAMPLING)
        .named("beside temperature").when(has_one_sampling)
        .broken_by(&[("/model", "\"claude-sonnet-4-5-20250929\""), ("/temperature", "0.5"), ("/top_p", "0.5")]),
    WireRule::new("", Hold(budget_fits), BUDGET)
        .named("budget below the limit")
        .broken_by(&[("/model", "\"claude-sonnet-4-5-20250929\""), ("/thinking", r#"{"type":"enabled","budget_tokens":2048}"#), ("/max_tokens", "2048")]),
    WireRule::new("/tool_choice/type", OneOf(&["auto", "none"]), BUDGET)
        .named("not forced while thinking").when(thinks)
        .broken_by(&[("/thinking", r#"{"type":"adaptive"}"#), ("/model", "\"claude-sonnet-5-5\""), ("/tool_choice", r#"{"type":"any"}"#)]),
    WireRule::new("/temperature", Hold(is_default), BUDGET)
        .named("while thinking").when(thinks)
        .broken_by(&[("/model", "\"claude-sonnet-4-5-20250929\""), ("/thinking", r#"{"type":"enabled","budget_tokens":1024}"#), ("/max_tokens", "2048"), ("/temperature", "0.5")]),
    WireRule::new("/messages", Hold(ends_with_the_user), PREFILL)
        .named("no prefill").when(has_no_prefill)
        .broken_by(&[("/model", "\"claude-sonnet-5-5\""), ("/messages/-", r#"{"role":"assistant","content":"The"}"#)]),
    WireRule::new("", Hold(prefixes_fit), BOUND)
        .named("thinking after the same words").when(binds_thinking)
        .broken_by(&[("/system", "\"Be long.\"")]),
    WireRule::new("/messages", Hold(thinking_first), THINKING_FIRST)
        .named("thinking first").when(thinks_by_budget)
        .broken_by(&[("/model", "\"claude-sonnet-4-5-20250929\""), ("/thinking", r#"{"type":"enabled","budget_tokens":1024}"#), ("/max_tokens", "2048"),
            ("/messages", r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]"#)]),
];

/// Accounts since 2026-08-31; older ones are only told.
fn binds_thinking(body: &Value) -> bool {
    let behaviour = body.pointer("/thinking/block_binding/prefix_mismatch_behavior");
    since(body, 5, 1) && behaviour.is_none_or(|behaviour| behaviour != "drop_block")
}

fn always_thinks(body: &Value) -> bool {
    let model = body["model"].as_str().unwrap_or_default();
    let series = ["claude-fable", "claude-mythos", "claude-opus-5-5"];
    series.iter().any(|series| model.contains(series))
}

fn is_adaptive_only(body: &Value) -> bool {
    since(body, 4, 7)
}

fn is_budget_only(body: &Value) -> bool {
    version(body).is_some() && !since(body, 4, 6)
}

fn has_one_sampling(body: &Value) -> bool {
    since(body, 4, 5) && body.get("temperature").is_some()
}

fn has_no_prefill(body: &Value) -> bool {
    since(body, 4, 6)
}

fn thinks(body: &Value) -> bool {
    matches!(
        body["thinking"]["type"].as_str(),
        Some("enabled" | "adaptive")
    )
}

fn thinks_by_budget(body: &Value) -> bool {
    body["thinking"]["type"] == "enabled"
}

fn is_default(value: &Value) -> Result<(), String> {
    if value.as_f64() == Some(1.0) {
        return Ok(());
    }
    Err(format!(
        "{value}: only the default is accepted by this model"
    ))
}

fn budget_fits(body: &Value) -> Result<(), String> {
    let budget = body["thinking"]["budget_tokens"].as_u64();
    // Counting takes no limit.
    let limit = body["max_tokens"].as_u64();
    if let (Some(budget), Some(limit)) = (budget, limit)
        && budget >= limit
    {
        return Err("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned());
    }
    Ok(())
}

fn ends_with_the_user(messages: &Value) -> Result<(), String> {
    let last = messages.as_array().and_then(|messages| messages.last());
    if last.is_some_and(|last| last["role"] == "assistant") {
        return Err("This model does not support assistant message prefill".to_owned());
    }
    Ok(())
}

/// The calls whose results the request brings were made while thinking.
fn thinking_first(messages: &Value) -> Result<(), String> {
    let messages: Vec<&Value> = messages.as_array().into_iter().flatten().collect();
    let brings_results = messages.last().is_some_and(|last| {
        let mut blocks = last["content"].as_array().into_iter().flatten();
        blocks.any(|block| block["type"] == "tool_result")
    });
    let spoken = messages
        .iter()
        .rposition(|message| message["role"] == "assistant");
    let Some(spoken) = spoken.filter(|_| brings_results) else {
        return Ok(());
    };
    let first = messages
        .get(spoken)
        .map(|message| &message["content"][0]["type"]);
    match first.and_then(Value::as_str) {
        Some("thinking" | "redacted_thinking") => Ok(()),
        other => Err(format!(
            "{spoken}.content.0.type: Expected `thinking` or `redacted_thinking`, but found {other:?}"
        )),
    }
}
