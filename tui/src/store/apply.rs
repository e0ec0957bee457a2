//! Sends an act to the ledger, and finds out its outcome.
//!
//! An operation is on disk before it is sent and stays there until its outcome was seen. A commit that failed half-way is queried
//! by its id until the ledger answers; nothing is ever sent under a second id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox_ledger::{
    Act, Change, Credit, CustomerAct, CustomerChange, CustomerId, Key, KeyChange, KeyId,
    LedgerError, LinkToken, Membership, NewCustomer, NewKey, NewLink, NewMove, OperationId,
    Perform, Posted, Scope, Secret, Timestamp,
};

use super::StoreShared;
use crate::app::message::Message;
use crate::app::modal::{ActOutcome, ApplyError, ListedOperation, OutcomeLookup};
use crate::app::party::Party;
use crate::clock;
use crate::plan::{ActPlan, Pending};
use crate::state_file::{OpenOperation, runs_elsewhere};

/// Secrets created for operations whose outcome was not seen yet.
pub(crate) type PendingSecrets = Arc<Mutex<HashMap<OperationId, Made>>>;

const ASK_AGAIN: Duration = Duration::from_secs(2);

/// The part of an operation's result that is shown once.
#[derive(Debug, Clone)]
pub(crate) enum Made {
    Key(Secret),
    Link(LinkToken, Timestamp),
}

impl StoreShared {
    pub(super) async fn send(&self, pending: Pending) {
        let operation = pending.operation;
        let result = self.apply(&pending).await;
        if let Err(ApplyError::No(_)) = &result {
            let _ = self.state.forget(operation);
            self.drop_made(operation);
        }
        self.tell(Message::Applied { operation, result });
    }

    async fn apply(&self, pending: &Pending) -> Result<ActOutcome, ApplyError> {
        let (state, kept) = (self.state.clone(), pending.clone());
        let kept = tokio::task::spawn_blocking(move || state.keep(&kept)).await;
        let kept = kept.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        kept.map_err(|error| ApplyError::No(format!("the operation cannot be saved: {error}")))?;
        self.commit(pending).await.map_err(|error| match error {
            LedgerError::Unknown(cause) => ApplyError::Unknown(cause.to_string()),
            definite => ApplyError::No(definite.to_string()),
        })
    }

    async fn commit(&self, pending: &Pending) -> Result<ActOutcome, LedgerError> {
        let Pending {
            operation,
            of,
            plan,
            actor,
            at,
            ..
        } = pending.clone();
        if let ActPlan::Credit {
            kind,
            amount,
            reference,
        } = plan
        {
            let credit = Credit {
                operation,
                to: of,
                kind,
                amount,
                reference,
                actor,
                at,
            };
            return self.ledger.perform(credit).await.map(told);
        }
        let act = Act {
            operation,
            actor,
            at,
        };
        match of {
            Scope::Key(key) => self.commit_key(key, plan, act).await,
            Scope::Customer(customer) => self.commit_customer(customer, plan, act).await,
        }
    }

    async fn commit_key(
        &self,
        key: KeyId,
        plan: ActPlan,
        act: Act,
    ) -> Result<ActOutcome, LedgerError> {
        let operation = act.operation;
        let change = match plan {
            ActPlan::Create {
                settings,
                first,
                customer,
            } => {
                let secret = self.secret(operation, key);
                let new = NewKey {
                    within: Membership {
                        customer,
                        ..Membership::default()
                    },
                    id: key,
                    secret: secret.hash(),
                    settings,
                    first_credit: first,
                    act,
                };
                let key = self.ledger.perform(new).await?;
                return Ok(self.new_secret(operation, key, secret));
            }
            ActPlan::Rotate { overlap } => {
                let secret = self.secret(operation, key);
                let change = Change::Rotate {
                    secret: secret.hash(),
                    old_until: overlap.until(act.at),
                };
                let change = KeyChange { key, change, act };
                let key = self.ledger.perform(change).await?;
                return Ok(self.new_secret(operation, key, secret));
            }
            ActPlan::Link => return self.link(key, act).await,
            ActPlan::Edit(planned) => Change::Edit(planned.edit),
            ActPlan::Block => Change::Block,
            ActPlan::Unblock => Change::Unblock,
            ActPlan::Revoke => Change::Revoke,
            _ => return Err(LedgerError::unavailable("this act is of no key")),
        };
        let change = KeyChange { key, change, act };
        let key = self.ledger.perform(change).await?;
        Ok(ActOutcome::Changed(key.into()))
    }

    async fn commit_customer(
        &self,
        customer: CustomerId,
        plan: ActPlan,
        act: Act,
    ) -> Result<ActOutcome, LedgerError> {
        let change = match plan {
            ActPlan::CreateCustomer(settings) => {
                let new = NewCustomer {
                    id: customer,
                    settings,
                    personal: None,
                    act,
                };
                let made = self.ledger.perform(new).await?;
                return Ok(ActOutcome::Changed(made.into()));
            }
            ActPlan::Move {
                into,
                amount,
                reference,
            } => {
                let from = customer;
                let moved = self
                    .ledger
                    .perform(NewMove {
                        from,
                        into,
                        amount,
                        reference,
                        act,
                    })
                    .await?;
                return Ok(ActOutcome::Moved {
                    from: Box::new(moved.from),
                    repeated: moved.repeated,
                });
            }
            ActPlan::EditCustomer(planned) => CustomerAct::Edit(planned.edit),
            ActPlan::Suspend => CustomerAct::Suspend,
            ActPlan::Resume => CustomerAct::Resume,
            ActPlan::Close => CustomerAct::Close,
            _ => return Err(LedgerError::unavailable("this act is of no customer")),
        };
        let change = CustomerChange {
            customer,
            change,
            act,
        };
        let changed = self.ledger.perform(change).await?;
        Ok(ActOutcome::Changed(changed.into()))
    }

