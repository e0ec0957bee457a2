//! What the operations of a batch need, deduplicated and sorted: the parameters of its statements.

use std::collections::BTreeSet;

use crate::batch::answer::AnswerId;
use crate::batch::operation::{Operation, OperationClass};
use crate::value::reference;
use crate::{CustomerId, KeyId, LotId, OperationId, Scope, TokenId};

/// Everything that the operations of a batch may read.
#[derive(Debug, Clone, Default)]
pub(super) struct WantedRows {
    pub(super) customers: BTreeSet<CustomerId>,
    pub(super) keys: BTreeSet<KeyId>,
    pub(super) external_ids: BTreeSet<String>,
    pub(super) holds: BTreeSet<OperationId>,
    pub(super) entries: BTreeSet<OperationId>,
    pub(super) acts: BTreeSet<OperationId>,
    pub(super) references: BTreeSet<String>,
    pub(super) tokens: BTreeSet<[u8; 32]>,
    pub(super) api_tokens: BTreeSet<TokenId>,
    pub(super) api_labels: BTreeSet<String>,
    pub(super) house_acts: BTreeSet<OperationId>,
    /// Keys, and customers themselves, whose last change is looked for.
    pub(super) last_acts: BTreeSet<Scope>,
    pub(super) answers: BTreeSet<AnswerId>,
    pub(super) lots: BTreeSet<LotId>,
    pub(super) vouchers: BTreeSet<[u8; 32]>,
    /// Keys, and customers with all keys, whose charges by the hour and open holds are read.
    pub(super) spending: BTreeSet<Scope>,
    /// Whether to end holds of dead epochs.
    pub(super) dead: bool,
    /// Whether a standby must have flushed the batch before it is confirmed.
    pub(super) flushed: bool,
}

impl WantedRows {
    pub(super) fn add(&mut self, operation: &Operation) {
        let needs = operation.needs();
        self.flushed |= must_be_flushed(operation);
        self.keys.extend(needs.keys.iter().flatten());
        self.customers.extend(needs.customers.iter().flatten());
        let external_id = needs.external_id.filter(|id| !id.contains('\0'));
        self.external_ids.extend(external_id.map(str::to_owned));
        self.holds.extend(needs.holds.iter().flatten());
        self.entries.extend(needs.entries.iter().flatten());
        self.acts.extend(needs.acts.iter().flatten());
        // No stored text contains U+0000, and no parameter can carry it.
        let references = needs.references.into_iter().flatten();
        let references = references.map(reference::folded);
        self.references
            .extend(references.filter(|folded| !folded.contains('\0')));
        self.tokens.extend(needs.token.map(|token| token.0));
        self.api_tokens.extend(needs.api_token);
        let label = needs.api_label.filter(|label| !label.contains('\0'));
        self.api_labels.extend(label.map(str::to_owned));
        self.house_acts.extend(needs.house_act);
        self.last_acts.extend(needs.last_act);
        self.answers.extend(needs.answer);
        self.lots.extend(needs.lot);
        self.vouchers.extend(needs.voucher.map(|code| code.0));
        self.spending.extend(needs.spending);
        self.dead |= needs.dead.is_some();
    }
}

/// Whether a standby must have flushed this operation before it is confirmed, even with prompt durability.
fn must_be_flushed(operation: &Operation) -> bool {
    operation.class() == OperationClass::Money || operation.signs_in()
}
