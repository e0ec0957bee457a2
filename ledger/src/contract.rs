//! The contract: what every caller may ask of a ledger, and what every store promises.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Act, Addressees, Amount, Answered, Asked, AuditRecord, Credit, Customer, CustomerChange,
    CustomerId, CustomerQuery, DeliveryStep, EndedHold, EntryQuery, FilesAct, Finish, Held,
    HoldMove, HouseAct, JournalEntry, Key, KeyChange, KeyId, KeyQuery, LedgerError, Lot, LotId,
    MarginQuery, Margins, Moved, NewCustomer, NewHold, NewKey, NewLot, NewMove, NewPayment,
    NewReversal, NewToken, News, Once, OpenHold, Operation, OperationId, Outbox, Outcome, OwnCost,
    Payment, PaymentMoved, PersonalData, Posted, ProbeLease, PublishedSlug, Recovered, Redemption,
    Refusal, Scope, SecretHash, Session, SlugHour, SlugUse, Taught, Timestamp, Token, TokenDay,
    TokenId, Totals, UnappliedAct, UsageRow, UtcDay, VerifyReport,
};

/// Acts that are read in one page where all are wanted.
const ACTS: usize = 1_000;

/// What every store promises. Callers hold it as `Arc<dyn Ledger>`.
///
/// Methods that change something return only after the change is as durable as the store's setting promises.
/// [`LedgerError::Unknown`] means that the change may or may not have happened: repeat it with the same id, or read that id.
#[async_trait]
pub trait Ledger: Outbox + Send + Sync + std::fmt::Debug {
    /// Applies one operation; every changing method below does this.
    async fn apply(&self, operation: Operation) -> Result<Outcome, LedgerError>;

    // --- keys ---

    /// Creates a key together with its first credit, and its customer if it names none, in one step. Repeating the operation id returns the key created first.
    async fn create_key(&self, new: NewKey) -> Result<Key, LedgerError> {
        self.apply(Operation::Create(Box::new(new))).await?.key()
    }

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

    /// Applies one administrative change to a key and writes it to the audit. Block, revoke and rotate end its sessions and links.
    /// A revoked key accepts only another revocation.
    async fn change_key(&self, change: KeyChange) -> Result<Key, LedgerError> {
        self.apply(Operation::Change(Box::new(change))).await?.key()
    }

    // --- customers ---

    /// Creates a customer without keys or money. Repeating the operation id returns the one created first. An external id that another
    /// customer has is refused.
    async fn create_customer(&self, new: NewCustomer) -> Result<Customer, LedgerError> {
        self.apply(Operation::CreateCustomer(Box::new(new)))
            .await?
            .customer()
    }

    /// One customer. `None` when there is no such customer.
    async fn find_customer(&self, id: CustomerId) -> Result<Option<Customer>, LedgerError>;

    /// The customer with this external id, compared exactly.
    async fn find_external(&self, external_id: &str) -> Result<Option<Customer>, LedgerError>;

    /// A page of customers; never uses OFFSET.
    async fn list_customers(&self, query: CustomerQuery) -> Result<Vec<Customer>, LedgerError>;

    /// A customer's personal data; `None` when there is none, or it was erased.
    async fn personal_data(&self, id: CustomerId) -> Result<Option<PersonalData>, LedgerError>;

    /// Whom the receipts of a customer's payments are addressed to.
    async fn addressees(&self, id: CustomerId) -> Result<Addressees, LedgerError>;

    /// Applies one administrative change to a customer and writes it to the audit.
    async fn change_customer(&self, change: CustomerChange) -> Result<Customer, LedgerError> {
        self.apply(Operation::ChangeCustomer(Box::new(change)))
            .await?
            .customer()
    }

    /// Moves money that was paid and is not held from one customer to another: two entries with one reference, in one step. Repeating
    /// the reference with the same facts returns both as they are.
    async fn move_money(&self, moved: NewMove) -> Result<Moved, LedgerError> {
        self.apply(Operation::Move(Box::new(moved))).await?.moved()
    }

    // --- money in ---

    /// Books a payment with particulars. One whose credit a rule refuses (a closed customer, the highest balance) is stored as
    /// unapplied under its reference. Repeating the reference with the same facts returns the payment as it is.
    async fn pay(&self, new: NewPayment) -> Result<PaymentMoved, LedgerError> {
        self.apply(Operation::Pay(Box::new(new))).await?.payment()
    }

    /// Takes in what went back of a payment so far, and books the difference in what is due. What is not there becomes the customer's
    /// claim, which is paid first. Any order and repetition ends in the same registers, claims and sums.
    async fn reverse(&self, new: NewReversal) -> Result<PaymentMoved, LedgerError> {
        self.apply(Operation::Reverse(Box::new(new)))
            .await?
            .payment()
    }

    /// Assigns an unapplied payment to a customer, or notes that its money was sent back.
    async fn end_unapplied(&self, act: UnappliedAct) -> Result<PaymentMoved, LedgerError> {
        self.apply(Operation::EndUnapplied(Box::new(act)))
            .await?
            .payment()
    }

