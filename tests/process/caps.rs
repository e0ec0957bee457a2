//! `farebox caps …`, as scripts use it.

use serde_json::{Value, json};

use super::cli::Cli;

fn members(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn json_of(cli: &Cli, arguments: &[&str]) -> Value {
    cli.json(&[&["--json"], arguments].concat())
}

#[test]
fn caps_are_set_listed_and_cleared() {
    let cli = Cli::new();
    let made = json_of(
        &cli,
        &[
            "keys",
            "create",
            "--label",
            "Ada",
            "--balance",
            "5",
            "--reference",
            "c-1",
            "--new-ledger",
        ],
    );
    let id = made["id"].as_str().unwrap();
    let shown = json_of(&cli, &["caps", "set", id, "day", "2"]);
    assert_eq!(
        members(&shown["caps"][0]),
        [
            "interval",
            "model",
            "limit",
            "made_by",
            "seller_limit",
            "owner_limit",
            "spent",
            "held",
            "room",
            "resets_at"
        ]
    );
    assert_eq!(
        (&shown["caps"][0]["interval"], &shown["caps"][0]["room"]),
        (&json!("day"), &json!("2.00"))
    );
    let cap = &shown["caps"][0];
    assert_eq!(
        (&cap["made_by"], &cap["seller_limit"], &cap["owner_limit"]),
        (&json!("seller"), &json!("2.00"), &json!(null))
    );
    let both = json_of(&cli, &["caps", "set", id, "total", "3", "--model", "small"]);
    assert_eq!(both["caps"].as_array().unwrap().len(), 2);
    assert!(both["caps"][1]["resets_at"].is_null());
    let key = json_of(&cli, &["keys", "show", id]);
    assert_eq!(
        (&key["caps"], &key["available"]),
        (&both["caps"], &json!("2.00"))
    );
    for (wrong, hint) in [
        (&["caps", "set", id, "week", "1"][..], "does not fit beside"),
        (
            &["caps", "set", id, "hour", "1"],
            "day, week, month or total",
        ),
        (&["caps", "set", id, "day", "0"], "more than zero"),
        (&["caps", "set", id, "day", "-1"], ""),
        (&["caps", "clear", id, "month"], "no cap of interval month"),
        (
            &["caps", "set", "k_0000000000", "day", "1"],
            "there is no key",
        ),
    ] {
        let output = cli.run(wrong);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && text.contains(hint),
            "{wrong:?}: {text}"
        );
    }
    let left = json_of(&cli, &["caps", "clear", id, "day"]);
    assert_eq!(left["caps"].as_array().unwrap().len(), 1);
    json_of(&cli, &["caps", "clear", id, "total", "--model", "small"]);
    assert_eq!(json_of(&cli, &["caps", "list", id])["caps"], json!([]));
}
