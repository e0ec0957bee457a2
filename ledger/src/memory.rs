//! Skeleton.

use async_trait::async_trait;

use crate::*;

/// The reference store: everything in memory, one lock, nothing clever.
#[derive(Debug, Default)]
pub struct MemoryLedger {}

impl MemoryLedger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
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
