//! Receipts and corrections: what they say and how they are numbered. Pure: the same events give the same documents.

use std::collections::BTreeMap;
use std::fmt;

use farebox_ledger::{
    Amount, CustomerId, Gross, PaidSum, PersonalData, Registers, ReversalKind, SubscriptionState,
    Timestamp, is_same_reference,
};
use serde_json::Value;

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaperKind {
    /// Money came.
    Receipt,
    /// Money of an earlier receipt went back, or came again.
    Correction,
}

impl PaperKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Receipt => "receipt",
            Self::Correction => "correction",
        }
    }
}

/// The periods of a plan that a payment bought, as they were sold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaperPlan {
    /// What people call the plan.
    pub title: String,
    /// The number of the first period.
    pub first: u32,
    /// That of the last.
    pub last: u32,
    /// When they begin, if nothing stops their time.
    pub begins: Timestamp,
    /// And end.
    pub ends: Timestamp,
}

/// `Coder, monthly, period 3: 2027-01-30 to 2027-02-28`.
impl fmt::Display for PaperPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            title,
            first,
            last,
            begins,
            ends,
        } = self;
        match first == last {
            true => write!(out, "{title}, period {first}")?,
            false => write!(out, "{title}, periods {first} to {last}")?,
        }
        let day = |at: &Timestamp| at.to_string().split('T').next().map(str::to_owned);
        let [begins, ends] = [begins, ends].map(|at| day(at).unwrap_or_default());
        write!(out, ": {begins} to {ends}")
    }
}

/// A receipt or a correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaperDocument {
    /// Whose it is.
    pub customer: CustomerId,
    /// Name and address of whom the payment is addressed to, if given and not erased.
    pub personal: Option<PersonalData>,
    /// Customer, generation of the ledger, and place among the customer's documents of that generation, without gaps.
    pub number: String,
    /// What it is.
    pub kind: PaperKind,
    /// When the books took it in.
    pub at: Timestamp,
    /// The payment's own name, as its processor knows it.
    pub payment: String,
    /// Three letters.
    pub currency: String,
    /// What was paid with tax, in ten-thousandths; negative for what went back.
    pub gross: i64,
    /// The tax in it.
    pub tax: i64,
    /// What was credited, of periods what they give; negative for what was taken or is claimed.
    pub credit: Amount,
    /// What of a plan was paid.
    pub plan: Option<PaperPlan>,
    /// The receipt that a correction corrects.
    pub corrects: Option<String>,
    /// Why a correction was made: `refund`, `dispute` or `dispute_won`.
    pub reason: Option<&'static str>,
}

impl PaperDocument {
    /// What was paid, with its currency.
    pub fn total(&self) -> String {
        format!("{} {}", signed(self.gross), self.currency)
    }

    /// What was paid without tax.
    pub const fn net(&self) -> i64 {
        self.gross.saturating_sub(self.tax)
    }
}

/// Something that paper is made of, in the order of the books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PaperEvent {
    pub(super) at: Timestamp,
    pub(super) what: PaperWhat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PaperWhat {
    /// A payment was booked.
    Paid {
        payment: String,
        paid: PaidSum,
        credit: Amount,
    },
    /// What it bought of a plan.
    Sold { payment: String, plan: PaperPlan },
    /// Something of a payment went back, so far.
    Told {
        payment: String,
        kind: ReversalKind,
        cumulative: Gross,
    },
}

impl PaperWhat {
    pub(super) fn is_about(&self, reference: &str) -> bool {
        let (Self::Paid { payment, .. } | Self::Sold { payment, .. } | Self::Told { payment, .. }) =
            self;
        is_same_reference(payment, reference)
    }
}

/// What is known of one payment.
#[derive(Debug, Default)]
struct PaymentPaper {
    /// Its receipt, what was paid and the credit, once it is booked.
    receipt: Option<(String, PaidSum, Amount)>,
    registers: Registers,
    /// What of it documents say has gone back.
    documented: Registers,
    last: Option<&'static str>,
    plan: Option<PaperPlan>,
}

/// A customer's events, becoming documents.
#[derive(Debug)]
pub(super) struct PaperTrail {
    customer: CustomerId,
    /// The later generations and where each begins.
    generations: Vec<(i64, Timestamp)>,
    counted: BTreeMap<i64, u64>,
    payments: BTreeMap<String, PaymentPaper>,
    documents: Vec<PaperDocument>,
}

impl PaperTrail {
    pub(super) const fn new(customer: CustomerId, generations: Vec<(i64, Timestamp)>) -> Self {
        Self {
            customer,
            generations,
            counted: BTreeMap::new(),
            payments: BTreeMap::new(),
            documents: Vec::new(),
        }
    }

    pub(super) fn documents(self) -> Vec<PaperDocument> {
        self.documents
    }

