//! `farebox caps …`: bounds what a key, or a customer with all its keys, may spend by day, week, month or in all. Works while a
//! gateway runs.

use farebox_ledger::{Amount, CapMaker, Caps, CountedCap, OpenMode, Scope, Timestamp, UtcDay, csv};

use super::acts::ask;
use crate::args::caps::{CapScope, OnCaps};
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::publish::check::warn_of_unknown;
use farebox::clock;
use farebox_selling::cap::{self, CapsDocument, SetCap};
use farebox_selling::{SellerAct, reads};

/// The columns of a cap.
const HEADER: [&str; 9] = [
    "interval", "model", "limit", "set by", "beside", "spent", "held", "room", "resets",
];

pub(crate) async fn set(args: &Args, set: &OnCaps<SetCap>) -> Result<(), CommandFailed> {
    let model = set.act.model.clone().map(String::from);
    warn_of_unknown(args, model.as_slice());
    change(args, set.act.clone(), set.of.scope).await
}

pub(crate) async fn change<A: SellerAct<Of = Scope>>(
    args: &Args,
    act: A,
    of: Scope,
) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let done = ask(args, &ledger, act, of).await?;
    if let Some((of, caps)) = cap::left(&done.outcome) {
        print(args, of, caps);
    }
    Ok(())
}

pub(crate) async fn list(args: &Args, of: &CapScope) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let caps = reads::caps(&*ledger, of.scope).await?;
    print(args, of.scope, &caps);
    Ok(())
}

fn print(args: &Args, of: Scope, caps: &Caps) {
    let now = clock::now();
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&CapsDocument::of(of, caps));
        }
        OutputFormat::Csv => output::sheet(&csv::document(&HEADER, &rows(of, caps, now))),
        _ if caps.is_empty() => {
            let kind = match of {
                Scope::Key(_) => "Key",
                Scope::Customer(_) => "Customer",
            };
            output::note(&format!(
                "{kind} {of} has no caps. Set one: farebox caps set {of} day 5"
            ));
        }
        _ => output::print(&output::table(&HEADER, &rows(of, caps, now))),
    }
}

/// The limit of the other one, which stands once this one is gone.
fn beside(counted: &CountedCap) -> String {
    let other = counted.made_by.other();
    counted
        .beside
        .map_or_else(|| "none".to_owned(), |limit| format!("{other} {limit}"))
}

/// Whose limit stands; a seller's may be that of all who have none.
fn set_by(counted: &CountedCap) -> String {
    match counted.made_by {
        CapMaker::Seller if counted.is_default() => "seller (default)".to_owned(),
        maker => maker.to_string(),
    }
}

fn rows(of: Scope, caps: &Caps, now: Timestamp) -> Vec<Vec<String>> {
    let today = UtcDay::of(now);
    let row = |counted: &CountedCap| {
        let state = counted.reached(of, today, Amount::ZERO);
        let model = counted.cap.model.as_deref().unwrap_or("all");
        vec![
            counted.cap.interval.to_string(),
            output::plain(model),
            counted.cap.limit.to_string(),
            set_by(counted),
            beside(counted),
            state.spent.to_string(),
            state.held.to_string(),
            state.room.to_string(),
            state
                .resets_at
                .map_or_else(|| "never".to_owned(), |at| at.to_string()),
        ]
    };
    caps.iter().map(row).collect()
}
