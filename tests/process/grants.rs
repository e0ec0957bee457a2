//! Grants by command: given, listed, shown and taken back, and what is read of them beside a customer.

use super::cli::Cli;

fn text(document: &serde_json::Value, name: &str) -> String {
    document[name].as_str().unwrap_or_default().to_owned()
}

fn output(cli: &Cli, arguments: &[&str]) -> (bool, String) {
    let output = cli.run(arguments);
    let all = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(all).unwrap())
}

#[test]
fn grants_are_given_listed_and_taken_back() {
    let cli = Cli::new();
    cli.json(&["keys", "create", "--new-ledger", "--label", "x", "--json"]);
    let made = cli.json(&["customers", "create", "--label", "Class 9b", "--json"]);
    let id = text(&made, "id");
    assert!(
        output(&cli, &["grants", "list"])
            .1
            .contains("There are no grants. Give one")
    );
    let spring = [
        "customers",
        "grant",
        &id,
        "5",
        "--reference",
        "spring",
        "--expires-at",
        "2099-01-31",
        "--priority",
        "0",
    ];
    let given = cli.json(&[&spring[..], &["--json"]].concat());
    assert_eq!(
        (text(&given, "status"), text(&given, "remaining")),
        ("active".into(), "5.00".into())
    );
    let (_, again) = output(&cli, &spring);
    assert!(
        again.contains("This reference was applied before") && again.contains("Class 9b"),
        "{again}"
    );
    let paid = [
        "customers",
        "grant",
        &id,
        "2",
        "--reference",
        "paid",
        "--kind",
        "paid",
        "--expires",
        "2098-01-31",
    ];
    assert!(output(&cli, &paid).0);
    let later = [
        "customers",
        "grant",
        &id,
        "1",
        "--reference",
        "later",
        "--effective-at",
        "2098-01-31",
    ];
    assert!(output(&cli, &later).0);
    let sorry = [
        "customers",
        "adjust",
        &id,
        "+0.50",
        "--reason",
        "a slow day",
        "--reference",
        "sorry",
    ];
    assert!(output(&cli, &sorry).0);
    // A customer's page has them in the order of use.
    let (_, page) = output(&cli, &["customers", "show", &id]);
    let at = |words: &str| {
        page.find(words)
            .unwrap_or_else(|| panic!("{words}: {page}"))
    };
    let places = [
        at("5.00 of it until 1 February 2099, promotional"),
        at("2.00 of it until 1 February 2098, paid"),
        at("0.50 of it without an end, promotional"),
    ];
    assert!(places.is_sorted(), "{page}");
    let listed = cli.json(&["grants", "list", "--customer", &id, "--json"]);
    let names = listed["grants"].as_array().unwrap().iter();
    // A correction's name is its entry's.
    let mut names: Vec<_> = names.map(|grant| text(grant, "reference")).collect();
    names.sort();
    assert_eq!(names, ["", "later", "paid", "spring"]);
    let (_, pending) = output(
        &cli,
        &["grants", "list", "--status", "pending", "--format", "csv"],
    );
    assert!(
        pending.lines().count() == 2 && pending.contains("pending"),
        "{pending}"
    );
    let grant = text(&given, "id");
    assert_eq!(cli.json(&["grants", "show", &grant, "--json"]), given);
    let voided = cli.json(&["grants", "void", &grant, "--json"]);
    assert_eq!(
        (text(&voided, "status"), text(&voided, "remaining")),
        ("voided".into(), "0.00".into())
    );
    let shown = cli.json(&["customers", "show", &id, "--json"]);
    assert_eq!(text(&shown, "available"), "2.50");
    for (wrong, hint) in [
        (
            &[
                "customers",
                "grant",
                &id,
                "5",
                "--reference",
                "w",
                "--models",
                "nonesuch",
            ][..],
            "does not publish `nonesuch`",
        ),
        (
            &[
                "customers",
                "grant",
                &id,
                "5",
                "--reference",
                "w",
                "--kind",
                "free",
            ],
            "promotional or paid",
        ),
        (
            &[
                "customers",
                "grant",
                &id,
                "5",
                "--reference",
                "w",
                "--kind",
                "paid",
            ],
            "book it as a top-up",
        ),
        (
            &[
                "customers",
                "grant",
                &id,
                "5",
                "--reference",
                "w",
                "--priority",
                "101",
            ],
            "between 0 and 100",
        ),
        (
            &["customers", "grant", &id, "0", "--reference", "w"],
            "more than zero",
        ),
        (
            &[
                "customers",
                "grant",
                &id,
                "6",
                "--reference",
                "spring",
                "--expires-at",
                "2099-01-31",
            ],
            "spring",
        ),
        (
            &["grants", "show", "g_0000000000"],
            "there is no grant g_0000000000",
        ),
        (
            &["grants", "list", "--status", "gone"],
            "write pending, active",
        ),
    ] {
        let (done, said) = output(&cli, wrong);
        assert!(!done && said.contains(hint), "{wrong:?}: {said}");
    }
    let lot = cli.json(&[
        "vouchers", "create", "--count", "1", "--amount", "1", "--json",
    ]);
    assert_eq!(text(&lot, "kind"), "promotional");
    let lot = cli.json(&[
        "vouchers", "create", "--count", "1", "--amount", "1", "--kind", "paid", "--json",
    ]);
    assert_eq!(text(&lot, "kind"), "paid");
    assert!(output(&cli, &["ledger", "verify"]).0);
}
