//! Auto top-up: a customer's rule that asks for money when its balance falls below a threshold. Pure.
//!
//! The ledger charges no card. It tells what is wanted, a *wish*, under a reference that names the customer and the wish; whoever has
//! the card books a payment under it, or says that it failed. At most one wish is open at a time and at most so many are made in a
//! month, in whatever order things happen. What time does to a wish needs nobody to look: it is judged whenever the wish is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::reference::{self, OF_WISHES};
use crate::value::text::check_text;
use crate::{
    Account, Amount, CapInterval, CustomerId, OperationId, Refusal, Timestamp, TokenId, UtcDay,
};

/// How long a wish waits for its payment, and how long nothing is wanted after one that failed, in milliseconds.
const DAY: i64 = 86_400_000;
/// Failures one after the other that turn a rule off.
// After each failure nothing is wanted for a day, so three are days without a payment: then somebody has to look before more is asked
// for.
const MOST_FAILURES: u32 = 3;
/// Most wishes a month that a rule may allow.
const MOST_PER_MONTH: u32 = 1_000;

/// How much is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refill {
    /// Always this.
    Amount(Amount),
    /// What is missing to this balance.
    Target(Amount),
}

/// When money is wanted, how much, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopUpRule {
    /// Below this balance.
    pub threshold: Amount,
    /// How much.
    #[serde(flatten)]
    pub refill: Refill,
    /// At most so many times in a month of UTC.
    pub per_month: u32,
}

impl TopUpRule {
    /// Refuses a rule that could never be met, or never ends.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let refused = |text: String| Err(Refusal::Limit(text));
        if !self.threshold.is_positive() {
            return refused("the threshold of an auto top-up must be more than zero".to_owned());
        }
        let most = match self.refill {
            Refill::Amount(amount) => amount,
            Refill::Target(target) if target <= self.threshold => {
                return refused(format!(
                    "the target of an auto top-up must be above its threshold of {} USD",
                    self.threshold
                ));
            }
            Refill::Target(target) => target,
        };
        Account::default().top_up(most)?;
        if self.per_month == 0 || self.per_month > MOST_PER_MONTH {
            return refused(format!(
                "an auto top-up is allowed 1 to {MOST_PER_MONTH} times a month"
            ));
        }
        Ok(())
    }

    /// What is wanted at a balance; `None` unless it is below the threshold.
    fn wanted(&self, balance: Amount) -> Option<Amount> {
        if balance >= self.threshold {
            return None;
        }
        match self.refill {
            Refill::Amount(amount) => Some(amount),
            Refill::Target(target) => target.checked_sub(balance),
        }
    }
}

/// `20.00 USD below 5.00 USD, at most 3 times a month`, or `up to 25.00 USD below …`.
impl fmt::Display for TopUpRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refill {
            Refill::Amount(amount) => write!(out, "{amount} USD")?,
            Refill::Target(target) => write!(out, "up to {target} USD")?,
        }
        write!(out, " below {} USD, at most ", self.threshold)?;
        match self.per_month {
            1 => write!(out, "once a month"),
            times => write!(out, "{times} times a month"),
        }
    }
}

/// What became of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WishEnd {
    Booked,
    Failed,
}

/// What a customer's rule has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopUpWish {
    /// Its number: that of the customer's event that tells it.
    pub number: i64,
    /// How much.
    pub amount: Amount,
    /// When, in milliseconds since 1970.
    at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<WishEnd>,
}

impl TopUpWish {
    /// What a reference looks like.
    pub const EXAMPLE: &str = "auto-top-up:c_7f3q9d2xw1-17";

    /// When it was made.
    pub const fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.at)
    }

    /// When it has failed unless it was booked.
    pub const fn until(&self) -> Timestamp {
        Timestamp::from_millis(self.at.saturating_add(DAY))
    }

    /// The name under which its payment is to be booked.
    pub fn reference(customer: CustomerId, number: i64) -> String {
        format!("{OF_WISHES}{customer}-{number}")
    }

    /// Whether a text can only be the name of a wish.
    pub(crate) fn is_reference(text: &str) -> bool {
        reference::folded(text).starts_with(OF_WISHES)
    }

    /// The customer and the number of the wish with this name.
    pub fn named(text: &str) -> Option<(CustomerId, i64)> {
        let folded = reference::folded(text);
        let (customer, number) = folded.strip_prefix(OF_WISHES)?.rsplit_once('-')?;
        let (customer, number) = (customer.parse().ok()?, number.parse().ok()?);
        (Self::reference(customer, number) == folded).then_some((customer, number))
    }
}

/// Why a rule asks for nothing until it is set again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoTopUpOff {
    /// Three wishes failed, one after the other.
    Failures,
    /// A payment of the customer was disputed.
    Dispute,
}

/// What a rule is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoTopUpState {
    /// It asks as soon as the balance is below its threshold.
    Ready,
    /// It has asked for this.
    Pending(TopUpWish),
    /// The last wish failed; it asks for nothing until then.
    Resting(Timestamp),
    /// It has asked as often as it may in this month, and asks again from then on.
    UsedUp(Timestamp),
    /// It asks for nothing until it is set again.
    Off(AutoTopUpOff),
}

