//! Where to pay and whom to ask, if the seller says so, and where a voucher is redeemed.

use farebox_ledger::Key;
use maud::{Markup, html};

use crate::config::Shop;

/// The line for the holder of a key.
pub(super) fn ways(shop: &Shop, key: &Key) -> Markup {
    // The purse is the customer's, and its id is an owner's business.
    let pay_url = if key.is_owner {
        shop.pay_url_for(key.customer.id)
    } else {
        shop.pay_url.clone()
    };
    let seller = shop.name.as_deref().unwrap_or("the seller");
    html! {
        p.hint.pay {
            @if let Some(url) = &pay_url { a.button href=(url) rel="noreferrer" { "Top up" } " " }
            a href="/dashboard/vouchers" { "Redeem a voucher" } ". "
            @if let Some(contact) = &shop.contact { "Questions: " (seller) ", " (contact) ". " }
            @if let Some(note) = &shop.note { (note) }
        }
    }
}

/// The way to the shop as who this is: browsers do not follow a posted form to another site.
pub(in crate::customer) fn to_shop(way: Option<&str>) -> Markup {
    html! {
        h1 { "To the shop" }
        section.card aria-label="To the shop" {
            @if let Some(url) = way {
                p { "The shop will know that you manage this account. This way works once, for 5 minutes." }
                p { a.button href=(url) rel="noreferrer" { "Go on to the shop" } }
            } @else { p { "The seller has no shop." } }
            p.hint { a href="/dashboard/keys" { "Back to the keys" } }
        }
    }
}
