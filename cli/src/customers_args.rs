//! The arguments of `farebox customers …`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::{Amount, CustomerId, StatementMonth};

use super::payments_args::UnappliedOptions;
use super::values::{Setting, customer_id, label, number_or_none, one_line, payment, setting_text};
use farebox_selling::customer::Close;
use farebox_selling::payment::{Adjust, MoveMoney, Reverse, TopUp};

/// Commands on customers.
#[derive(Debug, Subcommand)]
pub enum CustomersCommand {
    /// Create a customer without a key; `keys create --customer` gives it keys
    Create(CreateCustomerOptions),
    /// List customers, oldest first
    List(ListCustomersOptions),
    /// Show one customer: money, limits, caps, personal data and its keys
    Show(OneCustomer),
    /// Change a customer's label, ids, limits or personal data
    Set(SetCustomerOptions),
    /// Refuse all keys of a customer until it is resumed
    Suspend(OneCustomer),
    /// Serve the keys of a suspended customer again
    Resume(OneCustomer),
    /// Close a customer that has no money and no running requests, permanently
    Close(OnCustomer<Close>),
    /// Remove name, address and metadata; the books keep no copy
    Erase(OneCustomer),
    /// Pay money to a customer
    TopUp(OnCustomer<TopUp>),
    /// Correct a customer's credit in either direction
    Adjust(OnCustomer<Adjust>),
    /// Ask for money by `top_up.wanted` whenever the balance falls below a threshold, or --off
    AutoTopUp(AutoTopUpOptions),
    /// Make a sign-in link to the dashboard for the customer's oldest owner key, or its only key
    Link(OneCustomer),
    /// Move paid money that no request holds to another customer; both sides are booked, or neither
    Move(MoveOptions),
    /// Take in what went back of a payment: a refund, a dispute, or a dispute that was won
    Reverse(Reverse),
    /// Payments that could not be booked: list, assign or return them
    Unapplied(UnappliedOptions),
    /// Print a customer's receipts and corrections, oldest first; for print with --format html
    Receipts(ReceiptsOptions),
    /// Print what happened to a customer's money in a month; for print with --format html
    Statement(StatementOptions),
}

/// One customer.
#[derive(Debug, ClapArgs)]
pub struct OneCustomer {
    /// The customer's id, as in c_7f3q9d2xw1
    #[arg(value_parser = customer_id)]
    pub id: CustomerId,
}

/// Options of `customers receipts`.
#[derive(Debug, ClapArgs)]
pub struct ReceiptsOptions {
    /// The customer's id
    #[arg(value_parser = customer_id)]
    pub id: CustomerId,
    /// Only the document with this number, as in c_7f3q9d2xw1-1-4
    #[arg(long, value_name = "NUMBER")]
    pub number: Option<String>,
}

/// Options of `customers statement`.
#[derive(Debug, ClapArgs)]
pub struct StatementOptions {
    /// The customer's id
    #[arg(value_parser = customer_id)]
    pub id: CustomerId,
    /// The month, in UTC, as in 2026-11 [default: this month]
    #[arg(long, value_name = "MONTH")]
    pub month: Option<StatementMonth>,
}

/// What is kept beside the books.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct PersonalOptions {
    /// Name on receipts; kept beside the books, and removed by `customers erase`
    #[arg(long, value_parser = one_line)]
    pub name: Option<String>,
    /// Address on receipts
    #[arg(long)]
    pub address: Option<String>,
    /// Anything else, as NAME=VALUE; may be given up to 16 times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub metadata: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write a name and a value with = between them".to_owned()),
    }
}

