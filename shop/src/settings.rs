//! What a shop is started with, and what of it may change while it runs. `file` reads it from `shop.toml`.

use std::net::SocketAddr;

use farebox_ledger::{Amount, Gross};
use farebox_toml::HiddenText;
use ipnet::IpNet;

use crate::plan_row::PlanRow;

/// What a shop is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShopSettings {
    /// What is in force when the file is saved; the rest needs a restart.
    pub storefront: Storefront,
    /// Names this shop at the processor, whose account may serve several; kept when it moves. `None` is its public URL.
    pub id: Option<String>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where buyers reach it, without a slash at the end; `None` is this machine, for trials.
    pub public_url: Option<String>,
    /// Forwarded headers count only from these addresses.
    pub trusted_proxies: Vec<IpNet>,
    /// The gateway's admin listener.
    pub api: String,
    /// Where customers reach the gateway.
    pub gateway_url: String,
    /// The sell token.
    pub token: HiddenText,
    /// Through whom cards are charged.
    pub processor: ProcessorSettings,
}

/// What buyers read, and what is for sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storefront {
    /// The seller's name, on every page.
    pub name: String,
    /// Whom a buyer asks.
    pub contact: Option<String>,
    /// The currency of all prices: three capital letters.
    pub currency: String,
    /// What is for sale.
    pub offers: Vec<CreditOffer>,
}

/// Through whom cards are charged.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Credit for a price, or each period of a plan for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditOffer {
    /// The name of the plan, if it is one.
    pub plan: Option<String>,
    /// What is credited, in US dollars; of a plan the allowance of a period, which the gateway says and no file.
    pub credit: Amount,
    /// What is charged, tax included.
    pub price: Gross,
    /// The tax in it.
    pub tax: Gross,
}

impl Storefront {
    /// What a form calls an offer: its terms, so that a page from before a change never buys something else.
    pub(crate) fn form_name(&self, offer: &CreditOffer) -> String {
        let CreditOffer {
            plan,
            credit,
            price,
            tax,
        } = offer;
        let plan = plan.iter().map(|plan| format!("{plan}, "));
        let plan: String = plan.collect();
        format!("{plan}{credit} USD, {price} {} with {tax}", self.currency)
    }

    /// Whether plans are for sale.
    pub(crate) fn has_plans(&self) -> bool {
        self.offers.iter().any(|offer| offer.plan.is_some())
    }

    /// The offers of credit, and those of plans that the gateway sells, as it sells them now.
    pub(crate) fn with(&self, plans: &[PlanRow]) -> Self {
        let sold = |offer: &CreditOffer| {
            let credit = match &offer.plan {
                Some(name) => {
                    plans
                        .iter()
                        .find(|plan| plan.name == *name)?
                        .terms
                        .allowance
                }
                None => offer.credit,
            };
            Some(CreditOffer {
                credit,
                ..offer.clone()
            })
        };
        Self {
            offers: self.offers.iter().filter_map(sold).collect(),
            ..self.clone()
        }
    }

    /// The offer that a form names.
    pub(crate) fn offer(&self, named: &str) -> Option<&CreditOffer> {
        (self.offers.iter()).find(|offer| self.form_name(offer) == named)
    }
}

impl ShopSettings {
    /// Its name at the processor, and where buyers reach it.
    pub(crate) fn names(&self, port: u16) -> (String, String) {
        let here = || format!("http://localhost:{port}");
        let public_url = self.public_url.clone().unwrap_or_else(here);
        let id = self.id.clone();
        (id.unwrap_or_else(|| public_url.clone()), public_url)
    }

    /// The keys of the file that differ and need a restart.
    pub(crate) fn needing_restart(&self, new: &Self) -> Vec<&'static str> {
        let Self {
            storefront: _,
            id,
            listen,
            public_url,
            trusted_proxies,
            api,
            gateway_url,
            token,
            processor,
        } = self;
        [
            ("id", *id != new.id),
            ("listen", *listen != new.listen),
            ("public_url", *public_url != new.public_url),
            ("trusted_proxy", *trusted_proxies != new.trusted_proxies),
            ("gateway.api", *api != new.api),
            ("gateway.url", *gateway_url != new.gateway_url),
            ("gateway.token", *token != new.token),
            ("processor", *processor != new.processor),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }
}
