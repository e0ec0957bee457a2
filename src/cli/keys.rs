//! `farebox keys …`: sell, fund and manage keys. Works beside a running gateway.

use farebox_ledger::key::Change;
use farebox_ledger::sqlite::OpenMode;
use farebox_ledger::{KeyChange, KeyQuery, KeySettings, LINK_LIFETIME, LinkToken, NewKey, Secret};
use serde_json::json;

use super::args::{Args, CreateOptions, Format, ListOptions, OneKey};
use super::books::{HEADER, act, find, open, print_key, print_secret, rows, table};
use super::output::{self, Failed};
use super::{dates, view};
use crate::clock;
use farebox_ledger::csv;

/// Keys are read from the ledger in pages of this size.
const PAGE: usize = 1_000;

pub(super) async fn create(args: &Args, options: &CreateOptions) -> Result<(), Failed> {
    dates::check_expiry(options.expires)?;
    let ledger = open(args, if options.new_ledger { OpenMode::Create } else { OpenMode::Write }).await?;
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

pub(super) async fn list(args: &Args, options: &ListOptions) -> Result<(), Failed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
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
    let ledger = open(args, OpenMode::ReadOnly).await?;
    print_key(args, &find(&*ledger, one.id).await?);
    Ok(())
}

pub(super) async fn change(args: &Args, one: &OneKey, change: Change) -> Result<(), Failed> {
    let ledger = open(args, OpenMode::Write).await?;
    let key = ledger.change_key(KeyChange { key: one.id, change, act: act(args) }).await?;
    print_key(args, &key);
    Ok(())
}

pub(super) async fn link(args: &Args, one: &OneKey) -> Result<(), Failed> {
    let ledger = open(args, OpenMode::Write).await?;
    let (token, act) = (LinkToken::generate(clock::random()), act(args));
    let expires = LinkToken::expires(act.at);
    ledger.create_link(one.id, token.hash(), expires, act).await?;
    let base = args.public_url.clone().unwrap_or_else(|| format!("http://{}", args.listen));
    let link = token.url(&base);
    match args.format() {
        Format::Json => output::print_json(&json!({ "key": one.id, "link": link, "expires_at": expires })),
        _ => {
            output::print(&link);
            output::note(&format!(
                "It signs in once, within {LINK_LIFETIME}. Whoever has it sees this key's account; give it to the customer only."
            ));
        }
    }
    Ok(())
}
