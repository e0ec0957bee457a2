//! Customers: who owns money, and the acts that change them. Pure.
//!
//! A customer has one purse and any number of keys that spend from it. Personal data is kept apart from everything that is chained,
//! which carries only its salted hash: so it can be erased, and what was chained proves nothing about it then.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::rule::auto_top_up::{AutoTopUp, ProcessorRef, TopUpRule};
use crate::rule::cap::PastSpending;
use crate::rule::defaults::own_or;
use crate::value::metadata::check_metadata;
use crate::value::text::check_text;
use crate::{
    Account, Act, Amount, ByDefault, Cap, CapInterval, CapMaker, CapReached, Caps, CustomerEdit,
    CustomerId, CustomerSettings, Grants, MetadataPairs, OperationId, Refusal, Said, Timestamp,
    TokenId, UtcDay,
};

/// What a customer may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CustomerStatus {
    /// Its keys are served while money lasts.
    Active,
    /// All of its keys are refused until it is resumed. It can be paid meanwhile.
    Suspended,
    /// Refused forever: it has no money, and gets none. Row and history stay.
    Closed,
}

impl fmt::Display for CustomerStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Closed => "closed",
        })
    }
}

/// A customer: settings, state and money, from one consistent read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    /// Public id.
    pub id: CustomerId,
    /// What was set.
    pub settings: CustomerSettings,
    /// What it may do now.
    pub status: CustomerStatus,
    /// The money.
    pub account: Account,
    /// What it owes for payments that went back, before anything can be spent; zero while anything that was paid is free.
    pub claim: Amount,
    /// How much of it all keys together may spend when.
    pub caps: Caps,
    /// What it has where its settings say nothing.
    pub defaults: ByDefault,
    /// When money is asked for, and what came of it; most have no such rule.
    pub auto_top_up: Option<Box<AutoTopUp>>,
    /// What was given to it beside what it paid, as far as something can still come of it.
    pub grants: Grants,
    /// The hash of its personal data, if there is any.
    pub personal: Option<PersonalHash>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it; shared, because each request copies it.
    pub created_by: Arc<str>,
    /// The token of the admin API that made it; `None` if it was made here.
    pub token: Option<TokenId>,
    /// When its last entry was written.
    pub last_entry_at: Option<Timestamp>,
}

impl Customer {
    /// Requests each second of all its keys, its own or by default; `None` is unlimited.
    pub const fn rate(&self) -> Option<u32> {
        own_or(self.settings.rate, self.defaults.rate)
    }

    /// The balance below which it is low, its own or by default; `None` is a tenth of the last top-up.
    pub const fn warned_below(&self) -> Option<Amount> {
        own_or(self.settings.low_balance, self.defaults.low_balance)
    }

    /// Refuses a customer whose keys are not served.
    pub(crate) fn check_active(&self) -> Result<(), Refusal> {
        match self.status {
            CustomerStatus::Active => Ok(()),
            stopped => Err(Refusal::CustomerStopped(stopped)),
        }
    }

    /// Refuses a customer that is closed.
    pub(crate) fn check_open(&self) -> Result<(), Refusal> {
        match self.status {
            CustomerStatus::Closed => Err(Refusal::NotApplicable(format!(
                "customer {} is closed, which cannot be undone",
                self.id
            ))),
            CustomerStatus::Active | CustomerStatus::Suspended => Ok(()),
        }
    }

    /// Applies a change. Repeating one, such as suspending a suspended customer, is fine. A cap is that of `by`, and a rule of auto
    /// top-up that of `token`; a new cap counts `spending` of its window, in which `now` lies.
    pub(crate) fn apply(
        &mut self,
        change: &CustomerAct,
        (by, token): (CapMaker, Option<TokenId>),
        now: Timestamp,
        spending: PastSpending<'_>,
    ) -> Result<(), Refusal> {
        // Data of a closed customer can still be erased.
        if !matches!(change, CustomerAct::Close | CustomerAct::Erase) {
            self.check_open()?;
        }
        match change {
            CustomerAct::Edit(edit) => {
                let settings = edit.clone().over(self.settings.clone());
                settings.check()?;
                self.settings = settings;
            }
            CustomerAct::Suspend => self.status = CustomerStatus::Suspended,
            CustomerAct::Resume => self.status = CustomerStatus::Active,
            CustomerAct::Close => {
                self.check_empty()?;
                self.status = CustomerStatus::Closed;
            }
            CustomerAct::Describe(data) => {
                data.check()?;
                self.personal = Some(data.hash());
            }
            CustomerAct::Erase => {
                self.personal = None;
                let known = self.auto_top_up.as_deref();
                self.auto_top_up = known.map(|known| Box::new(known.erased()));
            }
            CustomerAct::SetCap(cap) => self.caps.set(cap, by, UtcDay::of(now), spending)?,
            CustomerAct::ClearCap { interval, model } => {
                self.caps.clear(*interval, model.as_deref(), by)?;
            }
            CustomerAct::SetAutoTopUp(rule, card) => {
                let known = self.auto_top_up.as_deref().cloned().unwrap_or_default();
                let set = known.set(*rule, (token, card.clone()), now)?;
                self.auto_top_up = Some(Box::new(set));
            }
            CustomerAct::ClearAutoTopUp => {
                let known = self.auto_top_up.as_deref();
                self.auto_top_up = known.map(|known| Box::new(known.cleared()));
            }
            CustomerAct::FailTopUp { number, reason } => {
                if let Some(reason) = reason {
                    check_text("a reason", reason, 1000, true)?;
                }
                let known = self.auto_top_up.as_deref().cloned().unwrap_or_default();
                let failed = known.failed(*number, reason.as_deref(), now)?;
                self.auto_top_up = Some(Box::new(failed));
            }
        }
        Ok(())
    }

