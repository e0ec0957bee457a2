//! Keys: sell them, change what was set, give them new secrets, stop them.

use std::time::Duration;

use farebox_ledger::key::Change;
use farebox_ledger::{
    Act, Amount, CustomerId, Enrolment, KeyChange, KeyId, KeySettings, KeyStatus, Ledger,
    LedgerError, LinkToken, Membership, NewCustomer, NewKey, NewLink, Secret, Timestamp,
};

use super::values::Setting;
use super::{Deed, NewSecret, dates, reads};
use crate::clock;

/// What is to be set on a key; what is not said stays, or is the default.
#[derive(Debug, Clone, Default)]
pub struct KeyEdit {
    /// A name for people.
    pub label: Option<String>,
    /// Slugs that it may use, or `all`.
    pub models: Option<Vec<String>>,
    /// When it stops working.
    pub expires: Option<Setting<Timestamp>>,
    /// Requests per second.
    pub rate: Option<Setting<u32>>,
    /// Requests at once.
    pub concurrency: Option<Setting<u32>>,
}

impl KeyEdit {
    /// The settings afterwards.
    ///
    /// # Errors
    /// `all` beside slugs, or an expiry in the past, in words.
    pub fn over(&self, settings: &KeySettings) -> Result<KeySettings, String> {
        dates::check_expiry(self.expires.and_then(|expires| expires.0))?;
        let mut settings = settings.clone();
        if let Some(label) = &self.label {
            settings.label.clone_from(label);
        }
        if let Some(models) = &self.models {
            settings.models = allowed(models)?;
        }
        settings.expires_at = self.expires.map_or(settings.expires_at, |set| set.0);
        settings.rate = self.rate.map_or(settings.rate, |set| set.0);
        settings.concurrency = self.concurrency.map_or(settings.concurrency, |set| set.0);
        Ok(settings)
    }
}

/// The slugs that a key may use, each once; `None` for `all`.
///
/// # Errors
/// What is wrong with one of them.
pub fn allowed(typed: &[String]) -> Result<Option<Vec<String>>, String> {
    if typed.iter().any(|slug| slug == "all") {
        return if typed.len() == 1 {
            Ok(None)
        } else {
            Err("models: write `all` alone, or slugs".to_owned())
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
pub fn create(
    settings: KeySettings,
    within: Membership,
    first_credit: Option<(Amount, String)>,
    act: Act,
) -> Deed {
    made(new(clock::key_id(), settings, within, first_credit, act))
}

/// The first key of a customer: of its ten characters, so that there is only one, however many ask for it at once.
pub fn first(customer: CustomerId, settings: KeySettings, is_owner: bool, act: Act) -> Deed {
    made(new_first(customer, settings, is_owner, act))
}

/// A new customer with its first key, or neither.
pub fn enrol(customer: NewCustomer, settings: KeySettings, is_owner: bool, act: Act) -> Deed {
    let (key, secret) = new_first(customer.id, settings, is_owner, act);
    Deed {
        operation: Enrolment { customer, key }.into(),
        shown_once: Some(NewSecret::Secret(secret)),
    }
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
    first_credit: Option<(Amount, String)>,
    act: Act,
) -> (NewKey, Secret) {
    let secret = Secret::generate(id, clock::random());
    let new = NewKey {
        within,
        id,
        secret: secret.hash(),
        settings,
        first_credit,
        act,
    };
    (new, secret)
}

fn made((new, secret): (NewKey, Secret)) -> Deed {
    Deed {
        operation: new.into(),
        shown_once: Some(NewSecret::Secret(secret)),
    }
}

/// One change.
pub fn change(key: KeyId, change: Change, act: Act) -> Deed {
    KeyChange { key, change, act }.into()
}

/// A new secret; the old one works as long as that, if at all.
pub fn rotate(key: KeyId, overlap: Option<Duration>, act: Act) -> Deed {
    let secret = Secret::generate(key, clock::random());
    let rotated = Change::Rotate {
        secret: secret.hash(),
        old_until: overlap.map(|time| after(act.at, time)),
    };
    Deed {
        shown_once: Some(NewSecret::Secret(secret)),
        ..change(key, rotated, act)
    }
}

/// A new secret for one whose answer was lost. The ledger refuses it once the key was used.
pub fn reissue(key: KeyId, act: Act) -> Deed {
    let secret = Secret::generate(key, clock::random());
    let reissued = Change::Reissue {
        secret: secret.hash(),
    };
    Deed {
        shown_once: Some(NewSecret::Secret(secret)),
        ..change(key, reissued, act)
    }
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.millis().saturating_add(time))
}

/// A sign-in link to the dashboard; it works once.
pub fn link(key: KeyId, act: Act) -> (Deed, Timestamp) {
    let token = LinkToken::generate(clock::random());
    let expires = LinkToken::expires(act.at);
    let new = NewLink {
        key,
        token: token.hash(),
        expires,
        act,
    };
    let deed = Deed {
        operation: new.into(),
        shown_once: Some(NewSecret::Link(token)),
    };
    (deed, expires)
}

/// The keys that an owner made and that are not revoked.
///
/// # Errors
/// When the ledger cannot be read, or there is no such key.
pub async fn made_by(ledger: &dyn Ledger, owner: KeyId) -> Result<Vec<KeyId>, LedgerError> {
    let key = reads::key(ledger, owner).await?;
    let mut made = reads::keys_of(ledger, key.belongs_to).await?;
    made.retain(|other| other.made_by == Some(owner) && other.stored_status != KeyStatus::Revoked);
    Ok(made.iter().map(|key| key.id).collect())
}
