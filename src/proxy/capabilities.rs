//! Compares what a model can do with what a request asks for. Every refusal is a 400 that names the remedy, before any money is
//! involved.
//!
//! Rows of docs/interface.md: `picture_to_a_model_without_vision`, `picture_that_is_too_large`, `tools_to_a_model_without_them`,
//! `too_many_tools`, `stream_of_a_model_that_does_not`.

use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::Amount;
use farebox_protocol::{BadRequest, Content, Family, Inspection, Remedy, translate};

use super::{Failure, prompt};
use crate::billing::Calibrations;
use crate::config::{Capability, Model, Target};
use crate::metering::{Estimate, bound, estimate};
use crate::turns::Work;

/// The header in which native clients switch on beta features.
const FLAGS: &str = farebox_protocol::messages::FLAGS_HEADER;

/// Refuses what the model cannot do or what has no price.
///
/// # Errors
/// [`Failure::BadRequest`].
pub(super) fn check(model: &Model, family: Family, seen: &Inspection) -> Result<(), Failure> {
    check_fields(model, family, seen)?;
    if model.route.call.is_some() {
        return check_searches(model, seen);
    }
    check_abilities(model, family, seen)?;
    check_sizes(model, family, seen)?;
    check_prices(model, family, seen)
}

/// Refuses a field that no target of the model may be sent.
fn check_fields(model: &Model, family: Family, seen: &Inspection) -> Result<(), Failure> {
    let candidates = model.route.candidates(family);
    let providers = || {
        let own = candidates.iter().filter(|(_, asked)| *asked == family);
        own.map(|(target, _)| &target.provider)
    };
    // If no target speaks the caller's family, the translation decides about fields.
    let translated = || providers().next().is_none() && model.route.serves(family).is_some();
    let judged = |name: &str| translate::fields(family).iter().any(|row| row.name == name);
    let passes = |name: &str| {
        (translated() && judged(name))
            || providers().any(|provider| {
                let fields = &provider.fields;
                let mut named = fields.pass.iter().chain(&fields.drop);
                named.any(|field| field == name)
            })
    };
    let unsold = seen
        .unsold(passes)
        .filter(|_| family.protocol().refuses_unknown_fields);
    let Some(name) = unsold.map(shown) else {
        return Ok(());
    };
    let message = format!(
        "`{name}` is not supported with {}; leave it out",
        model.slug
    );
    refuse(Remedy::Without, &name, "unknown_parameter", message)
}

/// A price by the request is that of one search.
fn check_searches(model: &Model, seen: &Inspection) -> Result<(), Failure> {
    if seen.searches <= 1 || !model.price.base.per_request.is_positive() {
        return Ok(());
    }
    let (slug, searches) = (&model.slug, seen.searches);
    let message = format!(
        "these documents are {searches} searches, and a request to {slug} is one; send fewer of them, or shorter ones"
    );
    refuse(
        Remedy::AtMost("searches", 1),
        "documents",
        "too_many_documents",
        message,
    )
}

fn check_abilities(model: &Model, family: Family, seen: &Inspection) -> Result<(), Failure> {
    let (slug, able) = (&model.slug, |capability| model.can(capability));
    if seen.stream && !able(Capability::Streaming) {
        return refuse(
            Remedy::Off("stream"),
            "stream",
            "streaming_unsupported",
            format!("{slug} does not stream; send \"stream\": false"),
        );
    }
    if !seen.content.pictures.is_empty() && !able(Capability::Vision) {
        return refuse(
            Remedy::Capable(Capability::Vision.name()),
            family.protocol().conversation_field(),
            "vision_unsupported",
            format!("{slug} does not read pictures; use a model with vision, or send text only"),
        );
    }
    if seen.content.tools > 0 && !able(Capability::Tools) {
        return refuse(
            Remedy::Capable(Capability::Tools.name()),
            "tools",
            "tools_unsupported",
            format!("{slug} does not call tools; send no tools, or use another model"),
        );
    }
    Ok(())
}

