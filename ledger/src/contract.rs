//! The contract: what every caller may ask of a ledger, and what every store promises.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Addressees, Amount, Answered, Asked, AuditRecord, BeginEpoch, ConsumeLink, Customer,
    CustomerBy, CustomerId, CustomerQuery, EntryQuery, FilesAct, Finish, GrantQuery, GrantRecord,
    HouseAct, JournalEntry, Key, KeyId, KeyQuery, LedgerError, MarginQuery, Margins, Once,
    OpenHold, Operation, OperationId, Outbox, Outcome, OwnCost, Payment, Performable, PersonalData,
    ProbeLease, PublishedSlug, Recover, Recovered, Refusal, RunQuery, RunSum, Scope, SecretHash,
    SlugHour, SlugUse, Subscription, SubscriptionId, Taught, Timestamp, Token, TokenDay, Totals,
    UsageRow, UtcDay, VendorIds, VerifyReport, WholeRow, WholeRows, WholeTable,
};

/// Acts that are read in one page where all are wanted.
const ACTS: usize = 1_000;

/// What every store promises. Callers hold it as `Arc<dyn Ledger>`.
///
/// Methods that change something return only after the change is as durable as the store's setting promises.
/// [`LedgerError::Unknown`] means that the change may or may not have happened: repeat it with the same id, or read that id.
#[async_trait]
pub trait Ledger: Outbox + Send + Sync + std::fmt::Debug {
    /// Applies one operation; [`Perform::perform`] gives what comes of it.
    async fn apply(&self, operation: Operation) -> Result<Outcome, LedgerError>;

    // --- keys ---

    /// One key's settings and account, from one consistent read. `None` when there is no such key.
    async fn find_key(&self, id: KeyId) -> Result<Option<Key>, LedgerError>;

    /// Several keys, from one consistent read, in the order asked for. Unknown ones are left out.
    async fn find_keys(&self, ids: &[KeyId]) -> Result<Vec<Key>, LedgerError>;

    /// Which of these keys have ended: blocked or revoked, or of a customer that is suspended or closed. Whoever asks again and again
    /// costs one read each time, or none where the store knows that no key and no customer was changed. Of a key that expires, the
    /// caller has the time.
    async fn ended(&self, keys: &[KeyId]) -> Result<Vec<KeyId>, LedgerError>;

    /// A page of keys; never uses OFFSET, so page N costs the same as page 1.
    async fn list_keys(&self, query: KeyQuery) -> Result<Vec<Key>, LedgerError>;

    // --- customers ---

