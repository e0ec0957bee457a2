//! Skeleton.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;

use crate::*;

/// What a program opens a ledger for, and whether it may create one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The gateway: reads and writes, creates a missing file. Take the [`ServeLock`] first.
    Serve,
    /// A command that may begin a ledger: reads and writes, creates a missing file.
    Create,
    /// Reads and writes an existing ledger; a missing file is an error and stays missing.
    Write,
    /// Only reads an existing ledger.
    ReadOnly,
}

/// When a change counts as safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Money in and key changes are on disk before they are confirmed, charges at most 50 ms later.
    #[default]
    Prompt,
    /// Everything is on disk before it is confirmed.
    Strict,
}

/// A ledger in one SQLite file.
#[derive(Debug)]
pub struct SqliteLedger {}

/// How the writer is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriterStats {
    /// Operations waiting.
    pub queued: usize,
    /// Abandoned holds waiting for their settlement.
    pub unresolved: usize,
    /// Commits so far.
    pub commits: u64,
    /// Operations in those commits.
    pub operations: u64,
    /// How long the last commit took.
    pub last_commit: Duration,
    /// Commits by duration: one count for each bound of [`WriterStats::BOUNDS`] and one for all above.
    pub histogram: [u64; 9],
    /// The disk was full at the last attempt; new holds are refused.
    pub disk_full: bool,
    /// The writer stopped for good.
    pub stopped: bool,
}

impl WriterStats {
    /// Upper bounds of [`WriterStats::histogram`].
    pub const BOUNDS: [Duration; 8] = [
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_millis(5),
        Duration::from_millis(20),
        Duration::from_millis(100),
        Duration::from_secs(1),
    ];
}

impl SqliteLedger {
    /// Opens a ledger file.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when the file is missing, not a ledger, newer than this program or open to everyone.
    pub fn open(_path: impl AsRef<Path>, _mode: OpenMode, _durability: Durability) -> Result<Self, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }

    /// Waits until the writer has stopped for good and says why. The process should then exit with an error.
    pub async fn fatal(&self) -> String {
        std::future::pending().await
    }

    /// How the writer is doing.
    #[must_use]
    pub fn stats(&self) -> WriterStats {
        WriterStats::default()
    }

    /// Writes what is waiting and stops the writer; later changes are [`LedgerError::Unavailable`]. May be called twice.
    pub fn close(&self) {}
}

/// The exclusive right to serve one ledger, held for as long as this value lives.
#[derive(Debug)]
pub struct ServeLock {}

impl ServeLock {
    /// Takes `<ledger>.lock`, waiting at most `wait`.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`], naming the holder.
    pub fn acquire(_ledger: impl AsRef<Path>, _wait: Duration) -> Result<Self, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn create_key(&self, _new: NewKey) -> Result<Key, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn find_key(&self, _id: KeyId) -> Result<Option<Key>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn list_keys(&self, _query: KeyQuery) -> Result<Vec<Key>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn change_key(&self, _change: KeyChange) -> Result<Key, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn credit(&self, _credit: Credit) -> Result<Posted, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn open_hold(&self, _hold: NewHold) -> Result<(), LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn extend_hold(&self, _extension: Extension) -> Result<(), LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn finish_hold(&self, _finish: Finish) -> Result<Finished, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    fn abandon_hold(&self, _finish: Finish) {}
    async fn open_holds(&self, _key: Option<KeyId>, _limit: usize) -> Result<Vec<OpenHold>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn recover(&self, _now: Timestamp) -> Result<Recovered, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn entries(&self, _query: EntryQuery) -> Result<Vec<Entry>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn entry(&self, _operation: OperationId) -> Result<Option<Entry>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn entry_by_answer(&self, _key: KeyId, _answer_id: &str) -> Result<Option<Entry>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn usage(&self, _key: KeyId, _from: Timestamp, _to: Timestamp) -> Result<Vec<UsageRow>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn slug_use(&self, _since: Timestamp) -> Result<Vec<SlugUse>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn totals(&self) -> Result<Totals, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn audit(&self, _key: Option<KeyId>, _before: Option<i64>, _limit: usize) -> Result<Vec<AuditRecord>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn verify(&self) -> Result<VerifyReport, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn publish(&self, _slugs: Vec<String>, _now: Timestamp) -> Result<(), LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn published(&self) -> Result<Vec<PublishedSlug>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn create_link(&self, _key: KeyId, _token: SecretHash, _expires: Timestamp, _act: Act) -> Result<(), LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn consume_link(&self, _token: SecretHash, _now: Timestamp) -> Result<Option<KeyId>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn open_session(&self, _session: Session) -> Result<(), LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn find_session(&self, _token: SecretHash, _now: Timestamp) -> Result<Option<KeyId>, LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
    async fn close_session(&self, _token: SecretHash) -> Result<(), LedgerError> {
        Err(LedgerError::Unavailable("not built yet".to_owned()))
    }
}
