//! The month-end report, run exactly as the manual prints it: it lists what the provider's own bill contains.

use std::process::Command;

use farebox_ledger::{Amount, MarginBy, MarginOrder, MarginQuery, Timestamp};

use super::owed::{Fate, billed, one_request, reply, routes};
use crate::support::load::Dice;
use crate::support::skip::skip;
use crate::support::upstream::{Script, ScriptedUpstream};
use crate::support::{CATALOG, Gateway};

/// The block of the chapter, for all days there are.
fn commands() -> String {
    let manual = include_str!("../../docs/operations.md");
    let (_, chapter) = manual.split_once("### The month's end\n").unwrap();
    let (_, block) = chapter.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    assert!(
        block.contains("--since 2026-10-01 --until 2026-11-01"),
        "{block}"
    );
    block
        .replace("2026-10-01", "2000-01-01")
        .replace("2026-11-01", "2999-01-01")
}

/// Runs the block in an empty folder, with `fb` for this gateway's environment; returns the rows it prints.
fn run(ledger: &std::path::Path) -> Option<Vec<Vec<String>>> {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        skip("the month's end of the manual: sqlite3 is missing");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!("set -eu\nfb() {{ \"$FAREBOX\" \"$@\"; }}\n{}", commands());
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script])
        .current_dir(folder.path())
        .env_remove("FAREBOX_ROUTES");
    shell
        .env("FAREBOX", env!("CARGO_BIN_EXE_farebox"))
        .env("FAREBOX_LEDGER", ledger);
    let ran = shell.output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(
        ran.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(folder.path().join("october.csv").exists());
    let rows = said.lines().filter(|line| !line.starts_with('-'));
    Some(
        rows.map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_months_end_of_the_manual_lists_what_the_ledger_has() {
    let one = ScriptedUpstream::start(Script::by(|seen, _| reply(seen, true))).await;
    let two = ScriptedUpstream::start(Script::by(|seen, _| reply(seen, false))).await;
    let gateway = Gateway::fresh(CATALOG, &routes(&one.base_url(), &two.base_url())).await;
    let (key, mut dice) = (gateway.key("100").await, Dice::new(3));
    for fate in [
        Fate::Honest,
        Fate::Honest,
        Fate::Silent,
        Fate::Absurd,
        Fate::Breaks,
        Fate::Fails,
        Fate::Leaves,
    ] {
        one_request(&gateway, &key, fate, "", &mut dice).await;
    }
    gateway.settled().await;
    let to = Timestamp::from_millis(farebox::clock::now().millis() + 1);
    let query = MarginQuery {
        by: MarginBy::Target,
        from: Timestamp::default(),
        to,
        order: MarginOrder::Name,
        reverse: false,
        limit: 9,
    };
    let sums = gateway.ledger.margins(query).await.unwrap();
    let path = gateway.ledger_path();
    let Some(rows) = tokio::task::spawn_blocking(move || run(&path))
        .await
        .unwrap()
    else {
        return;
    };
    let (head, rows) = rows.split_first().unwrap();
    let columns = [
        "day",
        "target",
        "requests",
        "input",
        "cache_read",
        "cache_write",
        "output",
        "charged",
        "loss",
        "exposure",
        "cost",
    ];
    assert_eq!(head, &columns);
    // The journal books what failed tries owe with the target that answered in the end, so only sums over all are the same.
    let number = |row: &[String], name: &str| -> f64 {
        row[columns.iter().position(|column| *column == name).unwrap()]
            .parse()
            .unwrap()
    };
    let sum = |name: &str| rows.iter().map(|row| number(row, name)).sum::<f64>();
    let usd = |amount: Amount| amount.picos() as f64 / 1e12;
    for (name, amount) in [
        ("charged", sums.total.charge),
        ("loss", sums.total.loss),
        ("exposure", sums.total.exposure),
        ("cost", sums.total.cost),
    ] {
        assert!(
            (sum(name) - usd(amount)).abs() < 1e-9,
            "{name}: {} and {amount}",
            sum(name)
        );
    }
    assert_eq!((sum("requests"), rows.len()), (7.0, 2), "{rows:?}");
    assert_eq!(
        rows.iter().map(|row| &*row[1]).collect::<Vec<_>>(),
        ["one/m", "two/m"]
    );
    // As the chapter compares: what the provider reports is between what was charged or lost, and that with the exposure.
    let reported: i64 = [(&one, true), (&two, false)]
        .iter()
        .flat_map(|(upstream, first)| {
            upstream
                .requests()
                .into_iter()
                .map(|seen| billed(&seen, *first))
        })
        .sum();
    let (reported, paid) = (reported as f64 / 1e12, sum("charged") + sum("loss"));
    let most = paid + sum("exposure");
    assert!(
        paid * 0.95 < reported && reported < most * 1.05,
        "{reported}: {paid} to {most}"
    );
    assert!(sum("input") > 0.0 && sum("output") > 0.0);
}
