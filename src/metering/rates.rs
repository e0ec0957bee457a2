//! How fast a target is, and how its counts compare with ours: quotients of the sums that its answers have taught. Pure.

/// Tokens a second of a choice of which nobody has said or seen how fast it is. Half of the speed that is named, or of this, begins a
/// pace, …
pub const USUAL_SPEED: u32 = 150;
/// … counts for as many tokens, …
// Until so much has come, an unusual stream changes it by little.
const PACE_BEGINS_WITH: u64 = 10_000;
/// … and that we count as the target does, for as many.
const RATIO_BEGINS_WITH: u64 = 100_000;
/// Thousandths in one, and thousandths of them.
const MILLI: u128 = 1_000;
const MICRO: u128 = 1_000_000;
/// In thousandths: the least and the most by which a target's counts can change ours.
pub(super) const RATIOS: (u64, u64) = (800, 1_250);

/// The pace of one choice in thousandths of a token a second, by tokens of finished streams and the milliseconds that they took.
/// `named`: the speed that somebody has named, in tokens a second.
pub fn pace(tokens: u64, millis: u64, named: Option<u32>) -> u64 {
    let speed = u128::from(named.unwrap_or(USUAL_SPEED).max(1));
    // As if so many tokens had come at half of the speed.
    let begun = u128::from(PACE_BEGINS_WITH)
        .saturating_mul(MILLI)
        .saturating_mul(2);
    let millis = u128::from(millis)
        .saturating_mul(speed)
        .saturating_add(begun);
    let tokens = u128::from(tokens.saturating_add(PACE_BEGINS_WITH));
    let scaled = tokens.saturating_mul(speed).saturating_mul(MICRO);
    quotient(scaled, millis)
}

/// What a target counts for a prompt, in thousandths of our count, by the sums of both.
pub fn ratio(theirs: u64, ours: u64) -> u64 {
    let sum = |tokens: u64| u128::from(tokens).saturating_add(RATIO_BEGINS_WITH.into());
    let scaled = sum(theirs).saturating_mul(MILLI);
    quotient(scaled, sum(ours)).clamp(RATIOS.0, RATIOS.1)
}

fn quotient(sum: u128, by: u128) -> u64 {
    let quotient = sum.checked_div(by).unwrap_or_default();
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pace_begins_at_half_of_the_named_speed_and_follows_the_streams() {
        assert_eq!(pace(0, 0, None), 75_000);
        assert_eq!(pace(0, 0, Some(400)), 200_000);
        assert_eq!(pace(0, 0, Some(1)), 500, "half a token a second");
        assert_eq!(pace(0, 0, Some(0)), 500, "nobody names it");
        // As many tokens as it begins with, at 25 tokens a second: 20,000 in 133 and 400 seconds.
        assert_eq!(pace(10_000, 400_000, None), 37_500);
        assert_eq!(pace(5_000_000, 12_500_000, None), 396_569);
        assert_eq!(pace(u64::MAX, 0, Some(u32::MAX)), u64::MAX);
        assert_eq!(pace(0, u64::MAX, None), 0);
    }

    #[test]
    fn a_ratio_begins_at_one_and_goes_only_so_far() {
        assert_eq!(ratio(0, 0), 1_000);
        assert_eq!(ratio(110_000, 100_000), 1_050);
        assert_eq!(ratio(5_500_000, 5_000_000), 1_098);
        assert_eq!(ratio(u64::MAX, 1), 1_250);
        assert_eq!(ratio(0, u64::MAX), 800);
    }

    proptest! {
        /// However the same streams are spread over gateways, what they teach is between the slowest and the fastest, and where it began.
        #[test]
        fn a_pace_lies_between_those_of_its_streams(streams in prop::collection::vec((300_u64..100_000, 1_u64..3_600_000), 1..20)) {
            let (tokens, millis) = streams.iter().fold((0, 0), |sums, stream| (sums.0 + stream.0, sums.1 + stream.1));
            let paces = || streams.iter().map(|(tokens, millis)| tokens * 1_000_000 / millis);
            let found = pace(tokens, millis, None);
            prop_assert!(found >= paces().min().unwrap().min(75_000));
            prop_assert!(found <= paces().max().unwrap().max(75_000));
        }
    }
}
