//! `farebox keys create --from FILE`: a key for each row of a CSV document, each in a transaction of its own, with a report for each.
//!
//! All rows are read before the first key is created, so a slip in one creates none. A reference pays only once: who sends the same
//! file again creates only what is missing, if each row has a balance.

use std::io::Read;
use std::path::Path;

use clap::{Args as _, Command, FromArgMatches};
use farebox_ledger::{Key, KeySettings, Secret, csv as spreadsheet};
use serde_json::{Value, json};

use super::args::{Args, CreateOptions, OutputFormat};
use super::keys::{new_key, open_for, settings, warn_of_unknown};
use super::output::{self, CommandFailed, Exit};
use super::{parse, view};
use crate::clock;
use crate::selling::Deeded;

/// A document with more bytes is refused.
const LARGEST: u64 = 32 << 20;
/// How many keys are created between two lines that say how far it is.
const STEP: usize = 1_000;
/// The columns, named as the flags.
const COLUMNS: [&str; 7] = [
    "label",
    "balance",
    "reference",
    "models",
    "expires",
    "rate",
    "concurrency",
];
const HEADINGS: [&str; 6] = ["line", "key", "label", "balance", "secret", "result"];

/// A key to create.
struct BulkRow {
    line: u64,
    options: CreateOptions,
    settings: KeySettings,
}

/// What became of a row.
struct RowOutcome {
    line: u64,
    label: String,
    made: Result<(Key, Secret), CommandFailed>,
}

pub(super) async fn create(
    args: &Args,
    options: &CreateOptions,
    from: &Path,
) -> Result<(), CommandFailed> {
    let rows = read(&content(from)?)?;
    let ledger = open_for(args, options).await?;
    let mut slugs: Vec<String> = rows
        .iter()
        .flat_map(|row| row.settings.models.clone().unwrap_or_default())
        .collect();
    slugs.sort_unstable();
    slugs.dedup();
    warn_of_unknown(args, &slugs);
    let total = rows.len();
    let mut outcomes = Vec::with_capacity(total);
    for row in rows {
        let label = row.settings.label.clone();
        let deed = new_key(args, &row.options, row.settings);
        let made = deed.perform(&*ledger).await;
        outcomes.push(RowOutcome {
            line: row.line,
            label,
            made: made.and_then(Deeded::into_key).map_err(CommandFailed::from),
        });
        if outcomes.len() % STEP == 0 {
            output::note(&format!("{} of {total} rows", outcomes.len()));
        }
    }
    print(args, &outcomes);
    verdict(&outcomes)
}

fn content(from: &Path) -> Result<String, CommandFailed> {
    let failed = |error: &dyn std::fmt::Display| {
        CommandFailed::refused(format!("{}: {error}; nothing was created", from.display()))
    };
    let mut text = String::new();
    let read = if from == Path::new("-") {
        std::io::stdin().take(LARGEST + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(from).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
    };
    match read {
        Ok(bytes) if bytes as u64 > LARGEST => Err(failed(&"it has more than 32 MiB")),
        Ok(_) => Ok(text),
        Err(error) => Err(failed(&error)),
    }
}

/// Every row, or every mistake with its line.
fn read(text: &str) -> Result<Vec<BulkRow>, CommandFailed> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let columns: Vec<String> = match reader.headers() {
        Ok(names) => names.iter().map(str::to_owned).collect(),
        Err(error) => return Err(CommandFailed::usage(error.to_string())),
    };
    if let Some(unknown) = columns
        .iter()
        .find(|name| !COLUMNS.contains(&name.as_str()))
    {
        return Err(CommandFailed::usage(format!(
            "the first line names the columns, and `{}` is none; there are {}",
            output::plain(unknown),
            COLUMNS.join(", ")
        )));
    }
    let (mut rows, mut mistakes) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let at = match &record {
            Ok(record) => record.position(),
            Err(error) => error.position(),
        };
        let line = at.map_or(0, csv::Position::line);
        let read = record
            .map_err(|error| error.to_string())
            .and_then(|record| options(&columns, &record))
            .and_then(|options| match settings(&options) {
                Ok(settings) => Ok((options, settings)),
                Err(failed) => Err(failed.message),
            });
        match read {
            Ok((options, settings)) => rows.push(BulkRow {
                line,
                options,
                settings,
            }),
            Err(why) => mistakes.push(format!("line {line}: {why}")),
        }
    }
    if mistakes.is_empty() {
        return Ok(rows);
    }
    Err(CommandFailed::usage(format!(
        "nothing was created:\n{}",
        mistakes.join("\n")
    )))
}

/// A row as if its cells had been typed; an empty cell is a flag left out.
fn options(columns: &[String], record: &csv::StringRecord) -> Result<CreateOptions, String> {
    let typed = columns
        .iter()
        .zip(record)
        .filter(|(_, cell)| !cell.is_empty())
        .map(|(name, cell)| format!("--{name}={cell}"));
    let row = CreateOptions::augment_args(Command::new("row").no_binary_name(true));
    row.try_get_matches_from(typed)
        .and_then(|matches| CreateOptions::from_arg_matches(&matches))
        .map_err(|mut error| {
            parse::hide_secrets(&mut error, false);
            let said = error.to_string();
            let said = said.split("\n\n").next().unwrap_or_default();
            let words = said.trim_start_matches("error: ").split_whitespace();
            words.collect::<Vec<_>>().join(" ")
        })
}

fn print(args: &Args, outcomes: &[RowOutcome]) {
    let cells = |outcome: &RowOutcome| {
        let (key, balance, secret, result) = match &outcome.made {
            Ok((key, secret)) => (
                key.id.to_string(),
                key.customer.account.balance().to_string(),
                secret.reveal().to_owned(),
                "created".to_owned(),
            ),
            Err(failed) => (
                String::new(),
                String::new(),
                String::new(),
                output::plain(&failed.message),
            ),
        };
        let label = output::plain(&outcome.label);
        vec![
            outcome.line.to_string(),
            key,
            label,
            balance,
            secret,
            result,
        ]
    };
    let rows = || outcomes.iter().map(cells).collect::<Vec<_>>();
    match args.format() {
        OutputFormat::Json => {
            let rows: Vec<Value> = outcomes.iter().map(document).collect();
            output::print_json(&json!({ "rows": rows }));
        }
        OutputFormat::Csv => output::print(&spreadsheet::document(&HEADINGS, &rows())),
        _ => {
            output::print(&output::table(&HEADINGS, &rows()));
            output::note("The secrets are shown only now and are not stored.");
        }
    }
}

fn document(outcome: &RowOutcome) -> Value {
    let mut shown = match &outcome.made {
        Ok((key, secret)) => view::key_with_secret(key, secret.reveal(), clock::now()),
        Err(failed) => json!({ "label": outcome.label, "error": failed.message }),
    };
    shown["line"] = json!(outcome.line);
    shown
}

/// An unknown outcome weighs more than a refusal.
fn verdict(outcomes: &[RowOutcome]) -> Result<(), CommandFailed> {
    let failed: Vec<Exit> = outcomes
        .iter()
        .filter_map(|outcome| Some(outcome.made.as_ref().err()?.exit))
        .collect();
    let unknown = failed.contains(&Exit::Unknown);
    let message = format!("{} of {} rows created no key", failed.len(), outcomes.len());
    match failed.len() {
        0 => Ok(()),
        _ if unknown => Err(CommandFailed {
            exit: Exit::Unknown,
            message,
        }),
        _ => Err(CommandFailed::refused(message)),
    }
}
