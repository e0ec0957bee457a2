//! One act on many keys: one review that lists what changes on each, one `y`, and the outcome of each on the same page.
//!
//! Every key has an operation of its own, which is sent, looked up and repeated as a single act is.

use farebox_ledger::{Key, OperationId};

use super::bulk::{BulkAct, BulkItem, BulkItemState, state_of};
use super::form::Form;
use super::message::Effect;
use super::modal::{ActOutcome, ApplyError, Modal, OutcomeLookup};
use super::{Action, ConsoleApp};
use crate::plan::{ActPlan, Pending};

fn apply(pending: Pending) -> Effect {
    Effect::Apply(Box::new(pending))
}

impl ConsoleApp {
    /// The review of an act on all marked keys, which reads them again.
    pub(super) fn review_bulk(&mut self, plan: ActPlan, form: Option<Form>) -> Vec<Effect> {
        let item = |key: &Key| BulkItem {
            pending: Pending {
                operation: self.new_operation(),
                plan: plan.on(key.id),
                label: key.settings.label.clone(),
                actor: self.options.operator.clone(),
                at: self.now,
            },
            key: Box::new(key.clone()),
            state: state_of(&plan, key, self.now),
        };
        let items: Vec<BulkItem> = self.marks.keys().map(item).collect();
        let ids = items.iter().map(|item| item.key.id).collect();
        self.modal = Some(Modal::Bulk(BulkAct {
            plan,
            items,
            sent: false,
            form,
            scroll: 0,
        }));
        vec![Effect::Visible(ids)]
    }

    /// Handles a key on the page of a bulk act.
    pub(super) fn in_bulk(&mut self, mut act: BulkAct, action: &Action) -> Vec<Effect> {
        let mut effects = Vec::new();
        match action {
            Action::Yes if !act.sent && act.changes() > 0 => {
                act.sent = true;
                for item in &mut act.items {
                    item.pending.at = self.now;
                }
                effects.extend(act.send_more().into_iter().map(apply));
            }
            // The cursor is on Cancel: enter does what esc does.
            Action::Escape | Action::Enter if !act.sent => {
                self.modal = act.form.map(Modal::Form);
                return effects;
            }
            Action::Escape | Action::Enter if act.is_over() => return effects,
            Action::Scroll(step) => {
                let last = u16::try_from(act.items.len()).unwrap_or(u16::MAX);
                act.scroll = act.scroll.saturating_add_signed(*step).min(last);
            }
            _ => {}
        }
        self.modal = Some(Modal::Bulk(act));
        effects
    }

    /// The answer to one of its operations; `None` if it is not of the open bulk act.
    pub(super) fn bulk_applied(
        &mut self,
        operation: OperationId,
        result: &Result<ActOutcome, ApplyError>,
    ) -> Option<Vec<Effect>> {
        let state = match result {
            Ok(_) => BulkItemState::Done,
            Err(ApplyError::No(problem)) => BulkItemState::Failed(problem.clone()),
            Err(ApplyError::Unknown(problem)) => BulkItemState::Unknown(problem.clone()),
        };
        self.bulk_answered(operation, state)
    }

    /// What the ledger says of one of its operations whose outcome was unknown.
    pub(super) fn bulk_resolved(
        &mut self,
        operation: OperationId,
        found: &OutcomeLookup,
    ) -> Option<Vec<Effect>> {
        let state = match found {
            OutcomeLookup::Applied(_) => BulkItemState::Done,
            OutcomeLookup::NotApplied => {
                BulkItemState::Failed("not applied: mark it and do it again".to_owned())
            }
            OutcomeLookup::Unreadable(problem) => BulkItemState::Unknown(problem.clone()),
            OutcomeLookup::Elsewhere(_) => BulkItemState::Unknown("in another console".to_owned()),
        };
        self.bulk_answered(operation, state)
    }

    fn bulk_answered(
        &mut self,
        operation: OperationId,
        state: BulkItemState,
    ) -> Option<Vec<Effect>> {
        let Some(Modal::Bulk(act)) = self.modal.as_mut() else {
            return None;
        };
        let item = act.item(operation)?;
        item.state = state;
        let mut effects = match &item.state {
            BulkItemState::Unknown(_) => vec![Effect::Resolve(Box::new(item.pending.clone()))],
            BulkItemState::Done => {
                self.marks.remove(item.key.id);
                vec![Effect::Forget(operation)]
            }
            _ => vec![Effect::Forget(operation)],
        };
        effects.extend(act.send_more().into_iter().map(apply));
        if act.is_over() {
            effects.push(Effect::Visible(
                act.items.iter().map(|item| item.key.id).collect(),
            ));
        }
        self.dirty = true;
        Some(effects)
    }
}
