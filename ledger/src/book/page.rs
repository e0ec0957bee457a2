//! Queries to a ledger, and the rows they return.

use serde::Serialize;

use crate::value::service::ORDINARY;
use crate::{
    Amount, Bill, Customer, CustomerId, CustomerStatus, GrantId, GrantStatus, JournalEntry, Key,
    KeyId, KeyStatus, SecretHash, Served, Timestamp, Usage,
};

/// How a list of keys is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyOrder {
    /// Oldest first.
    #[default]
    Created,
    /// Newest first.
    Newest,
    /// Smallest balance first. This order and all below have no index: each page is a scan of all accounts.
    LowestBalance,
    /// Largest balance first.
    HighestBalance,
    /// Least held first.
    LeastHeld,
    /// Most held first.
    MostHeld,
    /// Keys without an entry first, then the one whose last entry is the oldest.
    LongestUnused,
    /// The key with the newest entry first, those without one last.
    LastUsed,
}

/// A position in an order: where a page ended. It carries the value that the page showed, so that a balance that changes meanwhile
/// neither repeats nor hides other keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPlace {
    /// The sort value of this key.
    pub value: i64,
    /// Orders rows that agree in all else, so that a page continues where the last one ended.
    pub key: KeyId,
}

impl KeyOrder {
    /// Whether it starts with the largest; ties then start with the largest id.
    #[must_use]
    pub const fn is_descending(self) -> bool {
        matches!(
            self,
            Self::Newest | Self::HighestBalance | Self::MostHeld | Self::LastUsed
        )
    }

    /// The reverse order.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Created => Self::Newest,
            Self::Newest => Self::Created,
            Self::LowestBalance => Self::HighestBalance,
            Self::HighestBalance => Self::LowestBalance,
            Self::LeastHeld => Self::MostHeld,
            Self::MostHeld => Self::LeastHeld,
            Self::LongestUnused => Self::LastUsed,
            Self::LastUsed => Self::LongestUnused,
        }
    }

    /// A key's place in this order.
    #[must_use]
    pub fn place(self, key: &Key) -> KeyPlace {
        let value = match self {
            Self::Created | Self::Newest => key.created_at.millis(),
            Self::LowestBalance
            | Self::HighestBalance
            | Self::LeastHeld
            | Self::MostHeld
            | Self::LongestUnused
            | Self::LastUsed => self.of_money(&key.customer),
        };
        KeyPlace { value, key: key.id }
    }

    /// A customer's place in this order: the value, then the id.
    #[must_use]
    pub fn place_of_customer(self, customer: &Customer) -> (i64, CustomerId) {
        let value = match self {
            Self::Created | Self::Newest => customer.created_at.millis(),
            Self::LowestBalance
            | Self::HighestBalance
            | Self::LeastHeld
            | Self::MostHeld
            | Self::LongestUnused
            | Self::LastUsed => self.of_money(customer),
        };
        (value, customer.id)
    }

    fn of_money(self, customer: &Customer) -> i64 {
        match self {
            Self::LowestBalance | Self::HighestBalance => customer.account.balance().picos(),
            Self::LeastHeld | Self::MostHeld => customer.account.held.picos(),
            Self::Created | Self::Newest | Self::LongestUnused | Self::LastUsed => {
                customer.last_entry_at.map_or(i64::MIN, Timestamp::millis)
            }
        }
    }
}

/// A page of keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyQuery {
    /// Order of the list.
    pub order: KeyOrder,
    /// Start after this place: that of the last key of an earlier page.
    pub after: Option<KeyPlace>,
    /// Only labels that contain this text (case-insensitive for ASCII).
    pub label: Option<String>,
    /// Only keys of this customer.
    pub customer: Option<CustomerId>,
    /// Only keys in this state at `now`.
    pub status: Option<KeyStatus>,
    /// Only keys whose customer's balance is below this.
    pub balance_below: Option<Amount>,
    /// Only keys that an owner key made and that count in its caps.
    pub made: Option<MadeQuery>,
    /// The instant for `status` and `made`.
    pub now: Timestamp,
    /// Most rows to return.
    pub limit: usize,
}

