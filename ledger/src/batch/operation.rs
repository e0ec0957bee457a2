//! Operations: every change that a ledger can make, as data.
//!
//! An operation is created once, by a caller who keeps its id, and may be applied again: after a rollback, after an unknown commit,
//! by another node. `operations!` is the only list of them; who may ask for one, what it reads and what it does stands beside its procedure
//! in `apply`. So a store can gather many into one batch before it decides any of them.
//!
//! An [`Asked`] wraps an administrative operation with who asks for it: a token, or a customer's owner key. Its right, its bounds and a
//! repetition are decided in the transaction of the effect, so no caller can forget them, and no two gateways can differ.

use std::borrow::{Borrow, BorrowMut};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::asker::{Asker, BoundedAsker};
use super::needs::Needs;
use super::outcome::{AnswerOf, Answered, Outcome};
use super::rows::Rows;
use crate::rule::answer::AnswerId;
use crate::{
    BeginEpoch, CloseSession, CloseSessions, ConsumeLink, Credit, Customer, CustomerChange,
    DeliverySteps, EndReservation, EndedHold, Enrolment, Finish, FirstPayment, ForgetTarget,
    GrantAnswer, Held, HoldMove, JudgeTopUp, Key, KeyChange, KeyId, LedgerError, Lot, MarkUsed,
    Moved, NewCustomer, NewGrant, NewHold, NewKey, NewLink, NewLot, NewMove, NewPayment,
    NewReservation, NewReversal, NewToken, NewVisit, NoteFiles, OperationId, OwnCost, PaymentMoved,
    PlanAnswer, PlanChange, Posted, Publish, Recover, Recovered, Redemption, Refusal, Reservation,
    ResolveHold, RevokeToken, Scope, SecretHash, Session, SetDefaults, SettleGrants, Taught,
    Timestamp, Token, TokenId, UnappliedAct, VoidGrant, VoidLot,
};

/// What an operation is and does. Nothing has a default, so that none is half done.
pub(crate) trait LedgerOperation {
    /// One that an administrator does, and a token or an owner key may ask for.
    fn askable(&self) -> Option<&dyn AskableOperation>;
    /// Everything that applying it may read.
    fn needs(&self) -> Needs<'_>;
    /// Applies it. It may be applied again after a rollback; repeating it later has no second effect, but for what targets have taught,
    /// which then counts twice.
    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal>;
    /// Replaces what a store cannot keep in a text.
    fn clean(&mut self);
}

/// An administrative operation. A token that manages may do every one.
pub(crate) trait AskableOperation {
    /// Its id, under which its act stands.
    fn id(&self) -> OperationId;
    /// Refuses what of it others may not do.
    fn check_asked(&self, rows: &Rows, by: BoundedAsker) -> Result<(), Refusal>;
}

/// What is given to [`Perform::perform`](crate::Perform::perform), and what comes of it.
pub trait Performable: Into<Operation> + Send {
    /// What it gives.
    type Gives: TryFrom<Outcome, Error = LedgerError>;
}

/// The type of an operation that may be boxed.
macro_rules! payload {
    (Box $of:ident) => { $of };
    ($of:ident) => { $of };
    ($of:ident $with:ident) => { $of<$with> };
}

/// The enum of all operations, what each gives and how durable it must be, the way from the enum to what each does, and from each into it.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($of:ident $(<$in:ident>)?) => $gives:ty, $class:ident;)+) => {
        /// One change of a ledger. Small, because it is moved through futures and queues on its way to the writer: large parts are
        /// behind a pointer, and a bill is shared with its hold, which may have to submit it again.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Operation {
            $($(#[$doc])* $name($of $(<$in>)?),)+
        }

        impl Operation {
            /// How durable it must be before it is confirmed.
            #[must_use]
            pub const fn class(&self) -> OperationClass {
                match self {
                    $(Self::$name(_) => OperationClass::$class,)+
                }
            }

            fn inner(&self) -> &dyn LedgerOperation {
                match self {
                    $(Self::$name(one) => Borrow::<payload!($of $($in)?)>::borrow(one),)+
                }
            }

            fn inner_mut(&mut self) -> &mut dyn LedgerOperation {
                match self {
                    $(Self::$name(one) => BorrowMut::<payload!($of $($in)?)>::borrow_mut(one),)+
                }
            }
        }

        $(
            impl From<payload!($of $($in)?)> for Operation {
                fn from(one: payload!($of $($in)?)) -> Self {
                    Self::$name(one.into())
                }
            }

            impl Performable for payload!($of $($in)?) {
                type Gives = $gives;
            }
        )+
    };
}

