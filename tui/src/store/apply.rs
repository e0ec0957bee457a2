//! Sends an act to the ledger, and finds out its outcome.
//!
//! An operation is on disk before it is sent and stays there until its outcome was seen. A commit that failed half-way is queried
//! by its id until the ledger answers; nothing is ever sent under a second id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use farebox_ledger::{CustomerId, KeyId, LedgerError, OperationId, PlanTerms, lock};
use farebox_selling::{Deed, Doer, SoldModels, Unfit};

use super::StoreShared;
use crate::app::message::Message;
use crate::app::modal::{ActOutcome, ApplyError, ListedOperation, OutcomeLookup};
use crate::app::party::Party;
use crate::plan::Pending;
use crate::state_file::{OpenOperation, runs_elsewhere};

/// What was sent and has no known outcome yet, with its secrets: sending it again must do the same.
pub(crate) type SentDeeds = Arc<Mutex<HashMap<OperationId, Deed>>>;

/// What a gateway sells of plans, and the names of its price lists; of models nothing is asked.
struct SoldThere {
    plans: Vec<PlanTerms>,
    lists: Vec<String>,
}

impl SoldModels for SoldThere {
    fn unsold(&self, _: &str) -> Option<String> {
        None
    }

    fn plan(&self, name: &str) -> Result<PlanTerms, String> {
        let found = self.plans.iter().find(|plan| plan.name == name);
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = self.plans.iter().map(|plan| &*plan.name).collect();
            match names.as_slice() {
                [] => format!("{name:?} is not sold, and no other plan is"),
                names => format!("{name:?} is not sold; plans are {}", names.join(", ")),
            }
        })
    }

    fn has_list(&self, name: &str) -> Result<(), String> {
        let names = &self.lists;
        match names.as_slice() {
            _ if names.iter().any(|known| known == name) => Ok(()),
            [] => Err(format!("there is no price list {name:?}, and no other")),
            names => Err(format!(
                "there is no price list {name:?}; there are {}",
                names.join(", ")
            )),
        }
    }
}

const ASK_AGAIN: Duration = Duration::from_secs(2);

impl StoreShared {
    pub(super) async fn send(&self, pending: Pending) {
        let operation = pending.operation;
        let result = self.apply(&pending).await;
        // One that was applied stays in its file until its page was shown (`Effect::Forget`).
        if let Err(ApplyError::No(_)) = &result {
            let _ = self.state.forget(operation);
        }
        if !matches!(result, Err(ApplyError::Unknown(_))) {
            self.sent().remove(&operation);
        }
        self.tell(Message::Applied { operation, result });
    }

    async fn apply(&self, pending: &Pending) -> Result<ActOutcome, ApplyError> {
        let (state, kept) = (self.state.clone(), pending.clone());
        let kept = tokio::task::spawn_blocking(move || state.keep(&kept)).await;
        let kept = kept.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        kept.map_err(|error| ApplyError::No(format!("the operation cannot be saved: {error}")))?;
        let deed = self.deed(pending).await;
        let deed = deed.map_err(|unfit| ApplyError::No(unfit.to_string()))?;
        match deed.perform(&*self.ledger).await {
            Ok(done) => Ok(done.into()),
            Err(LedgerError::Unknown(cause)) => Err(ApplyError::Unknown(cause.to_string())),
            Err(definite) => Err(ApplyError::No(definite.to_string())),
        }
    }

    /// What the gateway sells.
    async fn sold(&self) -> Result<SoldThere, Unfit> {
        let status = self.client.status().await;
        let sold = status.map(|status| SoldThere {
            plans: status.plans,
            lists: status.lists,
        });
        sold.map_err(|error| {
            Unfit::Wrong(format!(
                "only a running gateway knows plans and price lists, and none answers at {}: {error}",
                self.client.url()
            ))
        })
    }

    /// What the ledger is asked: what it was asked before under this id, else something new.
    pub(super) async fn deed(&self, pending: &Pending) -> Result<Deed, Unfit> {
        if let Some(deed) = self.sent().get(&pending.operation) {
            return Ok(deed.clone());
        }
        let says = |name| {
            pending
                .plan
                .body
                .get(name)
                .is_some_and(|said| !said.is_null())
        };
        let sold = match says("plan") || says("price_list") {
            true => Some(self.sold().await?),
            false => None,
        };
        let doer = Doer {
            ledger: &*self.ledger,
            actor: &pending.actor,
            sells: false,
            kept: Some(pending.act()),
            sold: sold.as_ref().map(|sold| sold as &dyn SoldModels),
        };
        let deed = (pending.plan.kind.deed)(&pending.plan, &doer).await?;
        self.sent().insert(pending.operation, deed.clone());
        Ok(deed)
    }

    pub(super) fn sent(&self) -> MutexGuard<'_, HashMap<OperationId, Deed>> {
        lock(&self.sent)
    }

    /// Queries an operation's outcome until the ledger answers.
    pub(super) async fn resolve(&self, pending: Pending) {
        for tries in 1.. {
            let (found, about) = match self.look_for(pending.operation).await {
                Ok(Some((found, about))) => (found, about),
                Ok(None) => (OutcomeLookup::NotApplied, None),
                Err(error) => (OutcomeLookup::Unreadable(error.to_string()), None),
            };
            let sent = self.sent().get(&pending.operation).cloned();
            let known = !matches!(found, OutcomeLookup::Unreadable(_));
            self.tell(Message::Resolved {
                operation: pending.operation,
                tries,
                found,
                outcome: ActOutcome {
                    about,
                    shown_once: sent.and_then(|deed| deed.shown_once),
                    ..ActOutcome::default()
                },
            });
            if known {
                return;
            }
            tokio::time::sleep(ASK_AGAIN).await;
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
        for mut open in self.state.list() {
            let found = self.state_of(&mut open).await;
            listed.push(ListedOperation { open, found });
        }
        listed
    }

    async fn state_of(&self, open: &mut OpenOperation) -> OutcomeLookup {
        if runs_elsewhere(open.pid) {
            return OutcomeLookup::Elsewhere(open.pid);
        }
        let Some(operation) = open.id() else {
            return OutcomeLookup::Unreadable("the saved operation was edited".to_owned());
        };
        match self.look_for(operation).await {
            Ok(Some((found, about))) => {
                // What it made has an id only now.
                if let Some(about) = about {
                    open.of = about.scope().to_string();
                }
                found
            }
            Ok(None) => OutcomeLookup::NotApplied,
            Err(error) => OutcomeLookup::Unreadable(error.to_string()),
        }
    }
}
