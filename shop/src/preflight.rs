//! What has to be true of gateway and processor before a card is charged. `--check` and every start ask; a shop whose gateway or
//! processor is only away opens all the same, because each checkout asks again.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use farebox_toml::{Code, Diagnostic, Diagnostics, Severity};

use crate::client;
use crate::gateway::{ApiFailure, GatewayApi, GatewaySeller, SellToken};
use crate::processor::Processor;
use crate::settings::Storefront;

/// What the shop says of its health once a callback was believed.
pub(crate) const PROVED: &str = "ok; a callback proved the webhook's secret";

const MAKE_ONE: &str = "make another: farebox tokens create shop --role sell --daily USD";

/// Whether a shop with these findings may open.
pub fn may_open(findings: &Diagnostics) -> bool {
    let is_away = |found: &Diagnostic| {
        [Code::GatewayAway, Code::ProcessorAway]
            .map(Code::id)
            .contains(&found.code)
    };
    (findings.0.iter()).all(|found| found.severity != Severity::Error || is_away(found))
}

/// What is wrong beside the file: at the gateway, and at the processor.
pub(crate) async fn findings(
    api: &GatewayApi,
    processor: &dyn Processor,
    front: &Storefront,
    (gateway_url, public_url): (&str, &str),
) -> Diagnostics {
    let (offers, seller, mut of_processor) = tokio::join!(
        of_offers(api, front),
        api.seller(),
        processor.findings(public_url, front.has_plans())
    );
    let mut found = offers.unwrap_or_else(|failure| vec![not_answered(failure)]);
    if let Ok(seller) = seller {
        found.extend(of_addresses(&seller, gateway_url, public_url));
    }
    found.append(&mut of_processor);
    Diagnostics(found)
}

/// Offers that could never be booked: what the token may not sell, and plans that the gateway does not.
///
/// # Errors
/// When the gateway does not say.
pub(crate) async fn of_offers(
    api: &GatewayApi,
    front: &Storefront,
) -> Result<Vec<Diagnostic>, ApiFailure> {
    let token = api.token().await?;
    let plans = match front.has_plans() {
        true => api.plans().await?,
        false => Vec::new(),
    };
    let named = front.offers.iter().filter_map(|of| of.plan.as_ref());
    let gone = named.filter(|name| plans.iter().all(|plan| plan.name != **name));
    let gone = gone.map(|name| {
        Diagnostic::without_line(
            Code::BeyondBound,
            format!("the gateway sells no plan `{name}`: nobody could buy it"),
            "`plan` is the name of a [[plan]] in the gateway's catalog.toml",
        )
    });
    let mut found = of_token(&token, &front.with(&plans));
    found.extend(gone);
    Ok(found)
}

fn of_token(token: &SellToken, front: &Storefront) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    match token.role.as_str() {
        "sell" => {}
        "manage" => found.push(Diagnostic::without_line(
            Code::MayDoMore,
            "the shop's token may manage: whoever steals it may do everything",
            MAKE_ONE,
        )),
        role => found.push(Diagnostic::without_line(
            Code::TokenRefused,
            format!("the shop's token has the role {role}, which sells nothing"),
            MAKE_ONE,
        )),
    }
    for offer in &front.offers {
        let credit = offer.credit;
        let (bound, what, remedy) = match token.most_reservable {
            Some(most) if credit > most => (
                most,
                "half of the token's daily bound",
                "make a token with a larger --daily, or sell less at once",
            ),
            _ if credit > token.highest_balance => (
                token.highest_balance,
                "the highest balance",
                "sell less at once",
            ),
            _ => continue,
        };
        let said =
            format!("the offer of {credit} USD is above {what}, {bound} USD: nobody could buy it");
        found.push(Diagnostic::without_line(Code::BeyondBound, said, remedy));
    }
    found
}

fn not_answered(failure: ApiFailure) -> Diagnostic {
    match failure {
        ApiFailure::Away(why) if why.contains(" 401 ") || why.contains(" 403 ") => {
            Diagnostic::without_line(
                Code::TokenRefused,
                format!("the shop's token is refused: {why}"),
                MAKE_ONE,
            )
        }
        ApiFailure::Away(why) | ApiFailure::Refused(_, _, why, _) => Diagnostic::without_line(
            Code::GatewayAway,
            why,
            "`gateway.api` is the admin listener; nobody can pay while it does not answer",
        ),
    }
}

fn of_addresses(seller: &GatewaySeller, gateway_url: &str, public_url: &str) -> Vec<Diagnostic> {
    let other =
        |said: String, remedy: String| Diagnostic::without_line(Code::OtherAddress, said, remedy);
    let theirs = seller.public_url.as_deref();
    let elsewhere = theirs.filter(|url| *url != gateway_url).map(|theirs| {
        other(
            format!("buyers are sent to {gateway_url}, and the gateway calls itself {theirs}"),
            "`gateway.url` and the gateway's --public-url are one address".to_owned(),
        )
    });
    let leads_here = |url: &str| url.trim_end_matches('/') == public_url;
    let unled = !seller.pay_url.as_deref().is_some_and(leads_here);
    let unled = unled.then(|| {
        other(
            "refusals and the dashboard do not lead to this shop".to_owned(),
            format!("write pay_url = \"{public_url}/\" in [shop] of catalog.toml"),
        )
    });
    elsewhere.into_iter().chain(unled).collect()
}

/// Whether the shop that listens here has seen a callback that proves its secret.
pub(crate) async fn proof(client: &reqwest::Client, listen: SocketAddr) -> Option<Diagnostic> {
    let mut at = listen;
    if at.ip().is_unspecified() {
        at.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let reply = client::send(client.get(format!("http://{at}/healthz"))).await;
    let is_proved = reply.is_ok_and(|reply| reply.body.starts_with(PROVED.as_bytes()));
    let found = || {
        Diagnostic::without_line(
            Code::Unproved,
            "the webhook's secret is not proved yet",
            "the first callback that the running shop gets proves it",
        )
    };
    (!is_proved).then(found)
}