/// Which of the keys that an owner key made a page shows. They are shown in the order of [`KeyOrder::Newest`], whatever other order and
/// filters the query names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeQuery {
    /// The owner key.
    pub by: KeyId,
    /// Those that are blocked, too. Revoked ones never are.
    pub blocked: bool,
}

impl MadeQuery {
    /// How long an expired key is still shown, in milliseconds: a day.
    const SHOWN: i64 = 24 * 60 * 60 * 1_000;

    /// Keys that expired at this instant or before it are not shown.
    pub(crate) const fn forgotten(now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.millis().saturating_sub(Self::SHOWN))
    }

    /// The highest status that is shown, as it is stored.
    pub(crate) const fn most(self) -> i64 {
        if self.blocked { 2 } else { 1 }
    }
}

/// A page of customers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CustomerQuery {
    /// Order of the list.
    pub order: KeyOrder,
    /// Start after this place: that of the last customer of an earlier page.
    pub after: Option<(i64, CustomerId)>,
    /// Only those whose label or external id contains this text (case-insensitive for ASCII).
    pub text: Option<String>,
    /// Only customers in this state.
    pub status: Option<CustomerStatus>,
    /// Only customers whose balance is below this.
    pub balance_below: Option<Amount>,
    /// Most rows to return.
    pub limit: usize,
}

/// Which grants a page shows; the default is none, of all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrantQuery {
    /// Of one customer, or of all.
    pub customer: Option<CustomerId>,
    /// This one alone.
    pub id: Option<GrantId>,
    /// Only those with this name, as references are compared.
    pub reference: Option<String>,
    /// Only those in this state, as the ledger has booked it.
    pub status: Option<GrantStatus>,
    /// Start after this place: that of the last grant of an earlier page.
    pub after: Option<(Timestamp, GrantId)>,
    /// Most rows to return.
    pub limit: usize,
}

/// Which entries a page shows; the default is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntryQuery {
    /// Of one customer (a pointer walk from its newest entry), or of all.
    pub customer: Option<CustomerId>,
    /// Of one key (a walk through its customer's), or of all.
    pub key: Option<KeyId>,
    /// From this instant on.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
    /// Only entries before this position in the journal: the next page on the way into the past.
    pub before: Option<i64>,
    /// How many to return, the newest matches; `None` is all. Always returned oldest first.
    pub limit: Option<usize>,
}

/// One hour of one key with one slug.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageRow {
    /// The hour's first instant.
    pub hour: Timestamp,
    /// The model's public name, as it was charged.
    pub slug: String,
    /// Ended requests, including free ones.
    pub requests: u64,
    /// Disjoint token counts, summed.
    pub usage: Usage,
    /// The sum of the charges, in picodollars.
    pub charge: Amount,
    /// The operator's loss.
    pub loss: Amount,
    /// What providers may still be owed.
    pub exposure: Amount,
    /// What requests cost the operator, of those whose cost is known.
    pub cost: Amount,
    /// The part of the cost that the answers told.
    pub told: Amount,
    /// The part of the exposure that a dead gateway left unmetered, through no fault of the key. Only filled when the hours of one
    /// key are read.
    pub unmetered: Amount,
}

