//! The arguments of `farebox vouchers …`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::LotId;

use farebox_selling::voucher::CreateLot;

/// Commands on vouchers.
#[derive(Debug, Subcommand)]
pub enum VouchersCommand {
    /// Make a lot of codes, each worth the same credit once; they are shown only now
    Create(CreateLot),
    /// List the lots, and how many of each were redeemed
    List,
    /// What is left of a lot is worth nothing from now on; what was redeemed stays
    Void(VoidOptions),
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