    /// One customer. `None` when there is no such customer.
    async fn customer(&self, by: CustomerBy<'_>) -> Result<Option<Customer>, LedgerError>;

    /// The customer with this id.
    async fn find_customer(&self, id: CustomerId) -> Result<Option<Customer>, LedgerError> {
        self.customer(CustomerBy::Id(id)).await
    }

    /// The customer with this external id.
    async fn find_external(&self, id: &str) -> Result<Option<Customer>, LedgerError> {
        self.customer(CustomerBy::ExternalId(id)).await
    }

    /// A page of customers; never uses OFFSET.
    async fn list_customers(&self, query: CustomerQuery) -> Result<Vec<Customer>, LedgerError>;

    /// A customer's personal data; `None` when there is none, or it was erased.
    async fn personal_data(&self, id: CustomerId) -> Result<Option<PersonalData>, LedgerError>;

    /// Whom the receipts of a customer's payments are addressed to.
    async fn addressees(&self, id: CustomerId) -> Result<Addressees, LedgerError>;

    // --- money in ---

    /// A payment by its reference: one with particulars, or of which something went back.
    async fn payment(&self, reference: &str) -> Result<Option<Payment>, LedgerError>;

    /// Payments that could not be booked and were neither assigned nor sent back, and those of which something went back that is not booked,
    /// oldest first.
    async fn unapplied(&self) -> Result<Vec<Payment>, LedgerError>;

    // --- grants ---

    /// A page of grants, the newest first.
    async fn grants(&self, query: GrantQuery) -> Result<Vec<GrantRecord>, LedgerError>;

    /// Customers for whose grants the time has come for something, some of them.
    async fn due_grants(&self, now: Timestamp) -> Result<Vec<CustomerId>, LedgerError>;

    /// The subscription with this id, as acts have left it; of one that runs, its customer knows what time has done to it since.
    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>, LedgerError>;

    // --- the admin API ---

    /// Does what a token or an owner key asks for, within its right and bounds and at most once. While another gateway is doing it, this waits up to two seconds for
    /// its answer.
    async fn ask(&self, asked: Asked) -> Result<Answered, LedgerError> {
        let begun = tokio::time::Instant::now();
        loop {
            match self.apply(asked.clone().into()).await {
                Err(LedgerError::Refused(Refusal::StillRunning))
                    if begun.elapsed() < Once::PATIENCE =>
                {
                    tokio::time::sleep(Once::PAUSE).await;
                }
                done => return done?.try_into(),
            }
        }
    }

    /// The token with this secret, whatever its state.
    async fn find_token(&self, secret: SecretHash) -> Result<Option<Token>, LedgerError>;

    /// What tokens did on the days since this one, of those that did anything.
    async fn token_days(&self, since: UtcDay) -> Result<Vec<TokenDay>, LedgerError>;

    /// Acts that belong to no customer, on tokens and on lots, oldest first.
    async fn house_acts(&self) -> Result<Vec<HouseAct>, LedgerError>;

    // --- holds: use [`Hold`](crate::Hold), which ends by itself ---

    /// Hands a finish to the store's durable resolver, which retries until the outcome is known. Never blocks, never fails. A
    /// bill over the limits is replaced by the last checkpoint's counts and marked as disputed.
    fn abandon_hold(&self, finish: Arc<Finish>);

    /// Whether the ledger has stopped for good: it accepts no more writes, so retrying is pointless.
    fn stopped(&self) -> bool {
        false
    }

    /// The name of this process among those that share the ledger; `None` if the ledger is not shared.
    fn node(&self) -> Option<&str> {
        None
    }

    /// The ids by which vendors know its customers.
    fn vendor_ids(&self) -> VendorIds;

    /// Whether the ledger is shared and was unreachable for so long that other gateways may consider this one dead: then no new
    /// request starts, and running streams end.
    fn lapsed(&self) -> bool {
        false
    }

    /// Holds that are open now, oldest first; of one key or customer, or of all, at most `limit`.
    async fn open_holds(
        &self,
        of: Option<Scope>,
        limit: usize,
    ) -> Result<Vec<OpenHold>, LedgerError>;

    /// Starts a new epoch and ends every hold of earlier ones at its last checkpoint. Only under the serve lock.
    async fn recover(&self, now: Timestamp) -> Result<Recovered, LedgerError> {
        let epoch = self.apply(BeginEpoch { now }.into()).await?.try_into()?;
        let mut result = Recovered {
            epoch,
            ..Recovered::default()
        };
        loop {
            let ended = self.apply(Recover { epoch, now }.into()).await?;
            let Some(some) = Option::<Recovered>::try_from(ended)? else {
                return Ok(result);
            };
            result.settled = result.settled.saturating_add(some.settled);
            result.released = result.released.saturating_add(some.released);
        }
    }

    // --- reading ---

    /// A whole table; [`Perform::all`] gives its rows.
    async fn whole(&self, table: WholeTable) -> Result<WholeRows, LedgerError>;

    /// Journal entries, oldest first.
    async fn entries(&self, query: EntryQuery) -> Result<Vec<JournalEntry>, LedgerError>;

    /// The entry that an operation made: a charge by its request id, a credit by its operation id.
    async fn entry(&self, operation: OperationId) -> Result<Option<JournalEntry>, LedgerError>;

    /// The entry with this reference, as references are compared: of a move, that of the customer who gave.
    async fn entry_by_reference(
        &self,
        reference: &str,
    ) -> Result<Option<JournalEntry>, LedgerError>;

    /// The newest charge of this key whose upstream answer carried this id, among its customer's last 100,000 entries.
    async fn entry_by_answer(
        &self,
        key: KeyId,
        answer_id: &str,
    ) -> Result<Option<JournalEntry>, LedgerError>;

    /// Hourly usage of one key, by slug, for hours in `[from, to)`.
    async fn usage(
        &self,
        key: KeyId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<UsageRow>, LedgerError>;

    /// The same of every key of a customer that was used then.
    async fn usage_by_key(
        &self,
        customer: CustomerId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<BTreeMap<KeyId, Vec<UsageRow>>, LedgerError>;

    /// What a customer's requests cost by the runs that they name.
    async fn usage_by_run(&self, query: RunQuery) -> Result<Vec<RunSum>, LedgerError>;

    /// What of a customer's credit nobody paid: gifts and corrections. Payments are top-ups and what came from other customers, less
    /// what went back or to others.
    async fn given(&self, customer: CustomerId) -> Result<Amount, LedgerError>;

    /// The charges of each of these keys since an instant (whole hours), in one read, in the order asked for.
    async fn spent_since(
        &self,
        ids: &[KeyId],
        since: Timestamp,
    ) -> Result<Vec<Amount>, LedgerError>;

    /// Charges, cost and possible debts, by key, target or UTC day.
    async fn margins(&self, query: MarginQuery) -> Result<Margins, LedgerError>;

    /// What all keys together did with each slug in each hour of `[from, to)`, by hour and slug.
    async fn slug_hours(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<SlugHour>, LedgerError>;

    /// How many keys used each slug since an instant (whole hours).
    async fn slug_use(&self, since: Timestamp) -> Result<Vec<SlugUse>, LedgerError>;

    /// Running totals over all keys, kept in the same transactions as the entries.
    async fn totals(&self) -> Result<Totals, LedgerError>;

    /// Administrative acts, newest first, of one key, of one customer and its keys, or of all, older than `before` when given.
    async fn audit(
        &self,
        of: Option<Scope>,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, LedgerError>;

    /// All acts of a customer and its keys, oldest first.
    async fn acts_of(&self, customer: CustomerId) -> Result<Vec<AuditRecord>, LedgerError> {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = self.audit(Some(customer.into()), before, ACTS).await?;
            before = page.last().map(|act| act.position);
            let is_last = page.len() < ACTS;
            found.extend(page);
            if is_last {
                found.reverse();
                return Ok(found);
            }
        }
    }

    /// The position of the last act that changed a key, or a customer itself; one that moved its money did not. 0 if there is none.
    async fn last_act(&self, of: Scope) -> Result<i64, LedgerError>;

    /// The administrative act of an operation.
    async fn act(&self, operation: OperationId) -> Result<Option<AuditRecord>, LedgerError>;

    /// The later generations of the ledger, each with the instant since which entries are of it, oldest first. Without any, all are of
    /// the first. A database gets one whenever an operator accepts a loss; a file has none.
    async fn generations(&self) -> Result<Vec<(i64, Timestamp)>, LedgerError> {
        Ok(Vec::new())
    }

    /// Recomputes balances, charges, holds and chains of every customer.
    async fn verify(&self) -> Result<VerifyReport, LedgerError>;

    // --- published slugs ---

    /// Every slug ever published.
    async fn published(&self) -> Result<Vec<PublishedSlug>, LedgerError>;

    // --- what targets have taught ---

    /// What all targets have taught, in order.
    async fn taught(&self) -> Result<Taught, LedgerError>;

    // --- our own requests to targets ---

    /// Whether this gateway may ask a target itself. Of the gateways that share a ledger one asks at a time; the others are told
    /// what it found. A ledger that is not shared has nobody to ask instead. `place` names the target in the gateway's words.
    async fn lease_probe(&self, _place: &str) -> Result<ProbeLease, LedgerError> {
        Ok(ProbeLease::Ours)
    }

    /// Tells the other gateways what was found, in the gateway's words.
    async fn tell(&self, _place: &str, _found: &str) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Configurations that came into force, newest first, older than `before` when given.
    async fn files_acts(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<FilesAct>, LedgerError>;

    /// What own requests of all gateways cost in the hours of `[from, to)`, by hour and target, in order.
    async fn own_costs(&self, from: Timestamp, to: Timestamp) -> Result<Vec<OwnCost>, LedgerError>;

    // --- dashboard sessions and one-time links; both stored as SHA-256 ---

    /// Consumes a link and returns its key, once; `None` if it is unknown, used or expired.
    async fn consume_link(
        &self,
        token: SecretHash,
        now: Timestamp,
    ) -> Result<Option<KeyId>, LedgerError> {
        // Anybody may try tokens, and a wrong one must not reach the writer.
        if !self.has_link(token, now).await? {
            return Ok(None);
        }
        self.apply(ConsumeLink { token, now }.into())
            .await?
            .try_into()
    }

    /// Whether a link is known and has not expired.
    async fn has_link(&self, token: SecretHash, now: Timestamp) -> Result<bool, LedgerError>;

    /// The key of a live session; `None` when unknown, expired, or the key was blocked, revoked or rotated since.
    async fn find_session(
        &self,
        token: SecretHash,
        now: Timestamp,
    ) -> Result<Option<KeyId>, LedgerError>;
}

/// The ways to change a ledger and to read a table of it, by the types of what is done and read.
pub trait Perform: Ledger {
    /// Does one operation, and gives what comes of it: `ledger.perform(NewLot { … })` a [`Lot`](crate::Lot).
    fn perform<O: Performable>(
        &self,
        operation: O,
    ) -> impl Future<Output = Result<O::Gives, LedgerError>> + Send {
        let applied = self.apply(operation.into());
        async move { applied.await?.try_into() }
    }

    /// All rows of a table, oldest first: `ledger.all::<Lot>()`.
    fn all<T: WholeRow>(&self) -> impl Future<Output = Result<Vec<T>, LedgerError>> + Send {
        let read = self.whole(T::TABLE);
        async move { T::of(read.await?) }
    }
}

impl<L: Ledger + ?Sized> Perform for L {}

/// A shared ledger, as every caller holds it.
pub type SharedLedger = Arc<dyn Ledger>;