operations! {
    /// Creates a key with its first credit, and its customer if it names none, in one step. Repeating the operation id returns the key
    /// created first.
    Create(Box<NewKey>) => Key, Money;
    /// Applies one administrative change to a key and writes it to the audit. Block, revoke and rotate end its sessions and links. A
    /// revoked key accepts only another revocation.
    Change(Box<KeyChange>) => Key, Money;
    /// Top-up, adjustment, refund or write-off, of a customer. A revoked key and a closed customer accept no more top-ups. Repeating a
    /// reference with the same facts returns the first answer; with other facts it is a [`Refusal::ReferenceUsed`].
    Credit(Box<Credit>) => Posted, Money;
    /// Creates a customer without keys or money. Repeating the operation id returns the one created first. An external id that another
    /// customer has is refused.
    CreateCustomer(Box<NewCustomer>) => Customer, Money;
    /// Creates a customer together with its first key.
    Enrol(Box<Enrolment>) => Key, Money;
    /// Applies one administrative change to a customer and writes it to the audit.
    ChangeCustomer(Box<CustomerChange>) => Customer, Money;
    /// Moves money that was paid and is not held from one customer to another: two entries with one reference, in one step. Repeating
    /// the reference with the same facts returns both as they are.
    Move(Box<NewMove>) => Moved, Money;
    /// Books a payment with particulars. One whose credit a rule refuses (a closed customer, the highest balance) is stored as
    /// unapplied under its reference. Repeating the reference with the same facts returns the payment as it is.
    Pay(Box<NewPayment>) => PaymentMoved, Money;
    /// Creates a customer together with its first payment, unless that is known.
    PayFirst(Box<FirstPayment>) => PaymentMoved, Money;
    /// Takes in what went back of a payment so far, and books the difference in what is due. What is not there becomes the customer's
    /// claim, which is paid first. Any order and repetition ends in the same registers, claims and sums.
    Reverse(Box<NewReversal>) => PaymentMoved, Money;
    /// Assigns an unapplied payment to a customer, or notes that its money was sent back.
    EndUnapplied(Box<UnappliedAct>) => PaymentMoved, Money;
    /// Any of these on behalf of a token of the admin API or of an owner key, within its bounds and at most once.
    Asked(Box<Asked>) => Answered, Money;
    /// Creates a token. Repeating the operation id returns the one created first.
    CreateToken(Box<NewToken>) => Token, Money;
    /// Ends a token for ever.
    RevokeToken(RevokeToken) => Token, Money;
    /// Makes a lot of vouchers. Repeating the operation id returns the lot as it is.
    CreateLot(Box<NewLot>) => Lot, Money;
    /// What is left of a lot is worth nothing from now on.
    VoidLot(VoidLot) => Lot, Money;
    /// Gives credit that may end, or begins later. Repeating the reference with the same facts returns the grant as it is.
    Grant(Box<NewGrant>) => GrantAnswer, Money;
    /// Takes back what is left of a grant; what running requests hold of it they can still spend.
    VoidGrant(Box<VoidGrant>) => GrantAnswer, Money;
    /// Gives periods of a plan, or changes a customer's subscription.
    ChangePlan(Box<PlanChange>) => PlanAnswer, Money;
    /// Books what time has done to a customer's grants and plans.
    SettleGrants(SettleGrants) => (), Continue;
    /// Keeps credit free of the daily bound of the token that asks, while a buyer pays; or keeps it for longer, because the checkout was
    /// completed without its payment. Repeating it changes nothing.
    Reserve(Box<NewReservation>) => Reservation, Money;
    /// Ends a reservation before its time. It may be gone.
    EndReservation(EndReservation) => (), Money;
    /// Redeems a voucher, once. Whoever redeemed it gets the same entry again; unknown, void, expired and used by another are one refusal.
    Redeem(Box<Redemption>) => Posted, Money;
    /// Reserves money of a key's customer. Refused when key or customer is not active, there is less room, or the hold's id was used.
    /// Repeating it with the same facts while the hold is open has no second effect.
    Open(NewHold) => Held, Hold;
    /// Gives a hold another size, and stores its checkpoint. A move that is not newer than what is known changes nothing, and is answered
    /// with what is held.
    MoveHold(Box<HoldMove>) => Held, Continue;
    /// Ends a hold with exactly one charge entry. Repeating it, even with another bill, returns the first outcome (with the amount
    /// available now). An absurd bill is refused and the hold stays open.
    Finish(Arc<Finish>) => EndedHold, Settle;
    /// Ends a hold whatever its bill says: an absurd bill is replaced by the last checkpoint's counts.
    Resolve(ResolveHold) => EndedHold, Resolve;
    /// Starts a new epoch.
    BeginEpoch(BeginEpoch) => i64, Money;
    /// Ends some of the holds of earlier epochs at their checkpoints.
    Recover(Recover) => Option<Recovered>, Settle;
    /// Records slugs as published. Known ones keep their first date.
    Publish(Publish) => (), Settle;
    /// Adds what targets have taught to the sums of before, which are halved whenever they reach five million tokens. An excess stands
    /// with the largest that its customer had there in seven days; those that are older go. Repeating it adds it twice.
    Teach(Box<Taught>) => (), Continue;
    /// Forgets what a target has taught, excesses too.
    ForgetTarget(ForgetTarget) => (), Money;
    /// Stores what our own requests to a target cost in an hour, in place of this gateway's earlier total of that hour.
    OwnCost(OwnCost) => (), Continue;
    /// Notes that a configuration came into force, and tells what it changed for all customers. Repeating it has no second effect.
    Files(NoteFiles) => (), Continue;
    /// Puts the defaults of a gateway's catalog into force, unless these are. From the next batch on they bind whoever has none of its own.
    SetDefaults(Box<SetDefaults>) => (), Settle;
    /// Asks for money by a customer's rule, when nothing but time has passed.
    JudgeTopUp(JudgeTopUp) => (), Continue;
    /// Notes what became of events on their way to webhooks.
    Deliver(DeliverySteps) => (), Continue;
    /// Stores a one-time sign-in link of a key and audits who created it.
    CreateLink(NewLink) => (), Money;
    /// Consumes the link with which an owner came to the shop of the token that asks, once. For a day, the token may set this customer's rule
    /// of auto top-up.
    Visit(Box<NewVisit>) => Key, Money;
    /// Consumes a link and returns its key, once; `None` if it is unknown, used or expired.
    ConsumeLink(ConsumeLink) => Option<KeyId>, Money;
    /// Opens a dashboard session, unless the key is blocked or revoked. Beyond [`Session::MOST_OF_KEY`], the key's oldest session ends.
    OpenSession(Session) => (), Continue;
    /// Ends a dashboard session; unknown ones are fine.
    CloseSession(CloseSession) => (), Money;
    /// Ends every dashboard session of a key.
    CloseSessions(CloseSessions) => (), Money;
    /// Notes the first use of a key that a token made, so that no token reissues it.
    MarkUsed(MarkUsed) => (), Continue;
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
    /// The id of an operation that a token or an owner key may ask for.
    #[must_use]
    pub fn id(&self) -> Option<OperationId> {
        self.askable().map(AskableOperation::id)
    }

    /// It, if a token or an owner key may ask for it.
    pub(crate) fn askable(&self) -> Option<&dyn AskableOperation> {
        self.inner().askable()
    }

    /// Everything that applying it may read.
    pub(crate) fn needs(&self) -> Needs<'_> {
        self.inner().needs()
    }

    pub(crate) fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        self.inner().apply(rows)
    }

    /// Replaces what a store cannot keep in a text.
    pub(crate) fn clean(&mut self) {
        self.inner_mut().clean();
    }

    pub(crate) const fn opens(&self) -> Option<&NewHold> {
        if let Self::Open(new) = self {
            Some(new)
        } else {
            None
        }
    }

    /// What it makes of an open hold.
    pub(crate) const fn moves(&self) -> Option<&HoldMove> {
        if let Self::MoveHold(moved) = self {
            Some(moved)
        } else {
            None
        }
    }

    /// How it ends a hold.
    pub(crate) const fn finish(&self) -> Option<&Arc<Finish>> {
        if let Self::Finish(finish) | Self::Resolve(ResolveHold(finish)) = self {
            Some(finish)
        } else {
            None
        }
    }

    /// How it ends a hold whose end nobody else will tell again.
    pub(crate) fn resolution(self) -> Option<Arc<Finish>> {
        if let Self::Resolve(ResolveHold(finish)) = self {
            Some(finish)
        } else {
            None
        }
    }

    /// Whether an epoch begins with it.
    pub(crate) const fn begins_epoch(&self) -> bool {
        matches!(self, Self::BeginEpoch(_))
    }

    /// Whether it ends holds of earlier epochs, whichever there are.
    pub(crate) const fn recovers(&self) -> bool {
        matches!(self, Self::Recover(_))
    }

    /// Whether what others have by default may be something else behind it.
    pub(crate) const fn sets_defaults(&self) -> bool {
        matches!(self, Self::SetDefaults(_))
    }

    /// Whether somebody signs in with it.
    pub(crate) const fn signs_in(&self) -> bool {
        matches!(self, Self::OpenSession(_))
    }
}

