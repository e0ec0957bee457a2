//! Operations: every change that a ledger can make, as data.
//!
//! An operation is created once, by a caller who keeps its id, and may be applied again: after a rollback, after an unknown commit,
//! by another node. It declares what it reads (`needs`) and how durable it must be ([`Operation::class`]), so that a store can gather
//! many into one batch before it decides any of them. `apply` has what an operation does.
//!
//! An [`Asked`] wraps an administrative operation with who asks for it: a token, or a customer's owner key. Its right, its bounds and a
//! repetition are decided in the transaction of the effect, so no caller can forget them, and no two gateways can differ.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::answer::{AnswerId, ApiAnswer};
use crate::{
    Act, CapMaker, Credit, Customer, CustomerChange, CustomerId, DeliveryStep, EndedHold, FilesAct,
    Finish, Held, HoldMove, Key, KeyChange, KeyId, LedgerError, Lot, LotId, Moved, NewCustomer,
    NewHold, NewKey, NewLot, NewMove, NewPayment, NewReversal, NewToken, News, OperationId,
    OwnCost, PaymentMoved, Posted, Recovered, Redemption, Scope, SecretHash, Session, Taught,
    Timestamp, Token, TokenId, UnappliedAct,
};

/// One change of a ledger. Small, because it is moved through futures and queues on its way to the writer: large parts are behind a
/// pointer, and a bill is shared with its hold, which may have to submit it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Creates a key with its first credit.
    Create(Box<NewKey>),
    /// Changes a key.
    Change(Box<KeyChange>),
    /// Moves money in or back.
    Credit(Box<Credit>),
    /// Creates a customer.
    CreateCustomer(Box<NewCustomer>),
    /// Creates a customer together with its first key.
    Enrol(Box<(NewCustomer, NewKey)>),
    /// Changes a customer.
    ChangeCustomer(Box<CustomerChange>),
    /// Moves money from one customer to another.
    Move(Box<NewMove>),
    /// Books a payment with particulars, or stores it as unapplied.
    Pay(Box<NewPayment>),
    /// Creates a customer together with its first payment, unless that is known.
    PayFirst(Box<(NewCustomer, NewPayment)>),
    /// Takes in what went back of a payment.
    Reverse(Box<NewReversal>),
    /// Assigns an unapplied payment, or notes that it was sent back.
    EndUnapplied(Box<UnappliedAct>),
    /// Any of these on behalf of a token of the admin API or of an owner key, within its bounds and at most once.
    Asked(Box<Asked>),
    /// Creates a token.
    CreateToken(Box<NewToken>),
    /// Ends a token.
    RevokeToken {
        /// The token.
        token: TokenId,
        /// By whom and when.
        act: Act,
    },
    /// Makes a lot of vouchers.
    CreateLot(Box<NewLot>),
    /// What is left of a lot is worth nothing from now on.
    VoidLot {
        /// The lot.
        lot: LotId,
        /// By whom and when.
        act: Act,
    },
    /// Redeems a voucher.
    Redeem(Box<Redemption>),
    /// Opens a hold.
    Open(NewHold),
    /// Gives a hold another size, and stores its checkpoint.
    MoveHold(Box<HoldMove>),
    /// Ends a hold.
    Finish(Arc<Finish>),
    /// Ends a hold whatever its bill says: an absurd bill is replaced by the last checkpoint's counts.
    Resolve(Arc<Finish>),
    /// Starts a new epoch.
    BeginEpoch {
        /// The caller's clock: it dates what is recorded, and limits and expiry are judged by it.
        now: Timestamp,
    },
    /// Ends some of the holds of earlier epochs at their checkpoints.
    Recover {
        /// The current epoch.
        epoch: i64,
        /// The caller's clock: it dates what is recorded, and limits and expiry are judged by it.
        now: Timestamp,
    },
    /// Records slugs as published.
    Publish {
        /// The slugs.
        slugs: Vec<String>,
        /// The caller's clock: it dates what is recorded, and limits and expiry are judged by it.
        now: Timestamp,
    },
    /// Adds what targets have taught.
    Teach(Box<Taught>),
    /// Forgets what a target has taught.
    ForgetTarget(String),
    /// Stores what our own requests to a target cost.
    OwnCost(OwnCost),
    /// Notes that a configuration came into force, and tells what it changed for all.
    Files(FilesAct, Vec<News>),
    /// Asks for money by a customer's rule, when nothing but time has passed.
    JudgeTopUp {
        /// The customer.
        customer: CustomerId,
        /// The cause of what is told.
        operation: OperationId,
    },
    /// Notes steps of delivering events to webhooks.
    Deliver(Vec<DeliveryStep>),
    /// Stores a sign-in link.
    CreateLink {
        /// The key.
        key: KeyId,
        /// SHA-256 of its token.
        token: SecretHash,
        /// When it expires.
        expires: Timestamp,
        /// Who created it.
        act: Act,
    },
    /// Consumes a sign-in link.
    ConsumeLink {
        /// SHA-256 of its token.
        token: SecretHash,
        /// The caller's clock: it dates what is recorded, and limits and expiry are judged by it.
        now: Timestamp,
    },
    /// Opens a dashboard session.
    OpenSession(Session),
    /// Ends a dashboard session.
    CloseSession(SecretHash),
    /// Ends every dashboard session of a key.
    CloseSessions(KeyId),
    /// Notes the first use of a key, of one that a token made.
    MarkUsed {
        /// The key.
        key: KeyId,
        /// The caller's clock.
        now: Timestamp,
    },
}

