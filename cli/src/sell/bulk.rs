//! Documents of many rows (`keys create --from`, `customers create --from`): each row is an operation of its own, and reported. Many are
//! under way at a time, so that the ledger commits them together.
//!
//! All rows are read before the first is done, so a slip in one does nothing. What a row creates is a [`BulkKind`].

use std::io::Read;
use std::path::Path;
use std::pin::pin;

use clap::{Args as ClapArgs, Command};
use farebox_ledger::csv as spreadsheet;
use farebox_ledger::store::SharedStore;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::args::{Args, OutputFormat};
use crate::output::{self, CommandFailed, Exit};
use crate::parse;

/// A document with more bytes is refused.
const LARGEST: u64 = 32 << 20;
/// How many rows are done between two lines that say how far it is.
const STEP: usize = 1_000;
/// Rows under way at a time.
const AT_ONCE: usize = 256;

/// What the rows of a document create.
pub(crate) trait BulkKind {
    /// A row as if its cells had been typed.
    type Options: ClapArgs;
    /// A row whose values were checked.
    type Row;
    /// What a row created.
    type Made;
    /// The columns, named as the flags.
    const COLUMNS: &'static [&'static str];
    /// One of what is created, in a word.
    const NOUN: &'static str;
    /// The columns of the report that say more of what was created than its id and label.
    const MORE: &'static [&'static str];
    /// What people are told below the report.
    const NOTE: Option<&'static str>;

    /// Checks a row before anything is created.
    fn row(options: Self::Options) -> Result<Self::Row, CommandFailed>;
    /// How the report names a row.
    fn label(row: &Self::Row) -> &str;
    /// Creates it.
    async fn create(
        &self,
        ledger: &SharedStore,
        row: Self::Row,
    ) -> Result<Self::Made, CommandFailed>;
    /// Its id, and the cells of [`BulkKind::MORE`].
    fn cells(made: &Self::Made) -> (String, Vec<String>);
    fn document(made: &Self::Made) -> Value;
}

/// A row of a document.
pub(crate) struct BulkRow<T> {
    line: u64,
    pub(crate) content: T,
}

/// What became of a row.
struct RowOutcome<M> {
    line: u64,
    label: String,
    made: Result<M, CommandFailed>,
}

/// Does every row, and reports each. Fails if one did nothing.
pub(crate) async fn run<K: BulkKind>(
    args: &Args,
    kind: K,
    ledger: &SharedStore,
    rows: Vec<BulkRow<K::Row>>,
) -> Result<(), CommandFailed> {
    let total = rows.len();
    let mut outcomes = Vec::with_capacity(total);
    let done = stream::iter(rows).map(async |BulkRow { line, content }| {
        let label = K::label(&content).to_owned();
        let made = kind.create(ledger, content).await;
        RowOutcome { line, label, made }
    });
    // They are begun in their order, and so a reference that stands twice belongs to its first row.
    let mut done = pin!(done.buffered(AT_ONCE));
    while let Some(outcome) = done.next().await {
        outcomes.push(outcome);
        if outcomes.len() % STEP == 0 {
            output::note(&format!("{} of {total} rows", outcomes.len()));
        }
    }
    print::<K>(args, &outcomes);
    verdict(K::NOUN, &outcomes)
}

