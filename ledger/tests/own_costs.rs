//! What gateways' own requests to targets cost: the same sums on every store. Of a fleet one gateway asks, and the others are told.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use common::*;
use farebox_ledger::memory::MemoryLedger;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;

const HOUR: i64 = 3_600_000;

fn own(hour: i64, target: &str, usd_text: &str) -> OwnCost {
    OwnCost {
        hour,
        target: target.to_owned(),
        cost: usd(usd_text),
    }
}

async fn costs(ledger: &dyn Ledger, from: i64, to: i64) -> Vec<OwnCost> {
    let at = |hour: i64| Timestamp::from_millis(hour * HOUR);
    ledger.own_costs(at(from), at(to)).await.unwrap()
}

async fn totals_that_lower_the_margin(ledger: &dyn Ledger) {
    for cost in [
        own(100, "a/m", "0.01"),
        own(100, "a/m", "0.03"),
        own(101, "a/m", "0.02"),
        own(101, "b/m", "0.05"),
    ] {
        ledger.perform(cost).await.unwrap();
    }
    let all = [
        own(100, "a/m", "0.03"),
        own(101, "a/m", "0.02"),
        own(101, "b/m", "0.05"),
    ];
    assert_eq!(
        costs(ledger, 100, 102).await,
        all,
        "totals, not differences"
    );
    assert_eq!(costs(ledger, 101, 102).await, all[1..]);
    assert_eq!(costs(ledger, 102, 200).await, []);
    for (by, rows) in [
        (MarginBy::Key, vec![]),
        (MarginBy::Target, vec![("a/m", "0.05"), ("b/m", "0.05")]),
        (MarginBy::Day, vec![("1970-01-05", "0.1")]),
    ] {
        let query = MarginQuery {
            by,
            from: Timestamp::from_millis(100 * HOUR),
            to: Timestamp::from_millis(102 * HOUR),
            order: MarginOrder::Name,
            reverse: false,
            limit: 9,
        };
        let page = ledger.margins(query).await.unwrap();
        let found: Vec<(&str, Amount)> = page
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.own))
            .collect();
        let rows: Vec<(&str, Amount)> = rows
            .into_iter()
            .map(|(name, own)| (name, usd(own)))
            .collect();
        assert_eq!(found, rows, "{by:?}");
        assert_eq!(page.total.own, usd("0.1"), "{by:?}");
    }
    sound(ledger).await;
}

#[test]
fn own_requests_lower_the_margin_in_memory() {
    run(async { totals_that_lower_the_margin(&MemoryLedger::new()).await });
}

#[test]
fn own_requests_lower_the_margin_in_a_file_and_each_start_adds_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    run(async {
        let ledger = SqliteLedger::create(&path, OpenMode::Write, Durability::Prompt).unwrap();
        ledger.recover(at(1)).await.unwrap();
        totals_that_lower_the_margin(&ledger).await;
        assert_eq!(
            ledger.lease_probe("a/m").await.unwrap(),
            ProbeLease::Ours,
            "there is nobody else"
        );
        ledger.close();
        let again = SqliteLedger::open(&path, OpenMode::Serve, Durability::Prompt).unwrap();
        again.recover(at(2)).await.unwrap();
        again.perform(own(101, "b/m", "0.01")).await.unwrap();
        assert_eq!(costs(&again, 101, 102).await[1], own(101, "b/m", "0.06"));
    });
}

#[test]
fn own_requests_lower_the_margin_in_a_database_and_each_gateway_adds_its_own() {
    with_cluster("own requests of a fleet", async |cluster| {
        let (_, fleet) = fleet(cluster, 2).await;
        totals_that_lower_the_margin(&*fleet[0]).await;
        fleet[1].perform(own(101, "b/m", "0.01")).await.unwrap();
        assert_eq!(
            costs(&*fleet[0], 101, 102).await[1],
            own(101, "b/m", "0.06")
        );
    });
}

/// The finding of a lease that another gateway has.
fn told(lease: ProbeLease) -> TargetFinding {
    match lease {
        ProbeLease::Theirs(Some(finding)) => finding,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn of_three_gateways_one_asks_and_the_others_are_told() {
    with_cluster("probe leases of a fleet", async |cluster| {
        let (database, fleet) = fleet(cluster, 3).await;
        // All at once, again and again: the same one asks all the time.
        let mut asked = [0, 0, 0];
        for _ in 0..5 {
            let leases = tokio::join!(
                fleet[0].lease_probe("a/m"),
                fleet[1].lease_probe("a/m"),
                fleet[2].lease_probe("a/m")
            );
            for (asked, lease) in asked.iter_mut().zip([leases.0, leases.1, leases.2]) {
                *asked += u32::from(lease.unwrap() == ProbeLease::Ours);
            }
        }
        let first = asked
            .iter()
            .position(|asked| *asked == 5)
            .expect("one has every lease");
        assert_eq!(asked.iter().sum::<u32>(), 5, "{asked:?}");
        let others: Vec<_> = (0..3).filter(|other| *other != first).collect();
        let (asker, second, third) = (&fleet[first], &fleet[others[0]], &fleet[others[1]]);
        assert_eq!(
            second.lease_probe("a/m").await.unwrap(),
            ProbeLease::Theirs(None)
        );
        assert_eq!(
            third.lease_probe("b/m").await.unwrap(),
            ProbeLease::Ours,
            "each place by itself"
        );

        asker.tell("a/m", "passed").await.unwrap();
        let finding = told(second.lease_probe("a/m").await.unwrap());
        assert_eq!(finding.found, "passed");
        assert!(
            finding.asked_ms >= finding.found_ms && finding.found_ms >= 0,
            "{finding:?}"
        );
        assert_eq!(
            told(third.lease_probe("a/m").await.unwrap()).number,
            finding.number
        );
        assert_eq!(asker.lease_probe("a/m").await.unwrap(), ProbeLease::Ours);
        asker.tell("a/m", "failed").await.unwrap();
        let next = told(third.lease_probe("a/m").await.unwrap());
        assert!(
            next.number > finding.number && next.found == "failed",
            "{next:?}"
        );

        // Seven seconds without a request of the asker, and another one takes over. What the first one says then counts no more.
        let later = "UPDATE probe_leases SET asked_at = asked_at - interval '8 seconds'";
        cluster.psql(&database, later).unwrap();
        assert_eq!(second.lease_probe("a/m").await.unwrap(), ProbeLease::Ours);
        assert!(matches!(
            asker.lease_probe("a/m").await.unwrap(),
            ProbeLease::Theirs(_)
        ));
        asker.tell("a/m", "too late").await.unwrap();
        assert_eq!(
            told(third.lease_probe("a/m").await.unwrap()).found,
            "failed"
        );

        // A gateway whose epoch has ended has no lease.
        let ended = "UPDATE nodes SET ended = now() WHERE epoch = (SELECT epoch FROM probe_leases WHERE place = 'a/m')";
        cluster.psql(&database, ended).unwrap();
        assert_eq!(third.lease_probe("a/m").await.unwrap(), ProbeLease::Ours);
    });
}
