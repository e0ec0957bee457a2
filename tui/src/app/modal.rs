//! Pages over a screen: form → review → sending → receipt, and others that need an answer.
//!
//! Only a review applies an act, and only on `y`. A secret exists only in its page and is wiped when the page closes.

use farebox_ledger::{
    CustomerId, JournalEntry, Key, KeyId, OperationId, Outcome, PaymentStatus, Scope, Secret,
    Timestamp,
};
use farebox_selling::{Deeded, NewSecret};

use super::bulk::BulkAct;
use super::cell::{faint, id, plain};
use super::form::Form;
use super::list::{ListColumn, ListRow, fill, left};
use super::party::Party;
use super::tone::Tone;
use crate::admin::OneRequest;
use crate::field::TextField;
use crate::plan::Pending;
use crate::state_file::OpenOperation;
use crate::{clock, format, plan};

/// The page over the screen.
#[derive(Debug)]
pub(crate) enum Modal {
    Form(Form),
    Review(ActReview),
    /// Sent, no answer yet.
    Sending(ActReview),
    Unknown(Unknown),
    Receipt(Receipt),
    Secret(SecretPage),
    Request(RequestPage),
    /// Operations with an unknown outcome, and the selected one.
    Operations(usize),
    Reading(ReadingModal),
    Bulk(BulkAct),
    Find(Find),
}

/// Facts to read in full, from the line `scroll` on.
#[derive(Debug)]
pub(crate) struct ReadingModal {
    pub(crate) title: String,
    /// Names and values.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) scroll: u16,
}

/// A search under way.
#[derive(Debug, Default)]
pub(crate) struct Find {
    pub(crate) field: TextField,
    /// It was sent, and no answer has come.
    pub(crate) looking: bool,
    /// Why nothing was found.
    pub(crate) problem: Option<String>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hit {
    Key(KeyId),
    Customer(CustomerId),
    /// Several keys have this text in their labels.
    Label(String),
    /// Several customers have this text in their labels or external ids.
    Customers(String),
    /// A request, payment or correction, and whose it is.
    Request(OperationId, Option<Scope>),
}

/// An act before it is applied.
#[derive(Debug)]
pub(crate) struct ActReview {
    /// Where `esc` returns to; none for acts without a form.
    pub(crate) form: Option<Form>,
    pub(crate) pending: Pending,
    /// The current key or customer; none for a new one.
    pub(crate) about: Option<Party>,
}

/// An act with an unknown outcome.
#[derive(Debug)]
pub(crate) struct Unknown {
    pub(crate) review: ActReview,
    pub(crate) problem: String,
    pub(crate) tries: u32,
    /// The ledger was read and does not contain it.
    pub(crate) not_applied: bool,
}

/// An act that was applied.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) pending: Pending,
    pub(crate) entry: Option<Box<JournalEntry>>,
    pub(crate) about: Option<Party>,
    /// It had already been applied by an earlier attempt.
    pub(crate) repeated: bool,
    /// Why a payment is kept as unapplied.
    pub(crate) unapplied: Option<String>,
}

/// Something that is shown once.
#[derive(Debug)]
pub(crate) enum ShownOnce {
    Secret(Secret),
    /// A sign-in link and its expiry.
    Link(Hidden, Timestamp),
}

/// Text that `Debug` never shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden(pub(crate) String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Hidden(…)")
    }
}

