//! `farebox keys adjust|refund|set|rotate`: manages keys that are in use. Works while a gateway runs.
//!
//! Every act goes into the audit with its actor; money moves at most once per reference.

use std::time::Duration;

use farebox_ledger::key::Change;
use farebox_ledger::{
    Credit, CreditKind, JournalEntry, KeyChange, Ledger, OpenMode, Scope, Secret, Timestamp,
};
use serde_json::json;

use super::args::{
    AdjustOptions, Args, OutputFormat, Overlap, RefundOptions, RotateOptions, SetOptions,
    TopUpOptions,
};
use super::books::{act, find, open, print_key, print_secret};
use super::keys::{allowed, warn_of_unknown};
use super::output::{self, CommandFailed};
use super::{dates, view};
use crate::clock;
use crate::proxy::record::request_id;

pub(super) async fn top_up(args: &Args, options: &TopUpOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let blank = blank(args, options.id, CreditKind::TopUp, &options.reference);
    post(
        args,
        &*ledger,
        Credit {
            amount: options.amount,
            ..blank
        },
    )
    .await
}

pub(super) async fn adjust(args: &Args, options: &AdjustOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let kind = CreditKind::Adjust {
        reason: options.reason.clone(),
    };
    post(
        args,
        &*ledger,
        Credit {
            amount: options.amount,
            ..blank(args, options.id, kind, &options.reference)
        },
    )
    .await
}

pub(super) async fn refund(args: &Args, options: &RefundOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let charge = ledger.entry(options.request).await?;
    let charge = charge.filter(|entry| entry.bill.is_some());
    let charge = charge.ok_or_else(|| {
        CommandFailed::refused(format!(
            "there is no charge of {}",
            request_id(options.request)
        ))
    })?;
    let kind = CreditKind::Refund {
        request: options.request,
        reason: options.reason.clone(),
    };
    post(
        args,
        &*ledger,
        Credit {
            amount: options.amount,
            ..blank(args, of_charge(&charge), kind, &options.reference)
        },
    )
    .await
}

pub(super) async fn set(args: &Args, options: &SetOptions) -> Result<(), CommandFailed> {
    let expires = options.expires.and_then(|expires| expires.0);
    dates::check_expiry(expires)?;
    let ledger = open(args, OpenMode::Write).await?;
    let mut settings = find(&*ledger, options.id).await?.own.settings;
    if let Some(label) = &options.label {
        settings.label.clone_from(label);
    }
    if let Some(models) = &options.models {
        settings.models = allowed(models)?;
        warn_of_unknown(args, settings.models.as_deref().unwrap_or_default());
    }
    settings.expires_at = options
        .expires
        .map_or(settings.expires_at, |expires| expires.0);
    settings.rate = options.rate.map_or(settings.rate, |rate| rate.0);
    settings.concurrency = options
        .concurrency
        .map_or(settings.concurrency, |concurrency| concurrency.0);
    let change = KeyChange {
        key: options.id,
        change: Change::Set(settings),
        act: act(args),
    };
    print_key(args, &ledger.change_key(change).await?);
    dates::note_expiry(expires);
    Ok(())
}

pub(super) async fn rotate(args: &Args, options: &RotateOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let secret = Secret::generate(options.id, clock::random());
    let old_until = overlap(options.overlap).map(|time| after(clock::now(), time));
    let change = KeyChange {
        key: options.id,
        change: Change::Rotate {
            secret: secret.hash(),
            old_until,
        },
        act: act(args),
    };
    let key = ledger.change_key(change).await?;
    print_secret(args, &key, &secret);
    match old_until {
        None => output::note("The old secret no longer works."),
        Some(until) => output::note(&format!("The old secret works until {until}.")),
    }
    Ok(())
}

/// Prints the result of a payment.
async fn post(args: &Args, ledger: &dyn Ledger, credit: Credit) -> Result<(), CommandFailed> {
    let posted = ledger.credit(credit).await?;
    if posted.repeated {
        output::note("This reference was applied before: nothing changed.");
    }
    match args.format() {
        OutputFormat::Json => {
            output::print_json(
                &json!({ "entry": farebox_ledger::document::json(&posted.entry), "key": posted.key.map(|key| view::key(&key, clock::now())) }),
            );
        }
        _ => {
            if let Some(key) = &posted.key {
                print_key(args, key);
            }
        }
    }
    Ok(())
}

/// The key that was charged, or its customer where the entry names none.
fn of_charge(charge: &JournalEntry) -> Scope {
    charge
        .key
        .map_or(Scope::Customer(charge.customer), Scope::Key)
}

/// A credit whose amount, kind and reference the caller fills in.
fn blank(args: &Args, to: impl Into<Scope>, kind: CreditKind, reference: &str) -> Credit {
    Credit {
        operation: clock::operation_id(),
        to: to.into(),
        kind,
        amount: farebox_ledger::Amount::ZERO,
        reference: reference.to_owned(),
        actor: args.actor(),
        at: clock::now(),
    }
}

const fn overlap(overlap: Overlap) -> Option<Duration> {
    match overlap {
        Overlap::None => None,
        Overlap::Hour => Some(Duration::from_secs(60 * 60)),
        Overlap::Day => Some(Duration::from_secs(24 * 60 * 60)),
    }
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    Timestamp::from_millis(
        now.millis()
            .saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)),
    )
}
