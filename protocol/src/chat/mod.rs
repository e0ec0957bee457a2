//! Chat completions: the dialect as a whole. Only delegates; each file in this folder has one job, and the other two families have
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
    Additions, AnswerFacts, AnswerReader, AuthStyle, BadRequest, ChatLimit, Classes, Edits,
    EndWriter, Family, Fitted, Inspection, Protocol, ReportedUsage, SyntheticAnswer, TextSample,
    UsageWish,
};

/// Where the simulated provider finds the parts of a request; instructions are messages.
const NAMES: PromptNames = PromptNames {
    limits: &["max_tokens", "max_completion_tokens"],
    instructions: "",
    conversation: "messages",
    schemas: &["/response_format/json_schema/schema"],
    classes: class::CHAT,
};

/// The chat dialect.
#[derive(Debug, Clone, Copy)]
pub struct Chat;

impl Protocol for Chat {
    fn family(&self) -> Family {
        Family::Chat
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn count_path(&self) -> Option<&'static str> {
        None
    }

    fn public_path(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn limit_field(&self, chat: ChatLimit, declared: Option<&'static str>) -> &'static str {
        match chat {
            ChatLimit::AsDeclared => declared.unwrap_or("max_completion_tokens"),
            ChatLimit::MaxCompletionTokens => "max_completion_tokens",
            ChatLimit::MaxTokens => "max_tokens",
        }
    }

    fn conversation_field(&self) -> &'static str {
        "messages"
    }

    fn credentials(&self) -> &'static [AuthStyle] {
        &[AuthStyle::Bearer]
    }

    fn default_auth(&self) -> AuthStyle {
        AuthStyle::Bearer
    }

    fn forwarded_headers(&self) -> &'static [&'static str] {
        &[]
    }

    fn class_field(&self, classes: Classes) -> Option<&'static str> {
        class::field_for(class::CHAT, classes)
    }

    fn refuses_unknown_fields(&self) -> bool {
        true
    }

    fn counts_cache_first(&self) -> bool {
        false
    }

    fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        inspect::inspect(body, seed)
    }

    fn count_body(&self, _: &Bytes, _: &Inspection, _: &Edits<'_>) -> Option<Vec<Bytes>> {
        None
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
        synthetic::usage_json(usage, cost)
    }

    fn as_stream(&self, body: &[u8]) -> Option<Vec<u8>> {
        unfold::as_stream(body)
    }

    fn write_question_as(&self, model: &str, words: &str, limit: (&str, u32)) -> String {
        json!({ "model": model, "messages": [{ "role": "user", "content": words }], limit.0: limit.1 }).to_string()
    }

    fn first_text<'a>(&self, answer: &'a Value) -> Option<&'a str> {
        answer.pointer("/choices/0/message/content")?.as_str()
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
}

impl Translates for Chat {
    fn fields(&self) -> &'static [FateRow] {
        decode::FIELDS
    }

    fn id_prefix(&self) -> &'static str {
        "chatcmpl-"
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

    fn decode_answer(&self, body: &[u8], sink: &mut dyn Sink) {
        decode_answer::decode_answer(body, sink);
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
