//! A whole ledger copied to PostgreSQL and back: the same keys, money, references and hashes at every step.
//!
//! This test reads the hashes itself, from the file and from the database, and never through the code that copied them.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::proxy::Proxy;
use common::*;
use farebox_ledger::sqlite::{ServeLock, SqliteLedger};
use farebox_ledger::store::Store;
use farebox_ledger::*;

/// A ledger that began with the first schema and its twins of references, and has something of everything.
async fn grown(folder: &Path) -> PathBuf {
    let path = folder.join("farebox.db");
    std::fs::copy(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schema-17.sqlite"),
        &path,
    )
    .unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let ledger = SqliteLedger::open(&path, OpenMode::Serve, Durability::Prompt).unwrap();
    ledger.recover(at(900)).await.unwrap();
    ledger
        .perform(NewKey {
            act: act(500, 1_000),
            ..new_key(9, 500, Some("20"))
        })
        .await
        .unwrap();
    for operation in 510..513 {
        ledger.perform(new_hold(9, operation, "1")).await.unwrap();
        let mut finish = finish(operation, 1_000 * operation);
        (finish.bill.exposure, finish.bill.cost) = (usd("0.01"), Some(usd("0.2")));
        finish.bill.facts.insert("node".to_owned(), "a".to_owned());
        ledger.perform(Arc::new(finish)).await.unwrap();
    }
    ledger.perform(new_hold(9, 513, "1")).await.unwrap();
    let served = Finish {
        bill: fast(7),
        ..finish(513, 7)
    };
    ledger.perform(Arc::new(served)).await.unwrap();
    let refund = CreditKind::Refund {
        request: op(511),
        reason: "bad answer".into(),
    };
    ledger
        .perform(credit(9, 520, refund, "0.1", "refund-511"))
        .await
        .unwrap();
    ledger
        .perform(change(
            9,
            530,
            Change::Rotate {
                secret: secret(2),
                old_until: Some(at(90_000)),
            },
        ))
        .await
        .unwrap();
    ledger
        .perform(NewLink {
            key: key(9),
            token: secret(70),
            expires: at(90_000),
            act: act(540, 1_100),
        })
        .await
        .unwrap();
    ledger
        .perform(Session {
            token: secret(71),
            key: key(9),
            at: at(1_000),
            expires: at(90_000),
        })
        .await
        .unwrap();
    owing(&ledger).await;
    shop(&ledger).await;
    ledger.perform(taught()).await.unwrap();
    ledger.perform(new_hold(9, 550, "1")).await.unwrap();
    ledger.perform(moved(550, "2", 5_000)).await.unwrap();
    sound(&ledger).await;
    ledger.close();
    path
}

/// What targets have taught it.
fn taught() -> Taught {
    let lesson = Lesson {
        tokens: 4_000_000,
        millis: 90_000_000,
        theirs: 1_100,
        ours: 1_000,
        facts: Facts::default().with(Fact::WritesUnmarked),
        ..Lesson::empty("a/m", "flex,us")
    };
    let excess = Excess {
        target: "a/m".to_owned(),
        customer: CustomerId::made_for(key(9)),
        tokens: 5_000,
        at: at(1_000),
    };
    Taught {
        lessons: vec![lesson],
        excesses: vec![excess],
    }
}

