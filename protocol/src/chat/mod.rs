//! Chat completions: the dialect as a whole. Each file in this folder has one job, and the other two families have
//! the same files with the same function names.

mod calls;
mod chunk;
mod decode;
mod decode_answer;
mod decode_tools;
mod encode;
mod encode_answer;
mod encode_turns;
mod history;
mod inspect;
mod logprobs;
mod mend;
mod own;
mod patch;
mod pieces;
mod reader;
mod reasoning;
mod synthetic;
mod unfold;
mod writer;

use serde_json::json;

use crate::error::v1_words;
use crate::fit::FamilyFit;
use crate::prompt::PromptNames;
use crate::{AuthStyle, ChatLimit, Family, Protocol, class};

/// The chat dialect.
pub(crate) static PROTOCOL: Protocol = Protocol {
    family: Family::Chat,
    path: "/chat/completions",
    count_path: None,
    public_path: "/v1/chat/completions",
    credentials: &[AuthStyle::Bearer],
    default_auth: AuthStyle::Bearer,
    forwarded_headers: &[],
    required_headers: &[],
    refuses_unknown_fields: true,
    counts_cache_first: false,
    least_output: 1,
    // Instructions are messages.
    names: PromptNames {
        limits: &["max_tokens", "max_completion_tokens"],
        instructions: "",
        conversation: "messages",
        schemas: &["/response_format/json_schema/schema"],
        classes: class::CHAT,
    },
    first_text: "/choices/0/message/content",
    limit_field: |chat, declared| match chat {
        ChatLimit::AsDeclared => declared.unwrap_or("max_completion_tokens"),
        ChatLimit::MaxCompletionTokens => "max_completion_tokens",
        ChatLimit::MaxTokens => "max_tokens",
    },
    class_headers: |_| &[],
    inspect: inspect::inspect,
    inspect_count: inspect::inspect,
    changes: patch::changes,
    count_body: |_, _, _, _| None,
    write_count: |tokens| json!({ "input_tokens": tokens }),
    read_answer: reader::read_answer,
    sample_answer: reader::sample_answer,
    reader: || Box::new(reader::Reader::default()),
    writer: || Box::new(writer::Writer::default()),
    usage_json: synthetic::usage_json,
    as_stream: unfold::as_stream,
    question: |model, words| json!({ "model": model, "messages": [{ "role": "user", "content": words }] }),
    write_answer: synthetic::write_answer,
    write_frames: synthetic::write_frames,
    words: v1_words,
    fit: FamilyFit {
        concern: history::concern,
        turns: history::turns,
        retells_thinking: |fit| !fit.takes_reasoning,
        thinking: reasoning::retold,
    },
    fields: decode::FIELDS,
    id_prefix: "chatcmpl-",
    field: decode::field,
    encode: encode::encode,
    knows_stops: true,
    counted_fields: &[],
    fit_budget: |_, _| None,
    decode_answer: decode_answer::decode_answer,
    unsaid: |_, _| {},
    decoder: || Box::new(decode_answer::Decoder::default()),
    encode_answer: encode_answer::encode_answer,
    encoder: |memo, wish| Box::new(encode_answer::encoder(memo, wish)),
};