/// Every row of a document, or every mistake with its line.
pub(crate) fn read<K: BulkKind>(from: &Path) -> Result<Vec<BulkRow<K::Row>>, CommandFailed> {
    let text = content(from)?;
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let columns: Vec<String> = match reader.headers() {
        Ok(names) => names.iter().map(str::to_owned).collect(),
        Err(error) => return Err(CommandFailed::usage(error.to_string())),
    };
    if let Some(unknown) = columns
        .iter()
        .find(|name| !K::COLUMNS.contains(&name.as_str()))
    {
        return Err(CommandFailed::usage(format!(
            "the first line names the columns, and `{}` is none; there are {}",
            output::plain(unknown),
            K::COLUMNS.join(", ")
        )));
    }
    // Made once: it costs more than a row takes to be read.
    let mut command = K::Options::augment_args(Command::new("row").no_binary_name(true));
    let (mut rows, mut mistakes) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let at = match &record {
            Ok(record) => record.position(),
            Err(error) => error.position(),
        };
        let line = at.map_or(0, csv::Position::line);
        let read = record
            .map_err(|error| error.to_string())
            .and_then(|record| options::<K::Options>(&mut command, &columns, &record))
            .and_then(|options| K::row(options).map_err(|failed| failed.message));
        match read {
            Ok(content) => rows.push(BulkRow { line, content }),
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

/// A row as if its cells had been typed; an empty cell is a flag left out.
fn options<O: ClapArgs>(
    command: &mut Command,
    columns: &[String],
    record: &csv::StringRecord,
) -> Result<O, String> {
    let typed = columns
        .iter()
        .zip(record)
        .filter(|(_, cell)| !cell.is_empty())
        // With `=`, a cell that begins with a dash is still a value.
        .map(|(name, cell)| format!("--{name}={cell}"));
    let matches = command.try_get_matches_from_mut(typed);
    matches
        .and_then(|matches| O::from_arg_matches(&matches))
        .map_err(|mut error| {
            parse::hide_secrets(&mut error, false);
            let said = error.to_string();
            let said = said.split("\n\n").next().unwrap_or_default();
            let words = said.trim_start_matches("error: ").split_whitespace();
            words.collect::<Vec<_>>().join(" ")
        })
}

fn print<K: BulkKind>(args: &Args, outcomes: &[RowOutcome<K::Made>]) {
    let cells = |outcome: &RowOutcome<K::Made>| {
        let (id, more, result) = match &outcome.made {
            Ok(made) => {
                let (id, more) = K::cells(made);
                (id, more, "created".to_owned())
            }
            Err(failed) => {
                let blank = vec![String::new(); K::MORE.len()];
                (String::new(), blank, output::plain(&failed.message))
            }
        };
        let mut row = vec![outcome.line.to_string(), id, output::plain(&outcome.label)];
        row.extend(more);
        row.push(result);
        row
    };
    let rows = || outcomes.iter().map(cells).collect::<Vec<_>>();
    let headings = [&["line", K::NOUN, "label"], K::MORE, &["result"]].concat();
    match args.format() {
        OutputFormat::Json => {
            let rows: Vec<Value> = outcomes.iter().map(document::<K>).collect();
            output::print_json(&json!({ "rows": rows }));
        }
        OutputFormat::Csv => output::sheet(&spreadsheet::document(&headings, &rows())),
        _ => {
            output::print(&output::table(&headings, &rows()));
            K::NOTE.into_iter().for_each(output::note);
        }
    }
}

fn document<K: BulkKind>(outcome: &RowOutcome<K::Made>) -> Value {
    let mut shown = match &outcome.made {
        Ok(made) => K::document(made),
        Err(failed) => json!({ "label": outcome.label, "error": failed.message }),
    };
    shown["line"] = json!(outcome.line);
    shown
}

/// An unknown outcome weighs more than a refusal.
fn verdict<M>(noun: &str, outcomes: &[RowOutcome<M>]) -> Result<(), CommandFailed> {
    let failed: Vec<Exit> = outcomes
        .iter()
        .filter_map(|outcome| Some(outcome.made.as_ref().err()?.exit))
        .collect();
    let unknown = failed.contains(&Exit::Unknown);
    let message = format!(
        "{} of {} rows created no {noun}",
        failed.len(),
        outcomes.len()
    );
    match failed.len() {
        0 => Ok(()),
        _ if unknown => Err(CommandFailed {
            exit: Exit::Unknown,
            message,
        }),
        _ => Err(CommandFailed::refused(message)),
    }
}