    /// A secret that the ledger knows now is shown, and no longer kept for a repetition.
    fn new_secret(&self, operation: OperationId, key: Key, secret: Secret) -> ActOutcome {
        self.drop_made(operation);
        let key = Box::new(key);
        ActOutcome::Secret { key, secret }
    }

    async fn link(&self, key: KeyId, act: Act) -> Result<ActOutcome, LedgerError> {
        let operation = act.operation;
        let made = self.made(operation, || {
            Made::Link(
                LinkToken::generate(clock::random()),
                LinkToken::expires(act.at),
            )
        });
        let Made::Link(token, expires) = made else {
            return Err(LedgerError::unavailable(
                "the operation's id was used".to_owned(),
            ));
        };
        self.ledger
            .perform(NewLink {
                key,
                token: token.hash(),
                expires,
                act,
            })
            .await?;
        let found = self.ledger.find_key(key).await?;
        let key =
            found.ok_or_else(|| LedgerError::unavailable(format!("there is no key {key}")))?;
        self.drop_made(operation);
        Ok(ActOutcome::Link {
            key: Box::new(key),
            token,
            expires,
        })
    }

    fn secret(&self, operation: OperationId, key: KeyId) -> Secret {
        match self.made(operation, || {
            Made::Key(Secret::generate(key, clock::random()))
        }) {
            Made::Key(secret) => secret,
            Made::Link(..) => Secret::generate(key, clock::random()),
        }
    }

    /// What was created for this operation before, else something new: sending it again must produce the same.
    fn made(&self, operation: OperationId, make: impl FnOnce() -> Made) -> Made {
        let mut secrets = self
            .secrets
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        secrets.entry(operation).or_insert_with(make).clone()
    }

    fn drop_made(&self, operation: OperationId) {
        self.secrets
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .remove(&operation);
    }

    /// Queries an operation's outcome until the ledger answers.
    pub(super) async fn resolve(&self, pending: Pending) {
        for tries in 1.. {
            let found = self.look_for(pending.operation).await;
            let (found, outcome, known) = match found {
                Ok(Some((found, party))) => {
                    let outcome = party.and_then(|party| self.outcome(&pending, party));
                    (found, outcome, true)
                }
                Ok(None) => (OutcomeLookup::NotApplied, None, true),
                Err(error) => (OutcomeLookup::Unreadable(error.to_string()), None, false),
            };
            let outcome = match (&found, outcome) {
                (OutcomeLookup::Applied(Some(entry)), Some(ActOutcome::Changed(about))) => {
                    Some(ActOutcome::Posted {
                        entry: entry.clone(),
                        about,
                        repeated: false,
                    })
                }
                (_, outcome) => outcome,
            };
            self.tell(Message::Resolved {
                operation: pending.operation,
                tries,
                found,
                outcome,
            });
            if known {
                return;
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    fn outcome(&self, pending: &Pending, party: Party) -> Option<ActOutcome> {
        let key = match party {
            Party::Key(key) if pending.plan.brings_secret() => key,
            party => return Some(ActOutcome::Changed(party)),
        };
        let secrets = self
            .secrets
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match secrets.get(&pending.operation)?.clone() {
            Made::Key(secret) => Some(ActOutcome::Secret { key, secret }),
            Made::Link(token, expires) => Some(ActOutcome::Link {
                key,
                token,
                expires,
            }),
        }
    }

    /// Looks an operation up in the journal or the audit, and its key or customer.
    async fn look_for(
        &self,
        operation: OperationId,
    ) -> Result<Option<(OutcomeLookup, Option<Party>)>, LedgerError> {
        if let Some(entry) = self.ledger.entry(operation).await? {
            let party = self.party(entry.key, entry.customer).await?;
            return Ok(Some((OutcomeLookup::Applied(Some(Box::new(entry))), party)));
        }
        match self.ledger.act(operation).await? {
            Some(act) => Ok(Some((
                OutcomeLookup::Applied(None),
                self.party(act.key, act.customer).await?,
            ))),
            None => Ok(None),
        }
    }

    /// The key that an entry or act names, else its customer.
    async fn party(
        &self,
        key: Option<KeyId>,
        customer: CustomerId,
    ) -> Result<Option<Party>, LedgerError> {
        match key {
            Some(key) => Ok(self.ledger.find_key(key).await?.map(Party::from)),
            None => Ok(self.ledger.find_customer(customer).await?.map(Party::from)),
        }
    }

    /// Every operation in the state file, with the ledger's answer about it.
    pub(super) async fn open_operations(&self) -> Vec<ListedOperation> {
        let mut listed = Vec::new();
        for open in self.state.list() {
            let found = self.state_of(&open).await;
            listed.push(ListedOperation { open, found });
        }
        listed
    }

    async fn state_of(&self, open: &OpenOperation) -> OutcomeLookup {
        if runs_elsewhere(open.pid) {
            return OutcomeLookup::Elsewhere(open.pid);
        }
        let Some(operation) = open.id() else {
            return OutcomeLookup::Unreadable("the saved operation was edited".to_owned());
        };
        match self.look_for(operation).await {
            Ok(Some((found, _))) => found,
            Ok(None) => OutcomeLookup::NotApplied,
            Err(error) => OutcomeLookup::Unreadable(error.to_string()),
        }
    }
}

/// What a credit did, to the key that it named or else to its customer.
fn told(posted: Posted) -> ActOutcome {
    let customer = posted.customer;
    ActOutcome::Posted {
        about: posted.key.map_or_else(|| customer.into(), Party::from),
        entry: Box::new(posted.entry),
        repeated: posted.repeated,
    }
}
