//! `shop.toml`: what is for sale, where the gateway is, and through whom cards are charged. Every mistake is reported at once.

use std::net::SocketAddr;
use std::path::Path;

use farebox_door::network;
use farebox_ledger::{Amount, Gross, parse_public_url};
use ipnet::IpNet;
use serde::Deserialize;

use crate::currency;
use crate::secret::{HiddenText, SecretPlace};

/// What a shop is started with.
#[derive(Debug, Clone)]
pub struct ShopSettings {
    /// Names this shop at the processor, whose account may serve several; kept when it moves. `None` is its public URL.
    pub id: Option<String>,
    /// The seller's name, on every page.
    pub name: String,
    /// Whom a buyer asks.
    pub contact: Option<String>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where buyers reach it, without a slash at the end; `None` is this machine, for trials.
    pub public_url: Option<String>,
    /// Forwarded headers count only from these addresses.
    pub trusted_proxies: Vec<IpNet>,
    /// The currency of all prices: three capital letters.
    pub currency: String,
    /// The gateway's admin listener.
    pub api: String,
    /// Where customers reach the gateway.
    pub gateway_url: String,
    /// The sell token.
    pub token: HiddenText,
    /// Through whom cards are charged.
    pub processor: ProcessorSettings,
    /// What is for sale.
    pub offers: Vec<CreditOffer>,
}

/// Through whom cards are charged.
#[derive(Debug, Clone)]
pub enum ProcessorSettings {
    /// Test cards of our own; no money moves.
    Simulated,
    /// Stripe Checkout.
    Stripe {
        /// Where its API is.
        api: String,
        /// The secret key.
        key: HiddenText,
        /// The secrets of the webhook endpoint: two while one is replaced.
        webhook: Vec<HiddenText>,
    },
}

/// Credit for a price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditOffer {
    /// What is credited, in US dollars.
    pub credit: Amount,
    /// What is charged, tax included.
    pub price: Gross,
    /// The tax in it.
    pub tax: Gross,
}

const STRIPE: &str = "https://api.stripe.com";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShopFile {
    id: Option<String>,
    name: String,
    contact: Option<String>,
    listen: Option<String>,
    public_url: Option<String>,
    #[serde(default)]
    trusted_proxy: Vec<String>,
    currency: String,
    gateway: GatewayTable,
    processor: ProcessorTable,
    #[serde(default)]
    offer: Vec<OfferTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GatewayTable {
    api: String,
    url: String,
    token: SecretPlace,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum ProcessorTable {
    Simulated {},
    Stripe(StripeTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StripeTable {
    key: SecretPlace,
    webhook_secrets: Vec<SecretPlace>,
    api: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferTable {
    credit: String,
    price: String,
    #[serde(default)]
    tax: Option<String>,
}

impl ShopSettings {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Every mistake, one a line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|mistakes| {
            let lines = mistakes
                .iter()
                .map(|line| format!("{}: {line}", path.display()));
            lines.collect::<Vec<_>>().join("\n")
        })
    }

    fn parse(text: &str) -> Result<Self, Vec<String>> {
        let file: ShopFile = toml::from_str(text).map_err(|error| vec![error.to_string()])?;
        let mut check = FileCheck::default();
        let settings = Self {
            id: file.id.map(|text| check.text("id", &text)),
            name: check.text("name", &file.name),
            contact: file.contact.map(|text| check.text("contact", &text)),
            listen: check
                .of(
                    "listen",
                    file.listen.as_deref().unwrap_or("127.0.0.1:8090").parse(),
                )
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8090))),
            public_url: file.public_url.and_then(|url| check.public_url(&url)),
            trusted_proxies: (file.trusted_proxy.iter())
                .filter_map(|net| check.net(net))
                .collect(),
            currency: check.currency(&file.currency),
            api: check.url("gateway.api", &file.gateway.api),
            gateway_url: check.url("gateway.url", &file.gateway.url),
            token: check.secret("gateway.token", &file.gateway.token),
            processor: match file.processor {
                ProcessorTable::Simulated {} => ProcessorSettings::Simulated,
                ProcessorTable::Stripe(table) => check.stripe(&table),
            },
            offers: file
                .offer
                .iter()
                .filter_map(|offer| check.offer(&file.currency, offer))
                .collect(),
        };
        if file.offer.is_empty() {
            check.fault("there is nothing to buy: add an [[offer]] with credit and price");
        }
        if check.faults.is_empty() {
            Ok(settings)
        } else {
            Err(check.faults)
        }
    }
}

/// Collects the mistakes of a file.
#[derive(Default)]
struct FileCheck {
    faults: Vec<String>,
}

impl FileCheck {
    fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    fn of<T, E: std::fmt::Display>(&mut self, field: &str, read: Result<T, E>) -> Option<T> {
        read.map_err(|error| self.fault(format!("{field}: {error}")))
            .ok()
    }

