//! The ledger's clock and randomness, and days in the console's format; all other code gets instants passed in.

use farebox_ledger::Timestamp;
pub(crate) use farebox_ledger::clock::{now, random};

/// Random bits for operation and key ids.
pub(crate) fn random_bits() -> u128 {
    u128::from_be_bytes(random())
}

const DAY: i64 = 24 * 60 * 60 * 1000;

/// The last day (UTC) before an instant.
pub(crate) fn last_day(instant: Timestamp) -> String {
    Timestamp::from_millis(instant.millis().saturating_sub(1))
        .to_string()
        .chars()
        .take(10)
        .collect()
}

/// When something ends, as it is typed: its last day if it ends at midnight, else the instant.
pub(crate) fn end(instant: Timestamp) -> String {
    match instant.millis().rem_euclid(DAY) {
        0 => last_day(instant),
        _ => instant.to_string(),
    }
}

/// An instant written in RFC 3339, as the gateway writes them.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(|instant| Timestamp::from_millis(instant.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_the_next_midnight() {
        let at = |text| parse(text).unwrap();
        let midnight = at("2027-01-01T00:00:00Z");
        assert_eq!(last_day(midnight), "2026-12-31");
        assert_eq!(end(midnight), "2026-12-31");
        let noon = "2027-01-01T12:00:00.000Z";
        assert_eq!(end(at(noon)), noon);
        assert_eq!(parse("tomorrow"), None);
    }
}
