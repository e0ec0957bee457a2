//! What the holder of an owner key does on the dashboard: makes, rotates, blocks and unblocks keys of the same customer, and sets
//! caps on them and on the customer.
//!
//! The ledger is asked for the key that a form names, and a key of another customer does not exist here. What the seller has blocked
//! stays blocked, and what the seller bounded is only bounded further.

use farebox_ledger::key::Change;
use farebox_ledger::{
    Act, Amount, Cap, CapInterval, CustomerAct, CustomerEdit, ExpectedAct, Key, KeyId, KeyOrder,
    KeyQuery, KeySettings, Ledger, LedgerError, LinkToken, OperationId, Outcome, Refusal, Scope,
    Secret, Timestamp,
};
use sha2::{Digest, Sha256};

use super::actor::{Actor, NewMember};
use super::page::display;
use crate::clock;
use crate::proxy::Failure;

/// The keys that a page shows, the newest. How many owners make is decided in the ledger.
pub(super) const MOST_KEYS: usize = 200;
/// How long the old secret of a rotated key works, if its holder needs time.
const OVERLAP_MS: i64 = 24 * 3_600 * 1_000;
/// A form is older than any session.
const OLDEST_FORM_MS: i64 = 12 * 3_600 * 1_000;
/// Acts of a key searched for its last block.
const ACTS: usize = 200;

/// What a form asks for. Forms about a key have its id in their path; without one, caps are the customer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerForm {
    /// A new member key.
    Make,
    /// A new secret.
    Rotate,
    /// Refuse its requests.
    Block,
    /// Serve it again.
    Unblock,
    /// Set a cap, or change its limit.
    SetCap,
    /// Remove a cap.
    ClearCap,
    /// The balance below which the customer is told that it is low.
    LowBalance,
    /// Ask for no more money by itself.
    EndAutoTopUp,
    /// A way to the seller's shop, as who this is.
    ToShop,
    /// Renew a plan no more.
    EndPlan,
}

/// What a form brought, each field empty if it did not.
#[derive(Debug, Default)]
pub(super) struct OwnerFields {
    /// Names this form, so that sending it twice acts once.
    pub(super) once: String,
    pub(super) label: String,
    pub(super) interval: String,
    pub(super) model: String,
    pub(super) limit: String,
    /// `day`: the old secret works for another day.
    pub(super) overlap: String,
    /// A subscription.
    pub(super) plan: String,
}

/// What was done.
#[derive(Debug)]
pub(super) enum OwnerDeed {
    /// A key has a new secret, which is shown once.
    Secret(Box<Key>, Secret),
    /// The way to the shop, which works once.
    Way(LinkToken),
    /// Nothing to show but the page.
    Done,
}

/// Why it was not done.
#[derive(Debug)]
pub(super) enum OwnerRefusal {
    /// The form has to be filled in otherwise; the text says how.
    Told(String),
    /// As for any page.
    Failed(Box<Failure>),
}

impl From<LedgerError> for OwnerRefusal {
    fn from(error: LedgerError) -> Self {
        match error {
            stopped @ LedgerError::Refused(Refusal::NotActive(_) | Refusal::CustomerStopped(_)) => {
                Self::Failed(Box::new(stopped.into()))
            }
            LedgerError::Refused(Refusal::ChangedSince { .. }) => Self::Told(
                "This was changed meanwhile. Look at it again, and decide anew.".to_owned(),
            ),
            LedgerError::Refused(refusal) => Self::Told(display::sentence(&refusal.to_string())),
            other => Self::Failed(Box::new(other.into())),
        }
    }
}

fn told<T>(text: &str) -> Result<T, OwnerRefusal> {
    Err(OwnerRefusal::Told(text.to_owned()))
}

/// The acts of whoever holds an owner key.
#[derive(Debug)]
pub(super) struct Owner<'a> {
    actor: Actor<'a>,
    now: Timestamp,
}

impl<'a> Owner<'a> {
    /// `None` for a member, who manages nothing.
    pub(super) fn of(actor: Actor<'a>) -> Option<Self> {
        let now = clock::now();
        (actor.key().is_owner).then_some(Self { actor, now })
    }

    /// Does what a form asks for.
    ///
    /// # Errors
    /// [`OwnerRefusal`].
    pub(super) async fn act(
        &self,
        form: OwnerForm,
        target: Option<KeyId>,
        fields: &OwnerFields,
    ) -> Result<OwnerDeed, OwnerRefusal> {
        let act = Act {
            operation: self.operation(form, target, fields)?,
            actor: actor(self.actor.key().id),
            at: self.now,
        };
        let Some(target) = target else {
            return self.of_customer(form, fields, act).await;
        };
        let failed = |failure| OwnerRefusal::Failed(Box::new(failure));
        let key = key(self.actor.ledger(), self.actor.key(), target);
        let key = key.await.map_err(failed)?;
        self.of_key(form, key, fields, act).await
    }

