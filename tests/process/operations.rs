//! What operators do while a gateway runs: corrections, refunds, rotations, settings, copies, anchors. Uses the real commands.

use std::path::Path;

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{Durability, Ledger, OpenMode, anchor};
use serde_json::{Value, json};

use crate::process::cli::{Cli, actor};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, TestKey, chat, talking};

fn created(cli: &Cli, usd: &str) -> (String, String) {
    let made = cli.json(&[
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "acme",
        "--balance",
        usd,
        "--reference",
        "first",
        "--json",
    ]);
    (
        made["id"].as_str().unwrap().to_owned(),
        made["secret"].as_str().unwrap().to_owned(),
    )
}

async fn acts(ledger: &dyn Ledger) -> Vec<(String, String)> {
    let audit = ledger.audit(None, None, 100).await.unwrap();
    audit
        .into_iter()
        .rev()
        .map(|record| (record.act, record.actor))
        .collect()
}

fn opened(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path, OpenMode::ReadOnly, Durability::Prompt).unwrap()
}

fn says(cli: &Cli, arguments: &[&str]) -> (i32, String) {
    let output = cli.run(arguments);
    (
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[tokio::test]
async fn a_correction_goes_both_ways_once_and_never_below_what_is_available() {
    let cli = Cli::new();
    let (id, _) = created(&cli, "5");
    let less = [
        "keys",
        "adjust",
        &id,
        "-1.50",
        "--reason",
        "test credit",
        "--reference",
        "fix-1",
        "--json",
    ];
    let posted = cli.json(&less);
    let entry = &posted["entry"];
    assert_eq!(
        (entry["kind"].as_str(), entry["amount"].as_str()),
        (Some("adjust"), Some("-1.50"))
    );
    assert_eq!(
        (entry["reason"].as_str(), entry["actor"].as_str()),
        (Some("test credit"), Some(&*actor()))
    );
    assert_eq!(
        cli.json(&less)["entry"],
        *entry,
        "the same reference is applied once"
    );
    let more = cli.json(&[
        "keys",
        "adjust",
        &id,
        "+2",
        "--reason",
        "gift",
        "--reference",
        "fix-2",
        "--json",
    ]);
    assert_eq!(more["key"]["balance"], "5.50");
    assert_eq!(
        cli.exit(&[
            "keys",
            "adjust",
            &id,
            "-5.51",
            "--reason",
            "all",
            "--reference",
            "fix-3"
        ]),
        1
    );
    assert_eq!(
        cli.exit(&[
            "keys",
            "adjust",
            &id,
            "0",
            "--reason",
            "none",
            "--reference",
            "fix-4"
        ]),
        2
    );
    assert_eq!(
        cli.exit(&["keys", "adjust", &id, "1", "--reference", "fix-5"]),
        2,
        "a reason is required"
    );
    assert_eq!(
        cli.exit(&[
            "keys",
            "adjust",
            &id,
            "-1.50",
            "--reason",
            "other",
            "--reference",
            "fix-1"
        ]),
        1
    );
    let ledger = opened(&cli.folder.path().join("farebox.db"));
    let expected = ["create", "adjust", "adjust"];
    assert_eq!(
        acts(&ledger).await,
        expected.map(|act| (act.to_owned(), actor()))
    );
}

#[tokio::test]
async fn refunds_of_a_charge_never_exceed_it() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let request = answer.header("x-request-id").unwrap();
    let charge = answer.header("x-farebox-cost").unwrap();
    assert_eq!(charge, "0.000045", "10 input at $3 and 1 output at $15");
    let cli = Cli::on(&gateway.ledger_path());
    let refund = |amount, reference| {
        says(
            &cli,
            &[
                "keys",
                "refund",
                request,
                amount,
                "--reason",
                "bad answer",
                "--reference",
                reference,
            ],
        )
    };
    assert_eq!(refund("0.000020", "back-1").0, 0);
    assert_eq!(refund("0.000020", "back-1").0, 0, "the same again");
    let (exit, said) = refund("0.000026", "back-2");
    assert!(
        exit == 1
            && said.contains(&format!(
                "at most 0.000025 USD of request {request} can be refunded"
            )),
        "{exit} {said}"
    );
    assert_eq!(refund("0.000025", "back-3").0, 0);
    assert_eq!(refund("0.000001", "back-4").0, 1);
    assert_eq!(
        gateway
            .account(&key)
            .await
            .customer
            .account
            .available()
            .to_string(),
        "5.00",
        "the gateway sees it at once"
    );
    let unknown = "req_0000000000000000000000000a";
    assert_eq!(
        says(
            &cli,
            &[
                "keys",
                "refund",
                unknown,
                "1",
                "--reason",
                "x",
                "--reference",
                "y"
            ]
        )
        .0,
        1
    );
    let entries = cli.json(&["ledger", "entries", "--key", &key.id.to_string(), "--json"]);
    let last = entries["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (last["kind"].as_str(), last["request_id"].as_str()),
        (Some("refund"), Some(request))
    );
}

#[tokio::test]
async fn a_rotated_key_keeps_its_money_and_its_old_secret_for_the_overlap() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let cli = Cli::on(&gateway.ledger_path());
    for (overlap, old_works) in [
        (None, 401),
        (Some("0"), 401),
        (Some("1h"), 200),
        (Some("24h"), 200),
    ] {
        let old = gateway.key("1.00").await;
        let id = old.id.to_string();
        let options = overlap.map(|time| ["--overlap", time]);
        let arguments = ["keys", "rotate", &id, "--json"]
            .into_iter()
            .chain(options.into_iter().flatten());
        let made = cli.json(&arguments.collect::<Vec<_>>());
        assert_eq!(
            (made["id"].as_str(), made["balance"].as_str()),
            (Some(&*id), Some("1.00"))
        );
        let new = TestKey {
            id: old.id,
            secret: made["secret"].as_str().unwrap().to_owned(),
        };
        assert_ne!(new.secret, old.secret);
        assert_eq!(
            gateway.get("/v1/models", &new).await.status,
            200,
            "{overlap:?}"
        );
        assert_eq!(
            gateway.get("/v1/models", &old).await.status,
            old_works,
            "{overlap:?}"
        );
    }
    assert_eq!(cli.exit(&["keys", "rotate", "k_0000000000"]), 1);
    assert_eq!(
        cli.exit(&["keys", "rotate", "k_0000000000", "--overlap", "2h"]),
        2
    );
}

