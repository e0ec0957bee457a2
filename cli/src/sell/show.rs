//! `farebox keys show`: one key as a page for people, or as the JSON document that scripts read.

use farebox_ledger::{EntryQuery, JournalEntry, Key, OpenMode};

use super::acts;
use crate::args::{Args, OneKey, OutputFormat};
use crate::output::{self, CommandFailed};
use crate::{books, ledger};
use farebox::clock;
use farebox_selling::reads;

/// Journal entries on the page.
const NEWEST: usize = 10;

pub(crate) async fn run(args: &Args, one: &OneKey) -> Result<(), CommandFailed> {
    let book = books::open(args, OpenMode::ReadOnly).await?;
    let key = reads::key(&*book, one.id).await?;
    if args.format() != OutputFormat::Table {
        acts::print_key(args, &key);
        return Ok(());
    }
    let query = EntryQuery {
        customer: None,
        key: Some(key.id),
        since: None,
        until: None,
        before: None,
        limit: Some(NEWEST),
    };
    output::print(&page(&key, &book.entries(query).await?));
    Ok(())
}

/// Its limits, and its caps by default; `(default)` is what catalog.toml says of keys without a setting of their own.
fn limits(key: &Key) -> Vec<String> {
    let said = |own: Option<u32>, default: Option<u32>, unit: &str| {
        let own = own.map(|limit| format!("{limit} {unit}"));
        own.or_else(|| default.map(|limit| format!("{limit} {unit} (default)")))
    };
    let (own, default) = (&key.settings, key.defaults);
    let both = [
        said(own.rate, default.rate, "requests/s"),
        said(own.concurrency, default.concurrency, "at once"),
    ];
    let caps = key.caps.iter().filter(|counted| counted.is_default());
    let caps = caps.map(|counted| format!("{} (default)", counted.cap));
    both.into_iter().flatten().chain(caps).collect()
}

fn page(key: &Key, newest: &[JournalEntry]) -> String {
    let account = key.customer.account;
    let settings = &key.settings;
    let last_use = newest.iter().rev().find_map(|entry| {
        entry
            .bill
            .as_ref()
            .map(|bill| format!("{} {}", entry.at, bill.slug))
    });
    let unused = if newest.len() < NEWEST {
        "never"
    } else {
        "not in the newest entries"
    };
    let limits = limits(key);
    let facts = [
        ("key", key.id.to_string()),
        ("label", output::plain(&settings.label)),
        ("status", key.status(clock::now()).to_string()),
        ("available", format!("{} USD", key.spendable(clock::now()))),
        (
            "balance",
            format!(
                "{} USD, {} held by running requests",
                account.balance(),
                account.held
            ),
        ),
        (
            "models",
            settings.models.as_ref().map_or_else(
                || "all".to_owned(),
                |models| output::plain(&models.join(", ")),
            ),
        ),
        (
            "limits",
            if limits.is_empty() {
                "the gateway's defaults".to_owned()
            } else {
                limits.join(", ")
            },
        ),
        (
            "expires",
            settings
                .expires_at
                .map_or_else(|| "never".to_owned(), |at| at.to_string()),
        ),
        ("created", key.created_at.to_string()),
        ("last use", last_use.unwrap_or_else(|| unused.to_owned())),
    ];
    let noted = settings.metadata.iter().flat_map(|noted| noted.iter());
    let noted = noted.map(|(name, value)| {
        let (name, value) = (output::plain(name), output::plain(value));
        ("metadata", format!("{name}: {value}"))
    });
    let mut page: String = facts
        .into_iter()
        .chain(noted)
        .map(|(name, value)| format!("{name:<10} {value}\n"))
        .collect();
    if newest.is_empty() {
        page.push_str("\nno entries yet");
    } else {
        page.push_str(&format!("\nnewest entries\n{}", ledger::table(newest)));
    }
    page
}
