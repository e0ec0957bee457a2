//! The walk of `docs/selling.md`: every command in it is run, and every balance that it names is read.

use std::fs;
use std::path::Path;

use crate::process::cli::Cli;

/// What the page shows, in order: a command, whether it is refused, or the balance that a sentence names.
enum Line {
    Command(Vec<String>, bool),
    Balance(String),
}

fn walk() -> Vec<Line> {
    let page = Path::new(crate::support::HOME).join("docs/selling.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, walk) = page.split_once("## A walk").unwrap();
    let (walk, _) = walk.split_once("\n## ").unwrap();
    let (mut lines, mut block) = (Vec::new(), None);
    for line in walk.lines() {
        match line.strip_prefix("```") {
            Some("") => block = None,
            Some(kind) => block = Some(kind == "sh-refused"),
            None => match (block, line.strip_prefix("farebox ")) {
                (Some(refused), Some(command)) => {
                    let words = command.split_whitespace().map(str::to_owned);
                    lines.push(Line::Command(words.collect(), refused));
                }
                (Some(_), None) => panic!("not a command: {line}"),
                (None, _) => {
                    let told = line.split("The balance is ").nth(1);
                    let told = told.map(|told| told.split(['.', ' ']).take(2).collect::<Vec<_>>());
                    lines.extend(told.map(|told| Line::Balance(told.join("."))));
                }
            },
        }
    }
    lines
}

#[tokio::test]
async fn the_walk_through_money_that_goes_back_is_true() {
    let cli = Cli::new();
    let (mut commands, mut balances) = (0, 0);
    for line in walk() {
        match line {
            Line::Command(words, refused) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let output = cli.run(&words);
                let expected = i32::from(refused);
                assert_eq!(
                    output.status.code(),
                    Some(expected),
                    "{words:?}: {output:?}"
                );
                if refused {
                    let why = String::from_utf8_lossy(&output.stderr).into_owned();
                    assert!(why.contains("there is no payment"), "{why}");
                }
                commands += 1;
            }
            Line::Balance(told) => {
                let keys = cli.json(&["keys", "list", "--json"]);
                assert_eq!(keys["keys"][0]["balance"], told.as_str());
                balances += 1;
            }
        }
    }
    assert!(commands > 8 && balances == 3, "{commands} {balances}");
    // Each difference was booked once.
    let entries = cli.json(&["ledger", "entries", "--json"]);
    let entries = entries["entries"].as_array().unwrap();
    let amounts: Vec<&str> = entries
        .iter()
        .filter(|entry| entry["kind"] == "reversal")
        .map(|entry| entry["amount"].as_str().unwrap())
        .collect();
    assert_eq!(amounts, ["-5.00", "-5.00", "5.00"]);
}

#[tokio::test]
async fn what_was_told_wrongly_is_refused_with_what_to_type() {
    let cli = Cli::new();
    for (arguments, says) in [
        (
            &[
                "customers",
                "reverse",
                "p",
                "-1",
                "--kind",
                "refund",
                "--reference",
                "r",
            ][..],
            "like 12.50",
        ),
        (
            &[
                "customers",
                "reverse",
                "p",
                "0",
                "--kind",
                "refund",
                "--reference",
                "r",
            ],
            "more than zero",
        ),
        (
            &[
                "customers",
                "reverse",
                "p",
                "1",
                "--kind",
                "chargeback",
                "--reference",
                "r",
            ],
            "dispute-won",
        ),
        (
            &[
                "customers",
                "unapplied",
                "assign",
                "p",
                "--to",
                "k_7f3q9d2xw1",
            ],
            "c_7f3q9d2xw1",
        ),
    ] {
        let output = cli.run(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(says), "{arguments:?}: {told}");
    }
}

/// What was paid, in the words of the API: a payment in euros buys credit in dollars, and what goes back is told in euros.
#[tokio::test]
async fn a_top_up_says_what_was_paid() {
    let cli = Cli::new();
    let made = cli.json(&["keys", "create", "--new-ledger", "--label", "Ada", "--json"]);
    let (key, customer) = (
        made["id"].as_str().unwrap(),
        made["customer"].as_str().unwrap(),
    );
    let paid = [
        "--currency",
        "EUR",
        "--gross",
        "11.90",
        "--tax",
        "1.90",
        "--json",
    ];
    for (of, id, reference) in [("customers", customer, "pi_1"), ("keys", key, "pi_2")] {
        let command = [of, "top-up", id, "10", "--reference", reference];
        let booked = cli.json(&[&command[..], &paid].concat());
        let payment = &booked["payment"];
        assert_eq!(
            (&payment["currency"], &payment["gross"], &payment["tax"]),
            (&"EUR".into(), &"11.90".into(), &"1.90".into())
        );
        assert_eq!(
            (&payment["amount"], &payment["status"]),
            (&"10.00".into(), &"booked".into())
        );
    }
    let reverse = ["customers", "reverse", "pi_1", "5.95", "--kind", "refund"];
    let back = cli.json(&[&reverse[..], &["--reference", "re_1", "--json"]].concat());
    assert_eq!(back["entry"]["amount"], "-5.00");
    assert_eq!(back["customer"]["balance"], "15.00");
    for (wrong, says) in [
        (&["--currency", "EUR"][..], "--gross"),
        (&["--gross", "3"], "--currency"),
        (&["--tax", "1"], "--gross"),
        (
            &["--currency", "eur", "--gross", "3"],
            "three capital letters",
        ),
        (&["--currency", "EUR", "--gross", "0"], "more than zero"),
        (
            &["--currency", "EUR", "--gross", "3", "--tax", "3"],
            "less than its gross",
        ),
    ] {
        let command = ["customers", "top-up", customer, "1", "--reference", "x"];
        let output = cli.run(&[&command[..], wrong].concat());
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && why.contains(says), "{why}");
    }
    let found = cli.run(&["ledger", "verify"]);
    assert!(found.status.success(), "{found:?}");
}

/// The documents are those of the API: codes once, and a lot's state in a word.
#[tokio::test]
async fn lots_of_vouchers_are_made_listed_and_voided() {
    let cli = Cli::new();
    cli.json(&["keys", "create", "--new-ledger", "--label", "Ada", "--json"]);
    let create = ["vouchers", "create", "--count", "2", "--amount", "5"];
    let made = cli.json(&[&create[..], &["--json"]].concat());
    assert_eq!(made["codes"].as_array().unwrap().len(), 2);
    let lot = made["id"].as_str().unwrap();
    let listed = cli.json(&["vouchers", "list", "--json"]);
    let listed = &listed["lots"][0];
    assert_eq!(
        (&listed["id"], &listed["status"], listed.get("codes")),
        (&lot.into(), &"good".into(), None)
    );
    let voided = cli.json(&["vouchers", "void", lot, "--json"]);
    assert_eq!(voided["status"], "void");
    let past = cli.run(&[&create[..], &["--expires", "2020-01-01"]].concat());
    let why = String::from_utf8_lossy(&past.stderr).into_owned();
    assert!(
        !past.status.success() && why.contains("in the past"),
        "{why}"
    );
    let shown = cli.run(&["vouchers", "create", "--count", "1", "--amount", "1"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\nFB-"), "{shown}");
    let found = cli.run(&["ledger", "verify"]);
    assert!(found.status.success(), "{found:?}");
}
