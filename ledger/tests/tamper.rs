//! Tampering: `verify` finds every kind of row that was edited behind the program's back.
//!
//! The edits go straight to the file, as somebody with the file and a SQLite shell would make them: without triggers and without
//! CHECKs. In addition to chosen ones, 100 random edits are tried, 1,000 with `FAREBOX_FULL=1`.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::path::Path;
use std::sync::Arc;

use common::*;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

/// A ledger with every kind of row: two keys, all kinds of entries, a rotation, an open hold with a checkpoint, a session, a link.
async fn fill(path: &Path) {
    let ledger = SqliteLedger::create(path, OpenMode::Write, Durability::Prompt).unwrap();
    ledger.recover(at(1)).await.unwrap();
    ledger
        .perform(Publish {
            slugs: vec!["small".into()],
            now: at(2),
        })
        .await
        .unwrap();
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_key(2, 11, Some("7"))).await.unwrap();
    for (owner, operation, count) in [
        (1, 20, 1_000),
        (1, 21, 2_000_000),
        (2, 22, 50),
        (1, 23, 4_000),
    ] {
        ledger
            .perform(new_hold(owner, operation, "1"))
            .await
            .unwrap();
        let mut finish = finish(operation, count);
        finish.bill.exposure = Amount::from_picos(11);
        finish.bill.cost = Some(Amount::from_picos(12));
        finish.bill.facts.insert("node".to_owned(), "a1".to_owned());
        ledger.perform(Arc::new(finish)).await.unwrap();
    }
    ledger.perform(new_hold(2, 24, "1")).await.unwrap();
    let served = Finish {
        bill: fast(70),
        ..finish(24, 70)
    };
    ledger.perform(Arc::new(served)).await.unwrap();
    let refund = CreditKind::Refund {
        request: op(21),
        reason: "bad answer".into(),
    };
    ledger
        .perform(credit(1, 12, refund, "0.5", "refund-1"))
        .await
        .unwrap();
    ledger
        .perform(credit(
            2,
            13,
            CreditKind::Adjust {
                reason: "gift".into(),
                is_paid: false,
            },
            "1",
            "gift-1",
        ))
        .await
        .unwrap();
    ledger
        .perform(change(
            1,
            14,
            Change::Rotate {
                secret: secret(2),
                old_until: Some(at(9_000)),
            },
        ))
        .await
        .unwrap();
    ledger
        .perform(change(
            1,
            15,
            Change::Edit(KeyEdit {
                label: Some("Ada".into()),
                ..KeyEdit::default()
            }),
        ))
        .await
        .unwrap();
    ledger
        .perform(NewLink {
            key: key(2),
            token: secret(70),
            expires: at(90_000),
            act: act(16, 400),
        })
        .await
        .unwrap();
    ledger
        .perform(Session {
            token: secret(71),
            key: key(2),
            at: at(400),
            expires: at(90_000),
        })
        .await
        .unwrap();
    a_hold_of_a_grant(&ledger).await;
    a_customer_with_several_keys(&ledger).await;
    // The totals end here. If they ended behind a move, whose halves cancel out, they would say the same without it.
    ledger
        .perform(top_up(41, 50, "1", "the last"))
        .await
        .unwrap();
    sound(&ledger).await;
}

/// What `verify` does not guard; docs/PROMISES.md (P9) says why.
const FREE: [&str; 18] = [
    "keys.used_at",
    "accounts.event_seq",
    "accounts.told",
    "grants.told",
    "holds.day",
    "holds.moves",
    "holds.slug",
    "holds.family",
    "holds.at",
    "holds.opened",
    "holds.request",
    "sessions.token",
    "sessions.at",
    "sessions.expires",
    "slugs.published_at",
    "epochs.started_at",
    "identity.generation",
    "identity.made_at",
];

/// Edits the file as somebody with a SQLite shell would: without triggers and CHECKs, and leaving no trace of that.
fn unguarded<T>(path: &Path, edit: impl FnOnce(&Connection) -> T) -> T {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON",
    )
    .unwrap();
    let mut statement = conn
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap();
    let triggers = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let triggers: Vec<(String, String)> = triggers.collect::<Result<_, _>>().unwrap();
    triggers
        .iter()
        .for_each(|(name, _)| conn.execute_batch(&format!("DROP TRIGGER {name}")).unwrap());
    let result = edit(&conn);
    triggers
        .iter()
        .for_each(|(_, sql)| conn.execute_batch(sql).unwrap());
    result
}