/// Adds a customer who owes what went back of a payment and has a rule of auto top-up, and a closed one whose payment could not be booked.
async fn owing(ledger: &dyn Ledger) {
    for number in [10, 11] {
        let new = new_key(number, 680 + number, None);
        ledger.perform(new).await.unwrap();
    }
    let close = CustomerChange {
        customer: CustomerId::made_for(key(11)),
        change: CustomerAct::Close,
        act: act(620, 1_200),
    };
    ledger.perform(close).await.unwrap();
    for number in [10, 11] {
        let new = NewPayment {
            customer: CustomerId::made_for(key(number)),
            paid: PaidSum {
                currency: "EUR".to_owned(),
                gross: Gross::parse("11.90").unwrap(),
                tax: Gross::parse("1.90").unwrap(),
            },
            credit: usd("10"),
            reference: format!("Pi-{number}"),
            addressee: None,
            expected: None,
            reservation: None,
            plan: None,
            unsold: None,
            act: act(620 + number, 1_200),
        };
        ledger.perform(new).await.unwrap();
        let hold = ledger.perform(new_hold(number, 640 + number, "6")).await;
        assert_eq!(hold.is_ok(), number == 10);
    }
    ledger
        .perform(Arc::new(finish(650, 6_000_000)))
        .await
        .unwrap();
    let back = ledger.perform(refund_of("pi-10", 660, "11.90")).await;
    assert_eq!(back.unwrap().customer.claim, usd("6"));
    let unapplied = ledger.perform(refund_of("pi-11", 661, "5.95")).await;
    assert_eq!(unapplied.unwrap().entry, None);
    let rule = TopUpRule {
        threshold: usd("5"),
        refill: Refill::Target(usd("20")),
        per_month: 3,
    };
    let asks = CustomerChange {
        customer: CustomerId::made_for(key(10)),
        change: CustomerAct::SetAutoTopUp(rule, None),
        act: act(662, 1_200),
    };
    ledger.perform(asks).await.unwrap();
}

/// Adds a token with a customer and a payment of its own, made once.
async fn shop(ledger: &dyn Ledger) {
    let new = new_token(1, 751, TokenRole::Sell, Some("10"));
    ledger.perform(new).await.unwrap();
    let first = FirstPayment {
        customer: new_customer(12, 752),
        payment: new_payment(12, 753, "3", "pi-12"),
    };
    let first = asked(1, 1_300, first.into());
    let first = ledger.ask(once(first, "a key", "a body")).await.unwrap();
    let kept = NewReservation {
        id: ReservationId::from_random(1),
        prolongs: false,
        plan: None,
        customer: Some(CustomerId::from_random(12)),
        credit: usd("2"),
        until: Timestamp::from_millis(clock::now().millis() + 600_000),
        act: act(757, 1_300),
    };
    ledger.ask(asked(1, 1_300, kept.into())).await.unwrap();
    ledger.perform(new_lot(1, 755, 3)).await.unwrap();
    ledger.perform(redemption(200, 9, 756)).await.unwrap();
    assert!(!first.is_replay());
}

/// What [`owing`] and [`shop`] have added, as a ledger tells it.
async fn owed(ledger: &dyn Ledger) -> String {
    let debtor = CustomerId::made_for(key(10));
    let payment = new_payment(12, 754, "3", "pi-12");
    let again = asked(1, 1_400, Operation::Pay(Box::new(payment)));
    let again = once(again, "a key", "a body");
    // A ledger that was moved, or is only read, answers nobody.
    let again = ledger.ask(again).await.map(|answered| answered.is_replay());
    assert!(!matches!(again, Ok(false)));
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        ledger.all::<Reservation>().await.unwrap(),
        ledger.all::<Lot>().await.unwrap(),
        ledger.all::<Token>().await.unwrap(),
        ledger.house_acts().await.unwrap(),
        ledger.payment("PI-10").await.unwrap().unwrap(),
        ledger.unapplied().await.unwrap(),
        ledger.find_customer(debtor).await.unwrap().unwrap()
    )
}

const HASHES: &str = "FROM entries UNION ALL SELECT 'act', customer, seq, hash FROM audit";

fn hashes_of_file(path: &Path) -> Vec<String> {
    let conn = rusqlite::Connection::open(path).unwrap();
    let sql = format!(
        "SELECT t || ' ' || customer || ' ' || seq || ' ' || lower(hex(hash)) FROM (SELECT 'entry' AS t, customer, seq, hash {HASHES})"
    );
    let mut lines: Vec<String> = conn
        .prepare(&sql)
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    lines.sort();
    lines
}

