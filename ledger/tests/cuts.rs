//! Network cuts in a row between a gateway and its database: they do not add up, and each is over within seconds.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends at the first surprise, and says how long things took"
)]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::cluster::{Cluster, programs};
use common::netns::{Network, SERVER};
use common::*;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::store::Store;
use farebox_ledger::*;

/// How soon after a cut it sells. Asserted at full size alone: every day the machine may be busy.
const BOUND: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests at once.
const AT_ONCE: u64 = 6;

/// Keeps requests coming, and counts those that were charged for certain.
async fn load(
    ledger: Arc<PostgresLedger>,
    numbers: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
) -> (u64, u64) {
    let (mut charged, mut unknown) = (0, 0);
    while !ends.load(Ordering::Relaxed) {
        let request = numbers.fetch_add(1, Ordering::Relaxed);
        let key = 1 + request % 3;
        let hold = Hold::open(
            Arc::clone(&ledger) as SharedLedger,
            new_hold(key, request, "0.01"),
        );
        let Ok(hold) = hold.await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let finish = finish(request, 1_000);
        match hold.settle(finish.bill, finish.at).await {
            Ok(_) => charged += 1,
            // The resolver has it.
            Err(_) => unknown += 1,
        }
    }
    (charged, unknown)
}

#[test]
fn cuts_in_a_row_do_not_add_up() {
    let (Some(bin), Some(network)) = (programs(), Network::start()) else {
        return skip("network cuts: PostgreSQL or network namespaces are not available here");
    };
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("hba");
    std::fs::write(&rules, "local all all trust\nhost all all all trust\n").unwrap();
    std::fs::set_permissions(
        folder.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let cluster = network.at_the_server(|| {
        let settings = [
            format!("listen_addresses={SERVER}"),
            format!("hba_file={}", rules.display()),
            "fsync=off".to_owned(),
        ];
        Cluster::start(bin, &settings.each_ref().map(String::as_str))
    });
    let url = format!(
        "postgres://farebox@{SERVER}/{}?sslmode=disable",
        cluster.database()
    );
    let full = std::env::var_os("FAREBOX_FULL").is_some();
    let lengths: Vec<u64> = if full {
        (0..50).map(|cut| 3 + cut * 17 % 28).collect()
    } else {
        vec![3, 5, 8, 12]
    };
    network.at_the_gateway(|| run(cuts(&network, &url, &lengths, full)));
}

async fn cuts(network: &Network, url: &str, lengths: &[u64], full: bool) {
    let ledger = Arc::new(postgres(url, OpenMode::Serve).await.unwrap());
    ledger.recover(at(1)).await.unwrap();
    for number in 1..=3 {
        ledger
            .perform(new_key(number, 10 + number, Some("500")))
            .await
            .unwrap();
    }
    let (numbers, ends) = (
        Arc::new(AtomicU64::new(1_000)),
        Arc::new(AtomicBool::new(false)),
    );
    let loads: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            tokio::spawn(load(
                Arc::clone(&ledger),
                Arc::clone(&numbers),
                Arc::clone(&ends),
            ))
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for seconds in lengths {
        tokio::time::sleep(Duration::from_millis(700)).await;
        network.cut();
        tokio::time::sleep(Duration::from_secs(*seconds)).await;
        network.mend();
        let mended = Instant::now();
        loop {
            let request = numbers.fetch_add(1, Ordering::Relaxed);
            let asked = ledger.find_key(key(1)).await.is_ok();
            let new = new_hold(1, request, "0.01");
            let hold = Hold::open(Arc::clone(&ledger) as SharedLedger, new).await;
            if let (true, Ok(hold)) = (asked, hold) {
                let finish = finish(request, 1_000);
                hold.settle(finish.bill, finish.at).await.unwrap();
                break;
            }
            assert!(mended.elapsed() < PATIENCE, "{:?}", ledger.stats());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!(
            "a cut of {seconds} s: selling {:.1} s after it",
            mended.elapsed().as_secs_f64()
        );
        slowest = slowest.max(mended.elapsed());
    }
    ends.store(true, Ordering::Relaxed);
    let (mut charged, mut unknown) = (lengths.len() as u64, 0);
    for load in loads {
        let (some, others) = load.await.unwrap();
        (charged, unknown) = (charged + some, unknown + others);
    }
    let begun = Instant::now();
    while !ledger.open_holds(None, 1).await.unwrap().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", ledger.stats());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let keys = ledger.find_keys(&[key(1), key(2), key(3)]).await.unwrap();
    let spent = Amount::checked_sum(keys.iter().map(|key| key.customer.account.spent));
    let each = |requests: u64| usd("0.001").picos() * i64::try_from(requests).unwrap();
    let spent = spent.unwrap().picos();
    assert_eq!(
        spent,
        each(charged + unknown),
        "every request is charged once"
    );
    sound(&*ledger).await;
    println!(
        "{charged} charged, {unknown} by the resolver; the slowest sold {slowest:?} after its cut"
    );
    assert!(slowest < BOUND || !full, "{slowest:?}");
}
