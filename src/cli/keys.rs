//! `farebox keys …`: sell, fund and manage keys. Works beside a running gateway.

use farebox_ledger::key::Change;
use farebox_ledger::sqlite::{OpenMode, SqliteLedger};
use farebox_ledger::{Act, Credit, CreditKind, Key, KeyChange, KeyQuery, KeySettings, Ledger, LinkToken, NewKey, Secret};
use serde_json::{Value, json};

use super::args::{Args, CreateOptions, Format, ListOptions, OneKey, TopUpOptions};
use super::output::{self, Failed};
use super::{dates, manage, view};
use crate::clock;
use farebox_ledger::csv;

/// Keys are read from the ledger in pages of this size.
const PAGE: usize = 1_000;

pub(super) async fn create(args: &Args, options: &CreateOptions) -> Result<(), Failed> {
    dates::check_expiry(options.expires)?;
    let ledger = open(args, if options.new_ledger { OpenMode::Create } else { OpenMode::Write })?;
    let id = clock::key_id();
    let secret = Secret::generate(id, clock::random());
    let settings = KeySettings {
        label: options.label.clone(),
        models: options.models.clone(),
        expires_at: options.expires,
        ..KeySettings::default()
    };
    let first_credit = options.balance.zip(options.reference.clone());
    let new = NewKey { id, secret: secret.hash(), settings, first_credit, act: act(args) };
    let key = ledger.create_key(new).await?;
    print_secret(args, &key, &secret);
    dates::note_expiry(options.expires);
    Ok(())
}

/// Prints a key with the secret that was just made for it.
pub(super) fn print_secret(args: &Args, key: &Key, secret: &Secret) {
    match args.format() {
        Format::Json => output::print_json(&view::key_with_secret(key, secret.reveal(), clock::now())),
        _ => {
            print_key(args, key);
            output::print(&format!("\nsecret  {}", secret.reveal()));
            output::note("The secret is shown this once and is not stored; give it to the customer now.");
        }
    }
}

pub(super) async fn list(args: &Args, options: &ListOptions) -> Result<(), Failed> {
    let ledger = open(args, OpenMode::ReadOnly)?;
    let mut query = KeyQuery { label: options.label.clone(), now: clock::now(), limit: PAGE, ..KeyQuery::default() };
    let mut keys = Vec::new();
    loop {
        let page = ledger.list_keys(query.clone()).await?;
        query.after = page.last().map(|key| query.order.place(key));
        let whole = page.len() == PAGE;
        keys.extend(page);
        if !whole {
            break;
        }
    }
    match args.format() {
        Format::Json => {
            output::print_json(&json!({ "keys": keys.iter().map(|key| view::key(key, clock::now())).collect::<Vec<_>>() }))
        }
        Format::Csv => output::print(&csv::document(&HEADER, &rows(&keys))),
        _ if keys.is_empty() => output::note("There is no key yet. Make one: farebox keys create --label NAME"),
        _ => output::print(&table(&keys)),
    }
    Ok(())
}

pub(super) async fn show(args: &Args, one: &OneKey) -> Result<(), Failed> {
    let ledger = open(args, OpenMode::ReadOnly)?;
    print_key(args, &manage::find(&ledger, one.id).await?);
    Ok(())
}

pub(super) async fn top_up(args: &Args, options: &TopUpOptions) -> Result<(), Failed> {
    let ledger = open(args, OpenMode::Write)?;
    let blank = manage::blank(args, options.id, CreditKind::TopUp, &options.reference);
    manage::post(args, &ledger, Credit { amount: options.amount, ..blank }).await
}

pub(super) async fn change(args: &Args, one: &OneKey, change: Change) -> Result<(), Failed> {
    let ledger = open(args, OpenMode::Write)?;
    let key = ledger.change_key(KeyChange { key: one.id, change, act: act(args) }).await?;
    print_key(args, &key);
    Ok(())
}

pub(super) async fn link(args: &Args, one: &OneKey) -> Result<(), Failed> {
    let ledger = open(args, OpenMode::Write)?;
    let (token, act) = (LinkToken::generate(clock::random()), act(args));
    let expires = LinkToken::expires(act.at);
    ledger.create_link(one.id, token.hash(), expires, act).await?;
    let base = args.public_url.clone().unwrap_or_else(|| format!("http://{}", args.listen));
    let link = token.url(&base);
    match args.format() {
        Format::Json => output::print_json(&json!({ "key": one.id, "link": link, "expires_at": expires })),
        _ => {
            output::print(&link);
            output::note(
                "It signs in once, within 24 hours. Whoever has it sees this key's account; give it to the customer only.",
            );
        }
    }
    Ok(())
}

/// Opens the ledger for a command.
pub(super) fn open(args: &Args, mode: OpenMode) -> Result<SqliteLedger, Failed> {
    Ok(SqliteLedger::open(args.ledger.path(), mode, args.durability.into())?)
}

/// An administrative act by whoever runs this command.
pub(super) fn act(args: &Args) -> Act {
    Act { operation: clock::operation_id(), actor: args.actor(), at: clock::now() }
}

const HEADER: [&str; 6] = ["key", "label", "balance", "held", "available", "status"];

fn table(keys: &[Key]) -> String {
    output::table(&HEADER, &rows(keys))
}

fn rows(keys: &[Key]) -> Vec<Vec<String>> {
    let now = clock::now();
    let row = |key: &Key| {
        let account = key.account;
        vec![
            key.id.to_string(),
            output::plain(&key.settings.label),
            account.balance().to_string(),
            account.held.to_string(),
            account.available().to_string(),
            key.status(now).to_string(),
        ]
    };
    keys.iter().map(row).collect()
}

/// Prints one key.
pub(super) fn print_key(args: &Args, key: &Key) {
    let shown: Value = view::key(key, clock::now());
    match args.format() {
        Format::Json => output::print_json(&shown),
        Format::Csv => output::print(&csv::document(&HEADER, &rows(std::slice::from_ref(key)))),
        _ => output::print(&table(std::slice::from_ref(key))),
    }
}
