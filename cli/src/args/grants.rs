//! The arguments of `farebox grants …`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::{CustomerId, GrantId};

use super::values::customer_id;
use farebox_selling::grant::WhichGrants;

/// Commands on grants; `customers grant` gives one.
#[derive(Debug, Subcommand)]
pub enum GrantsCommand {
    /// List grants, newest first, and what is left of each
    List(GrantsOptions),
    /// Show one grant
    Show(OneGrant),
    /// Take back what is left of a grant; what running requests hold of it they can still spend
    Void(OneGrant),
}

/// Options of `grants list`.
#[derive(Debug, ClapArgs)]
pub struct GrantsOptions {
    /// Only grants of this customer
    #[arg(long, value_name = "ID", value_parser = customer_id)]
    pub customer: Option<CustomerId>,
    #[command(flatten)]
    pub which: WhichGrants,
}

/// One grant.
#[derive(Debug, ClapArgs)]
pub struct OneGrant {
    /// The grant's id, as in g_7f3q9d2xw1
    #[arg(value_name = "GRANT", value_parser = grant_id)]
    pub id: GrantId,
}

fn grant_id(text: &str) -> Result<GrantId, String> {
    text.parse::<GrantId>().map_err(|error| error.to_string())
}
