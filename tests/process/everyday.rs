//! Small commands of every day: what shells complete, what a container asks, many keys at once,
//! the settings of a unit, and the state of a gateway.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::process::{Served, farebox, json as document};
use crate::support::skip::installed;

fn succeed(folder: &Path, arguments: &[&str]) {
    let output = farebox(folder, arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

#[test]
fn shells_complete_commands_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let made = farebox(folder.path(), &["completions", shell])
            .output()
            .unwrap();
        assert!(made.status.success(), "{shell}");
        let script = String::from_utf8(made.stdout).unwrap();
        for word in ["top-up", "reference"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        fs::write(folder.path().join(shell), script).unwrap();
    }
    let asked = r#"source ./bash
        COMP_WORDS=(farebox keys top) COMP_CWORD=2
        _farebox farebox top keys
        echo "${COMPREPLY[@]}"
        COMP_WORDS=(farebox keys top-up --ref) COMP_CWORD=3
        _farebox farebox --ref top-up
        echo "${COMPREPLY[@]}""#;
    let bash = Command::new("bash")
        .args(["--norc", "-c", asked])
        .current_dir(folder.path())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(bash.stdout).unwrap(),
        "top-up\n--reference\n"
    );
}

#[test]
fn a_container_asks_whether_the_gateway_serves() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(folder, &["init"]);
    let health = |admin: &str| {
        let output = farebox(folder, &["health", "--admin-listen", admin])
            .output()
            .unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), said)
    };
    let served = Served::start(folder, &[]);
    let admin = served.admin.strip_prefix("http://").unwrap().to_owned();
    assert_eq!(health(&admin), (Some(0), "ready\n".to_owned()));
    drop(served);
    let (code, said) = health(&admin);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no gateway answers at"), "{said}");
    let refused = farebox(folder, &["health", "--json"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "it prints no document");
}

/// Runs `keys create --from -` with this document: the exit code, what it printed, and what it said.
fn create_from(folder: &Path, rows: &str, more: &[&str]) -> (i32, String, String) {
    create_many(folder, "keys", rows, more)
}

/// The same of keys or customers.
fn create_many(folder: &Path, what: &str, rows: &str, more: &[&str]) -> (i32, String, String) {
    let mut arguments = vec![what, "create", "--from", "-"];
    arguments.extend(more);
    let mut creating = farebox(folder, &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = creating.stdin.take().unwrap();
    stdin.write_all(rows.as_bytes()).unwrap();
    drop(stdin);
    let output = creating.wait_with_output().unwrap();
    let [printed, said] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code().unwrap(), printed, said)
}

#[test]
fn many_keys_come_from_a_spreadsheet() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = "\u{feff}label,balance,reference,models,expires,rate,concurrency\n\
                Ann,10.00,inv-1,,,,\n\
                \"Bob, Inc.\",5,inv-2,\"sim-chat,sim-text\",2099-01-31,7,4\n\
                -x,,,all,,none,none\n";
    let (code, printed, said) = create_from(folder, rows, &["--new-ledger", "--json"]);
    assert_eq!(code, 0, "{said}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let [ann, bob, third] = report["rows"].as_array().unwrap().as_slice() else {
        panic!("{report:#}")
    };
    assert_eq!(
        (&ann["line"], &ann["balance"]),
        (&json!(2), &json!("10.00"))
    );
    assert_eq!(
        [
            &bob["label"],
            &bob["models"],
            &bob["rate"],
            &bob["concurrency"]
        ],
        [
            &json!("Bob, Inc."),
            &json!(["sim-chat", "sim-text"]),
            &json!(7),
            &json!(4)
        ]
    );
    assert_eq!(
        (&third["label"], &third["models"]),
        (&json!("-x"), &json!(null))
    );
    // The same file again: who has paid is not paid again, and the report says it row by row.
    let (code, printed, said) = create_from(folder, rows, &["--format", "csv"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("2 of 3 rows created no key"), "{said}");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "line,key,label,balance,secret,result");
    assert!(
        lines[1].contains("inv-1") && lines[1].contains("was already used"),
        "{printed}"
    );
    assert!(
        lines[3].starts_with("4,k_") && lines[3].ends_with(",created"),
        "{printed}"
    );
    let keys = document(folder, &["keys", "list"]);
    assert_eq!(keys["keys"].as_array().unwrap().len(), 4);
}

