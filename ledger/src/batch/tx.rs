//! A store's transaction, as the procedures in `apply` see it: the few reads and writes that make up every operation.
//!
//! Reads see the writes made before them in the same batch. A store decides nothing; it only reads and writes rows for the
//! procedures. It keeps its own totals and rollups in the same transaction. Writes happen only after every check, so a refusal
//! leaves nothing behind.

use crate::book::audit::Record;
use crate::book::head::{AuditHead, Hash, Head};
use crate::hold::Held;
use crate::{
    Account, Amount, AuditRecord, Bill, Entry, Key, KeyId, NewHold, OpenHold, OperationId, Refusal,
    SecretHash, Session, Status, Timestamp, Vote,
};

/// Why an operation had no effect.
#[derive(Debug)]
pub(crate) enum Fault<E> {
    /// The rules refuse it.
    Refused(Refusal),
    /// The store failed.
    Store(E),
}

impl<E> From<Refusal> for Fault<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The result of a step of a transaction.
pub(crate) type Step<T, X> = Result<X, Fault<<T as Tx>::Error>>;

/// What opening or extending a hold reads of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer {
    pub(crate) account: Account,
    pub(crate) status: Status,
    pub(crate) expires_at: Option<Timestamp>,
}

impl Payer {
    /// Refuses any key that is not active.
    pub(crate) fn check_active(&self, now: Timestamp) -> Result<(), Refusal> {
        match (self.status, self.expires_at) {
            (Status::Active, Some(end)) if now >= end => Err(Refusal::NotActive(Status::Expired)),
            (Status::Active, _) => Ok(()),
            (stopped, _) => Err(Refusal::NotActive(stopped)),
        }
    }
}

/// A key with the ends of its chains.
#[derive(Debug, Clone)]
pub(crate) struct StoredKey {
    pub(crate) key: Key,
    pub(crate) head: Head,
    pub(crate) audit: AuditHead,
}

/// An open hold, with the fields that lists do not show.
#[derive(Debug, Clone)]
pub(crate) struct StoredHold {
    pub(crate) open: OpenHold,
    /// Its size at the beginning.
    pub(crate) opened: Amount,
    pub(crate) checkpoint: Option<Bill>,
}

impl StoredHold {
    /// A hold as it is opened.
    pub(crate) fn new(new: &NewHold, epoch: i64) -> Self {
        let open = OpenHold {
            request: new.request,
            key: new.key,
            amount: new.amount,
            used: Amount::ZERO,
            slug: new.slug.clone(),
            family: new.family.clone(),
            at: new.at,
            epoch,
        };
        Self {
            open,
            opened: new.amount,
            checkpoint: None,
        }
    }
}

/// One store's transaction.
pub(crate) trait Tx {
    /// How the store fails.
    type Error;

    // --- holds: narrow reads, because every request makes them ---

    /// The account and state of a key.
    fn payer(&mut self, key: KeyId) -> Step<Self, Option<Payer>>;
    /// The account of a key and the end of its chain. A settlement does not ask whether the key is still active.
    fn account(&mut self, key: KeyId) -> Step<Self, Option<(Account, Head)>>;
    /// Whether an operation made an entry.
    fn has_entry(&mut self, operation: OperationId) -> Step<Self, bool>;
    /// The key and amount of an open hold.
    fn held(&mut self, request: OperationId) -> Step<Self, Option<Held>>;
    /// All of an open hold.
    fn hold(&mut self, request: OperationId) -> Step<Self, Option<StoredHold>>;
    /// Some holds of epochs before this one.
    fn holds_before(&mut self, epoch: i64, limit: usize) -> Step<Self, Vec<StoredHold>>;
    /// Refuses a request beyond the key's limits across all gateways. A store of a single gateway leaves them to the gateway.
    fn check_limits(&mut self, _key: KeyId) -> Step<Self, ()> {
        Ok(())
    }
    /// Stores a new hold of the current epoch; false when there is one with this id.
    fn insert_hold(&mut self, new: &NewHold) -> Step<Self, bool>;
    /// Stores a hold's new size and its checkpoint, whose charge is `used`.
    fn update_hold(
        &mut self,
        request: OperationId,
        amount: Amount,
        used: Amount,
        checkpoint: &Bill,
    ) -> Step<Self, ()>;
    /// Removes a hold that has ended.
    fn delete_hold(&mut self, request: OperationId) -> Step<Self, ()>;
    /// Changes what a key holds.
    fn set_held(&mut self, key: KeyId, before: Account, after: Account) -> Step<Self, ()>;
    /// The current epoch.
    fn epoch(&mut self) -> i64;
    /// Begins the next epoch.
    fn begin_epoch(&mut self, epoch: i64, now: Timestamp) -> Step<Self, ()>;

