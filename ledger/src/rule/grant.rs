//! Grants: credit that may end, and the order in which a customer's money is used. Pure.
//!
//! All paid money without an end is one *pool*. Everything else is a grant, with an order among all that a request may take from: a hold
//! takes from the end of this order, so that what is used first stays free; a charge goes through it from the beginning. A customer's
//! account has the sums of pool and grants together, so the pool is what the grants leave of it.

mod order;
mod turn;

pub use order::Grants;
use order::UsePlace;
pub(crate) use order::{GrantLoss, refunded_parts, windows};
pub(crate) use turn::{BegunPeriod, GrantTurn, MoneyTurn, ended};

use crate::rule::account::less;
use crate::value::reference;
use crate::value::text::check_text;
use crate::{Act, Amount, CustomerId, GrantId, OperationId, Refusal, Timestamp, WindowId};

/// Why credit was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    /// Nobody paid it: a promotion, a voucher, a correction.
    Promotional,
    /// It was paid for.
    Paid,
    /// A period of a plan.
    Plan,
}

/// What became of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantStatus {
    /// It begins later.
    Pending,
    /// It can be used.
    Active,
    /// It is used up.
    Exhausted,
    /// It has ended.
    Expired,
    /// It was taken back.
    Voided,
}

impl GrantStatus {
    /// All, in the order of their codes.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Active,
        Self::Exhausted,
        Self::Expired,
        Self::Voided,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Exhausted => "exhausted",
            Self::Expired => "expired",
            Self::Voided => "voided",
        }
    }

    /// What time has made of it by an instant, whether or not that is booked.
    pub fn at(self, begins: Timestamp, ends: Option<Timestamp>, now: Timestamp) -> Self {
        match self {
            Self::Pending | Self::Active if ends.is_some_and(|end| end <= now) => Self::Expired,
            Self::Pending | Self::Active if begins <= now => Self::Active,
            Self::Pending | Self::Active => Self::Pending,
            Self::Exhausted | Self::Expired | Self::Voided => self,
        }
    }
}

impl GrantKind {
    /// All, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::Promotional, Self::Paid, Self::Plan];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Promotional => "promotional",
            Self::Paid => "paid",
            Self::Plan => "plan",
        }
    }
}

/// Money from one place: a grant, or the pool. Stored as a pair of numbers; of a period of a plan with the windows in which it counts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(into = "StoredPart", try_from = "StoredPart")]
pub struct MoneyPart {
    /// The grant; `None` is the pool.
    pub grant: Option<GrantId>,
    /// How much, with the sign of what it is a part of; of a hold positive, or nothing yet of a plan that it may take from.
    pub amount: Amount,
    /// The windows in which it counts.
    pub windows: Vec<WindowId>,
}

impl MoneyPart {
    /// One that counts in no window.
    pub const fn of(grant: Option<GrantId>, amount: Amount) -> Self {
        Self {
            grant,
            amount,
            windows: Vec::new(),
        }
    }

    /// The same with the other sign: what an entry takes.
    pub(crate) fn taken(self) -> Self {
        Self {
            amount: self.amount.checked_neg().unwrap_or_default(),
            ..self
        }
    }
}

/// A part as it is stored.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum StoredPart {
    Plain(Option<i64>, i64),
    Windowed(Option<i64>, i64, Vec<i64>),
}

impl From<MoneyPart> for StoredPart {
    fn from(part: MoneyPart) -> Self {
        let (grant, picos) = (part.grant.map(GrantId::to_i64), part.amount.picos());
        if part.windows.is_empty() {
            return Self::Plain(grant, picos);
        }
        let windows = part.windows.into_iter().map(WindowId::to_i64);
        Self::Windowed(grant, picos, windows.collect())
    }
}

impl TryFrom<StoredPart> for MoneyPart {
    type Error = &'static str;

    fn try_from(stored: StoredPart) -> Result<Self, Self::Error> {
        let (grant, picos, windows) = match stored {
            StoredPart::Plain(grant, picos) => (grant, picos, Vec::new()),
            StoredPart::Windowed(grant, picos, windows) => (grant, picos, windows),
        };
        let of = |number| GrantId::from_i64(number).ok_or("not a grant's id");
        let window = |number| WindowId::from_i64(number).ok_or("not a window's id");
        Ok(Self {
            grant: grant.map(of).transpose()?,
            amount: Amount::from_picos(picos),
            windows: windows.into_iter().map(window).collect::<Result<_, _>>()?,
        })
    }
}

/// A grant: what was given, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Public id.
    pub id: GrantId,
    /// Whose it is.
    pub customer: CustomerId,
    /// Why it was given.
    pub kind: GrantKind,
    /// What was given.
    pub amount: Amount,
    /// Lower ones are used first.
    pub priority: u8,
    /// First instant at which it can be used.
    pub effective_at: Timestamp,
    /// First instant at which it cannot.
    pub expires_at: Option<Timestamp>,
    /// The slugs that it is for; `None` is all.
    pub models: Option<Vec<String>>,
    /// What is left, held or not.
    pub remaining: Amount,
    /// What running requests hold of it. Of a grant that has ended this is all that remains.
    pub held: Amount,
    /// What became of it.
    pub status: GrantStatus,
    /// The days before its end of which its customer was told last; `None` before the first.
    pub told: Option<u32>,
}

