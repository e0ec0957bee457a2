//! Keys: sell them, change what was set, give them new secrets, stop them; and their documents.

use std::time::Duration;

use farebox_ledger::key::Change;
use farebox_ledger::text::visible;
use farebox_ledger::{
    Account, Act, Amount, CustomerId, Enrolment, Key, KeyChange, KeyEdit, KeyId, KeySettings,
    KeyStatus, Membership, MetadataPairs, NewCustomer, NewKey, Refusal, Said, Secret, SecretHash,
    Timestamp, clock,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cap::{CapDocument, DefaultsDocument};
#[cfg(feature = "clap")]
use super::command_line::{KEPT, expiry_or_never, limit, slugs};
use super::value::{Count, CustomerName, Expiry, Instant, KeyName, OneLine, Usd, Word, Worded};
#[cfg(feature = "clap")]
use super::value::{label, slug};
use super::{Deed, Doer, NewSecret, SellerAct, Unfit, changes, dates, reads};

/// Create a key; its secret is in this answer only. A token that sells makes the first one
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CreateKey {
    /// A name for people
    #[cfg_attr(feature = "clap", arg(long, value_parser = label))]
    pub label: OneLine,
    /// It manages the customer's other keys on the dashboard
    #[cfg_attr(feature = "clap", arg(long, action = clap::ArgAction::SetTrue))]
    pub owner: Option<bool>,
    /// Slugs that it may use; all unless you say
    #[cfg_attr(
        feature = "clap",
        arg(long, value_delimiter = ',', value_name = "SLUGS", value_parser = slug)
    )]
    pub models: Option<Vec<String>>,
    /// When it stops working: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31
    #[cfg_attr(feature = "clap", arg(long = "expires", value_name = "DATE"))]
    pub expires_at: Option<Expiry>,
    /// Requests each second; null is the usual limit
    #[serde(default)]
    #[schemars(with = "Option<Count>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NUMBER", default_value = KEPT, hide_default_value = true, value_parser = limit, allow_negative_numbers = true)
    )]
    pub rate: Said<Count>,
    /// Requests at once; null is the gateway's default
    #[serde(default)]
    #[schemars(with = "Option<Count>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NUMBER", default_value = KEPT, hide_default_value = true, value_parser = limit, allow_negative_numbers = true)
    )]
    pub concurrency: Said<Count>,
}

impl CreateKey {
    /// What it sets, and whether the key is an owner.
    ///
    /// # Errors
    /// `all` beside slugs, or an expiry in the past.
    pub fn settings(self) -> Result<(KeySettings, bool), Unfit> {
        let expires_at = self.expires_at.map(Into::into);
        check_expiry(expires_at)?;
        let settings = KeySettings {
            label: self.label.0,
            models: self.models.map_or(Ok(None), |models| allowed(&models))?,
            expires_at,
            rate: self.rate.map(Into::into).over(None),
            concurrency: self.concurrency.map(Into::into).over(None),
            ..KeySettings::default()
        };
        Ok((settings, self.owner.unwrap_or_default()))
    }
}

impl SellerAct for CreateKey {
    type Of = CustomerId;
    const EXAMPLE: &'static str = r#"{"label":"notebook","expires_at":"2099-01-31"}"#;

    /// One of a token that sells has the customer's ten characters, so that it is the first one.
    async fn deed(self, customer: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let (settings, is_owner) = self.settings()?;
        if doer.sells {
            return Ok(first(customer, settings, is_owner, doer.act()));
        }
        let within = Membership {
            customer: Some(customer),
            is_owner,
            made_by: None,
        };
        Ok(create(settings, within, None, doer.act()))
    }
}

/// Sell a key, with its first money or without
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SellKey {
    /// What it may do
    #[serde(flatten)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub key: CreateKey,
    /// What was paid with it
    #[serde(flatten)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub money: FirstMoney,
}

/// What is paid when a key is sold
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct FirstMoney {
    /// The customer's first money, or more of it: the credit that was paid for, in USD without tax
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "USD",
            allow_negative_numbers = true,
            requires = "reference"
        )
    )]
    pub balance: Option<Usd>,
    /// That payment's own name, as your processor's id of it; unique
    #[cfg_attr(feature = "clap", arg(long, requires = "balance"))]
    pub reference: Option<OneLine>,
}

/// An amount and its payment's name.
type FirstCredit = Option<(Amount, String)>;

impl FirstMoney {
    fn credit(&self) -> Result<FirstCredit, &'static str> {
        match (self.balance, &self.reference) {
            (Some(balance), Some(reference)) => Ok(Some((balance.0, reference.0.clone()))),
            (None, None) => Ok(None),
            (Some(_), None) | (None, Some(_)) => Err("a balance and its reference go together"),
        }
    }
}

