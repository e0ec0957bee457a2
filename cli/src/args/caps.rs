//! The arguments of `farebox caps …`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::Scope;

use super::values::scope;
use farebox_selling::cap::{ClearCap, SetCap};

/// Commands on caps.
#[derive(Debug, Subcommand)]
pub enum CapsCommand {
    /// Set a cap, or change its limit; it is exact, and holds from the next request on
    Set(OnCaps<SetCap>),
    /// Show the caps of a key or customer, what they counted, and when they start again
    List(CapScope),
    /// Remove a cap
    Clear(OnCaps<ClearCap>),
}

/// Whose caps.
#[derive(Debug, ClapArgs)]
pub struct CapScope {
    /// A key's id, as in k_7f3q9d2xw1, or a customer's, as in c_7f3q9d2xw1: the bound of all its keys together
    #[arg(value_parser = scope)]
    pub scope: Scope,
}

/// A change of one.
#[derive(Debug, ClapArgs)]
pub struct OnCaps<A: ClapArgs> {
    #[command(flatten)]
    pub of: CapScope,
    #[command(flatten)]
    pub act: A,
}
