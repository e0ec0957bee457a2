//! Does acts, and prints what they came to.

use farebox_ledger::store::SharedStore;
use farebox_ledger::{
    Customer, GrantAnswer, Key, OpenMode, Outcome, PaymentMoved, PaymentStatus, Secret,
};

use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::publish::check::ReadCatalog;
use crate::tables;
use farebox::clock;
use farebox_selling::key::KeyDocument;
use farebox_selling::subscription::SubscriptionDocument;
use farebox_selling::{Deeded, Doer, SellerAct, subscription};

/// Does an act, and prints what it came to.
pub(crate) async fn act<A: SellerAct>(args: &Args, act: A, of: A::Of) -> Result<(), CommandFailed> {
    shown(args, act, of).await.map(drop)
}

/// The same, for who goes on with it.
pub(crate) async fn shown<A: SellerAct>(
    args: &Args,
    act: A,
    of: A::Of,
) -> Result<Deeded, CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let done = ask(args, &ledger, act, of).await?;
    print_done(args, &done);
    Ok(done)
}

/// Does an act.
pub(crate) async fn ask<A: SellerAct>(
    args: &Args,
    ledger: &SharedStore,
    act: A,
    of: A::Of,
) -> Result<Deeded, CommandFailed> {
    let (actor, ledger, catalog) = (args.actor(), &**ledger, ReadCatalog::of(args));
    let doer = Doer {
        ledger,
        actor: &actor,
        sells: false,
        kept: None,
        sold: Some(&catalog),
    };
    for deed in act.before(&of, &doer).await? {
        deed.perform(ledger).await?;
    }
    Ok(act.deed(of, &doer).await?.perform(ledger).await?)
}

/// Prints what an act came to.
pub(crate) fn print_done(args: &Args, done: &Deeded) {
    if done.repeated() {
        output::note(match done.outcome {
            Outcome::Payment(_) => "The ledger knew this, or more: nothing changed.",
            _ => "This reference was applied before: nothing changed.",
        });
    }
    if args.format() == OutputFormat::Json {
        return output::print_json(&done.document());
    }
    if let Some((key, secret)) = done.sold() {
        return print_secret(args, key, secret);
    }
    match &done.outcome {
        Outcome::Key(key) => print_key(args, key),
        Outcome::Customer(customer) => {
            print_customers(args, std::slice::from_ref(&**customer));
        }
        Outcome::Posted(posted) => match &posted.key {
            Some(key) => print_key(args, key),
            None => print_customers(args, std::slice::from_ref(&posted.customer)),
        },
        Outcome::Moved(moved) => {
            print_customers(args, &[moved.from.clone(), moved.into.clone()]);
        }
        Outcome::Payment(moved) => print_moved(args, moved),
        Outcome::GrantAnswer(answer) => print_grant(args, answer),
        Outcome::PlanAnswer(answer) => print_subscription(args, &(&**answer).into()),
        _ => {}
    }
}

pub(crate) fn print_key(args: &Args, key: &Key) {
    if args.format() == OutputFormat::Json {
        return output::print_json(&KeyDocument::of(key, clock::now()));
    }
    tables::print(
        args.format(),
        &tables::KEY,
        &tables::keys(std::slice::from_ref(key)),
    );
}

/// Prints a key with its new secret; not as JSON.
fn print_secret(args: &Args, key: &Key, secret: &Secret) {
    let mut rows = tables::keys(std::slice::from_ref(key));
    if args.format() == OutputFormat::Csv {
        let mut header = tables::KEY.to_vec();
        header.push("secret");
        rows.iter_mut()
            .for_each(|cells| cells.push(secret.reveal().to_owned()));
        return tables::print(OutputFormat::Csv, &header, &rows);
    }
    print_key(args, key);
    output::print(&format!("\nsecret  {}", secret.reveal()));
    output::note("The secret is shown only now and is not stored; give it to the customer.");
}

/// Prints customers; not as JSON.
fn print_customers(args: &Args, shown: &[Customer]) {
    tables::print(args.format(), &tables::CUSTOMER, &tables::customers(shown));
}

/// Prints what was given or taken back, and whose money it is now; not as JSON.
fn print_grant(args: &Args, answer: &GrantAnswer) {
    let rows = tables::grants(std::slice::from_ref(&answer.grant));
    tables::print(args.format(), &tables::GRANT, &rows);
    if args.format() != OutputFormat::Csv {
        output::print("");
        print_customers(args, std::slice::from_ref(&answer.customer));
    }
}

/// Prints a subscription, and for people its windows.
pub(crate) fn print_subscription(args: &Args, shown: &SubscriptionDocument) {
    if args.format() == OutputFormat::Json {
        return output::print_json(shown);
    }
    let rows = tables::subscriptions(std::slice::from_ref(shown));
    tables::print(args.format(), &tables::SUBSCRIPTION, &rows);
    if args.format() != OutputFormat::Csv && !shown.windows.is_empty() {
        output::print("");
        output::print(&output::table(&tables::WINDOW, &tables::windows(shown)));
    }
}

/// Prints where a payment is now; not as JSON.
fn print_moved(args: &Args, moved: &PaymentMoved) {
    let rows = tables::payments(std::slice::from_ref(&moved.payment));
    tables::print(args.format(), &tables::PAYMENT, &rows);
    if args.format() == OutputFormat::Csv {
        return;
    }
    let customer = &moved.customer;
    output::print("");
    print_customers(args, std::slice::from_ref(customer));
    let of_plans = moved.payment.plan.iter();
    for words in of_plans.flat_map(|_| subscription::words(customer, clock::now())) {
        output::print(&words);
    }
    if let PaymentStatus::Unapplied { why } = &moved.payment.status {
        output::note(&format!(
            "It could not be booked ({why}) and is kept as unapplied: farebox customers unapplied"
        ));
    }
    if customer.claim.is_positive() {
        output::note(&format!(
            "{} owes {} USD, which what it pays next goes to first; until then its requests are refused.",
            customer.id, customer.claim
        ));
    }
}
