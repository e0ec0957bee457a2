//! The acts of a seller: what the commands and `/api/v1` both call. A typed request becomes one operation of the ledger, and what it
//! came to a document.
//!
//! Nothing here decides about money: the ledger does, whoever asks.

pub mod auto_top_up;
pub mod cap;
#[cfg(feature = "clap")]
mod command_line;
pub mod customer;
pub mod dates;
pub mod entry;
pub mod erasure;
pub mod event;
pub mod grant;
pub mod key;
pub mod link;
pub mod member;
pub mod paper;
pub mod payment;
pub mod plan;
pub mod reads;
pub mod request;
pub mod reservation;
pub mod subscription;
pub mod token;
pub mod value;
pub mod voucher;
pub mod waiting;

use std::fmt;

use farebox_ledger::key::Change;
use farebox_ledger::{
    Account, Act, Amount, Credit, CreditKind, Customer, CustomerAct, CustomerChange, CustomerId,
    Key, KeyChange, KeyId, Ledger, LedgerError, LinkToken, Operation, OperationId, Outcome,
    PlanTerms, Refusal, Scope, Secret, TokenSecret, TokenToday, UtcDay, VoucherCode, clock,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use customer::CustomerDocument;
use grant::GrantDocument;
use key::KeyDocument;
use payment::{MovedDocument, PaymentMovedDocument, PostedDocument};
use reservation::ReservationDocument;
use subscription::SubscriptionDocument;
use voucher::LotDocument;

/// What a seller can do: the API's body or query has its members, the OpenAPI document its words.
pub trait SellerAct: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Whom it is done to.
    type Of: Send + Sync;
    /// A body that is taken.
    const EXAMPLE: &'static str = "{}";

    /// What is to be done first, each by itself.
    ///
    /// # Errors
    /// Why it cannot be asked for.
    fn before(
        &self,
        _of: &Self::Of,
        _doer: &Doer<'_>,
    ) -> impl Future<Output = Result<Vec<Deed>, Unfit>> + Send {
        async { Ok(Vec::new()) }
    }

    /// What the ledger is to be asked.
    ///
    /// # Errors
    /// Why it cannot be asked for.
    fn deed(
        self,
        of: Self::Of,
        doer: &Doer<'_>,
    ) -> impl Future<Output = Result<Deed, Unfit>> + Send;

    /// What it makes of an account, by the ledger's own rules; `None` if it moves no money.
    fn after(&self, _account: Account) -> Option<Result<Account, Refusal>> {
        None
    }
}

/// Who does it, and in which ledger.
pub struct Doer<'a> {
    /// The ledger.
    pub ledger: &'a dyn Ledger,
    /// The name for journal and audit.
    pub actor: &'a str,
    /// Whether it is a token that only sells.
    pub sells: bool,
    /// The one act that is done, where its id and time were kept before.
    pub kept: Option<Act>,
    /// What is sold, where that is known.
    pub sold: Option<&'a dyn SoldModels>,
}

/// The models, plans and price lists of the catalog.
pub trait SoldModels: Sync {
    /// Why a name is no slug of them, and what to write instead; `None` if it is one.
    fn unsold(&self, slug: &str) -> Option<String>;

    /// What a plan sells now.
    ///
    /// # Errors
    /// Why it is not sold, and what to write instead.
    fn plan(&self, name: &str) -> Result<PlanTerms, String>;

    /// Whether there is a price list of this name.
    ///
    /// # Errors
    /// That there is none, and what to write instead.
    fn has_list(&self, name: &str) -> Result<(), String>;
}

impl Doer<'_> {
    /// An act in its name, now.
    pub fn act(&self) -> Act {
        let kept = self.kept.clone();
        kept.unwrap_or_else(|| act(self.actor.to_owned()))
    }
}