/// An operation, and who asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Whose rights and bounds are judged, in the transaction of the effect.
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

    /// Under what it is stored: a hash of who asks, path and key.
    pub(crate) fn id(&self, by: Asker) -> AnswerId {
        let mut digest = Sha256::new_with_prefix(b"farebox answer");
        let token = by.token().map_or(-1, TokenId::to_i64);
        digest.update(token.to_be_bytes());
        if let Some(owner) = by.key() {
            digest.update(b"owner");
            digest.update(owner.to_i64().to_be_bytes());
        }
        for text in [&self.path, &self.key] {
            digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(text);
        }
        AnswerId(digest.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_makes_the_enum_and_the_ways_to_and_from_it() {
        let now = Timestamp::from_millis(7);
        let finish = Arc::new(Finish {
            request: OperationId::from_bytes([1; 16]),
            bill: crate::Bill::default(),
            at: now,
        });
        // Boxed, shared, plain, and one of another operation's type.
        let asked = Asked {
            by: Asker::House,
            at: now,
            once: None,
            expected: None,
            operation: BeginEpoch { now }.into(),
        };
        assert!(matches!(Operation::from(asked.clone()), Operation::Asked(of) if *of == asked));
        let shared = Operation::from(Arc::clone(&finish));
        assert!(shared.finish().is_some_and(|of| Arc::ptr_eq(of, &finish)));
        let resolve = Operation::from(ResolveHold(finish));
        assert_ne!(resolve, shared);
        let classes = [
            (Operation::from(asked), OperationClass::Money),
            (shared, OperationClass::Settle),
            (resolve, OperationClass::Resolve),
            (ForgetTarget(String::new()).into(), OperationClass::Money),
        ];
        for (operation, class) in classes {
            assert_eq!(operation.class(), class, "{operation:?}");
        }
        let mut forget = Operation::from(ForgetTarget("a\0b".to_owned()));
        forget.clean();
        assert_eq!(forget, ForgetTarget("a\u{fffd}b".to_owned()).into());
        // It is moved through every queue.
        assert!(size_of::<Operation>() <= 136);
    }

    #[test]
    fn what_comes_of_an_operation_is_what_it_gives_or_an_error() {
        let gives = |outcome: Outcome| <Publish as Performable>::Gives::try_from(outcome);
        assert_eq!(gives(Outcome::Done), Ok(()));
        assert!(matches!(
            gives(Outcome::Epoch(1)),
            Err(LedgerError::Unknown(_))
        ));
        assert_eq!(i64::try_from(Outcome::from(3_i64)), Ok(3));
    }
}
