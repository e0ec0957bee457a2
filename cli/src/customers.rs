//! `farebox customers …`: who owns the money that keys spend. Works while a gateway runs.

use farebox_ledger::{
    CreditKind, Customer, CustomerAct, CustomerId, CustomerQuery, Ledger, OpenMode, Outcome,
    PersonalData,
};
use serde_json::json;

use super::args::{Args, OneKey, OutputFormat};
use super::books::{act, open};
use super::customers_args::{
    AutoTopUpOptions, CloseOptions, CreateCustomerOptions, CustomerAdjustOptions,
    CustomerTopUpOptions, CustomersCommand, ListCustomersOptions, MoveOptions, OneCustomer,
    PersonalOptions, SetCustomerOptions,
};
use super::done::{perform, print_done};
use super::output::{self, CommandFailed};
use super::values::Setting;
use super::{keys, paper, payments, tables, view};
use farebox::clock;
use farebox::selling::customers::{CustomerEdit, PersonalEdit};
use farebox::selling::erased::Remains;
use farebox::selling::reads::{self, CustomerPage};
use farebox::selling::{self, auto_top_up, customers, money};

/// Customers are read from the ledger in pages of this many.
const PAGE: usize = 1_000;

pub(super) async fn run(args: &Args, command: &CustomersCommand) -> Result<(), CommandFailed> {
    match command {
        CustomersCommand::Create(options) => create(args, options).await,
        CustomersCommand::List(options) => list(args, options).await,
        CustomersCommand::Show(one) => show(args, one).await,
        CustomersCommand::Set(options) => set(args, options).await,
        CustomersCommand::Suspend(one) => change(args, one.id, CustomerAct::Suspend).await,
        CustomersCommand::Resume(one) => change(args, one.id, CustomerAct::Resume).await,
        CustomersCommand::Close(options) => close(args, options).await,
        CustomersCommand::Erase(one) => erase(args, one.id).await,
        CustomersCommand::TopUp(options) => top_up(args, options).await,
        CustomersCommand::Adjust(options) => adjust(args, options).await,
        CustomersCommand::AutoTopUp(options) => ask_for_money(args, options).await,
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
    perform(args, &ledger, new_customer(args, options))
        .await
        .map(drop)
}

/// A customer as the options say.
pub(super) fn new_customer(args: &Args, options: &CreateCustomerOptions) -> selling::Deed {
    let edit = CustomerEdit {
        label: options.label.clone(),
        external_id: Some(Setting(options.external_id.clone())),
        low_balance: Some(Setting(options.low_balance)),
        rate: options.rate,
        concurrency: options.concurrency,
        personal: personal(&options.personal),
    };
    customers::create(edit, act(args))
}

/// What the options say of a person.
fn personal(options: &PersonalOptions) -> PersonalEdit {
    PersonalEdit {
        name: options.name.clone(),
        address: options.address.clone(),
        metadata: options.metadata.iter().cloned().collect(),
    }
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
        OutputFormat::Csv => print(args, &customers),
        _ if customers.is_empty() => output::note(match &options.external_id {
            Some(_) => "No customer has this external id.",
            None if options.label.is_some() => "No label or external id contains this text.",
            None => "There are no customers yet. Create one: farebox customers create --label NAME",
        }),
        _ => print(args, &customers),
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
    let page = CustomerPage::read(&*ledger, one.id).await?;
    if args.format() == OutputFormat::Json {
        output::print_json(&page.document());
        return Ok(());
    }
    print(args, std::slice::from_ref(&page.customer));
    if args.format() == OutputFormat::Csv {
        return Ok(());
    }
    say_auto_top_up(args, &page.customer);
    if let Some(data) = &page.personal {
        output::print("");
        for line in said(data) {
            output::print(&line);
        }
    }
    let row = |(key, spent, held): &(farebox_ledger::Key, _, _)| {
        let (spent, held): (&farebox_ledger::Amount, &farebox_ledger::Amount) = (spent, held);
        vec![
            key.id.to_string(),
            output::plain(&key.settings.label),
            if key.is_owner { "owner" } else { "member" }.to_owned(),
            spent.to_string(),
            held.to_string(),
            key.spendable(clock::now()).to_string(),
            key.status(clock::now()).to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = page.keys.iter().map(row).collect();
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
    let customer = reads::customer(&*ledger, options.id).await?;
    let known = ledger.personal_data(options.id).await?;
    let edit = CustomerEdit {
        label: options.label.clone(),
        external_id: options.external_id.clone(),
        low_balance: options.low_balance.map(|low| Setting(Some(low))),
        rate: options.rate,
        concurrency: options.concurrency,
        personal: personal(&options.personal),
    };
    let mut last = None;
    for deed in customers::set(&customer, known, edit, &args.actor()) {
        last = Some(deed.perform(&*ledger).await?);
    }
    if let Some(done) = &last {
        print_done(args, done);
    }
    Ok(())
}

async fn change(args: &Args, id: CustomerId, change: CustomerAct) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let changed = customers::change(id, change, act(args));
    perform(args, &ledger, changed).await.map(drop)
}

/// Erases what is known of a person, and says where its name stands still.
async fn erase(args: &Args, id: CustomerId) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let known = ledger.personal_data(id).await?;
    let deed = customers::change(id, CustomerAct::Erase, act(args));
    perform(args, &ledger, deed).await?;
    let customer = reads::customer(&*ledger, id).await?;
    let remains = Remains::of(&*ledger, &customer, known.as_ref()).await?;
    for line in remains.words(&customer) {
        output::note(&line);
    }
    Ok(())
}

async fn close(args: &Args, options: &CloseOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    if let Some((reference, reason)) = options.write_off.as_ref().zip(options.reason.as_ref()) {
        let act = act(args);
        let off = money::write_off(&*ledger, options.id, reason.clone(), reference, act).await?;
        if let Some(deed) = off {
            deed.perform(&*ledger).await?;
        }
    }
    let closed = customers::change(options.id, CustomerAct::Close, act(args));
    perform(args, &ledger, closed).await.map(drop)
}

async fn top_up(args: &Args, options: &CustomerTopUpOptions) -> Result<(), CommandFailed> {
    let (amount, reference) = (options.amount, &options.reference);
    let deed = match options.paid.sum() {
        None => money::credit(options.id, CreditKind::TopUp, amount, reference, act(args)),
        paid => money::pay(
            options.id,
            amount,
            paid,
            (reference.clone(), None),
            act(args),
        ),
    };
    post(args, deed).await
}

async fn adjust(args: &Args, options: &CustomerAdjustOptions) -> Result<(), CommandFailed> {
    let (reason, amount) = (options.reason.clone(), options.amount);
    let kind = CreditKind::Adjust { reason };
    let deed = money::credit(options.id, kind, amount, &options.reference, act(args));
    post(args, deed).await
}

/// Sets or removes a rule of auto top-up, and shows what it does now.
async fn ask_for_money(args: &Args, options: &AutoTopUpOptions) -> Result<(), CommandFailed> {
    let deed = match (options.threshold, options.per_month) {
        (Some(threshold), Some(per_month)) => {
            let rule = auto_top_up::rule(threshold, options.amount, options.target, per_month);
            let rule = rule.map_err(|why| CommandFailed::usage(why.to_owned()))?;
            auto_top_up::set(options.id, rule, act(args))
        }
        _ => auto_top_up::clear(options.id, act(args)),
    };
    let ledger = open(args, OpenMode::Write).await?;
    let done = perform(args, &ledger, deed).await?;
    if let Outcome::Customer(customer) = &done.outcome {
        say_auto_top_up(args, customer);
    }
    Ok(())
}

/// One line about a customer's rule, where people read.
fn say_auto_top_up(args: &Args, customer: &Customer) {
    if matches!(args.format(), OutputFormat::Json | OutputFormat::Csv) {
        return;
    }
    if let Some(words) = auto_top_up::words(customer, clock::now()) {
        output::print(&format!("auto top-up: {words}"));
    }
}

async fn give(args: &Args, options: &MoveOptions) -> Result<(), CommandFailed> {
    let (amount, reference) = (options.amount, options.reference.clone());
    let deed = money::give(options.from, options.into, amount, reference, act(args));
    post(args, deed).await
}

async fn post(args: &Args, deed: selling::Deed) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    perform(args, &ledger, deed).await.map(drop)
}

async fn link(args: &Args, one: &OneCustomer) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let key = reads::key_that_signs_in(&*ledger, one.id).await?;
    drop(ledger);
    let id = key.map_err(CommandFailed::refused)?;
    keys::link(args, &OneKey { id }).await
}

/// Prints customers; not as JSON.
fn print(args: &Args, shown: &[Customer]) {
    tables::print(args.format(), &tables::CUSTOMER, &tables::customers(shown));
}
