//! What stands on the page of a key or customer, and whether its entries add up.

use farebox_ledger::{
    Amount, CustomerId, EntryQuery, GrantQuery, Key, KeyId, KeyQuery, LedgerError, OpenHold,
    RunQuery, RunSum, Scope, StatementMonth, Timestamp, UsageRow,
};

use super::StoreShared;
use super::read::LIST;
use crate::app::detail::{self, BalanceCheck, DetailData};
use crate::app::message::Message;
use crate::app::money::spend;
use crate::app::party::{MemberKey, Party};
use crate::clock;

/// Entries that one step of a sum reads.
const STEP: usize = 5_000;

impl StoreShared {
    pub(super) async fn detail(&self, of: Scope) {
        match self.detail_data(of).await {
            Ok(data) => self.tell(Message::Detail(Box::new(data))),
            Err(error) => self.tell(Message::DetailFailed {
                of,
                error: error.to_string(),
            }),
        }
    }

    async fn detail_data(&self, of: Scope) -> Result<DetailData, LedgerError> {
        let now = clock::now();
        let party = match of {
            Scope::Key(key) => self.ledger.find_key(key).await?.map(Party::from),
            Scope::Customer(id) => self.ledger.find_customer(id).await?.map(Party::from),
        };
        let mut entries = self.ledger.entries(entries_of(of)).await?;
        entries.reverse();
        let usage = self.usage_of(of, now).await?;
        let runs = match (party.as_ref().map(|party| party.customer().id), of) {
            (None, _) => Vec::new(),
            (Some(payer), Scope::Key(key)) => self.runs_of(payer, Some(key), now).await?,
            (Some(payer), Scope::Customer(_)) => self.runs_of(payer, None, now).await?,
        };
        let acts = self.ledger.audit(Some(of), None, detail::PAGE).await?;
        let holds = self.ledger.open_holds(Some(of), LIST).await?;
        let (keys, unapplied, grants) = match of {
            Scope::Key(_) => (Vec::new(), Vec::new(), Vec::new()),
            Scope::Customer(customer) => {
                let mut unapplied = self.ledger.unapplied().await?;
                unapplied.retain(|payment| payment.customer == customer);
                let keys = self.members(customer, &holds).await?;
                (
                    keys,
                    unapplied,
                    self.ledger.grants(grants_of(customer)).await?,
                )
            }
        };
        Ok(DetailData {
            of,
            at: now,
            party,
            entries_end: entries.len() < detail::PAGE,
            entries,
            usage,
            runs,
            acts,
            holds,
            keys,
            unapplied,
            grants,
        })
    }

    async fn usage_of(&self, of: Scope, now: Timestamp) -> Result<Vec<UsageRow>, LedgerError> {
        let (from, to) = (spend::month_before(now), after(now));
        match of {
            Scope::Key(key) => self.ledger.usage(key, from, to).await,
            Scope::Customer(customer) => {
                let by_key = self.ledger.usage_by_key(customer, from, to).await?;
                Ok(by_key.into_values().flatten().collect())
            }
        }
    }

    /// The runs of this month that cost most.
    async fn runs_of(
        &self,
        customer: CustomerId,
        key: Option<KeyId>,
        now: Timestamp,
    ) -> Result<Vec<RunSum>, LedgerError> {
        let month = StatementMonth::of(now);
        let query = RunQuery {
            customer,
            key,
            months: (month, month),
            limit: u32::try_from(LIST).unwrap_or(u32::MAX),
        };
        self.ledger.usage_by_run(query).await
    }

    /// The keys of a customer, oldest first, with their own sums.
    async fn members(
        &self,
        customer: CustomerId,
        holds: &[OpenHold],
    ) -> Result<Vec<MemberKey>, LedgerError> {
        let keys = self.keys_of_customer(customer).await?;
        let ids: Vec<_> = keys.iter().map(|key| key.id).collect();
        let beginning = Timestamp::from_millis(0);
        let spent = self.ledger.spent_since(&ids, beginning).await?;
        let member = |(key, spent): (Key, Amount)| {
            let own = holds.iter().filter(|hold| hold.key == key.id);
            let held = Amount::checked_sum(own.map(|hold| hold.amount)).unwrap_or_default();
            MemberKey { key, spent, held }
        };
        Ok(keys.into_iter().zip(spent).map(member).collect())
    }

    async fn keys_of_customer(&self, customer: CustomerId) -> Result<Vec<Key>, LedgerError> {
        let query = KeyQuery {
            customer: Some(customer),
            now: clock::now(),
            limit: LIST,
            ..KeyQuery::default()
        };
        self.ledger.list_keys(query).await
    }

    /// The keys that are shown below a customer's line.
    pub(super) async fn keys_of(&self, customer: CustomerId) {
        let keys = self.keys_of_customer(customer).await;
        let keys = keys.map_err(|error| error.to_string());
        self.tell(Message::KeysOf { customer, keys });
    }

    pub(super) async fn more_entries(&self, of: Scope, before: i64) {
        let query = EntryQuery {
            before: Some(before),
            ..entries_of(of)
        };
        match self.ledger.entries(query).await {
            Ok(mut entries) => {
                entries.reverse();
                let end = entries.len() < detail::PAGE;
                self.tell(Message::Entries {
                    of,
                    before,
                    entries,
                    end,
                });
            }
            Err(error) => self.tell(Message::DetailFailed {
                of,
                error: error.to_string(),
            }),
        }
    }

    /// Sums a customer's entries page by page, and compares the sum with the balance after the newest of them.
    pub(super) async fn check_books(&self, of: Scope, customer: CustomerId) {
        let check = self.sum_of(customer).await;
        let check = check.unwrap_or_else(|error| BalanceCheck::Failed(error.to_string()));
        self.tell(Message::Checked { of, check });
    }

    async fn sum_of(&self, customer: CustomerId) -> Result<BalanceCheck, LedgerError> {
        let (mut before, mut sum, mut count, mut balance) = (None, Amount::ZERO, 0_u64, None);
        loop {
            let query = EntryQuery {
                customer: Some(customer),
                before,
                limit: Some(STEP),
                ..EntryQuery::default()
            };
            let page = self.ledger.entries(query).await?;
            balance = balance.or_else(|| page.last().map(|entry| entry.balance_after));
            count += page.len() as u64;
            let amounts = page.iter().map(|entry| entry.amount).chain([sum]);
            let Some(total) = Amount::checked_sum(amounts) else {
                return Ok(BalanceCheck::Failed("the sum overflows".to_owned()));
            };
            sum = total;
            before = page.first().map(|entry| entry.position);
            if page.len() < STEP {
                break;
            }
        }
        let balance = balance.unwrap_or_default();
        Ok(if sum == balance {
            BalanceCheck::Sound {
                entries: count,
                balance,
                at: clock::now(),
            }
        } else {
            BalanceCheck::Wrong { sum, balance }
        })
    }
}

/// The newest grants of a customer.
fn grants_of(customer: CustomerId) -> GrantQuery {
    GrantQuery {
        customer: Some(customer),
        limit: LIST,
        ..GrantQuery::default()
    }
}

/// The newest entries of a key or customer.
fn entries_of(of: Scope) -> EntryQuery {
    let (key, customer) = match of {
        Scope::Key(key) => (Some(key), None),
        Scope::Customer(customer) => (None, Some(customer)),
    };
    EntryQuery {
        key,
        customer,
        limit: Some(detail::PAGE),
        ..EntryQuery::default()
    }
}

fn after(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.millis().saturating_add(3_600_000))
}