/// A grant with what is never needed to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRecord {
    /// What it is, and what is left of it.
    pub grant: Grant,
    /// Its name, which no other entry, payment or grant ever has.
    pub reference: GrantName,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
}

/// A grant's reference, if it has one: those that follow from refunds have none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrantName(pub Option<String>);

impl Grant {
    /// The place of the pool, and of grants of which nobody says otherwise.
    pub const PRIORITY: u8 = 50;
    /// The last place.
    pub const LAST_PRIORITY: u8 = 100;
    /// That of periods of plans.
    pub const OF_PLANS: u8 = 20;
    /// How many days before its end its customer is told, the first notice first.
    pub const NOTICES: [u32; 3] = [30, 7, 1];

    /// What is left and not held.
    pub fn free(&self) -> Amount {
        less(self.remaining, self.held)
    }

    /// What became of it by an instant, whether or not that is booked.
    pub fn status_at(&self, now: Timestamp) -> GrantStatus {
        self.status.at(self.effective_at, self.expires_at, now)
    }

    /// What is left of it at an instant, held or not: of one that has ended, what running requests hold.
    pub fn remaining_at(&self, now: Timestamp) -> Amount {
        match self.status_at(now) {
            GrantStatus::Pending | GrantStatus::Active => self.remaining,
            GrantStatus::Exhausted | GrantStatus::Expired | GrantStatus::Voided => self.held,
        }
    }

    /// What requests may take of it at an instant.
    pub fn free_at(&self, now: Timestamp) -> Amount {
        match self.status_at(now) {
            GrantStatus::Active => self.free(),
            GrantStatus::Pending
            | GrantStatus::Exhausted
            | GrantStatus::Expired
            | GrantStatus::Voided => Amount::ZERO,
        }
    }

    /// Whether a request for a slug may take from it.
    fn is_for(&self, slug: &str) -> bool {
        let named = |models: &Vec<String>| models.iter().any(|model| model == slug);
        self.models.as_ref().is_none_or(named)
    }

    /// Whether anything can still come of it.
    pub(crate) fn is_open(&self) -> bool {
        match self.status {
            GrantStatus::Pending | GrantStatus::Active => true,
            GrantStatus::Exhausted | GrantStatus::Expired | GrantStatus::Voided => {
                self.held.is_positive()
            }
        }
    }

    /// Whether it has ended: what is given back to it is nobody's.
    const fn has_ended(&self) -> bool {
        match self.status {
            GrantStatus::Expired | GrantStatus::Voided => true,
            GrantStatus::Pending | GrantStatus::Active | GrantStatus::Exhausted => false,
        }
    }

    /// Whether it can be given back to.
    pub(crate) fn can_take_back(&self, now: Timestamp) -> bool {
        match self.status {
            GrantStatus::Active | GrantStatus::Exhausted => {
                self.expires_at.is_none_or(|end| now < end)
            }
            GrantStatus::Pending | GrantStatus::Expired | GrantStatus::Voided => false,
        }
    }

    /// The notice that is due at an instant and was not told: the days before its end.
    fn notice(&self, now: Timestamp) -> Option<u32> {
        let end = self
            .expires_at
            .filter(|_| self.status == GrantStatus::Active && self.kind != GrantKind::Plan)?;
        let given = self.effective_at;
        // One that is given shorter before its end than a notice comes is told nothing then.
        let due = Self::NOTICES.into_iter().filter(|days| {
            let at = days_before(end, *days);
            given < at && at <= now && self.told.is_none_or(|told| *days < told)
        });
        due.min()
    }

    /// When something happens to it next without anybody's doing; [`Timestamp::NEVER`] if nothing does.
    fn next_at(&self) -> Timestamp {
        let end = self.expires_at.unwrap_or(Timestamp::NEVER);
        if self.kind == GrantKind::Plan {
            // Its subscription says it.
            return Timestamp::NEVER;
        }
        match self.status {
            GrantStatus::Pending => self.effective_at,
            GrantStatus::Active => {
                let notices = Self::NOTICES.into_iter().filter(|days| {
                    self.told.is_none_or(|told| *days < told)
                        && self.effective_at < days_before(end, *days)
                });
                let notices = notices.map(|days| days_before(end, days));
                notices
                    .filter(|_| self.expires_at.is_some())
                    .min()
                    .unwrap_or(end)
            }
            GrantStatus::Exhausted | GrantStatus::Expired | GrantStatus::Voided => Timestamp::NEVER,
        }
    }

