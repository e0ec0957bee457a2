//! What the libraries of model routers, and programs like them, read of a list of models: every member that they require, in its type.
//! They refuse a whole list for one absent member.
//!
//! Taken from `openrouter` (PyPI) and `@openrouter/sdk` (npm); `tests/clients/run routers` reads ours with both. What opencode and Kilo
//! read is listed in `tests/http/models.rs`.

use farebox_ledger::Amount;
use serde_json::{Map, Value, json};

use crate::config::{Capability, Model, Rates};

/// Request fields that every model takes.
const OF_ALL: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "response_format",
    "structured_outputs",
];
/// Those of a model that calls tools.
const OF_TOOLS: &[&str] = &["tools", "tool_choice", "parallel_tool_calls"];
/// Those of a model that reasons.
const OF_REASONING: &[&str] = &["reasoning_effort", "reasoning"];
/// Those among all of them that are about sampling.
const SAMPLING: &[&str] = &["temperature", "top_p", "stop"];

/// What it reads.
pub(super) fn inputs(model: &Model) -> &'static [&'static str] {
    if model.can(Capability::Vision) {
        &["text", "image", "file"]
    } else {
        &["text"]
    }
}

/// The members of one entry.
pub(super) fn members(model: &Model) -> Value {
    let inputs = inputs(model);
    let modality = format!("{}->text", inputs.join("+"));
    let limits = &model.limits;
    let features = [Capability::Tools, Capability::Reasoning];
    let features = features.into_iter().filter(|feature| model.can(*feature));
    json!({
        "name": model.name,
        "canonical_slug": model.slug,
        "context_length": limits.context,
        "max_completion_tokens": limits.max_output,
        "max_output_length": limits.max_output,
        "input_modalities": inputs,
        "output_modalities": ["text"],
        "supported_features": features.map(|feature| feature.name()).collect::<Vec<_>>(),
        "supported_sampling_parameters": SAMPLING,
        "architecture": {
            "input_modalities": inputs,
            "output_modalities": ["text"],
            "modality": modality,
            "tokenizer": "Other",
            "instruct_type": null,
        },
        "pricing": pricing(&model.price.base),
        "top_provider": {
            "context_length": limits.context,
            "max_completion_tokens": limits.max_output,
            "is_moderated": false,
        },
        "supported_parameters": parameters(model),
        "default_parameters": null,
        "per_request_limits": null,
        "supported_voices": null,
        "links": { "details": format!("/v1/models/{}", model.slug) },
    })
}

fn parameters(model: &Model) -> Vec<&'static str> {
    let mut fields = OF_ALL.to_vec();
    for (capability, more) in [
        (Capability::Tools, OF_TOOLS),
        (Capability::Reasoning, OF_REASONING),
    ] {
        if model.can(capability) {
            fields.extend(more);
        }
    }
    fields
}

/// USD per token, picture and request, as decimal text.
fn pricing(rates: &Rates) -> Map<String, Value> {
    let each = |rate: Amount| json!(rate.to_string());
    let mut pricing = Map::new();
    for (name, rate) in [
        ("prompt", rates.input),
        ("completion", rates.output),
        ("request", rates.per_request),
        ("image", rates.per_image),
        ("input_cache_read", rates.cache_read),
        ("input_cache_write", rates.cache_write),
        ("internal_reasoning", rates.reasoning),
    ] {
        pricing.insert(name.to_owned(), each(rate));
    }
    pricing
}
