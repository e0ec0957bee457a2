//! The books of a fleet on one PostgreSQL: anchors that tell its histories apart, and edits behind the program's back.

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;

use common::*;
use farebox_ledger::anchor::{self, AnchorFile};
use farebox_ledger::store::Store;
use farebox_ledger::*;

/// Columns that `verify` does not guard: what a running hold says besides its money, sessions, events, and what is for people.
const FREE: [&str; 25] = [
    "keys.used_at",
    "accounts.paced_to",
    // Which number the next event gets, and what was told last.
    "accounts.event_seq",
    "accounts.told",
    "keys.paced_to",
    "holds.moves",
    "holds.at",
    "holds.slug",
    "holds.family",
    "holds.opened",
    "holds.request",
    "holds.checkpoint",
    "holds.epoch",
    "sessions.token",
    "sessions.at",
    "sessions.expires",
    "sessions.key",
    "slugs.slug",
    "slugs.published_at",
    "identity.id",
    "identity.generation",
    "identity.made_at",
    "identity.version",
    "nodes.*",
    "late_bills.*",
];

#[test]
fn an_anchor_tells_another_history_and_an_older_copy_from_the_ledger() {
    with_cluster("anchors of a database", async |cluster| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchors");
        let mut file = AnchorFile::open(&path).unwrap();
        let (database, mut gateways) = fleet(cluster, 1).await;
        let ledger = gateways.remove(0);
        for number in 1..=2 {
            ledger
                .perform(new_key(number, 10 * number, Some("5")))
                .await
                .unwrap();
        }
        file.append(ledger.anchor(file.last(), at(2)).await.unwrap())
            .unwrap();
        drop(ledger);
        let older = cluster.copy_of(&database);
        let ledger = postgres(&cluster.url(&database), OpenMode::Serve)
            .await
            .unwrap();
        ledger.recover(at(3)).await.unwrap();
        ledger.perform(new_hold(2, 30, "1")).await.unwrap();
        ledger.perform(Arc::new(finish(30, 250_000))).await.unwrap();
        file.append(ledger.anchor(file.last(), at(4)).await.unwrap())
            .unwrap();
        let anchors = anchor::read(&path).unwrap();
        let keys = |anchor: &anchor::Anchor| {
            if let anchor::Anchor::Heads(heads) = anchor {
                heads.customers.len()
            } else {
                0
            }
        };
        assert_eq!(
            anchors.iter().map(keys).collect::<Vec<_>>(),
            [2, 1],
            "only what has changed"
        );
        let report = ledger.verify_with(anchors.clone()).await.unwrap();
        assert_eq!((report.anchors, report.faults), (2, Vec::<String>::new()));

        let older = postgres(&cluster.url(&older), OpenMode::ReadOnly)
            .await
            .unwrap();
        let faults = older.verify_with(anchors.clone()).await.unwrap().faults;
        assert!(
            faults
                .iter()
                .any(|fault| fault.contains("entry 2 of customer") && fault.contains("is missing")),
            "{faults:?}"
        );
        assert!(
            faults
                .iter()
                .any(|fault| fault.contains("more holds were opened")),
            "{faults:?}"
        );
        // The same keys with other money, sound by itself.
        let other = fleet(cluster, 1).await.1.remove(0);
        for number in 1..=2 {
            other
                .perform(new_key(number, 10 * number, Some("6")))
                .await
                .unwrap();
        }
        let faults = other.verify_with(anchors).await.unwrap().faults;
        assert!(
            faults
                .iter()
                .any(|fault| fault.contains("entry 1 of customer")
                    && fault.contains("is not the one it covers")),
            "{faults:?}"
        );
    });
}

