//! `farebox diff`: compares the files with the running configuration, and says how many keys each change affects.
//!
//! The running configuration comes from the gateway's admin listener. If no gateway answers, the files are compared with the slugs
//! that the ledger records as published, by name, and the command exits with 2. Nothing is changed.

use farebox_ledger::store::SharedStore;
use farebox_ledger::{OpenMode, SlugUse, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::check;
use crate::args::{Args, OutputFormat};
use crate::output::{self, CommandFailed, plain};
use crate::{books, gateway};
use farebox::clock;
use farebox::config::{DiffRow, DiffSubject, DifferenceKind, Summary, diff};
use farebox_ledger::csv;

/// The relevant part of `/status`.
#[derive(Deserialize)]
struct HashStatus {
    generation: u64,
    summary: Summary,
}

/// What the files are compared with.
enum DiffAgainst {
    Gateway(Box<HashStatus>),
    /// No gateway answered: the reason, and the published slugs from the ledger.
    Memory(String, Vec<String>),
}

pub(crate) async fn run(args: &Args) -> Result<(), CommandFailed> {
    let files = check::load(args)?.summary();
    let ledger = open(args).await?;
    let against = against(args, ledger.as_ref()).await?;
    let rows = match &against {
        DiffAgainst::Gateway(running) => diff(&running.summary, &files),
        DiffAgainst::Memory(_, slugs) => since_published(slugs, &files),
    };
    let week = match &ledger {
        Some(ledger) => ledger.slug_use(a_week_ago()).await?,
        None => Vec::new(),
    };
    let keys_of = |row: &DiffRow| match row.subject {
        DiffSubject::Model | DiffSubject::Retired => week.iter().find(|used| used.slug == row.name),
        DiffSubject::Provider | DiffSubject::Shop => None,
    };
    match args.format() {
        OutputFormat::Json => output::print_json(&document(&against, &rows, keys_of)),
        OutputFormat::Csv => output::sheet(&csv::document(
            &CSV_HEADINGS,
            &cells(&rows, |change| word(change).to_owned(), keys_of),
        )),
        _ => {
            output::note(&against.shown(args));
            let table = if rows.is_empty() {
                "no differences".to_owned()
            } else {
                output::table(
                    &HEADINGS,
                    &cells(&rows, |change| change.mark().to_string(), keys_of),
                )
            };
            output::print(&table);
        }
    }
    for slug in vanished(&rows, &files) {
        output::note(&format!(
            "warning: `{slug}` is published and would be removed without a replacement text; add [[retired]] with slug = \"{slug}\""
        ));
    }
    match against {
        DiffAgainst::Gateway(_) => Ok(()),
        // A script that asks whether prices change must not read this as "no".
        DiffAgainst::Memory(..) => Err(CommandFailed::usage(
            "no gateway answered, so only the names of models were compared; start it, or name its --admin-listen",
        )),
    }
}

async fn open(args: &Args) -> Result<Option<SharedStore>, CommandFailed> {
    if args.ledger.path().is_some_and(|path| !path.exists()) {
        return Ok(None);
    }
    Ok(Some(books::open(args, OpenMode::ReadOnly).await?))
}

async fn against(args: &Args, ledger: Option<&SharedStore>) -> Result<DiffAgainst, CommandFailed> {
    let why = match gateway::status::<HashStatus>(args).await {
        Ok(running) => return Ok(DiffAgainst::Gateway(Box::new(running))),
        Err(why) => why,
    };
    let published = match ledger {
        Some(ledger) => ledger.published().await?,
        None => Vec::new(),
    };
    Ok(DiffAgainst::Memory(
        why,
        published
            .into_iter()
            .map(|published| published.slug)
            .collect(),
    ))
}

/// Without a running gateway, only names can be compared.
fn since_published(slugs: &[String], files: &Summary) -> Vec<DiffRow> {
    let row = |change, name: &str, old, new| DiffRow {
        change,
        subject: DiffSubject::Model,
        name: name.to_owned(),
        field: "price",
        old,
        new,
    };
    let added = files
        .models
        .iter()
        .filter(|model| !slugs.contains(&model.slug));
    let added = added.map(|model| {
        row(
            DifferenceKind::Added,
            &model.slug,
            None,
            Some(model.price.clone()),
        )
    });
    let known = |slug: &&String| {
        files.models.iter().any(|model| model.slug == **slug)
            || files.retired.iter().any(|retired| retired.slug == **slug)
    };
    let removed = slugs
        .iter()
        .filter(|slug| !known(slug))
        .map(|slug| row(DifferenceKind::Removed, slug, None, None));
    added.chain(removed).collect()
}

/// Published slugs that the files neither publish nor retire.
fn vanished<'a>(rows: &'a [DiffRow], files: &'a Summary) -> impl Iterator<Item = &'a str> {
    let gone = rows
        .iter()
        .filter(|row| row.subject == DiffSubject::Model && row.change == DifferenceKind::Removed);
    gone.map(|row| row.name.as_str()).filter(|slug| {
        let retired = files.retired.iter().any(|retired| retired.slug == *slug);
        let alias = files
            .models
            .iter()
            .any(|model| model.aliases.iter().any(|alias| alias == slug));
        !retired && !alias
    })
}

const CSV_HEADINGS: [&str; 6] = [
    "change",
    "subject",
    "name",
    "field",
    "value",
    "keys_last_week",
];
const HEADINGS: [&str; 6] = ["", "what", "name", "field", "old → new", "keys, 7 days"];

fn cells<'a>(
    rows: &[DiffRow],
    mark: fn(DifferenceKind) -> String,
    keys_of: impl Fn(&DiffRow) -> Option<&'a SlugUse>,
) -> Vec<Vec<String>> {
    rows.iter()
        .map(|row| {
            let what = match row.subject {
                DiffSubject::Model => "model",
                DiffSubject::Retired => "retired",
                DiffSubject::Provider => "provider",
                DiffSubject::Shop => "shop",
            };
            let values = match (&row.old, &row.new) {
                (Some(old), Some(new)) => format!("{old} → {new}"),
                (Some(only), None) | (None, Some(only)) => only.clone(),
                (None, None) => String::new(),
            };
            let keys = keys_of(row).map_or_else(String::new, |used| used.keys.to_string());
            vec![
                mark(row.change),
                what.to_owned(),
                plain(&row.name),
                row.field.to_owned(),
                plain(&values),
                keys,
            ]
        })
        .collect()
}