impl SellKey {
    /// Checks it before anything is done.
    ///
    /// # Errors
    /// Why it cannot be asked for.
    pub fn check(&self) -> Result<(), Unfit> {
        self.clone().parts().map(drop)
    }

    /// What it sets, whether the key is an owner, and what was paid.
    fn parts(self) -> Result<(KeySettings, bool, FirstCredit), Unfit> {
        let first_credit = self.money.credit();
        let first_credit = first_credit.map_err(|why| Unfit::Incomplete(None, why))?;
        let (settings, is_owner) = self.key.settings()?;
        Ok((settings, is_owner, first_credit))
    }
}

impl SellerAct for SellKey {
    /// Its customer; without one it has its own.
    type Of = Option<CustomerId>;

    async fn deed(self, customer: Option<CustomerId>, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let (settings, is_owner, first_credit) = self.parts()?;
        let within = Membership {
            customer,
            is_owner,
            made_by: None,
        };
        Ok(create(settings, within, first_credit, doer.act()))
    }

    fn after(&self, account: Account) -> Option<Result<Account, Refusal>> {
        match self.money.credit() {
            Ok(first) => first.map(|(balance, _)| account.top_up(balance)),
            Err(why) => Some(Err(Refusal::NotApplicable(why.to_owned()))),
        }
    }
}

/// The first key of a customer, made with it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct FirstKey {
    /// A name for people
    pub label: Option<OneLine>,
    /// It manages the customer's other keys on the dashboard
    pub owner: Option<bool>,
    /// Slugs that it may use; all unless you say
    pub models: Option<Vec<String>>,
    /// When it stops working: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31
    pub expires_at: Option<Expiry>,
    /// Requests each second; null is the usual limit
    pub rate: Option<Count>,
    /// Requests at once; null is the gateway's default
    pub concurrency: Option<Count>,
}

impl FirstKey {
    /// What it sets, with its customer's label unless it has one.
    pub(crate) fn named(self, label: &OneLine) -> Result<(KeySettings, bool), Unfit> {
        let Self {
            label: own,
            owner,
            models,
            expires_at,
            rate,
            concurrency,
        } = self;
        let key = CreateKey {
            label: own.unwrap_or_else(|| label.clone()),
            owner,
            models,
            expires_at,
            rate: rate.into(),
            concurrency: concurrency.into(),
        };
        key.settings()
    }
}

/// Change a key's label, models, expiry or limits
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(required = true))]
#[serde(default)]
pub struct EditKey {
    /// A name for people
    #[cfg_attr(feature = "clap", arg(long, value_parser = label))]
    pub label: Option<OneLine>,
    /// Slugs that it may use, or `["all"]`
    #[schemars(with = "Option<Vec<String>>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, help = "Slugs that it may use, or `all`", value_name = "SLUGS", default_value = KEPT, hide_default_value = true, value_parser = slugs)
    )]
    pub models: Said<Vec<String>>,
    /// When it stops working: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31
    #[schemars(with = "Option<Expiry>")]
    #[cfg_attr(
        feature = "clap",
        arg(long = "expires", help = "When it stops working: an instant as 2027-01-31T12:00:00Z, the end of a day as 2027-01-31, or `never`", value_name = "DATE", default_value = KEPT, hide_default_value = true, value_parser = expiry_or_never)
    )]
    pub expires_at: Said<Expiry>,
    /// Requests each second; null is the usual limit
    #[schemars(with = "Option<Count>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NUMBER", default_value = KEPT, hide_default_value = true, value_parser = limit, allow_negative_numbers = true)
    )]
    pub rate: Said<Count>,
    /// Requests at once; null is the gateway's default
    #[schemars(with = "Option<Count>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NUMBER", default_value = KEPT, hide_default_value = true, value_parser = limit, allow_negative_numbers = true)
    )]
    pub concurrency: Said<Count>,
}

impl SellerAct for EditKey {
    type Of = KeyId;
    const EXAMPLE: &'static str = r#"{"label":"notebook of Ada","concurrency":4}"#;

    async fn deed(self, of: KeyId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        if let Said::Set(expires) = self.expires_at {
            check_expiry(Some(expires.0))?;
        }
        let edit = KeyEdit {
            label: self.label.map(Into::into),
            models: match self.models {
                Said::Keep => Said::Keep,
                Said::Clear => Said::Clear,
                Said::Set(models) => allowed(&models)?.into(),
            },
            expires_at: self.expires_at.map(Into::into),
            rate: self.rate.map(Into::into),
            concurrency: self.concurrency.map(Into::into),
        };
        Ok(Deed::on_key(of, Change::Edit(edit), doer.act()))
    }
}