fn hashes_of_database(cluster: &Cluster, database: &str) -> Vec<String> {
    let sql = format!(
        "SELECT t || ' ' || customer || ' ' || seq || ' ' || encode(hash, 'hex') FROM (SELECT 'entry' AS t, customer, seq, hash {HASHES}) a"
    );
    let mut lines: Vec<String> = cluster
        .psql(database, &sql)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

#[test]
fn there_and_back_every_hash_is_the_same() {
    with_cluster("ledger copy", async |cluster| {
        let folder = tempfile::tempdir().unwrap();
        let path = grown(folder.path()).await;
        let (file, database) = (LedgerAddress::from(path.clone()), cluster.database());
        let there: LedgerAddress = cluster.url(&database).parse().unwrap();
        let mut heard = Vec::new();
        let report = file
            .copy_to(&there, |done, all| heard.push((done, all)))
            .await
            .unwrap();
        let before = hashes_of_file(&path);
        let owing = SqliteLedger::open(&path, OpenMode::ReadOnly, Durability::Prompt).unwrap();
        let ids = owing.vendor_ids();
        let owing = owed(&owing).await;
        assert_eq!(heard.last(), Some(&(report.entries, report.entries)));
        assert_eq!(hashes_of_database(cluster, &database), before);

        // A second gateway's, and a command's.
        let other = postgres(&cluster.url(&database), OpenMode::ReadOnly).await;
        assert_eq!(other.unwrap().vendor_ids(), ids);
        let ledger = postgres(&cluster.url(&database), OpenMode::Serve)
            .await
            .unwrap();
        assert_eq!(ledger.vendor_ids(), ids);
        assert_eq!(
            ledger.find_session(secret(71), at(2_000)).await.unwrap(),
            Some(key(9))
        );
        assert_eq!(
            ledger.consume_link(secret(70), at(2_000)).await.unwrap(),
            Some(key(9))
        );
        assert_eq!(owed(&ledger).await, owing);
        assert_eq!(ledger.taught().await.unwrap(), taught());
        let ended = ledger.recover(at(2_000)).await.unwrap();
        assert_eq!(
            (ended.settled, ended.released),
            (1, 0),
            "the hold that was open ends at its checkpoint"
        );
        assert!(
            ledger
                .perform(top_up(1, 600, "10", "inv-7"))
                .await
                .unwrap()
                .repeated,
            "names stay taken"
        );
        ledger.perform(new_hold(9, 610, "1")).await.unwrap();
        ledger.perform(Arc::new(finish(610, 1_000))).await.unwrap();
        let totals = ledger.totals().await.unwrap();
        sound(&ledger).await;
        ledger.close();
        drop(ledger);

        let again = folder.path().join("again.db");
        there
            .copy_to(&LedgerAddress::from(again.clone()), |_, _| ())
            .await
            .unwrap();
        let after = hashes_of_file(&again);
        assert_eq!(after, hashes_of_database(cluster, &database));
        assert!(before.iter().all(|line| after.contains(line)) && after.len() == before.len() + 2);
        let ledger = SqliteLedger::open(&again, OpenMode::Serve, Durability::Prompt).unwrap();
        ledger.recover(at(3_000)).await.unwrap();
        assert_eq!(ledger.totals().await.unwrap(), totals);
        assert_eq!(ledger.vendor_ids(), ids);
        assert_eq!(owed(&ledger).await, owing);
        assert_eq!(ledger.taught().await.unwrap(), taught());
        ledger
            .perform(top_up(9, 700, "1", "back-again"))
            .await
            .unwrap();
        sound(&ledger).await;
    });
}

#[test]
fn a_copy_is_refused_in_words_and_leaves_nothing() {
    with_cluster("ledger copy", async |cluster| {
        let folder = tempfile::tempdir().unwrap();
        let path = grown(folder.path()).await;
        let (file, database) = (LedgerAddress::from(path.clone()), cluster.database());
        let there: LedgerAddress = cluster.url(&database).parse().unwrap();
        let refused = async |from: &LedgerAddress, to: &LedgerAddress| match from
            .copy_to(to, |_, _| ())
            .await
        {
            Err(LedgerError::Unusable(why) | LedgerError::Misplaced(why)) => why.to_string(),
            other => unreachable!("{other:?}"),
        };
        let other = LedgerAddress::from(folder.path().join("other.db"));
        assert!(refused(&file, &other).await.contains("ledger backup"));
        assert!(refused(&there, &there).await.contains("pg_dump"));
        let lock = ServeLock::acquire(&path, Duration::ZERO).unwrap();
        assert!(
            refused(&file, &there)
                .await
                .contains("is in use by process")
        );
        drop(lock);
        assert!(
            refused(&there, &other)
                .await
                .contains("no ledger in this database")
        );

        let gateway = postgres(&cluster.url(&database), OpenMode::Serve)
            .await
            .unwrap();
        gateway.recover(at(1)).await.unwrap();
        assert!(refused(&file, &there).await.contains("not empty"));
        assert!(
            refused(&there, &file)
                .await
                .contains("never writes over a file")
        );
        assert!(refused(&there, &other).await.contains("is served by"));
        gateway.close();
        drop(gateway);
        there.copy_to(&other, |_, _| ()).await.unwrap();

        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch("UPDATE accounts SET credit = credit + 1 WHERE claim = 0")
            .unwrap();
        drop(conn);
        let empty = cluster.database();
        assert!(
            refused(&file, &cluster.url(&empty).parse().unwrap())
                .await
                .contains("not sound")
        );
        assert_eq!(
            cluster
                .psql(
                    &empty,
                    "SELECT count(*) FROM pg_class WHERE relname = 'keys'"
                )
                .unwrap(),
            "0"
        );
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(
            left.iter()
                .all(|name| !name.to_string_lossy().ends_with(".part")),
            "{left:?}"
        );
    });
}

/// A gateway that is cut off while its ledger is moved, and comes back: the copy alone sells.
#[test]
fn a_moved_ledger_is_read_and_never_written_again() {
    with_cluster("ledger copy", async |cluster| {
        let folder = tempfile::tempdir().unwrap();
        let (path, database) = (folder.path().join("b.db"), cluster.database());
        let proxy = Proxy::start(cluster.folder());
        let frozen = postgres(&proxy.url(&database), OpenMode::Serve)
            .await
            .unwrap();
        frozen.recover(at(1)).await.unwrap();
        frozen.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let console = postgres(&cluster.url(&database), OpenMode::Write)
            .await
            .unwrap();
        proxy.set_up(false);
        let (from, to) = (
            cluster.url(&database).parse::<LedgerAddress>().unwrap(),
            LedgerAddress::from(path.clone()),
        );
        // Until it counts as dead, the copy is refused.
        let begun = Instant::now();
        while let Err(error) = from.copy_to(&to, |_, _| {}).await {
            assert!(error.to_string().contains("served by"), "{error}");
            assert!(begun.elapsed() < Duration::from_secs(60), "{error}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        proxy.set_up(true);
        frozen.fatal().await;
        assert!(frozen.perform(new_hold(1, 20, "1")).await.is_err());
        let late = console.perform(top_up(1, 30, "1", "late")).await;
        assert!(late.is_err(), "{late:?}");
        for mode in [OpenMode::Serve, OpenMode::Write] {
            let again = postgres(&cluster.url(&database), mode).await.map(drop);
            assert!(
                matches!(&again, Err(LedgerError::Unusable(why)) if why.words().contains("was moved")),
                "{again:?}"
            );
        }
        sound(
            &postgres(&cluster.url(&database), OpenMode::ReadOnly)
                .await
                .unwrap(),
        )
        .await;
        // And the other way: a file that was moved is not served either.
        let back = cluster
            .url(&cluster.database())
            .parse::<LedgerAddress>()
            .unwrap();
        to.copy_to(&back, |_, _| {}).await.unwrap();
        for mode in [OpenMode::Serve, OpenMode::Write] {
            let again = SqliteLedger::open(&path, mode, Durability::Prompt).map(drop);
            assert!(
                matches!(&again, Err(LedgerError::Unusable(why)) if why.words().contains("was moved")),
                "{again:?}"
            );
        }
        sound(&SqliteLedger::open(&path, OpenMode::ReadOnly, Durability::Prompt).unwrap()).await;
    });
}