    pub(super) fn add(&mut self, event: PaperEvent) {
        match event.what {
            PaperWhat::Paid {
                payment,
                paid,
                credit,
            } => {
                let number = self.number(event.at);
                self.documents.push(PaperDocument {
                    customer: self.customer,
                    personal: None,
                    number: number.clone(),
                    kind: PaperKind::Receipt,
                    at: event.at,
                    payment: payment.clone(),
                    currency: paid.currency.clone(),
                    gross: paid.gross.parts(),
                    tax: paid.tax.parts(),
                    credit,
                    plan: None,
                    corrects: None,
                    reason: None,
                });
                self.known(&payment).receipt = Some((number, paid, credit));
                self.correct(&payment, event.at);
            }
            // Told behind its payment, of which a correction may be written by then.
            PaperWhat::Sold { payment, plan } => {
                for document in &mut self.documents {
                    if is_same_reference(&document.payment, &payment) {
                        document.plan = Some(plan.clone());
                    }
                }
                self.known(&payment).plan = Some(plan);
            }
            PaperWhat::Told {
                payment,
                kind,
                cumulative,
            } => {
                let known = self.known(&payment);
                known.registers.tell(kind, cumulative);
                known.last = Some(kind.as_str());
                self.correct(&payment, event.at);
            }
        }
    }

    fn known(&mut self, payment: &str) -> &mut PaymentPaper {
        let spelled = self
            .payments
            .keys()
            .find(|other| is_same_reference(other, payment))
            .cloned();
        self.payments
            .entry(spelled.unwrap_or_else(|| payment.to_owned()))
            .or_default()
    }

    /// Writes a correction of what has gone back of a booked payment and no document says yet.
    fn correct(&mut self, payment: &str, at: Timestamp) {
        let known = self.known(payment);
        let Some((receipt, paid, credit)) = known.receipt.clone() else {
            return;
        };
        let (before, after) = (known.documented, known.registers);
        known.documented = after;
        let (reason, plan) = (known.last, known.plan.clone());
        let gone = |registers: Registers| registers.reversed(paid.gross).parts();
        let gross = gone(before).saturating_sub(gone(after));
        if gross == 0 {
            return;
        }
        let tax = |registers| share(paid.tax, gone(registers), paid.gross);
        let due = |registers: Registers| registers.due(&paid, credit);
        let number = self.number(at);
        self.documents.push(PaperDocument {
            customer: self.customer,
            personal: None,
            number,
            kind: PaperKind::Correction,
            at,
            payment: payment.to_owned(),
            currency: paid.currency.clone(),
            gross,
            tax: tax(before).saturating_sub(tax(after)),
            credit: due(before).checked_sub(due(after)).unwrap_or_default(),
            plan,
            corrects: Some(receipt),
            reason,
        });
    }

    fn number(&mut self, at: Timestamp) -> String {
        let begun = self.generations.iter().filter(|(_, begin)| *begin <= at);
        let generation = begun.map(|(generation, _)| *generation).max().unwrap_or(1);
        let count = self.counted.entry(generation).or_default();
        *count = count.saturating_add(1);
        format!("{}-{generation}-{count}", self.customer)
    }
}

/// An amount in ten-thousandths, of either sign.
pub(super) fn signed(parts: i64) -> String {
    let size = i64::try_from(parts.unsigned_abs()).unwrap_or(i64::MAX);
    let size = Gross::from_parts(size).unwrap_or_default();
    let sign = if parts < 0 { "-" } else { "" };
    format!("{sign}{size}")
}

/// The tax in a part of a payment, rounded down.
fn share(tax: Gross, part: i64, whole: Gross) -> i64 {
    let share = i128::from(tax.parts()) * i128::from(part) / i128::from(whole.parts().max(1));
    i64::try_from(share).unwrap_or_default()
}

fn text(details: &Value, name: &str) -> Option<String> {
    details.get(name)?.as_str().map(str::to_owned)
}

fn usd(details: &Value, name: &str) -> Option<Amount> {
    Amount::from_usd_str(details.get(name)?.as_str()?).ok()
}

/// The first credit of a key that was created with one.
pub(super) fn first_credit(details: &Value) -> Option<PaperWhat> {
    let credit = usd(details, "credit")?;
    Some(PaperWhat::Paid {
        payment: text(details, "reference")?,
        paid: PaidSum::in_usd(credit),
        credit,
    })
}

/// A top-up; without particulars it was paid in US dollars.
pub(super) fn top_up(details: &Value) -> Option<PaperWhat> {
    let credit = usd(details, "amount")?;
    let paid = match details.get("paid") {
        Some(paid) => PaidSum {
            currency: text(paid, "currency")?,
            gross: Gross::parse(&text(paid, "gross")?).ok()?,
            tax: Gross::parse(&text(paid, "tax")?).ok()?,
        },
        None => PaidSum::in_usd(credit),
    };
    Some(PaperWhat::Paid {
        payment: text(details, "reference")?,
        paid,
        credit,
    })
}

