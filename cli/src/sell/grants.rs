//! `farebox grants …`: credit that may end, and what is left of it. Works while a gateway runs.

use farebox_ledger::{GrantRecord, OpenMode};
use serde_json::json;

use super::acts;
use crate::args::grants::{GrantsCommand, GrantsOptions};
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::tables;
use farebox::clock;
use farebox_selling::grant::{self, GrantDocument, TakeGrantBack};

pub(crate) async fn run(args: &Args, command: &GrantsCommand) -> Result<(), CommandFailed> {
    match command {
        GrantsCommand::List(options) => list(args, options).await,
        GrantsCommand::Show(one) => {
            let ledger = open(args, OpenMode::ReadOnly).await?;
            let found = grant::find(&*ledger, one.id).await?;
            print_one(args, &found);
            Ok(())
        }
        GrantsCommand::Void(one) => acts::act(args, TakeGrantBack {}, one.id).await,
    }
}

async fn list(args: &Args, options: &GrantsOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let which = &options.which;
    let found = which.read(&*ledger, options.customer, None, None).await?;
    match args.format() {
        OutputFormat::Json => {
            let row = |record| GrantDocument::of(record, clock::now());
            let grants: Vec<_> = found.iter().map(row).collect();
            output::print_json(&json!({ "grants": grants }));
        }
        OutputFormat::Table | OutputFormat::Markdown if found.is_empty() => {
            let is_any =
                options.customer.is_none() && which.status.is_none() && which.reference.is_none();
            output::note(if is_any {
                "There are no grants. Give one: farebox customers grant CUSTOMER 5 --reference NAME --expires-at DATE"
            } else {
                "There are no such grants."
            });
        }
        format => tables::print(format, &tables::GRANT, &tables::grants(&found)),
    }
    Ok(())
}

fn print_one(args: &Args, record: &GrantRecord) {
    match args.format() {
        OutputFormat::Json => output::print_json(&GrantDocument::of(record, clock::now())),
        format => tables::print(
            format,
            &tables::GRANT,
            &tables::grants(std::slice::from_ref(record)),
        ),
    }
}
