//! What the shop asks of whoever charges cards. Another processor is one more file with this trait.

use async_trait::async_trait;
use farebox_door::Door;
use farebox_ledger::Gross;
use salvo::http::HeaderMap;

use crate::checkout::Checkout;

/// Charges cards, and tells what became of the money.
#[async_trait]
pub(crate) trait Processor: Send + Sync {
    /// Begins a checkout and returns the page on which the buyer pays. The same checkout again is the same page.
    async fn begin(&self, checkout: &Checkout, back: &Ways) -> Result<String, Unavailable>;

    /// What the processor knows of a checkout by its own id; `None` if nothing.
    async fn find(&self, id: &str) -> Result<Option<FoundCheckout>, Unavailable>;

    /// The header that carries a callback's signature.
    fn signature_header(&self) -> &'static str;

    /// Reads a callback: its raw body, judged by its signature at this instant (seconds since 1970).
    async fn message(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: i64,
    ) -> Result<ProcessorMessage, BadMessage>;

    /// Pages that the processor itself needs here.
    fn pages(&self, door: Door) -> Door {
        door
    }
}

/// Where the buyer comes back to.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    /// The beginning of the page of a purchase; the checkout's id follows.
    pub(crate) paid: String,
    /// After giving up.
    pub(crate) left: String,
    /// What is bought, in a few words.
    pub(crate) what: String,
}

/// A checkout that the processor knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCheckout {
    pub(crate) checkout: Checkout,
    /// The payment's own name, once it is paid.
    pub(crate) payment: Option<String>,
}

/// What a callback says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessorMessage {
    /// A checkout was paid.
    Paid(PaidCheckout),
    /// Money of a payment went back, or was given back.
    Back(MoneyBack),
    /// Nothing that changes the books; why.
    Nothing(String),
}

/// A paid checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaidCheckout {
    /// The payment's own name.
    pub(crate) reference: String,
    pub(crate) checkout: Checkout,
    /// What was paid indeed.
    pub(crate) currency: String,
    pub(crate) gross: Gross,
}

/// Money that went back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MoneyBack {
    /// The name of the message.
    pub(crate) event: String,
    /// The payment's.
    pub(crate) payment: String,
    /// `refund`, `dispute` or `dispute-won`.
    pub(crate) kind: &'static str,
    /// All of this kind so far, in the payment's currency.
    pub(crate) cumulative: Gross,
}

/// The processor does not answer, or not as expected; why, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unavailable(pub(crate) String);

/// A callback that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadMessage {
    /// It is not the processor's, is too old, or was changed.
    Forged(&'static str),
    /// It is the processor's, and says nothing that can be understood.
    Unreadable(String),
    /// The processor has to be asked about it, and does not answer.
    Away(Unavailable),
}