    /// A form about one key.
    async fn of_key(
        &self,
        form: OwnerForm,
        key: Key,
        fields: &OwnerFields,
        act: Act,
    ) -> Result<OwnerDeed, OwnerRefusal> {
        let mut expected = None;
        let change = match form {
            OwnerForm::Rotate => return self.rotate(key, fields, act).await,
            OwnerForm::Block => Change::Block,
            OwnerForm::Unblock => {
                expected = Some(self.blocked_here(key.id).await?);
                Change::Unblock
            }
            OwnerForm::SetCap => Change::SetCap(cap(fields)?),
            OwnerForm::ClearCap => {
                let (interval, model) = window(fields)?;
                Change::ClearCap { interval, model }
            }
            OwnerForm::Make
            | OwnerForm::LowBalance
            | OwnerForm::EndAutoTopUp
            | OwnerForm::ToShop
            | OwnerForm::EndPlan => return told("This form is about no key."),
        };
        (self.actor)
            .change_key(key.id, change, act, expected)
            .await?;
        Ok(OwnerDeed::Done)
    }

    /// A form about the customer.
    async fn of_customer(
        &self,
        form: OwnerForm,
        fields: &OwnerFields,
        act: Act,
    ) -> Result<OwnerDeed, OwnerRefusal> {
        let change = match form {
            OwnerForm::Make => return self.make(fields, act).await,
            OwnerForm::ToShop => return self.to_shop(act).await,
            OwnerForm::EndPlan => {
                let Ok(plan) = fields.plan.parse() else {
                    return told("This is no plan of yours. Open the page again.");
                };
                self.actor.want_plan_end(plan, act).await?;
                return Ok(OwnerDeed::Done);
            }
            OwnerForm::EndAutoTopUp => CustomerAct::ClearAutoTopUp,
            OwnerForm::SetCap => CustomerAct::SetCap(cap(fields)?),
            OwnerForm::ClearCap => {
                let (interval, model) = window(fields)?;
                CustomerAct::ClearCap { interval, model }
            }
            OwnerForm::LowBalance => CustomerAct::Edit(CustomerEdit {
                low_balance: threshold(&fields.limit)?.into(),
                ..CustomerEdit::default()
            }),
            OwnerForm::Rotate | OwnerForm::Block | OwnerForm::Unblock => {
                return told("This form is about a key.");
            }
        };
        self.actor.change_customer(change, act).await?;
        Ok(OwnerDeed::Done)
    }

    /// A new member, which may do what its owner may. Its secret is shown only when its cap is set.
    async fn make(&self, fields: &OwnerFields, act: Act) -> Result<OwnerDeed, OwnerRefusal> {
        let label = fields.label.trim();
        if label.is_empty() {
            return told("Give the key a label: who or what will use it.");
        }
        let cap = if fields.limit.trim().is_empty() {
            None
        } else {
            Some(cap(fields)?)
        };
        let (ledger, owner) = (self.actor.ledger(), self.actor.key());
        if ledger.act(act.operation).await?.is_some() {
            return told(
                "This form was sent before, and its key was made. If its secret is lost, rotate that key.",
            );
        }
        let id = clock::key_id();
        let secret = Secret::generate(id, clock::random());
        let settings = KeySettings {
            label: label.to_owned(),
            ..owner.settings.clone()
        };
        let new = NewMember {
            id,
            secret: secret.hash(),
            settings,
            purse: None,
            act: act.clone(),
        };
        let made = self.actor.make_member(new, None).await?;
        let mut key: Key = made.outcome.unwrap_or(Outcome::Done).try_into()?;
        if let Some(cap) = cap {
            let act = Act {
                operation: clock::operation_id(),
                ..act
            };
            let change = Change::SetCap(cap);
            key = self.actor.change_key(id, change, act, None).await?;
        }
        Ok(OwnerDeed::Secret(Box::new(key), secret))
    }

    async fn to_shop(&self, act: Act) -> Result<OwnerDeed, OwnerRefusal> {
        if self.actor.ledger().act(act.operation).await?.is_some() {
            return told(
                "This form was sent before, and its way to the shop is used up or gone. Send it again.",
            );
        }
        let way = LinkToken::generate(clock::random());
        self.actor.link_to_shop(&way, act).await?;
        Ok(OwnerDeed::Way(way))
    }

    async fn rotate(
        &self,
        key: Key,
        fields: &OwnerFields,
        act: Act,
    ) -> Result<OwnerDeed, OwnerRefusal> {
        if self.actor.ledger().act(act.operation).await?.is_some() {
            return told(
                "This form was sent before, and the key was rotated. If its new secret is lost, rotate it again.",
            );
        }
        let secret = Secret::generate(key.id, clock::random());
        let overlap = Timestamp::from_millis(self.now.millis().saturating_add(OVERLAP_MS));
        let change = Change::Rotate {
            secret: secret.hash(),
            old_until: (fields.overlap == "day").then_some(overlap),
        };
        let key = self.actor.change_key(key.id, change, act, None).await?;
        Ok(OwnerDeed::Secret(Box::new(key), secret))
    }

