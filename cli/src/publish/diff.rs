//! `farebox diff`: compares the files with the running configuration, and says how many keys, subscriptions or customers each change affects.
//!
//! The running configuration comes from the gateway's admin listener. If no gateway answers, the files are compared with the slugs
//! that the ledger records as published, by name, and the command exits with 2. Nothing is changed.

use std::collections::BTreeMap;

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
use farebox_selling::{customer, subscription};

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

/// Whom a change concerns.
enum Reach<'a> {
    Keys(&'a SlugUse),
    Subscriptions(usize),
    Customers(usize),
    Nobody,
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
    let of_plans = match &ledger {
        Some(ledger) if rows.iter().any(|row| row.subject == DiffSubject::Plan) => {
            subscription::count(&**ledger).await?
        }
        Some(_) | None => BTreeMap::new(),
    };
    let of_lists = match &ledger {
        Some(ledger) if rows.iter().any(|row| row.subject == DiffSubject::PriceList) => {
            customer::on_price_lists(&**ledger).await?
        }
        Some(_) | None => BTreeMap::new(),
    };
    let reach = |row: &DiffRow| match row.subject {
        DiffSubject::Model | DiffSubject::Retired => {
            let used = week.iter().find(|used| used.slug == row.name);
            used.map_or(Reach::Nobody, Reach::Keys)
        }
        DiffSubject::Plan => Reach::Subscriptions(of_plans.get(&row.name).copied().unwrap_or(0)),
        DiffSubject::PriceList => {
            let name = row.name.split('/').next().unwrap_or_default();
            Reach::Customers(of_lists.get(name).copied().unwrap_or(0))
        }
        DiffSubject::Provider | DiffSubject::Shop | DiffSubject::Defaults => Reach::Nobody,
    };
    match args.format() {
        OutputFormat::Json => output::print_json(&document(&against, &rows, reach)),
        OutputFormat::Csv => output::sheet(&csv::document(
            &CSV_HEADINGS,
            &cells(&rows, |change| word(change).to_owned(), reach),
        )),
        _ => {
            output::note(&against.shown(args));
            let table = if rows.is_empty() {
                "no differences".to_owned()
            } else {
                output::table(
                    &HEADINGS,
                    &cells(&rows, |change| change.mark().to_string(), reach),
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

const CSV_HEADINGS: [&str; 8] = [
    "change",
    "subject",
    "name",
    "field",
    "value",
    "keys_last_week",
    "subscriptions",
    "customers",
];
const HEADINGS: [&str; 8] = [
    "",
    "what",
    "name",
    "field",
    "old → new",
    "keys, 7 days",
    "subscriptions",
    "customers",
];

fn cells<'a>(
    rows: &[DiffRow],
    mark: fn(DifferenceKind) -> String,
    reach: impl Fn(&DiffRow) -> Reach<'a>,
) -> Vec<Vec<String>> {
    rows.iter()
        .map(|row| {
            let what = match row.subject {
                DiffSubject::Retired => "retired",
                subject => subject.words(),
            };
            let values = match (&row.old, &row.new) {
                (Some(old), Some(new)) => format!("{old} → {new}"),
                (Some(only), None) | (None, Some(only)) => only.clone(),
                (None, None) => String::new(),
            };
            let [mut keys, mut subscriptions, mut customers] = [const { String::new() }; 3];
            match reach(row) {
                Reach::Keys(used) => keys = used.keys.to_string(),
                Reach::Subscriptions(count) => subscriptions = count.to_string(),
                Reach::Customers(count) => customers = count.to_string(),
                Reach::Nobody => {}
            }
            vec![
                mark(row.change),
                what.to_owned(),
                plain(&row.name),
                row.field.to_owned(),
                plain(&values),
                keys,
                subscriptions,
                customers,
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
    reach: impl Fn(&DiffRow) -> Reach<'a>,
) -> Value {
    let changes: Vec<Value> = rows
        .iter()
        .map(|row| {
            let (keys, requests, subscriptions, customers) = match reach(row) {
                Reach::Keys(used) => (used.keys, used.requests, 0, 0),
                Reach::Subscriptions(count) => (0, 0, count, 0),
                Reach::Customers(count) => (0, 0, 0, count),
                Reach::Nobody => (0, 0, 0, 0),
            };
            let mut shown = json!(row);
            shown["keys_last_week"] = json!(keys);
            shown["requests_last_week"] = json!(requests);
            shown["subscriptions"] = json!(subscriptions);
            shown["customers"] = json!(customers);
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