fn edit(path: &Path, sql: &str) {
    let changed = unguarded(path, |conn| {
        conn.execute_batch(sql).unwrap();
        conn.query_row("SELECT total_changes()", [], |row| row.get::<_, i64>(0))
            .unwrap()
    });
    assert!(changed > 0, "nothing was edited: {sql}");
}

/// The file of a full ledger, made once.
async fn filled() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    fill(&path).await;
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    std::fs::read(&path).unwrap()
}

async fn faults_after(file: &[u8], sql: &str) -> Vec<String> {
    faults(file, |path| edit(path, sql)).await
}

/// What `verify` finds in a copy of the file after an edit.
async fn faults(file: &[u8], edit: impl FnOnce(&Path)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    std::fs::write(&path, file).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    edit(&path);
    match SqliteLedger::open(&path, OpenMode::ReadOnly, Durability::Prompt) {
        Ok(ledger) => ledger.verify().await.unwrap().faults,
        // A ledger without its identity is not even opened; one after an edit of nothing is.
        Err(LedgerError::Unusable(why)) => vec![why.to_string()],
        Err(error) => unreachable!("{error}"),
    }
}

/// Columns of a table that no edit may touch unseen.
fn columns(table: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    drop(SqliteLedger::create(&path, OpenMode::Write, Durability::Prompt).unwrap());
    let conn = rusqlite::Connection::open(&path).unwrap();
    let mut statement = conn
        .prepare("SELECT name FROM pragma_table_info(?1)")
        .unwrap();
    let names = statement
        .query_map([table], |row| row.get(0))
        .unwrap()
        .collect::<Result<Vec<String>, _>>();
    names.unwrap()
}

#[test]
fn every_column_of_every_book_is_guarded() {
    run(async {
        let file = filled().await;
        assert_eq!(
            faults(&file, |path| unguarded(path, |_| ())).await,
            Vec::<String>::new(),
            "an edit of nothing"
        );
        for (table, row) in [
            ("entries", "rowid = 3"),
            ("entries", "kind = 1"),
            ("entries", "kind = 3"),
            ("audit", "position = 1"),
            ("audit", "act = 'rotate'"),
            ("keys", "label = 'Ada'"),
            ("accounts", "spent > 0"),
            ("holds", "1"),
            ("usage", "1"),
            ("totals", "1"),
            ("refs", "folded = 'gift-1'"),
            ("identity", "1"),
            ("slugs", "1"),
            ("targets", "1"),
            ("targets", "tier = 'fast'"),
            ("usage", "calls > 0"),
            ("epochs", "1"),
            ("sessions", "1"),
            ("links", "1"),
            ("keys", "customer <> id"),
            ("accounts", "personal IS NOT NULL"),
            ("entries", "kind = 9"),
            ("entries", "key > 0"),
            ("audit", "act = 'move'"),
            ("audit", "key > 0"),
            ("personal_data", "1"),
            ("grants", "id = 1"),
            ("grants", "id <> 1"),
            ("entries", "parts IS NOT NULL AND kind = 2"),
            ("entries", "parts IS NOT NULL AND kind = 5"),
            ("accounts", "next_grant_at IS NOT NULL"),
        ] {
            for column in columns(table) {
                let name = format!("{table}.{column}");
                if FREE.contains(&&*name) {
                    continue;
                }
                // A different value of the same type: another number, another text, a flipped byte; something for nothing.
                let sql = format!(
                    "UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'integer' THEN {column} + 1000
                     WHEN 'text' THEN CASE WHEN {column} GLOB '*1*' THEN replace({column}, '1', '8') ELSE {column} || ' ' END
                     WHEN 'blob' THEN CAST(substr({column}, 2) || x'07' AS BLOB) ELSE
                     (SELECT CASE type WHEN 'TEXT' THEN '[]' WHEN 'BLOB' THEN zeroblob(32) ELSE 1 END
                      FROM pragma_table_info('{table}') WHERE name = '{column}') END
                     WHERE rowid = (SELECT rowid FROM {table} WHERE {row} LIMIT 1)"
                );
                let sql = if ["holds", "usage", "sessions", "links"].contains(&table) {
                    format!("{} WHERE {row}", sql.rsplit_once("WHERE rowid").unwrap().0)
                } else {
                    sql
                };
                assert_ne!(
                    faults_after(&file, &sql).await,
                    Vec::<String>::new(),
                    "{name} where {row}"
                );
            }
        }
    });
}

