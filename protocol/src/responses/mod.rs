//! Responses: the dialect as a whole. Each file in this folder has one job, and the other two families have the
//! same files with the same function names. Only this family has `items`, because its endings must repeat what was streamed.

mod blocks;
mod client_tools;
mod decode;
mod decode_answer;
mod decode_items;
mod decode_tools;
mod encode;
mod encode_answer;
mod encode_items;
mod encode_turns;
mod error;
mod inspect;
mod items;
mod own;
mod patch;
mod reader;
mod references;
mod sequence;
mod synthetic;
mod unfold;
mod writer;

pub use references::{ItemReference, items_of, references};

use bytes::Bytes;
use serde_json::json;

use crate::error::v1_words;
use crate::fit::{Concern, FamilyFit};
use crate::inspect::ToldThinking;
use crate::prompt::PromptNames;
use crate::{AuthStyle, Family, Protocol, class, translate};

/// The responses dialect.
pub(crate) static PROTOCOL: Protocol = Protocol {
    family: Family::Responses,
    path: "/responses",
    count_path: Some("/responses/input_tokens"),
    public_path: "/v1/responses",
    credentials: &[AuthStyle::Bearer],
    default_auth: AuthStyle::Bearer,
    forwarded_headers: &[],
    required_headers: &[],
    refuses_unknown_fields: false,
    counts_cache_first: false,
    least_output: encode::MIN_LIMIT,
    names: PromptNames {
        limits: &["max_output_tokens"],
        instructions: "instructions",
        conversation: "input",
        schemas: &["/text/format/schema"],
        classes: class::RESPONSES,
    },
    first_text: "/output/0/content/0/text",
    limit_field: |_, _| "max_output_tokens",
    class_headers: |_| &[],
    inspect: inspect::inspect,
    inspect_count: inspect::inspect,
    changes: patch::changes,
    count_body: |protocol, body, seen, edits| {
        let body = protocol.patch(body, seen, edits);
        let counted = translate::for_counting(Family::Responses, &body)?;
        Some(vec![Bytes::from(counted)])
    },
    write_count: |tokens| json!({ "object": "response.input_tokens", "input_tokens": tokens }),
    read_answer: reader::read_answer,
    sample_answer: reader::sample_answer,
    reader: || Box::new(reader::Reader::default()),
    writer: || Box::new(writer::Writer::default()),
    usage_json: synthetic::usage_json,
    as_stream: unfold::as_stream,
    question: |model, words| json!({ "model": model, "input": words, "store": false }),
    write_answer: synthetic::write_answer,
    write_frames: synthetic::write_frames,
    words: v1_words,
    fit: FamilyFit {
        concern: |_, _, _| Concern::None,
        turns: |fitting, cursor| fitting.value(cursor),
        retells_thinking: |_| false,
        thinking: |_, _, _, _| (None, ToldThinking::default()),
    },
    fields: decode::FIELDS,
    id_prefix: "resp_",
    field: decode::field,
    encode: encode::encode,
    knows_stops: false,
    counted_fields: encode::COUNTED,
    fit_budget: |_, _| None,
    decode_answer: decode_answer::decode_answer,
    unsaid: |_, _| {},
    decoder: || Box::new(decode_answer::Decoder::default()),
    encode_answer: encode_answer::encode_answer,
    encoder: |memo, wish| Box::new(encode_answer::encoder(memo, wish)),
};
