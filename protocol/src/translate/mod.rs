//! Translation between families: a request in the words of another family, and its answer back.
//!
//! A family has a decoder and an encoder of its own; here they are paired by way of [`neutral`] requests and [`event`]s. Pure: no
//! clock, no ids of its own, no counting. Stop and usage are written only by a last call with settled counts, and after an error
//! nothing is written.

pub mod abilities;
pub(crate) mod decode;
pub(crate) mod effort;
pub(crate) mod encode;
mod errors;
pub mod event;
pub mod fates;
pub(crate) mod flow;
pub(crate) mod freeform;
pub(crate) mod ids;
pub mod losses;
pub mod neutral;
pub(crate) mod order;
pub(crate) mod schema;
pub(crate) mod seals;
mod shape;
mod stream;
pub(crate) mod text;
pub(crate) mod tree;
pub(crate) mod writing;

pub use abilities::Abilities;
pub use encode::Target;
pub use errors::error_for;
pub use event::{Answer, Event, Open, Sink, Stop};
pub use ids::{Declared, Memo};
pub use losses::Losses;
pub use neutral::Prompt;
pub use seals::cut_seals;
pub use stream::Translator;
pub use writing::Wish;

use crate::{BadRequest, Family, Usage, UsageWish, chat, messages, responses};
use decode::Decoding;
use encode::Encoding;
use fates::Row;
use writing::WriteAnswer;

/// A request as one target gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// The body, in the target's family.
    pub body: Vec<u8>,
    /// What the encoder of the answer needs.
    pub memo: Memo,
    /// What was left out.
    pub losses: Losses,
}

/// Whether requests of `from` can be translated for targets of `to`.
#[must_use]
pub fn is_translated(from: Family, to: Family) -> bool {
    from != to
}

/// A request in the words of the target's family.
///
/// # Errors
/// The request is malformed, or the target cannot carry what would change the answer; then the code is `unsupported_by_model`.
pub fn request(from: Family, to: Family, body: &[u8], target: &Target<'_>) -> Result<Translated, BadRequest> {
    let mut losses = Losses::default();
    let prompt = decode_request(from, to, body, &mut losses)?;
    let memo = Memo::of(&prompt.tools)?;
    let mut encoding = Encoding { target, caller: from, family: to, losses: &mut losses };
    let body = match to {
        Family::Chat => chat::encode::encode(prompt, body.len(), &mut encoding)?,
        Family::Messages => messages::encode::encode(prompt, body.len(), &mut encoding)?,
        Family::Responses => responses::encode::encode(prompt, body.len(), &mut encoding)?,
    };
    Ok(Translated { body, memo, losses })
}

/// A request whose input the target shall only count; `None` when targets of its family cannot count.
///
/// # Errors
/// As [`request`].
pub fn count_request(from: Family, to: Family, body: &[u8], target: &Target<'_>) -> Result<Option<Vec<u8>>, BadRequest> {
    if to != Family::Responses {
        return Ok(None);
    }
    let translated = request(from, to, body, target)?;
    Ok(Some(responses::encode::for_counting(&translated.body)?))
}

/// A request before any family gives it a shape.
///
/// # Errors
/// As [`request`].
pub fn decode_request<'a>(from: Family, to: Family, body: &'a [u8], losses: &mut Losses) -> Result<Prompt<'a>, BadRequest> {
    let mut decoding = Decoding { target: to, losses };
    match from {
        Family::Chat => chat::decode::decode(body, &mut decoding),
        Family::Responses => responses::decode::decode(body, &mut decoding),
        Family::Messages => messages::decode::decode(body, &mut decoding),
    }
}

/// A translated request with a budget of thinking that leaves room for the answer under its final limit, and whether thinking had
/// to be turned off; `None` when nothing has to change.
#[must_use]
pub fn fit_budget(to: Family, body: &[u8], limit: u32) -> Option<(Vec<u8>, bool)> {
    if to == Family::Messages { messages::budget::fit_budget(body, limit) } else { None }
}

/// The id under which a caller of this family sees a translated answer.
#[must_use]
pub fn answer_id(caller: Family, id: &str) -> String {
    let prefix = match caller {
        Family::Chat => "chatcmpl-",
        Family::Responses => "resp_",
        Family::Messages => "msg_",
    };
    format!("{prefix}{id}")
}

/// What becomes of each field of this family's requests.
#[must_use]
pub fn fields(family: Family) -> &'static [Row] {
    match family {
        Family::Chat => chat::decode::FIELDS,
        Family::Responses => responses::decode::FIELDS,
        Family::Messages => messages::decode::FIELDS,
    }
}

/// A whole answer of this family as the fold of its events; its end is an error when it is none.
#[must_use]
pub fn read_answer(upstream: Family, body: &[u8]) -> Answer {
    let mut answer = Answer::default();
    match upstream {
        Family::Chat => chat::decode_answer::decode_answer(body, &mut answer),
        Family::Messages => messages::decode_answer::decode_answer(body, &mut answer),
        Family::Responses => responses::decode_answer::decode_answer(body, &mut answer),
    }
    answer
}

/// A whole answer in the caller's family, with settled counts.
#[must_use]
pub fn write_answer(
    caller: Family,
    answer: &Answer,
    memo: &Memo,
    wish: &Wish<'_>,
    usage: &Usage,
    asked: UsageWish<'_>,
) -> Vec<u8> {
    let write: WriteAnswer = match caller {
        Family::Chat => chat::encode_answer::encode_answer,
        Family::Messages => messages::encode_answer::encode_answer,
        Family::Responses => responses::encode_answer::encode_answer,
    };
    let stop = match &answer.end {
        Some(Ok(stop)) => stop.clone(),
        _ => Stop::Other.corrected(answer.has_calls()),
    };
    write(answer, &stop, memo, wish, usage, asked)
}
