//! What differs between the families: a table for each, which its folder fills, and what all of them do with it.

use bytes::Bytes;
use serde_json::Value;

use crate::class::{self, Classes};
use crate::class_fields;
use crate::end_user;
use crate::fit::{self, FamilyFit};
use crate::json::{self, Edit};
use crate::patch;
use crate::prompt::{PromptNames, UnderstoodPrompt};
use crate::translate::decode::Decoding;
use crate::translate::encode::Encoding;
use crate::translate::fates::FateRow;
use crate::translate::flow::AnswerDecoder;
use crate::translate::tree::JsonNode;
use crate::translate::writing::AnswerEncoder;
use crate::translate::{AnswerWish, Losses, Memo, NeutralAnswer, NeutralPrompt, NeutralStop, Sink};
use crate::{
    Additions, AnswerFacts, AnswerReader, AuthStyle, BadRequest, Case, ChatLimit, Edits, EndWriter,
    Family, Fitted, Inspection, ReportedUsage, SyntheticAnswer, TextSample, UsageWish, Words,
};

/// A header's name in lower case, and its value.
type FixedHeader = (&'static str, &'static str);

/// Lowers a budget of thinking to a limit; whether it is off then.
type BudgetFitter = fn(&[u8], u32) -> Option<(Vec<u8>, bool)>;

type FieldTaker = for<'a> fn(
    &mut Decoding<'_>,
    &str,
    &JsonNode<'a>,
    &mut NeutralPrompt<'a>,
) -> Result<(), BadRequest>;

