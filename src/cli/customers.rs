//! `farebox customers …`: who owns the money that keys spend. Works while a gateway runs.

use farebox_ledger::{
    Amount, Credit, CreditKind, Customer, CustomerAct, CustomerChange, CustomerId, CustomerQuery,
    CustomerSettings, Key, KeyStatus, Ledger, NewCustomer, NewMove, OpenMode, PersonalData, Scope,
    Timestamp, csv, document,
};
use serde_json::{Value, json};

use super::args::{Args, OneKey, OutputFormat};
use super::books::{act, find_customer, keys_of, open};
use super::customers_args::{
    CloseOptions, CreateCustomerOptions, CustomerAdjustOptions, CustomerTopUpOptions,
    CustomersCommand, ListCustomersOptions, MoveOptions, OneCustomer, PersonalOptions,
    SetCustomerOptions,
};
use super::output::{self, CommandFailed};
use super::{keys, paper, payments, view};
use crate::clock;

/// Customers are read from the ledger in pages of this many.
const PAGE: usize = 1_000;
const HEADER: [&str; 7] = [
    "customer",
    "label",
    "external id",
    "balance",
    "held",
    "available",
    "status",
];

pub(super) async fn run(args: &Args, command: &CustomersCommand) -> Result<(), CommandFailed> {
    match command {
        CustomersCommand::Create(options) => create(args, options).await,
        CustomersCommand::List(options) => list(args, options).await,
        CustomersCommand::Show(one) => show(args, one).await,
        CustomersCommand::Set(options) => set(args, options).await,
        CustomersCommand::Suspend(one) => change(args, one.id, CustomerAct::Suspend).await,
        CustomersCommand::Resume(one) => change(args, one.id, CustomerAct::Resume).await,
        CustomersCommand::Close(options) => close(args, options).await,
        CustomersCommand::Erase(one) => change(args, one.id, CustomerAct::Erase).await,
        CustomersCommand::TopUp(options) => top_up(args, options).await,
        CustomersCommand::Adjust(options) => adjust(args, options).await,
        CustomersCommand::Link(one) => link(args, one).await,
        CustomersCommand::Move(options) => give(args, options).await,
        CustomersCommand::Reverse(options) => payments::reverse(args, options).await,
        CustomersCommand::Unapplied(options) => payments::unapplied(args, options).await,
        CustomersCommand::Receipts(options) => paper::receipts(args, options).await,
        CustomersCommand::Statement(options) => paper::statement(args, options).await,
    }
}

async fn create(args: &Args, options: &CreateCustomerOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let new = new_customer(args, options);
    print(args, &ledger.create_customer(new).await?);
    Ok(())
}

/// A customer as the options say.
pub(super) fn new_customer(args: &Args, options: &CreateCustomerOptions) -> NewCustomer {
    NewCustomer {
        id: clock::customer_id(),
        settings: CustomerSettings {
            label: options.label.clone().unwrap_or_default(),
            external_id: options.external_id.clone(),
            price_list: None,
            low_balance: options.low_balance,
            rate: options.rate.and_then(|rate| rate.0),
            concurrency: options.concurrency.and_then(|most| most.0),
        },
        personal: personal(&options.personal, None),
        act: act(args),
    }
}

/// What the options say of a person, beside what is known.
fn personal(options: &PersonalOptions, known: Option<PersonalData>) -> Option<PersonalData> {
    if options.name.is_none() && options.address.is_none() && options.metadata.is_empty() {
        return None;
    }
    let mut data = known.unwrap_or_default();
    data.name = options.name.clone().or(data.name);
    data.address = options.address.clone().or(data.address);
    data.metadata.extend(options.metadata.iter().cloned());
    data.salt = clock::random();
    Some(data)
}

async fn list(args: &Args, options: &ListCustomersOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let customers = match &options.external_id {
        Some(id) => ledger.find_external(id).await?.into_iter().collect(),
        None => all(&*ledger, options.label.clone()).await?,
    };
    match args.format() {
        OutputFormat::Json => output::print_json(
            &json!({ "customers": customers.iter().map(view::customer).collect::<Vec<_>>() }),
        ),
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(&customers))),
        _ if customers.is_empty() => output::note(match &options.external_id {
            Some(_) => "No customer has this external id.",
            None if options.label.is_some() => "No label or external id contains this text.",
            None => "There are no customers yet. Create one: farebox customers create --label NAME",
        }),
        _ => output::print(&table(&customers)),
    }
    Ok(())
}

