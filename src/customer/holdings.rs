//! The ledger reads of what an owner manages: its customer's keys and plans.

use farebox_ledger::{Amount, Key, KeyId, Timestamp, past_periods, past_subscriptions};
use farebox_selling::subscription::SubscriptionDocument;
use maud::Markup;

use super::actor::Viewer;
use super::context::Context;
use super::owner;
use super::page::keys::OwnerPage;
use super::page::plans::PlanCard;
use super::page::{self, DashboardView};
use super::recent::month_of;
use super::views;
use crate::clock;
use crate::config::Catalog;
use crate::proxy::{Failure, offered};

/// Acts of a customer searched for plans and periods that are over, such plans that are shown, and such periods of a plan.
const ACTS: usize = 400;
const PAST: usize = 12;
const PERIODS: usize = 12;

/// The owner's view of all keys, or of one; with why a form was refused. `None` for a member.
///
/// # Errors
/// 404 for another customer's key, 503 when the ledger cannot be read.
pub(super) async fn keys(
    context: &Context,
    viewer: &Viewer,
    one: Option<KeyId>,
    problem: Option<&str>,
) -> Result<Option<Markup>, Failure> {
    let (ledger, own, now) = (context.ledger.as_ref(), &viewer.key, clock::now());
    if !own.is_owner {
        return Ok(None);
    }
    let month = Timestamp::from_millis(month_of(now).saturating_mul(3_600_000));
    let models: Vec<String> = (views::models(context, own).iter())
        .map(|model| model.slug.clone())
        .collect();
    let once = owner::once();
    let page = OwnerPage {
        own,
        may_act: own.check_acts(now).is_ok(),
        once: &once,
        models: &models,
        now,
        has_shop: context.shop().pay_url.is_some(),
        problem,
    };
    let content = match one {
        Some(id) => {
            let key = owner::key(ledger, own, id).await?;
            let spent = ledger.spent_since(&[id], month).await?;
            page::keys::one(page, &key, spent.first().copied().unwrap_or_default())
        }
        None => {
            let keys = owner::keys(ledger, own, now).await?;
            let ids: Vec<KeyId> = keys.iter().map(|key| key.id).collect();
            let spent = ledger.spent_since(&ids, month).await?;
            let keys: Vec<(Key, Amount)> = keys.into_iter().zip(spent).collect();
            page::keys::list(page, &keys)
        }
    };
    let shop = context.shop();
    Ok(Some(page::signed_in(
        &shop,
        DashboardView::Keys,
        own,
        None,
        &content,
    )))
}

/// The owner's view of its customer's plans, with why a form was refused.
///
/// # Errors
/// 503 when the ledger cannot be read.
pub(super) async fn plans(
    context: &Context,
    own: &Key,
    problem: Option<&str>,
) -> Result<Markup, Failure> {
    let (ledger, now) = (context.ledger.as_ref(), clock::now());
    let scope = Some(own.customer.id.into());
    let acts = ledger.audit(scope, None, ACTS).await?;
    let mut all = Vec::new();
    let config = context.config.current();
    let catalog = offered(&config, own).ok();
    let past = past_subscriptions(&own.customer, &acts);
    let open = own.customer.grants.plans.iter();
    for of in open.chain(past.iter().take(PAST)) {
        let over = past_periods(ledger, of.id, &acts, PERIODS).await?;
        let names = of
            .live_period()
            .and_then(|running| running.terms.models.as_ref());
        let gone = |(catalog, names): (&Catalog, &Vec<String>)| {
            names.iter().all(|slug| catalog.get(slug).is_none())
        };
        all.push(PlanCard {
            of: SubscriptionDocument::of(of, &own.customer, now),
            over,
            is_dead: catalog.zip(names).is_some_and(gone),
        });
    }
    let (shop, once) = (context.shop(), owner::once());
    let page = OwnerPage {
        own,
        may_act: own.check_acts(now).is_ok(),
        once: &once,
        models: &[],
        now,
        has_shop: shop.pay_url.is_some(),
        problem,
    };
    let content = page::plans::page(page, &all);
    let view = DashboardView::Plans;
    Ok(page::signed_in(&shop, view, own, None, &content))
}
