//! Prices: rates, tiers of size, and classes; and how customers read them.

use std::collections::HashMap;

use farebox_ledger::{Amount, grouped};
use farebox_toml::{Code, Entry, KEYS, Report, Span};

use super::classes::{self, ClassList};
use super::rates::{NamedRates, OF_REQUESTS, read_rates};
use crate::config::{Price, Rates};

impl Price {
    /// The rates that apply to a request with this much input, all classes together.
    pub fn for_input(&self, input_tokens: u64) -> &Rates {
        self.tiers
            .iter()
            .rev()
            .find(|(above, _)| input_tokens > *above)
            .map_or(&self.base, |(_, rates)| rates)
    }

    /// The service price as customers read it.
    pub fn shown(&self) -> String {
        let (tokens, extras) = (self.base.shown(), self.base.extras_shown(None));
        let mut text = match extras.strip_prefix(" · ") {
            // What is sold by the request alone has no other price.
            Some(alone) if self.base == Rates::of_input(Amount::ZERO, self.base.per_request) => {
                alone.to_owned()
            }
            _ => tokens + &extras,
        };
        for (above, rates) in &self.tiers {
            let extras = rates.extras_shown(Some(&self.base));
            text.push_str(&format!(
                " · above {} input tokens: {}{extras}",
                grouped(*above),
                rates.shown()
            ));
        }
        text + &classes::shown(self)
    }
}

/// Reads `price = { … }` in figures.
pub(crate) fn read_price(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    context: Option<u64>,
) -> Option<Price> {
    let fields = value.fields(report, &format!("the price of {what}"), &KEYS.price)?;
    if let Some(markup) = fields.get("markup") {
        report
            .add(
                Code::Contradiction,
                markup.key,
                "a cost cannot be a markup on itself",
            )
            .help("write cost = { input = \"…\", output = \"…\" }: what you pay");
        return None;
    }
    let base = read_rates(&fields, report, None);
    let tiers = match fields.get("tiers") {
        Some(tiers) => read_tiers(tiers, report, what, base.as_ref(), context),
        None => Some(Vec::new()),
    };
    let listed = classes::list_of(&fields, report, what);
    let (tiers, of_tiers): (Vec<_>, Vec<_>) = tiers?
        .into_iter()
        .map(|(above, rates, classes)| ((above, rates), classes))
        .unzip();
    let mut price = Price {
        base: base?.0,
        tiers,
        classes: Vec::new(),
    };
    price.classes = classes::class_prices(report, &price, &listed?.unwrap_or_default(), &of_tiers)?;
    Some(price)
}

/// A tier: its bound, its rates, and the classes that it lists itself.
type TierRates = (u64, Rates, Option<ClassList>);

fn read_tiers(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    base: Option<&NamedRates>,
    context: Option<u64>,
) -> Option<Vec<TierRates>> {
    let members = value.list(
        report,
        "tiers, each { above_input = 200_000, price = { … } }",
    )?;
    let mut tiers: Vec<TierRates> = Vec::new();
    let mut last: Option<u64> = None;
    let mut good = true;
    for member in members {
        let tier = read_tier(member, report, what, base, context, last);
        good &= tier.is_some();
        if let Some(tier) = tier {
            last = Some(tier.0);
            tiers.push(tier);
        }
    }
    good.then_some(tiers)
}

fn read_tier(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    base: Option<&NamedRates>,
    context: Option<u64>,
    last: Option<u64>,
) -> Option<TierRates> {
    let fields = value.fields(report, &format!("a price tier of {what}"), &KEYS.tier)?;
    let above = fields.required(
        report,
        "above_input",
        "above_input = 200_000",
        |value, report| value.integer(report, 1..=2_147_483_647),
    );
    let price = fields.required(
        report,
        "price",
        "price = { input = \"6.00\", output = \"22.50\" }",
        |value, report| {
            let fields = value.fields(
                report,
                &format!("the price of a tier of {what}"),
                &KEYS.tier_price,
            )?;
            let (rates, named) = read_rates(&fields, report, base)?;
            if let Some((name, span)) = forgotten(&named, base) {
                report
                    .add(
                        Code::BadTier,
                        fields.span,
                        format!("this tier of {what} has no `{name}`, but the price below it has"),
                    )
                    .also(span, "priced here")
                    .help(format!(
                        "add `{name}` to the tier; a tier reprices the whole request"
                    ));
                return None;
            }
            let listed = classes::list_of(&fields, report, &format!("a tier of {what}"))?;
            Some((rates, listed))
        },
    );
    let above = above?;
    if last.is_some_and(|last| above.value <= last) {
        report
            .add(
                Code::BadTier,
                above.span,
                format!("the tiers of {what} do not rise"),
            )
            .help("write tiers by rising `above_input`, each bound once");
        return None;
    }
    if let Some(context) = context.filter(|context| above.value >= *context) {
        let message = format!(
            "this tier of {what} never applies: its context is {} tokens",
            grouped(context)
        );
        report.add(Code::DeadTier, above.span, message);
    }
    let (rates, classes) = price?;
    Some((above.value, rates, classes))
}

/// A rate of tokens that the price around a tier sets and the tier does not: it would silently cost what input does.
fn forgotten(
    named: &HashMap<&'static str, Span>,
    around: Option<&NamedRates>,
) -> Option<(&'static str, Span)> {
    let (_, around) = around?;
    let is_missing = |name: &&str| !OF_REQUESTS.contains(name) && !named.contains_key(name);
    let mut missing = KEYS.rates.names().filter(is_missing);
    missing.find_map(|name| Some((name, *around.get(name)?)))
}
