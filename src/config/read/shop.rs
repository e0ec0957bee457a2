//! Reads `[shop]`: the seller's words for customers.

use farebox_toml::{Code, Entry, Fields, KEYS, Placed, Report};
use toml::de::DeValue;

use super::provider::{UNENCRYPTED, check_public};
use crate::config::{OutOfBalanceStatus, Shop};

/// Longest name, contact and note.
const LONGEST: usize = 200;
/// Longest link: programs print it in one line.
const LONGEST_LINK: usize = 500;

/// The seller; a catalog without `[shop]` has one that says nothing.
pub(super) fn read_shop(catalog: &Fields<'_, '_>, report: &mut Report<'_>) -> Shop {
    let table = catalog.optional(report, "shop", |value, report| {
        value.fields(report, "the shop", &KEYS.shop)
    });
    let Some(fields) = table else {
        return Shop::default();
    };
    let text = |report: &mut Report<'_>, name| {
        let text = fields.optional(report, name, |value, report| {
            value.printable(report, LONGEST)
        });
        text.map(|text| text.value.to_owned())
    };
    Shop {
        name: text(report, "name"),
        contact: text(report, "contact"),
        pay_url: fields.optional(report, "pay_url", read_link),
        note: text(report, "note"),
        address: text(report, "address"),
        tax_id: text(report, "tax_id"),
        terms_url: fields.optional(report, "terms_url", read_link),
        privacy_url: fields.optional(report, "privacy_url", read_link),
        out_of_balance_status: fields
            .optional(report, "out_of_balance_status", read_status)
            .unwrap_or_default(),
    }
}

/// The number of requests that a refusal takes is from `docs/customers.md`, columns *429* and *402*.
fn read_status(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<OutOfBalanceStatus> {
    let found = match value.node() {
        DeValue::String(word) if word == "by_program" => Some(OutOfBalanceStatus::ByProgram),
        DeValue::Integer(status) => match (status.radix(), status.as_str()) {
            (10, "429") => Some(OutOfBalanceStatus::Quota),
            (10, "402") => Some(OutOfBalanceStatus::Payment),
            _ => None,
        },
        _ => None,
    };
    let (code, message, help) = match found {
        Some(OutOfBalanceStatus::Quota) => return found,
        Some(OutOfBalanceStatus::Payment) => (
            Code::OtherStatus,
            "402 for every program, where the interface says 429",
            "Codex then asks 6 times instead of once; opencode, Kilo, Cline, Droid and the AI SDK once or twice instead of 3 to 9 \
             times, and pi, Continue, gptme and five others once instead of 4 to 16 times",
        ),
        Some(OutOfBalanceStatus::ByProgram) => (
            Code::OtherStatus,
            "402 for programs that are known by their `User-Agent`, where the interface says 429",
            "opencode, Kilo, Cline, Droid and the AI SDK then ask once or twice instead of 3 to 9 times; nothing changes for others",
        ),
        None => (
            Code::UnknownWord,
            "`out_of_balance_status` is none of 429, 402 and \"by_program\"",
            "write 429, as the interface says; 402 if you accept that Codex then asks 6 times instead of once; or \"by_program\": \
             402 for those that ask 3 to 9 times at 429 and once or twice at 402 (opencode, Kilo, Cline, Droid, the AI SDK)",
        ),
    };
    report
        .add(code, value.span(), message.to_owned())
        .help(help);
    found
}

/// A link that customers open: encrypted, except on this machine.
fn read_link(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<String> {
    let Placed { value: link, span } = value.printable(report, LONGEST_LINK)?;
    let page = link.split(['?', '#']).next().unwrap_or_default();
    let Err(wrong) = check_public(page) else {
        return Some(link.to_owned());
    };
    let help = match wrong {
        UNENCRYPTED => "write https://…",
        _ => "write the whole link: \"https://shop.example/top-up\"",
    };
    report
        .add(Code::BadLink, span, format!("`{}` {wrong}", value.name))
        .help(help);
    None
}