/// Acts of one word: each changes a customer or a key in one way, without members.
macro_rules! changes {
    ($of:ty, $deed:path; $($(#[$said:meta])* $name:ident: $change:expr;)*) => {$(
        $(#[$said])*
        #[derive(Debug, Deserialize, JsonSchema)]
        pub struct $name {}

        impl SellerAct for $name {
            type Of = $of;

            async fn deed(self, of: $of, doer: &Doer<'_>) -> Result<Deed, Unfit> {
                Ok($deed(of, $change, doer.act()))
            }
        }
    )*};
}
use changes;

/// Why an act cannot be asked for as it is written.
#[derive(Debug)]
pub enum Unfit {
    /// Something is missing beside this, or must not be there.
    Incomplete(Option<&'static str>, &'static str),
    /// What is asked for cannot be.
    Wrong(String),
    /// What a member says cannot be, and what to write instead.
    Member(&'static str, &'static str),
    /// There is no such charge.
    NoCharge(OperationId),
    /// This is the name of no payment that was asked for.
    NoWish(String),
    /// The payment is of this customer.
    OfAnother(String, CustomerId),
    /// The ledger could not be read.
    Unread(LedgerError),
}

impl From<LedgerError> for Unfit {
    fn from(error: LedgerError) -> Self {
        Self::Unread(error)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete(_, why) => out.write_str(why),
            Self::Wrong(why) => out.write_str(why),
            Self::Member(name, why) => write!(out, "{name}: {why}"),
            Self::NoCharge(request) => write!(out, "there is no charge of req_{request}"),
            Self::NoWish(named) => write!(out, "{named:?} was never asked for"),
            Self::OfAnother(payment, customer) => {
                write!(out, "payment {payment:?} is of customer {customer}")
            }
            Self::Unread(error) => write!(out, "{error}"),
        }
    }
}

/// An act that is about to be done.
#[derive(Debug, Clone)]
pub struct Deed {
    /// What the ledger is asked to do.
    pub operation: Operation,
    /// What its answer shows once.
    pub shown_once: Option<NewSecret>,
}

/// A secret that only the answer to its own request shows. `Debug` shows none.
#[derive(Debug, Clone)]
pub enum NewSecret {
    /// A key's new secret.
    Secret(Secret),
    /// A new token's secret.
    Token(TokenSecret),
    /// A sign-in link.
    Link(LinkToken),
    /// An owner's way to the shop.
    ShopLink(LinkToken),
    /// The codes of a lot of vouchers, in the order of their numbers.
    Codes(Vec<VoucherCode>),
}

/// An act that was done.
#[derive(Debug)]
pub struct Deeded {
    /// What it came to.
    pub outcome: Outcome,
    /// What its answer shows once.
    pub shown_once: Option<NewSecret>,
}

impl<O: Into<Operation>> From<O> for Deed {
    fn from(operation: O) -> Self {
        Self {
            operation: operation.into(),
            shown_once: None,
        }
    }
}

impl Deed {
    /// What shows a secret once.
    pub(crate) fn showing(operation: impl Into<Operation>, secret: NewSecret) -> Self {
        Self {
            operation: operation.into(),
            shown_once: Some(secret),
        }
    }

    /// One change of a customer.
    pub fn on_customer(customer: CustomerId, change: CustomerAct, act: Act) -> Self {
        CustomerChange {
            customer,
            change,
            act,
        }
        .into()
    }

    /// One change of a key.
    pub fn on_key(key: KeyId, change: Change, act: Act) -> Self {
        KeyChange { key, change, act }.into()
    }

    /// A credit of any kind.
    pub fn of_credit(
        to: Scope,
        kind: CreditKind,
        amount: Amount,
        reference: String,
        act: Act,
    ) -> Self {
        let Act {
            operation,
            actor,
            at,
        } = act;
        Credit {
            operation,
            to,
            kind,
            amount,
            reference,
            actor,
            at,
        }
        .into()
    }

    /// Does it.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn perform(self, ledger: &dyn Ledger) -> Result<Deeded, LedgerError> {
        Ok(Deeded {
            outcome: ledger.apply(self.operation).await?,
            shown_once: self.shown_once,
        })
    }
}

