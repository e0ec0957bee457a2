//! The rule for exposure: what nobody counted, many keys, what is left, and what is excused.

use super::*;
use crate::config::{self, ProcessSecrets};

const CENT: i64 = 10_000_000_000;

fn uncounted() -> UncountedEnd {
    UncountedEnd {
        hold: Amount::from_picos(100 * CENT),
        input: Amount::from_picos(3 * CENT),
        choices: 1,
        speed: None,
        pace: None,
        per_output: Amount::from_picos(CENT / 1_000),
        made: Duration::from_secs(10),
        stops: true,
        charge: Amount::ZERO,
    }
}

/// In thousandths of a cent.
fn exposure(of: UncountedEnd) -> i64 {
    of.exposure().picos() / (CENT / 1_000)
}

#[test]
fn what_nobody_counted_may_be_billed_as_fast_as_anybody_said() {
    assert_eq!(
        exposure(uncounted()),
        3_000 + 1_500,
        "150 tokens a second, where nobody said anything"
    );
    let with = |speed, pace| UncountedEnd {
        speed,
        pace,
        ..uncounted()
    };
    assert_eq!(exposure(with(Some(400), None)), 3_000 + 4_000);
    assert_eq!(exposure(with(None, Some(30_000))), 3_000 + 600);
    assert_eq!(exposure(with(Some(50), Some(30_000))), 3_000 + 600);
    assert_eq!(exposure(with(Some(80), Some(30_000))), 3_000 + 800);
    let eight = UncountedEnd {
        choices: 8,
        ..with(Some(100), None)
    };
    assert_eq!(exposure(eight), 3_000 + 8_000);
}

#[test]
fn exposure_is_what_is_beyond_the_charge_and_at_most_held() {
    let charged = UncountedEnd {
        charge: Amount::from_picos(4 * CENT),
        ..uncounted()
    };
    assert_eq!(exposure(charged), 500);
    let dear = UncountedEnd {
        charge: Amount::from_picos(5 * CENT),
        ..uncounted()
    };
    assert_eq!(exposure(dear), 0);
    let long = UncountedEnd {
        made: Duration::MAX,
        charge: Amount::from_picos(4 * CENT),
        ..uncounted()
    };
    assert_eq!(exposure(long), 96_000, "never more than the hold");
    let goes_on = UncountedEnd {
        stops: false,
        ..charged
    };
    assert_eq!(exposure(goes_on), 96_000, "to its end, whatever we close");
}

fn hour(exposure: i64, charge: i64) -> Vec<UsageRow> {
    let row = UsageRow {
        hour: Timestamp::from_millis(40 * 24 * HOUR),
        slug: "quick".to_owned(),
        exposure: Amount::from_picos(exposure),
        charge: Amount::from_picos(charge),
        ..UsageRow::default()
    };
    vec![row]
}

fn catalog() -> Catalog {
    let (catalog, routes) = (
        config::Source::new("catalog.toml", include_str!("../proxy/tests/catalog.toml")),
        config::Source::new("routes.toml", include_str!("../proxy/tests/routes.toml")),
    );
    let (config, _) = config::load(&catalog, &routes, &ProcessSecrets { lenient: true });
    config.unwrap().catalog
}

const NOW: Timestamp = Timestamp::from_millis(40 * 24 * HOUR);

fn note(known: &mut CustomerExposure, rows: &BTreeMap<KeyId, Vec<UsageRow>>, catalog: &Catalog) {
    let from = known.unread(NOW);
    known.note(rows, catalog, (from, NOW));
}

#[test]
fn many_keys_of_one_customer_have_one_bound() {
    let catalog = catalog();
    let key = KeyId::from_random;
    let customer = CustomerId::made_for(key(1));
    // Half of what was paid is less than a context: every key may leave 100 unpaid, and all together 100.
    let mut known = CustomerExposure {
        credit: Amount::from_picos(250),
        given: Amount::from_picos(50),
        ..CustomerExposure::default()
    };
    note(
        &mut known,
        &BTreeMap::from([(key(1), hour(100, 0))]),
        &catalog,
    );
    assert_eq!(known.stops(customer, NOW), []);
    let two = BTreeMap::from([(key(1), hour(101, 0)), (key(2), hour(0, 50))]);
    note(&mut known, &two, &catalog);
    assert!(known.is_stopped(key(1), NOW) && !known.is_stopped(key(2), NOW));
    let stops = known.stops(customer, NOW);
    assert_eq!(
        (stops.len(), stops[0].key, stops[0].all_keys),
        (1, key(1), false)
    );
    let mut many: BTreeMap<_, _> = (1..=1_000).map(|of| (key(of), hour(1, 0))).collect();
    many.insert(key(7), hour(2, 0));
    note(&mut known, &many, &catalog);
    assert!(known.is_stopped(key(1), NOW) && known.is_stopped(key(5_000), NOW));
    let cause = |of| known.told(key(of), NOW).unwrap().cause;
    assert_eq!((cause(1), cause(7)), (Some(key(7)), None));
    let stops = known.stops(customer, NOW);
    assert_eq!(
        (stops.len(), stops[0].key, stops[0].all_keys),
        (1, key(7), true)
    );
    assert!(!known.is_idle(NOW));
}

#[test]
fn what_is_left_is_what_the_tighter_stop_leaves() {
    let (catalog, key) = (catalog(), KeyId::from_random(1));
    let mut known = CustomerExposure {
        credit: Amount::from_picos(1_000),
        ..CustomerExposure::default()
    };
    let left = |known: &CustomerExposure, context| {
        let (left, read) = known.left(key, Amount::from_picos(context), NOW);
        (left.picos(), read)
    };
    assert_eq!(left(&known, 300), (300, false), "before the ledger is read");
    assert_eq!(left(&known, 900), (500, false), "half of what was paid");
    note(&mut known, &BTreeMap::new(), &catalog);
    known.charged(key, Amount::from_picos(40), NOW);
    assert_eq!(left(&known, 300), (320, true), "half of its charges, too");
    let rows = BTreeMap::from([(key, hour(100, 40))]);
    note(&mut known, &rows, &catalog);
    assert_eq!(left(&known, 900), (420, true), "read anew, not added");
}

#[test]
fn no_more_is_excused_in_a_day_than_ten_times_what_it_leaves() {
    let (catalog, key) = (catalog(), KeyId::from_random(1));
    let mut known = CustomerExposure {
        credit: Amount::from_picos(100),
        ..CustomerExposure::default()
    };
    let failed = |exposure| FailedTarget {
        customer: CustomerId::made_for(key),
        key,
        exposure: Amount::from_picos(exposure),
        context: Amount::from_picos(20),
        booked: NOW,
    };
    for _ in 0..3 {
        known.excuse(failed(90), Some(Amount::from_picos(20)));
    }
    let rows = BTreeMap::from([(key, hour(270, 0))]);
    note(&mut known, &rows, &catalog);
    let stops = known.stops(CustomerId::made_for(key), NOW);
    assert_eq!(stops[0].standing.exposure.picos(), 270 - 200);
    known.excuse(failed(70), None);
    note(&mut known, &rows, &catalog);
    assert_eq!(known.stops(CustomerId::made_for(key), NOW), []);
}