/// The books, and what tells their rows apart. A hold that still runs is no entry yet: what its checkpoint says in words is free,
/// its money is not, which the chosen edits try.
const BOOKS: [(&str, &str); 11] = [
    ("entries", "position"),
    ("entries", "position"),
    ("audit", "position"),
    ("keys", "id"),
    ("accounts", "id"),
    ("usage", "hour, key, slug, target"),
    ("totals", "id"),
    ("targets", "id"),
    ("grants", "id"),
    ("links", "token"),
    ("identity", "id"),
];

/// One random edit: where, and with what.
#[derive(Debug, Clone)]
struct Edit {
    book: usize,
    row: Index,
    column: Index,
    place: Index,
    change: u8,
    delete: bool,
}

fn random_edit() -> impl Strategy<Value = Edit> {
    let indexes = (any::<Index>(), any::<Index>(), any::<Index>());
    (
        0..BOOKS.len(),
        indexes,
        1..=u8::MAX,
        prop::bool::weighted(0.05),
    )
        .prop_map(|(book, (row, column, place), change, delete)| Edit {
            book,
            row,
            column,
            place,
            change,
            delete,
        })
}

impl Edit {
    /// Makes the edit and says what it was.
    fn make(&self, conn: &Connection) -> String {
        let (book, names) = BOOKS[self.book];
        let columns: Vec<String> = columns(book)
            .into_iter()
            .filter(|column| !FREE.contains(&&*format!("{book}.{column}")))
            .collect();
        let column = self.column.get(&columns);
        let rows: i64 = conn
            .query_row(&format!("SELECT count(*) FROM {book}"), [], |row| {
                row.get(0)
            })
            .unwrap();
        let place = format!(
            "({names}) = (SELECT {names} FROM {book} LIMIT 1 OFFSET {})",
            self.row.index(rows as usize)
        );
        // A link that was deleted looks like one that was used.
        if self.delete && book != "links" {
            assert_eq!(
                conn.execute(&format!("DELETE FROM {book} WHERE {place}"), []),
                Ok(1)
            );
            return format!("{book}: deleted where {place}");
        }
        let found = conn
            .query_row(
                &format!("SELECT {column} FROM {book} WHERE {place}"),
                [],
                |row| row.get(0),
            )
            .unwrap();
        let declared = "SELECT type FROM pragma_table_info(?1) WHERE name = ?2";
        let declared: String = conn
            .query_row(declared, params![book, column], |row| row.get(0))
            .unwrap();
        let other = self.other(&found, &declared);
        // A number that another row has already is no edit that could be made: the next free one is.
        let update = format!("UPDATE {book} SET {column} = ?1 WHERE {place}");
        let changed = conn
            .execute(&update, [&other])
            .or_else(|_| conn.execute(&update, [Value::Integer(1_000_003)]));
        assert_eq!(changed, Ok(1));
        format!("{book}.{column} where {place}: {found:?} became {other:?}")
    }

    /// Another value of the same type.
    fn other(&self, found: &Value, declared: &str) -> Value {
        match found {
            Value::Integer(number) => Value::Integer(number ^ (1_i64 << self.place.index(40))),
            Value::Blob(bytes) => {
                let mut bytes = bytes.clone();
                let at = self.place.index(bytes.len());
                bytes[at] ^= self.change;
                Value::Blob(bytes)
            }
            Value::Text(text) => {
                let (before, behind) = text.split_at(self.place.index(text.len() + 1));
                Value::Text(format!(
                    "{before}{}{behind}",
                    char::from(b'a' + self.change % 26)
                ))
            }
            _ if declared == "TEXT" => Value::Text("[]".to_owned()),
            _ if declared == "BLOB" => Value::Blob(vec![self.change; 32]),
            _ => Value::Integer(i64::from(self.change)),
        }
    }
}

