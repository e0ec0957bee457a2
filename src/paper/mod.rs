//! Paper for bookkeepers: receipts, corrections and monthly statements, as documents, spreadsheets and pages for print.
//!
//! Nothing of it is stored. What a document says, and its number, follows from the ledger's acts and entries, which are only ever
//! appended: so numbers have no gaps, and a document is the same whenever it is asked for. Name and address of a receipt are those its
//! payment was addressed to, and gone when they were erased: anybody can pay for a customer's id, and learns nothing of the customer.

mod documents;
mod formats;
mod print;

use farebox_ledger::{
    AuditRecord, Customer, CustomerId, EntryKind, EntryQuery, Ledger, LedgerError, MonthlySums,
    Payment, PersonalData, StatementMonth, Timestamp, is_same_reference,
};
use serde_json::Value;

pub use documents::{PaperDocument, PaperKind, PaperPlan};
use documents::{PaperEvent, PaperTrail, PaperWhat};
pub use formats::{
    DOCUMENT_COLUMNS, STATEMENT_COLUMNS, document_json, document_row, documents_csv, statement_csv,
    statement_json, statement_rows,
};
pub use print::{document_page, document_part, documents_page, statement_page, statement_part};

/// Entries are read in pages of this many.
const PAGE: usize = 1_000;

/// For whom documents are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaperReader {
    /// The customer itself, in its own session.
    Customer,
    /// Anybody else.
    Others,
}

/// A customer, as its statements address it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressee {
    /// Whose paper it is.
    pub customer: Customer,
    /// Name and address, if given and not erased.
    pub personal: Option<PersonalData>,
}

/// A customer's month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerStatement {
    /// Whose.
    pub addressee: Addressee,
    /// Which month, in UTC.
    pub month: StatementMonth,
    /// Whether it is over; until then figures still move.
    pub is_final: bool,
    /// Its figures.
    pub sums: MonthlySums,
}

/// Every receipt and correction of a customer, oldest first.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn documents(
    ledger: &dyn Ledger,
    customer: CustomerId,
    reader: PaperReader,
) -> Result<Vec<PaperDocument>, LedgerError> {
    let generations = ledger.generations().await?;
    let mut events = PaperTrail::new(customer, generations);
    for act in ledger.acts_of(customer).await? {
        for event in events_of(ledger, &act).await? {
            events.add(event);
        }
    }
    let mut documents = events.documents();
    address(ledger, customer, reader, &mut documents).await?;
    Ok(documents)
}

/// Addresses documents to whom their payments are addressed to. Payments from before had no addressee of their own: they are the
/// customer's in its own session.
async fn address(
    ledger: &dyn Ledger,
    customer: CustomerId,
    reader: PaperReader,
    documents: &mut [PaperDocument],
) -> Result<(), LedgerError> {
    let addressees = ledger.addressees(customer).await?;
    let own = match reader {
        PaperReader::Customer => ledger.personal_data(customer).await?,
        PaperReader::Others => None,
    };
    for document in documents {
        let known = addressees.of(&document.payment);
        document.personal = known.unwrap_or(own.as_ref()).cloned();
    }
    Ok(())
}

/// The receipt of a payment; `None` for a payment that is not booked.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn receipt_of(
    ledger: &dyn Ledger,
    payment: &Payment,
) -> Result<Option<PaperDocument>, LedgerError> {
    let found = documents(ledger, payment.customer, PaperReader::Others).await?;
    let is_of = |document: &PaperDocument| {
        document.kind == PaperKind::Receipt
            && is_same_reference(&document.payment, &payment.reference)
    };
    Ok(found.into_iter().find(is_of))
}

/// A customer's statement of a month. A month with a million requests takes seconds.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn statement(
    ledger: &dyn Ledger,
    customer: Customer,
    month: StatementMonth,
    now: Timestamp,
) -> Result<CustomerStatement, LedgerError> {
    let id = customer.id;
    let query = |since, until, before, limit| EntryQuery {
        customer: Some(id),
        since,
        until: Some(until),
        before,
        limit: Some(limit),
        ..EntryQuery::default()
    };
    let mut sums = MonthlySums::default();
    let (mut before, begin, end) = (None, month.begin(), month.end());
    loop {
        let page = ledger
            .entries(query(Some(begin), end, before, PAGE))
            .await?;
        for entry in page.iter().rev() {
            let too_large = || LedgerError::unavailable("the sums of this month are too large");
            sums.add_older(entry).ok_or_else(too_large)?;
        }
        before = page.first().map(|entry| entry.position);
        if page.len() < PAGE {
            break;
        }
    }
    if sums.entries == 0 {
        let earlier = ledger.entries(query(None, begin, None, 1)).await?;
        let balance = earlier.first().map(|entry| entry.balance_after);
        sums = MonthlySums::quiet(balance.unwrap_or_default());
    }
    let personal = ledger.personal_data(id).await?;
    Ok(CustomerStatement {
        addressee: Addressee { customer, personal },
        month,
        is_final: now >= end,
        sums,
    })
}

/// The months that a customer has statements of, newest first.
pub fn months(customer: &Customer, now: Timestamp) -> Vec<StatementMonth> {
    let (mut month, last) = (
        StatementMonth::of(customer.created_at),
        StatementMonth::of(now),
    );
    let mut months = vec![month];
    while month < last {
        month = month.next();
        months.push(month);
    }
    months.reverse();
    months
}

/// What an act means for paper: usually nothing.
async fn events_of(ledger: &dyn Ledger, act: &AuditRecord) -> Result<Vec<PaperEvent>, LedgerError> {
    let details: Value = serde_json::from_str(&act.details).unwrap_or_default();
    let at = |what: PaperWhat| PaperEvent { at: act.at, what };
    let event = match act.act.as_str() {
        "create" => documents::first_credit(&details),
        "top_up" => documents::top_up(&details),
        "sell_plan" => documents::sold(&details, act.at),
        "reverse" => documents::told(&details),
        "assign" => return assigned(ledger, act, &details).await,
        _ => None,
    };
    Ok(event.map(at).into_iter().collect())
}

/// A payment that was assigned to this customer: what had gone back of it was told while it was another's.
async fn assigned(
    ledger: &dyn Ledger,
    act: &AuditRecord,
    details: &Value,
) -> Result<Vec<PaperEvent>, LedgerError> {
    let reference = details.get("payment").and_then(Value::as_str);
    let payment = match reference {
        Some(reference) => ledger.payment(reference).await?,
        None => None,
    };
    let Some(payment) = payment else {
        return Ok(Vec::new());
    };
    let at = |what: PaperWhat| PaperEvent { at: act.at, what };
    let mut events = vec![at(PaperWhat::Paid {
        payment: payment.reference.clone(),
        paid: payment.paid,
        credit: payment.credit,
    })];
    let entry = ledger.entry(act.operation).await?;
    let entry = entry.filter(|entry| entry.kind == EntryKind::TopUp);
    let reason = entry.and_then(|entry| entry.reason).unwrap_or_default();
    let told_for = reason.rsplit(' ').next().and_then(|id| id.parse().ok());
    let Some(told_for) = told_for.filter(|other: &CustomerId| *other != act.customer) else {
        return Ok(events);
    };
    for earlier in ledger.acts_of(told_for).await? {
        let details: Value = serde_json::from_str(&earlier.details).unwrap_or_default();
        let told = (earlier.act == "reverse").then(|| documents::told(&details));
        let of_it = told
            .flatten()
            .filter(|what| what.is_about(&payment.reference));
        events.extend(of_it.map(at));
    }
    Ok(events)
}
