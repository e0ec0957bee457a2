//! One-time links, to the dashboard and from it to the shop: the same token, lifetimes and address format in gateway, commands and console.
//!
//! Those to the shop are stored under another hash: none can be used in place of the other.

use crate::rule::secret::shown_once;
use crate::{Act, KeyId, SecretHash, Timestamp, with_query};

const LIFETIME_HOURS: i64 = 24;
/// Of those to the shop.
const SHOP_MINUTES: i64 = 5;

/// How long a link works, in words.
pub const LINK_LIFETIME: &str = "24 hours";

shown_once! {
    /// The token of a link in the clear: 256 random bits in hexadecimal, which survive in any URL. The only way out is
    /// [`LinkToken::url`].
    LinkToken
}

impl LinkToken {
    /// A token from the caller's randomness.
    #[must_use]
    pub fn generate(random: [u8; 32]) -> Self {
        Self(hex::encode(random))
    }

    /// The link as it is given to the customer. The token follows the `#`, which browsers never send to a server, so no log
    /// contains it.
    pub fn url(&self, public_url: &str) -> String {
        format!(
            "{}/dashboard/enter#{}",
            public_url.trim_end_matches('/'),
            self.0
        )
    }

    /// Under what a link to the shop is stored.
    pub fn hash_for_shop(token: &str) -> SecretHash {
        SecretHash::of(&format!("farebox shop link {token}"))
    }

    /// The same of this one.
    pub fn shop_hash(&self) -> SecretHash {
        Self::hash_for_shop(&self.0)
    }

    /// The shop's page with the link: `pay_url` is where customers pay.
    pub fn shop_url(&self, pay_url: &str) -> String {
        with_query(pay_url, &format!("link={}", self.0))
    }

    /// When a link to the shop that is created now expires.
    pub const fn shop_expires(made: Timestamp) -> Timestamp {
        Timestamp::from_millis(made.millis().saturating_add(SHOP_MINUTES * 60_000))
    }

    /// When a link created now expires.
    pub const fn expires(made: Timestamp) -> Timestamp {
        Timestamp::from_millis(made.millis().saturating_add(LIFETIME_HOURS * 3_600_000))
    }
}

/// A sign-in link that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignInLink {
    /// SHA-256 of its token.
    pub(crate) token: SecretHash,
    pub(crate) key: KeyId,
    pub(crate) expires: Timestamp,
}

/// A sign-in link to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLink {
    /// The key.
    pub key: KeyId,
    /// SHA-256 of its token.
    pub token: SecretHash,
    /// When it expires.
    pub expires: Timestamp,
    /// Who created it.
    pub act: Act,
}

/// An owner comes to a token's shop with a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVisit {
    /// The hash of its token, as links to the shop are stored.
    pub link: SecretHash,
    /// By whom and when.
    pub act: Act,
}

/// A sign-in link that somebody follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumeLink {
    /// SHA-256 of its token.
    pub token: SecretHash,
    /// The caller's clock: it dates what is recorded, and limits and expiry are judged by it.
    pub now: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_the_token_behind_the_hash_sign() {
        let token = LinkToken::generate([0xab; 32]);
        let url = token.url("https://p.example/");
        assert_eq!(
            url,
            format!("https://p.example/dashboard/enter#{}", "ab".repeat(32))
        );
        assert_eq!(token.hash(), SecretHash::of(&"ab".repeat(32)));
        assert_eq!(
            LinkToken::expires(Timestamp::from_millis(5)).millis(),
            86_400_005
        );
        assert!(!format!("{token:?}").contains("abab"));
    }
}
