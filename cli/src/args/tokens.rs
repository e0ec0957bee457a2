//! The arguments of `farebox tokens …`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use farebox_ledger::{TokenId, TokenRole};

use super::values::label;
use farebox_selling::value::{Expiry, OneLine, Usd};

/// Commands on the tokens of the admin API.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// Create a token for a program of yours; its secret is printed once
    Create(CreateTokenOptions),
    /// List tokens, oldest first, with what each credited today
    List,
    /// Refuse a token permanently
    Revoke(OneToken),
}

/// Options of `tokens create`.
#[derive(Debug, ClapArgs)]
pub struct CreateTokenOptions {
    /// A name that tells what uses it; the actor of what it does in journal and audit, so each has its own
    #[arg(value_parser = label)]
    pub label: OneLine,
    /// What it may do
    #[arg(long)]
    pub role: RoleArg,
    /// The most that it may credit in one UTC day; required of one that sells
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    pub daily: Option<Usd>,
    /// Last day (UTC), as in 2027-01-31, or an instant, as in 2027-01-31T12:00:00+01:00 [default: never]
    #[arg(long, value_name = "DATE")]
    pub expires: Option<Expiry>,
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// Read everything, change nothing
    Read,
    /// Top up active customers; create customers with a first key, and take back payments that it booked
    Sell,
    /// Everything but tokens
    Manage,
}

impl From<RoleArg> for TokenRole {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Read => Self::Read,
            RoleArg::Sell => Self::Sell,
            RoleArg::Manage => Self::Manage,
        }
    }
}

/// One token.
#[derive(Debug, ClapArgs)]
pub struct OneToken {
    /// The token's id, as in t_7f3q9d2xw1
    #[arg(value_parser = token_id)]
    pub id: TokenId,
}

fn token_id(text: &str) -> Result<TokenId, String> {
    text.parse::<TokenId>().map_err(|error| error.to_string())
}