/// Options of `customers create`.
#[derive(Debug, ClapArgs)]
pub struct CreateCustomerOptions {
    /// A name that tells you who it is
    #[arg(long, value_parser = label, required_unless_present = "from")]
    pub label: Option<String>,
    /// Its id in your own system; unique
    #[arg(long, value_name = "ID")]
    pub external_id: Option<String>,
    /// Paid requests per second of all keys together [default: unlimited]
    #[arg(long, value_name = "NUMBER", value_parser = number_or_none, allow_negative_numbers = true)]
    pub rate: Option<Setting<u32>>,
    /// Concurrent requests of all keys together [default: 64]
    #[arg(long, value_name = "NUMBER", value_parser = number_or_none, allow_negative_numbers = true)]
    pub concurrency: Option<Setting<u32>>,
    /// Tell when the balance falls below this [default: a tenth of the last top-up]
    #[arg(long, value_name = "USD", value_parser = payment, allow_negative_numbers = true)]
    pub low_balance: Option<Amount>,
    #[command(flatten)]
    pub personal: PersonalOptions,
    /// Create a customer for each row of a CSV file, or of standard input if it is `-`; its columns are named as the flags
    #[arg(long, value_name = "FILE", conflicts_with_all = ["label", "external_id", "rate", "concurrency", "low_balance", "name", "address", "metadata"])]
    pub from: Option<PathBuf>,
}

/// Options of `customers list`.
#[derive(Debug, ClapArgs)]
pub struct ListCustomersOptions {
    /// Only customers whose label or external id contains this text
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// The one with exactly this external id
    #[arg(long, value_name = "ID", conflicts_with = "label")]
    pub external_id: Option<String>,
}

/// Options of `customers set`.
#[derive(Debug, ClapArgs)]
pub struct SetCustomerOptions {
    /// The customer's id
    #[arg(value_parser = customer_id)]
    pub id: CustomerId,
    /// A name that tells you who it is
    #[arg(long, value_parser = label)]
    pub label: Option<String>,
    /// Its id in your own system, or `none`
    #[arg(long, value_name = "ID", value_parser = setting_text)]
    pub external_id: Option<Setting<String>>,
    /// Paid requests per second of all keys together, or `none`
    #[arg(long, value_name = "NUMBER", value_parser = number_or_none, allow_negative_numbers = true)]
    pub rate: Option<Setting<u32>>,
    /// Concurrent requests of all keys together, or `none` for the usual 64
    #[arg(long, value_name = "NUMBER", value_parser = number_or_none, allow_negative_numbers = true)]
    pub concurrency: Option<Setting<u32>>,
    /// Tell when the balance falls below this
    #[arg(long, value_name = "USD", value_parser = payment, allow_negative_numbers = true)]
    pub low_balance: Option<Amount>,
    #[command(flatten)]
    pub personal: PersonalOptions,
}

/// Options of `customers auto-top-up`.
#[derive(Debug, ClapArgs)]
pub struct AutoTopUpOptions {
    /// The customer's id
    #[arg(value_parser = customer_id)]
    pub id: CustomerId,
    /// Ask when the balance falls below this
    #[arg(long, value_name = "USD", value_parser = payment, allow_negative_numbers = true, required_unless_present = "off")]
    pub threshold: Option<Amount>,
    /// Ask for this each time
    #[arg(long, value_name = "USD", value_parser = payment, allow_negative_numbers = true, required_unless_present_any = ["target", "off"], conflicts_with = "target")]
    pub amount: Option<Amount>,
    /// Ask for what is missing to this balance
    #[arg(long, value_name = "USD", value_parser = payment, allow_negative_numbers = true)]
    pub target: Option<Amount>,
    /// Ask at most so many times in a month (UTC)
    #[arg(long, value_name = "NUMBER", required_unless_present = "off")]
    pub per_month: Option<u32>,
    /// Ask for nothing any more
    #[arg(long, conflicts_with_all = ["threshold", "amount", "target", "per_month"])]
    pub off: bool,
}

/// An act on a customer.
#[derive(Debug, ClapArgs)]
pub struct OnCustomer<A: ClapArgs> {
    /// The customer's id
    #[arg(value_parser = customer_id)]
    pub id: CustomerId,
    #[command(flatten)]
    pub act: A,
}

/// Options of `customers move`.
#[derive(Debug, ClapArgs)]
pub struct MoveOptions {
    /// The customer that gives
    #[arg(value_parser = customer_id)]
    pub from: CustomerId,
    #[command(flatten)]
    pub act: MoveMoney,
}
