//! What the shop asks of whoever charges cards. Another processor is one more file with this trait.

use async_trait::async_trait;
use farebox_door::Door;
use farebox_ledger::{Gross, PlanPeriod, Timestamp};
use farebox_toml::{Diagnostic, HiddenText};
use salvo::http::HeaderMap;

use crate::checkout::Checkout;
use crate::signature;

/// Charges cards, and tells what became of the money.
#[async_trait]
pub(crate) trait Processor: Send + Sync {
    /// Begins a checkout. The same checkout again is the same page.
    async fn begin(&self, checkout: &Checkout, back: &Ways) -> Result<OpenCheckout, Unavailable>;

    /// Closes a checkout, so that nobody pays it any more; `false` if somebody has.
    async fn close(&self, id: &str) -> Result<bool, Unavailable>;

    /// Charges the card that its owner stored. The same wish again is the same payment.
    async fn charge(&self, of: &CardCharge<'_>) -> Result<Charged, Unavailable>;

    /// The page on which the owner of a subscription changes its card or cancels it, and comes back; `None` if there is none.
    async fn portal(&self, subscription: &str, back: &str) -> Result<Option<String>, Unavailable>;

    /// Has a subscription end with the period that is paid, for this wish of its owner, once however often it is said; `false` if there is
    /// no such subscription here.
    async fn end(&self, subscription: &str, wish: &str) -> Result<bool, Unavailable>;

    /// What is wrong with the account, and with the way of its callbacks to this shop, which may sell plans.
    async fn findings(&self, public_url: &str, has_plans: bool) -> Vec<Diagnostic>;

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

    /// Checks that a callback is the processor's, of this instant, and as it was sent.
    ///
    /// # Errors
    /// [`BadMessage::Forged`].
    fn check_signature(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        secrets: &[HiddenText],
        now: i64,
    ) -> Result<(), BadMessage> {
        let header = headers
            .get(self.signature_header())
            .and_then(|value| value.to_str().ok())
            .ok_or(BadMessage::Forged("there is no signature"))?;
        signature::check(header, body, secrets, now).map_err(BadMessage::Forged)
    }

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
    /// How often it is paid again, if it is.
    pub(crate) every: Option<PlanPeriod>,
    /// When it can be paid no more, in seconds since 1970.
    pub(crate) closes_at: i64,
}

/// A checkout that can be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenCheckout {
    pub(crate) id: String,
    /// The page on which the buyer pays.
    pub(crate) page: String,
}

/// A checkout that the processor knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCheckout {
    pub(crate) checkout: Checkout,
    /// The payment's own name, once it is paid.
    pub(crate) payment: Option<String>,
    /// The name of the subscription that it began, if it did.
    pub(crate) subscription: Option<String>,
}

/// What a callback says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessorMessage {
    /// A checkout was paid.
    Paid(PaidCheckout),
    /// The stored card was charged for a wish, whose name is the payment's.
    PaidAgain(PaidCheckout),
    /// A period of a plan was paid.
    Period(PaidPeriod),
    /// A subscription is another one, or is over.
    Subscription(SubscriptionNews),
    /// A checkout was completed, and its money comes later.
    Waiting(Checkout),
    /// A checkout that nobody will pay.
    Ended(Checkout),
    /// Money of a payment went back, or was given back.
    Back(MoneyBack),
    /// Nothing that the books take, and somebody has to know of it; what.
    Odd(String),
    /// Nothing that changes the books; why.
    Nothing(String),
}

/// A paid checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaidCheckout {
    /// The checkout's own name, and the payment's.
    pub(crate) id: String,
    pub(crate) reference: String,
    pub(crate) checkout: Checkout,
    /// What was paid indeed.
    pub(crate) currency: String,
    pub(crate) gross: Gross,
    /// The processor's name of whoever stored the card with it.
    pub(crate) owner: Option<String>,
}

/// A paid period of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaidPeriod {
    /// Its name is the invoice's; what was asked for is as the subscription was sold.
    pub(crate) paid: PaidCheckout,
    /// The subscription's own name.
    pub(crate) subscription: String,
    /// When the processor asked for the money.
    pub(crate) invoiced_at: Timestamp,
    /// Whether its checkout was paid with it.
    pub(crate) is_first: bool,
}

/// What a subscription is from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubscriptionNews {
    /// The name of the message.
    pub(crate) event: String,
    pub(crate) subscription: String,
    /// As it is sold now.
    pub(crate) checkout: Checkout,
    pub(crate) is_over: bool,
}

/// A charge of a stored card.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CardCharge<'a> {
    /// The wish that it answers.
    pub(crate) wish: &'a str,
    pub(crate) owner: &'a str,
    /// What is bought, and for whom.
    pub(crate) checkout: &'a Checkout,
    /// The same in a few words.
    pub(crate) what: &'a str,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Charged {
    Paid {
        currency: String,
        gross: Gross,
    },
    /// It is under way; a callback tells of its end.
    Waiting,
    /// It was not charged, and will not be; why.
    Refused(String),
}

impl PaidCheckout {
    /// Whether it is the sum that was asked for; of another one nobody knows the tax.
    pub(crate) fn is_as_asked(&self) -> bool {
        (&self.currency, self.gross) == (&self.checkout.currency, self.checkout.offer.price)
    }
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
    /// All of this kind so far, and the whole payment, as the processor names both in one currency.
    pub(crate) cumulative: Gross,
    pub(crate) whole: Gross,
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
