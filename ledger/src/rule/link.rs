//! One-time sign-in links to the dashboard: the same token, lifetime and address format in gateway, commands and console.

use std::fmt;

use zeroize::Zeroize;

use crate::{SecretHash, Timestamp};

const LIFETIME_HOURS: i64 = 24;

/// How long a link works, in words.
pub const LINK_LIFETIME: &str = "24 hours";

/// The token of a link in the clear: 256 random bits in hexadecimal, which survive in any URL. The store keeps only its hash.
/// `Debug` never prints it; the only way out is [`LinkToken::url`].
#[derive(Clone, PartialEq, Eq)]
pub struct LinkToken(String);

impl LinkToken {
    /// A token from the caller's randomness.
    #[must_use]
    pub fn generate(random: [u8; 32]) -> Self {
        Self(hex::encode(random))
    }

    /// What the store keeps.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }

    /// The link as it is given to the customer. The token follows the `#`, which browsers never send to a server, so no log
    /// contains it.
    #[must_use]
    pub fn url(&self, public_url: &str) -> String {
        format!(
            "{}/dashboard/enter#{}",
            public_url.trim_end_matches('/'),
            self.0
        )
    }

    /// When a link created now expires.
    #[must_use]
    pub const fn expires(made: Timestamp) -> Timestamp {
        Timestamp::from_millis(made.millis().saturating_add(LIFETIME_HOURS * 3_600_000))
    }
}

impl Drop for LinkToken {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for LinkToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LinkToken(…)")
    }
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
