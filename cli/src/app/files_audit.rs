//! The audit of the two files: every configuration that came into force, what it changed, and whose files it was.

use farebox_ledger::{EventKind, FilesAct, Ledger, LedgerError, News, NoteFiles, Perform, owner};
use serde_json::{Value, json};

use farebox::clock;
use farebox::config::{DiffRow, DiffSubject, DifferenceKind, Reloader};
use farebox::server::admin::Admin;

/// Changes that one record has room for; the rest is counted.
const MOST_CHANGES: usize = 500;

/// Notes a start with files that differ from those of the last record. What changed is not known: nobody ran.
pub(super) async fn started(admin: &Admin, reloader: &Reloader) -> Result<(), LedgerError> {
    let ledger = &admin.front.proxy.ledger;
    let newest = ledger.files_acts(None, 1).await?;
    let files = reloader.status().files();
    let known = newest
        .first()
        .is_some_and(|act| files_of(act) == files.as_str());
    if known {
        return Ok(());
    }
    let details = json!({ "act": "start", "files": files });
    ledger
        .perform(NoteFiles {
            act: act(admin, reloader, &details),
            news: Vec::new(),
        })
        .await
}

/// Notes a reload. Of a fleet, the gateway that was first with these files tells what they changed; two that load them in the same
/// instant both do.
pub(super) async fn note(
    ledger: &dyn Ledger,
    act: FilesAct,
    news: Vec<News>,
) -> Result<(), LedgerError> {
    let newest = if news.is_empty() {
        Vec::new()
    } else {
        ledger.files_acts(None, 1).await?
    };
    let same = newest
        .first()
        .is_some_and(|newest| files_of(newest) == files_of(&act));
    let news = if same { Vec::new() } else { news };
    ledger.perform(NoteFiles { act, news }).await
}

/// The digest of the files that an act is about.
fn files_of(act: &FilesAct) -> Value {
    let details: Value = serde_json::from_str(&act.details).unwrap_or_default();
    details.get("files").cloned().unwrap_or_default()
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

/// What sellers' programs hear of a reload: changed prices, and models that are no longer sold.
pub(super) fn news(rows: &[DiffRow]) -> Vec<News> {
    let told = rows
        .iter()
        .filter_map(|row| match (row.subject, row.change) {
            _ if row.is_new_price() => {
                let mut data = json!({ "slug": row.name, "old": row.old, "new": row.new });
                // A price of a list; no slug has a stroke.
                if let Some((list, slug)) = row.name.split_once('/') {
                    (data["list"], data["slug"]) = (list.into(), slug.into());
                }
                Some((EventKind::PriceChanged, data))
            }
            (DiffSubject::Model, DifferenceKind::Removed) => {
                let data = json!({ "slug": row.name, "use": replacement(rows, &row.name) });
                Some((EventKind::ModelRetired, data))
            }
            _ => None,
        });
    told.map(|(kind, data)| News {
        kind,
        data: data.to_string(),
    })
    .collect()
}

/// What the catalog names in place of a model that it retires.
fn replacement<'rows>(rows: &'rows [DiffRow], slug: &str) -> Option<&'rows str> {
    let retired = |row: &&DiffRow| row.subject == DiffSubject::Retired && row.name == slug;
    let row = rows.iter().find(retired)?;
    row.new.as_deref().filter(|name| !name.is_empty())
}

/// The prices that this reload let fall by more than half, with old and new.
fn fell(reloader: &Reloader, rows: &[DiffRow]) -> Vec<Value> {
    let status = reloader.status();
    let changed = |slug: &str| rows.iter().any(|row| row.is_price() && row.name == slug);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_and_retired_models_are_told() {
        let row = |change, subject, name: &str, field, [old, new]: [Option<&str>; 2]| DiffRow {
            change,
            subject,
            name: name.to_owned(),
            field,
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
        };
        let (changed, removed) = (DifferenceKind::Changed, DifferenceKind::Removed);
        let (model, retired) = (DiffSubject::Model, DiffSubject::Retired);
        let rows = [
            row(changed, model, "a", "price", [Some("1"), Some("2")]),
            row(changed, model, "a", "limits", [Some("1"), Some("2")]),
            row(removed, model, "b", "price", [Some("1"), None]),
            row(removed, model, "c", "price", [Some("1"), None]),
            row(
                DifferenceKind::Added,
                retired,
                "b",
                "use",
                [None, Some("a")],
            ),
        ];
        let told = news(&rows);
        let told: Vec<_> = told
            .iter()
            .map(|news| (news.kind.as_str(), news.data.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("price.changed", r#"{"slug":"a","old":"1","new":"2"}"#),
                ("model.retired", r#"{"slug":"b","use":"a"}"#),
                ("model.retired", r#"{"slug":"c","use":null}"#),
            ]
        );
    }
}