/// How a store must treat an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationClass {
    /// Begins something: refused first when room becomes scarce.
    Hold,
    /// Continues or notes something: refused when there is no more room than for what ends holds.
    Continue,
    /// Ends something, or is needed to begin at all.
    Settle,
    /// A payment or a key change: on disk before it is confirmed, in every mode.
    Money,
    /// Like [`OperationClass::Settle`], and retried until its outcome is known.
    Resolve,
}

impl OperationClass {
    /// Whether it is done with the room that is reserved for it.
    #[must_use]
    pub const fn ends(self) -> bool {
        match self {
            Self::Settle | Self::Resolve => true,
            Self::Hold | Self::Continue | Self::Money => false,
        }
    }
}

impl Operation {
    /// How durable it must be before it is confirmed.
    #[must_use]
    pub const fn class(&self) -> OperationClass {
        match self {
            Self::Create(_)
            | Self::Change(_)
            | Self::Credit(_)
            | Self::CreateCustomer(_)
            | Self::Enrol(_)
            | Self::ChangeCustomer(_)
            | Self::Move(_)
            | Self::Pay(_)
            | Self::PayFirst(_)
            | Self::Reverse(_)
            | Self::EndUnapplied(_)
            | Self::Asked(_)
            | Self::CreateToken(_)
            | Self::RevokeToken { .. }
            | Self::CreateLot(_)
            | Self::VoidLot { .. }
            | Self::Redeem(_)
            | Self::BeginEpoch { .. }
            | Self::ForgetTarget(_)
            | Self::CreateLink { .. }
            | Self::ConsumeLink { .. }
            | Self::CloseSession(_)
            | Self::CloseSessions(_) => OperationClass::Money,
            Self::Open(_) => OperationClass::Hold,
            Self::MoveHold(_)
            | Self::Teach(_)
            | Self::OwnCost(_)
            | Self::Files(..)
            | Self::JudgeTopUp { .. }
            | Self::Deliver(_)
            | Self::OpenSession(_)
            | Self::MarkUsed { .. } => OperationClass::Continue,
            Self::Finish(_) | Self::Recover { .. } | Self::Publish { .. } => OperationClass::Settle,
            Self::Resolve(_) => OperationClass::Resolve,
        }
    }

