//! Money, customers and keys: the one crate that can change a balance.
//!
//! A customer owns money, and any number of keys spend it. Its account has three numbers: `credit` (everything ever paid in), `spent` and `held`. A request's money is first reserved
//! as a [`Hold`], a row with an id, and every hold ends exactly once: settled, released or recovered.
//!
//! - [`account`] holds the rules, pure and checked; [`batch`] applies them to rows in memory, which every store fetches and flushes.
//! - [`Ledger`] is the contract. [`sqlite`] and [`postgres`] implement it; `tests/reference` is the oracle of their tests.
//! - [`book`] is the journal: append-only, one hash chain per customer; [`bill`] is the cost of a request.
//!
//! Invariants: `0 ≤ spent + held ≤ credit` at every instant, repeated by the database; every operation carries an id chosen by its
//! caller, so sending it twice has one effect; clock and ids are passed in. This crate knows nothing of HTTP or of any model
//! vendor: slugs, families and targets are plain text to it.

#![deny(
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

pub mod batch;
pub mod book;
mod contract;
mod error;
pub mod hold;
mod lock;
#[cfg(feature = "reference")]
#[path = "../tests/reference/mod.rs"]
pub mod memory;
mod outbox;
mod past_periods;
pub mod rule;
pub mod search;
pub mod store;
mod table;
pub mod value;

pub use batch::asker::Asker;
pub use batch::operation::{Asked, ExpectedAct, Once, Operation, Performable};
pub use batch::outcome::{AnswerOf, Answered, Outcome};
pub use book::audit::AuditRecord;
pub use book::credit::{Credit, CreditKind, Posted};
pub use book::entry::{EntryKind, JournalEntry};
pub use book::grant_answer::GrantAnswer;
pub use book::house_act::{HouseAct, HouseSubject};
pub use book::margin::{MarginBy, MarginOrder, MarginQuery, MarginRow, Margins, SlugHour};
pub use book::page::{
    CloseSession, CloseSessions, CustomerQuery, EntryQuery, GrantQuery, KeyOrder, KeyPlace,
    KeyQuery, MadeQuery, Publish, PublishedSlug, Session, SlugUse, Totals, UsageRow, VerifyReport,
};
pub use book::payment_answer::PaymentMoved;
pub use book::plan_answer::PlanAnswer;
pub use book::run::{RunQuery, RunSum};
pub use book::statement::{MonthlySums, StatementMonth, UsedOfModel};
pub use book::{anchor, csv, document};
pub use contract::{Ledger, Perform, SharedLedger};
pub use error::{Cause, LedgerError};
pub use hold::{Granted, Hold};
pub use lock::lock;
pub use outbox::Outbox;
pub use past_periods::{OverPeriod, given_up, past_periods, past_subscriptions};
pub use rule::Act;
pub use rule::account::Account;
pub use rule::answer::ApiAnswer;
pub use rule::auto_top_up::{
    AutoTopUp, AutoTopUpOff, AutoTopUpState, JudgeTopUp, ProcessorRef, Refill, TopUpRule, TopUpWish,
};
pub use rule::cap::{Cap, CapLimits, CapMaker, CapReached, CapWindow, Caps, CountedCap};
pub use rule::customer::{
    Customer, CustomerAct, CustomerBy, CustomerChange, CustomerStatus, Moved, NewCustomer, NewMove,
    PersonalData, PersonalHash,
};
pub use rule::defaults::{ByDefault, DefaultSettings, Defaults, SetDefaults};
pub use rule::grant::{
    Grant, GrantKind, GrantName, GrantRecord, GrantStatus, Grants, MoneyPart, NewGrant,
    SettleGrants, VoidGrant,
};
pub use rule::hold::{
    BeginEpoch, EndedHold, Finish, Held, HoldMove, HoldWay, NewHold, NewSize, OpenHold, Recover,
    Recovered, ResolveHold,
};
pub use rule::key::{
    Change, Enrolment, Key, KeyChange, KeyRecord, KeyStatus, MarkUsed, Membership, NewKey,
};
pub use rule::limit::RateRule;
pub use rule::link::{ConsumeLink, LINK_LIFETIME, LinkToken, NewLink, NewVisit};
pub use rule::made::MadeBound;
pub use rule::payment::{
    Addressees, AskedSum, FirstPayment, NewPayment, NewReversal, PaidSum, Payment, PaymentStatus,
    Registers, ReversalKind, UnappliedAct, UnappliedEnd, WaitingReversal,
};
pub use rule::plan::money_back::PaidPeriods;
pub use rule::plan::{
    PastPeriod, PeriodAnchor, PlanAct, PlanAfter, PlanChange, PlanLimit, PlanNews, PlanPeriod,
    PlanPurchase, PlanTerms, PlanWindow, Plans, RunningPeriod, SoldPeriods, Subscription,
    SubscriptionState, SubscriptionStatus, WindowBound, WindowId, WindowPlace, WindowSpan,
};
pub use rule::reservation::{EndReservation, NewReservation, Reservation, SoldOut};
pub use rule::secret::{Secret, SecretError, SecretHash};
pub use rule::settings::{CustomerEdit, CustomerSettings, KeyEdit, KeySettings};
pub use rule::token::{NewToken, RevokeToken, Token, TokenRole, TokenSecret, TokenStatus};
pub use rule::token_day::{DailyBound, DailyReached, TokenDay, TokenToday};
pub use rule::voucher::{Lot, NewLot, Redemption, VoidLot, VoucherCode};
pub use rule::{account, key};
pub use store::address::{AddressError, Database, LedgerAddress};
pub use store::admin_token::AdminToken;
pub use store::fleet::{Gateway, Server};
pub use store::mounts::is_mounted_alone;
pub use store::opening::{Durability, OpenMode, Opening};
pub use store::stats::{LOG_LOUD, LogStats, Standby, WriterStats};
pub use store::trouble::{Blocker, Fault, LedgerTrouble, TroubleKind};
pub use store::{owner, postgres, sqlite};
pub use table::list::{WholeRow, WholeRows, WholeTable};
pub use table::owners::ListedCustomer;
pub use value::amount::{Amount, AmountError};
pub use value::bill::{Bill, BillFacts, BillLine, Evidence};
pub use value::cost_source::{CostSource, ToldCost};
pub use value::edit::Said;
pub use value::end_reason::EndReason;
pub use value::event::{Event, EventKind, News};
pub use value::files_act::{FilesAct, NoteFiles};
pub use value::gross::{Gross, GrossError};
pub use value::id::{
    CustomerId, GrantId, IdError, KeyId, LotId, OperationId, ReservationId, Scope, SubscriptionId,
    Timestamp, TokenId,
};
pub use value::lesson::{Excess, Fact, Facts, ForgetTarget, Lesson, Taught};
pub use value::metadata::MetadataPairs;
pub use value::own_cost::OwnCost;
pub use value::probe_lease::{ProbeLease, TargetFinding};
pub use value::public_url::{gateway_root, parse_public_url, with_query};
pub use value::reference::is_same_reference;
pub use value::run::RunName;
pub use value::service::{Served, ServedRegion, ServedTier};
pub use value::text::grouped;
pub use value::tries::Owed;
pub use value::usage::{Usage, UsageKind};
pub use value::utc_day::{CapInterval, UtcDay};
pub use value::vendor_id::VendorIds;
pub use value::webhook::{
    DeliveryOutcome, DeliveryStep, DeliverySteps, DueDelivery, FailedDelivery, KnownWebhook,
    WantedDeliveries, WebhookId,
};
pub use value::{amount, bill, clock, text};