/// A spreadsheet would read the marks + and − as formulas.
const fn word(change: DifferenceKind) -> &'static str {
    match change {
        DifferenceKind::Added => "added",
        DifferenceKind::Removed => "removed",
        DifferenceKind::Changed => "changed",
    }
}

fn document<'a>(
    against: &DiffAgainst,
    rows: &[DiffRow],
    keys_of: impl Fn(&DiffRow) -> Option<&'a SlugUse>,
) -> Value {
    let changes: Vec<Value> = rows
        .iter()
        .map(|row| {
            let used = keys_of(row);
            let mut shown = json!(row);
            shown["keys_last_week"] = json!(used.map_or(0, |used| used.keys));
            shown["requests_last_week"] = json!(used.map_or(0, |used| used.requests));
            shown
        })
        .collect();
    let against = match against {
        DiffAgainst::Gateway(running) => {
            json!({ "gateway": true, "generation": running.generation })
        }
        DiffAgainst::Memory(why, _) => json!({ "gateway": false, "why": why }),
    };
    json!({ "against": against, "changes": changes })
}

impl DiffAgainst {
    fn shown(&self, args: &Args) -> String {
        let files = format!("{} and {}", args.catalog.display(), args.routes.display());
        match self {
            Self::Gateway(running) => {
                format!(
                    "{files} compared with the running gateway at {} (generation {})",
                    args.admin_listen, running.generation
                )
            }
            Self::Memory(why, _) => {
                format!(
                    "{why}\n{files} compared with the slugs that the ledger remembers as published; prices are not compared"
                )
            }
        }
    }
}

fn a_week_ago() -> Timestamp {
    const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
    Timestamp::from_millis(clock::now().millis().saturating_sub(WEEK_MS))
}
