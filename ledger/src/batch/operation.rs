//! Operations: every change that a ledger can make, as data.
//!
//! An operation is created once, by a caller who keeps its id, and may be applied again: after a rollback, after an unknown commit,
//! by another node. It declares what it reads (`Operation::needs`) and how durable it must be ([`Operation::class`]), so that a
//! store can gather many into one batch before it decides any of them. `apply` has what an operation does.

use std::sync::Arc;

use crate::{
    Act, Change, Credit, Customer, CustomerAct, CustomerChange, CustomerId, EndedHold, Extension,
    FilesAct, Finish, Key, KeyChange, KeyId, LedgerError, Moved, NewCustomer, NewHold, NewKey,
    NewMove, NewPayment, NewReversal, News, OperationId, OwnCost, PaymentMoved, Posted, Recovered,
    Scope, SecretHash, Session, Timestamp, UnappliedAct, UnappliedEnd, Vote,
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
    /// Changes a customer.
    ChangeCustomer(Box<CustomerChange>),
    /// Moves money from one customer to another.
    Move(Box<NewMove>),
    /// Books a payment with particulars, or stores it as unapplied.
    Pay(Box<NewPayment>),
    /// Takes in what went back of a payment.
    Reverse(Box<NewReversal>),
    /// Assigns an unapplied payment, or notes that it was sent back.
    EndUnapplied(Box<UnappliedAct>),
    /// Opens a hold.
    Open(NewHold),
    /// Raises a hold and stores its checkpoint.
    Extend(Box<Extension>),
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
    /// Records votes on targets.
    Vote(Vec<Vote>),
    /// Forgets every vote on a target.
    ForgetVotes(String),
    /// Stores what our own requests to a target cost.
    OwnCost(OwnCost),
    /// Notes that a configuration came into force, and tells what it changed for all.
    Files(FilesAct, Vec<News>),
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
}

/// How a store must treat an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationClass {
    /// Begins something: refused while the disk is full.
    Hold,
    /// Ends or continues something.
    Settle,
    /// A payment or a key change: on disk before it is confirmed, in every mode.
    Money,
    /// Like [`OperationClass::Settle`], and retried until its outcome is known.
    Resolve,
}

/// No operation names more than two of a kind, and naming them must cost nothing.
pub(crate) type Few<T> = [Option<T>; 2];

/// What an operation reads. A store fetches all of it before it applies the operation, along with the keys that own what is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Needs<'operation> {
    /// Keys, with their customers: settings, state, account and the ends of its chains.
    pub(crate) keys: Few<KeyId>,
    /// Customers.
    pub(crate) customers: Few<CustomerId>,
    /// The customer with this external id.
    pub(crate) external_id: Option<&'operation str>,
    /// Open holds.
    pub(crate) holds: Few<OperationId>,
    /// Entries, by the operations that made them. An open hold's request has none.
    pub(crate) entries: Few<OperationId>,
    /// Administrative acts, and refunds of requests, by their operations.
    pub(crate) acts: Few<OperationId>,
    /// References, with the entries that carry them and the payments that have them.
    pub(crate) references: Few<&'operation str>,
    /// The token of a session or link.
    pub(crate) token: Option<SecretHash>,
    /// A key, or a customer with all keys, whose charges by the hour and open holds are read, all of them.
    pub(crate) spending: Option<Scope>,
    /// Holds of dead processes: in a file, those of epochs before this one.
    pub(crate) dead: Option<i64>,
}

