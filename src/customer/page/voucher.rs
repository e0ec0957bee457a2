//! Where a voucher's code is typed, and what became of it.

use farebox_ledger::Posted;
use maud::{Markup, html};

use super::display;

/// What the page is shown for.
#[derive(Debug, Clone, Copy)]
pub(in crate::customer) enum Redeeming<'a> {
    /// Nothing was typed yet.
    Asked,
    /// Why the code brought nothing.
    Refused(&'a str),
    /// What it brought.
    Done(&'a Posted),
}

/// The view.
pub(in crate::customer) fn page(what: Redeeming<'_>) -> Markup {
    let is_wrong = matches!(what, Redeeming::Refused(_));
    html! {
        h1 { "Redeem a voucher" }
        @match what {
            Redeeming::Asked => {}
            Redeeming::Refused(why) => p.problem role="alert" { (display::sentence(why)) }
            Redeeming::Done(posted) => p.success role="status" { (done(posted)) }
        }
        form.card method="post" action="/dashboard/vouchers" {
            label for="code" { "Code" }
            input #code name="code" required maxlength="64" autocomplete="off" autocapitalize="characters" spellcheck="false"
                placeholder="FB-XXXX-XXXX-XXXX-XXXX-XXXX" aria-describedby="code-hint" aria-invalid=[is_wrong.then_some("true")];
            p.hint #code-hint { "Capitals, dashes and spaces do not matter. What it is worth is added to the balance and does not expire." }
            button.primary { "Redeem" }
        }
        p.hint { a href="/dashboard" { "To the balance" } }
    }
}

fn done(posted: &Posted) -> Markup {
    let entry = &posted.entry;
    html! {
        @if posted.repeated { "This voucher was redeemed here before: " }
        strong { (display::money(entry.amount)) " USD" } " added on " (display::time(entry.at)) " UTC"
        @if let Some(reference) = &entry.reference { " (" code { (reference) } ")" }
        "."
    }
}
