//! `farebox vouchers create|list|void`: codes that are worth credit once. Works while a gateway runs.

use farebox_ledger::{Lot, LotId, NewLot, OpenMode, VoucherCode, csv};
use serde_json::json;

use super::args::{Args, OutputFormat};
use super::books::{act, open};
use super::output::{self, CommandFailed};
use super::vouchers_args::{CreateVouchersOptions, VoidOptions};
use crate::clock;

/// The columns of a lot.
const HEADER: [&str; 7] = [
    "lot", "vouchers", "redeemed", "each", "expires", "made", "state",
];

pub(super) async fn create(
    args: &Args,
    options: &CreateVouchersOptions,
) -> Result<(), CommandFailed> {
    if let Some(past) = options.expires.filter(|end| *end <= clock::now()) {
        return Err(CommandFailed::refused(format!(
            "the vouchers would have expired at {past}, which is in the past; nothing was made"
        )));
    }
    let ledger = open(args, OpenMode::Write).await?;
    let codes: Vec<VoucherCode> = (0..options.count)
        .map(|_| VoucherCode::generate(clock::random()))
        .collect();
    let new = NewLot {
        id: LotId::from_random(u64::from_be_bytes(clock::random())),
        codes: codes.iter().map(VoucherCode::hash).collect(),
        amount: options.amount,
        expires_at: options.expires,
        once_per_customer: options.once_per_customer,
        act: act(args),
    };
    let lot = ledger.create_lot(new).await?;
    let shown: Vec<&str> = codes.iter().map(VoucherCode::reveal).collect();
    match args.format() {
        OutputFormat::Json => output::print_json(&json!({ "lot": lot, "codes": shown })),
        OutputFormat::Csv => {
            let row = |(number, code): (usize, &&str)| {
                vec![lot.id.to_string(), number.to_string(), (*code).to_owned()]
            };
            let rows: Vec<_> = (1..).zip(&shown).map(row).collect();
            output::print(&csv::document(&["lot", "number", "code"], &rows));
        }
        _ => {
            output::print(&output::table(&HEADER, &rows(&[lot])));
            output::print(&format!("\n{}", shown.join("\n")));
            output::note("The codes are shown only now and are not stored.");
        }
    }
    Ok(())
}

pub(super) async fn list(args: &Args) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    print(args, &ledger.lots().await?);
    Ok(())
}

pub(super) async fn void(args: &Args, options: &VoidOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let lot = ledger.void_lot(options.lot, act(args)).await?;
    print(args, &[lot]);
    Ok(())
}

fn print(args: &Args, lots: &[Lot]) {
    match args.format() {
        OutputFormat::Json => output::print_json(&json!({ "lots": lots })),
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(lots))),
        _ if lots.is_empty() => output::note(
            "There are no vouchers. Make some: farebox vouchers create --count 10 --amount 5",
        ),
        _ => output::print(&output::table(&HEADER, &rows(lots))),
    }
}

fn rows(lots: &[Lot]) -> Vec<Vec<String>> {
    let now = clock::now();
    let row = |lot: &Lot| {
        let state = match (lot.is_void, lot.is_good(now)) {
            (true, _) => "void",
            (false, true) => "good",
            (false, false) => "expired",
        };
        let expires = lot.expires_at.map(|end| end.to_string());
        vec![
            lot.id.to_string(),
            lot.count.to_string(),
            lot.redeemed.to_string(),
            lot.amount.to_string(),
            expires.unwrap_or_else(|| "never".to_owned()),
            lot.created_at.to_string(),
            state.to_owned(),
        ]
    };
    lots.iter().map(row).collect()
}