#[test]
fn random_edits_are_all_found() {
    let cases = if std::env::var_os("FAREBOX_FULL").is_some() {
        1_000
    } else {
        100
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let file = runtime.block_on(filled());
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&random_edit(), |edit| {
            let mut what = String::new();
            let found = runtime.block_on(faults(&file, |path| {
                what = unguarded(path, |conn| edit.make(conn))
            }));
            prop_assert!(!found.is_empty(), "{}", what);
            Ok(())
        })
        .unwrap();
}

#[test]
fn missing_added_and_moved_rows_are_found() {
    run(async {
        let file = filled().await;
        for sql in [
            "DELETE FROM entries WHERE position = 1",
            "DELETE FROM entries WHERE position = 4",
            "DELETE FROM entries WHERE position = (SELECT max(position) FROM entries)",
            "DELETE FROM audit WHERE position = 1",
            "DELETE FROM audit WHERE act = 'set'",
            "DELETE FROM holds",
            "DELETE FROM usage",
            "DELETE FROM events WHERE (customer, seq) IN (SELECT id, event_seq FROM accounts)",
            "UPDATE events SET seq = seq + 99 WHERE seq = 2",
            "UPDATE events SET seq = 1 WHERE seq = 2",
            "UPDATE events SET customer = 77 WHERE seq = 1",
            "DELETE FROM keys WHERE label = 'Ada'",
            "DELETE FROM accounts WHERE id = 1",
            "DELETE FROM keys WHERE id = 1; DELETE FROM accounts WHERE id = 1",
            "UPDATE slugs SET slug = 'large'",
            "UPDATE entries SET position = -position WHERE position IN (3, 4); UPDATE entries SET position = 7 + position WHERE position < 0",
            "UPDATE accounts SET credit = credit + 1000000, spent = spent + 1000000 WHERE id = 1",
            "UPDATE accounts SET last = 0, seq = 0, credit = 0, spent = 0, held = 0, hash = zeroblob(32) WHERE id = 1",
            "UPDATE accounts SET (last, seq, hash, spent) = (SELECT e.prev, e.seq - 1, p.hash, 1000000000 FROM entries e
                 JOIN entries p ON p.position = e.prev WHERE e.position = accounts.last) WHERE id = 1",
            "INSERT INTO entries SELECT 99, customer, seq + 1, position, randomblob(16), 1, 5, balance_after + 5, at, actor, 'fake', NULL,
                 NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                 NULL, hash, 3, NULL, NULL, NULL FROM entries WHERE position = 2",
            "INSERT INTO holds SELECT randomblob(16), key, 1, 1, 0, slug, family, at, epoch, NULL, day, 0, NULL FROM holds",
            "UPDATE accounts SET audit_last = 0, audit_hash = zeroblob(32) WHERE id = 1",
            "UPDATE entries SET prev = position WHERE position = 5",
            "UPDATE entries SET format = 1",
            "UPDATE entries SET facts = '{\"node\":\"a1\"}' WHERE position = 3",
            "UPDATE entries SET facts = replace(facts, '11', '011') WHERE position = 3",
            "DELETE FROM holds; UPDATE accounts SET held = 0",
            "UPDATE accounts SET opened = opened - 1 WHERE id = 1",
            "UPDATE totals SET charges = charges + 1",
            "INSERT INTO holds SELECT operation, customer, 0, 0, 0, 'small', 'chat', 1, 1, NULL, 0, 0, NULL FROM entries WHERE position = 3",
            "UPDATE holds SET epoch = 2",
            "UPDATE holds SET checkpoint = replace(checkpoint, '500000', '400000')",
            "INSERT INTO links VALUES (randomblob(32), 2, 99000000)",
            "INSERT INTO sessions VALUES (randomblob(32), 99, 1, 2)",
            "INSERT INTO sessions VALUES (randomblob(31), 2, 1, 2)",
            "UPDATE sessions SET expires = at",
            "INSERT INTO epochs VALUES (2, 5)",
            "DELETE FROM epochs",
            "DELETE FROM identity",
            "DELETE FROM refs WHERE folded = 'gift-1'",
            "INSERT INTO refs VALUES ('new', randomblob(16))",
            "DELETE FROM accounts WHERE id = 2; INSERT INTO accounts (id, credit, spent, held, seq, last, hash) SELECT 99, 0, 0, 0, 0, 0, zeroblob(32)",
        ] {
            assert_ne!(faults_after(&file, sql).await, Vec::<String>::new(), "{sql}");
        }
    });
}

