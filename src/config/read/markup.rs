//! Prices that a `markup` makes of what targets cost: the dearest of them at every size and in every class that all of them have.

use std::collections::BTreeSet;

use farebox_ledger::Amount;
use farebox_toml::{Code, Entry, KEYS, Report, Span};
use toml::de::DeValue;

use super::below_cost::Targets;
use super::classes::{read_times, show_times};
use super::price::read_price;
use crate::config::price::ClassPrice;
use crate::config::{Price, Rates};

/// One in a factor.
const ONE: i64 = 1_000;

/// Reads the `price` of something that is sold: figures, or a `markup` on what its targets cost.
pub(super) fn read_sold_price(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    context: Option<u64>,
    targets: Option<Targets<'_>>,
) -> Option<Price> {
    let marked = matches!(value.node(), DeValue::Table(table) if table.contains_key("markup"));
    if !marked {
        return read_price(value, report, what, context);
    }
    let fields = value.fields(report, &format!("the price of {what}"), &KEYS.price)?;
    let others: Vec<&'static str> = KEYS
        .price
        .names()
        .filter(|name| *name != "markup")
        .collect();
    let mut alone = true;
    for other in others.into_iter().filter(|other| fields.has(other)) {
        fields.exclude(report, "markup", other);
        alone = false;
    }
    let value = fields.get("markup")?;
    let times = read_times(value, report)?;
    // Mistakes of its route have been told of.
    over(report, (times, value.key), what, targets.filter(|_| alone)?)
}

/// So many thousandths of what a model's targets cost.
pub(super) fn over(
    report: &mut Report<'_>,
    (times, place): (u32, Span),
    what: &str,
    (targets, at): Targets<'_>,
) -> Option<Price> {
    if let Some(unknown) = targets.iter().find(|target| target.cost.is_none()) {
        report
            .add(
                Code::UnknownCost,
                place,
                format!(
                    "the price of {what} is a markup, and nobody says what `{}` costs",
                    unknown.name()
                ),
            )
            .also(at, "its target is here")
            .help(
                "write cost = \"library\" in the target, or what you pay, or the price in figures",
            );
        return None;
    }
    let costs: Vec<&Price> = targets
        .iter()
        .filter_map(|target| target.cost.as_deref())
        .collect();
    let price = dearest(&costs).and_then(|dearest| times_up(&dearest, times));
    if price.is_none() {
        let message = format!("{} times what {what} costs is too large", show_times(times));
        report.add(Code::BadPrice, place, message);
    }
    price
}

/// The dearest of these costs.
fn dearest(costs: &[&Price]) -> Option<Price> {
    let (first, _) = costs.split_first()?;
    let tiers = costs.iter().flat_map(|cost| &cost.tiers);
    let bounds: BTreeSet<u64> = tiers.map(|(above, _)| *above).collect();
    let standard = standard(costs, &bounds)?;
    let classes = first.classes.iter().filter_map(|class| {
        let all = costs.iter().map(|cost| cost.class(class.classes));
        let all = all.collect::<Option<Vec<&ClassPrice>>>()?;
        let prices: Vec<&Price> = all.iter().map(|class| &class.price).collect();
        let price = self::standard(&prices, &bounds)?;
        Some(ClassPrice {
            classes: class.classes,
            times: class
                .times
                .filter(|times| all.iter().all(|one| one.times == Some(*times))),
            held: price.dearer(&standard),
            price,
            context: all.iter().filter_map(|class| class.context).min(),
        })
    });
    let classes = classes.collect();
    Some(Price {
        classes,
        ..standard
    })
}

/// The dearest without classes.
fn standard(costs: &[&Price], bounds: &BTreeSet<u64>) -> Option<Price> {
    let rates = |size: u64| {
        let mut all = costs.iter().map(|cost| *cost.for_input(size));
        let first = all.next()?;
        Some(all.fold(first, |dearest, rates| {
            Rates {
                // Where one of them has no price nobody knows what it costs, and it is not sold.
                cache_write_1h: dearest.cache_write_1h.zip(rates.cache_write_1h).map(dearer),
                cache_write_12h: dearest
                    .cache_write_12h
                    .zip(rates.cache_write_12h)
                    .map(dearer),
                ..dearest.dearer(&rates)
            }
        }))
    };
    let tiers = bounds.iter().map(|above| Some((*above, rates(above + 1)?)));
    Some(Price {
        base: rates(0)?,
        tiers: tiers.collect::<Option<_>>()?,
        classes: Vec::new(),
    })
}

fn dearer((one, other): (Amount, Amount)) -> Amount {
    one.max(other)
}