#[tokio::test]
async fn settings_are_set_one_by_one_and_hold_at_once() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let cli = Cli::on(&gateway.ledger_path());
    let key = gateway.key("1.00").await;
    let id = key.id.to_string();
    let set = |options: &[&str]| cli.json(&[&["keys", "set", &id, "--json"], options].concat());
    let model = async |slug| {
        gateway
            .post("/v1/chat/completions", &key, &chat(slug, false))
            .await
            .status
    };
    let limited = set(&[
        "--models",
        "test-blind",
        "--label",
        "Ada",
        "--concurrency",
        "3",
        "--rate",
        "100",
    ]);
    let seen =
        ["label", "models", "concurrency", "rate", "expires_at"].map(|name| limited[name].clone());
    assert_eq!(
        seen,
        [
            json!("Ada"),
            json!(["test-blind"]),
            json!(3),
            json!(100),
            Value::Null
        ]
    );
    assert_eq!(
        (model("test-model").await, model("test-blind").await),
        (403, 200)
    );
    let opened = set(&["--models", "all", "--expires", "2127-01-31T00:30:00+01:00"]);
    assert_eq!(
        (opened["expires_at"].as_str(), opened["label"].as_str()),
        (Some("2127-01-30T23:30:00.000Z"), Some("Ada"))
    );
    assert_eq!(
        cli.exit(&["keys", "set", &id, "--expires", "2020-01-01"]),
        1,
        "past"
    );
    assert_eq!(model("test-model").await, 200);
    let again = set(&[
        "--expires",
        "never",
        "--rate",
        "none",
        "--concurrency",
        "none",
    ]);
    assert_eq!(
        (again["status"].as_str(), &again["rate"], &again["models"]),
        (Some("active"), &Value::Null, &Value::Null)
    );
    assert_eq!(model("test-model").await, 200);
    assert_eq!(cli.exit(&["keys", "set", &id]), 2, "nothing to set");
    for wrong in [
        ["--rate", "many"],
        ["--rate", "0"],
        ["--concurrency", "0"],
        ["--models", ""],
        ["--models", "test-model,"],
    ] {
        let (code, said) = says(&cli, &[&["keys", "set", &id], &wrong[..]].concat());
        assert!(code == 2 && said.contains("write "), "{wrong:?}: {said}");
    }
    let written = acts(&*gateway.ledger).await;
    assert_eq!(
        written
            .iter()
            .filter(|(act, by)| act == "set" && *by == actor())
            .count(),
        3
    );
}