    /// A payment by its reference: one with particulars, or of which something went back.
    async fn payment(&self, reference: &str) -> Result<Option<Payment>, LedgerError>;

    /// Payments that could not be booked and were neither assigned nor sent back, and those of which something went back that is not booked,
    /// oldest first.
    async fn unapplied(&self) -> Result<Vec<Payment>, LedgerError>;

    /// Top-up, adjustment, refund or write-off, of a customer. A revoked key and a closed customer accept no more top-ups. Repeating a reference with the same facts returns the
    /// first answer; with other facts it is a [`Refusal::ReferenceUsed`].
    async fn credit(&self, credit: Credit) -> Result<Posted, LedgerError> {
        self.apply(Operation::Credit(Box::new(credit)))
            .await?
            .posted()
    }

    // --- the admin API ---

    /// Does what a token or an owner key asks for, within its right and bounds and at most once. While another gateway is doing it, this waits up to two seconds for
    /// its answer.
    async fn ask(&self, asked: Asked) -> Result<Answered, LedgerError> {
        let begun = tokio::time::Instant::now();
        loop {
            let operation = Operation::Asked(Box::new(asked.clone()));
            match self.apply(operation).await {
                Err(LedgerError::Refused(Refusal::StillRunning))
                    if begun.elapsed() < Once::PATIENCE =>
                {
                    tokio::time::sleep(Once::PAUSE).await;
                }
                done => return done?.answered(),
            }
        }
    }

    /// Creates a token. Repeating the operation id returns the one created first.
    async fn create_token(&self, new: NewToken) -> Result<Token, LedgerError> {
        self.apply(Operation::CreateToken(Box::new(new)))
            .await?
            .token()
    }

    /// Ends a token for ever.
    async fn revoke_token(&self, token: TokenId, act: Act) -> Result<Token, LedgerError> {
        let operation = Operation::RevokeToken { token, act };
        self.apply(operation).await?.token()
    }

    /// The token with this secret, whatever its state.
    async fn find_token(&self, secret: SecretHash) -> Result<Option<Token>, LedgerError>;

    /// What tokens did on the days since this one, of those that did anything.
    async fn token_days(&self, since: UtcDay) -> Result<Vec<TokenDay>, LedgerError>;

    /// Notes the first use of a key that a token made, so that no token reissues it.
    async fn mark_used(&self, key: KeyId, now: Timestamp) -> Result<(), LedgerError> {
        self.apply(Operation::MarkUsed { key, now }).await.map(drop)
    }

    /// All tokens, oldest first.
    async fn tokens(&self) -> Result<Vec<Token>, LedgerError>;

    /// Acts that belong to no customer, on tokens and on lots, oldest first.
    async fn house_acts(&self) -> Result<Vec<HouseAct>, LedgerError>;

    // --- vouchers ---

    /// Makes a lot of vouchers. Repeating the operation id returns the lot as it is.
    async fn create_lot(&self, new: NewLot) -> Result<Lot, LedgerError> {
        self.apply(Operation::CreateLot(Box::new(new))).await?.lot()
    }

    /// What is left of a lot is worth nothing from now on.
    async fn void_lot(&self, lot: LotId, act: Act) -> Result<Lot, LedgerError> {
        self.apply(Operation::VoidLot { lot, act }).await?.lot()
    }

    /// Redeems a voucher, once. Whoever redeemed it gets the same entry again; unknown, void, expired and used by another are one refusal.
    async fn redeem(&self, new: Redemption) -> Result<Posted, LedgerError> {
        let redeemed = self.apply(Operation::Redeem(Box::new(new))).await?;
        redeemed.posted()
    }

    /// All lots, oldest first.
    async fn lots(&self) -> Result<Vec<Lot>, LedgerError>;

    // --- holds: use [`Hold`], which ends by itself, rather than these ---

    /// Reserves money of a key's customer. Refused when key or customer is not active, there is less room, or the hold's id was used. Repeating it with the
    /// same facts while the hold is open has no second effect.
    async fn open_hold(&self, hold: NewHold) -> Result<Held, LedgerError> {
        self.apply(Operation::Open(hold)).await?.held()
    }

    /// Gives a hold another size, and stores its checkpoint. A move that is not newer than what is known changes nothing, and is answered with what is held.
    async fn move_hold(&self, moved: HoldMove) -> Result<Held, LedgerError> {
        self.apply(Operation::MoveHold(Box::new(moved)))
            .await?
            .held()
    }

    /// Ends a hold with exactly one charge entry. Repeating it, even with another bill, returns the first outcome (with the amount
    /// available now). An absurd bill is refused and the hold stays open.
    async fn finish_hold(&self, finish: Finish) -> Result<EndedHold, LedgerError> {
        self.finish_shared(Arc::new(finish)).await
    }