    /// As it is at an instant: what time has done to its grants and nobody has booked yet is reckoned in.
    pub(crate) fn reckoned_at(mut self, clock: impl FnOnce() -> Timestamp) -> Self {
        self.reckon(clock);
        self
    }

    /// The same in place. The clock is read only where there are grants: each request reads a key.
    pub(crate) fn reckon(&mut self, clock: impl FnOnce() -> Timestamp) {
        let Some(next) = self.grants.next_at() else {
            return;
        };
        let now = clock();
        // Windows open without anybody's doing, and nobody books that.
        if next <= now || !self.grants.plans.is_empty() {
            let grants = std::mem::take(&mut self.grants);
            (self.grants, self.account) = grants.at(self.account, now);
        }
    }

    /// What a request for a slug may take now, caps apart.
    pub fn available(&self, slug: &str) -> Amount {
        if self.grants.is_empty() {
            self.account.available()
        } else if self.claim.is_positive() {
            Amount::ZERO
        } else {
            let has = self.grants.plans.newest();
            self.grants.available(self.account, slug, &has)
        }
    }

    /// What of a plan binds requests for a slug now, where more money is there.
    pub fn plan_limit(&self, slug: &str) -> Option<CapReached> {
        if self.claim.is_positive() {
            return None;
        }
        let has = self.grants.plans.newest();
        let limit = self.grants.plan_limit(self.account, slug, &has)?;
        let of_request = (Amount::ZERO, self.available(slug));
        Some(CapReached::of_plan(limit, self.id, of_request))
    }

    /// What requests for a slug may be charged, held or not, caps apart.
    pub fn balance(&self, slug: &str) -> Amount {
        if self.grants.is_empty() {
            self.account.balance()
        } else {
            let has = self.grants.plans.newest();
            self.grants.balance(self.account, slug, &has)
        }
    }

    /// What its rule asks for now. A customer that is not served, or owes something, is not charged for more.
    pub fn wanted_top_up(&self, now: Timestamp) -> Option<Amount> {
        let auto = self.auto_top_up.as_ref()?;
        let may_ask = self.status == CustomerStatus::Active && !self.claim.is_positive();
        auto.wanted(self.account.balance(), now).filter(|_| may_ask)
    }

    fn check_empty(&self) -> Result<(), Refusal> {
        if self.account.held.is_positive() {
            return Err(Refusal::NotApplicable(format!(
                "customer {} has {} USD held by running requests; suspend it, and close it when they have ended",
                self.id, self.account.held
            )));
        }
        if let Some(of) = self
            .grants
            .plans
            .iter()
            .find(|of| of.state.running.is_some() || of.paid_ahead() > 0)
        {
            return Err(Refusal::NotApplicable(format!(
                "customer {} has subscription {} to {}, of which something is paid; pay it back first, or wait until it is over",
                self.id, of.id, of.state.terms.name
            )));
        }
        if let Some(grant) = self.grants.iter().next() {
            return Err(Refusal::NotApplicable(format!(
                "customer {} has grant {}, of which {} USD are left; void its grants first",
                self.id, grant.id, grant.remaining
            )));
        }
        let left = self.account.balance();
        if left.is_positive() {
            return Err(Refusal::NotApplicable(format!(
                "customer {} has {left} USD left; pay it back and adjust its balance, move it to another customer, or write it off",
                self.id
            )));
        }
        Ok(())
    }
}

/// A customer to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCustomer {
    /// Chosen by the caller.
    pub id: CustomerId,
    /// Settings.
    pub settings: CustomerSettings,
    /// Name, address and whatever else is known.
    pub personal: Option<PersonalData>,
    /// By whom and when.
    pub act: Act,
}

impl NewCustomer {
    /// The customer, without money.
    pub(crate) fn customer(&self) -> Customer {
        let personal = self.personal.as_ref().map(PersonalData::hash);
        let mut customer = made(self.id, self.settings.clone(), &self.act);
        customer.personal = personal;
        customer
    }
}