changes! {
    KeyId, Deed::on_key;
    /// Refuse requests until unblocked
    Block: Change::Block;
    /// Serve a blocked key again
    Unblock: Change::Unblock;
}

/// Refuse requests permanently; balance and history stay
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Revoke {
    /// Revoke the keys that this owner made, too
    #[cfg_attr(feature = "clap", arg(long, action = clap::ArgAction::SetTrue))]
    pub with_made: Option<bool>,
}

impl SellerAct for Revoke {
    type Of = KeyId;

    async fn before(&self, of: &KeyId, doer: &Doer<'_>) -> Result<Vec<Deed>, Unfit> {
        revoked(self.with_made, *of, doer).await
    }

    async fn deed(self, key: KeyId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        Ok(Deed::on_key(key, Change::Revoke, doer.act()))
    }
}

/// The acts that end what an owner key made, where that is wanted.
async fn revoked(wanted: Option<bool>, owner: KeyId, doer: &Doer<'_>) -> Result<Vec<Deed>, Unfit> {
    if wanted != Some(true) {
        return Ok(Vec::new());
    }
    let made = reads::made_by(doer.ledger, owner).await?.into_iter();
    let revoked = made.map(|key| Deed::on_key(key, Change::Revoke, doer.act()));
    Ok(revoked.collect())
}

/// Give a key a new secret; balance and history stay
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Rotate {
    /// How long the old secret still works: 0, 1h or 24h; not at all unless you say
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", default_value = "0"))]
    pub overlap: Option<Word<Overlap>>,
    /// Revoke the keys that this owner made: whoever had its secret may have made some
    #[cfg_attr(feature = "clap", arg(long, action = clap::ArgAction::SetTrue))]
    pub with_made: Option<bool>,
}

/// How long an old secret still works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Overlap {
    /// It stops working at once.
    #[serde(rename = "0")]
    None,
    /// An hour.
    #[serde(rename = "1h")]
    Hour,
    /// A day.
    #[serde(rename = "24h")]
    Day,
}

impl Worded for Overlap {
    const ALL: &'static [Self] = &[Self::None, Self::Hour, Self::Day];
}

impl SellerAct for Rotate {
    type Of = KeyId;
    const EXAMPLE: &'static str = r#"{"overlap":"1h"}"#;

    async fn before(&self, of: &KeyId, doer: &Doer<'_>) -> Result<Vec<Deed>, Unfit> {
        revoked(self.with_made, *of, doer).await
    }

    async fn deed(self, key: KeyId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let overlap = match self.overlap {
            None | Some(Word(Overlap::None)) => None,
            Some(Word(Overlap::Hour)) => Some(Duration::from_secs(60 * 60)),
            Some(Word(Overlap::Day)) => Some(Duration::from_secs(24 * 60 * 60)),
        };
        Ok(rotate(key, overlap, doer.act()))
    }
}

/// Replace a secret whose answer was lost, before the key's first use
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Reissue {}

impl SellerAct for Reissue {
    type Of = KeyId;

    /// The ledger refuses it once the key was used.
    async fn deed(self, key: KeyId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        Ok(renewed(key, doer.act(), |secret| Change::Reissue {
            secret,
        }))
    }
}

fn check_expiry(expires: Option<Timestamp>) -> Result<(), Unfit> {
    let nothing = "nothing was changed; to stop a key, block or revoke it";
    dates::check_expiry("the key", expires, nothing)
}

/// The slugs that a key or a grant is for, each once; `None` for `all`.
///
/// # Errors
/// What is wrong with one of them.
pub(crate) fn allowed(typed: &[String]) -> Result<Option<Vec<String>>, Unfit> {
    if typed.iter().any(|slug| slug == "all") {
        return if typed.len() == 1 {
            Ok(None)
        } else {
            Err(Unfit::Member("models", "write `all` alone, or slugs"))
        };
    }
    let mut slugs: Vec<String> = Vec::with_capacity(typed.len());
    for slug in typed {
        if !slugs.contains(slug) {
            slugs.push(slug.clone());
        }
    }
    Ok(Some(slugs))
}

/// A new key of a customer, or of a new one, with its first money.
fn create(settings: KeySettings, within: Membership, first_credit: FirstCredit, act: Act) -> Deed {
    made(new(clock::key_id(), settings, within, first_credit, act))
}

/// The first key of a customer: of its ten characters, so that there is only one, however many ask for it at once.
pub fn first(customer: CustomerId, settings: KeySettings, is_owner: bool, act: Act) -> Deed {
    made(new_first(customer, settings, is_owner, act))
}

