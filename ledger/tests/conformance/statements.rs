//! What the stores ask their databases, as golden files: whoever changes a statement sees it in a diff.
//!
//! Each story may run what the file of its store has, and nothing else. `FAREBOX_BLESS=1 cargo test -p farebox-ledger --test conformance`
//! writes both files anew.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use farebox_ledger::memory::statements::{OF_DATABASES, OF_FILES, SeenStatements};
use farebox_ledger::*;

use super::common::cluster::Cluster;
use super::common::*;

/// From now on, statements are noted.
pub(crate) fn begin() {
    OF_FILES.begin();
    OF_DATABASES.begin();
}

/// Everything that has run until now is known.
pub(crate) fn are_known() {
    compare("sqlite", &OF_FILES);
    compare("postgres", &OF_DATABASES);
}

/// One test at a time compares or writes.
static FILES: Mutex<()> = Mutex::new(());

fn compare(store: &str, seen: &SeenStatements) {
    let _alone = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let seen: BTreeSet<String> = seen.texts().iter().flat_map(|text| parts(text)).collect();
    if seen.is_empty() {
        return;
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/conformance/statements")
        .join(format!("{store}.sql"));
    // What this process has seen only grows, so that its last story writes everything.
    if std::env::var_os("FAREBOX_BLESS").is_some() {
        let lines: Vec<&str> = seen.iter().map(|text| &**text).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    let known: BTreeSet<&str> = known.lines().collect();
    let unknown: Vec<_> = (seen.iter())
        .filter(|text| !known.contains(&***text))
        .collect();
    assert!(
        unknown.is_empty(),
        "{}: FAREBOX_BLESS=1 writes {unknown:#?}",
        path.display()
    );
}

/// The statements that read or change rows, each in a line and with parameters that are numbered from one: some are sent as one, joined
/// as `w0`, `w1`, …, in as many ways as batches come together.
fn parts(text: &str) -> Vec<String> {
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    let joined = text.strip_prefix("WITH w0 AS (");
    if let Some(mut rest) = joined.and_then(|text| text.strip_suffix(") SELECT 1")) {
        let mut parts = Vec::new();
        for number in 1.. {
            let Some((part, others)) = rest.split_once(&format!("), w{number} AS (")) else {
                break;
            };
            parts.push(from_one(part));
            rest = others;
        }
        parts.push(from_one(rest));
        return parts;
    }
    let is_of_rows = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"]
        .iter()
        .any(|verb| text.starts_with(verb));
    is_of_rows.then(|| without_day(&text)).into_iter().collect()
}

/// A statement whose first parameter is `$1`.
fn from_one(text: &str) -> String {
    let pieces = || text.split('$').skip(1);
    let number = |piece: &str| {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        (piece[..digits].parse::<usize>().unwrap(), digits)
    };
    let first = pieces().map(|piece| number(piece).0).min().unwrap_or(1);
    let mut renumbered = text.split('$').next().unwrap_or_default().to_owned();
    for piece in pieces() {
        let (own, digits) = number(piece);
        renumbered += &format!("${}{}", own + 1 - first, &piece[digits..]);
    }
    renumbered
}

/// A file's statements name the first day of the bounds of today.
fn without_day(text: &str) -> String {
    match text.split_once("AND day > ") {
        Some((before, day)) if day.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{before}AND day > {{before}}")
        }
        _ => text.to_owned(),
    }
}

/// A ledger goes to a database and back.
#[test]
fn of_copies() {
    begin();
    let Some(cluster) = Cluster::shared() else {
        return skip("statements of a copy: PostgreSQL is not installed");
    };
    let (folder, ledger) = sqlite();
    let there: LedgerAddress = cluster.url(&cluster.database()).parse().unwrap();
    run(async {
        ledger.perform(new_key(1, 10, Some("3"))).await.unwrap();
        ledger.close();
        drop(ledger);
        let from = LedgerAddress::from(folder.path().join("farebox.db"));
        from.copy_to(&there, |_, _| ()).await.unwrap();
        let back = LedgerAddress::from(folder.path().join("back.db"));
        there.copy_to(&back, |_, _| ()).await.unwrap();
    });
    are_known();
}

#[test]
fn joined_statements_are_told_apart() {
    assert_eq!(
        parts(
            "WITH w0 AS (UPDATE a SET x = $1), w1 AS (DELETE FROM b\n WHERE y = $2 AND z = $3) SELECT 1"
        ),
        [
            "UPDATE a SET x = $1",
            "DELETE FROM b WHERE y = $1 AND z = $2"
        ]
    );
    assert_eq!(parts("BEGIN"), Vec::<String>::new());
}
