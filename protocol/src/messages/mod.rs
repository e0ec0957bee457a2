//! Native messages: the dialect as a whole. Each file in this folder has one job, and the other two families have
//! the same files with the same function names.

mod budget;
mod decode;
mod decode_answer;
mod decode_tools;
mod encode;
mod encode_answer;
mod encode_turns;
mod error;
mod inspect;
mod marks;
mod own;
mod patch;
mod reader;
mod synthetic;
mod unfold;
mod writer;

use serde_json::json;

use crate::fit::{Concern, FamilyFit};
use crate::prompt::PromptNames;
use crate::usage::with_cost;
use crate::{AuthStyle, Family, Protocol, ServiceTier, class};

/// The header that names the version of the API, without which the service refuses every request; and the version that this crate
/// reads and writes. No later one exists.
const VERSION_HEADER: (&str, &str) = ("anthropic-version", "2023-06-01");

/// The header in which native clients switch on beta features.
pub const FLAGS_HEADER: &str = "anthropic-beta";

/// The flag that `speed` needs.
const FAST_FLAG: &str = "fast-mode-2026-02-01";

/// The messages dialect.
pub(crate) static PROTOCOL: Protocol = Protocol {
    family: Family::Messages,
    path: "/messages",
    count_path: Some("/messages/count_tokens"),
    public_path: "/native/v1/messages",
    credentials: &[AuthStyle::Bearer, AuthStyle::ApiKey],
    default_auth: AuthStyle::ApiKey,
    forwarded_headers: &[VERSION_HEADER.0, FLAGS_HEADER],
    required_headers: &[VERSION_HEADER],
    refuses_unknown_fields: false,
    counts_cache_first: true,
    least_output: 1,
    names: PromptNames {
        limits: &["max_tokens"],
        instructions: "system",
        conversation: "messages",
        schemas: &["/output_config/format/schema", "/output_format/schema"],
        classes: class::MESSAGES,
    },
    first_text: "/content/0/text",
    limit_field: |_, _| "max_tokens",
    class_headers: |classes| match classes.tier {
        ServiceTier::Fast => &[(FLAGS_HEADER, FAST_FLAG)],
        ServiceTier::Standard | ServiceTier::Flex => &[],
    },
    inspect: inspect::inspect,
    inspect_count: inspect::inspect_count,
    changes: |_, _, _, _| {},
    // A count takes what an answer takes, and the betas that change it.
    count_body: |protocol, body, seen, edits| Some(protocol.pieces(body, seen, edits)),
    write_count: |tokens| json!({ "input_tokens": tokens }),
    read_answer: reader::read_answer,
    sample_answer: reader::sample_answer,
    reader: || Box::new(reader::Reader::default()),
    writer: || Box::new(writer::Writer::default()),
    usage_json: |usage, cost| with_cost(synthetic::usage_value(usage).to_string(), cost),
    as_stream: unfold::as_stream,
    question: |model, words| json!({ "model": model, "messages": [{ "role": "user", "content": words }] }),
    write_answer: synthetic::write_answer,
    write_frames: synthetic::write_frames,
    words: error::words,
    fit: FamilyFit {
        concern: |_, _, _| Concern::None,
        turns: |fitting, cursor| fitting.value(cursor),
        retells_thinking: |fit| fit.abilities.thinks_always,
        thinking: patch::thinking,
    },
    fields: decode::FIELDS,
    id_prefix: "msg_",
    field: decode::field,
    encode: encode::encode,
    knows_stops: true,
    counted_fields: encode::COUNTED,
    fit_budget: budget::fit_budget,
    decode_answer: decode_answer::decode_answer,
    unsaid: encode_answer::unsaid,
    decoder: || Box::new(decode_answer::Decoder::default()),
    encode_answer: encode_answer::encode_answer,
    encoder: |memo, wish| Box::new(encode_answer::encoder(memo, wish)),
};