/// A new customer, without money.
pub(crate) fn made(id: CustomerId, settings: CustomerSettings, act: &Act) -> Customer {
    Customer {
        id,
        settings,
        status: CustomerStatus::Active,
        account: Account::default(),
        claim: Amount::ZERO,
        caps: Caps::default(),
        defaults: ByDefault::default(),
        auto_top_up: None,
        grants: Grants::default(),
        personal: None,
        created_at: act.at,
        created_by: act.actor.as_str().into(),
        token: None,
        last_entry_at: None,
    }
}

/// One administrative change to one customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerChange {
    /// The customer.
    pub customer: CustomerId,
    /// What to change.
    pub change: CustomerAct,
    /// By whom and when.
    pub act: Act,
}

/// The kinds of change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CustomerAct {
    /// Change the settings of which it says something.
    Edit(CustomerEdit),
    /// Refuse its keys until it is resumed. What streams goes on as far as its hold reaches, and whoever is signed in may look.
    Suspend,
    /// Serve again.
    Resume,
    /// Refuse forever; only with nothing held and no balance.
    Close,
    /// Say something of the person; what it does not say stays.
    Describe(PersonalData),
    /// Remove all personal data.
    Erase,
    /// Bound what all keys together may spend; a cap of the same interval and model gets the new limit.
    SetCap(Cap),
    /// Remove such a bound.
    ClearCap {
        /// The cap's interval.
        interval: CapInterval,
        /// The cap's model.
        model: Option<String>,
    },
    /// Ask for money by this rule from now on, and say whose card is charged.
    SetAutoTopUp(TopUpRule, Option<ProcessorRef>),
    /// Ask for none.
    ClearAutoTopUp,
    /// The payment that the rule asked for failed.
    FailTopUp {
        /// The wish's number.
        number: i64,
        /// Why, if that is known.
        reason: Option<String>,
    },
}

/// By what one customer is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomerBy<'name> {
    /// Its id.
    Id(CustomerId),
    /// Its external id, compared exactly.
    ExternalId(&'name str),
}

impl CustomerAct {
    /// The external id that it gives.
    pub(crate) fn new_external_id(&self) -> Option<&String> {
        if let Self::Edit(edit) = self
            && let Said::Set(id) = &edit.external_id
        {
            Some(id)
        } else {
            None
        }
    }
}

/// Money that goes from one customer to another: only what was paid and is not held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMove {
    /// Who gives.
    pub from: CustomerId,
    /// Who gets.
    pub into: CustomerId,
    /// How much; positive.
    pub amount: Amount,
    /// The name of the move; both entries carry it, and no other ever does.
    pub reference: String,
    /// By whom and when.
    pub act: Act,
}

impl NewMove {
    /// The operation of the entry and act of who gets: derived, so that a repetition finds it.
    pub(crate) fn arrival(&self) -> OperationId {
        arrival_of(self.act.operation)
    }
}

/// The operation of who gets, of a move with this one.
pub(crate) fn arrival_of(moved: OperationId) -> OperationId {
    moved.derived(b"farebox move")
}

/// The outcome of a [`NewMove`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Who gave, as it is now.
    pub from: Customer,
    /// Who got, as it is now.
    pub into: Customer,
    /// Whether an earlier call with the same facts had already moved it.
    pub repeated: bool,
}

/// The SHA-256 of personal data and its salt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PersonalHash(pub(crate) [u8; 32]);

/// What is known about the person or firm behind a customer.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PersonalData {
    /// Name on receipts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Address on receipts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whatever else the seller keeps.
    #[serde(default, skip_serializing_if = "MetadataPairs::is_empty")]
    pub metadata: MetadataPairs,
    /// The caller's randomness: without it, short data could be guessed from its hash.
    #[serde(with = "crate::book::anchor::hex")]
    pub salt: [u8; 32],
}

/// Never shows what it is about: it ends up in no log.
impl fmt::Debug for PersonalData {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PersonalData(…)")
    }
}

impl PersonalData {
    /// What the chains carry.
    pub fn hash(&self) -> PersonalHash {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let digest = Sha256::new_with_prefix(b"farebox personal data");
        PersonalHash(digest.chain_update(text).finalize().into())
    }

    /// What is known when this is said of what is known. The salt is always new.
    pub(crate) fn over(self, known: Option<Self>) -> Self {
        let mut data = known.unwrap_or_default();
        data.name = self.name.or(data.name);
        data.address = self.address.or(data.address);
        data.metadata.extend(self.metadata);
        data.salt = self.salt;
        data
    }

    /// Whether it says anything.
    #[must_use]
    pub fn is_said(&self) -> bool {
        self.name.is_some() || self.address.is_some() || !self.metadata.is_empty()
    }

    fn check(&self) -> Result<(), Refusal> {
        check_text(
            "a name",
            self.name.as_deref().unwrap_or_default(),
            200,
            false,
        )?;
        let address = self.address.as_deref().unwrap_or_default();
        check_text("an address", address, 1000, false)?;
        check_metadata(&self.metadata)
    }

    /// Checks what a new customer is created with.
    pub(crate) fn check_new(data: Option<&Self>) -> Result<(), Refusal> {
        data.map_or(Ok(()), Self::check)
    }
}
