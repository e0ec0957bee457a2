//! What each form asks for: its fields with their hints and first values, its title, and the file that it offers.

use farebox_ledger::{CustomerSettings, KeySettings, Scope};

use super::{ConsoleExport, Form, FormField, FormPurpose, Input};
use crate::app::margins;
use crate::clock;
use crate::field::TextField;

/// A field's meaning, name and hint.
type InputRow = (Input, &'static str, &'static str);

const AMOUNT: InputRow = (Input::Amount, "Amount $", "like 12.50; at most 6 decimals");
const CORRECTION: InputRow = (Input::Amount, "Amount $", "like -2.50 or 2.50");
const REFERENCE: InputRow = (Input::Reference, "Reference", "invoice or payment id, new");
const REASON: InputRow = (Input::Reason, "Reason", "the reason, for the journal");
const LAST_FOUR: InputRow = (Input::LastFour, "Last four", "characters of the id above");
/// What a key may do.
const SETTINGS: [InputRow; 5] = [
    (Input::Label, "Label", "a name: a customer, a project"),
    (Input::Models, "Models", "slugs with commas; empty is all"),
    (
        Input::LastDay,
        "Last day",
        "YYYY-MM-DD, UTC; empty is never",
    ),
    (Input::Rate, "Requests/s", "whole number; empty is no limit"),
    (Input::Concurrency, "At once", "whole number; empty is 64"),
];
/// What all keys of a customer may do together.
const CUSTOMER: [InputRow; 5] = [
    (Input::Label, "Label", "a name: a person, a team, a class"),
    (
        Input::ExternalId,
        "External id",
        "its id in your system; unique",
    ),
    (
        Input::LowBalance,
        "Low below $",
        "empty: a tenth of a top-up",
    ),
    (Input::Rate, "Requests/s", "whole number; empty is no limit"),
    (Input::Concurrency, "At once", "whole number; empty is 64"),
];
/// The same fields for many keys, of which each keeps what is not typed.
const EACH_KEY: [InputRow; 4] = [
    (Input::Models, "Models", "slugs, or all; empty keeps them"),
    (
        Input::LastDay,
        "Last day",
        "YYYY-MM-DD or none; empty keeps",
    ),
    (Input::Rate, "Requests/s", "number or none; empty keeps it"),
    (
        Input::Concurrency,
        "At once",
        "number or none; empty keeps it",
    ),
];

/// What a form asks for, in order.
pub(super) fn of(purpose: &FormPurpose) -> Vec<InputRow> {
    match purpose {
        FormPurpose::TopUp => vec![AMOUNT, REFERENCE],
        FormPurpose::NewKey => {
            let mut list = SETTINGS.to_vec();
            let balance = (Input::Amount, "Balance $", "like 25; may be empty");
            let reference = (Input::Reference, "Reference", "of that payment");
            list.splice(1..1, [balance, reference]);
            list
        }
        FormPurpose::Edit => SETTINGS.to_vec(),
        FormPurpose::NewCustomer | FormPurpose::EditCustomer => CUSTOMER.to_vec(),
        FormPurpose::Move => vec![
            (Input::Into, "Into", "the customer that gets it: c_…"),
            AMOUNT,
            (Input::Reference, "Reference", "a name for this move, new"),
        ],
        FormPurpose::Rotate => vec![(
            Input::Overlap,
            "Overlap",
            "how long the old secret works: ← →",
        )],
        FormPurpose::Revoke | FormPurpose::Close => vec![LAST_FOUR],
        FormPurpose::Adjust => vec![CORRECTION, REASON, REFERENCE],
        FormPurpose::Refund { .. } => vec![AMOUNT, REASON, REFERENCE],
        FormPurpose::BulkTopUp(_)
        | FormPurpose::BulkAdjust(_)
        | FormPurpose::BulkRevoke(_)
        | FormPurpose::BulkEdit(_) => of_all(purpose),
        FormPurpose::Export(_) => vec![
            (Input::Format, "Format", "csv or json: ← →"),
            (Input::Path, "File", "a new file"),
        ],
        FormPurpose::SaveSecret => {
            vec![(Input::Path, "File", "a new file, readable only by you")]
        }
    }
}

/// What the form of an act on all marked keys asks for.
fn of_all(purpose: &FormPurpose) -> Vec<InputRow> {
    let each = (
        Input::Reference,
        "Reference",
        "of all; each gets its key's id",
    );
    match purpose {
        FormPurpose::BulkTopUp(_) => vec![AMOUNT, each],
        FormPurpose::BulkEdit(_) => EACH_KEY.to_vec(),
        FormPurpose::BulkAdjust(_) => vec![
            (Input::Amount, "Amount $", "like -2.50 or 2.50, for each"),
            REASON,
            each,
        ],
        _ => vec![(
            Input::HowMany,
            "How many",
            "keys are revoked: the number above",
        )],
    }
}

