//! Who a buyer is: whoever has the cookie that this browser got before it was sent to pay. Nothing of it is stored; the checkout
//! carries its SHA-256.
//!
//! Forms carry a text derived from the cookie, which no other site can know. `Origin` would not do: under `no-referrer` browsers send
//! none of their own.

use farebox_ledger::{CustomerId, clock};
use farebox_toml::HiddenText;
use salvo::http::HeaderMap;
use salvo::http::header::COOKIE;
use salvo::prelude::Request;
use sha2::{Digest, Sha256};

use crate::gateway::wishes::VisitOfOwner;
use crate::signature;

/// The prefix makes browsers refuse it from any other host, and without TLS.
const COOKIE_NAME: &str = "__Host-farebox-shop";
/// Its own paper that it paid here.
const PAID_NAME: &str = "__Host-farebox-paid";
/// The dashboard brought it as the owner of a customer.
const OWNER_NAME: &str = "__Host-farebox-owner";
/// Long enough to come back for a receipt.
const LIFETIME: u32 = 30 * 24 * 3_600;
/// As long as the gateway lets an owner's rule be set.
pub(crate) const OWNER_LIFETIME: u32 = 24 * 3_600;

/// A browser.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Buyer {
    token: String,
}

impl Buyer {
    /// A browser that was not here before.
    pub(crate) fn new() -> Self {
        Self {
            token: hex::encode(clock::random::<32>()),
        }
    }

    /// The browser that sends this cookie.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut pairs = cookies(headers);
        let is_token =
            |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let token = pairs.find_map(|(name, token)| (name == COOKIE_NAME).then_some(token))?;
        is_token(token).then(|| Self {
            token: token.to_owned(),
        })
    }

    /// The header that makes a browser keep it.
    pub(crate) fn cookie(&self) -> String {
        let Self { token } = self;
        format!("{COOKIE_NAME}={token}; Path=/; Max-Age={LIFETIME}; HttpOnly; SameSite=Lax; Secure")
    }

    /// What a checkout carries of it.
    pub(crate) fn mark(&self) -> String {
        hex::encode(Sha256::digest(self.token.as_bytes()))
    }

    /// What only the page after a payment leads to: this browser paid. `secret` is the shop's own.
    pub(crate) fn paid(&self, secret: &HiddenText) -> String {
        let signed = signature::sign(secret, 0, self.mark().as_bytes());
        signed.rsplit('=').next().unwrap_or_default().to_owned()
    }

    /// Whether it came back from a payment, lately or earlier; then the cookie that says so.
    pub(crate) fn has_paid(&self, req: &Request, secret: &HiddenText) -> Option<String> {
        let asked = req.query::<String>("paid");
        let kept =
            cookies(req.headers()).find_map(|(name, text)| (name == PAID_NAME).then_some(text));
        let is_ours = |mac: &str| {
            let secrets = std::slice::from_ref(secret);
            signature::check(&format!("t=0,v1={mac}"), self.mark().as_bytes(), secrets, 0).is_ok()
        };
        let mut shown = asked.as_deref().into_iter().chain(kept);
        let mac = shown.find(|mac| is_ours(mac))?;
        Some(format!(
            "{PAID_NAME}={mac}; Path=/; Max-Age={LIFETIME}; HttpOnly; SameSite=Lax; Secure"
        ))
    }

    /// Its paper that the dashboard brought it as the owner of a customer, until then.
    pub(crate) fn owner_cookie(&self, visit: &VisitOfOwner, secret: &HiddenText) -> String {
        let (customer, until) = (visit.customer, visit.until.millis());
        let mac = self.owner_mac(customer, until, secret);
        format!(
            "{OWNER_NAME}={customer}.{until}.{mac}; Path=/; Max-Age={OWNER_LIFETIME}; HttpOnly; SameSite=Lax; Secure"
        )
    }

    /// Whether it came as the owner of this customer, lately.
    pub(crate) fn owns(
        &self,
        headers: &HeaderMap,
        customer: CustomerId,
        secret: &HiddenText,
    ) -> bool {
        let now = clock::now().millis();
        let mut papers = cookies(headers).filter(|(name, _)| *name == OWNER_NAME);
        papers.any(|(_, paper)| {
            let mut parts = paper.split('.');
            let (of, until) = (parts.next(), parts.next());
            let until = until.and_then(|until| until.parse::<i64>().ok());
            let (Some(until), Some(mac)) = (until.filter(|until| *until > now), parts.next())
            else {
                return false;
            };
            let text = self.owner_text(customer, until);
            let secrets = std::slice::from_ref(secret);
            of == Some(customer.to_string().as_str())
                && signature::check(&format!("t=0,v1={mac}"), text.as_bytes(), secrets, 0).is_ok()
        })
    }

    fn owner_text(&self, customer: CustomerId, until: i64) -> String {
        format!("owner {} {customer} {until}", self.mark())
    }

    fn owner_mac(&self, customer: CustomerId, until: i64, secret: &HiddenText) -> String {
        let signed = signature::sign(secret, 0, self.owner_text(customer, until).as_bytes());
        signed.rsplit('=').next().unwrap_or_default().to_owned()
    }

    /// What its forms carry.
    pub(crate) fn proof(&self) -> String {
        hex::encode(Sha256::digest(format!("form {}", self.token).as_bytes()))
    }
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let cookies = headers
        .get_all(COOKIE)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

#[cfg(test)]
mod tests {
    use salvo::http::HeaderValue;

    use super::*;

    #[test]
    fn only_its_own_cookie_makes_a_buyer() {
        let buyer = Buyer::new();
        assert!(buyer.cookie().ends_with("; HttpOnly; SameSite=Lax; Secure"));
        assert_ne!(buyer.mark(), buyer.proof());
        let of = |cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_str(cookie).unwrap());
            Buyer::of(&headers).map(|found| found.mark())
        };
        let sent = buyer.cookie();
        let sent = sent.split(';').next().unwrap();
        assert_eq!(of(&format!("a=b; {sent}")), Some(buyer.mark()));
        let sibling = sent.replace("__Host-", "");
        for foreign in ["", sibling.as_str(), "__Host-farebox-shop=short"] {
            assert_eq!(of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn only_whoever_paid_shows_it() {
        let (buyer, secret) = (Buyer::new(), HiddenText::new("of the shop"));
        let asks = |mac: &str| {
            let mut request = Request::new();
            request
                .queries_mut()
                .insert("paid".to_owned(), mac.to_owned());
            request
        };
        let paid = buyer.paid(&secret);
        let cookie = buyer.has_paid(&asks(&paid), &secret).unwrap();
        let mut again = Request::new();
        let sent = HeaderValue::from_str(cookie.split(';').next().unwrap()).unwrap();
        again.headers_mut().insert(COOKIE, sent);
        assert!(buyer.has_paid(&again, &secret).is_some());
        assert!(Buyer::new().has_paid(&again, &secret).is_none());
        assert!(buyer.has_paid(&asks(&"0".repeat(64)), &secret).is_none());
        assert!(
            buyer
                .has_paid(&asks(""), &HiddenText::new("other"))
                .is_none()
        );
    }
}
