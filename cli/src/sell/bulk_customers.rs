//! `farebox customers create --from FILE`: a customer without keys for each row of a CSV document.
//!
//! An external id is unique: who sends the same file again creates only what is missing, if each row has one.

use std::path::Path;

use farebox_ledger::store::SharedStore;
use farebox_ledger::{Customer, OpenMode};
use serde_json::{Value, json};

use super::acts::ask;
use super::bulk::{self, BulkKind};
use crate::args::Args;
use crate::books::open;
use crate::output::CommandFailed;
use crate::tables;
use farebox_selling::customer::{CreateCustomer, CustomerDocument};

/// A customer for each row.
struct BulkCustomers<'a>(&'a Args);

pub(crate) async fn create(args: &Args, from: &Path) -> Result<(), CommandFailed> {
    let rows = bulk::read::<BulkCustomers<'_>>(from)?;
    let ledger = open(args, OpenMode::Write).await?;
    bulk::run(args, BulkCustomers(args), &ledger, rows).await
}

impl BulkKind for BulkCustomers<'_> {
    type Options = CreateCustomer;
    type Row = CreateCustomer;
    type Made = Customer;
    const COLUMNS: &'static [&'static str] = &[
        "label",
        "external-id",
        "price-list",
        "rate",
        "concurrency",
        "low-balance",
        "name",
        "address",
        "metadata",
    ];
    const NOUN: &'static str = "customer";
    const MORE: &'static [&'static str] = &["external id"];
    const NOTE: Option<&'static str> = None;

    fn row(options: CreateCustomer) -> Result<Self::Row, CommandFailed> {
        Ok(options)
    }

    fn label(row: &Self::Row) -> &str {
        &row.label.0
    }

    async fn create(
        &self,
        ledger: &SharedStore,
        row: Self::Row,
    ) -> Result<Customer, CommandFailed> {
        let done = ask(self.0, ledger, row, ()).await?;
        Ok(done.into_customer()?)
    }

    fn cells(made: &Customer) -> (String, Vec<String>) {
        (made.id.to_string(), vec![tables::external(made)])
    }

    fn document(made: &Customer) -> Value {
        json!(CustomerDocument::from(made))
    }
}
