//! Keys, customers and payments as tables for people, and as rows for spreadsheets.

use farebox_ledger::{Customer, GrantRecord, Key, Payment, csv};

use super::args::OutputFormat;
use super::output;
use farebox::clock;
use farebox_selling::payment;
use farebox_selling::subscription::{PlanWindowDocument, SubscriptionDocument};

/// The columns of a key.
pub(super) const KEY: [&str; 6] = ["key", "label", "balance", "held", "available", "status"];
/// The columns of a customer.
pub(super) const CUSTOMER: [&str; 7] = [
    "customer",
    "label",
    "external id",
    "balance",
    "held",
    "available",
    "status",
];
/// The columns of a payment.
pub(super) const PAYMENT: [&str; 8] = [
    "payment", "customer", "status", "currency", "gross", "amount", "reversed", "why",
];

/// The columns of a grant.
pub(super) const GRANT: [&str; 11] = [
    "grant",
    "customer",
    "kind",
    "amount",
    "remaining",
    "held",
    "priority",
    "begins",
    "expires",
    "models",
    "status",
];

/// The columns of a subscription.
pub(super) const SUBSCRIPTION: [&str; 10] = [
    "subscription",
    "customer",
    "plan",
    "status",
    "allowance",
    "remaining",
    "held",
    "available",
    "ends",
    "paid ahead",
];
/// The columns of a plan's window.
pub(super) const WINDOW: [&str; 6] = ["per", "bound", "used", "held", "available", "opens"];

/// Prints rows under their columns.
pub(super) fn print(format: OutputFormat, header: &[&str], rows: &[Vec<String>]) {
    match format {
        OutputFormat::Csv => output::sheet(&csv::document(header, rows)),
        _ => output::print(&output::table(header, rows)),
    }
}

/// Keys as a table for people.
pub(super) fn keys_table(shown: &[Key]) -> String {
    output::table(&KEY, &keys(shown))
}

/// Customers as a table for people.
pub(super) fn customers_table(shown: &[Customer]) -> String {
    output::table(&CUSTOMER, &customers(shown))
}

/// Keys as rows of [`KEY`].
pub(super) fn keys(keys: &[Key]) -> Vec<Vec<String>> {
    let now = clock::now();
    let row = |key: &Key| {
        let account = key.customer.account;
        vec![
            key.id.to_string(),
            output::plain(&key.settings.label),
            account.balance().to_string(),
            account.held.to_string(),
            key.spendable(now).to_string(),
            key.status(now).to_string(),
        ]
    };
    keys.iter().map(row).collect()
}

/// A customer's name in the seller's own system.
pub(super) fn external(customer: &Customer) -> String {
    output::plain(customer.settings.external_id.as_deref().unwrap_or_default())
}

/// Customers as rows of [`CUSTOMER`].
pub(super) fn customers(customers: &[Customer]) -> Vec<Vec<String>> {
    let row = |customer: &Customer| {
        let Customer {
            settings, account, ..
        } = customer;
        vec![
            customer.id.to_string(),
            output::plain(&settings.label),
            external(customer),
            account.balance().to_string(),
            account.held.to_string(),
            account.available().to_string(),
            customer.status.to_string(),
        ]
    };
    customers.iter().map(row).collect()
}

/// Payments as rows of [`PAYMENT`].
pub(super) fn payments(payments: &[Payment]) -> Vec<Vec<String>> {
    let row = |payment: &Payment| {
        let (status, why) = payment::status(payment);
        let waiting = payment.waiting.iter().map(ToString::to_string);
        let why: Vec<String> = why.map(str::to_owned).into_iter().chain(waiting).collect();
        vec![
            output::plain(&payment.reference),
            payment.customer.to_string(),
            status.to_owned(),
            payment.paid.currency.clone(),
            payment.paid.gross.to_string(),
            payment.credit.to_string(),
            payment.due().to_string(),
            output::plain(&why.join("; ")),
        ]
    };
    payments.iter().map(row).collect()
}

/// Grants as rows of [`GRANT`].
pub(super) fn grants(records: &[GrantRecord]) -> Vec<Vec<String>> {
    let now = clock::now();
    let row = |record: &GrantRecord| {
        let of = &record.grant;
        let expires = of.expires_at.map(|end| end.to_string());
        let models = of.models.as_ref();
        let models = models.map(|models| output::plain(&models.join(", ")));
        vec![
            of.id.to_string(),
            of.customer.to_string(),
            of.kind.as_str().to_owned(),
            of.amount.to_string(),
            of.remaining_at(now).to_string(),
            of.held.to_string(),
            of.priority.to_string(),
            of.effective_at.to_string(),
            expires.unwrap_or_else(|| "never".to_owned()),
            models.unwrap_or_else(|| "all".to_owned()),
            of.status_at(now).as_str().to_owned(),
        ]
    };
    records.iter().map(row).collect()
}

/// Subscriptions as rows of [`SUBSCRIPTION`].
pub(super) fn subscriptions(shown: &[SubscriptionDocument]) -> Vec<Vec<String>> {
    let row = |of: &SubscriptionDocument| {
        let period = of.period.as_ref();
        let amounts = period.map(|period| {
            [
                period.allowance,
                period.remaining,
                period.held,
                period.available,
            ]
        });
        let amounts = match amounts {
            Some(amounts) => amounts.map(|amount| amount.0.to_string()),
            None => [const { String::new() }; 4],
        };
        let ends = period.map(|period| period.ends_at.0.to_string());
        let mut row = vec![
            of.id.clone(),
            of.customer.0.to_string(),
            of.plan.clone(),
            of.status.0.as_str().to_owned(),
        ];
        row.extend(amounts);
        row.extend([ends.unwrap_or_default(), of.paid_ahead.to_string()]);
        row
    };
    shown.iter().map(row).collect()
}

/// A subscription's windows as rows of [`WINDOW`].
pub(super) fn windows(of: &SubscriptionDocument) -> Vec<Vec<String>> {
    let row = |window: &PlanWindowDocument| {
        let opens = window.opens_at.map(|at| at.0.to_string());
        let amounts = [window.bound, window.used, window.held, window.available];
        let amounts = amounts.map(|amount| amount.0.to_string());
        let mut row = vec![window.per.clone()];
        row.extend(amounts);
        row.push(opens.unwrap_or_default());
        row
    };
    of.windows.iter().map(row).collect()
}