    // --- the journal and the audit ---

    /// The ledger's identity, with which every chain begins.
    fn ledger(&mut self) -> Step<Self, [u8; 16]>;

    /// The ledger's own clock: that of its database, or of this machine if it is a file.
    fn now(&self) -> Timestamp {
        crate::value::clock::now()
    }
    /// The next entry's position in the whole journal.
    fn next_position(&mut self) -> i64;
    /// The entry that an operation made.
    fn entry(&mut self, operation: OperationId) -> Step<Self, Option<Entry>>;
    /// The entry that carries a reference.
    fn entry_by_reference(&mut self, reference: &str) -> Step<Self, Option<Entry>>;
    /// The refunds of a request so far.
    fn refunds(&mut self, request: OperationId) -> Step<Self, Vec<Amount>>;
    /// Appends an entry behind `head`, moves its key's account from `before` to `after`, and adds it to its hour.
    fn append(
        &mut self,
        entry: &Entry,
        hash: &Hash,
        head: &Head,
        before: Account,
        after: Account,
    ) -> Step<Self, ()>;
    /// The administrative act of an operation.
    fn act(&mut self, operation: OperationId) -> Step<Self, Option<AuditRecord>>;
    /// Whether an operation created an entry, an audit record or a hold.
    fn is_used(&mut self, operation: OperationId) -> Step<Self, bool>;
    /// The position that the next act has in the whole audit.
    fn next_act(&mut self) -> i64;
    /// Appends an act behind `head`.
    fn append_act(&mut self, record: &Record, hash: &Hash, head: &AuditHead) -> Step<Self, ()>;

    // --- keys, links, sessions, slugs ---

    /// A key with the ends of its chains.
    fn key(&mut self, key: KeyId) -> Step<Self, Option<StoredKey>>;
    /// Stores a new key without money or history.
    fn insert_key(&mut self, stored: &StoredKey) -> Step<Self, ()>;
    /// Stores a key's settings, state and secrets.
    fn update_key(&mut self, key: &Key) -> Step<Self, ()>;
    /// Ends the sessions and links of a key.
    fn end_sessions(&mut self, key: KeyId) -> Step<Self, ()>;
    /// Whether a link exists.
    fn has_link(&mut self, token: SecretHash) -> Step<Self, bool>;
    /// Stores a link and removes those that have expired at `now`.
    fn insert_link(
        &mut self,
        token: SecretHash,
        key: KeyId,
        expires: Timestamp,
        now: Timestamp,
    ) -> Step<Self, ()>;
    /// Removes a link; returns its key and expiry.
    fn take_link(&mut self, token: SecretHash) -> Step<Self, Option<(KeyId, Timestamp)>>;
    /// An open session.
    fn session(&mut self, token: SecretHash) -> Step<Self, Option<Session>>;
    /// Stores a session, and removes those that have expired when it begins, and the key's oldest above [`Session::MOST_OF_KEY`].
    fn insert_session(&mut self, session: &Session) -> Step<Self, ()>;
    /// Removes every session of a key.
    fn close_sessions(&mut self, key: KeyId) -> Step<Self, ()>;
    /// Removes a session.
    fn delete_session(&mut self, token: SecretHash) -> Step<Self, ()>;
    /// Records a slug as published, unless it is known.
    fn publish(&mut self, slug: &str, now: Timestamp) -> Step<Self, ()>;

    // --- votes ---

    /// Stores a vote in place of the same customer's of the same day, and removes those on its target that count no more.
    fn vote(&mut self, vote: &Vote) -> Step<Self, ()>;
    /// Removes every vote on a target.
    fn forget_votes(&mut self, target: &str) -> Step<Self, ()>;
}
