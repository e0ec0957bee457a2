//! Classes of a request: whether the model sells what is asked for, and which targets can be asked for it.
//!
//! A request that asks for no class costs one comparison here.

use std::sync::Arc;

use bytes::Bytes;
use farebox_protocol::{
    BadRequest, Classes, Family, Inspection, Remedy, RequestRegion, ServiceTier,
};

use super::capabilities::refuse;
use super::{Failure, prompt};
use crate::config::{Model, Price, Target};
use crate::metering::Estimate;
use crate::turns::Work;

/// Refuses a class that the model does not sell.
///
/// # Errors
/// [`Failure::BadRequest`], which names the field and the classes that are sold.
pub(super) fn check(model: &Model, family: Family, seen: &Inspection) -> Result<(), Failure> {
    let asked = seen.classes;
    if asked.is_standard() || model.price.class(asked).is_some() {
        return Ok(());
    }
    let unsold = unsold(&model.price, asked);
    let field = field(family, unsold);
    let classes = model.price.classes.iter();
    let words: Vec<_> = classes
        .map(|class| format!("`{}`", class.classes.name()))
        .collect();
    let sold = if words.is_empty() {
        "it has no classes".to_owned()
    } else {
        format!("it has {}", words.join(", "))
    };
    let message = format!(
        "`{field}`: {} is not sold in the class `{}`; {sold}. Leave the field out for the standard.",
        model.slug,
        unsold.name()
    );
    refuse(Remedy::Without, field, "unsupported_parameter", message)
}

/// The part of a combination that is not sold by itself, else all of it.
fn unsold(price: &Price, asked: Classes) -> Classes {
    let parts = [
        Classes::of(asked.tier, RequestRegion::Global),
        Classes::of(ServiceTier::Standard, asked.place),
    ];
    let mut parts = parts.into_iter().filter(|part| !part.is_standard());
    parts
        .find(|part| price.class(*part).is_none())
        .unwrap_or(asked)
}

fn field(family: Family, classes: Classes) -> &'static str {
    let field = family.protocol().class_field(classes);
    field.unwrap_or("service_tier")
}

/// Refuses a request that is larger than its class is sold for. The estimate is high, so a tokenizer decides.
///
/// # Errors
/// [`Failure::BadRequest`] with the bound, or [`Failure::RateLimited`] when the customer's turn does not come.
pub(super) async fn check_size(
    work: &mut Work,
    model: &Arc<Model>,
    family: Family,
    seen: &mut Inspection,
    estimate: &Estimate,
) -> Result<(), Failure> {
    if seen.classes.is_standard() {
        return Ok(());
    }
    let class = model.price.class(seen.classes);
    let Some(most) = class.and_then(|class| class.context) else {
        return Ok(());
    };
    if estimate.known <= most {
        return Ok(());
    }
    let (tokens, _) = prompt::prompt(work, seen, model).await?;
    if tokens <= most {
        return Ok(());
    }
    let name = seen.classes.name();
    let message = format!(
        "{} is sold in the class `{name}` for at most {most} input tokens, and the prompt has {tokens}; send less, or leave the field out",
        model.slug
    );
    let field = field(family, seen.classes);
    refuse(Remedy::Without, field, "class_too_long", message)
}

/// Whether a target of the customer's own family can be asked for these classes.
pub(super) fn takes(target: &Target, family: Family, classes: Classes) -> bool {
    if classes.is_standard() {
        return true;
    }
    let field = family.protocol().class_field(classes);
    field.is_some_and(|field| !target.fit.leaves_out(field))
}

/// Refuses a class that no target of the model can be asked for.
pub(super) fn no_target(model: &Model, family: Family, classes: Classes) -> BadRequest {
    let field = field(family, classes);
    let message = format!(
        "`{field}`: no service behind {} knows the class `{}` now; leave the field out",
        model.slug,
        classes.name()
    );
    BadRequest {
        code: Some("unsupported_by_model"),
        ..BadRequest::at(field, message).with(Remedy::Without)
    }
}

/// Adds the headers that a class needs; what the customer sent stays.
pub(super) fn add_headers(headers: &mut Vec<(String, Bytes)>, family: Family, classes: Classes) {
    if classes.is_standard() {
        return;
    }
    for (name, value) in family.protocol().class_headers(classes) {
        let had = headers.iter_mut().find(|(header, _)| header == name);
        match had {
            Some((_, sent)) if lists(sent, value) => {}
            Some((_, sent)) => {
                let both = [sent.as_ref(), b",", value.as_bytes()].concat();
                *sent = Bytes::from(both);
            }
            None => headers.push(((*name).to_owned(), Bytes::from_static(value.as_bytes()))),
        }
    }
}

fn lists(sent: &Bytes, value: &str) -> bool {
    let mut listed = sent.split(|byte| *byte == b',');
    listed.any(|one| one.trim_ascii() == value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_added_once_beside_those_that_were_sent() {
        let fast = Classes::of(ServiceTier::Fast, RequestRegion::Global);
        let sent = |value: &'static str| {
            let mut headers = vec![(
                "anthropic-beta".to_owned(),
                Bytes::from_static(value.as_bytes()),
            )];
            add_headers(&mut headers, Family::Messages, fast);
            headers
        };
        assert_eq!(&*sent("a-1")[0].1, b"a-1,fast-mode-2026-02-01");
        assert_eq!(
            &*sent("a-1, fast-mode-2026-02-01")[0].1,
            b"a-1, fast-mode-2026-02-01"
        );
        let mut none = Vec::new();
        add_headers(&mut none, Family::Messages, fast);
        assert_eq!(&*none[0].1, b"fast-mode-2026-02-01");
        let mut none = Vec::new();
        add_headers(&mut none, Family::Chat, fast);
        add_headers(&mut none, Family::Messages, Classes::STANDARD);
        assert!(none.is_empty());
    }
}
