//! Forms: the input for an act, and its conversion into a [`ActPlan`].
//!
//! Nothing is applied here and nothing is guessed: amounts go through the ledger's own parser of payments. Every problem is shown
//! at its field, and the values stay.

mod check;
mod inputs;

use farebox_ledger::{Account, Amount, MarginQuery, OperationId, Scope};

use super::margins::MarginView;
use super::party::Party;
use crate::bulk_plan::BulkPlan;
use crate::field::{FieldEdit, TextField};
use crate::plan::{ActPlan, PlannedOverlap};

/// Top-ups above this amount are typed twice.
pub(crate) const TYPE_TWICE_ABOVE: Amount = Amount::from_picos(1_000_000_000_000_000);

/// The purpose of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FormPurpose {
    TopUp,
    /// Of the customer that the form is about, else of one of its own.
    NewKey,
    Edit,
    NewCustomer,
    EditCustomer,
    Close,
    Move,
    Rotate,
    Revoke,
    Adjust,
    Refund {
        request: OperationId,
        charge: Amount,
        slug: String,
    },
    /// On this many marked keys, like the three below.
    BulkTopUp(usize),
    BulkAdjust(usize),
    BulkRevoke(usize),
    BulkEdit(usize),
    Export(ConsoleExport),
    SaveSecret,
}

/// What an export writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConsoleExport {
    Keys,
    Entries(Scope),
    Audit,
    /// The rows of the Exposure or Margin screen, all of them.
    Sums(MarginView, MarginQuery),
}

/// The meaning of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Amount,
    Again,
    Reference,
    Reason,
    Label,
    ExternalId,
    LowBalance,
    Into,
    Models,
    LastDay,
    Rate,
    Concurrency,
    Overlap,
    LastFour,
    HowMany,
    Format,
    Path,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormField {
    pub(crate) input: Input,
    pub(crate) name: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) field: TextField,
    pub(crate) error: Option<String>,
}

/// An open form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) purpose: FormPurpose,
    /// What the act will change, or make.
    pub(crate) of: Scope,
    /// The key or customer as it was when the form opened; none for a new one or an export.
    pub(crate) about: Option<Party>,
    pub(crate) operation: OperationId,
    pub(crate) fields: Vec<FormField>,
    pub(crate) focus: usize,
    /// A refusal of the ledger, shown above the fields.
    pub(crate) error: Option<String>,
}

/// The result of a finished form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FinishedForm {
    Review(ActPlan),
    Bulk(BulkPlan),
    Export {
        what: ConsoleExport,
        json: bool,
        path: String,
    },
    SaveSecret {
        path: String,
    },
}

impl Input {
    /// The choices of a field that is switched with the arrows.
    pub(crate) const fn choices(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Overlap => Some(PlannedOverlap::WORDS),
            Self::Format => Some(&["csv", "json"]),
            _ => None,
        }
    }
}

impl Form {
    /// An empty form.
    pub(crate) fn new(
        purpose: FormPurpose,
        of: Scope,
        about: Option<Party>,
        operation: OperationId,
    ) -> Self {
        let mut form = Self {
            purpose,
            of,
            about,
            operation,
            fields: Vec::new(),
            focus: 0,
            error: None,
        };
        form.fields = inputs::of(&form.purpose)
            .into_iter()
            .map(|(input, name, hint)| form.field(input, name, hint))
            .collect();
        form
    }

    /// A field's value, without surrounding blanks.
    pub(crate) fn value(&self, input: Input) -> &str {
        self.fields
            .iter()
            .find(|field| field.input == input)
            .map_or("", |field| field.field.text().trim())
    }

    /// Edits the focused field.
    pub(crate) fn edit(&mut self, edit: &FieldEdit) {
        let Some(field) = self.fields.get_mut(self.focus) else {
            return;
        };
        field.error = None;
        let Some(choices) = field.input.choices() else {
            return field.field.edit(edit);
        };
        let now = choices
            .iter()
            .position(|choice| *choice == field.field.text())
            .unwrap_or(0);
        let next = match edit {
            FieldEdit::Left => now.saturating_sub(1),
            FieldEdit::Right => (now + 1).min(choices.len().saturating_sub(1)),
            FieldEdit::Insert(' ') => (now + 1) % choices.len().max(1),
            FieldEdit::Insert(letter) => choices
                .iter()
                .position(|choice| choice.starts_with(*letter))
                .unwrap_or(now),
            _ => now,
        };
        let word = choices.get(next).copied().unwrap_or_default();
        let was = std::mem::replace(&mut field.field, TextField::new(word));
        if field.input == Input::Format && was.text() != word {
            let (old, new) = (self.default_path(was.text()), self.default_path(word));
            if let Some(path) = self
                .fields
                .iter_mut()
                .find(|field| field.input == Input::Path && field.field.text() == old)
            {
                path.field = TextField::new(new);
            }
        }
    }

    /// Moves to the next or previous field.
    pub(crate) fn step(&mut self, forward: bool) {
        let last = self.fields.len().saturating_sub(1);
        self.focus = if forward {
            (self.focus + 1).min(last)
        } else {
            self.focus.saturating_sub(1)
        };
    }

    /// Whether the focus is on the last field, where enter ends the form.
    pub(crate) fn at_last(&self) -> bool {
        self.focus + 1 >= self.fields.len()
    }

    /// Checks every field. If there are problems, the first wrong field gets the focus and shows its error.
    pub(crate) fn finish(&mut self) -> Option<FinishedForm> {
        self.error = None;
        for field in &mut self.fields {
            field.error = None;
        }
        match self.check() {
            Ok(finished) => Some(finished),
            Err((input, error)) => {
                self.ask_again(input);
                self.focus = self
                    .fields
                    .iter()
                    .position(|field| field.input == input)
                    .unwrap_or(0);
                if let Some(field) = self.fields.get_mut(self.focus) {
                    field.error = Some(error);
                }
                None
            }
        }
    }

    fn ask_again(&mut self, input: Input) {
        if input == Input::Again && !self.fields.iter().any(|field| field.input == input) {
            let again = self.field(input, "Again $", "the same amount");
            self.fields.insert(1.min(self.fields.len()), again);
        }
    }

    /// The account as it was when the form opened.
    fn account(&self) -> Account {
        self.about.as_ref().map(Party::account).unwrap_or_default()
    }
}
