//! Grants: credit that may end, to give and to take back; which of them, and their document.

use farebox_ledger::text::visible;
use farebox_ledger::{
    Account, Customer, CustomerId, Grant, GrantAnswer, GrantId, GrantKind, GrantQuery, GrantRecord,
    GrantStatus, KeyStatus, Ledger, LedgerError, NewGrant, Refusal, Timestamp, VoidGrant, clock,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "clap")]
use super::value::slug;
use super::value::{CustomerName, Expiry, Instant, OneLine, Priority, Usd, Word};
use super::{Deed, Doer, SellerAct, Unfit, dates, reads};

/// Grants are read from the ledger in pages of this many.
const PAGE: usize = 1_000;

/// Give credit that may end, once
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct GiveGrant {
    /// How much
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true))]
    pub amount: Usd,
    /// Its own name; unique: a repeated one is given only once, for ever
    #[cfg_attr(feature = "clap", arg(long))]
    pub reference: OneLine,
    /// promotional, or paid, which needs an end; promotional unless you say
    #[cfg_attr(feature = "clap", arg(long))]
    pub kind: Option<Word<GrantKind>>,
    /// Its place in the order of use, from 0, the first, to 100; 50 unless you say, as what was paid
    #[cfg_attr(feature = "clap", arg(long, value_name = "NUMBER"))]
    pub priority: Option<Priority>,
    /// When it can be used: an instant as 2027-01-31T12:00:00Z, or the start of a day as 2027-01-31; at once unless you say
    #[cfg_attr(feature = "clap", arg(long = "effective-at", value_name = "DATE"))]
    pub effective_at: Option<Instant>,
    /// When what is left of it is gone: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31; never unless you say
    #[cfg_attr(
        feature = "clap",
        arg(long = "expires-at", alias = "expires", value_name = "DATE")
    )]
    pub expires_at: Option<Expiry>,
    /// Slugs that it is for; all unless you say
    #[cfg_attr(
        feature = "clap",
        arg(long, value_delimiter = ',', value_name = "SLUGS", value_parser = slug)
    )]
    pub models: Option<Vec<String>>,
}

impl SellerAct for GiveGrant {
    type Of = CustomerId;
    const EXAMPLE: &'static str =
        r#"{"amount":"5","reference":"spring-1001","priority":20,"expires_at":"2099-01-31"}"#;

    async fn deed(self, customer: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let reference = self.reference.0;
        let models = self.models.as_deref().map(super::key::allowed);
        let models = models.transpose()?.flatten();
        let query = GrantQuery {
            reference: Some(reference.clone()),
            limit: 1,
            ..GrantQuery::default()
        };
        // What was given is answered again, whatever became of its models and its end.
        if doer.ledger.grants(query).await?.is_empty() {
            dates::check_expiry(
                "the grant",
                self.expires_at.map(|end| end.0),
                "nothing was given",
            )?;
            check_models(models.as_deref().unwrap_or_default(), customer, doer).await?;
        }
        Ok(NewGrant {
            id: GrantId::from_random(u64::from_be_bytes(clock::random())),
            customer,
            kind: self.kind.map_or(GrantKind::Promotional, |Word(kind)| kind),
            amount: self.amount.0,
            priority: self
                .priority
                .map_or(Grant::PRIORITY, |Priority(place)| place),
            effective_at: self.effective_at.map(Into::into),
            expires_at: self.expires_at.map(Into::into),
            models,
            reference,
            act: doer.act(),
        }
        .into())
    }

    /// One that begins later is in no account until then.
    fn after(&self, account: Account) -> Option<Result<Account, Refusal>> {
        (self.effective_at.is_none()).then(|| account.top_up(self.amount.0))
    }
}

/// Refuses models that are not sold, and such as no key of the customer may use: nobody could spend the grant.
async fn check_models(
    models: &[String],
    customer: CustomerId,
    doer: &Doer<'_>,
) -> Result<(), Unfit> {
    for slug in models {
        if let Some(why) = doer.sold.and_then(|sold| sold.unsold(slug)) {
            return Err(Unfit::Wrong(format!("models: {}", visible(&why))));
        }
    }
    if models.is_empty() {
        return Ok(());
    }
    let mut keys = reads::keys_of(doer.ledger, customer).await?;
    keys.retain(|key| key.stored_status != KeyStatus::Revoked);
    let may_use = |slug: &String| {
        let mut allowed = keys.iter().map(|key| key.settings.models.as_ref());
        keys.is_empty() || allowed.any(|of_key| of_key.is_none_or(|all| all.contains(slug)))
    };
    match models.iter().find(|slug| !may_use(slug)) {
        None => Ok(()),
        Some(slug) => Err(Unfit::Wrong(format!(
            "models: no key of {customer} may use `{}`, so nobody could spend this; allow it first: farebox keys set KEY --models",
            visible(slug)
        ))),
    }
}

/// Take back what is left of a grant; what running requests hold of it they can still spend
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "VoidGrant")]
pub struct TakeGrantBack {}

impl SellerAct for TakeGrantBack {
    type Of = GrantId;

    async fn deed(self, grant: GrantId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let customer = find(doer.ledger, grant).await?.grant.customer;
        let act = doer.act();
        Ok(VoidGrant {
            grant,
            customer,
            act,
        }
        .into())
    }
}

// --- reads ---

