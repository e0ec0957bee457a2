//! When a delivery is tried again: soon at first, for three days in all, each time a little later than said. Pure.

use std::time::Duration;

use farebox_ledger::Timestamp;

/// The pauses after each failed try; after the last one nothing is tried any more.
const PAUSES: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];

/// The pause after so many tries have failed; `None` after the last one. `random` spreads the tries of many events over a tenth of
/// the pause.
pub(super) fn pause(tries: u32, random: u8) -> Option<Duration> {
    let place = usize::try_from(tries.checked_sub(1)?).ok()?;
    let pause = *PAUSES.get(place)?;
    Some(pause + pause.mul_f64(f64::from(random) / 2_560.0))
}

/// When a delivery that has failed so often and is tried again at `due` was first tried, at the latest.
pub(super) fn first_try(due: Timestamp, tries: u32, random: u8) -> Timestamp {
    let waited: Duration = (1..=tries).filter_map(|tries| pause(tries, random)).sum();
    let waited = i64::try_from(waited.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(due.millis().saturating_sub(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_spread_over_three_days_and_end() {
        assert_eq!(pause(0, 0), None, "nothing has failed");
        assert_eq!(pause(1, 0), Some(Duration::from_secs(5)));
        assert_eq!(pause(9, 0), Some(Duration::from_hours(24)));
        assert_eq!(pause(10, 0), None, "the tenth was the last");
        let all: Duration = (1..10).filter_map(|tries| pause(tries, 0)).sum();
        assert!(all > Duration::from_hours(75) && all < Duration::from_hours(76));
        let at = Timestamp::from_millis;
        assert_eq!(first_try(at(2_000_000), 1, 0), at(1_995_000));
        assert_eq!(first_try(at(9_000_000), 3, 0), at(9_000_000 - 2_105_000));
        for random in 0..=u8::MAX {
            let some = pause(2, random).unwrap();
            assert!(some >= Duration::from_mins(5) && some < Duration::from_secs(331));
        }
    }
}
