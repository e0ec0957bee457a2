//! Acts that belong to no customer, on tokens and on lots of vouchers: nobody edits them or what they tell of unseen, anchors cover
//! them, and a lot from before they told of lots gets one.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::path::Path;

use common::*;
use farebox_ledger::anchor::{Anchor, AnchorFile};
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;
use rusqlite::Connection;

/// A customer who redeemed one of three vouchers, a lot that was voided, and a token.
async fn fill(ledger: &dyn Ledger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let token = new_token(1, 11, TokenRole::Sell, Some("10"));
    ledger.perform(token).await.unwrap();
    ledger.perform(new_lot(1, 12, 3)).await.unwrap();
    ledger.perform(redemption(201, 1, 13)).await.unwrap();
    let other = NewLot {
        codes: vec![secret(100)],
        ..new_lot(2, 14, 1)
    };
    ledger.perform(other).await.unwrap();
    let lot = LotId::from_random(2);
    ledger
        .perform(VoidLot {
            lot,
            act: act(15, 200),
        })
        .await
        .unwrap();
    sound(ledger).await;
}

fn open(path: &Path) -> SqliteLedger {
    file(path, OpenMode::Serve).unwrap()
}

fn filled(path: &Path) {
    run(async {
        let ledger = open(path);
        fill(&ledger).await;
        ledger.close();
    });
}

/// Edits a file as somebody with a SQLite shell would, without triggers, keys and CHECKs.
fn edit(path: &Path, sql: &str) {
    let conn = Connection::open(path).unwrap();
    let guards = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA trusted_schema = ON";
    conn.execute_batch(guards).unwrap();
    let triggers =
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'house_acts'";
    let triggers: Vec<(String, String)> = conn
        .prepare(triggers)
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for (name, _) in &triggers {
        conn.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    conn.execute_batch(sql).unwrap();
    for (_, sql) in &triggers {
        conn.execute_batch(sql).unwrap();
    }
}

fn faults(path: &Path, anchors: Vec<Anchor>) -> Vec<String> {
    run(async {
        let ledger = SqliteLedger::open(path, OpenMode::ReadOnly, Durability::Prompt).unwrap();
        ledger.verify_with(anchors).await.unwrap().faults
    })
}

#[test]
fn an_edit_of_what_they_tell_of_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    filled(&path);
    let copy = dir.path().join("copy.db");
    let mut tried = 0;
    for table in ["house_acts", "lots", "vouchers"] {
        let columns: Vec<String> = Connection::open(&path)
            .unwrap()
            .prepare("SELECT name FROM pragma_table_info(?1)")
            .unwrap()
            .query_map([table], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for column in columns {
            std::fs::copy(&path, &copy).unwrap();
            // Another value of the same type; something for nothing.
            let nothing = if column == "operation" {
                "zeroblob(16)"
            } else {
                "1"
            };
            edit(
                &copy,
                &format!(
                    "UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'integer' THEN {column} + 100
                     WHEN 'text' THEN {column} || ' ' WHEN 'blob' THEN CAST(substr({column}, 2) || x'07' AS BLOB) ELSE {nothing} END
                     WHERE {column} IS (SELECT {column} FROM {table} ORDER BY 1 LIMIT 1)"
                ),
            );
            let found = std::panic::catch_unwind(|| faults(&copy, Vec::new()));
            assert!(
                found.is_err() || !found.unwrap().is_empty(),
                "{table}.{column}"
            );
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
    for gone in [
        "DELETE FROM house_acts WHERE seq = 2",
        "DELETE FROM lots WHERE void = 1",
        "DELETE FROM vouchers WHERE customer IS NULL",
        "INSERT INTO vouchers VALUES (randomblob(32), (SELECT lot FROM vouchers LIMIT 1), 4, NULL, NULL)",
        "INSERT INTO lots SELECT 77, count, amount, expires_at, once, void, redeemed, created_at, created_by, randomblob(16), kind, plan FROM lots LIMIT 1",
    ] {
        std::fs::copy(&path, &copy).unwrap();
        edit(&copy, gone);
        assert_ne!(faults(&copy, Vec::new()), Vec::<String>::new(), "{gone}");
    }
}

#[test]
fn an_edit_of_the_defaults_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("farebox.db"), dir.path().join("copy.db"));
    run(async {
        let ledger = open(&path);
        ledger.perform(new_key(1, 10, None)).await.unwrap();
        let mut defaults = Defaults::default();
        defaults.key.rate = Some(5);
        let act = act(11, 100);
        ledger.perform(SetDefaults { defaults, act }).await.unwrap();
        sound(&ledger).await;
        ledger.close();
    });
    for wrong in [
        "UPDATE defaults SET state = replace(state, '5', '6')",
        "DELETE FROM defaults",
        "UPDATE house_acts SET state = replace(state, '5', '6')",
        "DELETE FROM house_acts",
    ] {
        std::fs::copy(&path, &copy).unwrap();
        edit(&copy, wrong);
        assert_ne!(faults(&copy, Vec::new()), Vec::<String>::new(), "{wrong}");
    }
}

/// A history that is sound by itself, and not the one that was anchored.
#[test]
fn an_anchor_covers_them() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("a.db"), dir.path().join("b.db"));
    let anchors = run(async {
        let ledger = open(&path);
        fill(&ledger).await;
        let mut file = AnchorFile::open(&dir.path().join("anchors")).unwrap();
        file.append(ledger.anchor(file.last(), at(9)).await.unwrap())
            .unwrap();
        // An act on a token alone is anchored, too.
        let token = TokenId::from_random(1);
        ledger
            .perform(RevokeToken {
                token,
                act: act(16, 300),
            })
            .await
            .unwrap();
        file.append(ledger.anchor(file.last(), at(10)).await.unwrap())
            .unwrap();
        let read = anchor::read(&dir.path().join("anchors")).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1].house().map(|end| end.seq), Some(5));
        let report = ledger.verify_with(read.clone()).await.unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
        ledger.close();
        read
    });
    edit(
        &path,
        "UPDATE tokens SET revoked = 0; DELETE FROM house_acts WHERE seq = 5",
    );
    assert_eq!(faults(&path, Vec::new()), Vec::<String>::new());
    let found = faults(&path, anchors.clone());
    assert!(
        matches!(&found[..], [one] if one.contains("act 5 on tokens and lots is missing")),
        "{found:?}"
    );
    run(async {
        let ledger = open(&other);
        ledger.perform(new_lot(9, 12, 3)).await.unwrap();
        while ledger.house_acts().await.unwrap().len() < 6 {
            let next = u8::try_from(ledger.house_acts().await.unwrap().len()).unwrap();
            let token = new_token(next, 100 + u64::from(next), TokenRole::Read, None);
            ledger.perform(token).await.unwrap();
        }
        ledger.close();
    });
    let found = faults(&other, anchors);
    assert!(
        found
            .iter()
            .any(|fault| fault.contains("act 4 on tokens and lots is not the one")),
        "{found:?}"
    );
}
