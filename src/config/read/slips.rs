//! Slips within one price: rates that can be read and can hardly be meant beside each other.
//!
//! Prices are copied by hand from web pages. What targets cost is compared in `below_cost.rs`.

use std::collections::HashMap;

use farebox_ledger::Amount;
use farebox_toml::{Code, Report, Span};

use crate::config::Rates;

/// Rates that contradict each other. `named` are those that the file sets, with their places.
pub(super) fn within(report: &mut Report<'_>, named: &HashMap<&'static str, Span>, rates: &Rates) {
    let place = |name: &str| named.get(name).copied();
    if let Some(span) = place("output").filter(|_| rates.output < rates.input) {
        let (what, help) = match rates.output {
            Amount::ZERO => (
                "`output` is free, and `input` is not",
                "vendors charge more for output than for input: is its price missing?",
            ),
            _ => (
                "`output` is cheaper than `input`",
                "vendors charge more for output: are the two swapped?",
            ),
        };
        report.add(Code::SwappedPrices, span, what).help(help);
    }
    if let Some(span) = place("cache_read").filter(|_| rates.cache_read > rates.input) {
        report
            .add(
                Code::DearCacheRead,
                span,
                "`cache_read` is dearer than `input`",
            )
            .help("input that a cache has is cheaper; leave it out if it costs the same");
    }
    // Nobody knows whether the prompt of a customer who left was written to a cache: it is charged at the dearer rate.
    if let Some(span) = place("cache_write").filter(|_| rates.cache_write < rates.input) {
        report
            .add(Code::CheapCacheWrite, span, "`cache_write` is cheaper than `input`")
            .help("providers that charge for cache writes charge more than for input; leave it out if writes cost the same");
    }
}
