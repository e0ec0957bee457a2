//! Files to download: usage by day, and every request of a range, streamed while it is read.
//!
//! A long history is read page by page, so that no long read delays the ledger's checkpoints.

use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::{EntryKind, EntryQuery, JournalEntry, Key, LedgerError};
use futures_util::stream::{self, Stream};
use salvo::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use salvo::http::{HeaderValue, ResBody};
use salvo::prelude::Response;

use super::context::Context;
use super::decimal_json::DecimalJson;
use super::receipt;
use super::share;
use super::sources::ChargeSources;
use super::usage::{AskedUsage, Days};
use super::views::Query;
use crate::clock;
use crate::proxy::Failure;
use crate::proxy::rate_limit::Pass;

/// Entries per read.
const PAGE: usize = 500;

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Export {
    /// Usage by day and model, or by run.
    Usage(ExportFormat),
    /// One row for each request.
    Requests(ExportFormat),
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// For spreadsheets.
    Csv,
    /// For programs.
    Json,
}

/// Writes the file; `pass` counts it among its key's running requests until it ends.
///
/// # Errors
/// 400 for a bad range, 503 when the ledger cannot be read.
pub(super) async fn answer(
    context: &Arc<Context>,
    key: Key,
    pass: Pass,
    what: Export,
    query: Query<'_>,
    res: &mut Response,
) -> Result<(), Failure> {
    let now = clock::now();
    let days = Days::asked(query("from").as_deref(), query("to").as_deref(), now)?;
    let (name, form) = match what {
        Export::Usage(form) => ("usage", form),
        Export::Requests(form) => ("requests", form),
    };
    let (ending, content_type) = match form {
        ExportFormat::Csv => ("csv", "text/csv; charset=utf-8"),
        ExportFormat::Json => ("json", "application/json"),
    };
    let disposition = format!(
        "attachment; filename=\"farebox-{name}-{}.{ending}\"",
        days.shown()
    );
    res.headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        res.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    match what {
        Export::Usage(form) => {
            let by = query("by");
            let asked = (days, by.as_deref());
            let sums = AskedUsage::read(context.ledger.as_ref(), &key, asked, true).await?;
            res.body(match form {
                ExportFormat::Csv => sums.spreadsheet(),
                ExportFormat::Json => sums.document(&context.statement(&key, now).await?),
            });
        }
        Export::Requests(form) => {
            res.body(ResBody::stream(requests(ExportWalk {
                context: Arc::clone(context),
                _pass: pass,
                days,
                form,
                sources: ChargeSources::seen_by(&key),
                key,
                before: None,
                stage: ExportStage::Begin,
                first: true,
            })));
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportStage {
    Begin,
    Pages,
    End,
    Done,
}

/// A walk from the newest request of a range to its oldest.
struct ExportWalk {
    context: Arc<Context>,
    key: Key,
    _pass: Pass,
    days: Days,
    form: ExportFormat,
    /// The grants that were met.
    sources: ChargeSources,
    before: Option<i64>,
    stage: ExportStage,
    /// Nothing has been written yet.
    first: bool,
}

fn requests(walk: ExportWalk) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
    stream::unfold(walk, async |mut walk| {
        let text = match walk.stage {
            ExportStage::Begin => {
                walk.stage = ExportStage::Pages;
                Ok(match walk.form {
                    ExportFormat::Csv => receipt::spreadsheet_header(),
                    ExportFormat::Json => "{\"requests\":[".to_owned(),
                })
            }
            ExportStage::Pages => walk.page().await.map_err(std::io::Error::other),
            ExportStage::End => {
                walk.stage = ExportStage::Done;
                Ok(if walk.form == ExportFormat::Json {
                    "]}\n".to_owned()
                } else {
                    String::new()
                })
            }
            ExportStage::Done => return None,
        };
        Some((text.map(Bytes::from), walk))
    })
}

impl ExportWalk {
    async fn page(&mut self) -> Result<String, LedgerError> {
        let query = EntryQuery {
            before: self.before,
            limit: Some(PAGE),
            ..share::seen(&self.key)
        };
        let entries = self.context.ledger.entries(query).await?;
        let (start, end) = (self.days.start(), self.days.end());
        self.before = entries.first().map(|entry| entry.position);
        if entries.len() < PAGE || entries.first().is_none_or(|oldest| oldest.at < start) {
            self.stage = ExportStage::End;
        }
        let wanted: Vec<&JournalEntry> = (entries.iter().rev())
            .filter(|entry| entry.kind == EntryKind::Charge && entry.at >= start && entry.at < end)
            .collect();
        let ledger = self.context.ledger.as_ref();
        self.sources.learn(ledger, wanted.iter().copied()).await?;
        Ok(wanted.into_iter().map(|entry| self.row(entry)).collect())
    }

    fn row(&mut self, entry: &JournalEntry) -> String {
        let between = if std::mem::take(&mut self.first) {
            ""
        } else {
            ",\n"
        };
        match self.form {
            ExportFormat::Csv => receipt::spreadsheet_row(entry, self.key.is_owner, &self.sources),
            ExportFormat::Json => {
                let mut document = receipt::document(entry, self.key.is_owner, &self.sources);
                // An owner's file has the requests of every key.
                if let (DecimalJson::Object(fields), Some(key)) = (&mut document, entry.key) {
                    fields.push(("key", key.to_string().into()));
                }
                format!("{between}{}", document.document())
            }
        }
    }
}
