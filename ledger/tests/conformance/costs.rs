//! What requests cost the operator: what answers told, else what was listed, summed by everything that margins are summed by.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;

/// Key, second, slug, target, account, what was told and what was listed in picodollars, and where the cost is from.
type ToldRow = (
    u64,
    i64,
    &'static str,
    &'static str,
    &'static str,
    Option<i64>,
    Option<i64>,
    CostSource,
);

/// A sum's name, cost, and what of it was told.
type NamedCost<'a> = (&'a str, i64, i64);

const DAY: i64 = 86_400;
const ROWS: [ToldRow; 6] = [
    (
        1,
        500,
        "small",
        "one/m",
        "eu",
        Some(70),
        Some(100),
        CostSource::Told,
    ),
    (
        1,
        500,
        "small",
        "one/m",
        "",
        None,
        Some(100),
        CostSource::Listed,
    ),
    (
        1,
        DAY,
        "large",
        "one/n",
        "eu",
        Some(5_000),
        Some(100),
        CostSource::Doubted,
    ),
    (
        2,
        DAY,
        "large",
        "two/m",
        "",
        Some(40),
        None,
        CostSource::Told,
    ),
    // As entries of earlier versions are: told, and not used.
    (
        2,
        DAY,
        "small",
        "two/m",
        "",
        Some(9),
        Some(100),
        CostSource::Listed,
    ),
    (2, DAY, "small", "three", "", None, None, CostSource::Listed),
];

pub(crate) async fn costs_are_those_that_answers_told(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_key(2, 11, Some("5"))).await.unwrap();
    for ((owner, seconds, slug, target, account, told, listed, source), request) in
        ROWS.into_iter().zip(20..)
    {
        ledger
            .perform(new_hold(owner, request, "0.1"))
            .await
            .unwrap();
        let bill = Bill {
            slug: slug.to_owned(),
            target: target.to_owned(),
            served: Served {
                account: account.to_owned(),
                ..Served::default()
            },
            provider_cost: told.map(Amount::from_picos),
            cost: listed.map(Amount::from_picos),
            cost_source: source,
            ..bill(7)
        };
        let finish = Finish {
            request: op(request),
            bill: bill.clone(),
            at: at(seconds),
        };
        ledger.perform(Arc::new(finish)).await.unwrap();
        let entry = ledger.entry(op(request)).await.unwrap().unwrap();
        let stored = entry.bill.unwrap();
        assert_eq!(
            (stored.cost, stored.provider_cost, stored.cost_source),
            (bill.cost, bill.provider_cost, source)
        );
        sound(&*ledger).await;
    }
    let (first, second) = (key(1).to_string(), key(2).to_string());
    let payers = [key(1), key(2)].map(async |key| {
        let key = ledger.find_key(key).await.unwrap().unwrap();
        key.customer.id.to_string()
    });
    let [payer, other] = payers;
    let (payer, other) = (payer.await, other.await);
    let expected: [(MarginBy, &[NamedCost<'_>]); 8] = [
        (MarginBy::Key, &[(&first, 270, 70), (&second, 140, 40)]),
        (MarginBy::Customer, &[(&payer, 270, 70), (&other, 140, 40)]),
        (MarginBy::Slug, &[("large", 140, 40), ("small", 270, 70)]),
        (
            MarginBy::Target,
            &[
                ("one/m", 170, 70),
                ("one/n", 100, 0),
                ("three", 0, 0),
                ("two/m", 140, 40),
            ],
        ),
        (
            MarginBy::Provider,
            &[("one", 270, 70), ("three", 0, 0), ("two", 140, 40)],
        ),
        (
            MarginBy::Account,
            &[
                ("one", 100, 0),
                ("one/eu", 170, 70),
                ("three", 0, 0),
                ("two", 140, 40),
            ],
        ),
        (MarginBy::Class, &[("standard", 410, 110)]),
        (
            MarginBy::Day,
            &[("1970-01-01", 170, 70), ("1970-01-02", 240, 40)],
        ),
    ];
    for (by, rows) in expected {
        let query = MarginQuery {
            by,
            from: at(0),
            to: at(9 * DAY),
            order: MarginOrder::Name,
            reverse: false,
            limit: 9,
        };
        let found = ledger.margins(query).await.unwrap();
        let mut shown: Vec<_> = (found.rows.iter())
            .map(|row| (&*row.name, row.cost.picos(), row.told.picos()))
            .collect();
        shown.sort_unstable();
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        assert_eq!(shown, rows, "{by:?}");
        let total = (found.total.cost.picos(), found.total.told.picos());
        assert_eq!(total, (410, 110), "{by:?}");
    }
    assert_eq!(ledger.totals().await.unwrap().cost, 410);
    let hours = ledger.slug_hours(at(0), at(9 * DAY)).await.unwrap();
    let told: Vec<_> = (hours.iter())
        .map(|hour| (&*hour.sums.name, hour.sums.told.picos()))
        .collect();
    assert_eq!(told, [("small", 70), ("large", 40), ("small", 0)]);
    let unsaid = Bill {
        cost_source: CostSource::Told,
        ..bill(7)
    };
    ledger.perform(new_hold(1, 40, "0.1")).await.unwrap();
    let refused = ledger
        .perform(Arc::new(Finish {
            request: op(40),
            bill: unsaid,
            at: at(500),
        }))
        .await;
    assert!(refused.is_err(), "a told cost that nobody told");
}