    /// Whether an administrator does it, and a token or an owner key may ask for it.
    pub(crate) const fn is_administrative(&self) -> bool {
        matches!(
            self,
            Self::Create(_)
                | Self::Change(_)
                | Self::Credit(_)
                | Self::CreateCustomer(_)
                | Self::Enrol(_)
                | Self::ChangeCustomer(_)
                | Self::Move(_)
                | Self::Pay(_)
                | Self::PayFirst(_)
                | Self::Reverse(_)
                | Self::EndUnapplied(_)
                | Self::CreateLink { .. }
                | Self::CreateLot(_)
                | Self::VoidLot { .. }
        )
    }

    /// The id of an administrative operation.
    #[must_use]
    pub const fn id(&self) -> Option<OperationId> {
        let act = match self {
            Self::Create(new) => &new.act,
            Self::Change(change) => &change.act,
            Self::Credit(credit) => return Some(credit.operation),
            Self::CreateCustomer(new) => &new.act,
            Self::Enrol(both) => &both.1.act,
            Self::ChangeCustomer(change) => &change.act,
            Self::Move(moved) => &moved.act,
            Self::Pay(new) => &new.act,
            Self::PayFirst(both) => &both.1.act,
            Self::Reverse(new) => &new.act,
            Self::EndUnapplied(ending) => &ending.act,
            Self::CreateLink { act, .. } | Self::RevokeToken { act, .. } => act,
            Self::CreateToken(new) => &new.act,
            Self::CreateLot(new) => &new.act,
            Self::VoidLot { act, .. } => act,
            Self::Redeem(new) => &new.act,
            _ => return None,
        };
        Some(act.operation)
    }
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done, without a result.
    Done,
    /// The key as it is now.
    Key(Box<Key>),
    /// The customer as it is now.
    Customer(Box<Customer>),
    /// A credit was posted.
    Posted(Box<Posted>),
    /// Money was moved.
    Moved(Box<Moved>),
    /// A payment came, or went back.
    Payment(Box<PaymentMoved>),
    /// The token as it is now.
    Token(Box<Token>),
    /// The lot as it is now.
    Lot(Box<Lot>),
    /// What a token asked for was done, now or before.
    Answered(Box<Answered>),
    /// So much is held.
    Held(Held),
    /// A hold has ended.
    Finished(EndedHold),
    /// The epoch that began.
    Epoch(i64),
    /// The number of recovered holds; `None` if none were left.
    Recovered(Option<Recovered>),
    /// The key that a link belonged to.
    Owner(Option<KeyId>),
}

impl From<Key> for Outcome {
    fn from(key: Key) -> Self {
        Self::Key(Box::new(key))
    }
}

macro_rules! outcome {
    ($name:ident, $variant:ident, $inner:ty, $take:expr) => {
        pub(crate) fn $name(self) -> Result<$inner, LedgerError> {
            let take: fn(_) -> $inner = $take;
            match self {
                Self::$variant(value) => Ok(take(value)),
                other => Err(other.unexpected()),
            }
        }
    };
}

impl Outcome {
    outcome!(key, Key, Key, |key: Box<Key>| *key);
    outcome!(customer, Customer, Customer, |customer: Box<Customer>| {
        *customer
    });
    outcome!(moved, Moved, Moved, |moved: Box<Moved>| *moved);
    outcome!(payment, Payment, PaymentMoved, |moved: Box<
        PaymentMoved,
    >| { *moved });
    outcome!(lot, Lot, Lot, |lot: Box<Lot>| *lot);
    outcome!(token, Token, Token, |token: Box<Token>| *token);
    outcome!(answered, Answered, Answered, |answered: Box<Answered>| {
        *answered
    });
    outcome!(posted, Posted, Posted, |posted: Box<Posted>| *posted);
    outcome!(held, Held, Held, |held| held);
    outcome!(finished, Finished, EndedHold, |finished| finished);
    outcome!(epoch, Epoch, i64, |epoch| epoch);
    outcome!(recovered, Recovered, Option<Recovered>, |recovered| {
        recovered
    });
    outcome!(owner, Owner, Option<KeyId>, |owner| owner);

