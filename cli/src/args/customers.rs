//! The arguments of `farebox customers …`.

use std::path::PathBuf;

use clap::{Arg, Args as ClapArgs, Subcommand};
use farebox_ledger::{CustomerId, StatementMonth};

use super::payments::UnappliedOptions;
use super::plans::CustomerPlanOptions;
use super::values::{customer_id, none_for_null, unless_from};
use farebox_selling::auto_top_up::SetAutoTopUp;
use farebox_selling::customer::{Close, CreateCustomer, EditCustomer, WhichCustomers};
use farebox_selling::grant::GiveGrant;
use farebox_selling::payment::{Adjust, MoveMoney, Reverse, TopUp};

/// Commands on customers.
#[derive(Debug, Subcommand)]
pub enum CustomersCommand {
    /// Create a customer without a key; `keys create --customer` gives it keys
    Create(CreateCustomerOptions),
    /// List customers, oldest first
    List(WhichCustomers),
    /// Show one customer: money, limits, caps, personal data and its keys
    Show(OneCustomer),
    /// Change a customer's label, ids, limits or personal data
    Set(OnCustomer<EditCustomer>),
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
    /// Give credit that may end; see `farebox grants`
    Grant(OnCustomer<GiveGrant>),
    /// Sell, give, change and end plans; see `farebox plans`
    Plan(CustomerPlanOptions),
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

/// Options of `customers create`.
#[derive(Debug, ClapArgs)]
#[command(mut_args(none_for_null), mut_arg("label", unless_from))]
pub struct CreateCustomerOptions {
    #[command(flatten)]
    pub act: Option<CreateCustomer>,
    /// Create a customer for each row of a CSV file, or of standard input if it is `-`; its columns are named as the flags
    #[arg(long, value_name = "FILE", conflicts_with = "CreateCustomer")]
    pub from: Option<PathBuf>,
}

/// Options of `customers auto-top-up`.
#[derive(Debug, ClapArgs)]
#[command(mut_args(unless_off))]
pub struct AutoTopUpOptions {
    /// The customer's id
    #[arg(value_parser = customer_id)]
    pub id: CustomerId,
    #[command(flatten)]
    pub rule: Option<SetAutoTopUp>,
    /// Ask for nothing any more
    #[arg(long, conflicts_with = "SetAutoTopUp")]
    pub off: bool,
}

/// What a rule needs is not needed to end it.
fn unless_off(of_rule: Arg) -> Arg {
    match of_rule.get_id().as_str() {
        "threshold" | "per_month" => of_rule.required(false).required_unless_present("off"),
        "amount" => of_rule.required_unless_present_any(["target", "off"]),
        _ => of_rule,
    }
}

/// An act on a customer.
#[derive(Debug, ClapArgs)]
#[command(mut_args(none_for_null))]
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