/// One family's dialect.
pub struct Protocol {
    /// Which family.
    pub family: Family,
    /// What is appended to a provider's base URL.
    pub path: &'static str,
    /// The same for counting the tokens of a request without running it; `None` if the family has no such path.
    pub count_path: Option<&'static str>,
    /// The path that customers call below the public base URL, for texts: `/v1/chat/completions`.
    pub public_path: &'static str,
    /// Headers in which customers of this family send their key, in order of precedence.
    pub credentials: &'static [AuthStyle],
    /// How providers of this family expect their key by default.
    pub default_auth: AuthStyle,
    /// Names (lower case) of request headers that go upstream; no others do.
    pub forwarded_headers: &'static [&'static str],
    /// Headers that every request to a provider of this family carries exactly once, with the value for callers who brought none.
    pub required_headers: &'static [FixedHeader],
    /// Whether a request with a field that no table knows is refused, rather than sent without it.
    pub refuses_unknown_fields: bool,
    /// Whether a stream reports cache writes in its first frame, rather than at its end.
    pub counts_cache_first: bool,
    /// The smallest output limit that providers accept.
    pub least_output: u32,
    /// Where the parts of a request are.
    pub(crate) names: PromptNames,
    /// Where the first text of a whole answer is.
    pub(crate) first_text: &'static str,
    pub(crate) limit_field: fn(ChatLimit, Option<&'static str>) -> &'static str,
    pub(crate) class_headers: fn(Classes) -> &'static [FixedHeader],
    pub(crate) inspect: fn(&[u8], u64) -> Result<Inspection, BadRequest>,
    pub(crate) inspect_count: fn(&[u8], u64) -> Result<Inspection, BadRequest>,
    /// The edits to a request that other families do not make.
    pub(crate) changes: fn(&[u8], &Inspection, &Edits<'_>, &mut Vec<Edit<'static>>),
    pub(crate) count_body: fn(&Self, &Bytes, &Inspection, &Edits<'_>) -> Option<Vec<Bytes>>,
    pub(crate) write_count: fn(u64) -> Value,
    pub(crate) read_answer: fn(&[u8], Option<&dyn Additions>) -> Option<AnswerFacts>,
    pub(crate) sample_answer: fn(&[u8], u64) -> TextSample,
    pub(crate) reader: fn() -> Box<dyn AnswerReader>,
    pub(crate) writer: fn() -> Box<dyn EndWriter>,
    pub(crate) usage_json: fn(&ReportedUsage, Option<&str>) -> String,
    pub(crate) as_stream: fn(&[u8]) -> Option<Vec<u8>>,
    /// The smallest request but for its limit: a model and a question.
    pub(crate) question: fn(&str, &str) -> Value,
    pub(crate) write_answer: fn(&SyntheticAnswer) -> Vec<u8>,
    pub(crate) write_frames: fn(&SyntheticAnswer) -> Vec<Vec<u8>>,
    pub(crate) words: fn(Case) -> Words,
    /// What its requests need to fit a target.
    pub(crate) fit: FamilyFit,
    /// The fate of each field of its requests.
    pub(crate) fields: &'static [FateRow],
    /// The prefix of its answer ids.
    pub(crate) id_prefix: &'static str,
    /// Takes one of them into a prompt.
    pub(crate) field: FieldTaker,
    /// A neutral request in this family's form, with the length of the original body.
    pub(crate) encode:
        fn(NeutralPrompt<'_>, usize, &mut Encoding<'_>) -> Result<Vec<u8>, BadRequest>,
    /// Whether its requests can have stop strings. Answers of other families' targets are cut here.
    pub(crate) knows_stops: bool,
    /// The fields of a request that a count of its input accepts; none if targets of this family do not count.
    pub(crate) counted_fields: &'static [&'static str],
    /// See [`crate::translate::fit_budget`].
    pub(crate) fit_budget: BudgetFitter,
    /// The events of a whole answer of this family.
    pub(crate) decode_answer: fn(&[u8], &mut dyn Sink),
    /// What a whole answer in this family's form loses or changes.
    pub(crate) unsaid: fn(&NeutralAnswer, &mut Losses),
    /// A decoder for one streamed answer of this family.
    pub(crate) decoder: fn() -> Box<dyn AnswerDecoder>,
    /// A whole answer in this family's form, with settled counts.
    pub(crate) encode_answer: fn(
        &NeutralAnswer,
        &NeutralStop,
        &Memo,
        &AnswerWish<'_>,
        &ReportedUsage,
        UsageWish<'_>,
    ) -> Vec<u8>,
    /// An encoder for one streamed answer in this family's form.
    pub(crate) encoder: fn(Memo, &AnswerWish<'_>) -> Box<dyn AnswerEncoder>,
}

impl Protocol {
    /// The field of an output limit. Providers of the chat family disagree; `chat` is the one this provider reads, and `declared` the
    /// one the customer used.
    pub fn limit_field(&self, chat: ChatLimit, declared: Option<&'static str>) -> &'static str {
        (self.limit_field)(chat, declared)
    }

    /// The field that holds the conversation, for refusals of something inside it.
    pub fn conversation_field(&self) -> &'static str {
        self.names.conversation
    }

    /// Headers that a request for these classes needs, beside those of every request.
    pub fn class_headers(&self, classes: Classes) -> &'static [FixedHeader] {
        (self.class_headers)(classes)
    }

    /// The field with which this family asks for a tier or a place; `None` if it cannot.
    pub fn class_field(&self, classes: Classes) -> Option<&'static str> {
        class::field_for(self.names.classes, classes)
    }

    /// The facts of a request, in one walk over its bytes. Everything refused here is a 400.
    ///
    /// Long texts are only sampled, and `seed` decides where. The caller passes a fresh random number: if customers could predict
    /// the samples, they could write prompts that look cheap there and are expensive everywhere else.
    ///
    /// # Errors
    /// Not JSON, wrong types, a repeated top-level key, nested deeper than 128, no model, or a field that has no price.
    pub fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        (self.inspect)(body, seed)
    }

    /// The facts of a request whose input is only counted: it needs nothing that only an answer needs.
    ///
    /// # Errors
    /// As [`Protocol::inspect`].
    pub fn inspect_count(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        (self.inspect_count)(body, seed)
    }

    /// The edits to a request on its way upstream; all other bytes stay as the customer wrote them.
    fn changes(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
        let mut changes = patch::common(body, seen, edits);
        (self.changes)(body, seen, edits, &mut changes);
        changes.extend(class_fields::pins(self.names.classes, seen, edits));
        changes.extend(end_user::changes(body, seen, edits));
        fit::fit(&self.fit, body, seen, edits, &mut changes);
        changes
    }

    /// The request as the upstream gets it. One copy.
    pub fn patch(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<u8> {
        json::splice(body, &mut self.changes(body, seen, edits))
    }

    /// The same in pieces, without copying long stretches.
    pub fn pieces(&self, body: &Bytes, seen: &Inspection, edits: &Edits<'_>) -> Vec<Bytes> {
        json::pieces(body, &mut self.changes(body, seen, edits))
    }

    /// What a target of this family is sent to count a request's input; `None` if the body is no JSON object.
    pub fn count_body(
        &self,
        body: &Bytes,
        seen: &Inspection,
        edits: &Edits<'_>,
    ) -> Option<Vec<Bytes>> {
        (self.count_body)(self, body, seen, edits)
    }

    /// The document of such a count.
    pub fn write_count(&self, tokens: u64) -> Value {
        (self.write_count)(tokens)
    }

    /// What became of a request on its way to a target of this family.
    pub fn fitted(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Fitted {
        fit::fitted(&self.fit, body, seen, edits)
    }

    /// The facts of a whole answer. `None` when it is not a JSON object.
    pub fn read_answer(&self, body: &[u8]) -> Option<AnswerFacts> {
        (self.read_answer)(body, None)
    }

    /// The same of a provider that may add something.
    pub fn read_answer_with(
        &self,
        body: &[u8],
        additions: Option<&dyn Additions>,
    ) -> Option<AnswerFacts> {
        (self.read_answer)(body, additions)
    }

    /// A sample of a whole answer's text, placed by a secret seed. It takes a second walk, so it is taken only for the few answers
    /// that need it.
    pub fn sample_answer(&self, body: &[u8], seed: u64) -> TextSample {
        (self.sample_answer)(body, seed)
    }

    /// A reader for one streamed answer of a target of this family.
    pub fn reader(&self) -> Box<dyn AnswerReader> {
        (self.reader)()
    }

    /// A writer for one streamed answer to a customer of this family.
    pub fn writer(&self) -> Box<dyn EndWriter> {
        (self.writer)()
    }

    /// A whole answer, already as its customer gets it, with these counts instead of its target's; `cost` is a decimal literal, copied
    /// unchanged.
    pub fn with_usage(&self, body: &[u8], usage: &ReportedUsage, cost: Option<&str>) -> Vec<u8> {
        let counts = (self.usage_json)(usage, cost);
        let body = String::from_utf8_lossy(body);
        json::set_members(&body, &[("usage", &counts)]).into_bytes()
    }

    /// A whole answer as the stream that its customer asked for: what this family's services would have sent. `None` if the answer is
    /// none of this family.
    pub fn as_stream(&self, body: &[u8]) -> Option<Vec<u8>> {
        (self.as_stream)(body)
    }

    /// The smallest request: one question, and an output limit under this name.
    pub fn write_question_as(
        &self,
        model: &str,
        words: &str,
        (field, most): (&str, u32),
    ) -> String {
        let mut question = (self.question)(model, words);
        question[field] = most.into();
        question.to_string()
    }

    /// The same, under the name that every gateway reads.
    pub fn write_question(&self, model: &str, words: &str, limit: u32) -> String {
        let field = self.limit_field(ChatLimit::MaxTokens, None);
        self.write_question_as(model, words, (field, limit))
    }

    /// The first text of a whole answer.
    pub fn first_text<'a>(&self, answer: &'a Value) -> Option<&'a str> {
        answer.pointer(self.first_text)?.as_str()
    }

    /// The simulated provider's reading of a request.
    ///
    /// # Errors
    /// What is wrong with it, for the customer.
    pub fn read_prompt(&self, body: &[u8]) -> Result<UnderstoodPrompt, String> {
        UnderstoodPrompt::read(body, &self.names)
    }

    /// A whole answer of the simulated provider.
    pub fn write_answer(&self, draft: &SyntheticAnswer) -> Vec<u8> {
        (self.write_answer)(draft)
    }

    /// A streamed answer of the simulated provider: whole frames, terminal marker included.
    pub fn write_frames(&self, draft: &SyntheticAnswer) -> Vec<Vec<u8>> {
        (self.write_frames)(draft)
    }

    /// This family's words for an error case, and its status.
    pub fn words(&self, case: Case) -> Words {
        (self.words)(case)
    }
}
