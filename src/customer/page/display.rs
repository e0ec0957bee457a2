//! How money, times, counts and reasons are displayed.

use farebox_ledger::{Amount, Timestamp};
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use maud::{Markup, html};

/// Money: cents first, further digits smaller, nothing rounded.
pub(super) fn money(amount: Amount) -> Markup {
    let text = amount.to_string();
    let cut = text.find('.').map_or(text.len(), |point| point + 3);
    let (cents, rest) = text.split_at_checked(cut).unwrap_or((&text, ""));
    html! { span.money { (cents) @if !rest.is_empty() { span.fine { (rest) } } } }
}

/// The most decimals among these amounts, which a column needs to align its decimal points.
pub(super) fn places(amounts: impl IntoIterator<Item = Amount>) -> usize {
    amounts.into_iter().map(decimals).max().unwrap_or(2)
}

fn decimals(amount: Amount) -> usize {
    let text = amount.to_string();
    text.find('.').map_or(0, |point| text.len() - point - 1)
}

/// Money in a column with this many decimals; a shorter amount is padded with space, not zeros.
pub(super) fn aligned(amount: Amount, places: usize) -> Markup {
    let room = "0".repeat(places.saturating_sub(decimals(amount)));
    html! { (money(amount)) @if !room.is_empty() { span.room data-room=(room) aria-hidden="true" {} } }
}

/// An instant, to the second.
pub(super) fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (format(at, "%b %d %H:%M:%S")) } }
}

/// An instant in a format of `strftime`, in UTC.
pub(super) fn format(at: Timestamp, pattern: &str) -> String {
    let instant =
        jiff::Timestamp::UNIX_EPOCH.saturating_add(SignedDuration::from_millis(at.millis()));
    instant
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .to_zoned(TimeZone::UTC)
        .strftime(pattern)
        .to_string()
}

/// A refusal as a sentence of a page.
pub(in crate::customer) fn sentence(text: &str) -> String {
    format!("{}.", capital(text))
}

pub(in crate::customer) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

/// A count with thousands separated.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds in a form for people.
pub(super) fn duration(ms: u32) -> String {
    if ms < 1_000 {
        format!("{ms} ms")
    } else {
        format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
    }
}

/// The meaning of a reason, and what helps.
pub(super) fn explain(reason: &str) -> &'static str {
    match reason {
        "stop" => "It ended normally.",
        "length" => "It reached its output limit. Ask for more output to get a longer answer.",
        "tool_calls" => "The model asked your program to run a tool.",
        "content_filter" => "The provider's content filter ended it.",
        "refusal" => "The model refused to answer.",
        "pause" => "The model paused; send its answer back to continue.",
        "other" => "The provider ended it for another reason.",
        "balance" => {
            "The balance was used up, so the answer ended as at a length limit. Top up the same key."
        }
        "cap" => "A cap had no more room, so the answer ended as at a length limit.",
        "client_gone" => "Your program disconnected before the end.",
        "gateway_closed" => {
            "We closed the connection: too many were open, or the gateway stopped. It was free. Try again."
        }
        "upstream_broken" => {
            "The provider's answer broke off. Only what was delivered is charged; try again."
        }
        "max_duration" => "It took longer than a request is allowed to.",
        "interrupted" => "The gateway restarted while it ran.",
        "key_state" | "key_blocked" | "key_expired" | "key_revoked" => {
            "The key cannot be used. Ask the person who sold it to you."
        }
        "out_of_balance" => {
            "The balance cannot pay for this request. Top up the same key, then retry."
        }
        "cap_reached" => "A cap has no room for this request until it starts again.",
        "balance_in_use" => "Running requests hold the money. Retry when one of them has ended.",
        "rate_limit_exceeded" => "Too many requests of this key at once. Wait a moment.",
        "model_not_found" | "model_retired" => {
            "Use a slug from the list of models, copied exactly."
        }
        "model_not_allowed" => {
            "This key may not use this model. The Models view lists the ones it may use."
        }
        "bad_request" => {
            "The request has a mistake; the error that your program got says what it is."
        }
        "request_too_large" => "The request is too large. Send less.",
        "upstream_refused" => {
            "The provider found a mistake in the request; the error that your program got says what it is. It was free."
        }
        "upstream_unavailable" => {
            "No provider could be reached for this model. It was free. Use another model, or try again later."
        }
        "price_list_unknown" => "The prices of this account are not known here. Ask the seller.",
        "ledger_unavailable" | "overloaded" | "internal" => {
            "A fault on our side. It was free. Try again later."
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::EndReason;

    use super::*;

    #[test]
    fn every_end_of_an_answer_is_explained() {
        for reason in [
            "stop",
            "length",
            "tool_calls",
            "content_filter",
            "refusal",
            "pause",
            "other",
        ] {
            assert!(
                EndReason::from(reason).is_own_end() && !explain(reason).is_empty(),
                "{reason}"
            );
        }
        assert!(!EndReason::UpstreamBroken.is_own_end() && !EndReason::Balance.is_own_end());
    }

    #[test]
    fn points_stand_below_each_other() {
        let [cents, fine] = ["4.99", "0.000045"].map(|usd| Amount::from_usd_str(usd).unwrap());
        assert_eq!(places([cents, fine]), 6);
        assert_eq!(aligned(fine, 6).into_string(), money(fine).into_string());
        assert!(
            aligned(cents, 6)
                .into_string()
                .ends_with(r#"<span class="room" data-room="0000" aria-hidden="true"></span>"#)
        );
    }

    #[test]
    fn numbers_are_exact_and_readable() {
        let amount = Amount::from_usd_str("4.999652").unwrap();
        assert_eq!(
            money(amount).into_string(),
            r#"<span class="money">4.99<span class="fine">9652</span></span>"#
        );
        assert_eq!(
            money(Amount::ZERO).into_string(),
            r#"<span class="money">0.00</span>"#
        );
        assert_eq!(
            (count(0), count(999), count(1_000), count(12_345_678)),
            (
                "0".into(),
                "999".into(),
                "1,000".into(),
                "12,345,678".into()
            )
        );
        assert_eq!(
            (duration(950), duration(9_500), duration(61_250)),
            ("950 ms".to_owned(), "9.5 s".to_owned(), "61.2 s".to_owned())
        );
        assert_eq!(
            format(Timestamp::from_millis(0), "%b %d %H:%M:%S"),
            "Jan 01 00:00:00"
        );
    }
}
