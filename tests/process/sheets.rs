//! Results as spreadsheets: which begin with a byte-order mark, and that none has a cell that is executed.

use super::cli::Cli;

/// A label that a spreadsheet reads as a formula: its sign is in full width.
const FORMULA: &str = "＝SUM(A1)";

/// What a command prints.
fn printed(cli: &Cli, arguments: &[&str]) -> String {
    let output = cli.run(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A ledger with a customer of one payment, a token and a cap: the ids of customer and key.
fn with_a_customer() -> (Cli, String, String) {
    let cli = Cli::new();
    let create = ["keys", "create", "--new-ledger", "--label", FORMULA];
    let paid = ["--balance", "10", "--reference", "pi_1", "--json"];
    let made = cli.json(&[&create[..], &paid].concat());
    let id = |name: &str| made[name].as_str().unwrap().to_owned();
    let (customer, key) = (id("customer"), id("id"));
    let named = ["customers", "set", &customer, "--name", FORMULA, "--json"];
    cli.json(&named);
    cli.json(&["caps", "set", &key, "day", "2", "--json"]);
    let role = ["--role", "read", "--json"];
    cli.json(&[&["tokens", "create", FORMULA][..], &role].concat());
    (cli, customer, key)
}

#[test]
fn every_spreadsheet_begins_with_a_byte_order_mark_where_asked_and_nowhere_else() {
    let (cli, customer, key) = with_a_customer();
    let sheets: [&[&str]; 11] = [
        &["keys", "list"],
        &["keys", "show", &key],
        &["customers", "list"],
        &["customers", "show", &customer],
        &["customers", "receipts", &customer],
        &["customers", "statement", &customer],
        &["caps", "list", &key],
        &["tokens", "list"],
        &["vouchers", "list"],
        &["ledger", "entries"],
        &["models"],
    ];
    for sheet in sheets {
        let plain = printed(&cli, &[sheet, &["--format", "csv"]].concat());
        assert!(
            !plain.contains('\u{feff}') && plain.contains("\r\n"),
            "{plain}"
        );
        let marked = printed(&cli, &[sheet, &["--format", "csv", "--bom"]].concat());
        let text = marked.strip_prefix('\u{feff}').expect(sheet[0]);
        assert!(!text.contains('\u{feff}'), "once: {marked}");
        assert_eq!(text.lines().next(), plain.lines().next(), "{sheet:?}");
        // What is no spreadsheet has none.
        for format in ["table", "json"] {
            let other = printed(&cli, &[sheet, &["--format", format, "--bom"]].concat());
            assert!(!other.contains('\u{feff}'), "{sheet:?} as {format}");
        }
    }
    // What was made of the rows of another spreadsheet.
    for (mark, more) in [("", &[][..]), ("\u{feff}", &["--bom"])] {
        let rows = cli.folder.path().join("keys.csv");
        std::fs::write(&rows, format!("label\n{FORMULA}\n")).unwrap();
        let rows = rows.display().to_string();
        let create = ["keys", "create", "--from", &rows, "--format", "csv"];
        let made = printed(&cli, &[&create[..], more].concat());
        assert!(made.starts_with(&format!("{mark}line,")), "{made}");
    }
}

#[test]
fn a_formula_in_full_width_is_no_formula_in_any_spreadsheet() {
    let (cli, customer, key) = with_a_customer();
    let sheets: [&[&str]; 5] = [
        &["keys", "list"],
        &["keys", "show", &key],
        &["customers", "list"],
        &["customers", "show", &customer],
        &["tokens", "list"],
    ];
    for sheet in sheets {
        let text = printed(&cli, &[sheet, &["--format", "csv"]].concat());
        assert!(
            text.contains(&format!("\"'{FORMULA}\"")),
            "{sheet:?}: {text}"
        );
        assert_eq!(
            text.matches(FORMULA).count(),
            text.matches(&format!("\"'{FORMULA}\"")).count(),
            "{sheet:?}: {text}"
        );
    }
}