    /// As [`Ledger::finish_hold`], with a finish that is shared with its [`Hold`](crate::Hold), which may have to submit it again.
    async fn finish_shared(&self, finish: Arc<Finish>) -> Result<EndedHold, LedgerError> {
        self.apply(Operation::Finish(finish)).await?.finished()
    }

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
        let epoch = self.apply(Operation::BeginEpoch { now }).await?.epoch()?;
        let mut result = Recovered {
            epoch,
            ..Recovered::default()
        };
        while let Some(some) = self
            .apply(Operation::Recover { epoch, now })
            .await?
            .recovered()?
        {
            result.settled = result.settled.saturating_add(some.settled);
            result.released = result.released.saturating_add(some.released);
        }
        Ok(result)
    }

    // --- reading ---

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

    /// Records slugs as published. Known ones keep their first date.
    async fn publish(&self, slugs: Vec<String>, now: Timestamp) -> Result<(), LedgerError> {
        self.apply(Operation::Publish { slugs, now })
            .await
            .map(drop)
    }

    /// Every slug ever published.
    async fn published(&self) -> Result<Vec<PublishedSlug>, LedgerError>;

    // --- what targets have taught ---

    /// Adds what targets have taught to the sums of before, which are halved whenever they reach five million tokens. An excess stands
    /// with the largest that its customer had there in seven days; those that are older go. Repeating it adds it twice.
    async fn teach(&self, taught: Taught) -> Result<(), LedgerError> {
        self.apply(Operation::Teach(Box::new(taught)))
            .await
            .map(drop)
    }

    /// What all targets have taught, in order.
    async fn taught(&self) -> Result<Taught, LedgerError>;

    /// Forgets what a target has taught, excesses too.
    async fn forget_target(&self, target: String) -> Result<(), LedgerError> {
        self.apply(Operation::ForgetTarget(target)).await.map(drop)
    }

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

    /// Notes that a configuration came into force. Repeating it has no second effect.
    async fn note_files(&self, act: FilesAct) -> Result<(), LedgerError> {
        self.note_reload(act, Vec::new()).await
    }

    /// As [`Ledger::note_files`], and tells what it changed for all customers.
    async fn note_reload(&self, act: FilesAct, news: Vec<News>) -> Result<(), LedgerError> {
        self.apply(Operation::Files(act, news)).await.map(drop)
    }

    /// Notes what became of events on their way to webhooks.
    async fn deliver(&self, steps: Vec<DeliveryStep>) -> Result<(), LedgerError> {
        self.apply(Operation::Deliver(steps)).await.map(drop)
    }

    /// Configurations that came into force, newest first, older than `before` when given.
    async fn files_acts(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<FilesAct>, LedgerError>;

    /// Stores what our own requests to a target cost in an hour, in place of this gateway's earlier total of that hour.
    async fn own_cost(&self, cost: OwnCost) -> Result<(), LedgerError> {
        self.apply(Operation::OwnCost(cost)).await.map(drop)
    }

    /// What own requests of all gateways cost in the hours of `[from, to)`, by hour and target, in order.
    async fn own_costs(&self, from: Timestamp, to: Timestamp) -> Result<Vec<OwnCost>, LedgerError>;

    // --- dashboard sessions and one-time links; both stored as SHA-256 ---

    /// Stores a one-time sign-in link of a key and audits who created it.
    async fn create_link(
        &self,
        key: KeyId,
        token: SecretHash,
        expires: Timestamp,
        act: Act,
    ) -> Result<(), LedgerError> {
        self.apply(Operation::CreateLink {
            key,
            token,
            expires,
            act,
        })
        .await
        .map(drop)
    }

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
        self.apply(Operation::ConsumeLink { token, now })
            .await?
            .owner()
    }

    /// Whether a link is known and has not expired.
    async fn has_link(&self, token: SecretHash, now: Timestamp) -> Result<bool, LedgerError>;

    /// Opens a dashboard session, unless the key is blocked or revoked. Beyond [`Session::MOST_OF_KEY`], the key's oldest session
    /// ends.
    async fn open_session(&self, session: Session) -> Result<(), LedgerError> {
        self.apply(Operation::OpenSession(session)).await.map(drop)
    }

    /// The key of a live session; `None` when unknown, expired, or the key was blocked, revoked or rotated since.
    async fn find_session(
        &self,
        token: SecretHash,
        now: Timestamp,
    ) -> Result<Option<KeyId>, LedgerError>;

    /// Ends a session; unknown ones are fine.
    async fn close_session(&self, token: SecretHash) -> Result<(), LedgerError> {
        self.apply(Operation::CloseSession(token)).await.map(drop)
    }

    /// Ends every session of a key.
    async fn close_sessions(&self, key: KeyId) -> Result<(), LedgerError> {
        self.apply(Operation::CloseSessions(key)).await.map(drop)
    }
}

/// A shared ledger, as every caller holds it.
pub type SharedLedger = Arc<dyn Ledger>;
