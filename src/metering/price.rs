//! Counted usage times the prices of one model: exact lines of count × rate, in picodollars.

use std::borrow::Cow;

use farebox_ledger::{Amount, BillLine, Usage};

use super::Lifetimes;
use super::lifetime;
use crate::config::{Price, Rates};

/// The line for the request itself, if requests are priced.
pub const REQUEST: &str = "request";

/// One line for each class that was used, and one for the request if requests are priced. The further steps of an answer have their
/// own tiers; a kind has several lines if its rates differ. `class` is what all of it is charged as.
pub fn lines(
    price: &Price,
    first: &Usage,
    further: &[Usage],
    class: Option<&'static str>,
) -> Vec<BillLine> {
    // Input and output: most have no more.
    let mut lines: Vec<BillLine> = Vec::with_capacity(2);
    for (what, count, rate) in priced(price, first, further).filter(|(_, count, _)| *count > 0) {
        match lines
            .iter_mut()
            .find(|line| (&*line.what, line.rate) == (what, rate))
        {
            Some(line) => line.count = line.count.saturating_add(count),
            None => lines.push(BillLine {
                what: Cow::Borrowed(what),
                count,
                rate,
                class: class.map(Cow::Borrowed),
            }),
        }
    }
    lines
}

/// Takes tokens of a class out of lines.
pub fn take(lines: &mut Vec<BillLine>, what: &str, mut tokens: u64) {
    for line in lines.iter_mut().rev().filter(|line| line.what == what) {
        let taken = line.count.min(tokens);
        line.count = line.count.saturating_sub(taken);
        tokens = tokens.saturating_sub(taken);
    }
    lines.retain(|line| line.count > 0);
}

/// The cost of so many at this rate. Saturating: what does not fit is more than anybody can pay.
pub(super) fn times(rate: i128, count: impl Into<i128>) -> i128 {
    rate.saturating_mul(count.into())
}

/// What a usage and its further steps cost, in picodollars; saturating.
pub fn picos(price: &Price, first: &Usage, further: &[Usage]) -> i128 {
    let parts = priced(price, first, further)
        .map(|(_, count, rate)| times(i128::from(rate.picos()), count));
    parts.fold(0, i128::saturating_add)
}

/// What is priced: each step by the tier of its own input, and the request once.
fn priced(
    price: &Price,
    first: &Usage,
    further: &[Usage],
) -> impl Iterator<Item = (&'static str, u64, Amount)> {
    let more = further
        .iter()
        .flat_map(|step| classes(price, step))
        .filter(|(what, ..)| *what != REQUEST);
    classes(price, first).into_iter().chain(more)
}

/// Input may turn out to be any of its classes; the highest rate.
pub fn dearest_input(rates: &Rates, lifetimes: Lifetimes) -> i128 {
    let default = rates.input.max(rates.cache_read).max(rates.cache_write);
    i128::from(default.max(lifetimes.dearest(rates).0).picos())
}

/// The same, where input is written to a cache only if `writes` says so.
pub fn input_rate(rates: &Rates, writes: bool, lifetimes: Lifetimes) -> i128 {
    if writes || lifetimes.any() {
        dearest_input(rates, lifetimes)
    } else {
        i128::from(rates.input.max(rates.cache_read).picos())
    }
}

/// Output may turn out to be reasoning; the higher rate.
pub fn dearest_output(rates: &Rates) -> i128 {
    i128::from(rates.output.max(rates.reasoning).picos())
}

/// Amounts beyond `i64` exceed any balance; they become the largest amount.
pub fn to_amount(picos: i128) -> Amount {
    Amount::from_picos(i64::try_from(picos).unwrap_or(i64::MAX))
}

fn classes(price: &Price, usage: &Usage) -> [(&'static str, u64, Amount); 9] {
    let rates = price.for_input(usage.prompt());
    let request = u64::from(rates.per_request != Amount::ZERO);
    [
        ("input", usage.input, rates.input),
        ("cache_read", usage.cache_read, rates.cache_read),
        ("cache_write", usage.cache_write, rates.cache_write),
        (
            "cache_write_1h",
            usage.cache_write_1h,
            lifetime::hour(rates),
        ),
        (
            "cache_write_12h",
            usage.cache_write_12h,
            lifetime::half_day(rates),
        ),
        ("output", usage.output, rates.output),
        ("reasoning", usage.reasoning, rates.reasoning),
        ("image", usage.images, rates.per_image),
        (REQUEST, request, rates.per_request),
    ]
}
