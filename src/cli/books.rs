//! Shared by the commands on keys: opens the ledger, signs the act, finds the key and prints it. Decides nothing.

use farebox_ledger::store::SharedStore;
use farebox_ledger::{Act, Key, OpenMode, Opening, Outcome, Secret, csv};
use serde_json::Value;

use super::args::{Args, OutputFormat};
use super::output::{self, CommandFailed};
use super::view;
use super::{customers, payments};
use crate::clock;
use crate::selling::{self, Deed, Deeded};

/// Opens the ledger for a command.
pub(super) async fn open(args: &Args, mode: OpenMode) -> Result<SharedStore, CommandFailed> {
    if args.standby && mode != OpenMode::ReadOnly {
        return Err(CommandFailed::usage(
            "--standby only reads; leave it out to change something",
        ));
    }
    let ledger = args.ledger.open(&opening(args, mode)).await?;
    if let Some(behind) = ledger.servers().iter().find_map(|server| server.behind) {
        let source = format!("standby, {behind} s behind");
        match args.format() {
            OutputFormat::Json => output::read_from(source),
            OutputFormat::Csv => output::print(&format!("# {source}")),
            OutputFormat::Table | OutputFormat::Markdown => output::print(&source),
        }
    }
    Ok(ledger)
}

/// How the settings say to open the ledger.
pub(super) fn opening(args: &Args, mode: OpenMode) -> Opening {
    let (state, anchors) = (args.state.clone(), args.anchors.clone());
    Opening {
        mode,
        durability: args.durability.into(),
        allow_single: args.allow_single,
        standby: args.standby,
        state,
        anchors,
    }
}

/// An administrative act in the name of the user who runs this command.
pub(super) fn act(args: &Args) -> Act {
    selling::act(args.actor())
}

/// Does it, and prints what it came to.
pub(super) async fn perform(
    args: &Args,
    ledger: &SharedStore,
    deed: Deed,
) -> Result<Deeded, CommandFailed> {
    let done = deed.perform(&**ledger).await?;
    print_done(args, &done);
    Ok(done)
}

/// Prints what an act came to.
pub(super) fn print_done(args: &Args, done: &Deeded) {
    if done.repeated() {
        output::note(match done.outcome {
            Outcome::Payment(_) => "The ledger knew this, or more: nothing changed.",
            _ => "This reference was applied before: nothing changed.",
        });
    }
    if args.format() == OutputFormat::Json {
        return output::print_json(&done.document());
    }
    if let Some((key, secret)) = done.sold() {
        return print_secret(args, key, secret);
    }
    match &done.outcome {
        Outcome::Key(key) => print_key(args, key),
        Outcome::Customer(customer) => {
            customers::print(args, std::slice::from_ref(&**customer));
        }
        Outcome::Posted(posted) => match &posted.key {
            Some(key) => print_key(args, key),
            None => customers::print(args, std::slice::from_ref(&posted.customer)),
        },
        Outcome::Moved(moved) => {
            customers::print(args, &[moved.from.clone(), moved.into.clone()]);
        }
        Outcome::Payment(moved) => payments::print(args, moved),
        _ => {}
    }
}

/// The columns of a key.
pub(super) const HEADER: [&str; 6] = ["key", "label", "balance", "held", "available", "status"];

/// Keys as a table for people.
pub(super) fn table(keys: &[Key]) -> String {
    output::table(&HEADER, &rows(keys))
}

/// Keys as rows of [`HEADER`].
pub(super) fn rows(keys: &[Key]) -> Vec<Vec<String>> {
    let now = clock::now();
    let row = |key: &Key| {
        let account = key.customer.account;
        vec![
            key.id.to_string(),
            output::plain(&key.settings.label),
            account.balance().to_string(),
            account.held.to_string(),
            key.spendable(now).to_string(),
            key.status(now).to_string(),
        ]
    };
    keys.iter().map(row).collect()
}

/// Prints one key.
pub(super) fn print_key(args: &Args, key: &Key) {
    let shown: Value = view::key(key, clock::now());
    match args.format() {
        OutputFormat::Json => output::print_json(&shown),
        OutputFormat::Csv => {
            output::print(&csv::document(&HEADER, &rows(std::slice::from_ref(key))))
        }
        _ => output::print(&table(std::slice::from_ref(key))),
    }
}

/// Prints a key with its new secret; not as JSON.
fn print_secret(args: &Args, key: &Key, secret: &Secret) {
    if args.format() == OutputFormat::Csv {
        let (mut header, mut row) = (HEADER.to_vec(), rows(std::slice::from_ref(key)));
        header.push("secret");
        row.iter_mut()
            .for_each(|cells| cells.push(secret.reveal().to_owned()));
        return output::print(&csv::document(&header, &row));
    }
    print_key(args, key);
    output::print(&format!("\nsecret  {}", secret.reveal()));
    output::note("The secret is shown only now and is not stored; give it to the customer.");
}
