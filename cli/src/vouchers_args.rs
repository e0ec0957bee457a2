//! The arguments of `farebox vouchers …`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::{Amount, LotId, Timestamp};

use super::dates::expiry;
use super::values::payment;
use farebox::selling::vouchers::check_count;

/// Commands on vouchers.
#[derive(Debug, Subcommand)]
pub enum VouchersCommand {
    /// Make a lot of codes, each worth the same credit once; they are shown only now
    Create(CreateVouchersOptions),
    /// List the lots, and how many of each were redeemed
    List,
    /// What is left of a lot is worth nothing from now on; what was redeemed stays
    Void(VoidOptions),
}

/// Options of `vouchers create`.
#[derive(Debug, ClapArgs)]
pub struct CreateVouchersOptions {
    /// How many codes, at most 10000
    #[arg(long, value_name = "N", value_parser = count)]
    pub count: usize,
    /// What each is worth
    #[arg(long, value_name = "USD", value_parser = payment, allow_negative_numbers = true)]
    pub amount: Amount,
    /// The last day on which they can be redeemed, UTC, or an instant with its offset
    #[arg(long, value_name = "DATE", value_parser = expiry)]
    pub expires: Option<Timestamp>,
    /// A customer can redeem only one of them
    #[arg(long)]
    pub once_per_customer: bool,
}

/// Options of `vouchers void`.
#[derive(Debug, ClapArgs)]
pub struct VoidOptions {
    /// The lot's id, as in l_7f3q9d2xw1
    #[arg(value_name = "LOT", value_parser = lot_id)]
    pub lot: LotId,
}

fn lot_id(text: &str) -> Result<LotId, String> {
    text.parse::<LotId>().map_err(|error| error.to_string())
}

fn count(text: &str) -> Result<usize, String> {
    check_count(text.parse().unwrap_or_default())
}