impl Form {
    pub(super) fn field(&self, input: Input, name: &'static str, hint: &'static str) -> FormField {
        let first = match input {
            Input::Overlap => Some("0".to_owned()),
            Input::Format => Some("csv".to_owned()),
            Input::Path => Some(self.default_path("csv")),
            _ => self.known(input),
        };
        FormField {
            input,
            name,
            hint,
            field: TextField::new(first.unwrap_or_default()),
            error: None,
        }
    }

    /// What a field of an edit shows when the form opens: of many keys nothing.
    pub(super) fn known(&self, input: Input) -> Option<String> {
        let about = self.about.as_ref();
        let known = match self.purpose {
            FormPurpose::Edit => of_key(input, &about?.key()?.settings),
            FormPurpose::EditCustomer => of_customer(input, &about?.customer().settings),
            FormPurpose::BulkEdit(_) => None,
            _ => return None,
        };
        Some(known.unwrap_or_default())
    }

    pub(super) fn default_path(&self, ending: &str) -> String {
        match &self.purpose {
            FormPurpose::Export(ConsoleExport::Keys) => format!("farebox-keys.{ending}"),
            FormPurpose::Export(ConsoleExport::Entries(of)) => format!("farebox-{of}.{ending}"),
            FormPurpose::Export(ConsoleExport::Audit) => format!("farebox-audit.{ending}"),
            FormPurpose::Export(ConsoleExport::Sums(view, query)) => {
                format!(
                    "farebox-{}-by-{}.{ending}",
                    view.name(),
                    margins::by_name(query.by)
                )
            }
            _ => format!("{}.key", self.of),
        }
    }

    /// The title of the page.
    pub(crate) const fn title(&self) -> &'static str {
        match self.purpose {
            FormPurpose::TopUp | FormPurpose::BulkTopUp(_) => "Top up",
            FormPurpose::Adjust | FormPurpose::BulkAdjust(_) => "Adjust",
            FormPurpose::Revoke | FormPurpose::BulkRevoke(_) => "Revoke",
            FormPurpose::NewKey if self.about.is_some() => "New key of",
            FormPurpose::NewKey => "New key",
            FormPurpose::NewCustomer => "New customer",
            FormPurpose::Edit | FormPurpose::EditCustomer | FormPurpose::BulkEdit(_) => "Edit",
            FormPurpose::Close => "Close",
            FormPurpose::Move => "Move money of",
            FormPurpose::Rotate => "Rotate the secret of",
            FormPurpose::Refund { .. } => "Refund on",
            FormPurpose::Export(ConsoleExport::Keys) => "Export keys (those of the filter)",
            FormPurpose::Export(ConsoleExport::Entries(_)) => "Export all entries of",
            FormPurpose::Export(ConsoleExport::Audit) => "Export the audit",
            FormPurpose::Export(ConsoleExport::Sums(..)) => "Export these sums",
            FormPurpose::SaveSecret => "Write to a file",
        }
    }

    /// The id that the form is about, without its letter.
    pub(super) fn symbols(&self) -> String {
        match self.of {
            Scope::Key(key) => key.chars(),
            Scope::Customer(customer) => customer.chars(),
        }
    }
}

/// What a field of a key's settings has at first.
fn of_key(input: Input, settings: &KeySettings) -> Option<String> {
    match input {
        Input::Label => Some(settings.label.clone()),
        Input::Models => settings.models.as_ref().map(|models| models.join(", ")),
        Input::LastDay => settings.expires_at.map(clock::last_day),
        Input::Rate => settings.rate.map(|rate| rate.to_string()),
        Input::Concurrency => settings.concurrency.map(|most| most.to_string()),
        _ => None,
    }
}

/// What a field of a customer's settings has at first.
fn of_customer(input: Input, settings: &CustomerSettings) -> Option<String> {
    match input {
        Input::Label => Some(settings.label.clone()),
        Input::ExternalId => settings.external_id.clone(),
        Input::LowBalance => settings.low_balance.map(|amount| amount.to_string()),
        Input::Rate => settings.rate.map(|rate| rate.to_string()),
        Input::Concurrency => settings.concurrency.map(|most| most.to_string()),
        _ => None,
    }
}
