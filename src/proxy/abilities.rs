//! What a model can do, against what a request asks of it. All of it is a 400 with the remedy, before any money is looked at.

use farebox_protocol::{BadRequest, Inspection};

use super::Failure;
use crate::config::{Capability, Model};

/// Refuses what the model cannot do or what has no price.
///
/// # Errors
/// [`Failure::BadRequest`].
pub(super) fn check(model: &Model, seen: &Inspection) -> Result<(), Failure> {
    let slug = &model.slug;
    let able = |capability| model.can(capability);
    if seen.stream && !able(Capability::Streaming) {
        return refuse("stream", "streaming_unsupported", format!("{slug} does not stream; send \"stream\": false"));
    }
    if !seen.content.pictures.is_empty() && !able(Capability::Vision) {
        return refuse(
            "messages",
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
        return refuse("messages", "image_too_large", message);
    }
    if seen.one_hour_cache && model.price.base.cache_write_1h.is_none() {
        let message = format!("{slug} has no price for one-hour cache writes; leave out \"ttl\": \"1h\" in cache_control");
        return refuse("cache_control", "unpriced", message);
    }
    Ok(())
}

fn refuse(param: &str, code: &'static str, message: String) -> Result<(), Failure> {
    Err(Failure::BadRequest(BadRequest { message, param: Some(param.to_owned()), code: Some(code) }))
}
