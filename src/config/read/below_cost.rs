//! Prices below what the targets of a model are known to cost.
//!
//! Whoever sells below cost on purpose says `below_cost = true`.

use farebox_ledger::{Amount, grouped};
use farebox_toml::{Code, Report, Span};

use crate::config::{ListedRate, Price, PriceUnit, Rates, Target, show_price};

/// A model's targets, and the place where they stand.
pub(super) type Targets<'a> = (&'a [Target], Span);

/// Prices below what the model's targets cost: a warning, and an error below half of it.
pub(super) fn check(
    report: &mut Report<'_>,
    price: (&Price, Span),
    what: &str,
    targets: Targets<'_>,
) {
    let lows = targets.0.iter().filter_map(|target| {
        let low = lowest_of_classes(price.0, target.cost.as_deref()?)?;
        Some((target, low))
    });
    let Some((target, low)) = lows.min_by_key(|(_, low)| low.percent()) else {
        return;
    };
    let (code, how) = if low.is_below_half() {
        (Code::FarBelowCost, "less than half of what")
    } else {
        (Code::BelowCost, "below what")
    };
    let message = format!(
        "the price of {what} is {how} `{}` costs: {} is {} and costs {}",
        target.name(),
        low.name,
        low.shown(low.price),
        low.shown(low.cost)
    );
    report
        .add(code, price.1, message)
        .also(targets.1, "the cost is here")
        .help("prices and costs are USD per 1,000,000 tokens; if it is sold below cost on purpose, write below_cost = true in the model");
}

/// A rate that is sold for less than it costs.
struct Low {
    name: String,
    unit: PriceUnit,
    price: Amount,
    cost: Amount,
}

impl Low {
    /// What is left of the cost, in percent, rounded down.
    fn percent(&self) -> i128 {
        i128::from(self.price.picos()) * 100 / i128::from(self.cost.picos().max(1))
    }

    fn is_below_half(&self) -> bool {
        i128::from(self.price.picos()) * 2 < i128::from(self.cost.picos())
    }

    fn shown(&self, amount: Amount) -> String {
        show_price(amount, self.unit)
    }
}

/// The rate that is sold farthest below its cost, in the standard or in a class that has a cost.
fn lowest_of_classes(price: &Price, cost: &Price) -> Option<Low> {
    let classes = price.classes.iter().filter_map(|class| {
        let low = lowest(&class.price, &cost.class(class.classes)?.price)?;
        let name = format!("{} in the class `{}`", low.name, class.classes.name());
        Some(Low { name, ..low })
    });
    // Of equal ones the first: a class often only follows the standard.
    lowest(price, cost)
        .into_iter()
        .chain(classes)
        .min_by_key(Low::percent)
}

/// The rate that is sold farthest below its cost, in any tier.
fn lowest(price: &Price, cost: &Price) -> Option<Low> {
    let lows = price.sizes_with(cost).into_iter().flat_map(|size| {
        let lows = lows(price.for_input(size), cost.for_input(size));
        lows.into_iter().map(move |low| match size {
            0 => low,
            _ => Low {
                name: format!("{} above {} input tokens", low.name, grouped(size - 1)),
                ..low
            },
        })
    });
    lows.min_by_key(Low::percent)
}

/// The rates below cost. A cost that was not set follows another one: what it really is, nobody said.
fn lows(price: &Rates, cost: &Rates) -> Vec<Low> {
    let low = |(price, cost): (ListedRate, ListedRate)| {
        let (price, said) = (price.rate?, cost.said()?);
        (price < said).then(|| Low {
            name: match cost.name {
                "per_image" => "an image".to_owned(),
                "per_request" => "a request".to_owned(),
                _ => cost.words(),
            },
            unit: cost.unit,
            price,
            cost: said,
        })
    };
    let rates = price.columns().into_iter().zip(cost.columns());
    rates.filter_map(low).collect()
}
