//! `farebox customers …`: who owns the money that keys spend. Works while a gateway runs.

use farebox_ledger::{Customer, CustomerId, OpenMode, Outcome, PersonalData};
use serde_json::json;

use super::acts::{self, act, print_done};
use super::{keys, paper, payments, plans};
use crate::args::customers::{
    AutoTopUpOptions, CreateCustomerOptions, CustomersCommand, OneCustomer,
};
use crate::args::{Args, OneKey, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::tables;
use farebox::clock;
use farebox_selling::auto_top_up::{self, ClearAutoTopUp};
use farebox_selling::customer::{
    CustomerDocument, CustomerPage, Erase, Resume, Suspend, WhichCustomers,
};
use farebox_selling::erasure::Remains;
use farebox_selling::{customer, grant, reads, subscription};

pub(crate) async fn run(args: &Args, command: &CustomersCommand) -> Result<(), CommandFailed> {
    match command {
        CustomersCommand::Create(options) => create(args, options).await,
        CustomersCommand::List(which) => list(args, which).await,
        CustomersCommand::Show(one) => show(args, one).await,
        CustomersCommand::Set(on) => act(args, on.act.clone(), on.id).await,
        CustomersCommand::Suspend(one) => act(args, Suspend {}, one.id).await,
        CustomersCommand::Resume(one) => act(args, Resume {}, one.id).await,
        CustomersCommand::Close(on) => act(args, on.act.clone(), on.id).await,
        CustomersCommand::Erase(one) => erase(args, one.id).await,
        CustomersCommand::TopUp(on) => act(args, on.act.clone(), on.id.into()).await,
        CustomersCommand::Adjust(on) => (act(args, on.act.clone(), on.id.into()).await).map(drop),
        CustomersCommand::Grant(on) => act(args, on.act.clone(), on.id).await,
        CustomersCommand::Plan(options) => plans::of_customer(args, options).await,
        CustomersCommand::AutoTopUp(options) => ask_for_money(args, options).await,
        CustomersCommand::Link(one) => link(args, one).await,
        CustomersCommand::Move(on) => act(args, on.act.clone(), on.from).await,
        CustomersCommand::Reverse(reverse) => act(args, reverse.clone(), None).await,
        CustomersCommand::Unapplied(options) => payments::unapplied(args, options).await,
        CustomersCommand::Receipts(options) => paper::receipts(args, options).await,
        CustomersCommand::Statement(options) => paper::statement(args, options).await,
    }
}

async fn create(args: &Args, options: &CreateCustomerOptions) -> Result<(), CommandFailed> {
    match &options.act {
        Some(new) => act(args, new.clone(), ()).await,
        // Rows of a document are created elsewhere.
        None => Ok(()),
    }
}

async fn list(args: &Args, which: &WhichCustomers) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let customers = match which.only(&*ledger).await? {
        Some(only) => only,
        None => reads::all_customers(&*ledger, which.query()).await?,
    };
    match args.format() {
        OutputFormat::Json => output::print_json(
            &json!({ "customers": customers.iter().map(CustomerDocument::from).collect::<Vec<_>>() }),
        ),
        OutputFormat::Csv => print(args, &customers),
        _ if customers.is_empty() => output::note(which.why_none().unwrap_or(
            "There are no customers yet. Create one: farebox customers create --label NAME",
        )),
        _ => print(args, &customers),
    }
    Ok(())
}

pub(crate) async fn show(args: &Args, one: &OneCustomer) -> Result<(), CommandFailed> {
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
    if let Some(words) = customer::paying_by(&page.customer) {
        output::print(&words);
    }
    for words in customer::by_default(&page.customer) {
        output::print(&words);
    }
    let now = clock::now();
    let words = grant::words(&page.customer, now).into_iter();
    for words in words.chain(subscription::words(&page.customer, now)) {
        output::print(&words);
    }
    say_auto_top_up(args, &page.customer);
    if let Some(data) = &page.personal {
        output::print("");
        for line in personal_lines(data) {
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

fn personal_lines(data: &PersonalData) -> Vec<String> {
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

/// Erases what is known of a person, and says where its name stands still.
async fn erase(args: &Args, id: CustomerId) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let known = ledger.personal_data(id).await?;
    print_done(args, &acts::ask(args, &ledger, Erase {}, id).await?);
    let customer = reads::customer(&*ledger, id).await?;
    let remains = Remains::of(&*ledger, &customer, known.as_ref()).await?;
    for line in remains.words(&customer) {
        output::note(&line);
    }
    Ok(())
}

/// Sets or removes a rule of auto top-up, and shows what it does now.
async fn ask_for_money(args: &Args, options: &AutoTopUpOptions) -> Result<(), CommandFailed> {
    let done = match options.rule.clone() {
        Some(rule) => acts::shown(args, rule, options.id).await?,
        None => acts::shown(args, ClearAutoTopUp {}, options.id).await?,
    };
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