async fn all(ledger: &dyn Ledger, text: Option<String>) -> Result<Vec<Customer>, CommandFailed> {
    let mut query = CustomerQuery {
        text,
        limit: PAGE,
        ..CustomerQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let page = ledger.list_customers(query.clone()).await?;
        let last = page.last();
        query.after = last.map(|customer| query.order.place_of_customer(customer));
        let whole = page.len() == PAGE;
        found.extend(page);
        if !whole {
            return Ok(found);
        }
    }
}

pub(super) async fn show(args: &Args, one: &OneCustomer) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let customer = find_customer(&*ledger, one.id).await?;
    let keys = keys_of(&*ledger, one.id).await?;
    let personal = ledger.personal_data(one.id).await?;
    let ids: Vec<_> = keys.iter().map(|key| key.id).collect();
    let spent = ledger.spent_since(&ids, Timestamp::from_millis(0)).await?;
    let held = held(&*ledger, one.id).await?;
    let held_by = |key: &Key| {
        let own = held.iter().filter(|(of, _)| *of == key.id);
        Amount::checked_sum(own.map(|(_, amount)| *amount)).unwrap_or_default()
    };
    if args.format() == OutputFormat::Json {
        let keys: Vec<Value> = keys
            .iter()
            .zip(&spent)
            .map(|(key, spent)| view::key_of_customer(key, *spent, held_by(key), clock::now()))
            .collect();
        let mut shown = view::customer(&customer);
        if let Some(fields) = shown.as_object_mut() {
            let data = personal.map(|data| json!({ "name": data.name, "address": data.address, "metadata": data.metadata }));
            fields.insert("personal".to_owned(), json!(data));
            fields.insert("keys".to_owned(), json!(keys));
        }
        output::print_json(&shown);
        return Ok(());
    }
    print(args, &customer);
    if args.format() == OutputFormat::Csv {
        return Ok(());
    }
    if let Some(data) = personal {
        output::print("");
        for line in said(&data) {
            output::print(&line);
        }
    }
    let rows: Vec<Vec<String>> = keys
        .iter()
        .zip(&spent)
        .map(|(key, spent)| {
            vec![
                key.id.to_string(),
                output::plain(&key.settings.label),
                if key.is_owner { "owner" } else { "member" }.to_owned(),
                spent.to_string(),
                held_by(key).to_string(),
                key.spendable(clock::now()).to_string(),
                key.status(clock::now()).to_string(),
            ]
        })
        .collect();
    let header = ["key", "label", "kind", "spent", "held", "room", "status"];
    output::print("");
    if rows.is_empty() {
        output::note(&format!(
            "It has no keys. Create one: farebox keys create --customer {} --label NAME",
            one.id
        ));
    } else {
        output::print(&output::table(&header, &rows));
    }
    Ok(())
}

/// What each running request of a customer holds, with its key.
async fn held(
    ledger: &dyn Ledger,
    customer: CustomerId,
) -> Result<Vec<(farebox_ledger::KeyId, Amount)>, CommandFailed> {
    let open = ledger.open_holds(Some(customer.into()), usize::MAX).await?;
    Ok(open.iter().map(|hold| (hold.key, hold.amount)).collect())
}

fn said(data: &PersonalData) -> Vec<String> {
    let named = [("name", &data.name), ("address", &data.address)];
    let named = named
        .into_iter()
        .filter_map(|(what, text)| Some((what.to_owned(), text.as_ref()?)));
    let metadata = data.metadata.iter();
    named
        .chain(metadata.map(|(name, value)| (output::plain(name), value)))
        .map(|(name, value)| format!("{name}: {}", output::plain(value)))
        .collect()
}

async fn set(args: &Args, options: &SetCustomerOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let mut customer = find_customer(&*ledger, options.id).await?;
    let known = ledger.personal_data(options.id).await?;
    let described = personal(&options.personal, known);
    let mut settings = customer.settings.clone();
    if let Some(label) = &options.label {
        settings.label.clone_from(label);
    }
    if let Some(external_id) = &options.external_id {
        settings.external_id.clone_from(&external_id.0);
    }
    settings.rate = options.rate.map_or(settings.rate, |rate| rate.0);
    settings.concurrency = options
        .concurrency
        .map_or(settings.concurrency, |most| most.0);
    settings.low_balance = options.low_balance.or(settings.low_balance);
    if described.is_none() || settings != customer.settings {
        customer = apply(args, &*ledger, options.id, CustomerAct::Set(settings)).await?;
    }
    if let Some(data) = described {
        customer = apply(args, &*ledger, options.id, CustomerAct::Describe(data)).await?;
    }
    print(args, &customer);
    Ok(())
}

async fn apply(
    args: &Args,
    ledger: &dyn Ledger,
    customer: CustomerId,
    change: CustomerAct,
) -> Result<Customer, CommandFailed> {
    let change = CustomerChange {
        customer,
        change,
        act: act(args),
    };
    Ok(ledger.change_customer(change).await?)
}

