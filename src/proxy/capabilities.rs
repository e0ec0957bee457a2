//! What a model can do, against what a request asks of it. All of it is a 400 with the remedy, before any money is looked at.

use bytes::Bytes;
use farebox_protocol::{BadRequest, Family, Inspection};

use super::Failure;
use crate::config::{Capability, Model};
use crate::metering::estimate;

/// Where native clients switch on what is not yet in the dialect.
const FLAGS: &str = farebox_protocol::messages::FLAGS_HEADER;

/// Refuses what the model cannot do or what has no price.
///
/// # Errors
/// [`Failure::BadRequest`].
pub(super) fn check(model: &Model, family: Family, seen: &Inspection) -> Result<(), Failure> {
    let (slug, conversation) = (&model.slug, family.protocol().conversation_field());
    let able = |capability| model.can(capability);
    if seen.stream && !able(Capability::Streaming) {
        return refuse("stream", "streaming_unsupported", format!("{slug} does not stream; send \"stream\": false"));
    }
    if !seen.content.pictures.is_empty() && !able(Capability::Vision) {
        return refuse(
            conversation,
            "vision_unsupported",
            format!("{slug} does not read pictures; use a model with vision, or send text only"),
        );
    }
    if seen.content.tools > 0 && !able(Capability::Tools) {
        return refuse("tools", "tools_unsupported", format!("{slug} does not call tools; send no tools, or use another model"));
    }
    if let Some(most) = model.limits.tools.filter(|most| seen.content.tools > *most) {
        return refuse(
            "tools",
            "too_many_tools",
            format!("{slug} takes at most {most} tools, the request has {}; send fewer", seen.content.tools),
        );
    }
    let largest = seen.content.pictures.iter().filter_map(|picture| picture.bytes).max().unwrap_or(0);
    if let Some(most) = model.limits.image_bytes.filter(|most| largest > *most) {
        let message = format!("a picture has {largest} bytes, {slug} takes at most {most} each; send a smaller picture");
        return refuse(conversation, "image_too_large", message);
    }
    if seen.one_hour_cache && model.price.base.cache_write_1h.is_none() {
        let message = format!("{slug} has no price for one-hour cache writes; leave out \"ttl\": \"1h\" in cache_control");
        return refuse("cache_control", "unpriced", message);
    }
    let budget = seen.thinking_budget.unwrap_or(0);
    if budget >= model.limits.max_output {
        let most = model.limits.max_output;
        let message = format!("a thinking budget of {budget} tokens leaves no room in the {most} that {slug} can answer with");
        return refuse("thinking.budget_tokens", "budget_too_large", format!("{message}; send a smaller budget_tokens"));
    }
    fits(model, seen)
}

/// Refuses a flag that one of the model's providers must not be sent: it would buy what has no price.
///
/// # Errors
/// [`Failure::BadRequest`], in the words by which native clients know which flag to leave out when they try again.
pub(super) fn check_flags(model: &Model, family: Family, headers: &[(String, Bytes)]) -> Result<(), Failure> {
    let providers = || model.route.targets.iter().map(|target| &target.provider).filter(|one| one.speaks.contains(&family));
    let refused = |flag: &str| providers().any(|provider| provider.refuse_beta.iter().any(|other| other == flag));
    let values = headers.iter().filter(|(name, _)| name == FLAGS).filter_map(|(_, value)| std::str::from_utf8(value).ok());
    let unsold: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).filter(|flag| refused(flag)).collect();
    if unsold.is_empty() {
        return Ok(());
    }
    let named = unsold.join("`, `");
    let message = format!("Unexpected value(s) `{named}` for the `{FLAGS}` header: not sold with {}; leave it out", model.slug);
    refuse(FLAGS, "unsupported_beta", message)
}

/// A text that is too large by any tokenizer is refused here; where it is only likely, the provider decides.
fn fits(model: &Model, seen: &Inspection) -> Result<(), Failure> {
    let (least, most) = (estimate::surely(seen.content.text), model.limits.context);
    if least <= most {
        return Ok(());
    }
    // Clients that shorten their conversation by themselves know these words.
    let message = format!("prompt is too long: at least {least} tokens > {most} maximum for {}; send less", model.slug);
    Err(Failure::BadRequest(BadRequest { message, param: None, code: Some("context_length_exceeded") }))
}

fn refuse(param: &str, code: &'static str, message: String) -> Result<(), Failure> {
    Err(Failure::BadRequest(BadRequest { message, param: Some(param.to_owned()), code: Some(code) }))
}