#[test]
fn a_changed_schema_is_found() {
    run(async {
        let file = filled().await;
        for sql in [
            "DROP TRIGGER entries_no_update",
            "DROP TRIGGER audit_needs_reference",
            "DROP TRIGGER keys_no_delete; CREATE TRIGGER keys_no_delete BEFORE DELETE ON keys WHEN 0 BEGIN SELECT 1; END",
            "CREATE TRIGGER more AFTER INSERT ON entries BEGIN UPDATE accounts SET credit = credit + 1 WHERE id = 1; END",
            "DROP INDEX entries_by_refund",
            "DROP INDEX entries_by_reference; CREATE INDEX entries_by_reference ON entries (reference)",
            "CREATE VIEW mine AS SELECT * FROM keys",
            "ALTER TABLE epochs ADD COLUMN note TEXT",
        ] {
            let found = faults(&file, |path| {
                Connection::open(path).unwrap().execute_batch(sql).unwrap()
            })
            .await;
            assert_ne!(found, Vec::<String>::new(), "{sql}");
        }
    });
}

/// Somebody who makes every count fit again leaves no trace in the ledger itself, but an anchor remembers.
#[test]
fn an_anchor_finds_what_was_made_to_fit() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("farebox.db");
        fill(&path).await;
        let open = || SqliteLedger::open(&path, OpenMode::Write, Durability::Prompt).unwrap();
        let start = anchor::AnchorFile::open(&dir.path().join("anchors")).unwrap();
        let anchor = open().anchor(start.last(), at(900)).await.unwrap();
        let sound = open().verify_with(vec![anchor.clone()]).await.unwrap();
        assert_eq!(sound.faults, Vec::<String>::new());
        edit(
            &path,
            "UPDATE accounts SET held = 0, opened = opened - (SELECT count(*) FROM holds h JOIN keys k ON k.id = h.key WHERE k.customer = accounts.id);
             UPDATE grants SET held = 0;
             DELETE FROM holds",
        );
        assert_eq!(open().verify().await.unwrap().faults, Vec::<String>::new());
        assert!(
            open()
                .verify_with(vec![anchor.clone()])
                .await
                .unwrap()
                .faults[0]
                .contains("more holds were opened")
        );
        let other = dir.path().join("other.db");
        let ledger = SqliteLedger::create(&other, OpenMode::Write, Durability::Prompt).unwrap();
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let faults = ledger.verify_with(vec![anchor]).await.unwrap().faults;
        assert!(
            faults
                .iter()
                .any(|fault| fault.contains("administrative act 5 of customer")),
            "{faults:?}"
        );
        assert!(
            faults
                .iter()
                .any(|fault| fault.contains("entry 6 of customer") && fault.contains("missing")),
            "{faults:?}"
        );
    });
}

#[test]
fn the_database_itself_refuses_wrong_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    run(fill(&path));
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    for sql in [
        "UPDATE accounts SET held = -1",
        "UPDATE accounts SET spent = credit + 1",
        "UPDATE accounts SET held = credit - spent + 1",
        "UPDATE accounts SET credit = 9000000000000000001, spent = 0, held = 0",
        "UPDATE accounts SET spent = 9223372036854775807, held = 9223372036854775807",
        "UPDATE entries SET amount = 0",
        "DELETE FROM entries",
        "DELETE FROM audit",
        "UPDATE audit SET actor = 'eve'",
        "DELETE FROM keys",
        "DELETE FROM accounts",
        "UPDATE holds SET amount = -1",
        "DELETE FROM grants",
        "UPDATE grants SET held = remaining + 1",
        "UPDATE keys SET status = 9",
        "UPDATE accounts SET credit = 'much'",
    ] {
        assert!(conn.execute_batch(sql).is_err(), "{sql}");
    }
}
