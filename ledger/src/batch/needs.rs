//! What operations read: a store fetches all of it before it applies them.

use super::answer::AnswerId;
use super::operation::Operation;
use crate::{
    Act, Change, CustomerAct, CustomerId, KeyId, LotId, OperationId, Scope, SecretHash, TokenId,
    UnappliedEnd,
};

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
    /// A token of the admin API, locked.
    pub(crate) api_token: Option<TokenId>,
    /// The token of the admin API with this label.
    pub(crate) api_label: Option<&'operation str>,
    /// An act that belongs to no customer, by its operation, with the end of their chain.
    pub(crate) house_act: Option<OperationId>,
    /// The last act that changed this key, or this customer itself.
    pub(crate) last_act: Option<Scope>,
    /// An answer that is kept for repetitions.
    pub(crate) answer: Option<AnswerId>,
    /// A lot of vouchers, locked.
    pub(crate) lot: Option<LotId>,
    /// A voucher by its code, with its lot, which is locked, and who redeemed one of that lot.
    pub(crate) voucher: Option<SecretHash>,
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
            holds: operations,
            entries: operations,
            acts: operations,
            ..Needs::default()
        }
    }
}

/// These keys, and the one that asks. What an owner asks for names at most one other.
fn with_asker(keys: Few<KeyId>, asker: Option<KeyId>) -> Few<KeyId> {
    match (keys, asker) {
        ([None, second], Some(asker)) => [Some(asker), second],
        ([first, None], Some(asker)) if first != Some(asker) => [first, Some(asker)],
        (keys, _) => keys,
    }
}

impl Operation {
    /// What an operation of the admin API, or on vouchers, may read.
    fn needs_of_token(&self) -> Needs<'_> {
        let used = |operation| {
            let one = [Some(operation), None];
            Needs {
                holds: one,
                entries: one,
                acts: one,
                ..Needs::default()
            }
        };
        let of_act = |token, act: &Act| Needs {
            api_token: Some(token),
            house_act: Some(act.operation),
            ..used(act.operation)
        };
        match self {
            Self::Asked(asked) => {
                let needs = asked.operation.needs();
                Needs {
                    api_token: asked.by.token(),
                    answer: asked.once.as_ref().map(|once| once.id(asked.by.token())),
                    last_act: asked.expected.map(|expected| expected.of),
                    keys: with_asker(needs.keys, asked.by.key()),
                    ..needs
                }
            }
            Self::CreateToken(new) => Needs {
                api_label: Some(&new.label),
                ..of_act(new.id, &new.act)
            },
            Self::RevokeToken { token, act } => of_act(*token, act),
            Self::CreateLot(new) => Needs {
                lot: Some(new.id),
                house_act: Some(new.act.operation),
                ..used(new.act.operation)
            },
            Self::VoidLot { lot, act } => Needs {
                lot: Some(*lot),
                house_act: Some(act.operation),
                ..used(act.operation)
            },
            Self::Redeem(new) => Needs {
                keys: [Some(new.key), None],
                voucher: Some(new.code),
                ..used(new.act.operation)
            },
            _ => Needs::default(),
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
                spending: matches!(
                    change.change,
                    Change::SetCap(_) | Change::Set(_) | Change::Reissue { .. }
                )
                .then_some(change.key.into()),
                ..Needs::administrative(change.key.into(), one(change.act.operation))
            },
            Self::CreateCustomer(new) => Needs {
                external_id: new.settings.external_id.as_deref(),
                ..Needs::administrative(new.id.into(), one(new.act.operation))
            },
            Self::Enrol(both) => {
                let (customer, key) = &**both;
                let operations = [Some(customer.act.operation), Some(key.act.operation)];
                Needs {
                    external_id: customer.settings.external_id.as_deref(),
                    references: [key.first_credit.as_ref().map(|(_, name)| &**name), None],
                    customers: [Some(customer.id), None],
                    ..Needs::administrative(key.id.into(), operations)
                }
            }
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

    /// What a payment, what went back of one, or what asks for one may read.
    fn needs_of_payment(&self) -> Needs<'_> {
        let one = |operation| [Some(operation), None];
        match self {
            Self::Pay(new) => Needs {
                references: [Some(&new.reference), None],
                ..Needs::administrative(new.customer.into(), one(new.act.operation))
            },
            Self::PayFirst(both) => {
                let (customer, payment) = &**both;
                let operations = [Some(customer.act.operation), Some(payment.act.operation)];
                Needs {
                    external_id: customer.settings.external_id.as_deref(),
                    references: [Some(&payment.reference), None],
                    ..Needs::administrative(customer.id.into(), operations)
                }
            }
            Self::Reverse(new) => Needs {
                references: [Some(&new.payment), Some(&new.reference)],
                holds: one(new.act.operation),
                entries: one(new.act.operation),
                acts: one(new.act.operation),
                ..Needs::default()
            },
            Self::JudgeTopUp { customer, .. } => Needs {
                customers: [Some(*customer), None],
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
            | Self::Teach(_)
            | Self::ForgetTarget(_)
            | Self::OwnCost(_)
            | Self::Files(..)
            | Self::Deliver(_) => none,
            Self::Create(_)
            | Self::Change(_)
            | Self::CreateCustomer(_)
            | Self::Enrol(_)
            | Self::ChangeCustomer(_)
            | Self::Move(_)
            | Self::Credit(_) => self.needs_of_act(),
            Self::Pay(_)
            | Self::PayFirst(_)
            | Self::Reverse(_)
            | Self::EndUnapplied(_)
            | Self::JudgeTopUp { .. } => self.needs_of_payment(),
            Self::Asked(_)
            | Self::CreateToken(_)
            | Self::RevokeToken { .. }
            | Self::CreateLot(_)
            | Self::VoidLot { .. }
            | Self::Redeem(_) => self.needs_of_token(),
            Self::Open(new) => Needs {
                keys: [Some(new.key), None],
                customers: [Some(new.customer), None],
                holds: one(new.request),
                entries: one(new.request),
                ..none
            },
            Self::MoveHold(moved) => Needs {
                holds: one(moved.request),
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
            Self::CloseSessions(key) | Self::MarkUsed { key, .. } => Needs {
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
