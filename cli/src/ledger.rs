//! `farebox ledger …`: reads and checks the books. Works while a gateway runs.

use std::path::Path;
use std::time::Duration;

use farebox_ledger::postgres::AcceptedLoss;
use farebox_ledger::{
    EntryQuery, JournalEntry, LedgerError, OpenMode, VerifyReport, anchor, document,
};
use serde_json::json;

use tokio::time::Instant;

use super::args::{AcceptOptions, Args, BackupOptions, CopyOptions, EntriesOptions, OutputFormat};
use super::books;
use super::output::{self, CommandFailed, Exit};
use farebox::clock;
use farebox_ledger::csv;
use farebox_selling::reads;

/// Time between two progress messages of a copy.
const SAY_EVERY: Duration = Duration::from_secs(2);

pub(super) async fn entries(args: &Args, options: &EntriesOptions) -> Result<(), CommandFailed> {
    if options
        .since
        .zip(options.until)
        .is_some_and(|(since, until)| since >= until)
    {
        return Err(CommandFailed::usage(
            "--since is not before --until, so no entry is between them",
        ));
    }
    let ledger = books::open(args, OpenMode::ReadOnly).await?;
    if let Some(key) = options.key {
        reads::key(&*ledger, key).await?;
    }
    if let Some(customer) = options.customer {
        reads::customer(&*ledger, customer).await?;
    }
    let query = EntryQuery {
        customer: options.customer,
        key: options.key,
        since: options.since,
        until: options.until,
        before: None,
        limit: options.limit,
    };
    let entries = ledger.entries(query).await?;
    match args.format() {
        OutputFormat::Json => output::print_json(
            &json!({ "entries": entries.iter().map(document::json).collect::<Vec<_>>() }),
        ),
        OutputFormat::Csv => output::sheet(&csv::document(
            &document::COLUMNS,
            &entries.iter().map(document::row).collect::<Vec<_>>(),
        )),
        _ if entries.is_empty() => output::note("No entries."),
        _ => output::print(&table(&entries)),
    }
    Ok(())
}

/// The first line of a verification.
const NOT_VERIFIED: &str = "Not verified, because no money follows from it: what a token counted in a day (only that it kept to its bound), \
    the answers stored for repeated requests, when a slug was published, and who reloaded which files.";

pub(super) async fn verify(args: &Args) -> Result<(), CommandFailed> {
    let ledger = books::open(args, OpenMode::ReadOnly).await?;
    let anchors = match &args.anchors {
        Some(path) => anchor::read(path)
            .map_err(|error| CommandFailed::refused(format!("{}: {error}", path.display())))?,
        None => Vec::new(),
    };
    let mut report = ledger.verify_with(anchors).await?;
    match unsettled(args) {
        Ok(note) => report.notes.extend(note),
        Err(error) => report.faults.push(error.to_string()),
    }
    let summary = summary(&report);
    if args.format() != OutputFormat::Json {
        output::note(NOT_VERIFIED);
        report.notes.iter().for_each(|note| output::note(note));
    }
    match args.format() {
        OutputFormat::Json => output::print_json(&json!(report)),
        _ if report.faults.is_empty() => output::print(&format!("the books are sound: {summary}")),
        _ => {
            let faults = output::count(report.faults.len(), "fault");
            output::print(&format!(
                "{}\n{faults} in {summary}",
                report.faults.join("\n")
            ));
        }
    }
    if report.faults.is_empty() {
        Ok(())
    } else {
        Err(CommandFailed::refused(
            "the books do not add up; do not serve from this ledger until you know why",
        ))
    }
}

pub(super) async fn backup(args: &Args, options: &BackupOptions) -> Result<(), CommandFailed> {
    let file = &options.file;
    let refuse = |what: &Path, why: &str| {
        Err(CommandFailed::refused(format!(
            "{} {why}; nothing was done",
            what.display()
        )))
    };
    // A link that leads nowhere is also something that stands there.
    match file.symlink_metadata() {
        Ok(found) if found.is_dir() => {
            return refuse(file, "is a folder: add the name of the new file to it");
        }
        Ok(_) => {
            return refuse(
                file,
                "already exists: a backup never overwrites a file, so choose a new name",
            );
        }
        Err(_) => {}
    }
    // A missing folder may be a drive that is not mounted: a copy made there would be on the ledger's own disk.
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    {
        return refuse(
            folder,
            "is not a folder that exists: create it, or choose another place",
        );
    }
    let ledger = books::open(args, OpenMode::ReadOnly).await?;
    let mut report = ledger.backup(file).await?;
    if let Some(note) = unsettled(args)? {
        output::note(&format!("not in the backup: {note}"));
        report.notes.push(note);
    }
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&json!({ "file": options.file, "verified": report }))
        }
        _ => output::print(&format!(
            "{} is a verified copy: {}",
            options.file.display(),
            summary(&report)
        )),
    }
    Ok(())
}

/// What a gateway could not book when it stopped, in words.
fn unsettled(args: &Args) -> Result<Option<String>, LedgerError> {
    let left = args.ledger.unsettled(args.state.as_deref())?;
    Ok((!left.is_nothing()).then(|| left.to_string()))
}

