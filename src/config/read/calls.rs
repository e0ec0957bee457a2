//! Reads what a model says that is for a call alone, as embeddings: it has an input and no output, so its price and its limits have none,
//! and it can do nothing else. What bills by the request, as searches are, may have no price of tokens.

use farebox_protocol::{CallKind, WirePath};
use farebox_toml::{Code, Entry, Fields, KEYS, Placed, Report, Span};
use toml::de::DeValue;

use super::below_cost::Targets;
use super::markup::read_sold_price;
use super::rates::read_amount;
use crate::config::{Capability, ModelLimits, Price, PriceUnit, Rates, Route, Target};

/// The call that a best path is.
pub(super) fn call_of(best: Option<&Placed<WirePath>>) -> Option<CallKind> {
    best.and_then(|path| path.value.call())
}

/// Reads a price: of a call its own, of a family all that it may have.
pub(super) fn read_price_of(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    (what, call): (&str, Option<CallKind>),
    context: Option<u64>,
    targets: Option<Targets<'_>>,
) -> Option<Price> {
    let marked = matches!(value.node(), DeValue::Table(table) if table.contains_key("markup"));
    match call.filter(|_| !marked) {
        Some(call) => read_call_price(value, report, what, call),
        None => read_sold_price(value, report, what, context, targets),
    }
}

/// Reads `price = { input = "0.02" }`, where a request may have a price of its own.
pub(super) fn read_call_price(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    call: CallKind,
) -> Option<Price> {
    let fields = value.fields(report, &format!("the price of {what}"), &KEYS.price)?;
    let others = KEYS.price.names();
    let alone = none_of(
        &fields,
        report,
        call,
        others.filter(|name| !matches!(*name, "input" | "per_request")),
    );
    let per_request = fields.given(report, "per_request", |value, report| {
        read_amount(value, report, PriceUnit::One)
    });
    let tokens = |value: Entry<'_, '_>, report: &mut Report<'_>| {
        read_amount(value, report, PriceUnit::MillionTokens)
    };
    let input = match per_request {
        Some(Some(_)) => fields.given(report, "input", tokens),
        _ => fields
            .required(report, "input", "input = \"0.02\"", tokens)
            .map(Some),
    };
    let (input, per_request) = (input?, per_request?);
    alone.then_some(Price {
        base: Rates::of_input(input.unwrap_or_default(), per_request.unwrap_or_default()),
        tiers: Vec::new(),
        classes: Vec::new(),
    })
}

/// Notes targets of a model that answers whose cost has no output, as a call's: whoever reads them does not know the model.
pub(super) fn note_free_output(report: &mut Report<'_>, route: &Route, targets: Span) {
    let is_free = |target: &&Target| {
        let rates = target.cost.as_deref().map(|cost| cost.base);
        let rates =
            rates.filter(|rates| rates.input.is_positive() && target.provider.call().is_some());
        rates.is_some_and(|rates| rates == Rates::of_input(rates.input, rates.per_request))
    };
    if let Some(target) = route.targets.iter().find(is_free) {
        let message = format!("the `cost` of {} has no `output`", target.name());
        report
            .add(Code::SwappedPrices, targets, message)
            .help("what answers costs output, too: write cost = { input = \"…\", output = \"…\" }");
    }
}

/// Reads `limits = { context = 8_192 }`: the most tokens of one text.
pub(super) fn read_call_limits(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    call: CallKind,
) -> Option<ModelLimits> {
    let fields = value.fields(report, &format!("the limits of {what}"), &KEYS.limits)?;
    let others = KEYS.limits.names();
    let alone = none_of(
        &fields,
        report,
        call,
        others.filter(|name| *name != "context"),
    );
    let context = fields.required(report, "context", "context = 8_192", |value, report| {
        value.small(report, 1..=2_147_483_647)
    })?;
    alone.then_some(ModelLimits {
        context: context.value.into(),
        max_output: 0,
        max_reasoning: None,
        speed: None,
        image_bytes: None,
        picture_tokens: None,
        tools: None,
    })
}

/// Records what a call has no use for; whether there is nothing of it.
fn none_of(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    call: CallKind,
    names: impl Iterator<Item = &'static str>,
) -> bool {
    let mut alone = true;
    for value in names.filter_map(|name| fields.get(name)) {
        alone = false;
        let (call, name) = (call.name(), value.name);
        let message = format!(
            "`{name}` in {}: `{call}` have an input and no more",
            fields.what
        );
        report
            .add(Code::Contradiction, value.key, message)
            .help(format!("leave `{name}` out"));
    }
    alone
}

/// What a model can do, as it was read; records one that is for a call and for something else.
pub(super) fn check_capabilities(
    report: &mut Report<'_>,
    fields: &Fields<'_, '_>,
    best: Option<&Placed<WirePath>>,
    read: Option<Option<Vec<Capability>>>,
) -> Option<Vec<Capability>> {
    let (best, capabilities) = (best?, read?.unwrap_or_default());
    let place = fields
        .get("capabilities")
        .map_or(best.span, |value| value.key);
    let called = capabilities.iter().find_map(|capability| capability.call());
    let (message, help) = match (best.value.call(), called) {
        (Some(_), Some(_)) if capabilities.len() == 1 => return Some(capabilities),
        (None, None) => return Some(capabilities),
        (Some(call), _) => (
            format!(
                "{} is for `{}`, and can do nothing else",
                fields.what,
                call.name()
            ),
            format!("write capabilities = [\"{}\"]", call.name()),
        ),
        (None, Some(call)) => (
            format!(
                "{} answers on `{}`, so it cannot make `{}`, too",
                fields.what,
                best.value,
                call.name()
            ),
            format!(
                "write best_path = \"{0}\" and capabilities = [\"{0}\"], or leave the capability out",
                call.name()
            ),
        ),
    };
    report
        .add(Code::Contradiction, place, message)
        .also(best.span, "its best path")
        .help(help);
    None
}
