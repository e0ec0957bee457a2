//! The arguments of `farebox tokens …`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::TokenId;
use farebox_selling::token::CreateToken;

/// Commands on the tokens of the admin API.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// Create a token for a program of yours; its secret is printed once
    Create(CreateToken),
    /// List tokens, oldest first, with what each credited today
    List,
    /// Refuse a token permanently
    Revoke(OneToken),
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
