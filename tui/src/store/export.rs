//! Exports: complete CSV or JSON files, created new and readable only by their owner.
//!
//! Entries and cells have the commands' format. Memory is bounded: the file is written page by page.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use farebox_ledger::{
    AuditRecord, EntryQuery, JournalEntry, Key, KeyOrder, KeyQuery, MarginQuery, MarginRow, Scope,
    Timestamp, csv, document,
};
use serde_json::{Value, json};

use super::StoreShared;
use super::read::query;
use crate::app::form::ConsoleExport;
use crate::app::money::sums::SumsPage;
use crate::app::party_filter::KeyFilter;
use crate::clock;
use crate::format;

const PAGE: usize = 1000;

/// A file being written: CSV lines, or one JSON document with one list.
struct Sheet {
    out: BufWriter<File>,
    columns: &'static [&'static str],
    json: bool,
    rows: u64,
}

impl StoreShared {
    /// Writes the file; returns its row count and path.
    pub(super) async fn export(
        &self,
        what: &ConsoleExport,
        filter: &KeyFilter,
        json: bool,
        path: &Path,
    ) -> Result<String, String> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        match self.write(what, filter, json, file).await {
            Ok(rows) => Ok(format!(
                "{} written to {}",
                format::many(rows, "row"),
                path.display()
            )),
            Err(error) => {
                let _ = fs::remove_file(path);
                Err(error)
            }
        }
    }

    async fn write(
        &self,
        what: &ConsoleExport,
        filter: &KeyFilter,
        json: bool,
        file: File,
    ) -> Result<u64, String> {
        let (name, columns) = match what {
            ConsoleExport::Keys => ("keys", KEY_COLUMNS),
            ConsoleExport::Entries(_) => ("entries", &document::COLUMNS[..]),
            ConsoleExport::Audit => ("audit", AUDIT_COLUMNS),
            ConsoleExport::Sums(..) => ("sums", SUMS_COLUMNS),
        };
        let mut sheet = Sheet {
            out: BufWriter::new(file),
            columns,
            json,
            rows: 0,
        };
        sheet.begin(name).map_err(text)?;
        match what {
            ConsoleExport::Keys => self.write_keys(filter, &mut sheet).await?,
            ConsoleExport::Entries(of) => self.write_entries(*of, &mut sheet).await?,
            ConsoleExport::Audit => self.write_audit(&mut sheet).await?,
            ConsoleExport::Sums(_, query) => self.write_sums(*query, &mut sheet).await?,
        }
        sheet.end().map_err(text)
    }

    async fn write_keys(&self, filter: &KeyFilter, sheet: &mut Sheet) -> Result<(), String> {
        let now = clock::now();
        if let Some(id) = filter.id {
            let key = self.ledger.find_key(id).await.map_err(text)?;
            return key
                .iter()
                .try_for_each(|key| sheet.row(&key_row(key, now)))
                .map_err(text);
        }
        let mut after = None;
        loop {
            let page = self
                .ledger
                .list_keys(KeyQuery {
                    after,
                    ..query(filter, PAGE)
                })
                .await
                .map_err(text)?;
            page.iter()
                .try_for_each(|key| sheet.row(&key_row(key, now)))
                .map_err(text)?;
            after = page.last().map(|key| KeyOrder::Created.place(key));
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Oldest first: a first walk finds where pages begin, a second one writes them.
    async fn write_entries(&self, of: Scope, sheet: &mut Sheet) -> Result<(), String> {
        let (key, customer) = match of {
            Scope::Key(key) => (Some(key), None),
            Scope::Customer(customer) => (None, Some(customer)),
        };
        let page = |before| EntryQuery {
            key,
            customer,
            before,
            limit: Some(PAGE),
            ..EntryQuery::default()
        };
        let newest = self
            .ledger
            .entries(EntryQuery {
                limit: Some(1),
                ..page(None)
            })
            .await
            .map_err(text)?;
        let Some(end) = newest.last().map(|entry| entry.position.saturating_add(1)) else {
            return Ok(());
        };
        let (mut starts, mut before) = (Vec::new(), end);
        loop {
            let entries = self
                .ledger
                .entries(page(Some(before)))
                .await
                .map_err(text)?;
            let Some(first) = entries.first() else { break };
            starts.push(before);
            before = first.position;
            if entries.len() < PAGE {
                break;
            }
        }
        for before in starts.into_iter().rev() {
            let entries = self
                .ledger
                .entries(page(Some(before)))
                .await
                .map_err(text)?;
            entries
                .iter()
                .try_for_each(|entry| sheet.entry(entry))
                .map_err(text)?;
        }
        Ok(())
    }

    async fn write_audit(&self, sheet: &mut Sheet) -> Result<(), String> {
        let mut before = None;
        loop {
            let page = self.ledger.audit(None, before, PAGE).await.map_err(text)?;
            page.iter()
                .try_for_each(|act| sheet.row(&audit_row(act)))
                .map_err(text)?;
            before = page.last().map(|act| act.position);
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }
}

impl StoreShared {
    /// All rows, in the order of the screen.
    async fn write_sums(&self, query: MarginQuery, sheet: &mut Sheet) -> Result<(), String> {
        let SumsPage { page, labels } = self
            .sums(MarginQuery {
                limit: usize::MAX,
                ..query
            })
            .await
            .map_err(text)?;
        page.rows
            .iter()
            .try_for_each(|row| {
                let label = labels.get(&row.name).map(|key| &key.label);
                sheet.row(&sums_row(row, label))
            })
            .map_err(text)
    }
}

impl Sheet {
    fn begin(&mut self, name: &str) -> io::Result<()> {
        if self.json {
            write!(self.out, "{{\"{name}\":[")
        } else {
            self.cells(self.columns.iter().copied())
        }
    }

    fn row(&mut self, row: &Value) -> io::Result<()> {
        if self.json {
            let comma = if self.rows > 0 { "," } else { "" };
            write!(self.out, "{comma}\n{row}")?;
        } else {
            let cells: Vec<String> = self
                .columns
                .iter()
                .map(|column| row.get(*column).map(cell).unwrap_or_default())
                .collect();
            self.cells(cells.iter().map(String::as_str))?;
        }
        self.rows += 1;
        Ok(())
    }

    fn entry(&mut self, entry: &JournalEntry) -> io::Result<()> {
        if self.json {
            return self.row(&document::json(entry));
        }
        self.rows += 1;
        self.cells(document::row(entry).iter().map(String::as_str))
    }

    fn cells<'a>(&mut self, cells: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
        self.out.write_all(csv::line(cells).as_bytes())
    }

    fn end(mut self) -> io::Result<u64> {
        if self.json {
            writeln!(self.out, "\n]}}")?;
        }
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        Ok(self.rows)
    }
}

const KEY_COLUMNS: &[&str] = &[
    "id",
    "label",
    "status",
    "balance",
    "held",
    "available",
    "models",
    "expires_at",
    "rate",
    "concurrency",
    "created_at",
    "created_by",
    "last_entry_at",
];
const SUMS_COLUMNS: &[&str] = &[
    "name", "label", "requests", "charge", "cost", "priced", "own", "margin", "exposure", "loss",
    "told",
];
const AUDIT_COLUMNS: &[&str] = &["at", "actor", "act", "key", "operation", "details"];
pub(crate) fn key_row(key: &Key, now: Timestamp) -> Value {
    let (settings, account) = (&key.settings, &key.customer.account);
    json!({
        "id": key.id, "label": settings.label, "status": key.status(now), "balance": account.balance(), "held": account.held,
        "available": key.spendable(now), "models": settings.models, "expires_at": settings.expires_at, "rate": settings.rate,
        "concurrency": settings.concurrency, "created_at": key.created_at, "created_by": *key.created_by, "last_entry_at": key.customer.last_entry_at,
    })
}

fn audit_row(act: &AuditRecord) -> Value {
    let details =
        serde_json::from_str(&act.details).unwrap_or_else(|_| Value::String(act.details.clone()));
    json!({ "at": act.at, "actor": act.actor, "act": act.act, "key": act.key, "operation": format!("op_{}", act.operation), "details": details })
}

fn sums_row(row: &MarginRow, label: Option<&String>) -> Value {
    json!({
        "name": row.name, "label": label, "requests": row.requests, "charge": row.charge, "cost": row.cost, "priced": row.priced,
        "own": row.own, "margin": row.margin(), "exposure": row.exposure, "loss": row.loss,
        "told": row.told,
    })
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use farebox_ledger::memory::MemoryLedger;
    use farebox_ledger::{
        Act, Amount, Bill, Finish, KeyId, KeySettings, MarginBy, MarginOrder, Membership, NewHold,
        NewKey, OperationId, Perform, SecretHash,
    };

    use super::*;
    use crate::admin::{AdminClient, TokenSource};
    use crate::app::money::sums::MarginView;
    use crate::state_file::StateFile;

    /// One request of each of two keys; of the second, a cost is known.
    async fn ledger() -> MemoryLedger {
        let (ledger, at) = (MemoryLedger::new(), Timestamp::from_millis(3_600_000));
        for number in 1..=2_u8 {
            let operation = |offset: u8| OperationId::from_bytes([number * 10 + offset; 16]);
            let id = KeyId::from_random(number.into());
            let settings = KeySettings {
                label: format!("=acme, {number}"),
                ..KeySettings::default()
            };
            let first_credit = Some((Amount::from_picos(1_000_000), format!("first-{number}")));
            let act = Act {
                operation: operation(0),
                actor: "ada".to_owned(),
                at,
            };
            ledger
                .perform(NewKey {
                    within: Membership::default(),
                    id,
                    secret: SecretHash([number; 32]),
                    settings,
                    first_credit,
                    purse: None,
                    act,
                })
                .await
                .unwrap();
            let (slug, family, request) = ("small".to_owned(), "chat".to_owned(), operation(1));
            let amount = Amount::from_picos(1_000);
            ledger
                .perform(NewHold {
                    request,
                    customer: farebox_ledger::CustomerId::made_for(id),
                    key: id,
                    ways: vec![farebox_ledger::HoldWay::exactly(amount)],
                    slug: slug.clone(),
                    family: family.clone(),
                    at,
                })
                .await
                .unwrap();
            let exposure = Amount::from_picos(i64::from(number) * 1_000_000_000);
            let cost = (number == 2).then(|| Amount::from_picos(3_000_000_000));
            let bill = Bill {
                slug,
                family,
                target: "acme/small".to_owned(),
                exposure,
                cost,
                ..Bill::default()
            };
            ledger
                .perform(Arc::new(Finish { request, bill, at }))
                .await
                .unwrap();
        }
        ledger
    }

    #[tokio::test]
    async fn the_screens_of_sums_write_all_their_rows() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFile::in_directory(folder.path().to_owned(), folder.path());
        let (tell, _told) = tokio::sync::mpsc::unbounded_channel();
        let token = TokenSource::Given(String::new());
        let client = AdminClient::new("http://127.0.0.1:9", token, None).unwrap();
        let shared = StoreShared {
            ledger: Arc::new(ledger().await),
            state,
            client,
            tell,
            sent: Arc::default(),
        };
        let query = |by| MarginQuery {
            by,
            from: Timestamp::default(),
            to: Timestamp::from_millis(7_200_000),
            order: MarginOrder::Exposure,
            reverse: false,
            limit: 1,
        };
        let written = async |by, json: bool, name: &str| {
            let path = folder.path().join(name);
            let what = ConsoleExport::Sums(MarginView::Exposure, query(by));
            let said = shared
                .export(&what, &KeyFilter::default(), json, &path)
                .await
                .unwrap();
            (said, fs::read_to_string(path).unwrap())
        };
        let (said, csv) = written(MarginBy::Key, false, "keys.csv").await;
        assert!(
            said.starts_with("2 rows written"),
            "more than the screen asked for: {said}"
        );
        let keys = [2, 1].map(|number| KeyId::from_random(number).to_string());
        let expected = format!(
            "name,label,requests,charge,cost,priced,own,margin,exposure,loss,told\r\n\
             {},\"'=acme, 2\",1,0.00,0.003,0.00,0.00,-0.003,0.002,0.00,0.00\r\n{},\"'=acme, 1\",1,0.00,0.00,0.00,0.00,,0.001,0.00,0.00\r\n",
            keys[0], keys[1]
        );
        assert_eq!(csv, expected);
        let (_, targets) = written(MarginBy::Target, true, "targets.json").await;
        let document: Value = serde_json::from_str(&targets).unwrap();
        assert_eq!(document["sums"][0]["name"], "acme/small");
        assert_eq!(
            (
                &document["sums"][0]["exposure"],
                &document["sums"][0]["requests"]
            ),
            (&json!("0.003"), &json!(2))
        );
        let (_, days) = written(MarginBy::Day, false, "days.csv").await;
        assert!(days.contains("\r\n1970-01-01,,2,"), "{days}");
    }
}