    fn text(&mut self, field: &str, text: &str) -> String {
        let text = text.trim();
        if text.is_empty() || text.chars().count() > 100 || text.chars().any(char::is_control) {
            self.fault(format!("{field}: write one line of at most 100 characters"));
        }
        text.to_owned()
    }

    fn net(&mut self, text: &str) -> Option<IpNet> {
        self.of("trusted_proxy", network(text))
    }

    fn currency(&mut self, text: &str) -> String {
        if text.len() != 3 || !text.bytes().all(|byte| byte.is_ascii_uppercase()) {
            self.fault("currency: write three capital letters, as in EUR");
        }
        text.to_owned()
    }

    fn url(&mut self, field: &str, text: &str) -> String {
        self.of(field, parse_public_url(text)).unwrap_or_default()
    }

    /// Buyers' cookies need TLS, except on this machine.
    fn public_url(&mut self, text: &str) -> Option<String> {
        let url = self.of("public_url", parse_public_url(text))?;
        if !url.starts_with("https://") && !url.starts_with("http://localhost") {
            self.fault("public_url: write https://…: browsers keep a buyer's cookie only over TLS (or on http://localhost)");
        }
        Some(url)
    }

    fn secret(&mut self, field: &str, place: &SecretPlace) -> HiddenText {
        self.of(field, place.read())
            .unwrap_or_else(|| HiddenText::new(""))
    }

    fn stripe(&mut self, table: &StripeTable) -> ProcessorSettings {
        if table.webhook_secrets.is_empty() {
            self.fault("processor.stripe.webhook_secrets: name the endpoint's signing secret");
        }
        let api = table.api.as_deref().unwrap_or(STRIPE);
        ProcessorSettings::Stripe {
            api: self.url("processor.stripe.api", api),
            key: self.secret("processor.stripe.key", &table.key),
            webhook: (table.webhook_secrets.iter())
                .map(|place| self.secret("processor.stripe.webhook_secrets", place))
                .collect(),
        }
    }

    fn offer(&mut self, currency: &str, table: &OfferTable) -> Option<CreditOffer> {
        let credit = self.of("offer.credit", Amount::from_usd_str(&table.credit))?;
        let price = self.of("offer.price", Gross::parse(&table.price))?;
        let tax = table.tax.as_deref().unwrap_or("0");
        let tax = self.of("offer.tax", Gross::parse(tax))?;
        if !credit.is_positive() || !price.is_positive() {
            self.fault("offer: credit and price must be more than zero");
        }
        if tax >= price {
            self.fault("offer: tax is part of the price, and must be less than it");
        }
        if currency::minor(currency, price).is_none() {
            self.fault(format!(
                "offer.price: no card is charged {price} {currency}"
            ));
        }
        Some(CreditOffer { credit, price, tax })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        name = "Key Corner"
        contact = "help@shop.example"
        public_url = "https://shop.example/"
        trusted_proxy = ["127.0.0.1", "fd00::/8"]
        currency = "EUR"
        [gateway]
        api = "http://127.0.0.1:9090"
        url = "https://llm.example/v1"
        token = { env = "PATH" }
        [processor.stripe]
        key = { env = "PATH" }
        webhook_secrets = [{ env = "PATH" }]
        [[offer]]
        credit = "10"
        price = "11.90"
        tax = "1.90"
    "#;

    #[test]
    fn a_file_is_read_and_hides_its_secrets() {
        let read = ShopSettings::parse(GOOD).unwrap();
        assert_eq!(read.public_url.as_deref(), Some("https://shop.example"));
        assert_eq!(read.trusted_proxies.len(), 2);
        assert_eq!(read.gateway_url, "https://llm.example");
        assert_eq!(read.offers[0].price, Gross::parse("11.9").unwrap());
        let path = std::env::var("PATH").unwrap();
        assert!(!format!("{read:?}").contains(&path));
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        let bad = GOOD
            .replace("\"EUR\"", "\"eur\"")
            .replace("fd00::/8", "the proxy")
            .replace("https://shop.example/", "http://shop.example")
            .replace(
                "token = { env = \"PATH\" }",
                "token = { env = \"NO_SUCH_NAME\" }",
            )
            .replace("\"1.90\"", "\"11.90\"");
        let mistakes = ShopSettings::parse(&bad).unwrap_err().join("\n");
        for told in [
            "three capital",
            "trusted_proxy: ",
            "over TLS",
            "NO_SUCH_NAME is not set",
            "tax is part",
        ] {
            assert!(mistakes.contains(told), "{told}: {mistakes}");
        }
        let slip = GOOD.replace("contact", "contacts");
        let told = ShopSettings::parse(&slip).unwrap_err().join("\n");
        assert!(told.contains("contacts"), "{told}");
    }
}
