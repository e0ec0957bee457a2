//! The arguments of `farebox caps …`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::{Amount, CapInterval, Scope};

use super::values::{interval, payment, scope, slug};

/// Commands on caps.
#[derive(Debug, Subcommand)]
pub enum CapsCommand {
    /// Set a cap, or change its limit; it is exact, and holds from the next request on
    Set(SetCapOptions),
    /// Show the caps of a key or customer, what they counted, and when they start again
    List(CapScope),
    /// Remove a cap
    Clear(CapOptions),
}

/// Whose caps.
#[derive(Debug, ClapArgs)]
pub struct CapScope {
    /// A key's id, as in k_7f3q9d2xw1, or a customer's, as in c_7f3q9d2xw1: the bound of all its keys together
    #[arg(value_parser = scope)]
    pub scope: Scope,
}

/// Which cap.
#[derive(Debug, Clone, ClapArgs)]
pub struct CapOptions {
    /// A key's id, as in k_7f3q9d2xw1, or a customer's, as in c_7f3q9d2xw1: the bound of all its keys together
    #[arg(value_parser = scope)]
    pub scope: Scope,
    /// day, week (from Monday), month or total; days are UTC
    #[arg(value_name = "INTERVAL", value_parser = interval)]
    pub interval: CapInterval,
    /// Only this model's requests count [default: all]
    #[arg(long, value_name = "SLUG", value_parser = slug)]
    pub model: Option<String>,
}

/// Options of `caps set`.
#[derive(Debug, ClapArgs)]
pub struct SetCapOptions {
    #[command(flatten)]
    pub cap: CapOptions,
    /// Most that may be charged and held in one interval
    #[arg(value_name = "USD", value_parser = payment, allow_negative_numbers = true)]
    pub limit: Amount,
}
