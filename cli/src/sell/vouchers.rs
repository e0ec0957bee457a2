//! `farebox vouchers create|list|void`: codes that are worth credit once. Works while a gateway runs.

use farebox_ledger::{Lot, OpenMode, Outcome, Perform as _, VoucherCode, csv};
use serde_json::json;

use super::acts::ask;
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::tables;
use farebox::clock;
use farebox_selling::voucher::{self, LotDocument};
use farebox_selling::{Deeded, NewSecret, SellerAct};

/// The columns of a lot.
const HEADER: [&str; 8] = [
    "lot", "vouchers", "redeemed", "each", "expires", "made", "status", "kind",
];

pub(crate) async fn list(args: &Args) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    print(args, &ledger.all::<Lot>().await?);
    Ok(())
}

pub(crate) async fn change<A: SellerAct>(
    args: &Args,
    act: A,
    of: A::Of,
) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let done = ask(args, &ledger, act, of).await?;
    if args.format() == OutputFormat::Json {
        output::print_json(&done.document());
        return Ok(());
    }
    let Deeded {
        outcome: Outcome::Lot(lot),
        shown_once,
    } = done
    else {
        return Ok(());
    };
    match shown_once {
        Some(NewSecret::Codes(codes)) => print_codes(args, *lot, &codes),
        _ => print(args, &[*lot]),
    }
    Ok(())
}

/// Prints a new lot with its codes; not as JSON.
fn print_codes(args: &Args, lot: Lot, codes: &[VoucherCode]) {
    let shown: Vec<&str> = codes.iter().map(VoucherCode::reveal).collect();
    if args.format() == OutputFormat::Csv {
        let row = |(number, code): (usize, &&str)| {
            vec![lot.id.to_string(), number.to_string(), (*code).to_owned()]
        };
        let rows: Vec<_> = (1..).zip(&shown).map(row).collect();
        return output::sheet(&csv::document(&["lot", "number", "code"], &rows));
    }
    print(args, &[lot]);
    output::print(&format!("\n{}", shown.join("\n")));
    output::note("The codes are shown only now and are not stored.");
}

fn print(args: &Args, lots: &[Lot]) {
    match args.format() {
        OutputFormat::Json => {
            let lots: Vec<_> = lots
                .iter()
                .map(|lot| LotDocument::of(lot, clock::now()))
                .collect();
            output::print_json(&json!({ "lots": lots }));
        }
        format if lots.is_empty() && format != OutputFormat::Csv => output::note(
            "There are no vouchers. Make some: farebox vouchers create --count 10 --amount 5",
        ),
        format => tables::print(format, &HEADER, &rows(lots)),
    }
}

fn rows(lots: &[Lot]) -> Vec<Vec<String>> {
    let now = clock::now();
    let row = |lot: &Lot| {
        let expires = lot.expires_at.map(|end| end.to_string());
        vec![
            lot.id.to_string(),
            lot.count.to_string(),
            lot.redeemed.to_string(),
            lot.amount.to_string(),
            expires.unwrap_or_else(|| "never".to_owned()),
            lot.created_at.to_string(),
            voucher::status(lot, now).to_owned(),
            match &lot.plan {
                Some(terms) => format!("{} {}", lot.kind.as_str(), terms.name),
                None => lot.kind.as_str().to_owned(),
            },
        ]
    };
    lots.iter().map(row).collect()
}
