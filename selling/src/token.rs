//! Tokens of the admin API, which only commands make and revoke; and their documents, for commands and for themselves.

use farebox_ledger::text::visible;
use farebox_ledger::{
    Amount, DailyBound, Ledger, LedgerError, NewToken, Perform as _, Reservation, RevokeToken,
    Timestamp, Token, TokenId, TokenRole, TokenSecret, TokenToday, UtcDay, clock,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[cfg(feature = "clap")]
use super::value::label;
use super::value::{Expiry, Instant, OneLine, Usd, Word};
use super::{Deed, Doer, NewSecret, SellerAct, Unfit, dates};

/// Create a token for a program of yours; its secret is printed once
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CreateToken {
    /// A name that tells what uses it; the actor of what it does in journal and audit, so each has its own
    #[cfg_attr(feature = "clap", arg(value_parser = label))]
    pub label: OneLine,
    /// What it may do
    #[cfg_attr(feature = "clap", arg(long, value_parser = roles()))]
    pub role: Word<TokenRole>,
    /// The most that it may credit in one UTC day; required of one that sells
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "USD", allow_negative_numbers = true)
    )]
    pub daily: Option<Usd>,
    /// When it stops working, if ever: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31
    #[cfg_attr(feature = "clap", arg(long = "expires", value_name = "DATE"))]
    pub expires_at: Option<Expiry>,
}

impl SellerAct for CreateToken {
    type Of = ();

    async fn deed(self, (): (), doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let expires_at = self.expires_at.map(Into::into);
        dates::check_expiry("the token", expires_at, "nothing was made")?;
        let secret = TokenSecret::generate(clock::random());
        let token = NewToken {
            id: clock::token_id(),
            secret: secret.hash(),
            label: self.label.0,
            role: self.role.0,
            daily: self.daily.map(Into::into),
            expires_at,
            act: doer.act(),
        };
        Ok(Deed::showing(token, NewSecret::Token(secret)))
    }
}

/// Refuse a token permanently
#[derive(Debug, Deserialize, JsonSchema)]
pub struct StopToken {}

impl SellerAct for StopToken {
    type Of = TokenId;

    async fn deed(self, token: TokenId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let act = doer.act();
        Ok(RevokeToken { token, act }.into())
    }
}

/// What a token may do, and what that is.
#[cfg(feature = "clap")]
fn roles() -> impl clap::builder::TypedValueParser<Value = Word<TokenRole>> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};

    let roles = TokenRole::ALL.map(|role| {
        PossibleValue::new(role.as_str()).help(match role {
            TokenRole::Read => "Read everything, change nothing",
            TokenRole::Sell => {
                "Top up active customers; create customers with a first key, and take back payments that it booked"
            }
            TokenRole::Manage => "Everything but tokens",
        })
    });
    PossibleValuesParser::new(roles).try_map(|word| word.parse())
}

/// A token of the admin API, without its secret.
pub fn document(token: &Token, today: &TokenToday, now: Timestamp) -> Value {
    let bounds = DailyBound::ALL.into_iter().filter_map(|what| {
        let (most, done) = (today.most(token, what)?, today.day.done(what));
        Some(json!({ "what": what, "most": what.shown(most), "done": what.shown(done) }))
    });
    json!({
        "id": token.id,
        "label": visible(&token.label),
        "role": token.role,
        "status": token.status(now),
        "daily": token.daily,
        "today": today.day.booked,
        "bounds": bounds.collect::<Vec<_>>(),
        "expires_at": token.expires_at,
        "created_at": token.created_at,
        "created_by": token.created_by,
    })
}

/// The token that asks, and what it may still do today
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Token")]
pub struct TokenDocument {
    /// Its id
    pub id: String,
    /// Its name in journal and audit
    pub label: String,
    /// What it is for
    #[schemars(extend("enum" = ["read", "sell", "manage"]))]
    pub role: &'static str,
    /// The most that it may credit in one UTC day; null is without bound
    pub daily: Option<Usd>,
    /// What it credited today
    pub today: Usd,
    /// What it has reserved beside that
    pub reserved: Usd,
    /// What it can reserve at once now; null is without bound
    pub reservable: Option<Usd>,
    /// The most that it can ever reserve at once; null is without bound
    pub most_reservable: Option<Usd>,
    /// The most that any customer may have
    pub highest_balance: Usd,
    /// When it ends
    pub expires_at: Option<Instant>,
}

impl TokenDocument {
    /// A token, now.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn read(
        ledger: &dyn Ledger,
        token: &Token,
        now: Timestamp,
    ) -> Result<Self, LedgerError> {
        let today = UtcDay::of(now);
        let days = ledger.token_days(TokenToday::since(today)).await?;
        let reserved = ledger.all::<Reservation>().await?.into_iter();
        let live = reserved.filter(|kept| kept.token == token.id && now < kept.until);
        let reserved = Amount::checked_sum(live.map(|kept| kept.credit)).unwrap_or_default();
        let today = TokenToday::of(token.id, today, &days).reserving(reserved);
        Ok(Self {
            id: token.id.to_string(),
            label: visible(&token.label),
            role: token.role.as_str(),
            daily: token.daily.map(Usd),
            today: Usd(today.day.booked),
            reserved: Usd(reserved),
            reservable: today.can_reserve(token).map(Usd),
            most_reservable: TokenToday::largest_reservation(token).map(Usd),
            highest_balance: Usd(Amount::MAX_BALANCE),
            expires_at: token.expires_at.map(Instant),
        })
    }
}