#[tokio::test]
async fn a_copy_is_made_while_serving_and_is_sound() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let cli = Cli::on(&gateway.ledger_path());
    let file = cli.folder.path().join("copy.db");
    let copy = file.to_str().unwrap().to_owned();
    let traffic = async {
        for _ in 0..50 {
            assert_eq!(
                gateway
                    .post("/v1/chat/completions", &key, &chat("test-model", false))
                    .await
                    .status,
                200
            );
        }
    };
    let commands = Cli::on(&gateway.ledger_path());
    let backup =
        tokio::task::spawn_blocking(move || commands.json(&["ledger", "backup", &copy, "--json"]));
    let ((), made) = tokio::join!(traffic, backup);
    assert_eq!(made.unwrap()["verified"]["faults"], json!([]));
    let report = Cli::on(&file).json(&["ledger", "verify", "--json"]);
    assert_eq!(report["faults"], json!([]));
    let refused = says(&cli, &["ledger", "backup", file.to_str().unwrap()]);
    assert!(
        refused.0 == 1 && refused.1.contains("already"),
        "{refused:?}"
    );
    assert_eq!(
        cli.exit(&["ledger", "backup", "/dev/null/copy.db"]),
        1,
        "a folder that cannot be made"
    );
    let left: Vec<_> = std::fs::read_dir(cli.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains(".part")),
        "{left:?}"
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn anchors_are_written_at_stop_and_tell_an_older_copy_from_the_ledger() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::anchored(&upstream).await;
    let key = gateway.key("5.00").await;
    let cli = Cli::on(&gateway.ledger_path());
    let older = cli.folder.path().join("older.db");
    assert_eq!(cli.exit(&["ledger", "backup", older.to_str().unwrap()]), 0);
    assert_eq!(
        gateway
            .post("/v1/chat/completions", &key, &chat("test-model", false))
            .await
            .status,
        200
    );
    let (ledger, anchors, folder) = gateway.stop_and_keep().await;
    assert_eq!(anchor::read(&anchors).unwrap().last().unwrap().entries(), 2);
    let verify = |file: &Path| {
        Cli::on(file).json_whatever(&[
            "ledger",
            "verify",
            "--anchors",
            anchors.to_str().unwrap(),
            "--json",
        ])
    };
    let sound = verify(&ledger);
    assert_eq!(
        (sound["faults"].clone(), sound["anchors"].clone()),
        (json!([]), json!(1))
    );
    let restored = verify(&older);
    let faults = restored["faults"].as_array().unwrap();
    assert!(
        faults.iter().any(
            |fault| fault.as_str().unwrap().contains("entry 2 of customer")
                && fault.as_str().unwrap().contains("is missing")
        ),
        "{restored}"
    );
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--anchors",
        anchors.to_str().unwrap(),
    ];
    let (exit, said) = says(&Cli::on(&older), &serve);
    assert!(exit == 1 && said.contains("older copy"), "{exit} {said}");
    drop(folder);
}

#[tokio::test]
async fn the_export_recomputes_and_no_spreadsheet_executes_it() {
    let upstream = ScriptedUpstream::start(talking("PONG PONG PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let cli = Cli::on(&gateway.ledger_path());
    let id = key.id.to_string();
    assert_eq!(
        says(
            &cli,
            &[
                "keys",
                "top-up",
                &id,
                "1",
                "--reference",
                "=cmd|' /C calc'!A0"
            ]
        )
        .0,
        0
    );
    let csv = String::from_utf8(cli.run(&["ledger", "entries", "--format", "csv"]).stdout).unwrap();
    assert!(
        csv.contains("input 10 x 0.000003; output 3 x 0.000015"),
        "{csv}"
    );
    assert!(csv.contains("\"'=cmd|' /C calc'!A0\""), "{csv}");
    let entries = cli.json(&["ledger", "entries", "--json"]);
    let charge = &entries["entries"][1];
    let picos = |text: &Value| {
        farebox_ledger::Amount::from_usd_str(text.as_str().unwrap())
            .unwrap()
            .picos()
    };
    let lines = charge["lines"].as_array().unwrap();
    let sum: i64 = lines
        .iter()
        .map(|line| line["count"].as_i64().unwrap() * picos(&line["rate"]))
        .sum();
    assert_eq!(sum, picos(&charge["loss"]) - picos(&charge["amount"]));
}
