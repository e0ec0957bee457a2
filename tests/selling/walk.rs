//! The walk with curl in `docs/selling.md`: every command in it is run, and every balance that it names is read.

use farebox_ledger::TokenRole;
use serde_json::Value;

use super::{Program, gateway, text};
use crate::support::skip;

/// What the page shows, in order: a command, or the balance that a sentence names.
enum Step {
    Run(String),
    Balance(String),
}

fn steps() -> Vec<Step> {
    let page = std::path::Path::new(crate::support::HOME).join("docs/selling.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, walk) = page.split_once("### A walk with curl").unwrap();
    let walk = walk.split("\n## ").next().unwrap();
    let (mut found, mut inside) = (Vec::new(), false);
    for line in walk.lines() {
        match line.strip_prefix("```") {
            Some(kind) => inside = kind == "curl",
            None if inside => found.push(Step::Run(line.to_owned())),
            None => {
                if let Some(rest) = line.strip_prefix("Balance: ") {
                    let balance = rest.split(". ").next().unwrap();
                    found.push(Step::Balance(balance.trim_end_matches('.').to_owned()));
                }
            }
        }
    }
    found
}

#[tokio::test]
async fn the_walk_with_curl_is_true() {
    if !skip::installed("curl", "the walk with curl") {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let (mut customer, mut key) = (String::new(), String::new());
    let (mut commands, mut balances) = (0, 0);
    for step in steps() {
        match step {
            Step::Run(line) => {
                let mut command = std::process::Command::new("bash");
                command
                    .args(["-euc", &line])
                    .env("API", &program.base)
                    .env("TOKEN", &program.secret)
                    .env("CUSTOMER", &customer)
                    .env("KEY", &key)
                    .env("no_proxy", "*");
                let output = tokio::task::spawn_blocking(move || command.output());
                let output = output.await.unwrap().unwrap();
                let said = String::from_utf8(output.stdout).unwrap();
                assert!(output.status.success(), "{line}: {said}");
                // The answers of a loop stand one behind the other.
                for answer in serde_json::Deserializer::from_str(&said).into_iter::<Value>() {
                    let answer = answer.unwrap();
                    assert!(answer.get("error").is_none(), "{line}: {answer}");
                    if customer.is_empty() {
                        customer = text(&answer, "id");
                        key = text(&answer["key"], "id");
                        assert!(text(&answer["key"], "secret").starts_with("sk-fb-"));
                    }
                    commands += 1;
                }
            }
            Step::Balance(told) => {
                let shown = program.get(&format!("/customers/{customer}")).await.json();
                assert_eq!(shown["balance"], told.as_str());
                balances += 1;
            }
        }
    }
    assert_eq!((commands, balances), (11, 3));
    let entries = program
        .get(&format!("/customers/{customer}/entries"))
        .await
        .json();
    let amounts = |entry: &Value| text(entry, "amount");
    let amounts: Vec<String> = entries["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(amounts)
        .collect();
    assert_eq!(amounts, ["-5.00", "-5.00", "10.00"], "each once");
    assert_eq!(
        program.get(&format!("/keys/{key}")).await.json()["status"],
        "blocked"
    );
}
