//! The console on a fleet: a ledger that gateways share in a database, whose primary is lost, and comes back as it was.

use std::sync::Arc;

use farebox_ledger::{LedgerAddress, OpenMode, Opening, Perform};

use super::beside::{Served, farebox, secret};
use super::console::*;
use crate::pair::Pair;

#[test]
fn nodes_shows_the_gateways_and_every_server_through_a_failover() {
    let Some(program) = has_tmux().then(farebox).flatten() else {
        return;
    };
    let Some(mut pair) = Pair::start() else {
        return crate::skip::skip("the console on a fleet: PostgreSQL is not installed");
    };
    let url = pair.url("postgres");
    let address: LedgerAddress = url.parse().unwrap();
    run(async {
        let ledger = address
            .create(&Opening::new(OpenMode::Write))
            .await
            .unwrap();
        for number in 1..=3 {
            ledger.perform(new_key(number)).await.unwrap();
        }
        ledger.close();
    });
    let console = Console::of(url.clone());
    let gateways: Vec<Arc<Served>> = (0..2)
        .map(|_| Arc::new(Served::start(&program, &console)))
        .collect();
    console.start_with(&format!("--admin http://{}", gateways[0].admin));
    console.wait_for("Keys · 3");
    console.press(&["0"]);
    console.wait_for("Nodes · 2 gateways");
    console.wait_for("standby on timeline 1");
    // The states are longer than 80 columns have room for.
    let page = console.wait_for("primary on timeline 1 with 1 st");
    assert!(page.contains("SERVER") && page.contains("SILENT"), "{page}");
    // The primary loses its power. Its standby is promoted, and the old one boots again as it was.
    let old = pair.primary();
    pair.kill(old);
    pair.promote();
    pair.run_server(old);
    console.wait_for("stale primary on timeline 1: fence it");
    // It is built anew, as the promoted server's standby.
    pair.build_standbys();
    console.wait_for("primary on timeline 2 with 1 st");
    console.wait_for("standby on timeline 2");
    // The console itself has followed: what it books is there, once.
    console.press(&["1", "G"]);
    console.wait_for("> k_0000000001");
    console.review_a_top_up("5", "inv-1");
    console.press(&["y"]);
    console.wait_for("✓ applied");
    let booked = "SELECT count(*) FROM entries WHERE reference = 'inv-1'";
    assert_eq!(pair.sql(booked), "1");
    for gateway in &gateways {
        let begun = std::time::Instant::now();
        while gateway.chat(&secret(2)) != 200 {
            assert!(begun.elapsed() < PATIENCE, "it sells again");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
