//! The account as one key may see it: the customer's for an owner; for a member what it spent itself and what it may still spend.

use farebox_ledger::{Account, Amount, EntryQuery, Key, Ledger, LedgerError, Timestamp};

/// The most running requests of a key that are summed: more than it may have at once.
const MOST_HOLDS: usize = 10_000;

/// A key's share of its customer's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyShare {
    /// Charged to this key, ever.
    pub(super) spent: Amount,
    /// Held by its running requests.
    pub(super) held: Amount,
}

impl KeyShare {
    /// Sums a key's hours and its open holds.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read(ledger: &dyn Ledger, key: &Key) -> Result<Self, LedgerError> {
        let spent = ledger
            .spent_since(&[key.id], Timestamp::from_millis(0))
            .await?;
        let holds = ledger.open_holds(Some(key.id.into()), MOST_HOLDS).await?;
        let held = Amount::checked_sum(holds.iter().map(|hold| hold.amount));
        Ok(Self {
            spent: spent.first().copied().unwrap_or_default(),
            held: held.unwrap_or_default(),
        })
    }

    /// The account that the key's holder sees. Of a member it tells nothing of the purse beyond what the member may spend of it.
    pub(super) fn account(self, key: &Key, now: Timestamp) -> Account {
        if key.is_owner {
            return key.customer.account;
        }
        let Self { spent, held } = self;
        let credit = Amount::checked_sum([spent, key.remaining("", now)]);
        Account {
            credit: credit.unwrap_or(Amount::MAX_LIFETIME_CREDIT),
            spent,
            held,
        }
    }
}

/// The entries that the holder of a key sees: of the key, or of the whole customer.
pub(super) fn seen(key: &Key) -> EntryQuery {
    EntryQuery {
        customer: Some(key.customer.id),
        key: (!key.is_owner).then_some(key.id),
        ..EntryQuery::default()
    }
}
