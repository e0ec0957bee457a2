//! Counts what a customer sends before it is admitted: the prompt, and the output that it predicts. Tokenizers run aside, customer by
//! customer.

use farebox_protocol::Inspection;

use super::Failure;
use crate::config::Model;
use crate::metering::{Lifetimes, TextCounter, local};
use crate::turns::Work;

/// Tokens of the customer's predicted output, counted by a tokenizer; they are held for at the output price.
pub(super) async fn predicted(work: &mut Work, seen: &mut Inspection) -> Result<u64, Failure> {
    if seen.prediction.seen() == 0 {
        return Ok(0);
    }
    let sample = std::mem::take(&mut seen.prediction);
    Ok(work
        .aside(move || local::output(&sample, TextCounter::PLAIN))
        .await?)
}

/// Tokens of a prompt, counted by the tokenizer of the model's first target: as many as are likely, and at most.
pub(super) async fn prompt(
    work: &mut Work,
    seen: &mut Inspection,
    model: &Model,
) -> Result<(u64, u64), Failure> {
    let (limits, content) = (model.limits, std::mem::take(&mut seen.content));
    let first = (model.route.targets.first()).map_or("", |target| target.model.as_str());
    let counter = TextCounter::of(first);
    let counting = work.aside(move || {
        let tokens = local::bounded(&content, &limits, counter);
        (content, tokens)
    });
    let (content, tokens) = counting.await?;
    seen.content = content;
    Ok(tokens)
}

/// The lifetimes of cache writes that a request asks for.
pub(super) fn lifetimes(seen: &Inspection) -> Lifetimes {
    Lifetimes {
        hour: seen.one_hour_cache,
        half_day: seen.half_day_cache,
    }
}