    /// Refuses to undo a block that no owner of this customer made. Returns the act that must not be followed by another before it is
    /// undone.
    async fn blocked_here(&self, key: KeyId) -> Result<ExpectedAct, OwnerRefusal> {
        match blocked_by_owner(self.actor.ledger(), key).await? {
            Some(expected) => Ok(expected),
            None => told("The seller has blocked this key. Ask the seller."),
        }
    }

    /// The operation of a form: the same for the same form, and no other key's.
    fn operation(
        &self,
        form: OwnerForm,
        target: Option<KeyId>,
        fields: &OwnerFields,
    ) -> Result<OperationId, OwnerRefusal> {
        let once = fields.once.as_str();
        let made = once.split('-').next().and_then(|at| at.parse::<i64>().ok());
        let made = made.filter(|at| {
            let age = self.now.millis().saturating_sub(*at);
            (0..OLDEST_FORM_MS).contains(&age) && once.len() < 64
        });
        let Some(made) = made else {
            return told("This form is too old. Open the page again.");
        };
        let whose = self.actor.key().id;
        let sent = format!("{whose} {form:?} {target:?} {fields:?}");
        let digest = Sha256::digest(sent.as_bytes());
        let random = digest
            .iter()
            .take(16)
            .fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
        Ok(OperationId::new(Timestamp::from_millis(made), random))
    }
}

/// The act that must not be followed by another before an owner's block of a key is undone; `None` if no owner made the last block.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) async fn blocked_by_owner(
    ledger: &dyn Ledger,
    key: KeyId,
) -> Result<Option<ExpectedAct>, LedgerError> {
    let of = Scope::Key(key);
    // Read first: of an act between the two reads the ledger then knows that it was not expected. Read last, a block that the seller
    // made meanwhile would be among what is undone.
    let position = ledger.last_act(of).await?;
    let acts = ledger.audit(Some(of), None, ACTS).await?;
    let block = acts.iter().find(|act| act.act == "block");
    let is_owners = block.is_some_and(|block| block.actor.starts_with(ACTOR));
    Ok(is_owners.then_some(ExpectedAct { of, position }))
}

/// A key of an owner's customer.
///
/// # Errors
/// 404 for a key that is unknown or another customer's, 503 when the ledger cannot be read.
pub(super) async fn key(ledger: &dyn Ledger, own: &Key, id: KeyId) -> Result<Key, Failure> {
    let found = ledger.find_key(id).await?;
    found
        .filter(|key| key.customer.id == own.customer.id)
        .ok_or_else(|| Failure::NoPath(format!("this customer has no key {id}")))
}

/// The keys of an owner's customer, newest first.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) async fn keys(
    ledger: &dyn Ledger,
    own: &Key,
    now: Timestamp,
) -> Result<Vec<Key>, LedgerError> {
    let query = KeyQuery {
        order: KeyOrder::Newest,
        customer: Some(own.customer.id),
        now,
        limit: MOST_KEYS,
        ..KeyQuery::default()
    };
    ledger.list_keys(query).await
}

/// The name of a new form.
pub(super) fn once() -> String {
    format!(
        "{}-{}",
        clock::now().millis(),
        hex::encode(clock::random::<8>())
    )
}

/// Whom the audit names: operators have names of their own.
const ACTOR: &str = "owner key ";

pub(super) fn actor(key: KeyId) -> String {
    format!("{ACTOR}{key}")
}

fn window(fields: &OwnerFields) -> Result<(CapInterval, Option<String>), OwnerRefusal> {
    let named = |interval: &CapInterval| interval.as_str() == fields.interval;
    let Some(interval) = CapInterval::ALL.into_iter().find(named) else {
        return told("The interval of a cap is day, week, month or total.");
    };
    let model = Some(fields.model.trim()).filter(|model| !model.is_empty());
    Ok((interval, model.map(str::to_owned)))
}

fn cap(fields: &OwnerFields) -> Result<Cap, OwnerRefusal> {
    let (interval, model) = window(fields)?;
    match Amount::from_usd_str(fields.limit.trim()) {
        Ok(limit) => Ok(Cap {
            interval,
            model,
            limit,
        }),
        Err(_) => told("Write the limit in US dollars, as in 5 or 0.50."),
    }
}

/// A threshold; nothing typed is the default.
fn threshold(text: &str) -> Result<Option<Amount>, OwnerRefusal> {
    match text.trim() {
        "" => Ok(None),
        text => match Amount::from_usd_str(text) {
            Ok(amount) => Ok(Some(amount)),
            Err(_) => told("Write the balance in US dollars, as in 5 or 0.50."),
        },
    }
}
