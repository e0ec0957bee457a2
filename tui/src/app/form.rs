//! Forms: the input for an act, and its conversion into a [`ActPlan`].
//!
//! Nothing is applied here and nothing is guessed: amounts go through the ledger's own parser of payments. Every problem is shown
//! at its field, and the values stay.

use farebox_ledger::text::SECRET_PREFIX;
use farebox_ledger::{Amount, CreditKind, Key, KeyId, KeySettings, MarginQuery, OperationId};

use super::margins::{self, MarginView};
use crate::clock;
use crate::field::{FieldEdit, TextField};
use crate::plan::{ActPlan, BulkPlan, PlannedOverlap};

/// Top-ups above this amount are typed twice.
pub(crate) const TYPE_TWICE_ABOVE: Amount = Amount::from_picos(1_000_000_000_000_000);

/// The purpose of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FormPurpose {
    TopUp,
    NewKey,
    Edit,
    Rotate,
    Revoke,
    Adjust,
    Refund {
        request: OperationId,
        charge: Amount,
        slug: String,
    },
    /// On this many marked keys, like the two below.
    BulkTopUp(usize),
    BulkAdjust(usize),
    BulkRevoke(usize),
    Export(ConsoleExport),
    SaveSecret,
}

/// What an export writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConsoleExport {
    Keys,
    Entries(KeyId),
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
    pub(crate) key_id: KeyId,
    /// The key as it was when the form opened; none for a new key or an export.
    pub(crate) key: Option<Box<Key>>,
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

/// A field's meaning, name and hint.
type InputRow = (Input, &'static str, &'static str);

const fn field(
    input: Input,
    name: &'static str,
    hint: &'static str,
) -> (Input, &'static str, &'static str) {
    (input, name, hint)
}

/// What a form asks for, in order.
fn inputs(purpose: &FormPurpose) -> Vec<InputRow> {
    let settings = [
        field(Input::Label, "Label", "a name: a customer, a project"),
        field(Input::Models, "Models", "slugs with commas; empty is all"),
        field(
            Input::LastDay,
            "Last day",
            "YYYY-MM-DD, UTC; empty is never",
        ),
        field(Input::Rate, "Requests/s", "whole number; empty is no limit"),
        field(Input::Concurrency, "At once", "whole number; empty is 64"),
    ];
    let amount = field(Input::Amount, "Amount $", "like 12.50; at most 6 decimals");
    let reference = field(Input::Reference, "Reference", "invoice or payment id, new");
    let reason = field(Input::Reason, "Reason", "the reason, for the journal");
    match purpose {
        FormPurpose::TopUp => vec![amount, reference],
        FormPurpose::NewKey => {
            let mut list = settings.to_vec();
            list.insert(
                1,
                field(Input::Amount, "Balance $", "like 25; may be empty"),
            );
            list.insert(2, field(Input::Reference, "Reference", "of that payment"));
            list
        }
        FormPurpose::Edit => settings.to_vec(),
        FormPurpose::Rotate => vec![field(
            Input::Overlap,
            "Overlap",
            "how long the old secret works: ← →",
        )],
        FormPurpose::Revoke => vec![field(
            Input::LastFour,
            "Last four",
            "characters of the key id above",
        )],
        FormPurpose::Adjust => vec![
            field(Input::Amount, "Amount $", "like -2.50 or 2.50"),
            reason,
            reference,
        ],
        FormPurpose::Refund { .. } => vec![amount, reason, reference],
        FormPurpose::BulkTopUp(_) | FormPurpose::BulkAdjust(_) | FormPurpose::BulkRevoke(_) => {
            bulk_inputs(purpose, amount, reason)
        }
        FormPurpose::Export(_) => {
            vec![
                field(Input::Format, "Format", "csv or json: ← →"),
                field(Input::Path, "File", "a new file"),
            ]
        }
        FormPurpose::SaveSecret => vec![field(
            Input::Path,
            "File",
            "a new file, readable only by you",
        )],
    }
}

/// What the form of an act on all marked keys asks for.
fn bulk_inputs(purpose: &FormPurpose, amount: InputRow, reason: InputRow) -> Vec<InputRow> {
    let each = field(
        Input::Reference,
        "Reference",
        "of all; each gets its key's id",
    );
    match purpose {
        FormPurpose::BulkTopUp(_) => vec![amount, each],
        FormPurpose::BulkAdjust(_) => vec![
            field(Input::Amount, "Amount $", "like -2.50 or 2.50, for each"),
            reason,
            each,
        ],
        _ => vec![field(
            Input::HowMany,
            "How many",
            "keys are revoked: the number above",
        )],
    }
}

impl Form {
    /// An empty form.
    pub(crate) fn new(
        purpose: FormPurpose,
        key_id: KeyId,
        key: Option<Key>,
        operation: OperationId,
    ) -> Self {
        let mut form = Self {
            purpose,
            key_id,
            key: key.map(Box::new),
            operation,
            fields: Vec::new(),
            focus: 0,
            error: None,
        };
        form.fields = inputs(&form.purpose)
            .into_iter()
            .map(|(input, name, hint)| form.field(input, name, hint))
            .collect();
        form
    }