fn check_sizes(model: &Model, family: Family, seen: &Inspection) -> Result<(), Failure> {
    let (slug, tools) = (&model.slug, seen.content.tools);
    if let Some(most) = model.limits.tools.filter(|most| tools > *most) {
        let message =
            format!("{slug} takes at most {most} tools, the request has {tools}; send fewer");
        let most = Remedy::AtMost("tools", u64::from(most));
        return refuse(most, "tools", "too_many_tools", message);
    }
    let pictures = seen.content.pictures.iter();
    let largest = pictures.filter_map(|picture| picture.bytes).max();
    let largest = largest.unwrap_or(0);
    if let Some(most) = model.limits.image_bytes.filter(|most| largest > *most) {
        let message = format!(
            "a picture has {largest} bytes, {slug} takes at most {most} each; send a smaller picture"
        );
        let field = family.protocol().conversation_field();
        let most = Remedy::AtMost("image_bytes", most);
        return refuse(most, field, "image_too_large", message);
    }
    Ok(())
}

/// Refuses a cache write without a price, and a thinking budget that would leave nothing to answer with.
fn check_prices(model: &Model, family: Family, seen: &Inspection) -> Result<(), Failure> {
    let (slug, most) = (&model.slug, model.limits.max_output);
    let rates = model.price.of(seen.classes).unwrap_or(&model.price).base;
    let writes = |long: bool| long && writes_long(model, family, seen);
    if writes(seen.one_hour_cache) && rates.cache_write_1h.is_none() {
        let message = format!(
            "{slug} has no price for one-hour cache writes; leave out \"ttl\": \"1h\" in cache_control"
        );
        let each = Remedy::WithoutEach("cache_control.ttl");
        return refuse(each, "cache_control", "unpriced", message);
    }
    if writes(seen.half_day_cache) && rates.cache_write_12h.is_none() {
        let message =
            format!("{slug} has no price for twelve-hour cache writes; leave out \"ttl\": \"12h\"");
        return refuse(Remedy::WithoutEach("ttl"), "ttl", "unpriced", message);
    }
    let budget = seen.thinking_budget.unwrap_or(0);
    if budget >= most {
        let message = format!(
            "a thinking budget of {budget} tokens leaves no room in the {most} that {slug} can answer with; send a smaller budget_tokens"
        );
        let most = Remedy::AtMost("budget_tokens", u64::from(most.saturating_sub(1)));
        return refuse(most, "thinking.budget_tokens", "budget_too_large", message);
    }
    Ok(())
}

/// Whether a lifetime of cache writes reaches a target. A translation asks for none without a price, and some services have no marks:
/// there it is left out and named.
fn writes_long(model: &Model, family: Family, seen: &Inspection) -> bool {
    let apart = seen.places.lifetime_apart;
    let mut candidates = model.route.candidates(family).into_iter();
    candidates.any(|(target, asked)| asked == family && (apart || target.fit.takes_marks))
}

/// Whether a target may be given the addresses in a request, if there are any.
pub(super) fn carries(target: &Target, content: &Content) -> bool {
    target.provider.takes_urls || !content.names_addresses()
}

/// Refuses addresses in a request that only providers inside a private network could serve: they would fetch them from there.
///
/// # Errors
/// [`Failure::BadRequest`].
pub(super) fn check_addresses(
    model: &Model,
    family: Family,
    seen: &Inspection,
) -> Result<(), Failure> {
    let candidates = model.route.candidates(family);
    if candidates
        .iter()
        .any(|(target, _)| carries(target, &seen.content))
    {
        return Ok(());
    }
    let message = format!(
        "{} takes no pictures by URL; send the picture inline as `data:image/…;base64,…`",
        model.slug
    );
    refuse(
        Remedy::Inline,
        family.protocol().conversation_field(),
        "url_unsupported",
        message,
    )
}