async fn change(args: &Args, id: CustomerId, change: CustomerAct) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    print(args, &apply(args, &*ledger, id, change).await?);
    Ok(())
}

async fn close(args: &Args, options: &CloseOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    if let Some((reference, reason)) = options.write_off.as_ref().zip(options.reason.as_ref()) {
        let left = find_customer(&*ledger, options.id).await?.account;
        if left.balance().is_positive() {
            let amount = left.balance().checked_neg().unwrap_or_default();
            let kind = CreditKind::WriteOff {
                reason: reason.clone(),
            };
            ledger
                .credit(credit(args, options.id, kind, amount, reference))
                .await?;
        }
    }
    let closed = apply(args, &*ledger, options.id, CustomerAct::Close).await?;
    print(args, &closed);
    Ok(())
}

async fn top_up(args: &Args, options: &CustomerTopUpOptions) -> Result<(), CommandFailed> {
    let kind = CreditKind::TopUp;
    let amount = options.amount;
    post(
        args,
        credit(args, options.id, kind, amount, &options.reference),
    )
    .await
}

async fn adjust(args: &Args, options: &CustomerAdjustOptions) -> Result<(), CommandFailed> {
    let kind = CreditKind::Adjust {
        reason: options.reason.clone(),
    };
    let amount = options.amount;
    post(
        args,
        credit(args, options.id, kind, amount, &options.reference),
    )
    .await
}

fn credit(
    args: &Args,
    to: CustomerId,
    kind: CreditKind,
    amount: Amount,
    reference: &str,
) -> Credit {
    Credit {
        operation: clock::operation_id(),
        to: Scope::Customer(to),
        kind,
        amount,
        reference: reference.to_owned(),
        actor: args.actor(),
        at: clock::now(),
    }
}

async fn post(args: &Args, credit: Credit) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let posted = ledger.credit(credit).await?;
    if posted.repeated {
        output::note("This reference was applied before: nothing changed.");
    }
    match args.format() {
        OutputFormat::Json => output::print_json(
            &json!({ "entry": document::json(&posted.entry), "customer": view::customer(&posted.customer) }),
        ),
        _ => print(args, &posted.customer),
    }
    Ok(())
}

async fn give(args: &Args, options: &MoveOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let moved = ledger
        .move_money(NewMove {
            from: options.from,
            into: options.into,
            amount: options.amount,
            reference: options.reference.clone(),
            act: act(args),
        })
        .await?;
    if moved.repeated {
        output::note("This reference was applied before: nothing changed.");
    }
    let both = [moved.from, moved.into];
    match args.format() {
        OutputFormat::Json => output::print_json(
            &json!({ "from": view::customer(&both[0]), "into": view::customer(&both[1]) }),
        ),
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(&both))),
        _ => output::print(&output::table(&HEADER, &rows(&both))),
    }
    Ok(())
}

async fn link(args: &Args, one: &OneCustomer) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    find_customer(&*ledger, one.id).await?;
    let mut keys = keys_of(&*ledger, one.id).await?;
    drop(ledger);
    keys.retain(|key| key.status(clock::now()) == KeyStatus::Active);
    let key = keys.iter().find(|key| key.is_owner).or(match &*keys {
        [only] => Some(only),
        _ => None,
    });
    match key {
        Some(key) => keys::link(args, &OneKey { id: key.id }).await,
        None if keys.is_empty() => Err(CommandFailed::refused(format!(
            "customer {} has no active key; create one: farebox keys create --customer {0} --owner --label NAME",
            one.id
        ))),
        None => Err(CommandFailed::refused(format!(
            "customer {} has several keys and none is an owner; name one: farebox keys link KEY",
            one.id
        ))),
    }
}

fn print(args: &Args, customer: &Customer) {
    let rows = rows(std::slice::from_ref(customer));
    match args.format() {
        OutputFormat::Json => output::print_json(&view::customer(customer)),
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows)),
        _ => output::print(&output::table(&HEADER, &rows)),
    }
}

/// Customers as a table for people.
pub(super) fn table(customers: &[Customer]) -> String {
    output::table(&HEADER, &rows(customers))
}

fn rows(customers: &[Customer]) -> Vec<Vec<String>> {
    let row = |customer: &Customer| {
        let Customer {
            settings, account, ..
        } = customer;
        vec![
            customer.id.to_string(),
            output::plain(&settings.label),
            output::plain(settings.external_id.as_deref().unwrap_or_default()),
            account.balance().to_string(),
            account.held.to_string(),
            account.available().to_string(),
            customer.status.to_string(),
        ]
    };
    customers.iter().map(row).collect()
}
