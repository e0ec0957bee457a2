//! Translation between families: a request in another family's words, and its answer back.
//!
//! Each family has its own decoder and encoder; they are paired here through [`neutral`] requests and [`event`]s. Pure: no clock,
//! no ids of its own, no counting. Stop and usage are written only by a last call with settled counts, and after an error nothing
//! more is written.

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
mod stops;
mod stream;
pub(crate) mod text;
pub(crate) mod tree;
pub(crate) mod writing;

pub use abilities::Abilities;
pub use encode::EncodeTarget;
pub use errors::{error_for, named_path, refused_hint, rejects_seal};
pub use event::{AnswerEvent, BlockStart, NeutralAnswer, NeutralStop, Sink};
pub use ids::{Declared, Memo};
pub use losses::Losses;
pub use neutral::NeutralPrompt;
pub use seals::{Unsealed, cut_marks, cut_thinking};
pub use stream::Translator;
pub use writing::AnswerWish;

use crate::json::Cursor;
use crate::{BadRequest, Family, ReportedUsage, UsageWish};
use decode::Decoding;
use encode::Encoding;
use fates::FateRow;
use text::JsonWriter;

/// A request as one target gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// The body, in the target's family.
    pub body: Vec<u8>,
    /// What the encoder of the answer needs.
    pub memo: Memo,
    /// The losses.
    pub losses: Losses,
}

/// Whether requests of `from` can be translated for targets of `to`.
pub fn is_translated(from: Family, to: Family) -> bool {
    from != to
}

/// The family whose requests cannot have stop strings: its targets are asked last, because their answers have to be cut here.
pub fn without_stops() -> Option<Family> {
    Family::ALL
        .into_iter()
        .find(|family| !family.protocol().knows_stops)
}

/// A request in the words of the target's family.
///
/// # Errors
/// The request is malformed, or the target cannot carry something that would change the answer; then the code is
/// `unsupported_by_model`.
pub fn request(
    from: Family,
    to: Family,
    body: &[u8],
    target: &EncodeTarget<'_>,
) -> Result<Translated, BadRequest> {
    let mut losses = Losses::default();
    let mut prompt = decode_request(from, to, body, &mut losses)?;
    // Before the encoder changes the list: the answer's encoder needs the names that the caller gave.
    let mut memo = Memo::of(&prompt.tools)?;
    memo.old_functions = prompt.old_functions;
    let takes_stops = to.protocol().knows_stops && target.abilities.stops;
    if !takes_stops && memo.stop_here(&prompt.stops) {
        prompt.stops.clear();
        // Only a stream can be cut before its end.
        prompt.stream = true;
        losses.add("stop", "cut_here");
    }
    let mut encoding = Encoding {
        target,
        caller: from,
        family: to,
        losses: &mut losses,
    };
    let body = (to.protocol().encode)(prompt, body.len(), &mut encoding)?;
    Ok(Translated { body, memo, losses })
}

/// A request for a target that only counts its input; `None` if targets of its family cannot count it.
///
/// # Errors
/// As [`request`].
pub fn count_request(
    from: Family,
    to: Family,
    body: &[u8],
    target: &EncodeTarget<'_>,
) -> Result<Option<Vec<u8>>, BadRequest> {
    // The caller is told an estimate instead.
    if to.protocol().counted_fields.is_empty() {
        return Ok(None);
    }
    Ok(for_counting(to, &request(from, to, body, target)?.body))
}

/// What a count of a request's input accepts of it; `None` for a body that is no JSON object.
pub fn for_counting(family: Family, body: &[u8]) -> Option<Vec<u8>> {
    let counted = family.protocol().counted_fields;
    let mut cursor = Cursor::new(body).ok()?;
    let mut walk = cursor.enter_object().ok()?;
    let mut out = JsonWriter::with_capacity(body.len());
    out.open('{');
    while let Some(key) = cursor.member(&mut walk).ok()? {
        let value = cursor.skip().ok()?;
        if let Some(name) = counted.iter().find(|name| **name == key.name) {
            out.name(name).raw(cursor.slice(value.span));
        }
    }
    out.close('}');
    Some(out.finish().into_bytes())
}

/// A request before any family gives it a shape.
///
/// # Errors
/// As [`request`].
pub fn decode_request<'a>(
    from: Family,
    to: Family,
    body: &'a [u8],
    losses: &mut Losses,
) -> Result<NeutralPrompt<'a>, BadRequest> {
    let protocol = from.protocol();
    Decoding { target: to, losses }.fields(body, protocol.fields, protocol.field)
}

/// A translated request with a thinking budget that leaves room for the answer under its final limit, and whether thinking had to
/// be turned off; `None` if nothing has to change.
pub fn fit_budget(to: Family, body: &[u8], limit: u32) -> Option<(Vec<u8>, bool)> {
    (to.protocol().fit_budget)(body, limit)
}

/// The id under which a caller of this family sees a translated answer.
pub fn answer_id(caller: Family, id: &str) -> String {
    format!("{}{id}", caller.protocol().id_prefix)
}

/// The fate of each field of this family's requests.
pub fn fields(family: Family) -> &'static [FateRow] {
    family.protocol().fields
}

/// A whole answer of this family as the fold of its events; its end is an error if it is not a valid answer.
pub fn read_answer(upstream: Family, body: &[u8]) -> NeutralAnswer {
    let mut answer = NeutralAnswer::default();
    (upstream.protocol().decode_answer)(body, &mut answer);
    answer
}

/// What a whole answer loses or changes on its way to a caller of this family.
pub fn answer_losses(caller: Family, answer: &NeutralAnswer) -> Losses {
    let mut losses = answer.losses.clone();
    // A call that the limit cut has half a JSON text for arguments, on which clients fail; that it is gone is reported.
    let whole = answer.without_cut_call();
    if whole.blocks.len() < answer.blocks.len() {
        losses.add_to_answer("tool_use", "cut");
    }
    (caller.protocol().unsaid)(&whole, &mut losses);
    losses
}

/// A whole answer in the caller's family, with settled counts.
pub fn write_answer(
    caller: Family,
    answer: &NeutralAnswer,
    memo: &Memo,
    wish: &AnswerWish<'_>,
    usage: &ReportedUsage,
    asked: UsageWish<'_>,
) -> Vec<u8> {
    let stop = match &answer.end {
        Some(Ok(stop)) => stop.clone(),
        _ => NeutralStop::Other.corrected(answer.has_calls()),
    };
    let answer = answer.without_cut_call();
    (caller.protocol().encode_answer)(&answer, &stop, memo, wish, usage, asked)
}
