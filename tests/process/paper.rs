//! Paper by command: receipts, corrections and statements of a real ledger, in every format.

use std::collections::BTreeMap;
use std::path::Path;

use farebox::config::Shop;
use farebox::paper::{PaperDocument, PaperKind, document_json, document_page, documents_csv};
use farebox_ledger::{Amount, CustomerId, PersonalData, Timestamp, text};
use proptest::prelude::*;
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

fn output_of(cli: &Cli, arguments: &[&str]) -> String {
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
    let csv = output_of(
        &cli,
        &["customers", "receipts", &customer, "--format", "csv"],
    );
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert!(
        csv.contains("\"Zoë <b>\"\"Söhne\"\"</b> & 株式会社\",\"'=1+1 Street\""),
        "{csv}"
    );
    let page_of = |number: &Value| {
        let one = ["customers", "receipts", &customer, "--number"];
        let html = [&one[..], &[number.as_str().unwrap(), "--format", "html"]].concat();
        output_of(&cli, &html)
    };
    // What was paid before the customer had a name is addressed to nobody.
    let before = page_of(&first);
    assert!(
        before.contains("pi_1") && !before.contains("Zoë") && !before.contains("pi_2"),
        "{before}"
    );
    let page = page_of(&third);
    for part in [
        "Zoë &lt;b&gt;&quot;Söhne&quot;&lt;/b&gt; &amp; 株式会社",
        "=1+1 Street",
        "pi_2",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script"), "{page}");
    assert_eq!(
        cli.exit(&["customers", "receipts", &customer, "--number", "nonsense"]),
        1
    );

    // Erased is erased, and the numbers stay.
    cli.json(&["customers", "erase", &customer, "--json"]);
    let page = page_of(&third);
    assert!(page.contains("pi_2") && !page.contains("Zoë"), "{page}");
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
    let csv = output_of(
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

/// A document for this name and address.
fn addressed(name: &str, address: &str) -> PaperDocument {
    let customer = CustomerId::from_random(7);
    let personal = PersonalData {
        name: Some(name.to_owned()),
        address: Some(address.to_owned()),
        metadata: BTreeMap::default(),
        salt: [0; 32],
    };
    PaperDocument {
        customer,
        personal: Some(personal),
        number: format!("{customer}-1-1"),
        kind: PaperKind::Receipt,
        at: Timestamp::from_millis(1_795_312_800_000),
        payment: "pi_1".to_owned(),
        currency: "EUR".to_owned(),
        gross: 119_000,
        tax: 19_000,
        credit: Amount::from_usd_str("10").unwrap(),
        plan: None,
        corrects: None,
        reason: None,
    }
}

/// What a browser shows of an element's text.
fn shown(page: &str, name: &str) -> String {
    let field = format!("<dt>{name}</dt><dd>");
    let text = page
        .split(&field)
        .nth(1)
        .unwrap_or_else(|| panic!("{page}"));
    let text = text.split("</dd>").next().unwrap();
    assert!(!text.contains(['<', '>', '"']), "{text}");
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

/// Every character that a person can have in a name: the books refuse those that nobody can see.
fn any_name() -> impl Strategy<Value = String> {
    let plain = any::<char>().prop_filter("seen", |letter| !text::is_unseen(*letter));
    let letter = prop_oneof![
        plain,
        proptest::sample::select("<>&\"'=+-@|%,;`\\/{}".chars().collect::<Vec<_>>())
    ];
    proptest::collection::vec(letter, 0..40).prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    /// Name and address come through every format as they are, and nothing of them is a tag, a cell or a formula.
    #[test]
    fn a_name_of_any_characters_is_only_text(name in any_name(), address in any_name()) {
        let document = addressed(&name, &address);
        let shop = Shop::default();
        let page = document_page(&document, &shop);
        prop_assert_eq!(&shown(&page, "Name"), &name);
        prop_assert_eq!(&shown(&page, "Address"), &address);
        let other = addressed("x", "y");
        let tags = |page: &str| page.matches('<').count();
        prop_assert_eq!(tags(&page), tags(&document_page(&other, &shop)));

        let text = document_json(&document, &shop).to_string();
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!((&read["name"], &read["address"]), (&name.as_str().into(), &address.as_str().into()));

        let sheet = documents_csv(&[document]);
        let mut reader = csv::Reader::from_reader(sheet.as_bytes());
        let titles = reader.headers().unwrap().clone();
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        prop_assert_eq!(rows.len(), 1);
        for (title, typed) in [("name", &name), ("address", &address)] {
            let place = titles.iter().position(|known| known == title).unwrap();
            let cell = &rows[0][place];
            let is_formula = typed.trim_start().starts_with(['=', '+', '-', '@', '|', '%']);
            let guarded = format!("'{typed}");
            prop_assert!(cell == typed.as_str() || is_formula && cell == guarded, "{} {:?}", cell, typed);
            prop_assert!(!cell.trim_start().starts_with(['=', '+', '@', '|', '%']), "{}", cell);
        }
    }
}

/// The page on selling shows the commands as they are.
#[test]
fn the_page_on_selling_names_the_commands() {
    let page = Path::new(crate::support::HOME).join("docs/selling.md");
    let page = std::fs::read_to_string(page).unwrap();
    for command in ["farebox customers receipts", "farebox customers statement"] {
        assert!(page.contains(command), "{command}");
    }
}