    /// The store applied something other than the requested operation.
    fn unexpected(&self) -> LedgerError {
        LedgerError::unknown(format!(
            "the store answered with {self:?}, which does not belong to the operation"
        ))
    }
}

/// Who asks for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asker {
    /// Whoever has the ledger itself, with a command or the console.
    #[default]
    House,
    /// A program of the seller's, with this token.
    Token(TokenId),
    /// A customer, with this owner key.
    Owner(KeyId),
}

impl Asker {
    /// The token.
    #[must_use]
    pub const fn token(self) -> Option<TokenId> {
        match self {
            Self::Token(token) => Some(token),
            Self::House | Self::Owner(_) => None,
        }
    }

    /// The key.
    pub(crate) const fn key(self) -> Option<KeyId> {
        match self {
            Self::Owner(key) => Some(key),
            Self::House | Self::Token(_) => None,
        }
    }

    /// Whose limit a cap of it is.
    pub(crate) const fn caps_as(self) -> CapMaker {
        match self {
            Self::House | Self::Token(_) => CapMaker::Seller,
            Self::Owner(_) => CapMaker::Owner,
        }
    }
}

/// An operation, and who asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Who asks.
    pub by: Asker,
    /// The caller's clock: a token's expiry and the age of stored answers are judged by it.
    pub at: Timestamp,
    /// How a repetition is recognised; `None` if the operation's own id and reference are enough.
    pub once: Option<Once>,
    /// What must not have been changed since the caller read it.
    pub expected: Option<ExpectedAct>,
    /// What to do: an administrative operation.
    pub operation: Operation,
}

/// A key, or a customer itself, as somebody read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedAct {
    /// Which.
    pub of: Scope,
    /// The position of the last act that changed it, as [`Ledger::last_act`](crate::Ledger::last_act) tells.
    pub position: i64,
}

/// How a repetition is recognised, and what it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// Method and path, as in `POST /api/v1/customers`.
    pub path: String,
    /// The caller's own name for this request.
    pub key: String,
    /// SHA-256 of the request's body.
    pub body: SecretHash,
    /// Makes the answer.
    pub answer: AnswerOf,
}

impl Once {
    /// How long a request waits for the answer to an earlier one with its key.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
    /// How long it waits before it looks again.
    pub(crate) const PAUSE: Duration = Duration::from_millis(50);

    /// Under what it is stored: a hash of token, path and key.
    pub(crate) fn id(&self, token: Option<TokenId>) -> AnswerId {
        let mut digest = Sha256::new_with_prefix(b"farebox answer");
        digest.update(token.map_or(-1, TokenId::to_i64).to_be_bytes());
        for text in [&self.path, &self.key] {
            digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(text);
        }
        AnswerId(digest.finalize().into())
    }
}

/// What makes an answer of an outcome, inside the transaction, without secrets.
#[derive(Clone)]
pub struct AnswerOf(Arc<dyn Fn(&Outcome) -> ApiAnswer + Send + Sync>);

impl AnswerOf {
    /// From a function that must give the same answer for the same outcome.
    #[must_use]
    pub fn new(of: impl Fn(&Outcome) -> ApiAnswer + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// The answer to an outcome.
    #[must_use]
    pub fn of(&self, outcome: &Outcome) -> ApiAnswer {
        (self.0)(outcome)
    }
}

impl PartialEq for AnswerOf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AnswerOf {}

impl fmt::Debug for AnswerOf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AnswerOf(…)")
    }
}

/// The result of an [`Asked`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What the operation did; `None` if it was done by an earlier request, whose answer this is.
    pub outcome: Option<Outcome>,
    /// The stored answer; `None` without [`Asked::once`].
    pub answer: Option<ApiAnswer>,
}

impl Answered {
    /// Whether an earlier request did it.
    #[must_use]
    pub const fn is_replay(&self) -> bool {
        self.outcome.is_none()
    }
}
