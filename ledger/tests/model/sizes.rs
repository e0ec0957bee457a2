//! Sizes of holds: ways to reckon one, and what it is to become.

use farebox_ledger::HoldWay;
use proptest::prelude::*;

use super::facts::cents;

/// In cents: what is fixed and a token of the limit; then floor, least and most.
pub(super) type Way = (i64, i64, u64, u64, u64);

#[derive(Debug, Clone)]
pub(super) enum To {
    Same,
    Amount(i64),
    Ways(Vec<Way>),
}

pub(super) fn ways(money: impl Strategy<Value = i64>) -> impl Strategy<Value = Vec<Way>> {
    let exact = money.prop_map(|fixed| (fixed, 0, 0, 0, 0));
    let granted = (0..20_i64, 0..4_i64, 0..12_u64, 0..6_u64, 0..40_u64);
    proptest::collection::vec(prop_oneof![exact, granted], 1..3)
}

pub(super) fn to(money: impl Strategy<Value = i64> + Clone) -> impl Strategy<Value = To> {
    prop_oneof![
        1 => Just(To::Same),
        4 => money.clone().prop_map(To::Amount),
        3 => ways(money).prop_map(To::Ways),
    ]
}

pub(super) fn a_way((fixed, token, floor, least, most): &Way) -> HoldWay {
    HoldWay {
        fixed: cents(*fixed),
        token: cents(*token),
        floor: *floor,
        least: *least,
        most: *most,
    }
}
