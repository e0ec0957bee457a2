//! Events: what a seller's own programs hear about. Each is written in the transaction of its cause, and kept for 30 days.

use serde_json::{Value, json};

use crate::{CustomerId, OperationId, SubscriptionId, Timestamp};

macro_rules! kinds {
    ($($name:ident $id:literal $what:literal)*) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventKind {
            $(#[doc = $what] $name),*
        }

        impl EventKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name, which never changes.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $id),* }
            }

            /// What it tells.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $what),* }
            }
        }
    };
}

kinds! {
    CustomerCreated "customer.created" "a customer was made"
    CustomerSuspended "customer.suspended" "a customer's keys are refused from now on"
    CustomerResumed "customer.resumed" "a suspended customer is served again"
    TopUpBooked "top_up.booked" "money was paid in"
    TopUpUnapplied "top_up.unapplied" "money came that could not be booked; assign it or send it back"
    TopUpWanted "top_up.wanted" "a customer's rule asks for money: charge its stored card with this reference"
    ReversalBooked "reversal.booked" "a payment went back, or came again"
    ReversalUnapplied "reversal.unapplied" "a payment went back, and a token's daily bound keeps it from being booked; tell it yourself"
    ClaimOpened "claim.opened" "a customer owes for a payment that went back, and is refused until it has paid"
    ClaimPaid "claim.paid" "a customer has paid what it owed"
    BalanceLow "balance.low" "a balance fell below its threshold"
    BalanceDepleted "balance.depleted" "a balance is used up"
    BalanceRestored "balance.restored" "a balance that was low is a tenth above its threshold again"
    CapReached "cap.reached" "80 or 100 % of a cap are charged, told once for each window"
    KeyCreated "key.created" "a key was made"
    KeyRotated "key.rotated" "a key has a new secret"
    KeyBlocked "key.blocked" "a key is refused until it is unblocked"
    KeyRevoked "key.revoked" "a key is refused for ever"
    VoucherRedeemed "voucher.redeemed" "a voucher became credit"
    GrantGiven "grant.given" "credit was given that may end"
    GrantExpiring "grant.expiring" "credit ends in 30, 7 or 1 days"
    GrantExpired "grant.expired" "credit has ended; what was free of it is gone"
    GrantVoided "grant.voided" "credit was taken back"
    PlanStarted "plan.started" "a subscription to a plan began"
    PlanRenewed "plan.renewed" "periods of a plan were paid or given"
    PlanChanged "plan.changed" "a subscription has another plan from its next period on, or from now, or goes on after a pause"
    PlanPaused "plan.paused" "a subscription's time was stopped"
    PlanEnded "plan.ended" "a subscription is renewed no more; what is paid still runs"
    PlanLapsed "plan.lapsed" "a subscription's last period is over, and the next is not paid"
    PlanEndWanted "plan.end_wanted" "an owner wants a subscription ended where it is renewed"
    PlanLow "plan.low" "80 or 100 % of an allowance or of a window are used, told once each; of windows of hours 100 %"
    PriceChanged "price.changed" "a model's price changed"
    ModelRetired "model.retired" "a model is no longer sold"
}

impl EventKind {
    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|kind| kind.as_str() == name).copied()
    }
}

/// Something that happened, as the outbox has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The same for every delivery, so that a receiver knows what it has had.
    pub id: OperationId,
    /// What happened.
    pub kind: EventKind,
    /// When, by the ledger's clock.
    pub at: Timestamp,
    /// Whom it is about; `None` for what concerns all.
    pub customer: Option<CustomerId>,
    /// Its number among the customer's events, without gaps: deliveries may overtake each other.
    pub seq: Option<i64>,
    /// The particulars: a JSON object.
    pub data: String,
}

impl Event {
    /// How long events are kept, in days.
    pub const DAYS: i64 = 30;

    /// Whether its particulars name this subscription.
    pub fn is_of(&self, subscription: SubscriptionId) -> bool {
        let data: Value = serde_json::from_str(&self.data).unwrap_or_default();
        data["subscription"] == json!(subscription)
    }

    /// What is delivered, listed and pulled.
    pub fn document(&self) -> Value {
        let data: Value = serde_json::from_str(&self.data).unwrap_or_default();
        json!({
            "id": format!("evt_{}", self.id),
            "type": self.kind.as_str(),
            "timestamp": self.at,
            "customer": self.customer,
            "seq": self.seq,
            "data": data,
        })
    }
}

/// Something to tell that concerns all customers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// What happened.
    pub kind: EventKind,
    /// The particulars: a JSON object.
    pub data: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_names() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::named(kind.as_str()), Some(*kind));
        }
    }

    #[test]
    fn a_document_has_the_particulars_as_they_are() {
        let event = Event {
            id: OperationId::from_bytes([0; 16]),
            kind: EventKind::BalanceLow,
            at: Timestamp::from_millis(0),
            customer: None,
            seq: None,
            data: r#"{"balance":"1.00"}"#.to_owned(),
        };
        assert_eq!(
            event.document().to_string(),
            r#"{"id":"evt_00000000000000000000000000","type":"balance.low","timestamp":"1970-01-01T00:00:00.000Z","customer":null,"seq":null,"data":{"balance":"1.00"}}"#
        );
    }
}
