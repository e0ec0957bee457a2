//! Prices beside the library's: a list price is read like any other, and `check` compares a catalog with it.

use farebox_ledger::Amount;
use farebox_toml::{Code, ConfigFile, Fields, KEYS, Report, Source, Span, syntax};

use super::below_cost::{self, Targets};
use super::calls::read_call_price;
use super::price::read_price;
use crate::config::{Offer, Price, PriceUnit, Rates, Target, show_price};

/// Below this nobody sells a million tokens of input, and dear models cost that for a thousand: 0.005 USD per 1,000,000 tokens.
const LOWEST: Amount = Amount::from_picos(5_000);

/// The list price of an offer, if somebody has found it.
pub fn list_price(offer: &Offer) -> Option<Price> {
    if !offer.is_verified("price") {
        return None;
    }
    let text = format!("price = {{ {} }}", offer.model.price_text(str::to_owned));
    let source = Source::new("library.toml", text.as_str());
    let mut report = Report::new(&source, &source);
    let root = syntax::parse(&text);
    let top = Span::top(ConfigFile::Catalog);
    let fields = Fields::open(&mut report, &root, top, "the library", &KEYS.model);
    let (value, what) = (fields.get("price")?, "the library");
    let price = match offer.model.call() {
        Some(call) => read_call_price(value, &mut report, what, call),
        None => read_price(value, &mut report, what, None),
    };
    price.filter(|_| !report.has_errors())
}

/// Whether a price is so far from a list price that one of them may be in another unit.
fn is_far(price: &Rates, list: &Rates) -> bool {
    let far = |one: Amount, other: Amount| i128::from(one.picos()) > 5 * i128::from(other.picos());
    [(price.input, list.input), (price.output, list.output)]
        .into_iter()
        .any(|(price, list)| far(price, list) || far(list, price))
}

/// A price far from the list, and a target that could have a cost.
pub(super) fn check(
    report: &mut Report<'_>,
    price: (&Price, Span),
    what: &str,
    (targets, place): Targets<'_>,
) {
    for target in targets {
        let Some(list) = &target.list else { continue };
        let name = target.name();
        if is_far(&price.0.base, &list.base) {
            let message = format!(
                "the price of {what} is far from the list price of `{name}`: {}, and the library has {}",
                price.0.base.shown(),
                list.base.shown()
            );
            report
                .add(Code::FarFromList, price.1, message)
                .help("prices are USD per 1,000,000 tokens; `farebox library` shows the list prices, with date and source");
        }
        if target.cost.is_none() {
            report
                .add(
                    Code::NoCost,
                    place,
                    format!("`{name}` has no `cost`, and the library knows its list price"),
                )
                .help("write cost = \"library\" in the target, or what you pay: a price below it is then noticed");
        }
    }
}

/// Records a price below what a target costs, or in another unit, unless the model is sold below cost on purpose.
pub(super) fn check_costs(
    report: &mut Report<'_>,
    (price, place): (&Price, Span),
    what: &str,
    targets: Targets<'_>,
    on_purpose: bool,
) {
    if !on_purpose {
        unit(report, (&price.base, place), what, targets);
        below_cost::check(report, (price, place), what, targets);
    }
}

/// A price that looks like one per token or per thousand, where no target has a cost or a list price that would show it.
fn unit(report: &mut Report<'_>, price: (&Rates, Span), what: &str, targets: Targets<'_>) {
    let known = |target: &Target| target.cost.is_some() || target.list.is_some();
    let input = price.0.input;
    if input == Amount::ZERO || input >= LOWEST || targets.0.iter().any(known) {
        return;
    }
    let shown = show_price(input, PriceUnit::MillionTokens);
    report
        .add(
            Code::TinyPrice,
            price.1,
            format!("the price of {what} is tiny: {shown} for 1,000,000 tokens of input"),
        )
        .help("prices are USD per 1,000,000 tokens; if this one is per token or per thousand, multiply it");
}
