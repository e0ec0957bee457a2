//! Rates: from the decimal strings of the catalog to whole picodollars, and back to text.
//!
//! USD per 1,000,000 tokens with at most six decimals is a whole number of picodollars per token, so everything is exact integer
//! arithmetic, without floats or rounding.

use std::collections::HashMap;

use farebox_ledger::{Amount, grouped};
use farebox_toml::{Code, Entry, Fields, Report, Span};
use toml::de::DeValue;

use super::slips;
use crate::config::Rates;

/// The unit of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceUnit {
    /// USD per 1,000,000 tokens, at most six decimals.
    MillionTokens,
    /// USD for one (a picture, a request), at most twelve decimals.
    One,
}

impl PriceUnit {
    const fn decimals(self) -> usize {
        match self {
            Self::MillionTokens => 6,
            Self::One => 12,
        }
    }

    /// A higher price is a typing mistake.
    const fn most_usd(self) -> i64 {
        match self {
            Self::MillionTokens => 100_000,
            Self::One => 1_000,
        }
    }
}

/// Why a text is not a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceError {
    /// Not digits with at most one decimal point.
    NotDecimal,
    /// Below zero.
    Negative,
    /// More decimals than whole picodollars allow.
    TooManyDecimals,
    /// Absurdly large.
    TooLarge,
}

/// Reads a price: digits, and decimals after a point.
///
/// # Errors
/// When the text is not a plain decimal number, has more decimals than the unit allows, or is too large.
pub fn parse_price(text: &str, unit: PriceUnit) -> Result<Amount, PriceError> {
    if let Some(rest) = text.strip_prefix('-') {
        return Err(if parse_price(rest, unit).is_ok() {
            PriceError::Negative
        } else {
            PriceError::NotDecimal
        });
    }
    let (whole, fraction) = digits(text).ok_or(PriceError::NotDecimal)?;
    if fraction.len() > unit.decimals() {
        return Err(PriceError::TooManyDecimals);
    }
    let scale = 10_i64.pow(u32::try_from(unit.decimals()).unwrap_or_default());
    let padded = format!("{fraction:0<width$}", width = unit.decimals());
    let whole: i64 = whole.parse().map_err(|_| PriceError::TooLarge)?;
    let fraction: i64 = padded.parse().map_err(|_| PriceError::TooLarge)?;
    if whole > unit.most_usd() || (whole == unit.most_usd() && fraction > 0) {
        return Err(PriceError::TooLarge);
    }
    whole
        .checked_mul(scale)
        .and_then(|picos| picos.checked_add(fraction))
        .map(Amount::from_picos)
        .ok_or(PriceError::TooLarge)
}

/// The digits before and after the point of a plain decimal number; `None` if it is none.
pub(super) fn digits(text: &str) -> Option<(&str, &str)> {
    let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let plain = !whole.is_empty() && digits_only(whole) && digits_only(fraction);
    plain.then_some((whole, fraction))
}

/// A price as text: `$3.00`. At least two decimals, and as many as exactness requires.
pub fn show_price(amount: Amount, unit: PriceUnit) -> String {
    let scale = 10_u64.pow(u32::try_from(unit.decimals()).unwrap_or_default());
    let picos = amount.picos().unsigned_abs();
    let sign = if amount.picos() < 0 { "-" } else { "" };
    let fraction = format!("{:0width$}", picos % scale, width = unit.decimals());
    let exact = fraction.trim_end_matches('0');
    format!("{sign}${}.{exact:0<2}", grouped(picos / scale))
}

/// One of [`Rates`], as it is listed.
#[derive(Debug, Clone, Copy)]
pub struct ListedRate {
    /// Its key in the file.
    pub name: &'static str,
    /// What it is the price of.
    pub unit: PriceUnit,
    /// What is charged; `None` where that is not sold.
    pub rate: Option<Amount>,
    /// What it is where the file does not say it.
    unset: Option<Amount>,
}

impl ListedRate {
    /// Its name within a sentence.
    pub(crate) fn words(&self) -> String {
        self.name.replace('_', " ")
    }

    /// In USD: for 1,000,000 tokens, or for one.
    pub fn usd(&self) -> Option<Amount> {
        let times = match self.unit {
            PriceUnit::MillionTokens => 1_000_000,
            PriceUnit::One => 1,
        };
        let usd = self.rate?.picos().saturating_mul(times);
        Some(Amount::from_picos(usd))
    }

    /// The heading of its column.
    pub fn heading(&self) -> String {
        let mut words = self.words();
        words[..1].make_ascii_uppercase();
        words
    }

    /// The rate, unless it is what it would be if the file did not say it.
    pub(crate) fn said(&self) -> Option<Amount> {
        self.rate.filter(|_| self.rate != self.unset)
    }
}

impl Rates {
    /// Every rate, in the order of a price list.
    pub fn columns(&self) -> [ListedRate; 9] {
        let (token, one) = (PriceUnit::MillionTokens, PriceUnit::One);
        let (input, output) = (Some(self.input), Some(self.output));
        let columns = [
            ("input", token, input, None),
            ("output", token, output, None),
            ("cache_read", token, Some(self.cache_read), input),
            ("cache_write", token, Some(self.cache_write), input),
            ("cache_write_1h", token, self.cache_write_1h, None),
            ("cache_write_12h", token, self.cache_write_12h, None),
            ("reasoning", token, Some(self.reasoning), output),
            ("per_image", one, Some(self.per_image), None),
            ("per_request", one, Some(self.per_request), None),
        ];
        columns.map(|(name, unit, rate, unset)| ListedRate {
            name,
            unit,
            rate,
            unset,
        })
    }

