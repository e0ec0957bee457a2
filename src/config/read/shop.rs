//! Reads `[shop]`: the seller's words for customers.

use super::fields::{Entry, Fields};
use super::provider::split_base_url;
use crate::config::Shop;
use crate::config::findings::code::Code;
use crate::config::findings::report::{Placed, Report};
use crate::config::schema::SHOP_FIELDS;

/// Longest name, contact and note.
const LONGEST: usize = 200;
/// Longest link: programs print it in one line.
const LONGEST_LINK: usize = 500;

/// The seller; a catalog without `[shop]` has one that says nothing.
pub(super) fn read_shop(catalog: &Fields<'_, '_>, report: &mut Report<'_>) -> Shop {
    let table = catalog.optional(report, "shop", |value, report| {
        value.fields(report, "the shop", SHOP_FIELDS)
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
        out_of_balance_status: fields
            .optional(report, "out_of_balance_status", read_status)
            .unwrap_or(Shop::STATUSES[0]),
    }
}

fn read_status(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<u16> {
    let Placed {
        value: status,
        span,
    } = value.integer(report, 0..=999)?;
    let known = Shop::STATUSES.into_iter();
    let found = known.clone().find(|known| u64::from(*known) == status);
    if found.is_none() {
        report
            .add(
                Code::UnknownWord,
                span,
                format!("`out_of_balance_status` cannot be {status}"),
            )
            .help("write 429, which most programs understand, or 402");
    }
    found
}

/// A link that customers open: encrypted, except on this machine.
fn read_link(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<String> {
    let Placed { value: link, span } = value.printable(report, LONGEST_LINK)?;
    let page = link.split(['?', '#']).next().unwrap_or_default();
    let wrong = match split_base_url(page) {
        Ok((true, ..)) => None,
        Ok((false, "localhost" | "127.0.0.1" | "[::1]", _)) => None,
        Ok((false, ..)) => Some(("is not encrypted", "write https://…")),
        Err((what, _)) => Some((
            what,
            "write the whole link: \"https://shop.example/top-up\"",
        )),
    };
    let Some((what, help)) = wrong else {
        return Some(link.to_owned());
    };
    report
        .add(Code::BadLink, span, format!("`pay_url` {what}"))
        .help(help);
    None
}
