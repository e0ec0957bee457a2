//! `farebox plans …` and `farebox customers plan …`: subscriptions, and what is left of each. Works while a gateway runs.

use farebox_ledger::{OpenMode, SubscriptionId};
use serde_json::json;

use super::acts;
use crate::args::plans::{
    CustomerPlanCommand, CustomerPlanOptions, NamedSubscription, PlansCommand, PlansOptions,
};
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::tables;
use farebox::clock;
use farebox_selling::plan::{EndPlan, PausePlan, ResumePlan, SellPlan};
use farebox_selling::subscription;
use farebox_selling::value::OneLine;
use farebox_selling::{SellerAct, reads};

pub(crate) async fn run(args: &Args, command: &PlansCommand) -> Result<(), CommandFailed> {
    match command {
        PlansCommand::List(options) => list(args, options).await,
        PlansCommand::Show(one) => show(args, one.id).await,
    }
}

async fn list(args: &Args, options: &PlansOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let which = &options.which;
    let found = which.read(&*ledger, options.customer).await?;
    let now = clock::now();
    let found: Vec<_> = found.iter().map(|known| known.document(now)).collect();
    match args.format() {
        OutputFormat::Json => output::print_json(&json!({ "subscriptions": found })),
        OutputFormat::Table | OutputFormat::Markdown if found.is_empty() => {
            let is_any =
                options.customer.is_none() && which.plan.is_none() && which.status.is_none();
            output::note(if is_any {
                "There are no subscriptions. Sell one: farebox customers plan CUSTOMER start PLAN --reference NAME"
            } else {
                "There are no such subscriptions."
            });
        }
        format => tables::print(
            format,
            &tables::SUBSCRIPTION,
            &tables::subscriptions(&found),
        ),
    }
    Ok(())
}

pub(crate) async fn show(args: &Args, id: SubscriptionId) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let found = subscription::find(&*ledger, id).await?;
    acts::print_subscription(args, &found.document(clock::now()));
    Ok(())
}

/// `farebox customers plan …`.
pub(crate) async fn of_customer(
    args: &Args,
    options: &CustomerPlanOptions,
) -> Result<(), CommandFailed> {
    match &options.command {
        CustomerPlanCommand::Start(sale) => sell(args, options, sale, true).await,
        CustomerPlanCommand::Renew(sale) => sell(args, options, sale, false).await,
        CustomerPlanCommand::Change(change) => {
            on_named(args, options, &change.of, change.act.clone()).await
        }
        CustomerPlanCommand::Pause(of) => on_named(args, options, of, PausePlan {}).await,
        CustomerPlanCommand::Resume(of) => on_named(args, options, of, ResumePlan {}).await,
        CustomerPlanCommand::End(of) => on_named(args, options, of, EndPlan {}).await,
    }
}

/// Sells or gives periods. Who would start what is had, or renew what is not, has mistaken the customer or the plan.
async fn sell(
    args: &Args,
    options: &CustomerPlanOptions,
    sale: &SellPlan,
    starts: bool,
) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let customer = reads::customer(&*ledger, options.id).await?;
    let had = subscription::named(&customer, &sale.plan.0);
    let had = had.ok().filter(|of| of.counts());
    let named = had.map_or(&*sale.plan.0, |of| &*of.state.terms.name);
    let is_known = match &sale.reference {
        Some(OneLine(reference)) => ledger.payment(reference).await?.is_some(),
        None => false,
    };
    let (id, shown) = (options.id, output::plain(named));
    match (starts, had) {
        (true, Some(of)) if !is_known => Err(CommandFailed::refused(format!(
            "customer {id} has {shown} already, as subscription {}; to sell its next period: farebox customers plan {id} renew {shown}",
            of.id
        ))),
        (false, None) if !is_known => Err(CommandFailed::refused(format!(
            "customer {id} has no {shown}; to sell its first period: farebox customers plan {id} start {shown}"
        ))),
        (true | false, Some(_) | None) => {
            let plan = OneLine(named.to_owned());
            let sale = SellPlan {
                plan,
                ..sale.clone()
            };
            let done = acts::ask(args, &ledger, sale, id).await?;
            acts::print_done(args, &done);
            Ok(())
        }
    }
}

/// Does an act on a subscription of the customer.
async fn on_named<A: SellerAct<Of = SubscriptionId>>(
    args: &Args,
    options: &CustomerPlanOptions,
    NamedSubscription { name }: &NamedSubscription,
    act: A,
) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let customer = reads::customer(&*ledger, options.id).await?;
    let id = subscription::named(&customer, name)
        .map_err(CommandFailed::refused)?
        .id;
    let done = acts::ask(args, &ledger, act, id).await?;
    acts::print_done(args, &done);
    Ok(())
}
