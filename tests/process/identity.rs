//! The ledger's identity: files that are moved, deleted or restored while the real programs run.
//!
//! No payment is confirmed in a file that is not the ledger, nothing is sold from one. `planted.rs` has the names that lead elsewhere.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::process::{Served, client, document_at, farebox, json};

/// How long to wait until the gateway notices. It looks every half second, and the machine may be busy.
pub(super) const NOTICED: Duration = Duration::from_secs(60);

pub(super) const FILES: [&str; 3] = ["farebox.db", "farebox.db-wal", "farebox.db-shm"];

/// The shipped files and a ledger with a key of 100 USD: its id and secret.
pub(super) fn place() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let (id, secret) = furnish(folder.path(), "first");
    (folder, id, secret)
}

pub(super) fn furnish(folder: &Path, reference: &str) -> (String, String) {
    for name in ["catalog.toml", "routes.toml"] {
        fs::copy(
            Path::new(crate::support::HOME).join(name),
            folder.join(name),
        )
        .unwrap();
    }
    let made = json(
        folder,
        &[
            "keys",
            "create",
            "--new-ledger",
            "--label",
            "t",
            "--balance",
            "100",
            "--reference",
            reference,
        ],
    );
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

/// Exit code and all output.
pub(super) fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    said(&mut farebox(folder, arguments))
}

pub(super) fn said(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(text).unwrap(),
    )
}

pub(super) fn top_up(folder: &Path, id: &str, reference: &str) -> (i32, String) {
    run(
        folder,
        &["keys", "top-up", id, "1", "--reference", reference],
    )
}

/// How often each reference occurs in the ledger of this folder.
pub(super) fn booked(folder: &Path, reference: &str) -> usize {
    let entries = json(folder, &["ledger", "entries"]);
    entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["reference"] == reference)
        .count()
}

/// Moves the ledger away, with its log and shared memory; which of them there are is SQLite's business.
pub(crate) fn move_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in FILES {
        let _ = fs::rename(from.join(name), to.join(name));
    }
}

/// Moves all of it back, the ledger last, as the manual says: a command that finds it without its log begins another log.
pub(crate) fn put_back(from: &Path, to: &Path) {
    for name in FILES.iter().rev() {
        let _ = fs::rename(from.join(name), to.join(name));
    }
}

