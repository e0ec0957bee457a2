//! What is wrong with the account before anybody pays: its key, whether it charges, and whether its callbacks come here.

use farebox_toml::{Code, Diagnostic};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{EVENTS, EVENTS_OF_PLANS, Stripe, StripeList, VERSION, answered};
use crate::processor::Unavailable;

#[derive(Deserialize)]
struct StripeAccount {
    #[serde(default)]
    charges_enabled: bool,
}

#[derive(Deserialize)]
struct StripeEndpoint {
    url: String,
    status: String,
    enabled_events: Vec<String>,
    api_version: Option<String>,
}

/// Asks for the account and its endpoints.
pub(super) async fn findings(
    stripe: &Stripe,
    public_url: &str,
    has_plans: bool,
) -> Vec<Diagnostic> {
    let account = ask::<StripeAccount>(stripe, "account", "").await;
    let endpoints: Result<Option<StripeList<StripeEndpoint>>, _> =
        ask(stripe, "webhook_endpoints", "limit=100").await;
    let of_account = match account {
        Ok(Some(account)) if account.charges_enabled => None,
        Ok(_) => Some(Diagnostic::without_line(
            Code::AccountCannotCharge,
            "the account at the processor cannot charge cards",
            "complete it on the processor's own pages",
        )),
        Err(why) => Some(not_asked(&why, "the account")),
    };
    let of_endpoints = match endpoints {
        Ok(listed) => of_endpoints(
            &listed.map_or_else(Vec::new, |listed| listed.data),
            public_url,
            &events(has_plans),
        ),
        Err(why) => Some(not_asked(&why, "the webhook endpoints")),
    };
    of_account.into_iter().chain(of_endpoints).collect()
}

async fn ask<T: DeserializeOwned>(
    stripe: &Stripe,
    what: &str,
    query: &str,
) -> Result<Option<T>, Unavailable> {
    let mut url = stripe.url(&["v1", what])?;
    url.set_query(Some(query).filter(|query| !query.is_empty()));
    answered(stripe.signed(stripe.client.get(url))).await
}

fn not_asked(why: &Unavailable, what: &str) -> Diagnostic {
    let said = format!("the processor does not tell of {what}: {}", why.0);
    let (code, remedy) = match why.0.get(..15) {
        Some("it answered 401") => (
            Code::ProcessorKeyRefused,
            "put a key of this account in its place, and replace one that leaked",
        ),
        Some("it answered 403") => (
            Code::NotShown,
            "let the restricted key read it, or look yourself",
        ),
        _ => (
            Code::ProcessorAway,
            "nobody can pay while it does not answer",
        ),
    };
    Diagnostic::without_line(code, said, remedy)
}

/// The events that an endpoint is to be told.
fn events(has_plans: bool) -> Vec<&'static str> {
    let of_plans = EVENTS_OF_PLANS.into_iter().filter(|_| has_plans);
    EVENTS.into_iter().chain(of_plans).collect()
}

fn of_endpoints(
    endpoints: &[StripeEndpoint],
    public_url: &str,
    events: &[&str],
) -> Option<Diagnostic> {
    let wanted = format!("{public_url}/webhook");
    let ours = |endpoint: &&StripeEndpoint| endpoint.url == wanted && endpoint.status == "enabled";
    let Some(endpoint) = endpoints.iter().find(ours) else {
        return Some(Diagnostic::without_line(
            Code::NoWebhookEndpoint,
            format!(
                "no enabled webhook endpoint has the address {wanted}: payments would not be booked"
            ),
            format!("make one at the processor, with {}", events.join(", ")),
        ));
    };
    let has = |event: &str| (endpoint.enabled_events.iter()).any(|of| of == "*" || of == event);
    let missing: Vec<&str> = (events.iter().copied())
        .filter(|event| !has(event))
        .collect();
    if !missing.is_empty() {
        return Some(Diagnostic::without_line(
            Code::EventsMissing,
            format!("the webhook endpoint {wanted} is not told everything"),
            format!("add {}", missing.join(", ")),
        ));
    }
    let version = endpoint.api_version.as_deref().filter(|of| *of != VERSION);
    version.map(|version| {
        Diagnostic::without_line(
            Code::OtherVersion,
            format!("the webhook endpoint {wanted} tells in the shapes of {version}"),
            format!("make one of version {VERSION}, which is read here"),
        )
    })
}
