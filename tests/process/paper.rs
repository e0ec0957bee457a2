//! Paper by command: receipts, corrections and statements of a real ledger, in every format.

use std::path::Path;

use serde_json::Value;

use crate::process::cli::Cli;

/// A ledger in which Ada paid twice, and half of the first payment went back.
fn paid() -> (Cli, String) {
    let cli = Cli::new();
    let name = "Zoë <b>\"Söhne\"</b> & 株式会社";
    let create = ["keys", "create", "--new-ledger", "--label", "Ada", "--json"];
    cli.json(&[&create[..], &["--balance", "10", "--reference", "pi_1"]].concat());
    let customer = cli.json(&["customers", "list", "--json"])["customers"][0]["id"].clone();
    let customer = customer.as_str().unwrap().to_owned();
    let named = ["customers", "set", &customer, "--name", name];
    cli.json(&[&named[..], &["--address", "=1+1 Street", "--json"]].concat());
    let back = ["customers", "reverse", "pi_1", "5", "--kind", "refund"];
    for reference in ["re_1", "re_1", "re_2"] {
        cli.json(&[&back[..], &["--reference", reference, "--json"]].concat());
    }
    let again = ["customers", "top-up", &customer, "2.50"];
    cli.json(&[&again[..], &["--reference", "pi_2", "--json"]].concat());
    (cli, customer)
}

fn text(cli: &Cli, arguments: &[&str]) -> String {
    let output = cli.run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_payment_has_its_receipt_and_what_went_back_a_correction() {
    let (cli, customer) = paid();
    let found = cli.json(&["customers", "receipts", &customer, "--json"]);
    let found = found["receipts"].as_array().unwrap();
    let shown: Vec<[&Value; 4]> = found
        .iter()
        .map(|of| [&of["number"], &of["gross"], &of["credit"], &of["corrects"]])
        .collect();
    let number = |n: u32| Value::from(format!("{customer}-1-{n}"));
    let [first, second, third] = [1, 2, 3].map(number);
    let (null, ten, five, two) = (Value::Null, "10.00".into(), "-5.00".into(), "2.50".into());
    assert_eq!(
        shown,
        [
            [&first, &ten, &ten, &null],
            [&second, &five, &five, &first],
            [&third, &two, &two, &null],
        ]
    );
    let csv = text(
        &cli,
        &["customers", "receipts", &customer, "--format", "csv"],
    );
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let one = ["customers", "receipts", &customer, "--number"];
    let html = [&one[..], &[first.as_str().unwrap(), "--format", "html"]].concat();
    let page = text(&cli, &html);
    for part in [
        "Zoë &lt;b&gt;&quot;Söhne&quot;&lt;/b&gt; &amp; 株式会社",
        "=1+1 Street",
        "pi_1",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(
        !page.contains("pi_2") && !page.contains("<script"),
        "{page}"
    );
    let none = [&one[..], &["nonsense"]].concat();
    assert_eq!(cli.exit(&none), 1);

    // Erased is erased, and the numbers stay.
    cli.json(&["customers", "erase", &customer, "--json"]);
    let page = text(&cli, &html);
    assert!(page.contains("pi_1") && !page.contains("Zoë"), "{page}");
}

#[test]
fn a_statement_adds_up_and_the_verifier_says_so() {
    let (cli, customer) = paid();
    let take = ["customers", "adjust", &customer, "-1", "--reason", "slip"];
    cli.json(&[&take[..], &["--reference", "adj", "--json"]].concat());
    let found = cli.json(&["customers", "statement", &customer, "--json"]);
    for (figure, usd) in [
        ("opening", "0.00"),
        ("paid", "12.50"),
        ("reversed", "5.00"),
        ("adjusted", "-1.00"),
        ("charged", "0.00"),
        ("closing", "6.50"),
    ] {
        assert_eq!(found[figure], usd, "{figure}: {found}");
    }
    assert_eq!(found["final"], false);
    let csv = text(
        &cli,
        &["customers", "statement", &customer, "--format", "csv"],
    );
    assert!(csv.contains("closing,,,6.50"), "{csv}");
    let month = ["customers", "statement", &customer, "--month"];
    let earlier = cli.json(&[&month[..], &["2020-01", "--json"]].concat());
    assert_eq!(
        (&earlier["opening"], &earlier["closing"]),
        (&"0.00".into(), &"0.00".into())
    );
    assert_eq!(earlier["final"], true);
    let later = cli.json(&[&month[..], &["2999-01", "--json"]].concat());
    assert_eq!(
        (&later["opening"], &later["closing"]),
        (&"6.50".into(), &"6.50".into())
    );
    assert_eq!(cli.exit(&[&month[..], &["November"]].concat()), 2);
    assert_eq!(cli.exit(&["ledger", "verify"]), 0);
    assert_eq!(cli.exit(&["keys", "list", "--format", "html"]), 2);
}

/// The page on selling shows the commands as they are.
#[test]
fn the_page_on_selling_names_the_commands() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/selling.md");
    let page = std::fs::read_to_string(page).unwrap();
    for command in ["farebox customers receipts", "farebox customers statement"] {
        assert!(page.contains(command), "{command}");
    }
}
