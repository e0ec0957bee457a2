//! The shop of `farebox demo --shop`: the real one, with a sell token and a processor of test cards, on this machine alone.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use farebox_ledger::{Amount, Gross, Ledger, NewToken, Perform, TokenRole, TokenSecret};
use farebox_shop::{
    CreditOffer, HiddenText, OpenShop, ProcessorSettings, ShopSettings, Storefront,
};

use crate::args::Args;
use crate::books;
use crate::output::CommandFailed;
use farebox::clock;
use farebox::config::Shop;

/// Where the shop of a demo listens, if it can.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
const NAME: &str = "Farebox demo shop";
/// What the demo's token may credit in a day.
const DAILY: &str = "1000";

/// A place for the shop, taken before the gateway starts, whose errors name it.
pub(crate) fn place() -> Result<(TcpListener, SocketAddr), CommandFailed> {
    let taken = TcpListener::bind(USUAL)
        .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .and_then(|listener| {
            let at = listener.local_addr()?;
            Ok((listener, at))
        });
    taken.map_err(|error| CommandFailed::refused(format!("there is no place for a shop: {error}")))
}

/// Where buyers reach it: browsers keep its cookie on `localhost` without TLS.
pub(crate) fn url(at: SocketAddr) -> String {
    format!("http://localhost:{}", at.port())
}

/// The seller, as the catalog of the demo describes it.
pub(crate) fn seller(at: SocketAddr) -> Shop {
    Shop {
        name: Some(NAME.to_owned()),
        contact: Some("whoever started this demo".to_owned()),
        pay_url: Some(format!("{}/", url(at))),
        note: Some("Cards are simulated.".to_owned()),
        ..Shop::default()
    }
}

/// Makes its token and opens it.
pub(crate) async fn open(
    args: &Args,
    ledger: &dyn Ledger,
    (listener, at): (TcpListener, SocketAddr),
    admin: SocketAddr,
    gateway: &str,
) -> Result<OpenShop, CommandFailed> {
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
            act: books::act(args),
        })
        .await?;
    let offer = |credit: &str, price: &str, tax: &str| CreditOffer {
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
            contact: Some("whoever started this demo".to_owned()),
            currency: "EUR".to_owned(),
            offers: vec![offer("10", "11.90", "1.90"), offer("50", "59.50", "9.50")],
        },
    };
    OpenShop::on(listener, settings).map_err(CommandFailed::refused)
}

/// What to do there.
pub(crate) fn way(url: &str) -> String {
    format!(
        "
Shop at {url}/
  Choose an amount, pay with the test card, press *Show my key*: the key works at once. The page has the receipt,
  and the dashboard, signed in with that key, the month's statement under *Payments*."
    )
}
