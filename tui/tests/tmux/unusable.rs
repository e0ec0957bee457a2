//! Ledgers and addresses that the console cannot use: one sentence on stderr, exit code 1, and nothing created or changed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{Durability, OpenMode};

fn refusal(path: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_farebox-console"))
        .arg("--ledger")
        .arg(path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(1), [].as_slice()),
        "{text}"
    );
    assert!(
        text.starts_with("farebox-console: ") && text.trim_end().lines().count() == 1,
        "{text}"
    );
    text
}

/// Opening this file is refused in these words, and the folder is as it was.
fn refused(path: &Path, words: &str) {
    let folder = || {
        let mut files: Vec<_> = std::fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|file| file.unwrap().path())
            .map(|file| (file.clone(), std::fs::read(file).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = folder();
    let text = refusal(path);
    assert!(text.contains(words), "{text}");
    assert!(
        before == folder(),
        "{text} but something was created or changed"
    );
}

/// A ledger in a folder of its own, closed again.
fn ledger() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("farebox.db");
    SqliteLedger::create(&path, OpenMode::Write, Durability::Prompt)
        .unwrap()
        .close();
    (directory, path)
}

#[test]
fn a_missing_one() {
    let directory = tempfile::tempdir().unwrap();
    refused(&directory.path().join("missing.db"), "missing.db");
}

#[test]
fn an_address_at_which_no_gateway_can_be() {
    let (_directory, path) = ledger();
    let mut console = Command::new(env!("CARGO_BIN_EXE_farebox-console"));
    let output = console
        .arg("--ledger")
        .arg(path)
        .args(["--admin", "https://127.0.0.1:9090"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), text.as_str()),
        (
            Some(1),
            "farebox-console: --admin https://127.0.0.1:9090: say whose certificate is trusted: --admin-tls-cert FILE, the file that \
             the gateway has, too\n",
        )
    );
}

#[test]
fn text_and_another_programs_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let private =
        || std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, "this is not a ledger at all, it is text".repeat(30)).unwrap();
    private();
    refused(&path, "is not a ledger");
    std::fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE mine (x)")
        .unwrap();
    private();
    refused(&path, "another program");
}

#[test]
fn one_of_a_newer_version() {
    let (_directory, path) = ledger();
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(conn);
    refused(&path, "newer version");
}

#[test]
fn one_that_another_program_keeps_locked() {
    let (_directory, path) = ledger();
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; PRAGMA user_version")
        .unwrap();
    let text = refusal(&path);
    assert!(text.contains("lock") || text.contains("busy"), "{text}");
    conn.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn a_damaged_one_says_what_to_do() {
    let (_directory, path) = ledger();
    let whole = std::fs::read(&path).unwrap();
    for (from, words) in [
        (
            0,
            "is not a ledger; name yours with --ledger. If it was one",
        ),
        (4_096, "is damaged"),
    ] {
        let mut damaged = whole.clone();
        damaged[from..].fill(b'x');
        std::fs::write(&path, damaged).unwrap();
        let text = refusal(&path);
        assert!(
            text.contains(words)
                && text.contains("restore a backup that `farebox ledger verify` finds sound"),
            "{text}"
        );
    }
}

#[test]
fn the_password_of_a_database_is_never_shown() {
    let address = "postgres://u:secret123@h";
    for arguments in [&["--help"][..], &[], &["--ledger", address]] {
        let console = &mut Command::new(env!("CARGO_BIN_EXE_farebox-console"));
        let output = console
            .args(arguments)
            .env("FAREBOX_LEDGER", address)
            .output()
            .unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            said.contains("postgres://") && !said.contains("secret123"),
            "{said}"
        );
    }
}
