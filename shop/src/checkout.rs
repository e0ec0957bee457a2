//! What a buyer asked for, as it travels with the checkout through the processor and back: the shop remembers nothing itself.

use std::collections::BTreeMap;

use farebox_ledger::{Amount, CustomerId, Gross};
use sha2::{Digest, Sha256};

use crate::settings::CreditOffer;

/// The most characters of a buyer's name and address: processors keep 500 of each value.
pub(crate) const NAME: usize = 150;
pub(crate) const ADDRESS: usize = 400;

/// The most automatic top-ups in a month to which a buyer can agree here.
pub(crate) const MOST_AGAIN: u8 = 12;

/// One purchase, before it is paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkout {
    /// Which shop asked: one account of a processor can serve several.
    pub(crate) shop: String,
    pub(crate) offer: CreditOffer,
    pub(crate) currency: String,
    /// Whom it tops up; a new customer if nobody.
    pub(crate) customer: Option<CustomerId>,
    pub(crate) name: Option<String>,
    pub(crate) address: Option<String>,
    /// SHA-256 of the buyer's cookie.
    pub(crate) buyer: String,
    /// Names the form it came from, so that sending it twice begins one checkout.
    pub(crate) once: String,
    /// The credit that the gateway keeps for it.
    pub(crate) reservation: Option<String>,
    /// How often a month the same may be bought again with this card, if its owner agreed.
    pub(crate) again: Option<u8>,
}

impl Checkout {
    /// As named texts, which the processor keeps.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            ("farebox_shop", self.shop.clone()),
            ("farebox_credit", self.offer.credit.to_string()),
            ("farebox_currency", self.currency.clone()),
            ("farebox_price", self.offer.price.to_string()),
            ("farebox_tax", self.offer.tax.to_string()),
            ("farebox_buyer", self.buyer.clone()),
            ("farebox_once", self.once.clone()),
        ];
        let customer = self.customer.map(|id| id.to_string());
        let again = self.again.map(|most| most.to_string());
        for (name, value) in [
            ("farebox_plan", &self.offer.plan),
            ("farebox_customer", &customer),
            ("farebox_name", &self.name),
            ("farebox_address", &self.address),
            ("farebox_reservation", &self.reservation),
            ("farebox_again", &again),
        ] {
            pairs.extend(value.clone().map(|value| (name, value)));
        }
        pairs
    }

    /// From those texts; `None` for what no shop of this kind asked.
    pub(crate) fn from_pairs(pairs: &BTreeMap<String, String>) -> Option<Self> {
        let text = |name: &str| pairs.get(name).cloned();
        let gross = |name: &str| Gross::parse(pairs.get(name)?).ok();
        let customer = match pairs.get("farebox_customer") {
            Some(id) => Some(id.parse().ok()?),
            None => None,
        };
        Some(Self {
            shop: text("farebox_shop")?,
            offer: CreditOffer {
                plan: text("farebox_plan"),
                credit: Amount::from_usd_str(pairs.get("farebox_credit")?).ok()?,
                price: gross("farebox_price")?,
                tax: gross("farebox_tax")?,
            },
            currency: text("farebox_currency")?,
            customer,
            name: text("farebox_name"),
            address: text("farebox_address"),
            buyer: text("farebox_buyer")?,
            once: text("farebox_once")?,
            reservation: text("farebox_reservation"),
            again: match pairs.get("farebox_again") {
                Some(most) => Some(most.parse().ok()?),
                None => None,
            },
        })
    }

    /// The name of this form with everything in it.
    pub(crate) fn idempotency_key(&self) -> String {
        let all = format!("{:?}", self.pairs());
        format!("farebox-{}", hex::encode(Sha256::digest(all.as_bytes())))
    }
}

/// What the owner of a stored card agreed to: the gateway keeps it beside the rule, and nothing dearer is ever charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CardAgreement {
    /// The processor's name of the card's owner.
    pub(crate) owner: String,
    pub(crate) price: Gross,
    pub(crate) tax: Gross,
    pub(crate) currency: String,
}

impl CardAgreement {
    /// As the gateway keeps it, in one word.
    pub(crate) fn kept(&self) -> String {
        let Self {
            owner,
            price,
            tax,
            currency,
        } = self;
        format!("{owner}:{price}:{tax}:{currency}")
    }

    /// From that word; `None` for what no shop of this kind wrote.
    pub(crate) fn read(kept: &str) -> Option<Self> {
        let mut parts = kept.split(':');
        let mut next = || parts.next();
        let (owner, price, tax, currency) = (next()?, next()?, next()?, next()?);
        Some(Self {
            owner: owner.to_owned(),
            price: Gross::parse(price).ok()?,
            tax: Gross::parse(tax).ok()?,
            currency: currency.to_owned(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn checkout() -> Checkout {
        Checkout {
            shop: "https://shop.example".to_owned(),
            offer: CreditOffer {
                plan: Some("coder".to_owned()),
                credit: Amount::from_usd_str("10").unwrap(),
                price: Gross::parse("11.90").unwrap(),
                tax: Gross::parse("1.90").unwrap(),
            },
            currency: "EUR".to_owned(),
            customer: Some(CustomerId::from_random(7)),
            name: Some("Zoë \"<b>\" & Söhne 株式会社".to_owned()),
            address: None,
            buyer: "ab".repeat(32),
            once: "1".to_owned(),
            reservation: Some("r_7f3q9d2xw1".to_owned()),
            again: Some(2),
        }
    }

    #[test]
    fn it_comes_back_as_it_went() {
        let sent = checkout();
        let pairs = |checkout: &Checkout| {
            let named = checkout.pairs().into_iter();
            named
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<BTreeMap<_, _>>()
        };
        assert_eq!(Checkout::from_pairs(&pairs(&sent)).as_ref(), Some(&sent));
        let mut other = sent.clone();
        other.once = "2".to_owned();
        assert_ne!(other.idempotency_key(), sent.idempotency_key());
        let mut spoilt = pairs(&sent);
        spoilt.insert("farebox_customer".to_owned(), "nobody".to_owned());
        assert_eq!(Checkout::from_pairs(&spoilt), None);
        let agreed = CardAgreement {
            owner: "cus_1".to_owned(),
            price: sent.offer.price,
            tax: sent.offer.tax,
            currency: sent.currency,
        };
        assert_eq!(CardAgreement::read(&agreed.kept()), Some(agreed));
        assert_eq!(CardAgreement::read("cus_1"), None);
    }
}
