//! A ledger of before events: what it has is told from the upgrade on.

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::*;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;

/// A tenth of the last payment of before is low, and what a cap charged before is told with the next charge.
#[test]
fn a_ledger_of_the_tenth_schema_tells_what_happens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    let fixture = "tests/fixtures/schema-10-events.sqlite";
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture), &path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    run(async {
        let ledger = SqliteLedger::open(&path, OpenMode::Serve, Durability::Prompt).unwrap();
        sound(&ledger).await;
        assert_eq!(ledger.events(None, 9).await.unwrap(), []);
        let query = KeyQuery {
            limit: 9,
            ..KeyQuery::default()
        };
        let keys = ledger.list_keys(query).await.unwrap();
        let ann = keys.iter().find(|key| key.settings.label == "ann").unwrap();
        let takes = |operation, amount, reference: &str| Credit {
            operation: op(operation),
            to: ann.customer.id.into(),
            kind: CreditKind::Adjust {
                reason: "less".to_owned(),
            },
            amount: usd(amount),
            reference: reference.to_owned(),
            actor: "ada".to_owned(),
            at: clock::now(),
        };
        ledger.credit(takes(900, "-22.9", "a-1")).await.unwrap();
        assert_eq!(ledger.events(None, 9).await.unwrap(), []);
        ledger.credit(takes(901, "-0.1", "a-2")).await.unwrap();
        let hold = NewHold {
            customer: ann.customer.id,
            key: ann.id,
            ..new_hold(1, 902, "0.001")
        };
        ledger.open_hold(hold).await.unwrap();
        ledger.finish_hold(finish(902, 1_600)).await.unwrap();
        let told = ledger.events(None, 9).await.unwrap();
        let data: Vec<_> = told.iter().map(|event| event.document()).collect();
        let told: Vec<_> = told.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(told, ["balance.low", "cap.reached"]);
        assert_eq!(data[0]["data"]["threshold"], "2.00");
        assert_eq!(data[1]["data"]["charged"], "0.001695");
        sound(&ledger).await;
        ledger.close();
    });
}
