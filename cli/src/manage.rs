//! `farebox keys adjust|refund|set|rotate`: manages keys that are in use. Works while a gateway runs.
//!
//! Every act goes into the audit with its actor; money moves at most once per reference.

use std::time::Duration;

use farebox_ledger::key::Change;
use farebox_ledger::{CreditKind, OpenMode, Outcome};

use super::args::{
    AdjustOptions, Args, Overlap, RefundOptions, RotateOptions, SetOptions, TopUpOptions,
};
use super::books::{act, open};
use super::dates;
use super::done::perform;
use super::keys::{flag, warn_of_unknown};
use super::output::{self, CommandFailed};
use farebox::proxy::record::request_id;
use farebox::selling::keys::{self, KeyEdit};
use farebox::selling::{Deed, money, reads};

pub(super) async fn top_up(args: &Args, options: &TopUpOptions) -> Result<(), CommandFailed> {
    let (amount, reference) = (options.amount, &options.reference);
    let ledger = open(args, OpenMode::Write).await?;
    let deed = match options.paid.sum() {
        None => money::credit(options.id, CreditKind::TopUp, amount, reference, act(args)),
        paid => {
            let customer = reads::key(&*ledger, options.id).await?.belongs_to;
            money::pay(customer, amount, paid, (reference.clone(), None), act(args))
        }
    };
    perform(args, &ledger, deed).await.map(drop)
}

pub(super) async fn adjust(args: &Args, options: &AdjustOptions) -> Result<(), CommandFailed> {
    let (reason, amount) = (options.reason.clone(), options.amount);
    let kind = CreditKind::Adjust { reason };
    let deed = money::credit(options.id, kind, amount, &options.reference, act(args));
    post(args, deed).await
}

async fn post(args: &Args, deed: Deed) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    perform(args, &ledger, deed).await.map(drop)
}

pub(super) async fn refund(args: &Args, options: &RefundOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let deed = money::refund(
        &*ledger,
        options.request,
        options.reason.clone(),
        options.amount,
        &options.reference,
        act(args),
    );
    let deed = deed.await?.ok_or_else(|| {
        CommandFailed::refused(format!(
            "there is no charge of {}",
            request_id(options.request)
        ))
    })?;
    perform(args, &ledger, deed).await.map(drop)
}

pub(super) async fn set(args: &Args, options: &SetOptions) -> Result<(), CommandFailed> {
    let expires = options.expires.and_then(|expires| expires.0);
    dates::check_expiry(expires)?;
    let edit = KeyEdit {
        label: options.label.clone(),
        models: options.models.clone(),
        expires: options.expires,
        rate: options.rate,
        concurrency: options.concurrency,
    };
    let ledger = open(args, OpenMode::Write).await?;
    let key = reads::key(&*ledger, options.id).await?;
    let settings = edit.over(&key.settings).map_err(flag)?;
    if options.models.is_some() {
        warn_of_unknown(args, settings.models.as_deref().unwrap_or_default());
    }
    let changed = keys::change(options.id, Change::Set(settings), act(args));
    perform(args, &ledger, changed).await?;
    dates::note_expiry(expires);
    Ok(())
}

pub(super) async fn rotate(args: &Args, options: &RotateOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let deed = keys::rotate(options.id, overlap(options.overlap), act(args));
    let done = perform(args, &ledger, deed).await?;
    let Outcome::Key(key) = &done.outcome else {
        return Ok(());
    };
    match key.old_secret {
        None => output::note("The old secret no longer works."),
        Some((_, until)) => output::note(&format!("The old secret works until {until}.")),
    }
    Ok(())
}

const fn overlap(overlap: Overlap) -> Option<Duration> {
    match overlap {
        Overlap::None => None,
        Overlap::Hour => Some(Duration::from_secs(60 * 60)),
        Overlap::Day => Some(Duration::from_secs(24 * 60 * 60)),
    }
}
