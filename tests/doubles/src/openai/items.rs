//! Input items of the responses wire, their parts, and their order.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::rule::{JsonType, Must, WireRule, word};
use crate::seal::{reasoning_and_its_items, was_encrypted};

use JsonType::{List, Null, Object, Text};
use Must::{Be, Closed, Hold, Long, Needs, OneOf, Spelt, Start};

const ITEM: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/responses/response_input_param.py";
const PART: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/responses/response_input_*_param.py, response_output_*_param.py";
const KINDS: &str = "400 invalid_value \"Invalid value: 'text'. Supported values are: 'input_text', 'input_image', 'input_audio', 'output_text', 'refusal', 'input_file', 'computer_screenshot', 'summary_text', and 'encrypted_content'\", 2026-08-14: github.com/MervinPraison/PraisonAI/issues/3934";
const INPUT_ONLY: &str = "400 \"Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.\" in an assistant message, 2026-01-17: github.com/jeremychone/rust-genai/pull/119";
const ANSWERED: &str = "400 \"No tool call found for function call output with call_id\", 2026-07-20: github.com/james-6-23/codex2api/issues/414; 400 \"No tool output found for function call\", 2026-09-03: github.com/openai/openai-support-agent-demo/issues/12";
const IDS: &str = "400 string_above_max_length \"Invalid 'input[95].call_id': string too long. Expected a string with maximum length 64\", 2026-06-08: github.com/AnswerDotAI/fastllm/issues/45";
const NAME: &str = "no source found (2026-11-23) for names of calls: OpenAI's OpenAPI document 2.3.0 gives FunctionToolCall.name no pattern";
const ITEM_ID: &str = "400 invalid_value \"Invalid 'input[1].id': 'item_…'. Expected an ID that begins with 'fc'.\", 2026-07-07: github.com/Wei-Shaw/sub2api/issues/3785";
const ADDRESS: &str = "400 \"Expected a base64-encoded data URL with an image MIME type\", 2025-06-20: github.com/mkht/PSOpenAI/issues/43; png, jpeg, gif and webp are taken and bmp is not, 2026-09-12: github.com/yuji-hatakeyama/opencode-gpt-imagegen/pull/82";
const FILES: &str = "200 for a data URL in file_data, 400 \"Invalid file_data\" for bare base64, measured in github.com/strands-agents/harness-sdk/pull/3576, 2026";
const SEALED: &str = "404 \"Item with id 'rs_…' not found. Items are not persisted when `store` is set to false\", 2026-02-12: github.com/can1357/oh-my-pi/issues/41";

const FOREIGN: &str = "400 invalid_encrypted_content \"The encrypted content gAAA... could not be verified.\", 2025-12-16: github.com/openai/codex/issues/8145; of another account, 2026-05-28: github.com/Wei-Shaw/sub2api/issues/2863; no source found (2026-11-23) that it is bound to what stands before it";
const TOGETHER: &str = "400 \"Item 'rs_…' of type 'reasoning' was provided without its required following item.\", 2025-11-28: github.com/continuedev/continue/issues/8933; \"Item 'msg_…' was provided without its required 'reasoning' item: 'rs_…'.\", 2026-04-02: github.com/continuedev/continue/issues/11994";