impl AutoTopUpState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Pending(_) => "pending",
            Self::Resting(_) => "resting",
            Self::UsedUp(_) => "used_up",
            Self::Off(_) => "off",
        }
    }

    /// What it does, for people.
    #[must_use]
    pub fn words(self, customer: CustomerId) -> String {
        match self {
            Self::Ready => "ready".to_owned(),
            Self::Pending(wish) => format!(
                "waits for {} USD as {} until {}",
                wish.amount,
                TopUpWish::reference(customer, wish.number),
                wish.until()
            ),
            Self::Resting(until) => format!("rests after a failure until {until}"),
            Self::UsedUp(until) => format!("has asked as often as it may until {until}"),
            Self::Off(AutoTopUpOff::Failures) => {
                "off after three failures; set it again to go on".to_owned()
            }
            Self::Off(AutoTopUpOff::Dispute) => {
                "off after a dispute; set it again to go on".to_owned()
            }
        }
    }
}

/// A processor's id of the buyer whose card is kept there. It is personal data: it stands in no act and no event.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessorRef(pub String);

/// Never shows it: it ends up in no log.
impl fmt::Debug for ProcessorRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ProcessorRef(…)")
    }
}

impl ProcessorRef {
    /// Refuses what no processor calls a buyer.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_text("a processor's id", &self.0, 128, true)
    }
}

/// A token to which an owner of the customer came, and until when it may set a rule for the customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitedShop {
    token: TokenId,
    /// In milliseconds since 1970.
    until: i64,
}

/// A customer's rule, and what came of it. One that was removed leaves what it has asked for, which still counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AutoTopUp {
    /// The rule; `None` of one that was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<TopUpRule>,
    /// The token that set the rule; `None` if it was set here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<TokenId>,
    /// Whose card is charged, as whoever set the rule knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_ref: Option<ProcessorRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    visited: Option<VisitedShop>,
    /// The newest wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wish: Option<TopUpWish>,
    /// The first day of the month of that wish.
    month: UtcDay,
    /// How many were made in that month.
    wishes: u32,
    /// Failures since the last booking.
    failures: u32,
    /// Until when nothing is wanted, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rests_until: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    off: Option<AutoTopUpOff>,
    /// Why the newest wish failed, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

// --- what it is ---

impl AutoTopUp {
    /// As it is at an instant: a wish that was not booked within a day has failed then.
    fn seen(&self, now: Timestamp) -> Self {
        let mut seen = self.clone();
        if let Some(wish) = seen.pending().filter(|wish| wish.until() <= now) {
            seen.fail(wish, wish.until());
        }
        seen
    }

    /// The newest wish, and the word for what became of it.
    pub fn newest_wish(&self, now: Timestamp) -> Option<(TopUpWish, &'static str)> {
        let wish = self.seen(now).wish?;
        let word = match wish.end {
            None => "wanted",
            Some(WishEnd::Booked) => "booked",
            Some(WishEnd::Failed) => "failed",
        };
        Some((wish, word))
    }

    /// Until when the token to which an owner came last may set a rule.
    pub fn visited_until(&self) -> Option<Timestamp> {
        let visited = self.visited?;
        Some(Timestamp::from_millis(visited.until))
    }

    /// The newest wish and why it failed, if it has.
    pub fn failed_wish(&self, now: Timestamp) -> Option<(TopUpWish, &str)> {
        let wish = self.seen(now).wish;
        let wish = wish.filter(|wish| wish.end == Some(WishEnd::Failed))?;
        Some((wish, self.why.as_deref().unwrap_or("no payment came")))
    }

    /// Whether a token set this rule, or may set one of a customer that it did not make.
    pub(crate) fn is_agreed_with(&self, token: TokenId, now: Timestamp) -> bool {
        let visited = self.visited.filter(|visited| visited.token == token);
        self.by == Some(token) || visited.is_some_and(|visited| now.millis() < visited.until)
    }

    /// The wish that was neither booked nor said to have failed, however old it is.
    fn pending(&self) -> Option<TopUpWish> {
        self.wish.filter(|wish| wish.end.is_none())
    }

    /// The newest wish, whatever became of it.
    pub(crate) const fn newest(&self) -> Option<TopUpWish> {
        self.wish
    }

    /// The month in which wishes count. A clock that was set back makes no new one.
    fn counted_month(&self, now: Timestamp) -> UtcDay {
        CapInterval::Month.window(UtcDay::of(now)).max(self.month)
    }

    /// How many wishes were made in the month of an instant.
    pub fn wishes(&self, now: Timestamp) -> u32 {
        if self.counted_month(now) == self.month {
            self.wishes
        } else {
            0
        }
    }

    /// Failures since the last booking.
    pub fn failures(&self, now: Timestamp) -> u32 {
        self.seen(now).failures
    }

