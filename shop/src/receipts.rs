//! A receipt of the gateway's as paper: who sold what to whom, with net, rate and tax of each line.

use farebox_ledger::Gross;
use serde_json::Value;

use crate::currency;

/// A receipt or a correction, in the words of its currency.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReceiptPaper {
    pub(crate) title: &'static str,
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Name, address and tax number, a line each.
    pub(crate) seller: String,
    pub(crate) buyer: String,
    /// What was sold: in words, net, rate, tax, gross.
    pub(crate) lines: Vec<[String; 5]>,
    pub(crate) total: String,
}

/// An instant for people, to the second.
fn to_the_second(at: &str) -> String {
    match at.split_once('T') {
        Some((day, time)) => format!("{day} {} UTC", time.get(..8).unwrap_or(time)),
        None => at.to_owned(),
    }
}

/// The same to the minute, for a time to come.
pub(crate) fn to_the_minute(at: &str) -> String {
    match at.split_once('T') {
        Some((day, time)) => format!("{day} {} UTC", time.get(..5).unwrap_or(time)),
        None => at.to_owned(),
    }
}

/// The paper of a gateway's document.
pub(crate) fn paper(document: &Value) -> ReceiptPaper {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str);
    let currency = text("/currency").unwrap_or_default();
    let money = |name: &str| {
        let sum = text(name).unwrap_or_default();
        let (sign, size) = match sum.strip_prefix('-') {
            Some(size) => ("-", size),
            None => ("", sum),
        };
        let shown = Gross::parse(size).map(|sum| currency::shown(currency, sum));
        shown.map_or_else(
            |_| format!("{sum} {currency}"),
            |shown| format!("{sign}{shown}"),
        )
    };
    let lines = |paths: [&str; 3]| {
        let said = paths.into_iter().filter_map(text);
        said.collect::<Vec<_>>().join("\n")
    };
    let corrects = text("/corrects");
    let credit = text("/credit").unwrap_or_default();
    let what = match (text("/plan"), corrects) {
        (Some(plan), Some(_)) => format!("Correction: {plan}"),
        (Some(plan), None) => format!("{plan}, {credit} USD of use of language models"),
        (None, Some(_)) => format!("Correction: {credit} USD of credit"),
        (None, None) => format!("{credit} USD of credit for language models"),
    };
    ReceiptPaper {
        title: match corrects {
            Some(_) => "Correction",
            None => "Receipt",
        },
        facts: [
            ("Number", text("/number").map(str::to_owned)),
            ("Corrects", corrects.map(str::to_owned)),
            ("Date", text("/at").map(to_the_second)),
            ("Customer", text("/customer").map(str::to_owned)),
            ("Payment", text("/reference").map(str::to_owned)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect(),
        seller: lines(["/seller/name", "/seller/address", "/seller/tax_id"]),
        buyer: lines(["/name", "/address", "/tax_id"]),
        lines: vec![[
            what,
            money("/net"),
            rate(text("/net"), text("/tax")),
            money("/tax"),
            money("/gross"),
        ]],
        total: money("/gross"),
    }
}

/// The rate of a tax, in percent with at most one digit behind the point.
fn rate(net: Option<&str>, tax: Option<&str>) -> String {
    let parts = |sum: Option<&str>| {
        let sum = Gross::parse(sum?.trim_start_matches('-')).ok()?;
        Some(i128::from(sum.parts()))
    };
    let (Some(net), Some(tax)) = (parts(net).filter(|net| *net > 0), parts(tax)) else {
        return "0 %".to_owned();
    };
    // Rounded to the nearest tenth: amounts are rounded themselves.
    let tenths = (tax * 2_000 + net) / (net * 2);
    match tenths % 10 {
        0 => format!("{} %", tenths / 10),
        rest => format!("{}.{rest} %", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_was_meant_though_amounts_are_rounded() {
        for (net, tax, wanted) in [
            ("10.00", "1.90", "19 %"),
            ("8.40", "1.60", "19 %"),
            ("94.79", "5.21", "5.5 %"),
            ("10.00", "0.00", "0 %"),
            ("-5.00", "-0.95", "19 %"),
            ("0.00", "0.00", "0 %"),
        ] {
            assert_eq!(rate(Some(net), Some(tax)), wanted, "{net} {tax}");
        }
    }
}
