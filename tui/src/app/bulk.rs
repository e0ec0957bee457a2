//! One act on many keys: one review that lists what changes on each, one `y`, and the outcome of each on the same page.
//!
//! Every key has an operation of its own, which is sent, looked up and repeated as a single act is. The reference of a payment gets
//! the key's id, so that repeating a half-done act with the same reference pays nobody twice.

use farebox_ledger::{Amount, CreditKind, Key, KeyStatus, OperationId};

use super::command::ConsoleCommand;
use super::form::{Form, FormPurpose};
use super::message::Effect;
use super::modal::{ActOutcome, ApplyError, Modal, OutcomeLookup};
use super::{Action, ConsoleApp};
use crate::plan::{ActPlan, Pending};

/// Operations that are sent before the first is answered.
const AT_ONCE: usize = 16;

/// What is done to each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BulkPlan {
    Credit {
        kind: CreditKind,
        amount: Amount,
        reference: String,
    },
    Block,
    Unblock,
    Revoke,
}

/// How far one key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BulkItemState {
    /// It is not changed, and why.
    LeftOut(String),
    Ready,
    Sent,
    /// Its outcome is being looked up.
    Unknown(String),
    Done,
    Failed(String),
}

/// One key of a bulk act.
#[derive(Debug)]
pub(crate) struct BulkItem {
    pub(crate) pending: Pending,
    pub(crate) key: Box<Key>,
    pub(crate) state: BulkItemState,
}

/// The page of a bulk act.
#[derive(Debug)]
pub(crate) struct BulkAct {
    pub(crate) plan: BulkPlan,
    pub(crate) items: Vec<BulkItem>,
    /// `y` was pressed.
    pub(crate) sent: bool,
    /// Where `esc` returns to.
    form: Option<Form>,
    pub(crate) scroll: u16,
}

impl BulkPlan {
    /// The act on one key.
    fn of(&self, key: &Key) -> ActPlan {
        match self {
            Self::Credit {
                kind,
                amount,
                reference,
            } => ActPlan::Credit {
                kind: kind.clone(),
                amount: *amount,
                reference: format!("{reference}-{}", key.id),
            },
            Self::Block => ActPlan::Block,
            Self::Unblock => ActPlan::Unblock,
            Self::Revoke => ActPlan::Revoke,
        }
    }

    /// Why it does nothing to a key.
    fn problem(&self, key: &Key) -> Option<String> {
        let adjusts = matches!(self, Self::Credit { kind, .. } if *kind != CreditKind::TopUp);
        match (self, key.stored_status) {
            (_, KeyStatus::Revoked) if !adjusts => Some("revoked already".to_owned()),
            (Self::Block, KeyStatus::Blocked) => Some("blocked already".to_owned()),
            (Self::Unblock, status) if status != KeyStatus::Blocked => {
                Some("served already".to_owned())
            }
            (Self::Credit { .. }, _) => self.of(key).after(key.account)?.err(),
            _ => None,
        }
    }

    /// Its name, as a title.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Credit {
                kind: CreditKind::TopUp,
                ..
            } => "Top up",
            Self::Credit { .. } => "Adjust",
            Self::Block => "Block",
            Self::Unblock => "Serve again",
            Self::Revoke => "Revoke",
        }
    }
}

impl BulkAct {
    /// How many keys are in a state.
    pub(crate) fn count(&self, is: impl Fn(&BulkItemState) -> bool) -> usize {
        self.items.iter().filter(|item| is(&item.state)).count()
    }

    /// How many keys will change.
    pub(crate) fn changes(&self) -> usize {
        self.items.len() - self.count(|state| matches!(state, BulkItemState::LeftOut(_)))
    }

    /// Whether every outcome is known.
    pub(crate) fn is_over(&self) -> bool {
        let open = |state: &BulkItemState| {
            matches!(
                state,
                BulkItemState::Ready | BulkItemState::Sent | BulkItemState::Unknown(_)
            )
        };
        self.sent && self.count(open) == 0
    }

    /// Updates a key that is not sent yet.
    pub(crate) fn freshen(&mut self, key: &Key) -> bool {
        let plan = &self.plan;
        let known = self.items.iter_mut().find(|item| item.key.id == key.id);
        let Some(item) = known.filter(|item| !self.sent && *item.key != *key) else {
            return false;
        };
        item.state = state_of(plan, key);
        *item.key = key.clone();
        true
    }

    fn item(&mut self, operation: OperationId) -> Option<&mut BulkItem> {
        (self.items.iter_mut()).find(|item| item.pending.operation == operation)
    }

    /// Sends until enough are under way.
    fn send_more(&mut self) -> Vec<Effect> {
        let under_way = self.count(|state| *state == BulkItemState::Sent);
        let ready = self.items.iter_mut();
        let ready = ready.filter(|item| item.state == BulkItemState::Ready);
        ready
            .take(AT_ONCE.saturating_sub(under_way))
            .map(|item| {
                item.state = BulkItemState::Sent;
                Effect::Apply(Box::new(item.pending.clone()))
            })
            .collect()
    }
}

fn state_of(plan: &BulkPlan, key: &Key) -> BulkItemState {
    plan.problem(key)
        .map_or(BulkItemState::Ready, BulkItemState::LeftOut)
}

impl ConsoleApp {
    /// Opens the form of an act on all marked keys, or its review if it needs none.
    pub(super) fn begin_bulk(&mut self, command: ConsoleCommand) -> Vec<Effect> {
        let keys = self.marks.len();
        let purpose = match command {
            ConsoleCommand::TopUp => FormPurpose::BulkTopUp(keys),
            ConsoleCommand::Adjust => FormPurpose::BulkAdjust(keys),
            ConsoleCommand::Revoke => FormPurpose::BulkRevoke(keys),
            _ => {
                let all_blocked = (self.marks.keys()).all(|key| {
                    matches!(key.stored_status, KeyStatus::Blocked | KeyStatus::Revoked)
                });
                let plan = match all_blocked {
                    true => BulkPlan::Unblock,
                    false => BulkPlan::Block,
                };
                return self.review_bulk(plan, None);
            }
        };
        let Some(first) = self.marks.keys().next().map(|key| key.id) else {
            return Vec::new();
        };
        let form = Form::new(purpose, first, None, self.new_operation());
        self.modal = Some(Modal::Form(form));
        Vec::new()
    }

    /// The review of an act on all marked keys, which reads them again.
    pub(super) fn review_bulk(&mut self, plan: BulkPlan, form: Option<Form>) -> Vec<Effect> {
        let item = |key: &Key| BulkItem {
            pending: Pending {
                operation: self.new_operation(),
                key: key.id,
                label: key.settings.label.clone(),
                plan: plan.of(key),
                actor: self.options.operator.clone(),
                at: self.now,
            },
            key: Box::new(key.clone()),
            state: state_of(&plan, key),
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
                effects = act.send_more();
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
        effects.extend(act.send_more());
        if act.is_over() {
            effects.push(Effect::Visible(self.visible_ids()));
        }
        self.dirty = true;
        Some(effects)
    }
}
