//! A card that its owner stored at the processor, charged while its owner is away.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Stripe, StripeList, answered, money, nothing};
use crate::checkout::Checkout;
use crate::client;
use crate::currency::minor;
use crate::processor::{
    BadMessage, CardCharge, Charged, PaidCheckout, ProcessorMessage, Unavailable,
};

#[derive(Deserialize)]
pub(super) struct Intent {
    id: String,
    status: String,
    amount_received: i64,
    currency: String,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct StoredCard {
    id: String,
}

pub(super) async fn charge(stripe: &Stripe, of: &CardCharge<'_>) -> Result<Charged, Unavailable> {
    let CardCharge {
        wish,
        owner,
        checkout,
        what,
    } = *of;
    let Some(card) = card(stripe, owner).await? else {
        return Ok(Charged::Refused("no card is stored any more".to_owned()));
    };
    let offer = &checkout.offer;
    let price = minor(&checkout.currency, offer.price)
        .ok_or_else(|| Unavailable("no card is charged this price".to_owned()))?;
    let mut pairs: Vec<(String, String)> = [
        ("amount", price.to_string()),
        ("currency", checkout.currency.to_ascii_lowercase()),
        ("customer", owner.to_owned()),
        ("payment_method", card.id),
        ("off_session", "true".to_owned()),
        ("confirm", "true".to_owned()),
        ("description", what.to_owned()),
        ("metadata[farebox_wish]", wish.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let asked = checkout.pairs().into_iter();
    pairs.extend(asked.map(|(name, value)| (format!("metadata[{name}]"), value)));
    let url = stripe.url(&["v1", "payment_intents"])?;
    let request = stripe.post(url, &pairs, wish);
    let reply = client::send(request).await.map_err(Unavailable)?;
    match reply.status {
        200 => {
            let intent: Intent = serde_json::from_slice(&reply.body)
                .map_err(|error| Unavailable(format!("its answer cannot be read: {error}")))?;
            let paid = money(Some(&intent.currency), Some(intent.amount_received));
            Ok(match (intent.status.as_str(), paid) {
                ("succeeded", Some((currency, gross))) => Charged::Paid { currency, gross },
                ("processing", _) => Charged::Waiting,
                _ => Charged::Refused("the card asks for its owner".to_owned()),
            })
        }
        // Of a card; every other refusal is of the account, or passes.
        402 => Ok(Charged::Refused(refusal(&reply.body))),
        status => Err(Unavailable(format!("it answered {status} to a charge"))),
    }
}

async fn card(stripe: &Stripe, owner: &str) -> Result<Option<StoredCard>, Unavailable> {
    let mut url = stripe.url(&["v1", "customers", owner, "payment_methods"])?;
    url.query_pairs_mut()
        .append_pair("type", "card")
        .append_pair("limit", "1");
    let found: Option<StripeList<StoredCard>> =
        answered(stripe.signed(stripe.client.get(url))).await?;
    Ok(found.and_then(|found| found.data.into_iter().next()))
}

/// Why a card was refused, in words of ours and a code of the processor's.
fn refusal(body: &[u8]) -> String {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| said.pointer(name).and_then(Value::as_str);
    let code = text("/error/code").unwrap_or("card_error");
    if code == "authentication_required" {
        return "the card asks for its owner".to_owned();
    }
    let why = text("/error/decline_code").unwrap_or(code);
    let is_code = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let why = Some(why).filter(|why| why.len() <= 60 && why.bytes().all(is_code));
    format!("the card was refused ({})", why.unwrap_or("card_error"))
}

/// A payment intent that succeeded: of a wish, or of a checkout, whose session tells of itself.
pub(super) fn paid(stripe: &Stripe, intent: Intent) -> Result<ProcessorMessage, BadMessage> {
    if !stripe.is_ours(intent.metadata.as_ref()) {
        return nothing("a payment of another shop");
    }
    let pairs = intent.metadata.unwrap_or_default();
    let Some(wish) = pairs.get("farebox_wish") else {
        return nothing("a payment whose checkout tells of it");
    };
    let unreadable = |what: &str| BadMessage::Unreadable(format!("{}: {what}", intent.id));
    let checkout = Checkout::from_pairs(&pairs)
        .ok_or_else(|| unreadable("its metadata is not what this shop wrote"))?;
    let (currency, gross) = money(Some(&intent.currency), Some(intent.amount_received))
        .ok_or_else(|| unreadable("it names no amount"))?;
    Ok(ProcessorMessage::PaidAgain(PaidCheckout {
        reference: wish.clone(),
        id: intent.id,
        checkout,
        currency,
        gross,
        owner: None,
    }))
}
