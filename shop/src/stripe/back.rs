//! Money that goes back: refunds and disputes as the share of the payment that they are, because the processor names each in a currency
//! of its own choice.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Stripe, StripeList, answered, money, name, nothing, plans};
use crate::processor::{BadMessage, MoneyBack, ProcessorMessage};

#[derive(Deserialize)]
pub(super) struct Charge {
    payment_intent: Option<Value>,
    amount: i64,
    amount_refunded: i64,
    currency: String,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
    /// What came of it on the account; an object where it was asked for.
    balance_transaction: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Dispute {
    id: String,
    amount: i64,
    currency: String,
    charge: Value,
    #[serde(default)]
    status: String,
    /// What it took from the account, and gave back.
    #[serde(default)]
    balance_transactions: Vec<BalanceTransaction>,
}

#[derive(Deserialize)]
struct BalanceTransaction {
    amount: i64,
    currency: String,
}

/// Whether a charge is of this shop. The intent's metadata is copied to its charge; that of an invoice has none.
async fn is_ours(stripe: &Stripe, charge: &Charge) -> Result<bool, BadMessage> {
    let metadata = charge.metadata.as_ref();
    let says = metadata.is_some_and(|pairs| pairs.contains_key("farebox_shop"));
    match name(charge.payment_intent.as_ref()).filter(|_| !says) {
        Some(intent) => Ok(plans::is_of_ours(stripe, &intent).await?),
        None => Ok(stripe.is_ours(metadata)),
    }
}

pub(super) async fn refunded(
    stripe: &Stripe,
    event: String,
    charge: Charge,
) -> Result<ProcessorMessage, BadMessage> {
    if !is_ours(stripe, &charge).await? {
        return nothing("a refund of another shop's payment");
    }
    let refunded = charge.amount_refunded;
    told(event, "refund", &charge, refunded)
}

/// A dispute does not say whose payment it is about, nor what other disputes of it took.
pub(super) async fn disputed(
    stripe: &Stripe,
    event: String,
    kind: &'static str,
    dispute: Dispute,
) -> Result<ProcessorMessage, BadMessage> {
    let Some(charge) = name(Some(&dispute.charge)) else {
        return nothing("a dispute without a charge");
    };
    let mut url = stripe.url(&["v1", "charges", &charge])?;
    url.query_pairs_mut()
        .append_pair("expand[]", "balance_transaction");
    let found: Option<Charge> = answered(stripe.signed(stripe.client.get(url))).await?;
    let found = match found {
        Some(found) if is_ours(stripe, &found).await? => found,
        Some(_) | None => return nothing("a dispute of another shop's payment"),
    };
    let mut url = stripe.url(&["v1", "disputes"])?;
    url.query_pairs_mut()
        .append_pair("charge", &charge)
        .append_pair("limit", "100");
    let others: Option<StripeList<Dispute>> =
        answered(stripe.signed(stripe.client.get(url))).await?;
    let counts = |other: &&Dispute| {
        other.id != dispute.id
            && match kind {
                "dispute" => !other.balance_transactions.is_empty(),
                _ => other.status == "won",
            }
    };
    let others = others.map(|listed| listed.data).unwrap_or_default();
    let all = others.iter().filter(counts).chain([&dispute]);
    let sum = all.fold(0_i64, |sum, each| sum.saturating_add(part(each, &found)));
    told(event, kind, &found, sum)
}

/// What a dispute is of its charge, in the charge's currency. One in another currency is compared on the account, in whose currency
/// both stand; where that is not told it is all of the charge, as disputes are.
fn part(dispute: &Dispute, charge: &Charge) -> i64 {
    if dispute.currency == charge.currency {
        return dispute.amount;
    }
    let came = charge.balance_transaction.as_ref();
    let came = came.and_then(|came| BalanceTransaction::deserialize(came).ok());
    let Some(came) = came.filter(|came| came.amount > 0) else {
        return charge.amount;
    };
    let taken = (dispute.balance_transactions.iter())
        .filter(|of| of.currency == came.currency && of.amount < 0)
        .fold(0_i128, |sum, of| sum.saturating_sub(i128::from(of.amount)));
    let share = i128::from(charge.amount).saturating_mul(taken) / i128::from(came.amount);
    match i64::try_from(share) {
        Ok(share) if (1..charge.amount).contains(&share) => share,
        _ => charge.amount,
    }
}

fn told(
    event: String,
    kind: &'static str,
    charge: &Charge,
    sum: i64,
) -> Result<ProcessorMessage, BadMessage> {
    // A stored card's payment has its wish's name in the books.
    let wish = charge.metadata.as_ref();
    let wish = wish.and_then(|pairs| pairs.get("farebox_wish").cloned());
    let Some(payment) = wish.or_else(|| name(charge.payment_intent.as_ref())) else {
        return nothing("it is about no payment intent");
    };
    let unreadable = || BadMessage::Unreadable(format!("{event}: its amount is none"));
    let of = |parts| money(Some(&charge.currency), Some(parts)).ok_or_else(unreadable);
    let ((_, cumulative), (_, whole)) = (of(sum)?, of(charge.amount)?);
    Ok(ProcessorMessage::Back(MoneyBack {
        event,
        payment,
        kind,
        cumulative,
        whole,
    }))
}