    fn field(&self, input: Input, name: &'static str, hint: &'static str) -> FormField {
        let settings = self
            .key
            .as_ref()
            .filter(|_| self.purpose == FormPurpose::Edit)
            .map(|key| &key.settings);
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let first = match (input, settings) {
            (Input::Overlap, _) => Some("0".to_owned()),
            (Input::Format, _) => Some("csv".to_owned()),
            (Input::Path, _) => Some(self.default_path("csv")),
            (Input::Label, Some(settings)) => Some(settings.label.clone()),
            (Input::Models, Some(settings)) => {
                settings.models.as_ref().map(|models| models.join(", "))
            }
            (Input::LastDay, Some(settings)) => settings.expires_at.map(clock::last_day),
            (Input::Rate, Some(settings)) => number(settings.rate),
            (Input::Concurrency, Some(settings)) => number(settings.concurrency),
            _ => None,
        };
        FormField {
            input,
            name,
            hint,
            field: TextField::new(first.unwrap_or_default()),
            error: None,
        }
    }

    fn default_path(&self, ending: &str) -> String {
        match &self.purpose {
            FormPurpose::Export(ConsoleExport::Keys) => format!("farebox-keys.{ending}"),
            FormPurpose::Export(ConsoleExport::Entries(key)) => format!("farebox-{key}.{ending}"),
            FormPurpose::Export(ConsoleExport::Audit) => format!("farebox-audit.{ending}"),
            FormPurpose::Export(ConsoleExport::Sums(view, query)) => {
                format!(
                    "farebox-{}-by-{}.{ending}",
                    view.name(),
                    margins::by_name(query.by)
                )
            }
            _ => format!("{}.key", self.key_id),
        }
    }

    /// The title of the page.
    pub(crate) const fn title(&self) -> &'static str {
        match self.purpose {
            FormPurpose::BulkTopUp(_) => "Top up",
            FormPurpose::BulkAdjust(_) => "Adjust",
            FormPurpose::BulkRevoke(_) => "Revoke",
            FormPurpose::TopUp => "Top up",
            FormPurpose::NewKey => "New key",
            FormPurpose::Edit => "Edit",
            FormPurpose::Rotate => "Rotate the secret of",
            FormPurpose::Revoke => "Revoke",
            FormPurpose::Adjust => "Adjust",
            FormPurpose::Refund { .. } => "Refund on",
            FormPurpose::Export(ConsoleExport::Keys) => "Export keys (those of the filter)",
            FormPurpose::Export(ConsoleExport::Entries(_)) => "Export all entries of",
            FormPurpose::Export(ConsoleExport::Audit) => "Export the audit",
            FormPurpose::Export(ConsoleExport::Sums(..)) => "Export these sums",
            FormPurpose::SaveSecret => "Write to a file",
        }
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

    fn check(&self) -> Result<FinishedForm, (Input, String)> {
        let plan = match &self.purpose {
            FormPurpose::TopUp => self.credit(CreditKind::TopUp, self.amount()?)?,
            FormPurpose::Adjust => {
                let amount = Amount::parse_adjustment(self.value(Input::Amount))
                    .map_err(at(Input::Amount))?;
                self.credit(
                    CreditKind::Adjust {
                        reason: self.needed(Input::Reason, "a reason")?,
                    },
                    amount,
                )?
            }
            FormPurpose::Refund {
                request, charge, ..
            } => {
                let amount = self.amount()?;
                if amount > *charge {
                    return Err((Input::Amount, format!("the request was charged {charge}")));
                }
                self.credit(
                    CreditKind::Refund {
                        request: *request,
                        reason: self.needed(Input::Reason, "a reason")?,
                    },
                    amount,
                )?
            }
            FormPurpose::BulkTopUp(_) | FormPurpose::BulkAdjust(_) | FormPurpose::BulkRevoke(_) => {
                return self.bulk().map(FinishedForm::Bulk);
            }
            FormPurpose::NewKey => ActPlan::Create {
                settings: self.settings()?,
                first: self.first_credit()?,
            },
            FormPurpose::Edit => ActPlan::Set(self.settings()?),
            FormPurpose::Rotate => ActPlan::Rotate {
                overlap: PlannedOverlap::parse(self.value(Input::Overlap))
                    .ok_or((Input::Overlap, "choose 0, 1h or 24h".to_owned()))?,
            },
            FormPurpose::Revoke => {
                let chars = self.key_id.chars();
                if !self
                    .value(Input::LastFour)
                    .eq_ignore_ascii_case(chars.get(6..).unwrap_or(&chars))
                {
                    return Err((
                        Input::LastFour,
                        "these are not the last four characters of this key's id".to_owned(),
                    ));
                }
                ActPlan::Revoke
            }
            FormPurpose::Export(what) => {
                let json = self.value(Input::Format) == "json";
                return Ok(FinishedForm::Export {
                    what: what.clone(),
                    json,
                    path: self.needed(Input::Path, "a file name")?,
                });
            }
            FormPurpose::SaveSecret => {
                return Ok(FinishedForm::SaveSecret {
                    path: self.needed(Input::Path, "a file name")?,
                });
            }
        };
        Ok(FinishedForm::Review(plan))
    }