/// Items and parts.
#[rustfmt::skip]
pub(crate) const ITEMS: &[WireRule] = &[
    WireRule::new("/input/*", Be(&[Object]), ITEM),
    WireRule::new("/input/*", Hold(is_an_item), ITEM)
        .broken_by(&[("/input", r#"[{"content":"a"}]"#)]),
    WireRule::new("/input/*/role", OneOf(&["user", "assistant", "system", "developer"]), ITEM),
    WireRule::new("/input/*[role=user|system|developer]", Needs(&["content"]), ITEM),
    WireRule::new("/input/*[role=user|system|developer]", Closed(&["type", "id", "role", "content", "status", "phase"]), ITEM),
    WireRule::new("/input/*[role=assistant]", Closed(&["type", "id", "role", "content", "status", "phase"]), ITEM),
    WireRule::new("/input/*[role=user|assistant|system|developer]/content", Be(&[Text, List]), ITEM),
    WireRule::new("/input/*[role=user|assistant|system|developer]/content/*", Needs(&["type"]), PART),
    WireRule::new("/input/*[role=user|system|developer]/content/*/type", OneOf(&[
        "input_text", "input_image", "input_audio", "output_text", "refusal", "input_file", "computer_screenshot", "summary_text",
        "encrypted_content",
    ]), KINDS),
    WireRule::new("/input/*[role=assistant]/content/*/type", OneOf(&["output_text", "refusal"]), INPUT_ONLY),
    WireRule::new("/input/*/content/*[type=input_text]", Closed(&["type", "text", "prompt_cache_breakpoint"]), PART).named("text closed"),
    WireRule::new("/input/*/content/*[type=input_text]", Needs(&["text"]), PART).named("needs its text"),
    WireRule::new("/input/*/content/*[type=input_text]/text", Be(&[Text]), PART),
    WireRule::new("/input/*/content/*[type=output_text]", Closed(&["type", "text", "annotations", "logprobs"]), PART).named("output closed"),
    WireRule::new("/input/*/content/*[type=output_text]", Needs(&["text"]), PART).named("needs its words"),
    WireRule::new("/input/*/content/*[type=refusal]", Needs(&["refusal"]), PART).named("needs its refusal"),
    WireRule::new("/input/*/content/*[type=input_image]", Closed(&["type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"]), PART).named("image closed"),
    WireRule::new("/input/*/content/*[type=input_image]", Hold(has_a_picture), PART).named("needs its picture")
        .broken_by(&[("/input", r#"[{"role":"user","content":[{"type":"input_image"}]}]"#)]),
    WireRule::new("/input/*/content/*[type=input_image]/image_url", Hold(is_a_picture), ADDRESS)
        .broken_by(&[("/input", r#"[{"role":"user","content":[{"type":"input_image","image_url":"data:image/tiff;base64,AAAA"}]}]"#)]),
    WireRule::new("/input/*/content/*[type=input_image]/detail", OneOf(&["auto", "low", "high", "original"]), PART),
    WireRule::new("/input/*/content/*[type=input_file]", Closed(&["type", "file_data", "file_id", "file_url", "filename", "detail", "prompt_cache_breakpoint"]), PART).named("file closed"),
    WireRule::new("/input/*/content/*[type=input_file]/file_data", Start("data:"), FILES),
    WireRule::new("/input/*[type=function_call]", Needs(&["call_id", "name", "arguments"]), ITEM).named("needs its call"),
    WireRule::new("/input/*[type=function_call]", Closed(&["type", "id", "call_id", "name", "arguments", "status", "namespace", "caller", "async"]), ITEM).named("call closed"),
    WireRule::new("/input/*[type=function_call]/arguments", Be(&[Text]), ITEM),
    WireRule::new("/input/*[type=function_call]/call_id", Long(1, 64), IDS),
    WireRule::new("/input/*[type=function_call]/name", Spelt(word), NAME).unverified(),
    WireRule::new("/input/*[type=function_call]/id", Start("fc"), ITEM_ID),
    WireRule::new("/input/*[type=function_call_output]", Needs(&["call_id", "output"]), ITEM).named("needs its result"),
    WireRule::new("/input/*[type=function_call_output]", Closed(&["type", "id", "call_id", "output", "status", "name", "namespace", "caller"]), ITEM).named("result closed"),
    WireRule::new("/input/*[type=function_call_output]/output", Be(&[Text, List]), ITEM),
    WireRule::new("/input/*[type=function_call_output]/output/*/type", OneOf(&["input_text", "input_image", "input_file"]), ITEM),
    WireRule::new("/input/*[type=custom_tool_call]", Needs(&["call_id", "name", "input"]), ITEM).named("needs its words"),
    WireRule::new("/input/*[type=custom_tool_call]/input", Be(&[Text]), ITEM),
    WireRule::new("/input/*[type=custom_tool_call_output]", Needs(&["call_id", "output"]), ITEM).named("needs its answer"),
    WireRule::new("/input/*[type=reasoning]", Needs(&["summary"]), ITEM).named("needs its summary"),
    WireRule::new("/input/*[type=reasoning]", Closed(&["type", "id", "summary", "content", "encrypted_content", "status"]), ITEM).named("reasoning closed"),
    WireRule::new("/input/*[type=reasoning]/encrypted_content", Be(&[Text, Null]), ITEM),
    WireRule::new("/input/*[type=reasoning]/encrypted_content", Hold(was_encrypted), FOREIGN)
        .named("encrypted here").code("invalid_encrypted_content")
        .broken_by(&[("/input", r#"[{"type":"reasoning","summary":[],"encrypted_content":"gAAA"},{"role":"assistant","content":"a"}]"#)]),
    WireRule::new("/input/*[type=reasoning]/summary/*", Needs(&["type", "text"]), ITEM),
    WireRule::new("/input/*[type=reasoning]/summary/*/type", OneOf(&["summary_text"]), ITEM),
];

/// Calls and their results, and reasoning that nobody stored.
pub(crate) const ORDER: &[WireRule] = &[
    WireRule::new("/input", Hold(calls_are_answered), ANSWERED)
        .named("calls are answered")
        .broken_by(&[(
            "/input",
            r#"[{"type":"function_call_output","call_id":"c","output":"x"}]"#,
        )]),
    WireRule::new("/input", Hold(reasoning_and_its_items), TOGETHER)
        .named("reasoning and its items")
        .broken_by(&[(
            "/input",
            r#"[{"type":"reasoning","id":"rs_1","summary":[]},{"role":"user","content":"a"}]"#,
        )]),
    WireRule::new("", Hold(reasoning_is_sealed), SEALED)
        .named("reasoning is sealed")
        .status(404)
        .broken_by(&[
            ("/store", "false"),
            (
                "/input",
                r#"[{"type":"reasoning","id":"rs_1","summary":[]},{"role":"user","content":"a"}]"#,
            ),
        ]),
];

fn is_an_item(item: &Value) -> Result<(), String> {
    let kind = item["type"].as_str();
    if matches!(kind, None | Some("message")) && !item["role"].is_string() {
        return Err("neither a role nor the type of another item".to_owned());
    }
    Ok(())
}

fn has_a_picture(part: &Value) -> Result<(), String> {
    if part["image_url"].is_string() || part["file_id"].is_string() {
        return Ok(());
    }
    Err("an input_image without image_url".to_owned())
}

fn is_a_picture(url: &Value) -> Result<(), String> {
    let Some(url) = url.as_str() else {
        return if url.is_null() {
            Ok(())
        } else {
            Err("expected a string".to_owned())
        };
    };
    super::messages::is_a_picture(&Value::from(url))
}

const CALLS: [&str; 3] = ["function_call", "custom_tool_call", "local_shell_call"];

/// Every result follows its call, and every call has a result.
fn calls_are_answered(input: &Value) -> Result<(), String> {
    let mut open = BTreeSet::new();
    for item in input.as_array().into_iter().flatten() {
        let kind = item["type"].as_str().unwrap_or_default();
        let id = item["call_id"].as_str().unwrap_or_default();
        if CALLS.contains(&kind) {
            open.insert(id);
        } else if kind
            .strip_suffix("_output")
            .is_some_and(|call| CALLS.contains(&call))
            && !open.remove(id)
        {
            return Err(format!(
                "No tool call found for function call output with call_id {id}."
            ));
        }
    }
    open.first().map_or(Ok(()), |id| {
        Err(format!("No tool output found for function call {id}."))
    })
}

/// Without a stored answer, an item of reasoning is worth only what its seal says.
fn reasoning_is_sealed(body: &Value) -> Result<(), String> {
    let items = body["input"].as_array().into_iter().flatten();
    let mut bare = items.filter(|item| {
        item["type"] == "reasoning"
            && item["id"].is_string()
            && !item["encrypted_content"].is_string()
    });
    match bare.next().filter(|_| body["store"] == false) {
        Some(item) => Err(format!("Item with id {} not found.", item["id"])),
        None => Ok(()),
    }
}