impl Needs<'_> {
    /// What every administrative operation reads: its key or customer, and whether its id was used for anything.
    fn administrative(of: Scope, operations: Few<OperationId>) -> Self {
        let (key, customer) = match of {
            Scope::Key(key) => (Some(key), None),
            Scope::Customer(customer) => (None, Some(customer)),
        };
        Self {
            keys: [key, None],
            customers: [customer, None],
            external_id: None,
            holds: operations,
            entries: operations,
            acts: operations,
            references: [None, None],
            token: None,
            spending: None,
            dead: None,
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
            | Self::ChangeCustomer(_)
            | Self::Move(_)
            | Self::Pay(_)
            | Self::Reverse(_)
            | Self::EndUnapplied(_)
            | Self::BeginEpoch { .. }
            | Self::ForgetVotes(_)
            | Self::CreateLink { .. }
            | Self::ConsumeLink { .. }
            | Self::CloseSession(_)
            | Self::CloseSessions(_) => OperationClass::Money,
            Self::Open(_) => OperationClass::Hold,
            Self::Extend(_)
            | Self::Finish(_)
            | Self::Recover { .. }
            | Self::Publish { .. }
            | Self::Vote(_)
            | Self::OwnCost(_)
            | Self::Files(..)
            | Self::OpenSession(_) => OperationClass::Settle,
            Self::Resolve(_) => OperationClass::Resolve,
        }
    }

    /// What an administrative act may read.
    fn needs_of_act(&self) -> Needs<'_> {
        let one = |operation| [Some(operation), None];
        match self {
            Self::Create(new) => Needs {
                references: [new.first_credit.as_ref().map(|(_, name)| &**name), None],
                keys: [Some(new.id), new.within.made_by],
                customers: [Some(new.belongs_to()), None],
                ..Needs::administrative(new.id.into(), one(new.act.operation))
            },
            Self::Change(change) => Needs {
                // A limit that is new counts what runs.
                spending: matches!(change.change, Change::SetCap(_) | Change::Set(_))
                    .then_some(change.key.into()),
                ..Needs::administrative(change.key.into(), one(change.act.operation))
            },
            Self::CreateCustomer(new) => Needs {
                external_id: new.settings.external_id.as_deref(),
                ..Needs::administrative(new.id.into(), one(new.act.operation))
            },
            Self::ChangeCustomer(change) => {
                let of = Scope::Customer(change.customer);
                let (spending, external_id) = match &change.change {
                    CustomerAct::SetCap(_) => (Some(of), None),
                    CustomerAct::Set(settings) => (None, settings.external_id.as_deref()),
                    _ => (None, None),
                };
                Needs {
                    spending,
                    external_id,
                    ..Needs::administrative(of, one(change.act.operation))
                }
            }
            Self::Move(moved) => Needs {
                references: [Some(&moved.reference), None],
                customers: [Some(moved.from), Some(moved.into)],
                ..Needs::administrative(
                    moved.from.into(),
                    [Some(moved.act.operation), Some(moved.arrival())],
                )
            },
            Self::Credit(credit) => {
                let (_, _, refunded) = credit.facts();
                Needs {
                    references: [Some(&credit.reference), None],
                    ..Needs::administrative(credit.to, [Some(credit.operation), refunded])
                }
            }
            _ => Needs::default(),
        }
    }

    /// What a payment, or what went back of one, may read.
    fn needs_of_payment(&self) -> Needs<'_> {
        let one = |operation| [Some(operation), None];
        match self {
            Self::Pay(new) => Needs {
                references: [Some(&new.reference), None],
                ..Needs::administrative(new.customer.into(), one(new.act.operation))
            },
            Self::Reverse(new) => Needs {
                references: [Some(&new.payment), Some(&new.reference)],
                holds: one(new.act.operation),
                entries: one(new.act.operation),
                acts: one(new.act.operation),
                ..Needs::default()
            },
            Self::EndUnapplied(ending) => {
                let operation = ending.act.operation;
                let both = [Some(operation), Some(operation.derived(b"farebox due"))];
                let assigned = match ending.end {
                    UnappliedEnd::Assign(customer) => Some(customer),
                    UnappliedEnd::Return { .. } => None,
                };
                Needs {
                    references: [Some(&ending.payment), None],
                    customers: [assigned, None],
                    holds: both,
                    entries: both,
                    acts: both,
                    ..Needs::default()
                }
            }
            _ => Needs::default(),
        }
    }

    /// Everything that applying it may read.
    pub(crate) fn needs(&self) -> Needs<'_> {
        let (none, one) = (Needs::default(), |operation| [Some(operation), None]);
        match self {
            Self::BeginEpoch { .. }
            | Self::Publish { .. }
            | Self::Vote(_)
            | Self::ForgetVotes(_)
            | Self::OwnCost(_)
            | Self::Files(..) => none,
            Self::Create(_)
            | Self::Change(_)
            | Self::CreateCustomer(_)
            | Self::ChangeCustomer(_)
            | Self::Move(_)
            | Self::Credit(_) => self.needs_of_act(),
            Self::Pay(_) | Self::Reverse(_) | Self::EndUnapplied(_) => self.needs_of_payment(),
            Self::Open(new) => Needs {
                keys: [Some(new.key), None],
                customers: [Some(new.customer), None],
                holds: one(new.request),
                entries: one(new.request),
                ..none
            },
            Self::Extend(extension) => Needs {
                holds: one(extension.request),
                ..none
            },
            Self::Finish(finish) | Self::Resolve(finish) => Needs {
                holds: one(finish.request),
                entries: one(finish.request),
                ..none
            },
            Self::Recover { epoch, .. } => Needs {
                dead: Some(*epoch),
                ..none
            },
            Self::CreateLink {
                key, token, act, ..
            } => Needs {
                token: Some(*token),
                ..Needs::administrative((*key).into(), one(act.operation))
            },
            Self::OpenSession(session) => Needs {
                keys: [Some(session.key), None],
                token: Some(session.token),
                ..none
            },
            Self::CloseSessions(key) => Needs {
                keys: [Some(*key), None],
                ..none
            },
            Self::ConsumeLink { token, .. } | Self::CloseSession(token) => Needs {
                token: Some(*token),
                ..none
            },
        }
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
    /// A hold has ended.
    Finished(EndedHold),
    /// The epoch that began.
    Epoch(i64),
    /// The number of recovered holds; `None` if none were left.
    Recovered(Option<Recovered>),
    /// The key that a link belonged to.
    Owner(Option<KeyId>),
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
    outcome!(posted, Posted, Posted, |posted: Box<Posted>| *posted);
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
