//! Configurations that came into force are in the audit of every store: each once, newest first, and nobody changes them afterwards.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use common::*;
use farebox_ledger::memory::MemoryLedger;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;

fn act(number: u64, details: &str) -> FilesAct {
    FilesAct {
        operation: op(number),
        at: at(i64::try_from(number).unwrap()),
        actor: "ada (farebox); catalog of ada, routes of root".to_owned(),
        details: details.to_owned(),
    }
}

async fn each_once_and_newest_first(ledger: &dyn Ledger) {
    let all: Vec<FilesAct> = (700..704).map(|number| act(number, "{}")).collect();
    for act in &all {
        ledger
            .perform(NoteFiles {
                act: act.clone(),
                news: Vec::new(),
            })
            .await
            .unwrap();
    }
    ledger
        .perform(NoteFiles {
            act: act(701, "changed later"),
            news: Vec::new(),
        })
        .await
        .unwrap();
    let newest: Vec<FilesAct> = all.into_iter().rev().collect();
    assert_eq!(ledger.files_acts(None, 9).await.unwrap(), newest);
    assert_eq!(ledger.files_acts(None, 2).await.unwrap(), newest[..2]);
    let older = ledger.files_acts(Some(op(702)), 9).await.unwrap();
    assert_eq!(older, newest[2..]);
    sound(ledger).await;
}

#[test]
fn in_memory() {
    run(async { each_once_and_newest_first(&MemoryLedger::new()).await });
}

#[test]
fn in_a_file_that_refuses_to_forget_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    run(async {
        let ledger = SqliteLedger::create(&path, OpenMode::Write, Durability::Prompt).unwrap();
        ledger.recover(at(1)).await.unwrap();
        each_once_and_newest_first(&ledger).await;
        ledger.close();
    });
    let conn = rusqlite::Connection::open(&path).unwrap();
    for change in [
        "DELETE FROM files_acts",
        "UPDATE files_acts SET actor = 'eve'",
    ] {
        let refused = conn.execute(change, []).unwrap_err().to_string();
        assert!(refused.contains("append-only"), "{refused}");
    }
}

#[test]
fn in_a_database_that_refuses_to_forget_them() {
    with_cluster("acts on files", async |cluster| {
        let (database, fleet) = fleet(cluster, 2).await;
        each_once_and_newest_first(&*fleet[0]).await;
        assert_eq!(fleet[1].files_acts(None, 9).await.unwrap().len(), 4);
        for change in ["DELETE FROM files_acts", "TRUNCATE files_acts"] {
            let refused = cluster.psql(&database, change).unwrap_err().to_string();
            assert!(refused.contains("append-only"), "{refused}");
        }
    });
}
