//! The arguments of `farebox events`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::{CustomerId, OperationId};

use super::values::customer_id;

/// Events and their webhooks.
#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// List events, oldest first; they are kept for 30 days
    List(ListEventsOptions),
    /// Deliver again: what a webhook missed while it was disabled, or everything after an event
    Replay(ReplayOptions),
    /// Send a signed test event to the webhooks in the routes file, and show what they answer
    Test(TestOptions),
}

/// `farebox events list`.
#[derive(Debug, ClapArgs)]
pub struct ListEventsOptions {
    /// Only what was told after this event
    #[arg(long, value_name = "ID")]
    pub after: Option<OperationId>,
    /// Only events of this type, as in top_up.booked
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only events of this customer
    #[arg(long, value_name = "ID", value_parser = customer_id)]
    pub customer: Option<CustomerId>,
    /// At most so many
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub limit: usize,
}

/// `farebox events replay`.
#[derive(Debug, ClapArgs)]
pub struct ReplayOptions {
    /// The webhook's address, as in the routes file
    pub url: String,
    /// Deliver everything after this event again, whether or not it has arrived
    #[arg(long, value_name = "ID")]
    pub after: Option<OperationId>,
}

/// `farebox events test`.
#[derive(Debug, ClapArgs)]
pub struct TestOptions {
    /// One webhook's address, as in the routes file [default: all]
    pub url: Option<String>,
}