/// A definite refusal by the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No key with this id.
    #[error("there is no key {0}")]
    NoSuchKey(KeyId),
    /// No customer with this id.
    #[error("there is no customer {0}")]
    NoSuchCustomer(CustomerId),
    /// The key is blocked, expired or revoked.
    #[error("the key is {0}")]
    NotActive(KeyStatus),
    /// The key's customer is suspended or closed.
    #[error("the customer is {0}")]
    CustomerStopped(CustomerStatus),
    /// Another customer has this external id.
    #[error("external id {external_id:?} belongs to customer {customer}; nothing was changed")]
    ExternalIdUsed {
        /// The id in question.
        external_id: String,
        /// Whose it is.
        customer: CustomerId,
    },
    /// Less money is available than requested.
    #[error(
        "this takes {needed} USD; the customer has {available} USD available and {held} USD held by running requests"
    )]
    Insufficient {
        /// The requested amount.
        needed: Amount,
        /// Balance minus holds, now.
        available: Amount,
        /// Held by running requests, now.
        held: Amount,
    },
    /// A cap of the key or its customer has less room than requested.
    #[error("{0}")]
    CapReached(Box<CapReached>),
    /// The key or its customer already has its maximum of concurrent requests, counted over all gateways.
    #[error("at most {0} may run at the same time")]
    TooManyAtOnce(u32),
    /// The key or its customer has used up its rate, counted over all gateways.
    #[error("at most {rate} per second")]
    TooFast {
        /// Requests per second.
        rate: u32,
        /// When the next one is allowed.
        wait: std::time::Duration,
    },
    /// No lot of vouchers with this id.
    #[error("there is no lot {0}")]
    NoSuchLot(LotId),
    /// This code can be redeemed by nobody, or was by somebody else.
    #[error("this voucher is not known, or can no longer be redeemed")]
    NoSuchVoucher,
    /// No link of this kind has this token, or has it any more.
    #[error("this link is not known, was used, or has expired")]
    NoSuchLink,
    /// The token that asks has no reservation with this id, or has it no more.
    #[error("there is no reservation {0}")]
    NoSuchReservation(ReservationId),
    /// The token that asks has no room for a reservation.
    #[error("{0}")]
    SoldOut(Box<SoldOut>),
    /// No token of the admin API with this id.
    #[error("there is no token {0}")]
    NoSuchToken(TokenId),
    /// The token that asks is revoked or expired.
    #[error("the token is {0}")]
    TokenStopped(TokenStatus),
    /// A key would have more left than the key that made it has room for.
    #[error(
        "a limit of {limit} USD leaves {left} USD, which is more than the {room} USD that the key that makes it has room for now"
    )]
    AboveRoom {
        /// The limit.
        limit: Amount,
        /// What of it is neither charged nor held.
        left: Amount,
        /// What the key that makes it may spend now.
        room: Amount,
    },
    /// The owner keys of a customer make no more keys now.
    #[error("{0}")]
    TooManyMade(MadeBound),
    /// The role of the token that asks, or the right of the owner key, does not cover this.
    #[error("{0}")]
    NotAllowed(String),
    /// The token that asks would do more in this UTC day than it may.
    #[error("{0}")]
    DailyReached(Box<DailyReached>),
    /// The idempotency key came with another body before.
    #[error(
        "this idempotency key came with another body before; use a new key for another request"
    )]
    KeyOfOtherBody,
    /// What the caller wants to change was changed since the caller read it.
    #[error(
        "{of} was changed since: the number of its last act is {last}, and you expected {expected}; read it again, and decide anew"
    )]
    ChangedSince {
        /// The key, or the customer itself.
        of: Scope,
        /// The position of the last act that changed it.
        last: i64,
        /// The one that the caller knows.
        expected: i64,
    },
    /// A request with the same idempotency key is still running at another gateway.
    #[error("a request with this idempotency key is still running; repeat it in a moment")]
    StillRunning,
    /// The reference was used by an operation with other facts.
    #[error(
        "reference {reference:?} was already used for another entry of customer {customer}; nothing was changed"
    )]
    ReferenceUsed {
        /// The reference in question.
        reference: String,
        /// The customer whose entry carries it.
        customer: CustomerId,
    },
    /// No payment has this reference.
    #[error(
        "there is no payment {0:?}; if it is on its way, say this again when it has been booked"
    )]
    NoSuchPayment(String),
    /// The customer has no grant with this id.
    #[error("there is no grant {0}")]
    NoSuchGrant(GrantId),
    /// The customer has no subscription with this id.
    #[error("there is no subscription {0}")]
    NoSuchSubscription(SubscriptionId),
    /// The customer has the plan, and a processor renews it.
    #[error("customer {0} has this plan already, as subscription {1}, and its processor renews it")]
    HasPlan(CustomerId, SubscriptionId),
    /// The operation id was used for something else.
    #[error("operation {0} was already used for something else")]
    OperationUsed(OperationId),
    /// No event has this id, or has it any more.
    #[error(
        "there is no event evt_{0}: events are kept for 30 days; read from the oldest on, without an id"
    )]
    NoSuchEvent(OperationId),
    /// There is no open hold with this id (never opened, or already ended another way).
    #[error("there is no open hold {0}")]
    NoSuchHold(OperationId),
    /// A refund names a request that was not charged, or exceeds what is left of its charge.
    #[error("at most {refundable} USD of request req_{request} can be refunded")]
    NotRefundable {
        /// The charged request.
        request: OperationId,
        /// What is left of its charge.
        refundable: Amount,
    },
    /// An amount is over a limit: a top-up, a balance or a lifetime credit would be too large, or an amount has the wrong sign.
    #[error("{0}")]
    Limit(String),
    /// A label has a character that cannot be shown, or that changes how others are.
    #[error("{what} must not contain U+{:04X}, which cannot be seen, ends the line or turns text around", u32::from(*.character))]
    Unprintable {
        /// Which text.
        what: String,
        /// The character.
        character: char,
    },
    /// The change does not apply to a key in this state (for example, unblocking a revoked key).
    #[error("{0}")]
    NotApplicable(String),
}

impl Refusal {
    /// The name that was used already, and the customer that has it.
    pub fn taken(&self) -> Option<(&str, CustomerId)> {
        let (Self::ExternalIdUsed {
            external_id: name,
            customer,
        }
        | Self::ReferenceUsed {
            reference: name,
            customer,
        }) = self
        else {
            return None;
        };
        Some((name.as_str(), *customer))
    }

    /// What a reader gets that goes on from an event that is not there.
    pub(crate) fn no_event(after: Option<OperationId>) -> LedgerError {
        let none = OperationId::from_bytes([0; 16]);
        Self::NoSuchEvent(after.unwrap_or(none)).into()
    }
}
