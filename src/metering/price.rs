//! Counted usage times the prices of one model: exact lines of count × rate, in picodollars.

use std::borrow::Cow;

use farebox_ledger::{Amount, Line, Usage};

use crate::config::Price;

/// All input tokens, whatever their class: what tiers are measured by.
#[must_use]
pub fn input_total(usage: &Usage) -> u64 {
    [usage.input, usage.cache_read, usage.cache_write, usage.cache_write_1h].into_iter().fold(0, u64::saturating_add)
}

/// One line for each class that was used, and one for the request where it has a price.
#[must_use]
pub fn lines(price: &Price, usage: &Usage) -> Vec<Line> {
    let used = classes(price, usage).into_iter().filter(|(_, count, _)| *count > 0);
    used.map(|(what, count, rate)| Line { what: Cow::Borrowed(what), count, rate }).collect()
}

/// What a usage costs; `None` when the sum does not fit, which no real usage comes near.
#[must_use]
pub fn cost(price: &Price, usage: &Usage) -> Option<Amount> {
    let picos =
        classes(price, usage).into_iter().map(|(_, count, rate)| i128::from(count) * i128::from(rate.picos())).sum::<i128>();
    i64::try_from(picos).ok().map(Amount::from_picos)
}

fn classes(price: &Price, usage: &Usage) -> [(&'static str, u64, Amount); 8] {
    let rates = price.for_input(input_total(usage));
    // A one-hour write without a price of its own is refused before it is sent; an upstream that reports one all the same is
    // paid for a write of the default time.
    let one_hour = rates.cache_write_1h.unwrap_or(rates.cache_write);
    let request = u64::from(rates.per_request != Amount::ZERO);
    [
        ("input", usage.input, rates.input),
        ("cache_read", usage.cache_read, rates.cache_read),
        ("cache_write", usage.cache_write, rates.cache_write),
        ("cache_write_1h", usage.cache_write_1h, one_hour),
        ("output", usage.output, rates.output),
        ("reasoning", usage.reasoning, rates.reasoning),
        ("image", usage.images, rates.per_image),
        ("request", request, rates.per_request),
    ]
}
