//! Tokens of the admin API: what a seller's own software may do. Pure. How much of it in a day: `token_day`.
//!
//! A token's secret reads `fb-token-<random>-<checksum>`; only its SHA-256 is kept. Its label is the actor of what it does, so no two
//! tokens ever have the same one.

use std::fmt;

use serde::Serialize;

use crate::rule::secret::{CHECK_CHARS, RANDOM_CHARS, base_62, checksum, shown_once};
use crate::value::text::{TOKEN_PREFIX, check_label};
use crate::{Act, Amount, Customer, Refusal, SecretHash, Timestamp, TokenId};

shown_once! {
    /// A token in the clear. The only way out is [`TokenSecret::reveal`].
    TokenSecret
}

impl TokenSecret {
    /// A token from the caller's randomness.
    #[must_use]
    pub fn generate(mut random: [u8; 32]) -> Self {
        let mut text = String::with_capacity(64);
        text.push_str(TOKEN_PREFIX);
        text.push_str(&base_62(&mut random, RANDOM_CHARS));
        let check = checksum(&text);
        text.push('-');
        text.push_str(&check);
        Self(text)
    }

    /// Reads a token without touching a store; `None` if prefix, lengths or checksum are wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (random, check) = text.strip_prefix(TOKEN_PREFIX)?.split_once('-')?;
        let (body, _) = text.rsplit_once('-')?;
        let is_whole = random.len() == RANDOM_CHARS
            && check.len() == CHECK_CHARS
            && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && checksum(body) == check;
        is_whole.then(|| Self(text.to_owned()))
    }

    /// The token in the clear, for the one time it is shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenRole {
    /// Reads everything, changes nothing.
    Read,
    /// Tops up active customers, and looks after customers, payments and first keys that it made itself.
    Sell,
    /// Everything but tokens.
    Manage,
}

impl TokenRole {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Sell, Self::Manage];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Sell => "sell",
            Self::Manage => "manage",
        }
    }
}

impl fmt::Display for TokenRole {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What a token can be used for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenStatus {
    /// Accepted.
    Active,
    /// Its time is over.
    Expired,
    /// Refused forever.
    Revoked,
}

impl fmt::Display for TokenStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        })
    }
}

/// A token of the admin API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Public id.
    pub id: TokenId,
    /// A name for people, and the actor of what it does; unique for ever.
    pub label: String,
    /// What it is for.
    pub role: TokenRole,
    /// The most that it may credit in one UTC day.
    pub daily: Option<Amount>,
    /// First instant at which it no longer works.
    pub expires_at: Option<Timestamp>,
    /// Whether it was revoked.
    pub is_revoked: bool,
    /// SHA-256 of the secret, which is never stored.
    pub secret: SecretHash,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: String,
}

impl Token {
    /// What it can be used for at an instant.
    pub fn status(&self, now: Timestamp) -> TokenStatus {
        if self.is_revoked {
            TokenStatus::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            TokenStatus::Expired
        } else {
            TokenStatus::Active
        }
    }

    /// Whether it may read what belongs to a customer: one that only sells, no more than its own.
    pub fn may_read(&self, customer: &Customer) -> bool {
        self.role != TokenRole::Sell || customer.token == Some(self.id)
    }

    /// Refuses a token that is no longer accepted.
    pub(crate) fn check_active(&self, now: Timestamp) -> Result<(), Refusal> {
        match self.status(now) {
            TokenStatus::Active => Ok(()),
            stopped => Err(Refusal::TokenStopped(stopped)),
        }
    }
}

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Chosen by the caller.
    pub id: TokenId,
    /// SHA-256 of the secret, which is never stored.
    pub secret: SecretHash,
    /// A name for people, and the actor of what it does.
    pub label: String,
    /// What it is for.
    pub role: TokenRole,
    /// The most that it may credit in one UTC day; required of one that sells.
    pub daily: Option<Amount>,
    /// First instant at which it no longer works.
    pub expires_at: Option<Timestamp>,
    /// By whom and when.
    pub act: Act,
}

