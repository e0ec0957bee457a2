//! The rows of a primary and its standby: either is frozen.

use farebox_ledger::{LedgerAddress, OpenMode, Opening};
use tokio::task::block_in_place;

use super::{Asked, Row, not_tested};
use crate::support::load::{self, UPSTREAM_KEY};
use crate::support::pair::Pair;
use crate::support::process::Served;
use crate::support::talking;
use crate::support::upstream::ScriptedUpstream;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_frozen_primary_and_a_frozen_standby_are_told() {
    let Some(pair) = block_in_place(Pair::start) else {
        return not_tested("a frozen primary or standby: PostgreSQL is not installed");
    };
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, _) = load::place(&upstream);
    let url = pair.url("postgres");
    let address: LedgerAddress = url.parse().unwrap();
    let ledger = address.create(&Opening::new(OpenMode::Write)).await;
    let ledger = ledger.unwrap();
    let key = load::key(&*ledger, "100").await;
    ledger.close();
    drop(ledger);
    let environment = [UPSTREAM_KEY, ("FAREBOX_LEDGER", url.as_str())];
    let served = block_in_place(|| Served::start_with(folder.path(), &[], &environment));
    let asked = Asked::start(&served, &key).await;

    let row = Row::new(
        "the standby is frozen",
        "standby_missing",
        &["commits wait for a standby", "b (streaming)"],
        "wake or start the standby",
    );
    let standby = pair.standby();
    let (freeze, wake) = (
        || pair.signal(standby, "STOP"),
        || pair.signal(standby, "CONT"),
    );
    asked.goes_through(&row, freeze, wake).await;

    let row = Row::new(
        "the primary is frozen",
        "ledger_unreachable",
        &["cannot be reached", "answer"],
        "frozen",
    );
    let primary = pair.primary();
    let (freeze, wake) = (
        || pair.signal(primary, "STOP"),
        || pair.signal(primary, "CONT"),
    );
    asked.goes_through(&row, freeze, wake).await;
}