/// Refuses a beta flag that must not reach one of the model's providers, because it would buy something without a price.
///
/// # Errors
/// [`Failure::BadRequest`], worded so that native clients know which flag to drop when they retry.
pub(super) fn check_flags(
    model: &Model,
    family: Family,
    headers: &[(String, Bytes)],
) -> Result<(), Failure> {
    let providers = || {
        model
            .route
            .targets
            .iter()
            .map(|target| &target.provider)
            .filter(|one| one.speaks_family(family))
    };
    let refused = |flag: &str| {
        providers().any(|provider| provider.refuse_beta.iter().any(|other| covers(other, flag)))
    };
    let values = headers
        .iter()
        .filter(|(name, _)| name == FLAGS)
        .filter_map(|(_, value)| std::str::from_utf8(value).ok());
    let unsold: Vec<&str> = values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|flag| refused(flag))
        .collect();
    if unsold.is_empty() {
        return Ok(());
    }
    let named = unsold.join("`, `");
    let message = format!(
        "Unexpected value(s) `{named}` for the `{FLAGS}` header: not sold with {}; leave it out",
        model.slug
    );
    refuse(
        Remedy::WithoutEach(FLAGS),
        FLAGS,
        "unsupported_beta",
        message,
    )
}

/// Whether a flag matches a listed one, which may be a prefix ending in `*`.
fn covers(listed: &str, flag: &str) -> bool {
    listed
        .strip_suffix('*')
        .map_or(listed == flag, |stem| flag.starts_with(stem))
}

/// A field's name, shortened for an error text.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

/// The size of the model's input in a key's request; refuses input well over its context. Where a token for each byte would be a good part of
/// what the key has, a tokenizer counts instead, and the last part of the answer is true.
///
/// # Errors
/// [`Failure::BadRequest`], or [`Failure::RateLimited`] when the customer's turn does not come.
pub(super) async fn fits(
    work: &mut Work,
    model: &Arc<Model>,
    seen: &mut Inspection,
    available: Amount,
    calibrations: &Calibrations,
) -> Result<(Estimate, bool), Failure> {
    let (estimate, most) = (
        estimate::input(&seen.content, &model.limits),
        model.limits.context,
    );
    // The estimate may be off by a tenth, so the provider decides about input up to that much over.
    let too_long = |tokens: u64| tokens.saturating_mul(10) > most.saturating_mul(11);
    // The fast estimate is high for ordinary text and far too low for some unusual text, so a tokenizer checks before a request is
    // refused, and whenever the text is unusual.
    let (price, lifetimes) = (model.price.held(seen.classes), prompt::lifetimes(seen));
    let short = estimate.known < most && bound::is_short(price, &estimate, lifetimes, available);
    let odd = seen.content.is_odd();
    if !too_long(estimate.known) && !odd && !short {
        return Ok((estimate, false));
    }
    let (tokens, most_tokens) = prompt::prompt(work, seen, model).await?;
    if !too_long(tokens) {
        let corrected = calibrations.corrected(model, tokens);
        return Ok(if short {
            (
                estimate.counted((corrected, most_tokens), &model.limits),
                true,
            )
        } else {
            (estimate.at_least(tokens, &model.limits), short)
        });
    }
    // Clients that shorten their conversation automatically match on these words.
    let message = format!(
        "prompt is too long: {tokens} tokens > {most} maximum for {}; send less",
        model.slug
    );
    Err(Failure::BadRequest(BadRequest {
        code: Some("context_length_exceeded"),
        ..BadRequest::new(message).with(Remedy::AtMost("input_tokens", most))
    }))
}

pub(super) fn refuse(
    remedy: Remedy,
    param: &str,
    code: &'static str,
    message: String,
) -> Result<(), Failure> {
    Err(Failure::BadRequest(BadRequest {
        code: Some(code),
        ..BadRequest::at(param, message).with(remedy)
    }))
}