#[test]
fn an_edited_column_is_found() {
    with_cluster("tampering", async |cluster| {
        let database = cluster.database();
        {
            let ledger = new_postgres(&cluster.url(&database), OpenMode::Write)
                .await
                .unwrap();
            ledger.recover(at(1)).await.unwrap();
            ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
            for (operation, count) in [(20, 1_000), (21, 2_000_000)] {
                ledger.perform(new_hold(1, operation, "1")).await.unwrap();
                let mut finish = finish(operation, count);
                finish.bill.facts.insert("node".to_owned(), "a1".to_owned());
                ledger.perform(Arc::new(finish)).await.unwrap();
            }
            let refund = CreditKind::Refund {
                request: op(21),
                reason: "bad answer".into(),
            };
            ledger
                .perform(credit(1, 12, refund, "0.5", "refund-1"))
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
                .perform(NewLink {
                    key: key(1),
                    token: secret(70),
                    expires: at(90_000),
                    act: act(16, 400),
                })
                .await
                .unwrap();
            let cap = Cap {
                interval: CapInterval::Day,
                model: None,
                limit: usd("3"),
            };
            ledger
                .perform(change(1, 17, Change::SetCap(cap)))
                .await
                .unwrap();
            // What of a key with a limit of its own runs is counted with it.
            let limited = KeyEdit {
                concurrency: Said::Set(4),
                ..KeyEdit::default()
            };
            ledger
                .perform(change(1, 18, Change::Edit(limited)))
                .await
                .unwrap();
            ledger.perform(new_hold(1, 30, "1")).await.unwrap();
            ledger.perform(moved(30, "2", 500_000)).await.unwrap();
            sound(&ledger).await;
        }
        let columns = "SELECT c.table_name || '.' || c.column_name || ' ' || c.data_type FROM information_schema.columns c \
             WHERE c.table_schema = 'public' AND c.table_name IN \
             ('keys', 'accounts', 'entries', 'refs', 'holds', 'usage', 'audit', 'links', 'identity')";
        let mut unseen = Vec::new();
        for line in cluster.psql(&database, columns).unwrap().lines() {
            let (column, kind) = line.split_once(' ').unwrap();
            let (table, name) = column.split_once('.').unwrap();
            if FREE.contains(&column) {
                continue;
            }
            let value = match kind {
                "bytea" => {
                    let known = format!("coalesce({name}, '\\x{}')", "00".repeat(32));
                    format!("set_byte({known}, 3, get_byte({known}, 3) # 1)")
                }
                "text" => format!("coalesce({name}, '') || 'x'"),
                _ => format!("coalesce({name}, 0) + 1"),
            };
            let copy = cluster.copy_of(&database);
            let edit = format!(
                "SET session_replication_role = replica; DO $$ DECLARE c record; BEGIN FOR c IN SELECT conname FROM pg_constraint \
                 WHERE conrelid = '{table}'::regclass AND contype = 'c' LOOP \
                 EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I', c.conname); END LOOP; END $$; \
                 ALTER TABLE {table} ALTER {name} DROP NOT NULL; \
                 UPDATE {table} SET {name} = {value} WHERE ctid = (SELECT max(ctid) FROM {table})"
            );
            if cluster.psql(&copy, &edit).is_err() {
                // A primary key's column.
                let plain = format!(
                    "SET session_replication_role = replica; UPDATE {table} SET {name} = {value} WHERE ctid = (SELECT max(ctid) FROM {table})"
                );
                cluster.psql(&copy, &plain).unwrap();
            }
            let ledger = postgres(&cluster.url(&copy), OpenMode::ReadOnly)
                .await
                .unwrap();
            let faults = ledger.verify().await.unwrap().faults;
            let mut real = faults
                .iter()
                .filter(|fault| !fault.contains("a constraint of the books"));
            if real.next().is_none() {
                unseen.push(column.to_owned());
            }
        }
        assert_eq!(unseen, Vec::<String>::new());
        cluster
            .psql(
                &database,
                "ALTER TABLE entries DISABLE TRIGGER entries_append_only",
            )
            .unwrap();
        let ledger = postgres(&cluster.url(&database), OpenMode::ReadOnly)
            .await
            .unwrap();
        assert!(
            ledger
                .verify()
                .await
                .unwrap()
                .faults
                .iter()
                .any(|fault| fault.contains("append-only"))
        );
    });
}
