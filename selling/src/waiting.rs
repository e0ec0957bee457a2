//! What waits for a person: money without an owner, customers that owe, and auto top-ups that failed; each with its next act.

use farebox_ledger::{
    Customer, Ledger, LedgerError, Payment, PaymentStatus, Timestamp, TopUpWish, WaitingReversal,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::payment::WayBack;
use super::value::{CustomerName, Instant, Usd, Word};

/// Something that waits for a person
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Waiting")]
pub struct WaitingThing {
    /// A payment that could not be booked, what went back of one and is not booked, what a customer owes, or an auto top-up that failed
    #[schemars(extend("enum" = ["unapplied", "reversal", "claim", "top_up_failed"]))]
    pub kind: &'static str,
    /// Whose it is
    pub customer: CustomerName,
    /// The payment, or what it was to be
    pub reference: Option<String>,
    /// How much credit it is about
    pub amount: Usd,
    /// Why it waits
    pub why: String,
    /// Since when; null for what a customer owes
    pub since: Option<Instant>,
    /// What to do
    pub next: String,
}

/// All of it, payments first.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn read(ledger: &dyn Ledger, now: Timestamp) -> Result<Vec<WaitingThing>, LedgerError> {
    let payments = ledger.unapplied().await?;
    let customers = ledger.owing_or_asking().await?;
    let of_payments = payments.iter().flat_map(of_payment);
    let of_customers = customers
        .iter()
        .flat_map(|customer| [owed(customer), failed(customer, now)]);
    Ok(of_payments.chain(of_customers.flatten()).collect())
}

fn of_payment(payment: &Payment) -> Vec<WaitingThing> {
    let thing = |kind, why, since, next| WaitingThing {
        kind,
        customer: CustomerName(payment.customer),
        reference: Some(payment.reference.clone()),
        amount: Usd(payment.credit),
        why,
        since: Some(Instant(since)),
        next,
    };
    let name = quoted(&payment.reference);
    let came = match &payment.status {
        PaymentStatus::Unapplied { why } => Some(thing(
            "unapplied",
            why.clone(),
            payment.at,
            format!(
                "farebox customers unapplied assign {name} --to CUSTOMER; or send it back, and … return {name} --reason WHY"
            ),
        )),
        PaymentStatus::Booked | PaymentStatus::Returned => None,
    };
    let back = |waiting: &WaitingReversal| {
        let way = Word(WayBack::from(waiting.kind));
        let kind = serde_json::json!(way);
        let next = format!(
            "farebox customers reverse {name} {} --kind {} --reference {}",
            waiting.cumulative,
            kind.as_str().unwrap_or_default(),
            quoted(&waiting.reference)
        );
        let since = Timestamp::from_millis(waiting.at);
        let why = format!("a {waiting}: a token's daily bound refused it");
        thing("reversal", why, since, next)
    };
    came.into_iter()
        .chain(payment.waiting.iter().map(back))
        .collect()
}

fn owed(customer: &Customer) -> Option<WaitingThing> {
    let claim = customer.claim;
    claim.is_positive().then(|| WaitingThing {
        kind: "claim",
        customer: CustomerName(customer.id),
        reference: None,
        amount: Usd(claim),
        why: "a payment went back whose credit was spent; its requests are refused".to_owned(),
        since: None,
        next: format!(
            "its next top-up pays it; to let it off: farebox customers adjust {} +{claim} --reason WHY --reference NAME",
            customer.id
        ),
    })
}

/// A rule that asks on, or is off, after its last wish failed.
fn failed(customer: &Customer, now: Timestamp) -> Option<WaitingThing> {
    let auto = customer.auto_top_up.as_ref()?;
    let (_, (wish, why)) = auto.rule.zip(auto.failed_wish(now))?;
    let state = auto.state(now)?;
    Some(WaitingThing {
        kind: "top_up_failed",
        customer: CustomerName(customer.id),
        reference: Some(TopUpWish::reference(customer.id, wish.number)),
        amount: Usd(wish.amount),
        why: format!("{why}; {}", state.words(customer.id)),
        since: Some(Instant(wish.at())),
        next: format!(
            "ask the customer to top up by hand; or farebox customers auto-top-up {} --off",
            customer.id
        ),
    })
}

/// A name as a shell reads it.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if name.chars().all(is_plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}