impl UsageRow {
    /// What one ended request adds to the hours of its targets, by what they served: the answering one first, then those that failed.
    pub(crate) fn of<'bill>(
        entry: &JournalEntry,
        bill: &'bill Bill,
    ) -> impl Iterator<Item = (&'bill str, &'bill Served, Self)> + use<'bill> {
        let owed = bill.owed();
        let answered = Self {
            requests: 1,
            usage: bill.usage,
            charge: entry.amount.checked_neg().unwrap_or_default(),
            loss: bill.loss,
            exposure: owed.exposure,
            cost: owed.cost.unwrap_or_default(),
            told: bill.told_cost().unwrap_or_default(),
            ..Self::default()
        };
        let failed = bill.failed().map(|(target, owed)| {
            let failed = Self {
                exposure: owed.exposure,
                cost: owed.cost.unwrap_or_default(),
                ..Self::default()
            };
            (target, &ORDINARY, failed)
        });
        std::iter::once((bill.target.as_str(), &bill.served, answered)).chain(failed)
    }

    /// Appends rows that arrive in the order of hour and slug, merging those of several targets into one.
    pub(crate) fn gather(found: &mut Vec<Self>, row: Self) {
        match found
            .last_mut()
            .filter(|last| last.hour == row.hour && last.slug == row.slug)
        {
            Some(last) => last.merge(&row),
            None => found.push(row),
        }
    }

    /// Adds another row of the same hour. Saturates, as the stores do: an hour comes nowhere near.
    pub fn merge(&mut self, more: &Self) {
        self.requests = self.requests.saturating_add(more.requests);
        self.usage = self.usage.and(more.usage);
        for (sum, more) in [
            (&mut self.charge, more.charge),
            (&mut self.loss, more.loss),
            (&mut self.exposure, more.exposure),
            (&mut self.cost, more.cost),
            (&mut self.told, more.told),
            (&mut self.unmetered, more.unmetered),
        ] {
            *sum = Amount::from_picos(sum.picos().saturating_add(more.picos()));
        }
    }
}

/// The usage of a slug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlugUse {
    /// The model's public name, as it was charged.
    pub slug: String,
    /// How many keys were charged; each counts once.
    pub keys: u64,
    /// Ended requests.
    pub requests: u64,
}

/// Sums over all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Number of keys.
    pub keys: u64,
    /// Number of entries.
    pub entries: u64,
    /// Holds that are open, which requests under way or their recovery will end.
    pub holds: u64,
    /// Ever paid in, picodollars.
    pub credit: i128,
    /// All charges since the ledger began, in picodollars.
    pub spent: i128,
    /// What open holds keep from being spent, in picodollars.
    pub held: i128,
    /// Ever lost by the operator.
    pub loss: i128,
    /// What providers may ever have billed beyond the charges.
    pub exposure: i128,
    /// What ended requests cost at the operator's own prices, as far as those are known.
    pub cost: i128,
}

/// A slug that the gateway has ever published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedSlug {
    /// The model's public name, as it was charged.
    pub slug: String,
    /// When it was first published.
    pub since: Timestamp,
}

/// Slugs to record as published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// Those that are sold now; one that was published before keeps its date.
    pub slugs: Vec<String>,
    /// The caller's clock: it dates what is recorded, and limits and expiry are judged by it.
    pub now: Timestamp,
}

/// A dashboard session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of the cookie's token.
    pub token: SecretHash,
    /// The key that is signed in.
    pub key: KeyId,
    /// When it began.
    pub at: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
}

impl Session {
    /// The most sessions that one key may have open: a person's browsers, and some that were never closed.
    pub const MOST_OF_KEY: u8 = 20;
    /// The most of all keys of a customer, so that a thousand keys do not fill the table.
    pub const MOST_OF_CUSTOMER: u8 = 200;
}

/// A dashboard session to end, by SHA-256 of its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseSession(pub SecretHash);

/// A key of which every dashboard session is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseSessions(pub KeyId);

/// What `verify` found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerifyReport {
    /// Customers checked.
    pub customers: u64,
    /// Keys checked.
    pub keys: u64,
    /// Entries checked.
    pub entries: u64,
    /// Open holds checked.
    pub holds: u64,
    /// Anchors compared.
    pub anchors: u64,
    /// Every fault, in words, with customer and position.
    pub faults: Vec<String>,
    /// What is not wrong and worth knowing: entries that were dated by a clock that ran ahead.
    pub notes: Vec<String>,
}