    /// The operation of what happens to it by itself, at an instant of its own.
    fn operation_at(&self, at: Timestamp, what: &str) -> OperationId {
        let instant = OperationId::new(at, 0);
        instant.derived(format!("farebox grant {} {what}", self.id).as_bytes())
    }

    fn place(&self) -> UsePlace<'_> {
        (
            self.priority,
            self.expires_at.unwrap_or(Timestamp::NEVER),
            self.kind,
            Some((self.effective_at, &self.id)),
        )
    }
}

fn days_before(end: Timestamp, days: u32) -> Timestamp {
    Timestamp::from_millis(
        end.millis()
            .saturating_sub(i64::from(days).saturating_mul(86_400_000)),
    )
}

/// Credit to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant {
    /// Chosen by the caller.
    pub id: GrantId,
    /// To whom.
    pub customer: CustomerId,
    /// Why.
    pub kind: GrantKind,
    /// How much.
    pub amount: Amount,
    /// Its place in the order of use; [`Grant::PRIORITY`] unless somebody says otherwise.
    pub priority: u8,
    /// First instant at which it can be used; at once, if there is none.
    pub effective_at: Option<Timestamp>,
    /// First instant at which it cannot.
    pub expires_at: Option<Timestamp>,
    /// The slugs that it is for.
    pub models: Option<Vec<String>>,
    /// Its name, which no other entry, payment or grant ever has.
    pub reference: String,
    /// By whom and when.
    pub act: Act,
}

impl NewGrant {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_text("an actor", &self.act.actor, 200, false)?;
        reference::check(&self.reference)?;
        if !self.amount.is_positive() || self.amount > Amount::MAX_TOP_UP {
            let most = Amount::MAX_TOP_UP;
            let text = format!("a grant is more than zero and at most {most}");
            return Err(Refusal::Limit(text));
        }
        if self.priority > Grant::LAST_PRIORITY {
            let text = format!("a priority is between 0 and {}", Grant::LAST_PRIORITY);
            return Err(Refusal::Limit(text));
        }
        if self.kind == GrantKind::Plan {
            let text = "a period of a plan is sold or given with its subscription";
            return Err(Refusal::NotApplicable(text.to_owned()));
        }
        if self.kind == GrantKind::Paid && self.expires_at.is_none() {
            let text = "what was paid and has no end is no grant: book it as a top-up";
            return Err(Refusal::NotApplicable(text.to_owned()));
        }
        self.check_models()
    }

    /// Refuses one that would have ended by the ledger's clock.
    pub(crate) fn check_times(&self, now: Timestamp) -> Result<(), Refusal> {
        let begins = self.effective_at.unwrap_or(now);
        match self.expires_at {
            Some(end) if end <= now => Err(Refusal::Limit(format!(
                "{end} is over; a grant that has ended gives nothing"
            ))),
            Some(end) if end <= begins => Err(Refusal::Limit(format!(
                "a grant must end after it begins: it would begin at {begins} and end at {end}"
            ))),
            Some(_) | None => Ok(()),
        }
    }

    fn check_models(&self) -> Result<(), Refusal> {
        let Some(models) = &self.models else {
            return Ok(());
        };
        if models.is_empty() {
            let text = "a grant is for at least one model; leave models out for all";
            return Err(Refusal::Limit(text.to_owned()));
        }
        let each = |model: &String| check_text("a model", model, 200, true);
        models.iter().try_for_each(each)
    }

    /// The grant as it begins by the ledger's clock.
    pub(crate) fn grant(&self, now: Timestamp) -> Grant {
        let effective_at = self.effective_at.unwrap_or(now);
        Grant {
            id: self.id,
            customer: self.customer,
            kind: self.kind,
            amount: self.amount,
            priority: self.priority,
            effective_at,
            expires_at: self.expires_at,
            models: self.models.clone(),
            remaining: self.amount,
            held: Amount::ZERO,
            status: if effective_at <= now {
                GrantStatus::Active
            } else {
                GrantStatus::Pending
            },
            told: None,
        }
    }

    /// Whether a grant of before is this one.
    pub(crate) fn repeats(&self, known: &GrantRecord) -> bool {
        let grant = &known.grant;
        let same_begin = self.effective_at.is_none_or(|at| at == grant.effective_at);
        let terms = (
            self.customer,
            self.kind,
            self.amount,
            self.priority,
            self.expires_at,
        );
        same_begin
            && terms
                == (
                    grant.customer,
                    grant.kind,
                    grant.amount,
                    grant.priority,
                    grant.expires_at,
                )
            && self.models == grant.models
            && known.reference.0.as_deref().map(reference::folded)
                == Some(reference::folded(&self.reference))
    }
}

/// A grant to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidGrant {
    /// The grant.
    pub grant: GrantId,
    /// Whose it is.
    pub customer: CustomerId,
    /// By whom and when.
    pub act: Act,
}

/// The time of one of a customer's grants may have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleGrants {
    /// Whose.
    pub customer: CustomerId,
}

#[cfg(test)]
#[path = "grant/tests.rs"]
mod tests;