    /// What a rule is doing at an instant; `None` without one.
    pub fn state(&self, now: Timestamp) -> Option<AutoTopUpState> {
        let rule = self.rule?;
        let seen = self.seen(now);
        let resting = seen.rests_until.map(Timestamp::from_millis);
        let month = self.counted_month(now);
        Some(if let Some(why) = seen.off {
            AutoTopUpState::Off(why)
        } else if let Some(wish) = seen.pending() {
            AutoTopUpState::Pending(wish)
        } else if let Some(until) = resting.filter(|until| now < *until) {
            AutoTopUpState::Resting(until)
        } else if seen.wishes(now) >= rule.per_month {
            let next = CapInterval::Month.next(month).unwrap_or(month);
            AutoTopUpState::UsedUp(next.begin())
        } else {
            AutoTopUpState::Ready
        })
    }

    /// What is to be asked for now, at a balance.
    pub(crate) fn wanted(&self, balance: Amount, now: Timestamp) -> Option<Amount> {
        // Mostly the balance is well, which costs a comparison.
        let amount = self.rule?.wanted(balance)?;
        (self.state(now) == Some(AutoTopUpState::Ready)).then_some(amount)
    }
}

// --- what happens to it ---

impl AutoTopUp {
    /// Sets a rule, or another one. Failures and a dispute are forgiven; what was asked for in this month counts on.
    pub(crate) fn set(
        &self,
        rule: TopUpRule,
        (by, processor_ref): (Option<TokenId>, Option<ProcessorRef>),
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        rule.check()?;
        processor_ref.as_ref().map_or(Ok(()), ProcessorRef::check)?;
        Ok(Self {
            rule: Some(rule),
            by,
            processor_ref,
            failures: 0,
            rests_until: None,
            off: None,
            ..self.seen(now)
        })
    }

    /// Removes the rule. What it asked for can still be booked.
    pub(crate) fn cleared(&self) -> Self {
        Self {
            rule: None,
            by: None,
            processor_ref: None,
            ..self.clone()
        }
    }

    /// Forgets whose card it charges.
    pub(crate) fn erased(&self) -> Self {
        Self {
            processor_ref: None,
            ..self.clone()
        }
    }

    /// An owner came to this token's shop: for a day it may set a rule.
    pub(crate) fn visited(&self, token: TokenId, now: Timestamp) -> Self {
        let until = now.millis().saturating_add(DAY);
        let visited = Some(VisitedShop { token, until });
        Self {
            visited,
            ..self.clone()
        }
    }

    /// Asks for money.
    pub(crate) fn ask(&self, number: i64, amount: Amount, now: Timestamp) -> Self {
        let (month, wishes) = (self.counted_month(now), self.wishes(now));
        let wish = TopUpWish {
            number,
            amount,
            at: now.millis(),
            end: None,
        };
        Self {
            wish: Some(wish),
            month,
            wishes: wishes.saturating_add(1),
            rests_until: None,
            why: None,
            ..self.seen(now)
        }
    }

    /// A payment came for the wish with this number; too late, it is a payment as others are.
    pub(crate) fn booked(&self, number: i64, now: Timestamp) -> Self {
        let seen = self.seen(now);
        match seen.pending().filter(|wish| wish.number == number) {
            Some(wish) => Self {
                wish: Some(TopUpWish {
                    end: Some(WishEnd::Booked),
                    ..wish
                }),
                failures: 0,
                ..seen
            },
            None => seen,
        }
    }

    /// The payment for the wish with this number failed. Said again, nothing changes.
    ///
    /// # Errors
    /// [`Refusal::NotApplicable`] when it was booked, or was never the newest.
    pub(crate) fn failed(
        &self,
        number: i64,
        why: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let mut seen = self.seen(now);
        match seen.wish.filter(|wish| wish.number == number) {
            Some(wish) if wish.end.is_none() => {
                seen.fail(wish, now);
                seen.why = why.map(str::to_owned);
                Ok(seen)
            }
            Some(wish) if wish.end == Some(WishEnd::Failed) => Ok(seen),
            Some(_) => {
                let text = "this top-up was booked, so it did not fail";
                Err(Refusal::NotApplicable(text.to_owned()))
            }
            None => {
                let text = "this is not the newest top-up that was wanted of this customer";
                Err(Refusal::NotApplicable(text.to_owned()))
            }
        }
    }

    /// A payment of the customer was disputed.
    pub(crate) fn disputed(&self) -> Self {
        Self {
            off: self.rule.map(|_| AutoTopUpOff::Dispute),
            ..self.clone()
        }
    }

    fn fail(&mut self, wish: TopUpWish, at: Timestamp) {
        self.wish = Some(TopUpWish {
            end: Some(WishEnd::Failed),
            ..wish
        });
        self.failures = self.failures.saturating_add(1);
        self.rests_until = Some(at.millis().saturating_add(DAY));
        if self.failures >= MOST_FAILURES && self.off.is_none() {
            self.off = Some(AutoTopUpOff::Failures);
        }
    }
}

/// A customer whose rule is looked at when nothing but time has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeTopUp {
    /// Whose rule is judged.
    pub customer: CustomerId,
    /// The cause of what is told.
    pub operation: OperationId,
}

#[cfg(test)]
mod tests;
