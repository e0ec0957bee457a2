//! The page of one act on many keys: what is done to each, and how far it is.

use farebox_ledger::{Key, KeyStatus, OperationId, Timestamp};

use super::cell::{ListCell, faint, id, plain, strong, within};
use super::form::{Form, has_already};
use super::list::{ListColumn, ListRow, fill, left, right};
use super::party::{customer_of, state_word};
use super::tone::Tone;
use crate::acts::{ADJUST, BLOCK, UNBLOCK};
use crate::plan::{ActPlan, Pending};

/// Operations that are sent before the first is answered.
const AT_ONCE: usize = 16;

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

/// The list of its keys.
pub(crate) const ITEMS: &[ListColumn<BulkItem>] = &[
    left("KEY", 12, 2).shows(|item, _| id(item.key.id)),
    fill("LABEL").shows(|item, _| plain(&item.key.settings.label)),
    left("CUSTOMER", 16, 3).shows(|item, _| faint(customer_of(&item.key))),
    right("NOW", 12, 0).shows(|item, now| {
        match item.pending.plan.after(item.key.customer.account) {
            Some(_) => within(item.key.customer.account.balance(), 12),
            None => plain(state_word(&item.key, now)),
        }
    }),
    right("AFTER", 12, 0).shows(|item, _| item.after()),
    left("OUTCOME", 18, 1).shows(|item, _| match &item.state {
        BulkItemState::LeftOut(why) => faint(why),
        BulkItemState::Ready => plain(""),
        BulkItemState::Sent => plain("…").toned(Tone::Warn),
        BulkItemState::Unknown(why) => plain(format!("not known yet: {why}")).toned(Tone::Warn),
        BulkItemState::Done => plain("✓ applied").toned(Tone::Good),
        BulkItemState::Failed(why) => plain(format!("✗ {why}")).toned(Tone::Bad),
    }),
];

impl ListRow for BulkItem {
    type At<'a> = &'a Self;
}

impl BulkItem {
    /// The balance or state that it would have.
    fn after(&self) -> ListCell {
        if matches!(self.state, BulkItemState::LeftOut(_)) {
            return faint("—");
        }
        match self.pending.plan.after(self.key.customer.account) {
            Some(Err(_)) => strong("refused"),
            Some(Ok(after)) => within(after.balance(), 12).strong(),
            None => strong(self.pending.plan.kind.becomes),
        }
    }
}

/// The page of a bulk act.
#[derive(Debug)]
pub(crate) struct BulkAct {
    /// What is done to each, of none.
    pub(crate) plan: ActPlan,
    pub(crate) items: Vec<BulkItem>,
    /// `y` was pressed.
    pub(crate) sent: bool,
    /// Where `esc` returns to.
    pub(crate) form: Option<Form>,
    pub(crate) scroll: u16,
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
    pub(crate) fn freshen(&mut self, key: &Key, now: Timestamp) -> bool {
        let plan = &self.plan;
        let known = self.items.iter_mut().find(|item| item.key.id == key.id);
        let Some(item) = known.filter(|item| !self.sent && *item.key != *key) else {
            return false;
        };
        item.state = state_of(plan, key, now);
        *item.key = key.clone();
        true
    }

    /// The key that an operation is for.
    pub(crate) fn item(&mut self, operation: OperationId) -> Option<&mut BulkItem> {
        (self.items.iter_mut()).find(|item| item.pending.operation == operation)
    }

    /// What to send until enough is under way.
    pub(crate) fn send_more(&mut self) -> Vec<Pending> {
        let under_way = self.count(|state| *state == BulkItemState::Sent);
        let ready = self.items.iter_mut();
        let ready = ready.filter(|item| item.state == BulkItemState::Ready);
        ready
            .take(AT_ONCE.saturating_sub(under_way))
            .map(|item| {
                item.state = BulkItemState::Sent;
                item.pending.clone()
            })
            .collect()
    }
}

/// Whether a key is changed.
pub(crate) fn state_of(plan: &ActPlan, key: &Key, now: Timestamp) -> BulkItemState {
    problem(plan, key, now).map_or(BulkItemState::Ready, BulkItemState::LeftOut)
}

/// Why an act does nothing to a key. The balance of a revoked one can still be corrected.
fn problem(plan: &ActPlan, key: &Key, now: Timestamp) -> Option<String> {
    let (kind, status) = (plan.kind, key.stored_status);
    let already = match status {
        KeyStatus::Revoked if *kind != ADJUST => "revoked already",
        KeyStatus::Blocked if *kind == BLOCK => "blocked already",
        KeyStatus::Active | KeyStatus::Expired if *kind == UNBLOCK => "served already",
        _ if kind.edits && has_already(key, &plan.body, now) => "has this already",
        _ => return plan.after(key.customer.account)?.err(),
    };
    Some(already.to_owned())
}
