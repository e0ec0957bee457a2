//! The audit of the two files: every configuration that came into force, what it changed, and whose files it was.

use farebox_ledger::{FilesAct, LedgerError, owner};
use serde_json::{Value, json};

use crate::clock;
use crate::config::{DiffRow, DiffSubject, Reloader};
use crate::server::admin::Admin;

/// Changes that one record has room for; the rest is counted.
const MOST_CHANGES: usize = 500;

/// Notes a start with files that differ from those of the last record. What changed is not known: nobody ran.
pub(super) async fn started(admin: &Admin, reloader: &Reloader) -> Result<(), LedgerError> {
    let ledger = &admin.front.proxy.ledger;
    let newest = ledger.files_acts(None, 1).await?;
    let files = reloader.status().files();
    let known = newest.first().is_some_and(|act| {
        let details: Value = serde_json::from_str(&act.details).unwrap_or_default();
        details["files"] == files.as_str()
    });
    if known {
        return Ok(());
    }
    let details = json!({ "act": "start", "files": files });
    ledger.note_files(act(admin, reloader, &details)).await
}

/// The record of a reload.
pub(super) fn of_reload(
    admin: &Admin,
    reloader: &Reloader,
    generation: u64,
    rows: &[DiffRow],
) -> FilesAct {
    let changes: Vec<Value> = rows
        .iter()
        .take(MOST_CHANGES)
        .map(DiffRow::document)
        .collect();
    let mut details = json!({
        "act": "reload", "files": reloader.status().files(), "generation": generation, "changes": changes,
    });
    let more = rows.len().saturating_sub(MOST_CHANGES);
    if more > 0 {
        details["more"] = more.into();
    }
    let fell = fell(reloader, rows);
    if !fell.is_empty() {
        details["price_fell"] = fell.into();
    }
    act(admin, reloader, &details)
}

/// The prices that this reload let fall by more than half, with old and new.
fn fell(reloader: &Reloader, rows: &[DiffRow]) -> Vec<Value> {
    let status = reloader.status();
    let changed = |slug: &str| {
        rows.iter().any(|row| {
            row.subject == DiffSubject::Model && row.field == "price" && row.name == slug
        })
    };
    // A fall stands until its price changes again, so one whose price changed now fell now.
    let falls = status.falls.iter().filter(|fall| changed(&fall.slug));
    let falls = falls.take(MOST_CHANGES);
    falls
        .map(|fall| json!({ "slug": fall.slug, "what": fall.what }))
        .collect()
}

/// The gateway acts; who edited is told by the owners of the files.
fn act(admin: &Admin, reloader: &Reloader, details: &Value) -> FilesAct {
    let [catalog, routes] = reloader.places().map(owner::of);
    let at = clock::now();
    FilesAct {
        operation: clock::operation_id(),
        at,
        actor: format!(
            "{}; catalog of {catalog}, routes of {routes}",
            admin.operator
        ),
        details: details.to_string(),
    }
}