    /// Those of tokens.
    pub(super) fn of_tokens(&self) -> impl Iterator<Item = ListedRate> {
        let columns = self.columns().into_iter();
        columns.filter(|column| column.unit == PriceUnit::MillionTokens)
    }

    /// The token rates, with cache and reasoning only if they differ: `in $3.00 · out $15.00 per 1M tokens`.
    pub fn shown(&self) -> String {
        let show = |amount| show_price(amount, PriceUnit::MillionTokens);
        let mut parts = vec![format!("in {}", show(self.input))];
        // What has no output has no price for it.
        let all_free = self.input == Amount::ZERO;
        if all_free || self.output != Amount::ZERO {
            parts.push(format!("out {}", show(self.output)));
        }
        for column in self.of_tokens().skip(2) {
            if let Some(rate) = column.said() {
                parts.push(format!("{} {}", column.words(), show(rate)));
            }
        }
        format!("{} per 1M tokens", parts.join(" · "))
    }

    /// The rates that are not per token, if they differ from the usual ones, or are not zero: ` · $0.01 per image`.
    pub(super) fn extras_shown(&self, usual: Option<&Self>) -> String {
        let extras = [
            (self.per_image, usual.map(|usual| usual.per_image), "image"),
            (
                self.per_request,
                usual.map(|usual| usual.per_request),
                "request",
            ),
        ];
        let extras = extras.into_iter();
        extras
            .filter(|(rate, usual, _)| *rate != usual.unwrap_or(Amount::ZERO))
            .map(|(rate, _, of)| format!(" · {} per {of}", show_price(rate, PriceUnit::One)))
            .collect()
    }
}

/// The rates that are not of tokens: tiers and classes that do not set them have those of the price around.
pub(super) const OF_REQUESTS: [&str; 2] = ["per_image", "per_request"];

/// Reads rates, and records which of them the file sets.
pub(super) type NamedRates = (Rates, HashMap<&'static str, Span>);

pub(super) fn read_rates(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    base: Option<&NamedRates>,
) -> Option<NamedRates> {
    let tokens = PriceUnit::MillionTokens;
    let mut named = HashMap::new();
    let mut good = true;
    let mut rate =
        |name: &'static str, unit: PriceUnit, report: &mut Report<'_>| -> Option<Amount> {
            let value = fields.get(name)?;
            named.insert(name, value.key);
            let amount = read_amount(value, report, unit);
            good &= amount.is_some();
            amount
        };
    let cache_read = rate("cache_read", tokens, report);
    let cache_write = rate("cache_write", tokens, report);
    let cache_write_1h = rate("cache_write_1h", tokens, report);
    let cache_write_12h = rate("cache_write_12h", tokens, report);
    let reasoning = rate("reasoning", tokens, report);
    let per_image = rate("per_image", PriceUnit::One, report);
    let per_request = rate("per_request", PriceUnit::One, report);
    let mut required = |name: &'static str, example, report: &mut Report<'_>| {
        fields.required(report, name, example, |value, report| {
            named.insert(name, value.key);
            read_amount(value, report, tokens)
        })
    };
    let input = required("input", "input = \"3.00\"", report);
    let output = required("output", "output = \"15.00\"", report);
    let (input, output) = (input?, output?);
    let zero = Amount::ZERO;
    let rates = Rates {
        input,
        output,
        cache_read: cache_read.unwrap_or(input),
        cache_write: cache_write.unwrap_or(input),
        cache_write_1h,
        cache_write_12h,
        reasoning: reasoning.unwrap_or(output),
        per_image: per_image
            .or(base.map(|(base, _)| base.per_image))
            .unwrap_or(zero),
        per_request: per_request
            .or(base.map(|(base, _)| base.per_request))
            .unwrap_or(zero),
    };
    if good {
        slips::within(report, &named, &rates);
    }
    good.then_some((rates, named))
}

pub(super) fn read_amount(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    unit: PriceUnit,
) -> Option<Amount> {
    if matches!(value.node(), DeValue::Float(_) | DeValue::Integer(_)) {
        let kind = if matches!(value.node(), DeValue::Float(_)) {
            "a float"
        } else {
            "an integer"
        };
        report
            .add(
                Code::BadPrice,
                value.span(),
                format!("the price `{}` is {kind}; prices are strings", value.name),
            )
            .label("put it in quotes")
            .help(format!(
                "write {} = \"3.00\"; binary fractions are not exact enough for money",
                value.name
            ));
        return None;
    }
    let text = value.text(report)?;
    let error = match parse_price(text.value, unit) {
        Ok(amount) => return Some(amount),
        Err(error) => error,
    };
    let name = value.name;
    let (problem, help) = match error {
        PriceError::NotDecimal => (
            format!("`{name}` is not a price"),
            "write digits and a decimal point only: \"3.00\"; write \"0\" for what is free"
                .to_owned(),
        ),
        PriceError::Negative => (
            format!("the price `{name}` is negative"),
            "write \"0\" for what is free".to_owned(),
        ),
        PriceError::TooManyDecimals => {
            let per = if unit == PriceUnit::MillionTokens {
                "USD per 1,000,000 tokens"
            } else {
                "USD each"
            };
            (
                format!(
                    "the price `{name}` has more than {} decimals",
                    unit.decimals()
                ),
                format!("prices are {per}, exact to a picodollar"),
            )
        }
        PriceError::TooLarge => {
            let per = if unit == PriceUnit::MillionTokens {
                "per 1,000,000 tokens"
            } else {
                "each"
            };
            let most = grouped(unit.most_usd().unsigned_abs());
            (
                format!("the price `{name}` is too large"),
                format!("the most is {most} USD {per}"),
            )
        }
    };
    report.add(Code::BadPrice, text.span, problem).help(help);
    None
}
