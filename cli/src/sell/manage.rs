//! `farebox keys …`: sells keys, and manages those that are in use. Works while a gateway runs.
//!
//! Every act goes into the audit with its actor; money moves at most once per reference.

use farebox_ledger::{OpenMode, Outcome, Said};

use super::acts::{self, act};
use super::{bulk_keys, keys, show};
use crate::args::dates;
use crate::args::{Args, KeysCommand, OnKey};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::publish::check::warn_of_unknown;
use farebox_selling::key::{Block, EditKey, Rotate, Unblock};
use farebox_selling::reads;

pub(crate) async fn run(args: &Args, command: &KeysCommand) -> Result<(), CommandFailed> {
    match command {
        KeysCommand::Create(options) => match &options.from {
            Some(from) => bulk_keys::create(args, options, from).await,
            None => keys::create(args, options).await,
        },
        KeysCommand::List(options) => keys::list(args, options).await,
        KeysCommand::Show(one) => show::run(args, one).await,
        KeysCommand::TopUp(on) => act(args, on.act.clone(), on.id.into()).await,
        KeysCommand::Adjust(on) => act(args, on.act.clone(), on.id.into()).await,
        KeysCommand::Refund(on) => act(args, on.act.clone(), on.request).await,
        KeysCommand::Set(on) => set(args, on).await,
        KeysCommand::Rotate(on) => rotate(args, on).await,
        KeysCommand::Block(one) => act(args, Block {}, one.id).await,
        KeysCommand::Unblock(one) => act(args, Unblock {}, one.id).await,
        KeysCommand::Revoke(on) => keys::revoke(args, on).await,
        KeysCommand::Link(one) => keys::link(args, one).await,
    }
}

async fn set(args: &Args, on: &OnKey<EditKey>) -> Result<(), CommandFailed> {
    if let Said::Set(models) = &on.act.models {
        warn_of_unknown(args, models);
    }
    act(args, on.act.clone(), on.id).await?;
    dates::note_expiry(on.act.expires_at.map(Into::into).over(None));
    Ok(())
}

async fn rotate(args: &Args, on: &OnKey<Rotate>) -> Result<(), CommandFailed> {
    let made = {
        let ledger = open(args, OpenMode::ReadOnly).await?;
        reads::made_by(&*ledger, on.id).await?
    };
    let done = acts::shown(args, on.act.clone(), on.id).await?;
    let Outcome::Key(key) = &done.outcome else {
        return Ok(());
    };
    let with_made = on.act.with_made == Some(true);
    keys::note_made(&made, with_made, &format!("rotate {}", on.id));
    match key.old_secret {
        None => output::note("The old secret no longer works."),
        Some((_, until)) => output::note(&format!("The old secret works until {until}.")),
    }
    Ok(())
}
