//! The arguments of `farebox plans …` and `farebox customers plan …`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::{CustomerId, SubscriptionId};

use super::values::customer_id;
use farebox_selling::plan::{HaveOtherPlan, SellPlan};
use farebox_selling::subscription::WhichSubscriptions;

/// Commands on subscriptions; `customers plan` sells and changes them.
#[derive(Debug, Subcommand)]
pub enum PlansCommand {
    /// List subscriptions of which something can still come, oldest first
    List(PlansOptions),
    /// Show one subscription: what is left of its period and windows
    Show(OneSubscription),
}

/// Options of `plans list`.
#[derive(Debug, ClapArgs)]
pub struct PlansOptions {
    /// Only subscriptions of this customer
    #[arg(long, value_name = "ID", value_parser = customer_id)]
    pub customer: Option<CustomerId>,
    #[command(flatten)]
    pub which: WhichSubscriptions,
}

/// One subscription.
#[derive(Debug, ClapArgs)]
pub struct OneSubscription {
    /// The subscription's id, as in s_7f3q9d2xw1
    #[arg(value_name = "SUBSCRIPTION", value_parser = subscription_id)]
    pub id: SubscriptionId,
}

/// Options of `customers plan`.
#[derive(Debug, ClapArgs)]
pub struct CustomerPlanOptions {
    /// The customer's id
    #[arg(value_parser = customer_id)]
    pub id: CustomerId,
    #[command(subcommand)]
    pub command: CustomerPlanCommand,
}

/// What is done with a customer's plan.
#[derive(Debug, Subcommand)]
pub enum CustomerPlanCommand {
    /// Sell or give periods of a plan that the customer does not have
    Start(SellPlan),
    /// Sell or give further periods of a plan that it has
    Renew(SellPlan),
    /// Have another plan from the next period that is not paid on, or at once
    Change(ChangePlanOptions),
    /// Stop its time: what is left of days and allowance stays
    Pause(NamedSubscription),
    /// Let a paused one go on: what is left is as long as it was
    Resume(NamedSubscription),
    /// Renew it no more; what is paid still runs
    End(NamedSubscription),
}

/// One of a customer's subscriptions.
#[derive(Debug, ClapArgs)]
pub struct NamedSubscription {
    /// The plan's name, or the subscription's id, as in s_7f3q9d2xw1
    #[arg(value_name = "SUBSCRIPTION")]
    pub name: String,
}

/// Options of `customers plan … change`.
#[derive(Debug, ClapArgs)]
pub struct ChangePlanOptions {
    #[command(flatten)]
    pub of: NamedSubscription,
    #[command(flatten)]
    pub act: HaveOtherPlan,
}

fn subscription_id(text: &str) -> Result<SubscriptionId, String> {
    text.parse::<SubscriptionId>()
        .map_err(|error| error.to_string())
}