/// Periods of a plan that a payment bought, beside it.
pub(super) fn sold(details: &Value, at: Timestamp) -> Option<PaperWhat> {
    let state = details.get("subscription")?.clone();
    let state: SubscriptionState = serde_json::from_value(state).ok()?;
    let sale = state.sold.last()?;
    let (first, begins, ends) = state.ahead(at).pop()?;
    Some(PaperWhat::Sold {
        payment: sale.payment.clone()?,
        plan: PaperPlan {
            title: sale.terms.title.clone(),
            first,
            last: first.saturating_add(sale.count.saturating_sub(1)),
            begins,
            ends,
        },
    })
}

/// A message about money that went back.
pub(super) fn told(details: &Value) -> Option<PaperWhat> {
    let word = text(details, "kind")?;
    let kinds = [
        ReversalKind::Refund,
        ReversalKind::Dispute,
        ReversalKind::DisputeWon,
    ];
    Some(PaperWhat::Told {
        payment: text(details, "payment")?,
        kind: kinds.into_iter().find(|kind| kind.as_str() == word)?,
        cumulative: Gross::parse(&text(details, "cumulative")?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn paid(payment: &str) -> PaperWhat {
        let details = json!({ "amount": "10.00", "reference": payment,
            "paid": { "currency": "EUR", "gross": "11.90", "tax": "1.90" } });
        top_up(&details).unwrap()
    }

    fn gone(payment: &str, kind: &str, cumulative: &str) -> PaperWhat {
        let details = json!({ "payment": payment, "kind": kind, "cumulative": cumulative });
        told(&details).unwrap()
    }

    fn written(events: impl IntoIterator<Item = PaperWhat>) -> Vec<PaperDocument> {
        let mut all = PaperTrail::new(
            CustomerId::from_random(1),
            vec![(2, Timestamp::from_millis(1_000))],
        );
        for (place, what) in events.into_iter().enumerate() {
            let at = Timestamp::from_millis(i64::try_from(place).unwrap() * 250);
            all.add(PaperEvent { at, what });
        }
        all.documents()
    }

    #[test]
    fn corrections_are_documents_of_their_own() {
        let found = written([
            paid("pi_1"),
            gone("PI_1", "refund", "5.95"),
            gone("pi_1", "refund", "5.95"),
            gone("pi_1", "dispute", "11.90"),
            paid("pi_2"),
            gone("pi_1", "dispute_won", "11.90"),
        ]);
        let shown: Vec<_> = found
            .iter()
            .map(|document| {
                let number = document.number.trim_start_matches("c_0000000001-");
                (
                    number,
                    document.gross,
                    document.tax,
                    document.credit.to_string(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("1-1", 119_000, 19_000, "10.00".to_owned()),
                ("1-2", -59_500, -9_500, "-5.00".to_owned()),
                ("1-3", -59_500, -9_500, "-5.00".to_owned()),
                ("2-1", 119_000, 19_000, "10.00".to_owned()),
                ("2-2", 59_500, 9_500, "5.00".to_owned()),
            ]
        );
        assert_eq!(found[4].corrects.as_ref(), Some(&found[0].number));
        assert_eq!(found[4].reason, Some("dispute_won"));
        assert_eq!(found[1].net(), -50_000);
    }

    #[test]
    fn what_went_back_before_a_payment_was_booked_is_corrected_then() {
        let found = written([gone("pi_1", "refund", "11.90"), paid("pi_1")]);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[1].gross, found[1].credit.to_string()),
            (-119_000, "-10.00".to_owned())
        );
    }

    proptest! {
        /// Whatever is told in whatever order: documents of a payment add up to what is left of it, and numbers have no gaps.
        #[test]
        fn documents_add_up(told in proptest::collection::vec((0..3_usize, 0..130_000_i64), 0..20)) {
            let kinds = ["refund", "dispute", "dispute_won"];
            let events = told.iter().map(|(kind, parts)| {
                gone("pi_1", kinds[*kind], &Gross::from_parts(*parts).unwrap().to_string())
            });
            let mut registers = Registers::default();
            for what in events.clone() {
                if let PaperWhat::Told { kind, cumulative, .. } = what {
                    registers.tell(kind, cumulative);
                }
            }
            let found = written(std::iter::once(paid("pi_1")).chain(events));
            let whole = Gross::parse("11.90").unwrap();
            let left = whole.parts() - registers.reversed(whole).parts();
            prop_assert_eq!(found.iter().map(|document| document.gross).sum::<i64>(), left);
            prop_assert_eq!(found.iter().map(|document| document.tax).sum::<i64>() == 0, left == 0);
            let mut numbers = BTreeMap::<i64, u64>::new();
            for document in &found {
                let mut parts = document.number.rsplit('-');
                let n: u64 = parts.next().unwrap().parse().unwrap();
                let next = numbers.entry(parts.next().unwrap().parse().unwrap()).or_default();
                *next += 1;
                prop_assert_eq!(n, *next);
            }
        }
    }
}