    fn credit(&self, kind: CreditKind, amount: Amount) -> Result<ActPlan, (Input, String)> {
        let reference = self.needed(Input::Reference, "a reference")?;
        let plan = ActPlan::Credit {
            kind,
            amount,
            reference,
        };
        let account = self
            .key
            .as_ref()
            .map(|key| key.customer.account)
            .unwrap_or_default();
        match plan.after(account) {
            Some(Err(refusal)) => Err((Input::Amount, refusal)),
            _ => Ok(plan),
        }
    }

    /// The act on all marked keys. What each of their accounts allows is checked in the review.
    fn bulk(&self) -> Result<BulkPlan, (Input, String)> {
        let reference = |form: &Self| form.needed(Input::Reference, "a reference");
        match self.purpose {
            FormPurpose::BulkRevoke(keys) if self.value(Input::HowMany) == keys.to_string() => {
                Ok(BulkPlan::Revoke)
            }
            FormPurpose::BulkRevoke(_) => Err((
                Input::HowMany,
                "this is not how many keys are marked".to_owned(),
            )),
            FormPurpose::BulkAdjust(_) => {
                let amount = Amount::parse_adjustment(self.value(Input::Amount))
                    .map_err(at(Input::Amount))?;
                let reason = self.needed(Input::Reason, "a reason")?;
                Ok(BulkPlan::Credit {
                    kind: CreditKind::Adjust { reason },
                    amount,
                    reference: reference(self)?,
                })
            }
            FormPurpose::BulkTopUp(keys) => Ok(BulkPlan::Credit {
                kind: CreditKind::TopUp,
                amount: self.amount_for(keys)?,
                reference: reference(self)?,
            }),
            _ => Err((Input::Amount, "nothing is marked".to_owned())),
        }
    }

    fn amount(&self) -> Result<Amount, (Input, String)> {
        self.amount_for(1)
    }

    /// An amount that so many keys get.
    fn amount_for(&self, keys: usize) -> Result<Amount, (Input, String)> {
        let amount = Amount::parse_payment(self.value(Input::Amount)).map_err(at(Input::Amount))?;
        if !amount.is_positive() {
            return Err((Input::Amount, "type an amount above zero".to_owned()));
        }
        let all = Amount::times(amount, u64::try_from(keys).unwrap_or(u64::MAX));
        if all.is_none_or(|all| all > TYPE_TWICE_ABOVE)
            && Amount::parse_payment(self.value(Input::Again)) != Ok(amount)
        {
            return Err((
                Input::Again,
                "above $1,000 the amount is typed twice".to_owned(),
            ));
        }
        Ok(amount)
    }

    fn first_credit(&self) -> Result<Option<(Amount, String)>, (Input, String)> {
        if self.value(Input::Amount).is_empty() {
            let reference = self.value(Input::Reference).is_empty();
            return if reference {
                Ok(None)
            } else {
                Err((
                    Input::Amount,
                    "there is a reference but no amount".to_owned(),
                ))
            };
        }
        let amount = self.amount()?;
        farebox_ledger::Account::default()
            .top_up(amount)
            .map_err(at(Input::Amount))?;
        Ok(Some((
            amount,
            self.needed(Input::Reference, "a reference")?,
        )))
    }

    fn settings(&self) -> Result<KeySettings, (Input, String)> {
        let models: Vec<String> = self
            .value(Input::Models)
            .split([',', ' '])
            .filter(|slug| !slug.is_empty())
            .map(str::to_owned)
            .collect();
        let last_day = self.value(Input::LastDay);
        let expires_at = match clock::end_of_day(last_day) {
            None if !last_day.is_empty() => {
                return Err((Input::LastDay, "write the day as YYYY-MM-DD".to_owned()));
            }
            end => end,
        };
        Ok(KeySettings {
            label: self.needed(Input::Label, "a label")?,
            models: (!models.is_empty()).then_some(models),
            expires_at,
            rate: self.number(Input::Rate)?,
            concurrency: self.number(Input::Concurrency)?,
        })
    }

    fn number(&self, input: Input) -> Result<Option<u32>, (Input, String)> {
        match self.value(input) {
            "" => Ok(None),
            text => (text.parse().ok().filter(|number| *number > 0))
                .map(Some)
                .ok_or_else(|| (input, "write a whole number above 0, or nothing".to_owned())),
        }
    }

    fn needed(&self, input: Input, what: &str) -> Result<String, (Input, String)> {
        match self.value(input) {
            "" => Err((input, format!("{what} is required"))),
            text if text.contains(SECRET_PREFIX) && input != Input::Path => Err((
                input,
                "this looks like a secret: do not store it".to_owned(),
            )),
            text => Ok(text.to_owned()),
        }
    }
}

fn at<E: ToString>(input: Input) -> impl Fn(E) -> (Input, String) {
    move |error| (input, error.to_string())
}
