//! Customers by command: made, given keys, funded, moved, suspended, closed and forgotten.

use super::cli::Cli;

fn text(document: &serde_json::Value, name: &str) -> String {
    document[name].as_str().unwrap_or_default().to_owned()
}

/// The complaint of a command that refuses.
fn fails(cli: &Cli, arguments: &[&str]) -> String {
    let output = cli.run(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A ledger with one customer of 5 USD; returns its id.
fn with_customer(cli: &Cli) -> String {
    cli.json(&["keys", "create", "--new-ledger", "--label", "x", "--json"]);
    let made = cli.json(&[
        "customers",
        "create",
        "--label",
        "Class 9b",
        "--external-id",
        "crm-9",
        "--name",
        "Ada L.",
        "--metadata",
        "plan=gold",
        "--json",
    ]);
    let id = text(&made, "id");
    assert!(id.starts_with("c_"), "{made}");
    cli.json(&[
        "customers",
        "top-up",
        &id,
        "5",
        "--reference",
        "inv-9",
        "--json",
    ]);
    id
}

#[test]
fn a_customer_has_several_keys_and_one_purse() {
    let cli = Cli::new();
    let id = with_customer(&cli);
    let key = |label: &str, more: &[&str]| {
        let args = [
            "keys",
            "create",
            "--customer",
            &id,
            "--label",
            label,
            "--json",
        ];
        let made = cli.json(&[&args, more].concat());
        assert_eq!(made["customer"], id.as_str());
        text(&made, "id")
    };
    let (owner, member) = (key("teacher", &["--owner"]), key("pupil", &[]));
    let listed = cli.json(&["keys", "list", "--customer", &id, "--json"]);
    let keys = listed["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2);
    assert!(keys.iter().all(|key| key["balance"] == "5.00"));
    // A key's top-up is its customer's.
    cli.json(&[
        "keys",
        "top-up",
        &member,
        "1",
        "--reference",
        "inv-10",
        "--json",
    ]);
    let shown = cli.json(&["customers", "show", &id, "--json"]);
    assert_eq!(
        (&shown["balance"], &shown["personal"]["name"]),
        (&"6.00".into(), &"Ada L.".into())
    );
    assert_eq!(shown["keys"][0]["owner"], true);
    assert_eq!(
        (
            &shown["keys"][1]["key_spent"],
            &shown["keys"][1]["key_held"]
        ),
        (&"0.00".into(), &"0.00".into())
    );
    let entries = cli.json(&["ledger", "entries", "--customer", &id, "--json"]);
    let named: Vec<_> = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["key"].clone())
        .collect();
    assert_eq!(named, [serde_json::Value::Null, serde_json::Value::Null]);
    // Caps of either.
    for scope in [&id, &member] {
        let capped = cli.json(&["caps", "set", scope, "day", "2", "--json"]);
        assert_eq!(capped["caps"][0]["limit"], "2.00");
    }
    let link = cli.json(&["customers", "link", &id, "--json"]);
    assert_eq!(link["key"], owner.as_str());
    let found = cli.json(&["customers", "list", "--external-id", "crm-9", "--json"]);
    assert_eq!(found["customers"][0]["id"], id.as_str());
    cli.json(&["customers", "erase", &id, "--json"]);
    let shown = cli.json(&["customers", "show", &id, "--json"]);
    assert!(shown["personal"].is_null());
    let report = cli.json(&["ledger", "verify", "--json"]);
    assert_eq!(report["faults"].as_array().unwrap().len(), 0, "{report}");
}

#[test]
fn money_moves_and_a_customer_is_closed_only_when_it_is_empty() {
    let cli = Cli::new();
    let id = with_customer(&cli);
    let old = text(
        &cli.json(&["keys", "list", "--json"])["keys"][0],
        "customer",
    );
    let moved = |amount: &str, reference: &str| {
        [
            "customers",
            "move",
            &id,
            &old,
            amount,
            "--reference",
            reference,
            "--json",
        ]
        .map(str::to_owned)
    };
    let run = |args: &[String]| cli.json(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let done = run(&moved("2", "one purse"));
    assert_eq!(
        (&done["from"]["balance"], &done["into"]["balance"]),
        (&"3.00".into(), &"2.00".into())
    );
    assert_eq!(run(&moved("2", "one purse")), done, "once");
    for (args, why) in [
        (moved("9", "too much").to_vec(), "has 3.00 USD available"),
        (moved("1", "one purse").to_vec(), "already used"),
        (
            ["customers", "close", &id].map(str::to_owned).to_vec(),
            "3.00 USD left",
        ),
        (
            ["customers", "show", "c_zzzzzzzzzz"]
                .map(str::to_owned)
                .to_vec(),
            "there is no customer",
        ),
        (
            ["customers", "show", "k_zzzzzzzzzz"]
                .map(str::to_owned)
                .to_vec(),
            "is not a customer id",
        ),
        (
            [
                "customers",
                "create",
                "--label",
                "y",
                "--external-id",
                "crm-9",
            ]
            .map(str::to_owned)
            .to_vec(),
            "belongs to customer",
        ),
        (
            [
                "keys",
                "create",
                "--customer",
                "c_zzzzzzzzzz",
                "--label",
                "z",
            ]
            .map(str::to_owned)
            .to_vec(),
            "there is no customer",
        ),
        (
            ["caps", "set", &id, "day", "0"].map(str::to_owned).to_vec(),
            "more than zero",
        ),
        (
            ["caps", "set", &id, "day", "-1"]
                .map(str::to_owned)
                .to_vec(),
            "without a sign",
        ),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let refused = fails(&cli, &args);
        assert!(refused.contains(why), "{args:?}: {refused}");
    }
    cli.json(&["customers", "suspend", &id, "--json"]);
    assert_eq!(
        cli.json(&["customers", "resume", &id, "--json"])["status"],
        "active"
    );
    let closed = cli.json(&[
        "customers",
        "close",
        &id,
        "--write-off",
        "off-9",
        "--reason",
        "moved away",
        "--json",
    ]);
    assert_eq!(
        (&closed["status"], &closed["balance"]),
        (&"closed".into(), &"0.00".into())
    );
    let refused = fails(
        &cli,
        &["keys", "create", "--customer", &id, "--label", "late"],
    );
    assert!(refused.contains("is closed"), "{refused}");
}

#[test]
fn revoking_an_owner_tells_what_it_made() {
    let cli = Cli::new();
    let id = with_customer(&cli);
    let owner = cli.json(&[
        "keys",
        "create",
        "--customer",
        &id,
        "--label",
        "o",
        "--owner",
        "--json",
    ]);
    let owner = text(&owner, "id");
    assert_eq!(
        cli.json(&["keys", "revoke", &owner, "--with-made", "--json"])["status"],
        "revoked"
    );
}

/// What `customers erase` says besides its result.
fn erased(cli: &Cli, id: &str) -> Vec<String> {
    let output = cli.run(&["customers", "erase", id]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    said.lines().map(str::to_owned).collect()
}

/// Programs of before wrote names into labels, and the chain repeats labels.
#[test]
fn erasing_names_where_a_name_still_stands_and_how_it_is_replaced() {
    let cli = Cli::new();
    cli.json(&["keys", "create", "--new-ledger", "--label", "x", "--json"]);
    let name = "Zoë \"Z\" Söhne";
    let make = |label: &str| {
        let create = ["customers", "create", "--label", label, "--name", name];
        text(&cli.json(&[&create[..], &["--json"]].concat()), "id")
    };
    let key = |customer: &str, label: &str| {
        let create = ["keys", "create", "--customer", customer, "--label", label];
        text(&cli.json(&[&create[..], &["--json"]].concat()), "id")
    };
    let old = make("Shop: ZOË \"Z\" SÖHNE, Berlin");
    let (named, other) = (key(&old, "Laptop of zoë \"z\" söhne"), key(&old, "laptop"));
    let said = erased(&cli, &old);
    assert_eq!(
        said,
        [
            format!(
                "its label has the name still; replace it: farebox customers set {old} --label LABEL"
            ),
            format!(
                "the label of key {named} has it; replace it: farebox keys set {named} --label LABEL"
            ),
            "acts of its chain that have it, which nothing changes: 2".to_owned(),
        ],
        "and nothing of {other}"
    );
    // What is offered is what helps.
    for (nouns, id) in [("customers", &old), ("keys", &named)] {
        cli.json(&[nouns, "set", id, "--label", "buyer-1", "--json"]);
    }
    let shown = cli.json(&["customers", "show", &old, "--json"]).to_string();
    let shown = shown.to_lowercase();
    assert!(
        !shown.contains("zoë") && !shown.contains("söhne"),
        "{shown}"
    );
    // A customer of the new shop has its name nowhere else.
    let new = make("shop-buyer-7");
    key(&new, "first");
    assert_eq!(erased(&cli, &new), Vec::<String>::new());
    // There is no name to look for any more.
    assert_eq!(erased(&cli, &old), Vec::<String>::new());
    let report = cli.json(&["ledger", "verify", "--json"]);
    assert_eq!(report["faults"].as_array().unwrap().len(), 0, "{report}");
}