pub(super) async fn readiness(served: &Served) -> (u16, String) {
    let answer = client()
        .get(format!("{}/readyz", served.admin))
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Waits until `/readyz` answers with this status; what it says then.
pub(super) async fn until(served: &Served, status: u16) -> String {
    let begun = Instant::now();
    loop {
        let (found, text) = readiness(served).await;
        if found == status {
            return text;
        }
        assert!(
            begun.elapsed() < NOTICED,
            "still {found} {text}:\n{}",
            served.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(super) async fn status(served: &Served) -> Value {
    document_at(&client(), format!("{}/status", served.admin)).await
}

#[tokio::test]
async fn a_ledger_that_is_moved_stops_the_sale_until_it_is_back() {
    let (folder, id, secret) = place();
    let (folder, away) = (folder.path(), folder.path().join("away"));
    let served = Served::start(folder, &[]);
    served.ask("sim-chat", &secret).await.unwrap();
    let trouble = &status(&served).await["ledger"]["trouble"];
    assert_eq!(trouble, &Value::Array(Vec::new()));
    move_all(folder, &away);
    let refused = served.ask("sim-chat", &secret).await.unwrap_err();
    assert!(
        refused.starts_with("503") && refused.contains("ledger_unavailable"),
        "{refused}"
    );
    let why = until(&served, 503).await;
    assert!(why.contains("farebox.db was moved or deleted"), "{why}");
    let shown = status(&served).await;
    assert!(
        shown["ledger"]["trouble"][0]["cause"]
            .as_str()
            .unwrap()
            .contains("moved or deleted"),
        "{shown}"
    );
    assert_eq!(
        (&shown["ledger"]["writable"], &shown["ready"]),
        (&Value::Bool(false), &Value::Bool(false))
    );
    let (code, text) = top_up(folder, &id, "during");
    assert!(
        code == 1 && text.contains("there is no ledger at"),
        "{text}"
    );
    assert!(
        !folder.join("farebox.db").exists(),
        "nobody makes another one"
    );
    put_back(&away, folder);
    until(&served, 200).await;
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(top_up(folder, &id, "after").0, 0);
    assert_eq!((booked(folder, "during"), booked(folder, "after")), (0, 1));
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
}

#[tokio::test]
async fn a_restored_copy_is_opened_and_recovered_under_the_gateway() {
    let (folder, id, secret) = place();
    let (folder, away) = (folder.path(), folder.path().join("away"));
    let mut served = Served::start(folder, &[]);
    assert_eq!(run(folder, &["ledger", "backup", "copy.db"]).0, 0);
    assert_eq!(top_up(folder, &id, "forgotten").0, 0);
    move_all(folder, &away);
    until(&served, 503).await;
    fs::copy(folder.join("copy.db"), folder.join("farebox.db")).unwrap();
    until(&served, 200).await;
    served.wait_for_log("recovered; selling resumes");
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(top_up(folder, &id, "later").0, 0);
    assert_eq!(
        (booked(folder, "forgotten"), booked(folder, "later")),
        (0, 1),
        "all of it is in the file at the path"
    );
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
    assert_eq!(
        booked(&away, "forgotten"),
        1,
        "the file that was moved away is as it was"
    );
    assert_eq!(booked(&away, "later"), 0);
}

#[tokio::test]
async fn another_ledger_in_its_place_is_not_sold_from() {
    let (folder, id, secret) = place();
    let (folder, away) = (folder.path(), folder.path().join("away"));
    let other = tempfile::tempdir().unwrap();
    let (_, other_secret) = furnish(other.path(), "other");
    let served = Served::start(folder, &[]);
    move_all(folder, &away);
    fs::copy(other.path().join("farebox.db"), folder.join("farebox.db")).unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let why = until(&served, 503).await;
    assert!(why.contains("another ledger is in its place"), "{why}");
    for secret in [&secret, &other_secret] {
        assert!(served.ask("sim-chat", secret).await.is_err());
    }
    move_all(folder, &folder.join("other"));
    put_back(&away, folder);
    until(&served, 200).await;
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(top_up(folder, &id, "after").0, 0);
}

#[tokio::test]
async fn a_deleted_log_ends_the_gateway_and_loses_nothing() {
    let (folder, id, secret) = place();
    let folder = folder.path();
    let mut served = Served::start(folder, &[]);
    served.ask("sim-chat", &secret).await.unwrap();
    // Half a second after its own commits the gateway copies the log; the payment comes later and is in the log alone.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(top_up(folder, &id, "before").0, 0);
    fs::remove_file(folder.join("farebox.db-wal")).unwrap();
    let (code, text) = top_up(folder, &id, "into-nothing");
    assert!(
        code == 1 && text.contains("farebox.db-wal was moved or deleted"),
        "{text}"
    );
    let refused = served.ask("sim-chat", &secret).await.unwrap_err();
    assert!(refused.starts_with("503"), "{refused}");
    assert_eq!(served.ended().code(), Some(1), "{}", served.log());
    assert!(
        served.log().contains("start the gateway again"),
        "{}",
        served.log()
    );
    let served = Served::start(folder, &[]);
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(top_up(folder, &id, "into-nothing").0, 0);
    assert_eq!(
        (booked(folder, "before"), booked(folder, "into-nothing")),
        (1, 1)
    );
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
}

/// Payments run while the files are moved away and back, and while the gateway is killed; none that was confirmed is missing.
#[tokio::test]
async fn no_confirmed_payment_is_in_a_file_that_is_not_the_ledger() {
    let (folder, id, _) = place();
    let rounds: u64 = if std::env::var_os("FAREBOX_FULL").is_some() {
        60
    } else {
        8
    };
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64;
    for round in 0..rounds {
        let (path, away, id) = (
            folder.path().to_owned(),
            folder.path().join(format!("away-{round}")),
            id.clone(),
        );
        let mut served = Served::start(&path, &[]);
        let payer = {
            let (path, id) = (path.clone(), id.clone());
            std::thread::spawn(move || {
                let pay = |number| {
                    let reference = format!("r{round}-{number}");
                    let begun = Instant::now();
                    let (code, text) = top_up(&path, &id, &reference);
                    assert!([0, 1, 75].contains(&code), "{code} {text}");
                    (reference, code, begun, Instant::now())
                };
                (0..12).map(pay).collect::<Vec<_>>()
            })
        };
        let random = (seed ^ (round * 7_919)).wrapping_mul(6_364_136_223_846_793_005) >> 33;
        std::thread::sleep(Duration::from_millis(random % 150));
        let kind = round % 4;
        // A restored copy in every second round, the same files back in the others; the gateway is killed in half of each.
        if kind < 2 {
            assert_eq!(
                run(&path, &["ledger", "backup", &format!("copy-{round}.db")]).0,
                0
            );
        }
        let moved = Instant::now();
        move_all(&path, &away);
        if kind % 2 == 0 {
            served.kill();
        }
        std::thread::sleep(Duration::from_millis(random % 40));
        if kind < 2 {
            fs::copy(path.join(format!("copy-{round}.db")), path.join("new.db")).unwrap();
            fs::rename(path.join("new.db"), path.join("farebox.db")).unwrap();
        } else {
            put_back(&away, &path);
        }
        let back = Instant::now();
        let paid = payer.join().unwrap();
        drop(served);
        let places = if kind < 2 {
            vec![path.clone(), away.clone()]
        } else {
            vec![path.clone()]
        };
        for (reference, code, begun, ended) in paid {
            let found: Vec<usize> = places
                .iter()
                .map(|place| booked(place, &reference))
                .collect();
            let told =
                format!("seed {seed}, round {round}, {reference}: exit {code}, found {found:?}");
            assert!(found.iter().all(|count| *count <= 1), "{told}");
            if code != 0 {
                continue;
            }
            assert!(found.contains(&1), "confirmed and nowhere: {told}");
            if begun > back {
                assert_eq!(
                    found[0], 1,
                    "confirmed after the restore, in the file that was moved away: {told}"
                );
            } else if ended < moved && kind < 2 {
                assert_eq!(found[1], 1, "{told}");
            }
        }
        assert_eq!(run(&path, &["ledger", "verify"]).0, 0);
    }
}