/// One grant.
///
/// # Errors
/// When the ledger cannot be read, or has no such grant.
pub async fn find(ledger: &dyn Ledger, id: GrantId) -> Result<GrantRecord, LedgerError> {
    let query = GrantQuery {
        id: Some(id),
        limit: 1,
        ..GrantQuery::default()
    };
    let found = ledger.grants(query).await?.pop();
    found.ok_or_else(|| Refusal::NoSuchGrant(id).into())
}

/// Which grants
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct WhichGrants {
    /// Only grants in this state
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "STATE",
            help = "Only grants in this state: pending, active, exhausted, expired or voided"
        )
    )]
    pub status: Option<Word<GrantStatus>>,
    /// Only the grant with this reference
    #[cfg_attr(feature = "clap", arg(long))]
    pub reference: Option<OneLine>,
}

impl WhichGrants {
    /// Those that are asked for, newest first, after a place: as many as there may be, or all.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn read(
        &self,
        ledger: &dyn Ledger,
        customer: Option<CustomerId>,
        after: Option<(Timestamp, GrantId)>,
        most: Option<usize>,
    ) -> Result<Vec<GrantRecord>, LedgerError> {
        let now = clock::now();
        let asked = self.status.map(|Word(status)| status);
        let mut query = GrantQuery {
            customer,
            id: None,
            reference: self.reference.clone().map(Into::into),
            status: asked.filter(|status| is_booked(*status)),
            after,
            limit: most.map_or(PAGE, |most| most.clamp(1, PAGE)),
        };
        let mut found = Vec::new();
        loop {
            let page = ledger.grants(query.clone()).await?;
            query.after = page.last().map(place);
            let is_last = page.len() < query.limit;
            let is_asked = |record: &GrantRecord| {
                asked.is_none_or(|asked| record.grant.status_at(now) == asked)
            };
            found.extend(page.into_iter().filter(is_asked));
            if let Some(most) = most {
                found.truncate(most);
            }
            if is_last || most.is_some_and(|most| found.len() >= most) {
                return Ok(found);
            }
        }
    }
}

/// The place of a grant in lists.
pub fn place(record: &GrantRecord) -> (Timestamp, GrantId) {
    (record.created_at, record.grant.id)
}

/// Whether nothing comes into this state by time alone, so that all that are in it were booked so.
const fn is_booked(status: GrantStatus) -> bool {
    match status {
        GrantStatus::Pending | GrantStatus::Exhausted | GrantStatus::Voided => true,
        GrantStatus::Active | GrantStatus::Expired => false,
    }
}

// --- documents ---

/// Credit that may end
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Grant")]
pub struct GrantDocument {
    /// Its id
    pub id: String,
    /// Whose it is
    pub customer: CustomerName,
    /// Why it was given; plan is a period of a subscription
    #[schemars(extend("enum" = ["promotional", "paid", "plan"]))]
    pub kind: &'static str,
    /// What was given
    pub amount: Usd,
    /// What is left of it, held or not
    pub remaining: Usd,
    /// Kept for running requests
    pub held: Usd,
    /// What requests may take of it now
    pub available: Usd,
    /// Its place in the order of use: lower ones are used first
    pub priority: Priority,
    /// From when on it can be used
    pub effective_at: Instant,
    /// When what is left of it is gone; null is never
    pub expires_at: Option<Instant>,
    /// Slugs that it is for; null is all
    pub models: Option<Vec<String>>,
    /// What became of it
    pub status: Word<GrantStatus>,
    /// Its own name; null for what a correction gave, or a refund gave back
    pub reference: Option<String>,
    /// When it was given
    pub created_at: Instant,
    /// Who gave it
    pub created_by: String,
}

impl GrantDocument {
    /// A grant, now.
    pub fn of(record: &GrantRecord, now: Timestamp) -> Self {
        let grant = &record.grant;
        Self {
            id: grant.id.to_string(),
            customer: CustomerName(grant.customer),
            kind: grant.kind.as_str(),
            amount: Usd(grant.amount),
            remaining: Usd(grant.remaining_at(now)),
            held: Usd(grant.held),
            available: Usd(grant.free_at(now)),
            priority: Priority(grant.priority),
            effective_at: Instant(grant.effective_at),
            expires_at: grant.expires_at.map(Instant),
            models: grant.models.clone(),
            status: Word(grant.status_at(now)),
            reference: record.reference.0.clone(),
            created_at: Instant(record.created_at),
            created_by: record.created_by.clone(),
        }
    }
}

impl From<&GrantAnswer> for GrantDocument {
    fn from(answer: &GrantAnswer) -> Self {
        Self::of(&answer.grant, clock::now())
    }
}

/// What of a customer's available money comes from grants, in the order of use: `3.00 of it until 1 December`. Periods of plans have words of
/// their own.
pub fn words(customer: &Customer, now: Timestamp) -> Vec<String> {
    let usable = customer.grants.usable().into_iter();
    let usable = usable.filter(|grant| grant.kind != GrantKind::Plan);
    let words = |grant: &Grant| {
        let end = grant
            .expires_at
            .map(|end| format!(" until {}", dates::in_words(end, now)));
        let models = grant
            .models
            .as_ref()
            .map(|models| format!(" for {}", visible(&models.join(", "))));
        format!(
            "{} of it{}{}, {}",
            grant.free(),
            end.unwrap_or_else(|| " without an end".to_owned()),
            models.unwrap_or_default(),
            grant.kind.as_str()
        )
    };
    usable.map(words).collect()
}
