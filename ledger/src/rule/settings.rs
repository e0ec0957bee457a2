//! What an administrator can set on customers and keys, and edits of it. Pure.
//!
//! An edit says something of some settings and keeps the others as they are when it is applied: so two edits of different settings are
//! both made, whoever read what before.

use serde::{Deserialize, Serialize};

use crate::value::edit::Said;
use crate::value::metadata::check_metadata;
use crate::value::text::{check_label, check_text, clean, is_unseen};
use crate::{Amount, MetadataPairs, Refusal, Timestamp};

/// What an administrator can set on a customer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CustomerSettings {
    /// A name for people.
    pub label: String,
    /// Its name in the seller's own system; unique in the ledger.
    pub external_id: Option<String>,
    /// The name of its price list; `None` is the catalog's prices.
    pub price_list: Option<String>,
    /// The balance below which it is low; `None` is a tenth of the last top-up.
    pub low_balance: Option<Amount>,
    /// Requests each second, of all its keys; `None` is unlimited.
    pub rate: Option<u32>,
    /// Requests at once, of all its keys; `None` is the gateway's default, or what a key of it may do alone if that is more.
    pub concurrency: Option<u32>,
}

/// What an edit says of each setting of a customer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CustomerEdit {
    /// [`CustomerSettings::label`], which is never without a value; `None` keeps it.
    pub label: Option<String>,
    /// [`CustomerSettings::external_id`].
    pub external_id: Said<String>,
    /// [`CustomerSettings::price_list`].
    pub price_list: Said<String>,
    /// [`CustomerSettings::low_balance`].
    pub low_balance: Said<Amount>,
    /// [`CustomerSettings::rate`].
    pub rate: Said<u32>,
    /// [`CustomerSettings::concurrency`].
    pub concurrency: Said<u32>,
}

impl CustomerEdit {
    /// The settings afterwards.
    #[must_use]
    pub fn over(self, known: CustomerSettings) -> CustomerSettings {
        CustomerSettings {
            label: self.label.unwrap_or(known.label),
            external_id: self.external_id.over(known.external_id),
            price_list: self.price_list.over(known.price_list),
            low_balance: self.low_balance.over(known.low_balance),
            rate: self.rate.over(known.rate),
            concurrency: self.concurrency.over(known.concurrency),
        }
    }

    /// Whether it says nothing but where the balance is low, which is all that an owner may set.
    pub(crate) fn is_of_low_balance(&self) -> bool {
        let low_balance = self.low_balance;
        *self
            == Self {
                low_balance,
                ..Self::default()
            }
    }

    /// Replaces what a store cannot keep in a text. An external id with such a character is refused.
    pub(crate) fn clean(&mut self) {
        self.label.iter_mut().for_each(clean);
        if let Said::Set(name) = &mut self.price_list {
            clean(name);
        }
    }
}

impl CustomerSettings {
    /// Concurrent requests of a customer without its own limit.
    pub const CONCURRENCY: u32 = 64;

    /// Those of the customer that the upgrade made for a key, or creating a key without one does.
    pub(crate) fn labelled(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            ..Self::default()
        }
    }

    /// Checks that texts are of a reasonable length, and an external id can be typed again.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_label("a label", &self.label, 200, false)?;
        if let Some(name) = &self.price_list {
            check_text("a price list", name, 200, true)?;
        }
        if self.low_balance.is_some_and(Amount::is_negative) {
            let text = "a low balance must not be negative";
            return Err(Refusal::Limit(text.to_owned()));
        }
        match &self.external_id {
            Some(id) => check_external_id(id),
            None => Ok(()),
        }
    }

    /// Refuses prices of its own for a customer that a token that sells makes: it does not decide them.
    pub(crate) fn check_sold(&self) -> Result<(), Refusal> {
        if self.price_list.is_none() {
            return Ok(());
        }
        let text = "a token that sells gives nobody a price list";
        Err(Refusal::NotAllowed(text.to_owned()))
    }

    /// Replaces what a store cannot keep in a text. An external id with such a character is refused.
    pub(crate) fn clean(&mut self) {
        clean(&mut self.label);
        self.price_list.iter_mut().for_each(clean);
    }
}

/// Ids of other systems are compared byte by byte, so that two that look the same must be the same.
fn check_external_id(id: &str) -> Result<(), Refusal> {
    check_text("an external id", id, 200, true)?;
    if id.trim() != id || id.chars().any(is_unseen) {
        let text = "an external id must not begin or end with a space or contain characters that cannot be seen";
        return Err(Refusal::NotApplicable(text.to_owned()));
    }
    Ok(())
}

/// What an administrator can set on a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeySettings {
    /// A name for people.
    pub label: String,
    /// Slugs the key may use; `None` is all.
    pub models: Option<Vec<String>>,
    /// First instant at which the key no longer works.
    pub expires_at: Option<Timestamp>,
    /// Requests each second; `None` is unlimited.
    pub rate: Option<u32>,
    /// Requests at once; `None` is the gateway's default.
    pub concurrency: Option<u32>,
    /// What the program that made it notes of it, for ever: no edit says anything of it.
    // A pointer: each request reads its key, and few keys have any.
    #[serde(default)]
    pub metadata: Option<Box<MetadataPairs>>,
}

/// What an edit says of each setting of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyEdit {
    /// [`KeySettings::label`], which is never without a value; `None` keeps it.
    pub label: Option<String>,
    /// [`KeySettings::models`].
    pub models: Said<Vec<String>>,
    /// [`KeySettings::expires_at`].
    pub expires_at: Said<Timestamp>,
    /// [`KeySettings::rate`].
    pub rate: Said<u32>,
    /// [`KeySettings::concurrency`].
    pub concurrency: Said<u32>,
}

impl KeyEdit {
    /// Whether it says nothing but a label.
    pub(crate) fn names_only(&self) -> bool {
        let label = self.label.clone();
        *self
            == Self {
                label,
                ..Self::default()
            }
    }

    /// The settings afterwards.
    #[must_use]
    pub fn over(self, known: KeySettings) -> KeySettings {
        KeySettings {
            label: self.label.unwrap_or(known.label),
            models: self.models.over(known.models),
            expires_at: self.expires_at.over(known.expires_at),
            rate: self.rate.over(known.rate),
            concurrency: self.concurrency.over(known.concurrency),
            metadata: known.metadata,
        }
    }
}

impl KeySettings {
    /// Concurrent requests for a key without its own limit: what its customer has without one.
    pub const CONCURRENCY: u32 = CustomerSettings::CONCURRENCY;
    /// Paid requests each second when unset: far above what people and agents make, and no key makes thousands.
    pub const RATE: u32 = 200;
    /// How many of them may come at once when no rate is set.
    // Two seconds' worth, for programs that begin everything at once.
    pub const BURST: u32 = 400;

    /// Whether the key may use a model.
    #[must_use]
    pub fn allows(&self, slug: &str) -> bool {
        let models = self.models.as_ref();
        models.is_none_or(|models| models.iter().any(|allowed| allowed == slug))
    }

    /// Checks that texts and lists are of a reasonable length.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_label("a label", &self.label, 200, false)?;
        let models = self.models.as_deref().unwrap_or_default();
        if models.len() > 1000 {
            return Err(Refusal::Limit("a key lists at most 1000 models".to_owned()));
        }
        models
            .iter()
            .try_for_each(|model| check_text("a model", model, 200, true))?;
        self.metadata.as_deref().map_or(Ok(()), check_metadata)
    }
}