/// Rows are committed together, and each is still its own: one that fails takes no other with it. How fast is in the output.
#[test]
fn two_thousand_keys_take_a_moment_and_each_has_its_own_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let count = 2_000;
    let rows: String = (0..count)
        .map(|number| {
            // One in a hundred pays with the reference of the row before it.
            let reference = number - usize::from(number % 100 == 99);
            format!("c{number},1.00,inv-{reference}\n")
        })
        .collect();
    let rows = format!("label,balance,reference\n{rows}");
    let begun = std::time::Instant::now();
    let (code, printed, said) = create_from(folder, &rows, &["--new-ledger", "--json"]);
    let took = begun.elapsed();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("20 of 2000 rows created no key"), "{said}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    for (number, row) in report["rows"].as_array().unwrap().iter().enumerate() {
        assert_eq!(row["line"], json!(number + 2), "in the order of the file");
        let error = row["error"].as_str().unwrap_or_default();
        assert_eq!(error.contains("already used"), number % 100 == 99, "{row}");
    }
    println!("{:.0} rows a second", f64::from(2_000) / took.as_secs_f64());
    if !installed(
        "strace",
        "how often a document of many rows waits for the disk",
    ) {
        return;
    }
    fs::write(folder.join("more.csv"), rows.replace("inv-", "more-")).unwrap();
    let mut counted = Command::new("strace");
    counted.current_dir(folder).env_clear();
    counted.args([
        "-f",
        "-qq",
        "-c",
        "-e",
        "trace=fsync,fdatasync",
        "-o",
        "waits",
    ]);
    counted.args([
        env!("CARGO_BIN_EXE_farebox"),
        "keys",
        "create",
        "--from",
        "more.csv",
    ]);
    let output = counted.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let waits = fs::read_to_string(folder.join("waits")).unwrap();
    let total = waits.lines().find(|line| line.ends_with(" total"));
    let calls = total.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    let calls: u32 = calls.unwrap_or_else(|| panic!("{waits}"));
    assert!(calls < 500, "each row has waited for the disk: {waits}");
}

/// Customers first, then keys that name them: one purse for a class.
#[test]
fn many_customers_come_from_a_spreadsheet_and_their_keys_from_another() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(folder, &["keys", "create", "--new-ledger", "--label", "x"]);
    let rows = "label,external-id,rate,low-balance,name,metadata,metadata\n\
                Class 9b,crm-9,5,2.50,Ada L.,plan=gold,year=9\n\
                Class 9c,crm-10,none,,,,\n";
    let (code, printed, said) = create_many(folder, "customers", rows, &["--json"]);
    assert_eq!(code, 0, "{said}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let [first, second] = report["rows"].as_array().unwrap().as_slice() else {
        panic!("{report:#}")
    };
    assert_eq!(
        [
            &first["line"],
            &first["rate"],
            &first["low_balance"],
            &second["external_id"]
        ],
        [&json!(2), &json!(5), &json!("2.50"), &json!("crm-10")]
    );
    let id = first["id"].as_str().unwrap();
    let shown = document(folder, &["customers", "show", id]);
    assert_eq!(
        shown["personal"]["metadata"],
        json!({ "plan": "gold", "year": "9" })
    );
    let (code, printed, said) = create_many(folder, "customers", rows, &["--format", "csv"]);
    assert!(
        code == 1 && said.contains("2 of 2 rows created no customer"),
        "an external id is unique: {said}"
    );
    assert!(
        printed.starts_with("line,customer,label,external id,result"),
        "{printed}"
    );
    let slip = "label,external-id,low-balance\nA,a,-1\n,b,\n";
    let (code, _, said) = create_many(folder, "customers", slip, &[]);
    assert!(
        code == 2 && said.contains("line 2: ") && said.contains("line 3: "),
        "{said}"
    );
    let rows = format!(
        "label,customer,balance,reference\nteacher,{id},50,inv-1\npupil,{id},,\n\
                        lost,c_zzzzzzzzzz,,\n"
    );
    let (code, printed, said) = create_from(folder, &rows, &["--json"]);
    assert!(code == 1 && said.contains("1 of 3 rows"), "{said}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let pupil = &report["rows"][1];
    assert_eq!(
        (&pupil["customer"], &pupil["balance"]),
        (&json!(id), &json!("50.00"))
    );
    let lost = report["rows"][2]["error"].as_str().unwrap();
    assert!(lost.contains("there is no customer"), "{lost}");
    // Whatever it is called, it is found.
    for name in [id, "crm-9", "Class 9b"] {
        let found = document(folder, &["show", name]);
        assert_eq!(found["id"], json!(id), "{name}: {found}");
        assert_eq!(found["keys"].as_array().unwrap().len(), 2, "{found}");
    }
    let both = document(folder, &["show", "Class"]);
    assert_eq!(both["customers"].as_array().unwrap().len(), 2, "{both}");
    assert_eq!(document(folder, &["show", "x"])["label"], json!("x"));
}

