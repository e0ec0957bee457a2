//! Looking and acting are two rights. A session lets its holder look; acting takes a key and a customer that are served at that moment,
//! and the ledger judges both again in the transaction of the effect. From this room there is no other way to an act.

use farebox_ledger::key::Change;
use farebox_ledger::{
    Act, Answered, Asked, Asker, Cap, CustomerAct, CustomerChange, ExpectedAct, Key, KeyChange,
    KeyId, KeySettings, Ledger, LedgerError, LinkToken, Membership, NewKey, NewLink, Once,
    Operation, Outcome, Perform, PlanAct, PlanChange, Posted, Redemption, SecretHash,
    SubscriptionId,
};

use crate::clock;
use crate::proxy::Failure;

/// Whoever has a session: may look at the account of its key, and at nothing else.
#[derive(Debug)]
pub(super) struct Viewer {
    pub(super) key: Key,
    /// The session's token, hashed.
    pub(super) token: SecretHash,
}

/// A member key to make.
#[derive(Debug)]
pub(super) struct NewMember {
    pub(super) id: KeyId,
    pub(super) secret: SecretHash,
    pub(super) settings: KeySettings,
    /// What it may spend, at most what whoever makes it may spend then.
    pub(super) purse: Option<Cap>,
    pub(super) act: Act,
}

/// Whoever acts with a key.
#[derive(Debug)]
pub(super) struct Actor<'a> {
    key: &'a Key,
    ledger: &'a dyn Ledger,
}

impl<'a> Actor<'a> {
    /// Whoever holds this key.
    ///
    /// # Errors
    /// 403 for a key that is not active, or whose customer is not.
    pub(super) fn of(key: &'a Key, ledger: &'a dyn Ledger) -> Result<Self, Failure> {
        key.check_acts(clock::now())
            .map_err(|stopped| Failure::from(LedgerError::Refused(stopped)))?;
        Ok(Self { key, ledger })
    }

    pub(super) const fn key(&self) -> &'a Key {
        self.key
    }

    pub(super) const fn ledger(&self) -> &'a dyn Ledger {
        self.ledger
    }

    /// Makes a member key of the same customer, once where a repetition can be recognised.
    ///
    /// # Errors
    /// Whatever the ledger refuses; so of every act of an owner.
    pub(super) async fn make_member(
        &self,
        new: NewMember,
        once: Option<Once>,
    ) -> Result<Answered, LedgerError> {
        let NewMember {
            id,
            secret,
            settings,
            purse,
            act,
        } = new;
        let new = NewKey {
            id,
            secret,
            settings,
            within: Membership {
                customer: Some(self.key.customer.id),
                is_owner: false,
                made_by: Some(self.key.id),
            },
            first_credit: None,
            purse,
            act,
        };
        self.ask(new.into(), None, once).await
    }

    /// Changes a key of the same customer, unless it was changed since the caller read it.
    pub(super) async fn change_key(
        &self,
        key: KeyId,
        change: Change,
        act: Act,
        expected: Option<ExpectedAct>,
    ) -> Result<Key, LedgerError> {
        let change = KeyChange { key, change, act };
        self.manage(change.into(), expected).await?.try_into()
    }

    /// Changes the customer.
    pub(super) async fn change_customer(
        &self,
        change: CustomerAct,
        act: Act,
    ) -> Result<(), LedgerError> {
        let change = CustomerChange {
            customer: self.key.customer.id,
            change,
            act,
        };
        self.manage(change.into(), None).await.map(drop)
    }

    /// Asks that a subscription of the customer is renewed no more.
    pub(super) async fn want_plan_end(
        &self,
        subscription: SubscriptionId,
        act: Act,
    ) -> Result<(), LedgerError> {
        let change = PlanChange {
            customer: self.key.customer.id,
            subscription,
            change: PlanAct::WantEnd,
            act,
        };
        self.manage(change.into(), None).await.map(drop)
    }

    /// Stores a way to the shop, for this key alone.
    pub(super) async fn link_to_shop(&self, way: &LinkToken, act: Act) -> Result<(), LedgerError> {
        let link = NewLink {
            key: self.key.id,
            token: way.shop_hash(),
            expires: LinkToken::shop_expires(act.at),
            act,
        };
        self.manage(link.into(), None).await.map(drop)
    }

    async fn manage(
        &self,
        operation: Operation,
        expected: Option<ExpectedAct>,
    ) -> Result<Outcome, LedgerError> {
        let answered = self.ask(operation, expected, None).await?;
        Ok(answered.outcome.unwrap_or(Outcome::Done))
    }

    async fn ask(
        &self,
        operation: Operation,
        expected: Option<ExpectedAct>,
        once: Option<Once>,
    ) -> Result<Answered, LedgerError> {
        let asked = Asked {
            by: Asker::Owner(self.key.id),
            at: clock::now(),
            once,
            expected,
            operation,
        };
        self.ledger.ask(asked).await
    }

    /// Redeems a voucher for the key's customer.
    ///
    /// # Errors
    /// Whatever the ledger refuses.
    pub(super) async fn redeem(&self, code: SecretHash) -> Result<Posted, LedgerError> {
        let act = Act {
            operation: clock::operation_id(),
            actor: format!("key {}", self.key.id),
            at: clock::now(),
        };
        let key = self.key.id;
        self.ledger.perform(Redemption { code, key, act }).await
    }
}
