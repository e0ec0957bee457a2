//! Numbers, money and times as text. Shortened money is always rounded down. Where money is decided on, it is [`exact`].

use farebox_ledger::{Amount, AuditRecord, EntryKind, JournalEntry, Timestamp, amount, grouped};
use serde_json::Value;

use crate::admin::ReportedChange;

/// `$1,234.56`, rounded down.
pub(crate) fn money(amount: Amount) -> String {
    dollars(&amount.show(2))
}

/// Every decimal it has, at least two.
pub(crate) fn exact(amount: Amount) -> String {
    dollars(&amount.to_string())
}

/// Exact if that takes at most `cells`, else rounded down to as many decimals as fit, at least two.
pub(crate) fn within(amount: Amount, cells: usize) -> String {
    let exact = exact(amount);
    if exact.len() <= cells {
        return exact;
    }
    dollars(&amount.show(2 + cells.saturating_sub(money(amount).len())))
}

/// In at most `cells`, rounded down: with four decimals below a dollar, without cents or in thousands if there is no room.
pub(crate) fn short(amount: Amount, cells: usize) -> String {
    let below_a_dollar =
        amount.picos().unsigned_abs() < 1_000_000_000_000 && amount != Amount::ZERO;
    let plain = if below_a_dollar {
        dollars(&amount.show(4))
    } else {
        money(amount)
    };
    if plain.len() <= cells {
        return plain;
    }
    let whole = dollars(&amount.show(0));
    if whole.len() <= cells {
        return whole;
    }
    let thousands = dollars(&Amount::from_picos(amount.picos().div_euclid(1000)).show(0));
    format!("{thousands}k")
}

/// Signed, for journal lines: exact in at most 13 cells.
pub(crate) fn signed(amount: Amount) -> String {
    let text = within(amount, 12);
    if amount.is_positive() {
        format!("+{text}")
    } else {
        text
    }
}

/// A sum over keys in picodollars, rounded down to cents.
pub(crate) fn total(picos: i128) -> String {
    let cents = picos.div_euclid(10_000_000_000);
    let sign = if cents < 0 { "-" } else { "" };
    dollars(&format!(
        "{sign}{}.{:02}",
        cents.unsigned_abs() / 100,
        cents.unsigned_abs() % 100
    ))
}

/// A sum over keys in picodollars, exact.
pub(crate) fn exact_total(picos: i128) -> String {
    dollars(&amount::exact(picos))
}

fn dollars(text: &str) -> String {
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text), |text| ("-", text));
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let point = if decimals.is_empty() { "" } else { "." };
    format!("{sign}${}{point}{decimals}", grouped(whole))
}

/// `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    grouped(number)
}

/// `1 entry`, `2 entries`.
pub(crate) fn entries(number: impl TryInto<u64>) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!(
        "{} {}",
        count(number),
        if number == 1 { "entry" } else { "entries" }
    )
}

/// `1 error`, `2 errors`.
pub(crate) fn many(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!(
        "{} {what}{}",
        count(number),
        if number == 1 { "" } else { "s" }
    )
}

/// Tokens in at most five characters.
pub(crate) fn tokens(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// `12:04:11`, UTC.
pub(crate) fn time(at: Timestamp) -> String {
    at.to_string().get(11..19).unwrap_or("?").to_owned()
}

/// `2026-03-02`, UTC.
pub(crate) fn date(at: Timestamp) -> String {
    at.to_string().get(..10).unwrap_or("?").to_owned()
}

/// `2026-03-02 12:04:11`, UTC.
pub(crate) fn stamp(at: Timestamp) -> String {
    format!("{} {}", date(at), time(at))
}

/// In at most eleven cells: the time if today, day and time if this year, else the day.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> String {
    let (day, today) = (date(at), date(now));
    match day.get(5..) {
        _ if day == today => time(at),
        Some(month_and_day) if day.get(..4) == today.get(..4) => {
            format!("{month_and_day} {}", time(at).get(..5).unwrap_or("?"))
        }
        _ => day,
    }
}

/// A time written by the gateway, shortened to the clock.
pub(crate) fn clock_of(text: &str) -> String {
    crate::clock::parse(text).map_or_else(|| crate::sanitize::cut(text, 8), time)
}

/// `2 s`, `4 min`, `9 d`.
pub(crate) fn age(millis: i64) -> String {
    match millis.max(0) / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// `0.4s`, `12ms`.
pub(crate) fn span(millis: u64) -> String {
    match millis {
        0..100 => format!("{millis}ms"),
        100..100_000 => format!("{}.{}s", millis / 1000, millis % 1000 / 100),
        _ => format!("{}s", millis / 1000),
    }
}

/// Part of a whole in percent with one decimal; `—` if the whole is zero.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match part.saturating_mul(1000).checked_div(whole) {
        None => "—".to_owned(),
        Some(tenths) => format!("{}.{}%", tenths / 10, tenths % 10),
    }
}

/// The same of amounts.
pub(crate) fn share(part: Amount, whole: Amount) -> String {
    let micros = |amount: Amount| amount.picos().max(0).unsigned_abs() / 1_000_000;
    percent(micros(part), micros(whole))
}

