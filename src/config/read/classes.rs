//! Classes of a price: factors and tables of rates, and the prices of their combinations.
//!
//! A factor has at most three decimals, and each rate it makes must be a whole number of picodollars per token: everything stays exact.

use farebox_ledger::Amount;
use farebox_protocol::{Classes, RequestRegion, ServiceTier};
use farebox_toml::{Code, Entry, Fields, KEYS, Placed, Report, Span, shorten};
use toml::de::DeValue;

use super::rates::{OF_REQUESTS, PriceUnit, digits, read_rates, show_price};
use crate::config::price::ClassPrice;
use crate::config::{Price, Rates};

/// One in a factor.
const ONE: u32 = 1_000;
/// A larger factor is a typing mistake.
const MOST_TIMES: u32 = 1_000 * ONE;

/// What the file says about one class.
#[derive(Debug, Clone, Copy)]
struct ClassEntry {
    name: &'static str,
    span: Span,
    form: ClassForm,
    context: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum ClassForm {
    /// Every rate of a token times so many thousandths.
    Times(u32),
    /// Rates of its own, and whether it prices pictures and requests.
    Table(Rates, [bool; 2]),
}

/// The classes that a price lists.
#[derive(Debug, Clone, Default)]
pub(super) struct ClassList(Vec<ClassEntry>);

/// Reads `classes = { … }`.
fn read_classes(value: Entry<'_, '_>, report: &mut Report<'_>, what: &str) -> Option<ClassList> {
    let fields = value.fields(report, &format!("the classes of {what}"), &KEYS.classes)?;
    let mut entries = Vec::new();
    let mut good = true;
    for name in KEYS.classes.names() {
        let Some(value) = fields.get(name) else {
            continue;
        };
        match read_class(value, report, name, what) {
            Some(entry) => entries.push(entry),
            None => good = false,
        }
    }
    good.then_some(ClassList(entries))
}

fn read_class(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    name: &'static str,
    what: &str,
) -> Option<ClassEntry> {
    let span = value.span();
    let DeValue::Table(table) = value.node() else {
        let times = read_times(value, report)?;
        return Some(ClassEntry {
            name,
            span,
            form: ClassForm::Times(times),
            context: None,
        });
    };
    let of = format!("the class `{name}` of {what}");
    let factor = table.contains_key("times");
    let known = if factor {
        &KEYS.factor
    } else {
        &KEYS.class_rates
    };
    let fields = value.fields(report, &of, known)?;
    let context = fields.given(report, "context", |value, report| {
        value.integer(report, 1..=2_147_483_647)
    })?;
    let form = if factor {
        let times = fields.required(report, "times", "times = \"2\"", read_times)?;
        ClassForm::Times(times)
    } else {
        let (rates, named) = read_rates(&fields, report, None)?;
        ClassForm::Table(rates, OF_REQUESTS.map(|name| named.contains_key(name)))
    };
    Some(ClassEntry {
        name,
        span,
        form,
        context: context.map(|most| most.value),
    })
}

/// A factor in thousandths.
pub(super) fn read_times(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<u32> {
    if let DeValue::Float(_) | DeValue::Integer(_) = value.node() {
        report
            .add(
                Code::BadClass,
                value.span(),
                format!(
                    "the factor `{}` is a number; factors are strings",
                    value.name
                ),
            )
            .label("put it in quotes")
            .help(format!("write {} = \"0.5\"", value.name));
        return None;
    }
    let Placed { value: text, span } = value.text(report)?;
    let (problem, help) = match thousandths(text) {
        Ok(times) => return Some(times),
        Err(TimesError::NotDecimal) => (
            "is not a factor",
            "write digits and a decimal point: \"0.5\" is half the price",
        ),
        Err(TimesError::TooManyDecimals) => (
            "has more than three decimals",
            "write a table of rates if three are not enough",
        ),
        Err(TimesError::Nothing) => (
            "would make the class cheaper than nothing, or free",
            "a factor is above 0; write a table of rates for a class that is free",
        ),
        Err(TimesError::TooLarge) => ("is too large", "the most is 1,000"),
    };
    report
        .add(
            Code::BadClass,
            span,
            format!("the factor `{}` {problem}", shorten(text)),
        )
        .help(help);
    None
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimesError {
    NotDecimal,
    TooManyDecimals,
    Nothing,
    TooLarge,
}

fn thousandths(text: &str) -> Result<u32, TimesError> {
    if let Some(rest) = text.strip_prefix('-') {
        return Err(thousandths(rest).map_or_else(
            |error| match error {
                TimesError::NotDecimal => error,
                _ => TimesError::Nothing,
            },
            |_| TimesError::Nothing,
        ));
    }
    let (whole, fraction) = digits(text).ok_or(TimesError::NotDecimal)?;
    if fraction.len() > 3 {
        return Err(TimesError::TooManyDecimals);
    }
    let all = format!("{whole}{fraction:0<3}");
    let times: u32 = all.parse().map_err(|_| TimesError::TooLarge)?;
    match times {
        0 => Err(TimesError::Nothing),
        1..=MOST_TIMES => Ok(times),
        _ => Err(TimesError::TooLarge),
    }
}

/// A factor as text: `0.5`.
pub(crate) fn show_times(times: u32) -> String {
    let text = format!("{}.{:03}", times / ONE, times % ONE);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The prices of the classes of a price and of their combinations. `tiers` are its tiers with the classes that each lists itself.
pub(super) fn class_prices(
    report: &mut Report<'_>,
    price: &Price,
    list: &ClassList,
    of_tiers: &[Option<ClassList>],
) -> Option<Vec<ClassPrice>> {
    let find =
        |list: &ClassList, name: &str| list.0.iter().find(|entry| entry.name == name).copied();
    let mut prices = Vec::new();
    for classes in Classes::NAMED {
        let names = names_of(classes);
        let Some(entries) = names
            .iter()
            .map(|name| find(list, name))
            .collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        let base = rates_of(report, &price.base, &entries)?;
        let mut tiers = Vec::with_capacity(price.tiers.len());
        for ((above, rates), own) in price.tiers.iter().zip(of_tiers) {
            // A tier inherits what it does not list itself.
            let inherited = |entry: &ClassEntry| {
                own.as_ref()
                    .and_then(|own| find(own, entry.name))
                    .unwrap_or(*entry)
            };
            let entries: Vec<_> = entries.iter().map(inherited).collect();
            tiers.push((*above, rates_of(report, rates, &entries)?));
        }
        let own = Price {
            base,
            tiers,
            classes: Vec::new(),
        };
        let times = match entries.as_slice() {
            [
                ClassEntry {
                    form: ClassForm::Times(times),
                    ..
                },
            ] => Some(*times),
            _ => None,
        };
        prices.push(ClassPrice {
            classes,
            times,
            held: own.dearer(price),
            price: own,
            context: entries.iter().filter_map(|entry| entry.context).min(),
        });
    }
    Some(prices)
}

/// The names of the classes in a combination: the tier first.
fn names_of(classes: Classes) -> Vec<&'static str> {
    let tier = Classes::of(classes.tier, RequestRegion::Global);
    let place = Classes::of(ServiceTier::Standard, classes.place);
    [tier, place]
        .into_iter()
        .filter(|one| !one.is_standard())
        .map(Classes::name)
        .collect()
}

/// The rates of one class, or of two whose factors multiply.
fn rates_of(report: &mut Report<'_>, standard: &Rates, entries: &[ClassEntry]) -> Option<Rates> {
    let tables = || {
        entries
            .iter()
            .filter(|entry| matches!(entry.form, ClassForm::Table(..)))
    };
    if let [first, second] = tables().collect::<Vec<_>>().as_slice() {
        report
            .add(
                Code::BadClass,
                second.span,
                format!(
                    "`{}` and `{}` are both tables, and a request can ask for both",
                    first.name, second.name
                ),
            )
            .also(first.span, "the other one")
            .help("write one of the two as a factor: factors multiply");
        return None;
    }
    let from = tables().find_map(|entry| match entry.form {
        ClassForm::Table(rates, [images, requests]) => Some(Rates {
            per_image: if images {
                rates.per_image
            } else {
                standard.per_image
            },
            per_request: if requests {
                rates.per_request
            } else {
                standard.per_request
            },
            ..rates
        }),
        ClassForm::Times(_) => None,
    });
    let from = from.unwrap_or(*standard);
    let factors: Vec<(&ClassEntry, u32)> = entries
        .iter()
        .filter_map(|entry| match entry.form {
            ClassForm::Times(times) => Some((entry, times)),
            ClassForm::Table(..) => None,
        })
        .collect();
    let (up, down) = factors
        .iter()
        .fold((1_i64, 1_i64), |(up, down), (_, times)| {
            (up * i64::from(*times), down * i64::from(ONE))
        });
    if let Some(rates) = from.each_token(|rate| multiplied(rate, up, down)) {
        return Some(rates);
    }
    let (last, times) = factors.last()?;
    not_whole(report, &from, (up / i64::from(*times), down), last, *times);
    None
}

fn multiplied(rate: Amount, up: i64, down: i64) -> Option<Amount> {
    let picos = rate.picos().checked_mul(up)?;
    (picos % down == 0).then(|| Amount::from_picos(picos / down))
}

/// A factor makes a fraction of a picodollar: names the rate, and the two nearest factors that work for all rates.
fn not_whole(
    report: &mut Report<'_>,
    from: &Rates,
    (others, down): (i64, i64),
    entry: &ClassEntry,
    times: u32,
) {
    let rates: Vec<(&str, i64)> = from
        .of_tokens()
        .filter_map(|column| Some((column.name, column.rate?.picos())))
        .collect();
    let up = others.saturating_mul(i64::from(times));
    let broken = rates.iter().find(|(_, picos)| {
        picos
            .checked_mul(up)
            .is_none_or(|product| product % down != 0)
    });
    let (name, picos) = broken.copied().unwrap_or(("input", from.input.picos()));
    // A factor works if it is a multiple of this many thousandths.
    let common = rates
        .iter()
        .fold(0, |all, (_, picos)| gcd(all, picos.saturating_mul(others)));
    let step = u32::try_from(down / gcd(common, down).max(1))
        .unwrap_or(ONE)
        .max(1);
    let below = times / step * step;
    let near = if below == 0 {
        [step, step.saturating_mul(2)]
    } else {
        [below, below.saturating_add(step)]
    };
    let [one, other] = near.map(show_times);
    let rate = show_price(Amount::from_picos(picos), PriceUnit::MillionTokens);
    let with = if others == 1 {
        String::new()
    } else {
        format!(
            ", with the other class's factor {}",
            show_times(u32::try_from(others).unwrap_or(ONE))
        )
    };
    report
        .add(
            Code::BadClass,
            entry.span,
            format!(
                "`{}` makes a fraction of a picodollar of the rate `{name}`",
                entry.name
            ),
        )
        .label(format!("{rate} times {}{with}", show_times(times)))
        .help(format!(
            "the nearest factors that work for every rate: \"{one}\" and \"{other}\""
        ));
}

fn gcd(one: i64, other: i64) -> i64 {
    if other == 0 {
        one.abs()
    } else {
        gcd(other, one % other)
    }
}

/// Classes in a list of prices: ` · flex ×0.5 · fast ×2 to 272,000 tokens`.
pub(super) fn shown(price: &Price) -> String {
    let single = |class: &&ClassPrice| names_of(class.classes).len() == 1;
    let mut text = String::new();
    for class in price.classes.iter().filter(single) {
        let name = class.classes.name();
        match class.times {
            Some(times) => text.push_str(&format!(" · {name} ×{}", show_times(times))),
            None => text.push_str(&format!(" · {name} {}", class.price.base.shown())),
        }
        if let Some(most) = class.context {
            text.push_str(&format!(" to {} tokens", farebox_ledger::grouped(most)));
        }
    }
    text
}

/// The classes that a table of rates lists; `None` inside if it lists none.
pub(super) fn list_of(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
) -> Option<Option<ClassList>> {
    fields.given(report, "classes", |value, report| {
        read_classes(value, report, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_has_at_most_three_decimals_and_is_above_zero() {
        for (text, read) in [
            ("0.5", Ok(500)),
            ("2", Ok(2_000)),
            ("1.1", Ok(1_100)),
            ("0.001", Ok(1)),
            ("1000", Ok(1_000_000)),
            ("1000.001", Err(TimesError::TooLarge)),
            ("0", Err(TimesError::Nothing)),
            ("0.000", Err(TimesError::Nothing)),
            ("-1", Err(TimesError::Nothing)),
            ("0.0001", Err(TimesError::TooManyDecimals)),
            ("99999999999999", Err(TimesError::TooLarge)),
            ("", Err(TimesError::NotDecimal)),
            ("2.", Err(TimesError::NotDecimal)),
            (".5", Err(TimesError::NotDecimal)),
            ("1e3", Err(TimesError::NotDecimal)),
            ("2x", Err(TimesError::NotDecimal)),
        ] {
            assert_eq!(thousandths(text), read, "{text}");
        }
        for (times, text) in [
            (500, "0.5"),
            (2_000, "2"),
            (1_100, "1.1"),
            (1, "0.001"),
            (10_000, "10"),
        ] {
            assert_eq!(show_times(times), text);
        }
    }
}
