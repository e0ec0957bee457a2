//! Native messages: the dialect as a whole. Only delegates; each file in this folder has one job, and the other two families have
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

use bytes::Bytes;
use serde_json::{Value, json};

use crate::class;
use crate::fit;
use crate::json::Edit;
use crate::prompt::{PromptNames, UnderstoodPrompt};
use crate::translate::decode::Decoding;
use crate::translate::encode::Encoding;
use crate::translate::fates::FateRow;
use crate::translate::flow::AnswerDecoder;
use crate::translate::writing::AnswerEncoder;
use crate::translate::{self, AnswerWish, Memo, NeutralAnswer, Sink, Translates};
use crate::{
    Additions, AnswerFacts, AnswerReader, AuthStyle, BadRequest, Case, ChatLimit, Classes, Edits,
    EndWriter, Family, Fitted, Inspection, Protocol, ReportedUsage, ServiceTier, SyntheticAnswer,
    TextSample, UsageWish, Words,
};

/// Where the simulated provider finds the parts of a request.
const NAMES: PromptNames = PromptNames {
    limits: &["max_tokens"],
    instructions: "system",
    conversation: "messages",
    schemas: &["/output_config/format/schema", "/output_format/schema"],
    classes: class::MESSAGES,
};

/// The header that names the version of the API, without which the service refuses every request; and the version that this crate
/// reads and writes. No later one exists.
const VERSION_HEADER: (&str, &str) = ("anthropic-version", "2023-06-01");

/// The header in which native clients switch on beta features.
pub const FLAGS_HEADER: &str = "anthropic-beta";

/// The flag that `speed` needs.
const FAST_FLAG: &str = "fast-mode-2026-02-01";

/// The messages dialect.
#[derive(Debug, Clone, Copy)]
pub struct Messages;

impl Protocol for Messages {
    fn family(&self) -> Family {
        Family::Messages
    }

    fn path(&self) -> &'static str {
        "/messages"
    }

    fn count_path(&self) -> Option<&'static str> {
        Some("/messages/count_tokens")
    }

    fn public_path(&self) -> &'static str {
        "/native/v1/messages"
    }

    fn limit_field(&self, _chat: ChatLimit, _declared: Option<&'static str>) -> &'static str {
        "max_tokens"
    }

    fn conversation_field(&self) -> &'static str {
        "messages"
    }

    fn credentials(&self) -> &'static [AuthStyle] {
        &[AuthStyle::Bearer, AuthStyle::ApiKey]
    }

    fn default_auth(&self) -> AuthStyle {
        AuthStyle::ApiKey
    }

    fn forwarded_headers(&self) -> &'static [&'static str] {
        &[VERSION_HEADER.0, FLAGS_HEADER]
    }

    fn required_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[VERSION_HEADER]
    }

    fn class_headers(&self, classes: Classes) -> &'static [(&'static str, &'static str)] {
        match classes.tier {
            ServiceTier::Fast => &[(FLAGS_HEADER, FAST_FLAG)],
            ServiceTier::Standard | ServiceTier::Flex => &[],
        }
    }

    fn class_field(&self, classes: Classes) -> Option<&'static str> {
        class::field_for(class::MESSAGES, classes)
    }

    fn refuses_unknown_fields(&self) -> bool {
        false
    }

    fn counts_cache_first(&self) -> bool {
        true
    }

    fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        inspect::inspect(body, seed)
    }

    fn inspect_count(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        inspect::inspect_count(body, seed)
    }

    /// A count takes what an answer takes, and the betas that change it.
    fn count_body(&self, body: &Bytes, seen: &Inspection, edits: &Edits<'_>) -> Option<Vec<Bytes>> {
        Some(self.pieces(body, seen, edits))
    }

    fn changes(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
        patch::changes(body, seen, edits)
    }

    fn fitted(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Fitted {
        fit::fitted(self, (body, seen), edits)
    }

    fn read_answer_with(
        &self,
        body: &[u8],
        additions: Option<&dyn Additions>,
    ) -> Option<AnswerFacts> {
        reader::read_answer(body, additions)
    }

    fn sample_answer(&self, body: &[u8], seed: u64) -> TextSample {
        reader::sample_answer(body, seed)
    }

    fn reader(&self) -> Box<dyn AnswerReader> {
        Box::new(reader::Reader::default())
    }

    fn writer(&self) -> Box<dyn EndWriter> {
        Box::new(writer::Writer::default())
    }

    fn usage_json(&self, usage: &ReportedUsage, cost: Option<&str>) -> String {
        crate::usage::with_cost(synthetic::usage_value(usage).to_string(), cost)
    }

    fn as_stream(&self, body: &[u8]) -> Option<Vec<u8>> {
        unfold::as_stream(body)
    }

    fn write_question_as(&self, model: &str, words: &str, limit: (&str, u32)) -> String {
        json!({ "model": model, "messages": [{ "role": "user", "content": words }], limit.0: limit.1 }).to_string()
    }

    fn first_text<'a>(&self, answer: &'a Value) -> Option<&'a str> {
        answer.pointer("/content/0/text")?.as_str()
    }

    fn read_prompt(&self, body: &[u8]) -> Result<UnderstoodPrompt, String> {
        UnderstoodPrompt::read(body, &NAMES)
    }

    fn write_answer(&self, draft: &SyntheticAnswer) -> Vec<u8> {
        synthetic::write_answer(draft)
    }

    fn write_frames(&self, draft: &SyntheticAnswer) -> Vec<Vec<u8>> {
        synthetic::write_frames(draft)
    }

    fn words(&self, case: Case) -> Words {
        error::words(case)
    }
}

impl Translates for Messages {
    fn fields(&self) -> &'static [FateRow] {
        decode::FIELDS
    }

    fn id_prefix(&self) -> &'static str {
        "msg_"
    }

    fn decode<'a>(
        &self,
        body: &'a [u8],
        decoding: &mut Decoding<'_>,
    ) -> Result<translate::NeutralPrompt<'a>, BadRequest> {
        decode::decode(body, decoding)
    }

    fn encode(
        &self,
        prompt: translate::NeutralPrompt<'_>,
        size: usize,
        encoding: &mut Encoding<'_>,
    ) -> Result<Vec<u8>, BadRequest> {
        encode::encode(prompt, size, encoding)
    }

    fn counted_fields(&self) -> &'static [&'static str] {
        encode::COUNTED
    }

    fn fit_budget(&self, body: &[u8], limit: u32) -> Option<(Vec<u8>, bool)> {
        budget::fit_budget(body, limit)
    }

    fn decode_answer(&self, body: &[u8], sink: &mut dyn Sink) {
        decode_answer::decode_answer(body, sink);
    }

    fn unsaid(&self, answer: &NeutralAnswer, losses: &mut translate::Losses) {
        encode_answer::unsaid(answer, losses);
    }

    fn decoder(&self) -> Box<dyn AnswerDecoder> {
        Box::new(decode_answer::Decoder::default())
    }

    fn encode_answer(
        &self,
        answer: &NeutralAnswer,
        stop: &translate::NeutralStop,
        memo: &Memo,
        wish: &AnswerWish<'_>,
        usage: &ReportedUsage,
        asked: UsageWish<'_>,
    ) -> Vec<u8> {
        encode_answer::encode_answer(answer, stop, memo, wish, usage, asked)
    }

    fn encoder(&self, memo: Memo, wish: &AnswerWish<'_>) -> Box<dyn AnswerEncoder> {
        Box::new(encode_answer::encoder(memo, wish))
    }
}