impl Deeded {
    /// Its document, with what is shown once.
    pub fn document(&self) -> Value {
        match (&self.outcome, &self.shown_once) {
            (Outcome::Key(key), Some(NewSecret::Secret(secret))) => {
                json!(KeyDocument::with_secret(key, secret))
            }
            (outcome @ Outcome::Token(_), Some(NewSecret::Token(secret))) => {
                let mut shown = document(outcome);
                shown["secret"] = json!(secret.reveal());
                shown
            }
            (Outcome::Lot(lot), Some(NewSecret::Codes(codes))) => json!(LotDocument {
                codes: Some(revealed(codes)),
                ..LotDocument::of(lot, clock::now())
            }),
            (outcome, _) => document(outcome),
        }
    }

    /// A key with its new secret.
    pub fn sold(&self) -> Option<(&Key, &Secret)> {
        match (&self.outcome, &self.shown_once) {
            (Outcome::Key(key), Some(NewSecret::Secret(secret))) => Some((key, secret)),
            _ => None,
        }
    }

    /// The same, for keeps.
    ///
    /// # Errors
    /// When no key was sold, which a caller that sold one never sees.
    pub fn into_key(self) -> Result<(Key, Secret), LedgerError> {
        match (self.outcome, self.shown_once) {
            (Outcome::Key(key), Some(NewSecret::Secret(secret))) => Ok((*key, secret)),
            _ => Err(LedgerError::unknown("no key was made")),
        }
    }

    /// A customer that was made.
    ///
    /// # Errors
    /// When none was, which a caller that made one never sees.
    pub fn into_customer(self) -> Result<Customer, LedgerError> {
        match self.outcome {
            Outcome::Customer(customer) => Ok(*customer),
            _ => Err(LedgerError::unknown("no customer was made")),
        }
    }

    /// Whether the ledger knew it already, so that nothing changed.
    pub fn repeated(&self) -> bool {
        match &self.outcome {
            Outcome::Posted(posted) => posted.repeated,
            Outcome::Moved(moved) => moved.repeated,
            Outcome::Payment(moved) => moved.repeated,
            Outcome::GrantAnswer(answer) => answer.repeated,
            Outcome::PlanAnswer(answer) => answer.repeated,
            _ => false,
        }
    }
}

/// What an operation came to. Without secrets: the ledger never has one.
pub fn document(outcome: &Outcome) -> Value {
    let now = clock::now();
    match outcome {
        Outcome::Key(key) => json!(KeyDocument::of(key, now)),
        Outcome::Customer(customer) => json!(CustomerDocument::from(&**customer)),
        Outcome::Posted(posted) => json!(PostedDocument::from(&**posted)),
        Outcome::Moved(moved) => json!(MovedDocument::from(&**moved)),
        Outcome::Payment(moved) => json!(PaymentMovedDocument::from(&**moved)),
        Outcome::Token(token) => {
            let today = TokenToday::of(token.id, UtcDay::of(now), []);
            token::document(token, &today, now)
        }
        Outcome::Lot(lot) => json!(LotDocument::of(lot, now)),
        Outcome::GrantAnswer(answer) => json!(GrantDocument::from(&**answer)),
        Outcome::PlanAnswer(answer) => json!(SubscriptionDocument::from(&**answer)),
        Outcome::Reservation(kept) => json!(ReservationDocument::from(&**kept)),
        Outcome::Done
        | Outcome::Answered(_)
        | Outcome::Held(_)
        | Outcome::Finished(_)
        | Outcome::Epoch(_)
        | Outcome::Recovered(_)
        | Outcome::Owner(_) => json!({}),
    }
}

/// The codes of a lot, right after they were made: the only time they are shown.
pub fn revealed(codes: &[VoucherCode]) -> Vec<String> {
    let reveal = |code: &VoucherCode| code.reveal().to_owned();
    codes.iter().map(reveal).collect()
}

/// An administrative act, now, in somebody's name.
pub fn act(actor: String) -> Act {
    Act {
        operation: clock::operation_id(),
        actor,
        at: clock::now(),
    }
}