/// One slip creates nothing, and every slip is named with its line.
#[test]
fn a_slip_in_a_spreadsheet_creates_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (rows, words) in [
        (
            "label,color\nAnn,red\n",
            &["`color` is none; there are label, customer, balance"][..],
        ),
        (
            "label,balance,reference\nAnn,ten,inv-1\n,,\nBob,5,\nCy,1.00,inv-2\n",
            &[
                "line 2: invalid value 'ten'",
                "line 3: the following required",
                "line 4: the following required arguments were not provided: --reference",
            ],
        ),
        (
            "label,expires\nAnn,2020-01-01\n",
            &["line 2: the key would have expired"],
        ),
        ("label\nAnn,Bob\n", &["line 2: "]),
    ] {
        let (code, printed, said) = create_from(folder, rows, &["--new-ledger"]);
        assert_eq!((code, printed.as_str()), (2, ""), "{rows}: {said}");
        for words in words {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!folder.join("farebox.db").exists(), "{rows}");
    }
}

/// A typed command finds what the unit has, without a shell's help; what the shell has set stays.
#[test]
fn a_command_takes_the_units_environment() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let unit = folder.join("farebox.env");
    fs::write(
        &unit,
        "# the unit's\nFAREBOX_LEDGER='books.db'\nFAREBOX_OPERATOR=unit\n",
    )
    .unwrap();
    let create = [
        "--env-file",
        "farebox.env",
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "t",
    ];
    succeed(folder, &create);
    assert!(folder.join("books.db").exists() && !folder.join("farebox.db").exists());
    let list = ["keys", "list", "--env-file=farebox.env"];
    let other = farebox(folder, &list)
        .env("FAREBOX_LEDGER", "other.db")
        .output()
        .unwrap();
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(said.contains("other.db"), "{said}");
    for (content, words) in [
        (
            Some("A=1\nexport SECRET=hush\n"),
            "line 2 is not NAME=value",
        ),
        (None, "the file does not exist"),
    ] {
        fs::remove_file(&unit).unwrap_or_default();
        if let Some(content) = content {
            fs::write(&unit, content).unwrap();
        }
        let refused = farebox(folder, &list).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && !said.contains("hush"), "{said}");
    }
}

#[test]
fn the_state_of_a_gateway_fits_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(folder, &["init"]);
    let served = Served::start(folder, &[]);
    let admin = served.admin.strip_prefix("http://").unwrap().to_owned();
    let made = [
        "keys",
        "create",
        "--label",
        "t",
        "--balance",
        "5.00",
        "--reference",
        "inv-1",
    ];
    succeed(folder, &made);
    let asked = ["status", "--admin-listen", &admin];
    let status = farebox(folder, &asked).output().unwrap();
    let shown = String::from_utf8(status.stdout).unwrap();
    for words in [
        ": ready since ",
        "0 requests at providers; paid 5.00, spent 0.00",
        "sim-chat",
        "requests  errors  running",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // A file with a mistake is an alert with its remedy.
    fs::write(folder.join("catalog.toml"), "nonsense").unwrap();
    let told = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let status = farebox(folder, &asked).output().unwrap();
        let shown = String::from_utf8(status.stdout).unwrap();
        shown.contains("newer files have mistakes") && shown.contains("\n! ")
    });
    assert!(told, "the rejected file is not told");
    let whole = document(folder, &asked);
    assert_eq!(whole["ledger"]["totals"]["credit"], "5.00");
    drop(served);
    let away = farebox(folder, &asked).output().unwrap();
    let said = String::from_utf8(away.stderr).unwrap();
    assert!(
        away.status.code() == Some(1) && said.contains("no gateway answers at"),
        "{said}"
    );
}
