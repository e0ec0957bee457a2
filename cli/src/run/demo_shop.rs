//! The shop of `farebox demo --shop`: the real one, with a sell token and a processor of test cards, on this machine alone.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use farebox_ledger::{Act, Amount, Gross, Ledger, NewToken, Perform, TokenRole, TokenSecret};
use farebox_shop::{
    CreditOffer, HiddenText, OpenShop, ProcessorSettings, ShopSettings, Storefront,
};

use crate::publish::init;
use farebox::clock;

/// Where the shop of a demo listens, if it can.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
const NAME: &str = "Farebox demo shop";
const PLAN: &str = "coder";
const CONTACT: &str = "whoever started this demo";
/// What the demo's token may credit in a day.
const DAILY: &str = "1000";

/// A place for the shop, taken before the gateway starts, whose errors name it.
///
/// # Errors
/// Why there is none.
pub fn place() -> Result<(TcpListener, SocketAddr), String> {
    let taken = TcpListener::bind(USUAL)
        .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .and_then(|listener| {
            let at = listener.local_addr()?;
            Ok((listener, at))
        });
    taken.map_err(|error| format!("there is no place for a shop: {error}"))
}

/// Where buyers reach it: browsers keep its cookie on `localhost` without TLS.
fn url(at: SocketAddr) -> String {
    format!("http://localhost:{}", at.port())
}

/// The shipped catalog with this shop, and a plan that it sells beside credit.
pub fn catalog(at: SocketAddr) -> String {
    format!(
        r#"{}
[shop]
name    = "{NAME}"
contact = "{CONTACT}"
pay_url = "{}/"
note    = "Cards are simulated."

[[plan]]
name      = "{PLAN}"
title     = "Coder, monthly"
price     = "20.00"
allowance = "25.00"
period    = "month"
windows   = [{{ per = "5h", usd = "1.00" }}]
carry     = "5.00"
grace     = "6h"
"#,
        init::CATALOG,
        url(at)
    )
}

/// Makes its token and opens it.
///
/// # Errors
/// Why it cannot be opened.
pub async fn open(
    act: Act,
    ledger: &dyn Ledger,
    (listener, at): (TcpListener, SocketAddr),
    admin: SocketAddr,
    gateway: &str,
) -> Result<OpenShop, String> {
    let usd = |text: &str| Amount::from_usd_str(text).unwrap_or_default();
    let secret = TokenSecret::generate(clock::random());
    ledger
        .perform(NewToken {
            id: clock::token_id(),
            secret: secret.hash(),
            label: "demo shop".to_owned(),
            role: TokenRole::Sell,
            daily: Some(usd(DAILY)),
            expires_at: None,
            act,
        })
        .await
        .map_err(|error| error.to_string())?;
    let offer = |plan: Option<&str>, credit: &str, price: &str, tax: &str| CreditOffer {
        plan: plan.map(str::to_owned),
        credit: usd(credit),
        price: Gross::parse(price).unwrap_or_default(),
        tax: Gross::parse(tax).unwrap_or_default(),
    };
    let settings = ShopSettings {
        trusted_proxies: Vec::new(),
        id: None,
        listen: at,
        public_url: Some(url(at)),
        api: format!("http://{admin}"),
        gateway_url: gateway.to_owned(),
        token: HiddenText::new(secret.reveal()),
        processor: ProcessorSettings::Simulated,
        storefront: Storefront {
            name: NAME.to_owned(),
            contact: Some(CONTACT.to_owned()),
            currency: "EUR".to_owned(),
            offers: vec![
                offer(None, "10", "11.90", "1.90"),
                offer(None, "50", "59.50", "9.50"),
                // What a period gives is said by the gateway.
                offer(Some(PLAN), "0", "23.80", "3.80"),
            ],
        },
    };
    OpenShop::on(listener, settings)
}

/// What to do there.
pub(crate) fn way(url: &str) -> String {
    format!(
        "
Shop at {url}/
  Choose an amount or the plan, pay with the test card, press *Show my key*: the key works at once. The page has the
  receipt, and the dashboard, signed in with that key, the month's statement under *Payments*. Of a plan, *Change the card
  or cancel* leads to a page on which it is renewed, refused, disputed or cancelled."
    )
}
