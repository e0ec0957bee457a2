//! Who reads events on from the last one that it got misses none, however many write meanwhile.
//!
//! A few thousand events are written in every run, 100,000 with `FAREBOX_FULL=1`.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use common::*;
use farebox_ledger::*;
use tokio::time::Instant;

const WRITERS: u64 = 64;

/// Repeats what a busy machine was too slow for, as every caller must: under the same id it has no second effect.
async fn patiently<T, F>(call: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, LedgerError>>,
{
    loop {
        match call().await {
            Err(LedgerError::Unavailable(_) | LedgerError::Unknown(_)) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            done => return done.unwrap(),
        }
    }
}

/// Each writer has its own connection, as commands have, and its own customer: their transactions overlap in every order.
#[test]
fn a_polling_reader_misses_none_of_64_writers() {
    with_cluster("the feed of events", async |cluster| {
        let each = if std::env::var_os("FAREBOX_FULL").is_some() {
            1_565
        } else {
            60
        };
        let url = cluster.url(&cluster.database());
        let reader = gateway(&url).await;
        for number in 1..=WRITERS {
            let new = new_key(number, number, None);
            reader.perform(new).await.unwrap();
        }
        let begun = Instant::now();
        let writers: Vec<_> = (1..=WRITERS)
            .map(|number| {
                let url = url.clone();
                tokio::spawn(async move {
                    let ledger = Arc::new(postgres(&url, OpenMode::Write).await.unwrap());
                    for turn in 0..each {
                        let operation = number * 100_000 + turn;
                        let paid = top_up(number, operation, "0.01", &format!("p-{operation}"));
                        patiently(|| ledger.perform(paid.clone())).await;
                    }
                })
            })
            .collect();
        // Two for each key that was made, and one for each payment.
        let expected = usize::try_from(WRITERS * (2 + each)).unwrap();
        let (mut after, mut seen, mut polls) = (None, Vec::new(), 0_u64);
        while seen.len() < expected {
            let late = begun.elapsed() > Duration::from_secs(900);
            assert!(!late, "{} of {expected} after 15 minutes", seen.len());
            let page = patiently(|| reader.events(after, 1_000)).await;
            polls += 1;
            match page.last() {
                Some(last) => after = Some(last.id),
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
            seen.extend(page);
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(reader.events(after, 9).await.unwrap(), [], "and no more");
        let ids: HashSet<_> = seen.iter().map(|event| event.id).collect();
        assert_eq!(ids.len(), expected, "each once");
        for number in 1..=WRITERS {
            let of = Some(CustomerId::made_for(key(number)));
            let numbers = seen.iter().filter(|event| event.customer == of);
            let numbers: Vec<_> = numbers.filter_map(|event| event.seq).collect();
            assert!(numbers.is_sorted(), "in the customer's order");
            assert_eq!(numbers.len() as u64, 2 + each);
        }
        eprintln!(
            "{expected} events, {polls} polls, {:.1} s",
            begun.elapsed().as_secs_f32()
        );
    });
}

/// A restored database numbers its transactions anew. Events of before keep their order, and come first.
#[test]
fn events_of_a_restored_database_come_first() {
    with_cluster("events of a restored database", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        }
        let from_elsewhere = "UPDATE events SET xid = (8000000000 - seq)::text::xid8";
        cluster.psql(&database, from_elsewhere).unwrap();
        let ledger = gateway(&url).await;
        ledger.perform(top_up(1, 11, "1", "inv-1")).await.unwrap();
        let seen = events(&*ledger, 4).await;
        let numbers: Vec<_> = seen.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, [Some(3), Some(2), Some(1), Some(4)]);
        sound(&*ledger).await;
    });
}

/// What is older than 30 days goes when something new is told; the newest stays, so that its reader can go on.
#[test]
fn events_are_kept_for_thirty_days() {
    let old = |days: i64| (clock::now().millis() - days * 86_400_000).to_string();
    let (dir, ledger) = sqlite();
    run(async {
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let conn = rusqlite::Connection::open(dir.path().join("farebox.db")).unwrap();
        for (seq, days) in [(1, 31), (2, 31), (3, 29)] {
            let sql = format!("UPDATE events SET at = {} WHERE seq = {seq}", old(days));
            conn.execute(&sql, []).unwrap();
        }
        assert_eq!(ledger.events(None, 9).await.unwrap().len(), 3);
        ledger.perform(top_up(1, 11, "1", "inv-1")).await.unwrap();
        let kept = ledger.events(None, 9).await.unwrap();
        let numbers: Vec<_> = kept.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, [Some(3), Some(4)]);
    });
    with_cluster("the age of events", async |cluster| {
        let database = cluster.database();
        let ledger = gateway(&cluster.url(&database)).await;
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let age = format!("UPDATE events SET at = {} WHERE seq < 3", old(31));
        cluster.psql(&database, &age).unwrap();
        ledger.perform(top_up(1, 11, "1", "inv-1")).await.unwrap();
        let kept = events(&*ledger, 2).await;
        let numbers: Vec<_> = kept.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, [Some(3), Some(4)]);
    });
}

/// What one gateway tries, the others leave alone until its minute is over.
#[test]
fn gateways_lease_what_they_deliver() {
    with_cluster("leases of deliveries", async |cluster| {
        let (database, fleet) = fleet(cluster, 2).await;
        fleet[0].perform(new_key(1, 10, Some("5"))).await.unwrap();
        let told = events(&*fleet[0], 3).await;
        let url = "https://shop.example/hook".to_owned();
        let webhook = WebhookId::of(&url);
        let register = DeliveryStep::Register {
            url,
            handed: None,
            at: at(50),
        };
        let hand = DeliveryStep::Hand {
            webhook,
            events: told.iter().map(|event| event.id).collect(),
            handed: told[2].id,
            due: at(100),
        };
        fleet[1]
            .perform(DeliverySteps(vec![register, hand]))
            .await
            .unwrap();
        let take = async |gateway: usize, free| {
            let wanted = WantedDeliveries {
                webhook,
                free,
                running: 0,
            };
            let due = fleet[gateway].due_deliveries(vec![wanted], at(100)).await;
            due.unwrap().len()
        };
        assert_eq!(take(0, 2).await, 2);
        assert_eq!(take(1, 9).await, 1);
        assert_eq!((take(0, 9).await, take(1, 9).await), (0, 0));
        cluster
            .psql(&database, "UPDATE deliveries SET leased = leased - 61000")
            .unwrap();
        assert_eq!(take(1, 9).await, 3, "of a gateway that died");
    });
}
