//! `farebox keys create --from FILE`: a key for each row of a CSV document.
//!
//! A reference pays only once: who sends the same file again creates only what is missing, if each row has a balance.

use std::path::Path;

use farebox_ledger::store::SharedStore;
use farebox_ledger::{Key, Secret};
use serde_json::{Value, json};

use super::acts::ask;
use super::bulk::{self, BulkKind};
use super::keys::open_for;
use crate::args::{Args, CreateOptions, KeyOwner};
use crate::output::CommandFailed;
use crate::publish::check::warn_of_unknown;
use farebox_selling::key::{KeyDocument, SellKey};

/// A key for each row.
struct BulkKeys<'a>(&'a Args);

/// A key to create, as a row says.
#[derive(Debug, clap::Args)]
struct RowOfKey {
    #[command(flatten)]
    act: SellKey,
    #[command(flatten)]
    whose: KeyOwner,
}

pub(crate) async fn create(
    args: &Args,
    options: &CreateOptions,
    from: &Path,
) -> Result<(), CommandFailed> {
    let rows = bulk::read::<BulkKeys<'_>>(from)?;
    let ledger = open_for(args, options).await?;
    let models = rows
        .iter()
        .filter_map(|row| row.content.act.key.models.clone());
    let slugs: Vec<String> = models.flatten().collect();
    warn_of_unknown(args, &slugs);
    bulk::run(args, BulkKeys(args), &ledger, rows).await
}

impl BulkKind for BulkKeys<'_> {
    type Options = RowOfKey;
    type Row = RowOfKey;
    type Made = (Key, Secret);
    const COLUMNS: &'static [&'static str] = &[
        "label",
        "customer",
        "balance",
        "reference",
        "models",
        "expires",
        "rate",
        "concurrency",
    ];
    const NOUN: &'static str = "key";
    const MORE: &'static [&'static str] = &["balance", "secret"];
    const NOTE: Option<&'static str> = Some("The secrets are shown only now and are not stored.");

    fn row(options: RowOfKey) -> Result<Self::Row, CommandFailed> {
        options.act.check()?;
        Ok(options)
    }

    fn label(row: &Self::Row) -> &str {
        &row.act.key.label.0
    }

    async fn create(
        &self,
        ledger: &SharedStore,
        row: Self::Row,
    ) -> Result<Self::Made, CommandFailed> {
        let made = ask(self.0, ledger, row.act, row.whose.customer).await?;
        Ok(made.into_key()?)
    }

    fn cells((key, secret): &Self::Made) -> (String, Vec<String>) {
        let balance = key.customer.account.balance().to_string();
        (
            key.id.to_string(),
            vec![balance, secret.reveal().to_owned()],
        )
    }

    fn document((key, secret): &Self::Made) -> Value {
        json!(KeyDocument::with_secret(key, secret))
    }
}
