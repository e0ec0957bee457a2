//! The arguments of `farebox customers reverse|unapplied`, and what top-ups say of a payment.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use farebox_ledger::{CustomerId, Gross, PaidSum, ReversalKind};

use super::values::{currency, customer_id, gross, one_line, tax};

/// What was told about money that goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReversalArg {
    /// The seller paid it back
    Refund,
    /// A dispute took it
    Dispute,
    /// A dispute gave it back
    DisputeWon,
}

impl From<ReversalArg> for ReversalKind {
    fn from(kind: ReversalArg) -> Self {
        match kind {
            ReversalArg::Refund => Self::Refund,
            ReversalArg::Dispute => Self::Dispute,
            ReversalArg::DisputeWon => Self::DisputeWon,
        }
    }
}

/// What was paid; without it, the amount in US dollars and no tax.
#[derive(Debug, Default, ClapArgs)]
pub struct PaidOptions {
    /// What was paid in, as in EUR [default: USD]
    #[arg(long, value_name = "CODE", value_parser = currency, requires = "gross")]
    pub currency: Option<String>,
    /// What was paid, tax included, in that currency, as in 11.90 [default: the amount]
    #[arg(long, value_name = "AMOUNT", value_parser = gross, requires = "currency", allow_negative_numbers = true)]
    pub gross: Option<Gross>,
    /// The tax in it [default: none]
    #[arg(long, value_name = "AMOUNT", value_parser = tax, requires = "gross", allow_negative_numbers = true)]
    pub tax: Option<Gross>,
}

impl PaidOptions {
    /// The sum; `None` if none is told.
    pub(super) fn sum(&self) -> Option<PaidSum> {
        Some(PaidSum {
            currency: self.currency.clone()?,
            gross: self.gross?,
            tax: self.tax.unwrap_or_default(),
        })
    }
}

/// Options of `customers reverse`.
#[derive(Debug, ClapArgs)]
pub struct ReverseOptions {
    /// The reference of the payment that went back
    #[arg(value_name = "PAYMENT_REFERENCE")]
    pub payment: String,
    /// All of it that went back this way so far, in the payment's currency, tax included, as in 11.90
    #[arg(value_name = "CUMULATIVE", value_parser = gross, allow_negative_numbers = true)]
    pub cumulative: Gross,
    /// Which way
    #[arg(long)]
    pub kind: ReversalArg,
    /// An id for this message; a repeated one is applied only once
    #[arg(long)]
    pub reference: String,
}

/// Options of `customers unapplied`.
#[derive(Debug, ClapArgs)]
pub struct UnappliedOptions {
    /// What to do with one of them [default: lists them]
    #[command(subcommand)]
    pub end: Option<UnappliedCommand>,
}

/// What to do with a payment that could not be booked.
#[derive(Debug, Subcommand)]
pub enum UnappliedCommand {
    /// Book its credit on a customer
    Assign(AssignOptions),
    /// Note that its money was sent back
    Return(ReturnOptions),
}

/// Options of `customers unapplied assign`.
#[derive(Debug, ClapArgs)]
pub struct AssignOptions {
    /// The payment's reference
    #[arg(value_name = "PAYMENT_REFERENCE")]
    pub payment: String,
    /// Who gets its credit, as in c_7f3q9d2xw1
    #[arg(long, value_name = "CUSTOMER", value_parser = customer_id)]
    pub to: CustomerId,
}

/// Options of `customers unapplied return`.
#[derive(Debug, ClapArgs)]
pub struct ReturnOptions {
    /// The payment's reference
    #[arg(value_name = "PAYMENT_REFERENCE")]
    pub payment: String,
    /// How it was sent back and why, for the audit
    #[arg(long, value_parser = one_line)]
    pub reason: String,
}