/// A new customer with its first key, or neither.
pub fn enrol(customer: NewCustomer, settings: KeySettings, is_owner: bool, act: Act) -> Deed {
    let (key, secret) = new_first(customer.id, settings, is_owner, act);
    Deed::showing(Enrolment { customer, key }, NewSecret::Secret(secret))
}

fn new_first(
    customer: CustomerId,
    settings: KeySettings,
    is_owner: bool,
    act: Act,
) -> (NewKey, Secret) {
    let within = Membership {
        customer: Some(customer),
        is_owner,
        made_by: None,
    };
    new(customer.first_key(), settings, within, None, act)
}

fn new(
    id: KeyId,
    settings: KeySettings,
    within: Membership,
    first_credit: FirstCredit,
    act: Act,
) -> (NewKey, Secret) {
    let secret = Secret::generate(id, clock::random());
    let new = NewKey {
        within,
        id,
        secret: secret.hash(),
        settings,
        first_credit,
        purse: None,
        act,
    };
    (new, secret)
}

fn made((new, secret): (NewKey, Secret)) -> Deed {
    Deed::showing(new, NewSecret::Secret(secret))
}

/// A new secret; the old one works as long as that, if at all.
pub fn rotate(key: KeyId, overlap: Option<Duration>, act: Act) -> Deed {
    let old_until = overlap.map(|time| after(act.at, time));
    renewed(key, act, |secret| Change::Rotate { secret, old_until })
}

fn renewed(key: KeyId, act: Act, change: impl FnOnce(SecretHash) -> Change) -> Deed {
    let secret = Secret::generate(key, clock::random());
    let change = change(secret.hash());
    let change = KeyChange { key, change, act };
    Deed::showing(change, NewSecret::Secret(secret))
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.millis().saturating_add(time))
}

// --- documents ---

/// A key
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Key")]
pub struct KeyDocument {
    /// Its id
    pub id: KeyName,
    /// What the customer types; only right after it was made
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// A name for people
    pub label: String,
    /// What it may do now
    pub status: Word<KeyStatus>,
    /// Its customer's balance
    pub balance: Usd,
    /// Kept for running requests of its customer
    pub held: Usd,
    /// What it may spend now, within its caps
    pub available: Usd,
    /// Slugs that it may use; null is all
    pub models: Option<Vec<String>>,
    /// When it stops working
    pub expires_at: Option<Instant>,
    /// Requests each second; null is the usual limit
    pub rate: Option<Count>,
    /// Requests at once; null is the gateway's default
    pub concurrency: Option<Count>,
    /// What holds where nothing was set; absent where nothing does
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<DefaultsDocument>,
    /// Its own bounds
    pub caps: Vec<CapDocument>,
    /// When it was created
    pub created_at: Instant,
    /// Whose it is, for ever
    pub customer: CustomerName,
    /// It manages the customer's other keys on the dashboard
    pub owner: bool,
    /// The owner key that made it
    pub made_by: Option<KeyName>,
    /// What the program that made it noted of it; absent where nothing was
    #[serde(skip_serializing_if = "MetadataPairs::is_empty")]
    pub metadata: MetadataPairs,
    /// What it spent itself; only where its customer is read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_spent: Option<Usd>,
    /// What its own running requests hold; only where its customer is read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_held: Option<Usd>,
}

impl KeyDocument {
    /// A key, now.
    pub fn of(key: &Key, now: Timestamp) -> Self {
        let (settings, account) = (&key.settings, key.customer.account);
        Self {
            id: KeyName(key.id),
            secret: None,
            label: visible(&settings.label),
            status: Word(key.status(now)),
            balance: Usd(account.balance()),
            held: Usd(account.held),
            available: Usd(key.spendable(now)),
            models: settings.models.clone(),
            expires_at: settings.expires_at.map(Instant),
            rate: settings.rate.map(Count),
            concurrency: settings.concurrency.map(Count),
            defaults: DefaultsDocument::beside(
                (settings.rate, settings.concurrency, None),
                key.defaults,
            ),
            caps: CapDocument::all(key.id.into(), &key.caps, now),
            created_at: Instant(key.created_at),
            customer: CustomerName(key.belongs_to),
            owner: key.is_owner,
            made_by: key.made_by.map(KeyName),
            metadata: settings.metadata.as_deref().cloned().unwrap_or_default(),
            key_spent: None,
            key_held: None,
        }
    }

    /// A key with its secret, right after it was made: the only time it is shown.
    pub fn with_secret(made: &Key, secret: &Secret) -> Self {
        Self {
            secret: Some(secret.reveal().to_owned()),
            ..Self::of(made, clock::now())
        }
    }
}