/// Copies the whole ledger to the other kind of store, and reports its progress.
pub(super) async fn copy(args: &Args, options: &CopyOptions) -> Result<(), CommandFailed> {
    if let Some(note) = unsettled(args)? {
        return Err(CommandFailed::refused(format!(
            "{note}; nothing was copied: start and stop the gateway once, which books them"
        )));
    }
    let mut said = Instant::now();
    let progress = |done, all| {
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            output::note(&format!("{done} of {all} entries"));
        }
    };
    let report = args
        .ledger
        .copy_to(&options.to, progress)
        .await
        .map_err(|error| match error {
            LedgerError::Unknown(why) => CommandFailed {
                exit: Exit::Unknown,
                message: format!(
                    "the outcome is unknown ({why}); look at {} with `farebox ledger verify`",
                    options.to
                ),
            },
            other => other.into(),
        })?;
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&json!({ "to": options.to.to_string(), "verified": report }))
        }
        _ => output::print(&format!(
            "{} is a verified copy: {}",
            options.to,
            summary(&report)
        )),
    }
    output::note(&format!(
        "Serve from the copy only. {} is marked as moved: it can be read, and no gateway or command changes it any more.",
        args.ledger
    ));
    Ok(())
}

/// Accepts the loss of what a gateway remembers and a database no longer has, or lists earlier accepted losses.
pub(super) async fn accept(args: &Args, options: &AcceptOptions) -> Result<(), CommandFailed> {
    if !options.lost {
        let losses = args.ledger.accepted_losses().await?;
        match args.format() {
            OutputFormat::Json => output::print_json(
                &json!({ "accepted": losses.iter().map(loss).collect::<Vec<_>>() }),
            ),
            _ if losses.is_empty() => output::note("No loss was ever accepted."),
            _ => losses.iter().for_each(|accepted| {
                let AcceptedLoss {
                    lost,
                    generation,
                    actor,
                    at,
                } = accepted;
                let lost: Vec<String> = lost.iter().map(|lost| output::plain(lost)).collect();
                output::print(&format!(
                    "{at} {}: generation {generation} began\n  {}",
                    output::plain(actor),
                    lost.join("\n  ")
                ));
            }),
        }
        return Ok(());
    }
    if args.state.is_none() && args.anchors.is_none() {
        return Err(CommandFailed::refused(
            "nothing was done; name the files of the gateway that stopped selling: --state FILE, --anchors FILE or both"
                .to_owned(),
        ));
    }
    let accepted = args
        .ledger
        .accept_lost(
            &books::opening(args, OpenMode::Write),
            &args.actor(),
            clock::now(),
        )
        .await?;
    match args.format() {
        OutputFormat::Json => output::print_json(&loss(&accepted)),
        _ => output::print(&format!(
            "{}\naccepted; generation {} begins",
            accepted.lost.join("\n"),
            accepted.generation
        )),
    }
    Ok(())
}

fn loss(accepted: &AcceptedLoss) -> serde_json::Value {
    let AcceptedLoss {
        lost,
        generation,
        actor,
        at,
    } = accepted;
    json!({ "lost": lost, "generation": generation, "actor": actor, "at": at })
}

fn summary(report: &VerifyReport) -> String {
    let VerifyReport {
        customers,
        keys,
        entries,
        holds,
        anchors,
        ..
    } = report;
    let entries = if *entries == 1 {
        "1 entry".to_owned()
    } else {
        format!("{entries} entries")
    };
    let [customers, keys, holds, anchors] = [
        (*customers, "customer"),
        (*keys, "key"),
        (*holds, "open hold"),
        (*anchors, "anchor"),
    ]
    .map(|(many, one)| output::count(many, one));
    format!("{customers}, {keys}, {entries}, {holds}, {anchors}")
}

const HEADER: [&str; 9] = [
    "at", "key", "seq", "kind", "amount", "balance", "what", "tokens", "customer",
];

/// Entries for people.
pub(super) fn table(entries: &[JournalEntry]) -> String {
    output::table(&HEADER, &entries.iter().map(row).collect::<Vec<_>>())
}

fn row(entry: &JournalEntry) -> Vec<String> {
    let (what, tokens) = match &entry.bill {
        Some(bill) => {
            let usage = bill.usage;
            let input = usage.prompt();
            let class = bill.served.class().map(|class| format!(" {class}"));
            let class = class.unwrap_or_default();
            (
                format!("{}{class} {}", bill.slug, bill.end_reason),
                format!(
                    "{input} ({} cached) → {}",
                    usage.cache_read,
                    usage.all_output()
                ),
            )
        }
        None => (
            output::plain(&entry.reference.clone().unwrap_or_default()),
            String::new(),
        ),
    };
    vec![
        entry.at.to_string(),
        entry.key.map(|key| key.to_string()).unwrap_or_default(),
        entry.seq.to_string(),
        document::kind(entry.kind).to_owned(),
        entry.amount.to_string(),
        entry.balance_after.to_string(),
        what,
        tokens,
        entry.customer.to_string(),
    ]
}
