//! Credits: what an administrator pays in, corrects or refunds, and the resulting journal entry.

use crate::book::entry::{EntryKind, JournalEntry};
use crate::book::head::StoredCustomer;
use crate::value::reference;
use crate::value::text::check_text;
use crate::{
    Act, Amount, Customer, CustomerId, GrantId, Key, KeyId, NewKey, OperationId, Refusal, Scope,
    Timestamp,
};

/// Why the credit of a redeemed voucher is booked.
pub const VOUCHER: &str = "voucher";

/// Money in (or, for a negative adjustment or a write-off, out) by an administrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credit {
    /// Chosen by the caller, who keeps it until the outcome is known.
    pub operation: OperationId,
    /// Who gets it: a customer, or that of a key, which the entry then names.
    pub to: Scope,
    /// Top-up, adjustment, refund or write-off.
    pub kind: CreditKind,
    /// Positive for top-ups and refunds, negative for write-offs; either sign, not zero, for adjustments.
    pub amount: Amount,
    /// The payment's own name; unique in the ledger, ignoring case and surrounding spaces.
    pub reference: String,
    /// Who does it.
    pub actor: String,
    /// The clock when it was posted, UTC.
    pub at: Timestamp,
}

/// The kinds of credit and what each needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreditKind {
    /// Money paid in.
    TopUp,
    /// A correction. Upwards it is a grant without an end, unless it stands for something that was paid; downwards it takes from the pool.
    Adjust {
        /// Why.
        reason: String,
        /// Whether what it gives counts as paid.
        is_paid: bool,
    },
    /// Money of a customer that is to be closed, taken by the operator.
    WriteOff {
        /// Why.
        reason: String,
    },
    /// Money back for one charged request; all refunds of it together never exceed its charge.
    Refund {
        /// The charged request.
        request: OperationId,
        /// Why.
        reason: String,
    },
}

impl Credit {
    /// The credit that a key is created with.
    pub(crate) fn first(new: &NewKey) -> Option<Self> {
        let (amount, reference) = new.first_credit.clone()?;
        let Act {
            operation,
            actor,
            at,
        } = new.act.clone();
        Some(Self {
            operation,
            to: Scope::Key(new.id),
            kind: CreditKind::TopUp,
            amount,
            reference,
            actor,
            at,
        })
    }

    /// Checks that reference, reason and actor are present and of a reasonable length.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match &self.kind {
            CreditKind::Adjust { reason, is_paid: _ } if reason == VOUCHER => {
                reference::check_shape(&self.reference)?;
            }
            CreditKind::TopUp
            | CreditKind::Adjust { .. }
            | CreditKind::WriteOff { .. }
            | CreditKind::Refund { .. } => reference::check(&self.reference)?,
        }
        check_text("an actor", &self.actor, 200, false)?;
        match &self.kind {
            CreditKind::TopUp => Ok(()),
            CreditKind::Adjust { reason, is_paid: _ }
            | CreditKind::WriteOff { reason }
            | CreditKind::Refund { reason, .. } => check_text("a reason", reason, 1000, true),
        }
    }

    /// Whether `entry` is this credit of `owner`, posted earlier. Actor and time may differ; and a payment is its customer's, whichever
    /// key it was told for.
    pub(crate) fn repeats(&self, entry: &JournalEntry, owner: CustomerId) -> bool {
        let (kind, reason, refunds) = self.facts();
        let to = match (&self.kind, self.to) {
            (CreditKind::TopUp, _) => entry.customer == owner,
            (_, Scope::Key(key)) => entry.key == Some(key),
            (_, Scope::Customer(customer)) => (entry.customer, entry.key) == (customer, None),
        };
        to && (entry.kind, entry.amount) == (kind, self.amount)
            && entry.reference.as_deref().map(reference::folded)
                == Some(reference::folded(&self.reference))
            && entry.reason.as_deref() == reason
            && entry.refunds == refunds
    }

    /// The entry's kind, reason and refunded request.
    pub(crate) fn facts(&self) -> (EntryKind, Option<&str>, Option<OperationId>) {
        match &self.kind {
            CreditKind::TopUp => (EntryKind::TopUp, None, None),
            CreditKind::Adjust { reason, is_paid: _ } => (EntryKind::Adjust, Some(reason), None),
            CreditKind::WriteOff { reason } => (EntryKind::WriteOff, Some(reason), None),
            CreditKind::Refund { request, reason } => {
                (EntryKind::Refund, Some(reason), Some(*request))
            }
        }
    }

    /// Whether it takes money of the pool.
    pub(crate) fn takes(&self) -> bool {
        let (kind, _, _) = self.facts();
        self.amount.is_negative() && [EntryKind::Adjust, EntryKind::WriteOff].contains(&kind)
    }

    /// The grant that an upward correction gives.
    pub(crate) fn gives(&self) -> Option<GrantId> {
        let CreditKind::Adjust {
            reason: _,
            is_paid: false,
        } = self.kind
        else {
            return None;
        };
        (self.amount.is_positive()).then(|| GrantId::derived(self.operation, 0))
    }

    /// The key that it names.
    pub(crate) const fn key(&self) -> Option<KeyId> {
        match self.to {
            Scope::Key(key) => Some(key),
            Scope::Customer(_) => None,
        }
    }

    /// The entry this credit makes for a customer.
    pub(crate) fn entry(
        &self,
        of: &StoredCustomer,
        position: i64,
        balance_after: Amount,
        now: Timestamp,
    ) -> JournalEntry {
        let (kind, reason, refunds) = self.facts();
        JournalEntry {
            position,
            seq: of.head.seq.saturating_add(1),
            customer: of.customer.id,
            key: self.key(),
            operation: self.operation,
            kind,
            amount: self.amount,
            balance_after,
            at: of.dated(self.at, now),
            actor: self.actor.clone(),
            reference: Some(reference::normal(&self.reference)),
            reason: reason.map(str::to_owned),
            refunds,
            parts: Vec::new(),
            bill: None,
        }
    }
}

/// The outcome of a [`Credit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// The entry; for a repetition, the first one.
    pub entry: JournalEntry,
    /// The customer as it is now.
    pub customer: Customer,
    /// The key that was named, if one was.
    pub key: Option<Key>,
    /// Whether an earlier call with the same facts had already posted it.
    pub repeated: bool,
}
