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
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/selling.md");
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
