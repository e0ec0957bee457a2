//! Reading the outbox: the events of a ledger, and their way to webhooks.

use async_trait::async_trait;

use crate::{
    Customer, CustomerId, DueDelivery, Event, FailedDelivery, KnownWebhook, LedgerError,
    OperationId, Timestamp, WantedDeliveries, WebhookId,
};

/// What every ledger tells. What is written of it goes through [`Ledger`](crate::Ledger).
#[async_trait]
pub trait Outbox: Sync {
    /// At most `limit` events, oldest first, after the one with this id, or from the oldest on. Whoever goes on from the last one it
    /// got misses none, however many write meanwhile: an event is shown once none can come before it any more.
    async fn events(
        &self,
        after: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<Event>, LedgerError>;

    /// The newest event that can be seen.
    async fn newest_event(&self) -> Result<Option<OperationId>, LedgerError>;

    /// Customers whose rule of auto top-up wants money now: that of each of them was to wait, and the time for that has passed.
    async fn due_top_ups(&self, now: Timestamp) -> Result<Vec<CustomerId>, LedgerError> {
        let found = self.owing_or_asking().await?.into_iter();
        let wants = found.filter(|customer| customer.wanted_top_up(now).is_some());
        Ok(wants.map(|customer| customer.id).collect())
    }

    /// Customers that owe something, and those that have, or had, a rule of auto top-up, by id.
    async fn owing_or_asking(&self) -> Result<Vec<Customer>, LedgerError>;

    /// The webhooks that were ever there, by their addresses.
    async fn webhooks(&self) -> Result<Vec<KnownWebhook>, LedgerError>;

    /// The delivery to a webhook that waits after the most tries, if some have failed.
    async fn failed_delivery(
        &self,
        webhook: WebhookId,
    ) -> Result<Option<FailedDelivery>, LedgerError>;

    /// Deliveries that are due at an instant, as many as are wanted of each webhook. Of a ledger that several gateways share they are
    /// leased for a minute; of one that is not, what is running is among them.
    async fn due_deliveries(
        &self,
        wanted: Vec<WantedDeliveries>,
        now: Timestamp,
    ) -> Result<Vec<DueDelivery>, LedgerError>;
}
