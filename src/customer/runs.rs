//! Usage by run: sums of the requests that named one with `x-farebox-run`, by months of UTC.
//!
//! Rows of docs/interface.md: `run_of_a_request`.

use farebox_ledger::{Key, Ledger, LedgerError, RunQuery, RunSum, StatementMonth, Timestamp, csv};

use super::decimal_json::DecimalJson;

/// Most rows of a document: every name of a month, and the others.
const MOST_ROWS: u32 = RunSum::MOST_NAMES + 1;
/// Most rows of a page.
const SHOWN: u32 = 10;
/// What those beyond the most names are called.
const OTHERS: &str = "others";

/// The runs of these months: of one key; of an owner, where `all` says so, of every key of its customer.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) async fn read(
    ledger: &dyn Ledger,
    key: &Key,
    months: (StatementMonth, StatementMonth),
    all: bool,
) -> Result<Vec<RunSum>, LedgerError> {
    ledger
        .usage_by_run(query(key, months, all, MOST_ROWS))
        .await
}

/// The runs of this month that cost most, as the holder of a key sees them.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) async fn this_month(
    ledger: &dyn Ledger,
    key: &Key,
    now: Timestamp,
) -> Result<Vec<RunSum>, LedgerError> {
    let month = StatementMonth::of(now);
    ledger
        .usage_by_run(query(key, (month, month), true, SHOWN))
        .await
}

fn query(key: &Key, months: (StatementMonth, StatementMonth), all: bool, limit: u32) -> RunQuery {
    RunQuery {
        customer: key.customer.id,
        key: (!(all && key.is_owner)).then_some(key.id),
        months,
        limit,
    }
}

/// The runs as the member of a document.
pub(super) fn document(runs: &[RunSum]) -> DecimalJson {
    let row = |sum: &RunSum| {
        DecimalJson::object([
            ("month", sum.month.to_string().into()),
            // Null stands for all others.
            (
                "run",
                Some(sum.run.as_str()).filter(|run| !run.is_empty()).into(),
            ),
            ("requests", sum.requests.into()),
            ("cost", sum.charge.into()),
        ])
    };
    DecimalJson::List(runs.iter().map(row).collect())
}

pub(super) fn spreadsheet(runs: &[RunSum]) -> String {
    let row = |sum: &RunSum| {
        let (month, requests) = (sum.month.to_string(), sum.requests.to_string());
        vec![
            month,
            name(sum).to_owned(),
            requests,
            sum.charge.to_string(),
        ]
    };
    let rows: Vec<_> = runs.iter().map(row).collect();
    csv::document(&["month", "run", "requests", "cost"], &rows)
}

/// What people call it.
pub(super) fn name(sum: &RunSum) -> &str {
    if sum.run.is_empty() { OTHERS } else { &sum.run }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::Amount;

    use super::*;
    use crate::customer::page::runs;

    #[test]
    fn others_have_no_name_in_a_document_and_that_word_on_a_page() {
        let sum = |run: &str, requests| RunSum {
            month: "2026-12".parse().unwrap(),
            run: run.to_owned(),
            requests,
            charge: Amount::from_usd_str("0.5").unwrap(),
        };
        let runs = [sum("night <b>", 3), sum("", 1)];
        let shown = document(&runs).document();
        assert!(
            shown.contains(r#"{"month":"2026-12","run":null,"requests":1,"cost":0.50}"#),
            "{shown}"
        );
        assert_eq!(
            spreadsheet(&runs),
            "month,run,requests,cost\r\n2026-12,night <b>,3,0.50\r\n2026-12,others,1,0.50\r\n"
        );
        let page = runs::section(&runs).into_string();
        assert!(
            page.contains("night &lt;b&gt;") && page.contains("others"),
            "{page}"
        );
        assert_eq!(runs::section(&[]).into_string(), "");
    }
}