impl ShownOnce {
    /// In the clear.
    pub(crate) fn reveal(&self) -> &str {
        match self {
            Self::Secret(secret) => secret.reveal(),
            Self::Link(link, _) => &link.0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct SecretPage {
    pub(crate) key: Box<Key>,
    pub(crate) shown: ShownOnce,
    pub(crate) hidden: bool,
    pub(crate) copied: bool,
    pub(crate) written: Option<String>,
    /// Whether the file's name is being typed.
    pub(crate) file: Option<Form>,
    /// Whether the word that closes the page is being typed.
    pub(crate) leaving: Option<TextField>,
    pub(crate) problem: Option<String>,
    /// Whether it is from a new key, not from a rotation.
    pub(crate) new: bool,
}

impl SecretPage {
    /// A page that shows its secret, before anything was done with it.
    pub(crate) fn new(key: Box<Key>, shown: ShownOnce, new: bool) -> Self {
        Self {
            key,
            shown,
            hidden: false,
            copied: false,
            written: None,
            file: None,
            leaving: None,
            problem: None,
            new,
        }
    }
}

/// One request: the journal's entry, once it was read, and what the gateway knows.
#[derive(Debug)]
pub(crate) struct RequestPage {
    pub(crate) request: OperationId,
    /// Whose it is, as far as that is known.
    pub(crate) of: Option<Scope>,
    pub(crate) entry: Option<Box<JournalEntry>>,
    pub(crate) known: Option<Box<OneRequest>>,
    pub(crate) read: bool,
    pub(crate) problem: Option<String>,
    /// The first visible line.
    pub(crate) scroll: u16,
}

/// What an act came to.
#[derive(Debug, Default)]
pub(crate) struct ActOutcome {
    /// The key or customer as it is now.
    pub(crate) about: Option<Party>,
    pub(crate) entry: Option<Box<JournalEntry>>,
    pub(crate) repeated: bool,
    pub(crate) shown_once: Option<NewSecret>,
    /// Why a payment is kept as unapplied.
    pub(crate) unapplied: Option<String>,
}

impl From<Deeded> for ActOutcome {
    fn from(done: Deeded) -> Self {
        let repeated = done.repeated();
        let mut unapplied = None;
        let (about, entry) = match done.outcome {
            Outcome::Key(key) => (Some(Party::Key(key)), None),
            Outcome::Customer(customer) => (Some(Party::Customer(customer)), None),
            Outcome::Posted(posted) => {
                let (customer, entry) = (posted.customer, posted.entry);
                (
                    Some(posted.key.map_or_else(|| customer.into(), Party::from)),
                    Some(entry),
                )
            }
            Outcome::Payment(moved) => {
                if let PaymentStatus::Unapplied { why } = moved.payment.status {
                    unapplied = Some(why);
                }
                (Some(moved.customer.into()), moved.entry)
            }
            Outcome::Moved(moved) => (Some(moved.from.into()), None),
            Outcome::GrantAnswer(answer) => (Some(answer.customer.into()), None),
            _ => (None, None),
        };
        Self {
            about,
            entry: entry.map(Box::new),
            repeated,
            shown_once: done.shown_once,
            unapplied,
        }
    }
}

/// Why an act failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApplyError {
    /// Nothing changed, for certain.
    No(String),
    /// It may or may not have happened.
    Unknown(String),
}

/// The ledger's answer about an operation with an unknown outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutcomeLookup {
    Applied(Option<Box<JournalEntry>>),
    NotApplied,
    /// Another console of this user is working on it.
    Elsewhere(u32),
    Unreadable(String),
}

/// An operation of the state file with the ledger's answer about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedOperation {
    pub(crate) open: OpenOperation,
    pub(crate) found: OutcomeLookup,
}

/// The list of them.
pub(crate) const OPERATIONS: &[ListColumn<ListedOperation>] = &[
    left("WHEN", 11, 1).shows(|listed, now| {
        let at = clock::parse(&listed.open.at);
        faint(at.map_or_else(String::new, |at| format::when(at, now)))
    }),
    left("ACT", 8, 0).shows(|listed, _| plain(&listed.open.act)),
    left("OF", 12, 2).shows(|listed, _| id(&listed.open.of)),
    fill("WHAT").shows(|ListedOperation { open, .. }, _| {
        let amount = plan::money(open.members()).map(|(_, amount)| format!("{amount} USD "));
        let reference = open.members().get("reference").map(plan::typed);
        let (amount, reference) = (amount.unwrap_or_default(), reference.unwrap_or_default());
        plain(format!("{amount}{reference} {}", open.label))
    }),
    left("OUTCOME", 24, 0).shows(|listed, _| match &listed.found {
        OutcomeLookup::Applied(_) => plain("applied").toned(Tone::Good),
        OutcomeLookup::NotApplied => plain("NOT applied").toned(Tone::Warn),
        OutcomeLookup::Elsewhere(pid) => faint(format!("in console process {pid}")),
        OutcomeLookup::Unreadable(error) => plain(error).toned(Tone::Bad),
    }),
];

impl ListRow for ListedOperation {
    type At<'a> = &'a Self;
}
