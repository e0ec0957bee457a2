//! Shared by the commands on keys: opens the ledger, signs the act, finds the key and prints it. Decides nothing.

use farebox_ledger::store::SharedStore;
use farebox_ledger::{
    Act, Customer, CustomerId, Key, KeyId, KeyQuery, Ledger, LedgerError, OpenMode, Opening,
    Refusal, Secret, csv,
};
use serde_json::Value;

use super::args::{Args, OutputFormat};
use super::output::{self, CommandFailed};
use super::view;
use crate::clock;

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
            OutputFormat::Table | OutputFormat::Markdown | OutputFormat::Html => {
                output::print(&source)
            }
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
    Act {
        operation: clock::operation_id(),
        actor: args.actor(),
        at: clock::now(),
    }
}

/// Keys are read from the ledger in pages of this many.
const PAGE: usize = 1_000;
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

/// Prints a key with its new secret.
pub(super) fn print_secret(args: &Args, key: &Key, secret: &Secret) {
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&view::key_with_secret(key, secret.reveal(), clock::now()))
        }
        OutputFormat::Csv => {
            let (mut header, mut row) = (HEADER.to_vec(), rows(std::slice::from_ref(key)));
            header.push("secret");
            row.iter_mut()
                .for_each(|cells| cells.push(secret.reveal().to_owned()));
            output::print(&csv::document(&header, &row));
        }
        _ => {
            print_key(args, key);
            output::print(&format!("\nsecret  {}", secret.reveal()));
            output::note(
                "The secret is shown only now and is not stored; give it to the customer.",
            );
        }
    }
}

/// The key, or an error if there is none.
pub(super) async fn find(ledger: &dyn Ledger, id: KeyId) -> Result<Key, CommandFailed> {
    let key = ledger.find_key(id).await?;
    key.ok_or_else(|| LedgerError::Refused(Refusal::NoSuchKey(id)).into())
}

/// The customer, or an error if there is none.
pub(super) async fn find_customer(
    ledger: &dyn Ledger,
    id: CustomerId,
) -> Result<Customer, CommandFailed> {
    let customer = ledger.find_customer(id).await?;
    customer.ok_or_else(|| LedgerError::Refused(Refusal::NoSuchCustomer(id)).into())
}

/// All keys of a customer, oldest first.
pub(super) async fn keys_of(
    ledger: &dyn Ledger,
    customer: CustomerId,
) -> Result<Vec<Key>, CommandFailed> {
    let mut query = KeyQuery {
        customer: Some(customer),
        now: clock::now(),
        limit: PAGE,
        ..KeyQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let page = ledger.list_keys(query.clone()).await?;
        query.after = page.last().map(|key| query.order.place(key));
        let whole = page.len() == PAGE;
        found.extend(page);
        if !whole {
            return Ok(found);
        }
    }
}
