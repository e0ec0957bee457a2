//! The arguments of `farebox customers unapplied`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_selling::payment::{Assign, Return};

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
    Assign(OnPayment<Assign>),
    /// Note that its money was sent back
    Return(OnPayment<Return>),
}

/// An act on a payment.
#[derive(Debug, ClapArgs)]
pub struct OnPayment<A: ClapArgs> {
    /// The payment's reference
    #[arg(value_name = "PAYMENT_REFERENCE")]
    pub payment: String,
    #[command(flatten)]
    pub act: A,
}
