//! `farebox caps …`: bounds what a key may spend by day, week, month or in all. Works while a gateway runs.

use farebox_ledger::key::Change;
use farebox_ledger::{Cap, CountedCap, Key, KeyChange, OpenMode, Timestamp, UtcDay, csv};
use serde_json::json;

use super::args::{Args, OutputFormat};
use super::books::{act, find, open};
use super::caps_args::{CapOptions, CapScope, SetCapOptions};
use super::keys::warn_of_unknown;
use super::output::{self, CommandFailed};
use super::view;
use crate::clock;

/// The columns of a cap.
const HEADER: [&str; 7] = [
    "interval", "model", "limit", "spent", "held", "room", "resets",
];

pub(super) async fn set(args: &Args, options: &SetCapOptions) -> Result<(), CommandFailed> {
    let CapOptions {
        scope,
        interval,
        model,
    } = &options.cap;
    warn_of_unknown(args, model.as_slice());
    let cap = Cap {
        interval: *interval,
        model: model.clone(),
        limit: options.limit,
    };
    change(args, *scope, Change::SetCap(cap)).await
}

pub(super) async fn clear(args: &Args, options: &CapOptions) -> Result<(), CommandFailed> {
    let change_of = Change::ClearCap {
        interval: options.interval,
        model: options.model.clone(),
    };
    change(args, options.scope, change_of).await
}

pub(super) async fn list(args: &Args, of: &CapScope) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    print(args, &find(ledger.as_ref(), of.scope).await?);
    Ok(())
}

async fn change(
    args: &Args,
    key: farebox_ledger::KeyId,
    change: Change,
) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let act = act(args);
    let key = ledger.change_key(KeyChange { key, change, act }).await?;
    print(args, &key);
    Ok(())
}

fn print(args: &Args, key: &Key) {
    let now = clock::now();
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&json!({ "key": key.id, "caps": view::caps(key, now) }));
        }
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(key, now))),
        _ if key.caps.is_empty() => output::note(&format!(
            "Key {0} has no caps. Set one: farebox caps set {0} day 5",
            key.id
        )),
        _ => output::print(&output::table(&HEADER, &rows(key, now))),
    }
}

fn rows(key: &Key, now: Timestamp) -> Vec<Vec<String>> {
    let today = UtcDay::of(now);
    let row = |counted: &CountedCap| {
        let state = counted.reached(today, farebox_ledger::Amount::ZERO);
        let model = counted.cap.model.as_deref().unwrap_or("all");
        vec![
            counted.cap.interval.to_string(),
            output::plain(model),
            counted.cap.limit.to_string(),
            state.spent.to_string(),
            state.held.to_string(),
            state.room.to_string(),
            state
                .resets_at
                .map_or_else(|| "never".to_owned(), |at| at.to_string()),
        ]
    };
    key.caps.iter().map(row).collect()
}