/// Every rate so many thousandths, rounded up to a picodollar; `None` if one is too large to be reckoned with.
fn times_up(price: &Price, times: u32) -> Option<Price> {
    let up = |rate: Amount| {
        let picos = rate.picos().checked_mul(times.into())?;
        Some(Amount::from_picos(picos.checked_add(ONE - 1)? / ONE))
    };
    let all = |price: &Price| {
        let each = |rates: &Rates| {
            Some(Rates {
                per_image: up(rates.per_image)?,
                per_request: up(rates.per_request)?,
                ..rates.each_token(up)?
            })
        };
        let tiers = price
            .tiers
            .iter()
            .map(|(above, rates)| Some((*above, each(rates)?)));
        Some(Price {
            base: each(&price.base)?,
            tiers: tiers.collect::<Option<_>>()?,
            classes: Vec::new(),
        })
    };
    let standard = all(price)?;
    let classes = price.classes.iter().map(|class| {
        let own = all(&class.price)?;
        Some(ClassPrice {
            classes: class.classes,
            // What was rounded may be no exact multiple any more.
            times: class
                .times
                .filter(|times| is_times(&own, &standard, *times)),
            held: own.dearer(&standard),
            price: own,
            context: class.context,
        })
    });
    let classes = classes.collect::<Option<_>>()?;
    Some(Price {
        classes,
        ..standard
    })
}

/// Whether each rate of tokens is exactly so many thousandths of another price's.
fn is_times(price: &Price, of: &Price, times: u32) -> bool {
    let exact = |price: &Rates, of: &Rates| {
        let rates = price.of_tokens().zip(of.of_tokens());
        rates
            .map(|(own, of)| (own.rate, of.rate))
            .all(|pair| match pair {
                (Some(own), Some(of)) => {
                    i128::from(own.picos()) * i128::from(ONE)
                        == i128::from(of.picos()) * i128::from(times)
                }
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            })
    };
    let mut tiers = price.tiers.iter().zip(&of.tiers);
    exact(&price.base, &of.base) && tiers.all(|((_, own), (_, of))| exact(own, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farebox_protocol::{Classes, RequestRegion, ServiceTier};

    fn rates(input: i64, output: i64) -> Rates {
        let [input, output] = [input, output].map(Amount::from_picos);
        Rates {
            input,
            output,
            cache_read: input,
            cache_write: input,
            cache_write_1h: None,
            cache_write_12h: None,
            reasoning: output,
            per_image: Amount::ZERO,
            per_request: Amount::ZERO,
        }
    }

    fn price(base: Rates, tiers: &[(u64, Rates)]) -> Price {
        Price {
            base,
            tiers: tiers.to_vec(),
            classes: Vec::new(),
        }
    }

    #[test]
    fn the_dearest_is_found_for_each_rate_at_each_size() {
        let one = price(rates(10, 40), &[(100, rates(20, 80))]);
        let other = price(rates(15, 30), &[(50, rates(16, 90))]);
        let all = dearest(&[&one, &other]).unwrap();
        assert_eq!(all.base, rates(15, 40));
        assert_eq!(all.tiers, [(50, rates(16, 90)), (100, rates(20, 90))]);
    }

    #[test]
    fn what_not_every_target_has_a_cost_for_is_not_sold() {
        let hour = Rates {
            cache_write_1h: Some(Amount::from_picos(30)),
            ..rates(10, 40)
        };
        let flex = Classes::of(ServiceTier::Flex, RequestRegion::Global);
        let half = price(rates(5, 20), &[]);
        let one = Price {
            classes: vec![ClassPrice {
                classes: flex,
                times: Some(500),
                held: half.clone(),
                price: half,
                context: None,
            }],
            ..price(hour, &[])
        };
        let other = price(rates(15, 30), &[]);
        let both = dearest(&[&one, &other]).unwrap();
        assert_eq!((both.base.cache_write_1h, both.classes.len()), (None, 0));
        let alone = dearest(&[&one]).unwrap();
        assert_eq!(alone.base.cache_write_1h, hour.cache_write_1h);
        assert_eq!(alone.class(flex).unwrap().times, Some(500));
    }

    #[test]
    fn a_fraction_of_a_picodollar_is_rounded_up_and_a_class_that_is_no_multiple_any_more_says_so() {
        let flex = Classes::of(ServiceTier::Flex, RequestRegion::Global);
        let half = price(rates(5, 20), &[]);
        let cost = Price {
            classes: vec![ClassPrice {
                classes: flex,
                times: Some(500),
                held: price(rates(10, 40), &[]),
                price: half,
                context: Some(7),
            }],
            ..price(rates(10, 40), &[])
        };
        let exact = times_up(&cost, 1_200).unwrap();
        assert_eq!(exact.base, rates(12, 48));
        let class = exact.class(flex).unwrap();
        assert_eq!((class.price.base, class.times), (rates(6, 24), Some(500)));
        assert_eq!((class.held.base, class.context), (rates(12, 48), Some(7)));
        let rounded = times_up(&cost, 1_050).unwrap();
        assert_eq!(rounded.base, rates(11, 42));
        let class = rounded.class(flex).unwrap();
        assert_eq!((class.price.base, class.times), (rates(6, 21), None));
        assert_eq!(
            times_up(&price(rates(i64::MAX / 4, 1), &[]), 1_000_000),
            None
        );
    }
}