/// The word for a kind of entry.
pub(crate) const fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::TopUp => "top-up",
        EntryKind::Charge => "charge",
        EntryKind::Refund => "refund",
        EntryKind::Adjust => "adjust",
        EntryKind::Grant => "grant",
        EntryKind::Expired => "expired",
        EntryKind::Void => "void",
        EntryKind::Reversal => "reversal",
        EntryKind::Move => "move",
        EntryKind::WriteOff => "write-off",
        EntryKind::Carry => "carry",
    }
}

/// What an entry was about, in a few words.
pub(crate) fn what(entry: &JournalEntry) -> String {
    let Some(bill) = &entry.bill else {
        let reason = entry
            .reason
            .as_ref()
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        return format!(
            "{} by {}{reason}",
            entry.reference.as_deref().unwrap_or("—"),
            entry.actor
        );
    };
    let input = bill.usage.prompt();
    let output = bill.usage.all_output();
    let ended = match bill.end_reason.as_str() {
        "stop" | "" => String::new(),
        reason => format!(" {reason}"),
    };
    let class = bill.served.class().map(|class| format!(" {class}"));
    let (slug, class) = (&bill.slug, class.unwrap_or_default());
    format!("{slug}{class} {}→{}{ended}", count(input), count(output))
}

/// The details of an act in one line.
pub(crate) fn act_details(text: &str) -> String {
    let Ok(Value::Object(details)) = serde_json::from_str::<Value>(text) else {
        return text.to_owned();
    };
    let shown = |(name, value): (&String, &Value)| match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(format!("{name} {text}")),
        other => Some(format!("{name} {other}")),
    };
    details
        .iter()
        .filter_map(shown)
        .collect::<Vec<_>>()
        .join(", ")
}

/// One of the details of an act; empty if it has none of this name.
pub(crate) fn act_fact(act: &AuditRecord, name: &str) -> String {
    let details: Value = serde_json::from_str(&act.details).unwrap_or_default();
    details
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The money that an act moved.
pub(crate) fn paid(act: &AuditRecord) -> Amount {
    let name = match act.act.as_str() {
        "create" => "credit",
        _ => "amount",
    };
    Amount::from_usd_str(&act_fact(act, name)).unwrap_or_default()
}

/// One difference between two configurations: `~ SLUG output 15.00 → 1.50`.
pub(crate) fn change(change: &ReportedChange) -> String {
    let values = match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!(" {old} → {new}"),
        (Some(old), None) => format!(" {old} → nothing"),
        (None, Some(new)) => format!(" nothing → {new}"),
        (None, None) => String::new(),
    };
    let sign = match change.kind.as_str() {
        "added" => "+",
        "removed" => "−",
        _ => "~",
    };
    format!("{sign} {} {}{values}", change.slug, change.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!(
            [entries(1_u64), entries(1_000_u64)],
            ["1 entry", "1,000 entries"]
        );
        assert_eq!(
            [many(1_u64, "key"), many(0_u64, "key")],
            ["1 key", "0 keys"]
        );
    }

    #[test]
    fn money_is_grouped_and_rounded_down() {
        let usd = |text: &str| Amount::from_usd_str(text).unwrap();
        assert_eq!(money(usd("1234567.899")), "$1,234,567.89");
        assert_eq!(money(usd("-0.001")), "-$0.01");
        assert_eq!(signed(usd("20")), "+$20.00");
        assert_eq!(signed(usd("-0.0213")), "-$0.0213");
        assert_eq!(signed(usd("0.000000000001")), "+$0.000000000");
        assert_eq!(
            (exact(usd("1234.5")), exact(usd("-0.0000000001"))),
            ("$1,234.50".into(), "-$0.0000000001".into())
        );
        assert_eq!(
            (within(usd("1234.5678"), 11), within(usd("1234.5678"), 10)),
            ("$1,234.5678".into(), "$1,234.567".into())
        );
        assert_eq!(
            (within(usd("999999.999"), 3), within(usd("4.9999999"), 9)),
            ("$999,999.99".into(), "$4.999999".into())
        );
        assert_eq!(total(412_903_189_999_999_999), "$412,903.18");
        assert_eq!(
            exact_total(412_903_189_999_999_999),
            "$412,903.189999999999"
        );
        assert_eq!(
            (exact_total(-1_500_000_000_000), exact_total(1)),
            ("-$1.50".into(), "$0.000000000001".into())
        );
        assert_eq!(
            total(i128::from(i64::MAX) * 1_000_000),
            "$9,223,372,036,854.77"
        );
        assert_eq!(
            (count(999), count(1000), count(1_000_000)),
            ("999".into(), "1,000".into(), "1,000,000".into())
        );
    }

    #[test]
    fn small_words() {
        assert_eq!(
            (percent(2, 1000), percent(1, 0)),
            ("0.2%".into(), "—".into())
        );
        assert_eq!(
            (age(2_000), age(240_000), age(9 * 86_400_000)),
            ("2 s".into(), "4 min".into(), "9 d".into())
        );
        assert_eq!(
            (span(12), span(430), span(1500)),
            ("12ms".into(), "0.4s".into(), "1.5s".into())
        );
        assert_eq!(
            (tokens(9999), tokens(8_120_000)),
            ("9999".into(), "8.1M".into())
        );
    }
}