impl NewToken {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_label("a token's label", &self.label, 100, true)?;
        if self.label.trim() != self.label {
            let text = "a token's label must not begin or end with a space";
            return Err(Refusal::NotApplicable(text.to_owned()));
        }
        match (self.role, self.daily) {
            (TokenRole::Sell, None) => {
                let text = "a token that sells needs a daily bound in USD";
                Err(Refusal::NotApplicable(text.to_owned()))
            }
            (TokenRole::Read, Some(_)) => {
                let text = "a token that only reads has no daily bound";
                Err(Refusal::NotApplicable(text.to_owned()))
            }
            (_, Some(daily)) if !daily.is_positive() => {
                let text = "a daily bound must be more than zero";
                Err(Refusal::Limit(text.to_owned()))
            }
            (TokenRole::Sell | TokenRole::Manage, Some(_))
            | (TokenRole::Read | TokenRole::Manage, None) => Ok(()),
        }
    }

    pub(crate) fn token(&self) -> Token {
        Token {
            id: self.id,
            label: self.label.clone(),
            role: self.role,
            daily: self.daily,
            expires_at: self.expires_at,
            is_revoked: false,
            secret: self.secret,
            created_at: self.act.at,
            created_by: self.act.actor.clone(),
        }
    }
}

/// A token to end for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeToken {
    /// The token.
    pub token: TokenId,
    /// By whom and when.
    pub act: Act,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperationId;

    fn usd(text: &str) -> Amount {
        Amount::from_usd_str(text).unwrap()
    }

    fn new(role: TokenRole, daily: Option<&str>) -> NewToken {
        NewToken {
            id: TokenId::from_random(1),
            secret: SecretHash([1; 32]),
            label: "shop".to_owned(),
            role,
            daily: daily.map(usd),
            expires_at: Some(Timestamp::from_millis(10)),
            act: Act {
                operation: OperationId::from_bytes([1; 16]),
                actor: "ada".to_owned(),
                at: Timestamp::from_millis(1),
            },
        }
    }

    #[test]
    fn a_mistyped_token_is_found_without_a_store() {
        let secret = TokenSecret::generate([0xab; 32]);
        let text = secret.reveal().to_owned();
        assert_eq!(TokenSecret::parse(&text), Some(secret.clone()));
        for place in 0..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[place] = if wrong[place] == b'a' { b'b' } else { b'a' };
            let wrong = String::from_utf8(wrong).unwrap();
            assert_eq!(TokenSecret::parse(&wrong), None, "{place}");
        }
        for wrong in [
            "",
            "fb-token-",
            "fb-token--",
            "sk-fb-1",
            &text[..text.len() - 1],
        ] {
            assert_eq!(TokenSecret::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{secret:?}").contains(&text[12..30]));
    }

    #[test]
    fn tokens_that_make_no_sense_are_refused() {
        assert!(new(TokenRole::Sell, Some("1")).check().is_ok());
        assert!(new(TokenRole::Manage, Some("1")).check().is_ok());
        assert!(new(TokenRole::Sell, None).check().is_err());
        assert!(new(TokenRole::Read, Some("1")).check().is_err());
        assert!(new(TokenRole::Sell, Some("0")).check().is_err());
        for label in ["", " shop", "shop\n", "fb-token-x"] {
            let label = label.to_owned();
            let new = NewToken {
                label,
                ..new(TokenRole::Read, None)
            };
            assert!(new.check().is_err(), "{:?}", new.label);
        }
    }

    #[test]
    fn a_token_ends() {
        let mut token = new(TokenRole::Sell, Some("1")).token();
        let at = Timestamp::from_millis;
        assert_eq!(token.status(at(9)), TokenStatus::Active);
        assert_eq!(token.status(at(10)), TokenStatus::Expired);
        token.is_revoked = true;
        assert_eq!(token.status(at(9)), TokenStatus::Revoked);
    }
}
