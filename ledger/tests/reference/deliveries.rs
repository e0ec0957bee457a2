//! Webhooks and deliveries in the reference store.

use std::cmp::Reverse;

use async_trait::async_trait;

use super::{MemoryLedger, State};
use crate::{
    Customer, CustomerId, DeliveryOutcome, DeliveryStep, DueDelivery, Event, FailedDelivery,
    KnownWebhook, LedgerError, OperationId, Outbox, Refusal, Timestamp, WantedDeliveries,
    WebhookId,
};

/// What became of a delivery so far.
#[derive(Debug, Clone)]
pub(super) struct Delivered {
    tries: u32,
    due: Timestamp,
    why: String,
    state: DeliveryState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    Waits,
    Done,
    GivenUp,
}

impl Delivered {
    const fn new(due: Timestamp) -> Self {
        Self {
            tries: 0,
            due,
            why: String::new(),
            state: DeliveryState::Waits,
        }
    }

    fn becomes(&mut self, tries: u32, outcome: &DeliveryOutcome) {
        self.tries = tries;
        match outcome {
            DeliveryOutcome::Delivered => self.state = DeliveryState::Done,
            DeliveryOutcome::Again { due, why } => {
                (self.state, self.due) = (DeliveryState::Waits, *due);
                self.why.clone_from(why);
            }
            DeliveryOutcome::GivenUp { .. } => self.state = DeliveryState::GivenUp,
        }
    }
}

impl State {
    pub(super) fn deliver(&mut self, step: &DeliveryStep) {
        match step {
            DeliveryStep::Register { url, handed, at } => {
                let id = WebhookId::of(url);
                self.webhooks.entry(id).or_insert_with(|| KnownWebhook {
                    id,
                    url: url.clone(),
                    since: *at,
                    handed: *handed,
                    disabled: None,
                    waiting: 0,
                });
            }
            DeliveryStep::Hand {
                webhook,
                events,
                handed,
                due,
            } => {
                for event in events {
                    let place = self.deliveries.entry((*webhook, *event));
                    place.or_insert(Delivered::new(*due));
                }
                if let Some(known) = self.webhooks.get_mut(webhook) {
                    known.handed = Some(*handed);
                }
            }
            DeliveryStep::Tried {
                webhook,
                event,
                tries,
                outcome,
            } => {
                if let Some(delivery) = self.deliveries.get_mut(&(*webhook, *event)) {
                    delivery.becomes(*tries, outcome);
                }
            }
            DeliveryStep::Disable { webhook, at, why } => {
                if let Some(known) = self.webhooks.get_mut(webhook) {
                    known.disabled.get_or_insert((*at, why.clone()));
                }
            }
            DeliveryStep::Enable { webhook, due } => self.enable(*webhook, *due),
            DeliveryStep::Replay {
                webhook,
                events,
                due,
            } => {
                for event in events {
                    let place = (*webhook, *event);
                    self.deliveries.insert(place, Delivered::new(*due));
                }
            }
        }
    }

    fn enable(&mut self, webhook: WebhookId, due: Timestamp) {
        if let Some(known) = self.webhooks.get_mut(&webhook) {
            known.disabled = None;
        }
        for ((of, _), delivery) in &mut self.deliveries {
            let missed = [DeliveryState::Waits, DeliveryState::GivenUp];
            if *of == webhook && missed.contains(&delivery.state) {
                *delivery = Delivered::new(due);
            }
        }
    }

    fn due(&self, wanted: WantedDeliveries, now: Timestamp) -> Vec<DueDelivery> {
        let of = self.deliveries.iter();
        let mut due: Vec<_> = of
            .filter(|((webhook, _), _)| *webhook == wanted.webhook)
            .filter(|(_, delivery)| delivery.state == DeliveryState::Waits && delivery.due <= now)
            .collect();
        due.sort_by_key(|(_, delivery)| delivery.due);
        let most = wanted.free.saturating_add(wanted.running);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let found = due.into_iter().take(most);
        let found = found.filter_map(|((webhook, event), delivery)| {
            Some(DueDelivery {
                webhook: *webhook,
                event: self.events.iter().find(|known| known.id == *event)?.clone(),
                tries: delivery.tries,
            })
        });
        found.collect()
    }
}

#[async_trait]
impl Outbox for MemoryLedger {
    async fn events(
        &self,
        after: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<Event>, LedgerError> {
        let mut found = self
            .state()
            .events_after(after)
            .ok_or_else(|| Refusal::no_event(after))?;
        found.truncate(limit);
        Ok(found)
    }

    async fn newest_event(&self) -> Result<Option<OperationId>, LedgerError> {
        Ok(self.state().events.last().map(|event| event.id))
    }

    async fn due_top_ups(&self, now: Timestamp) -> Result<Vec<CustomerId>, LedgerError> {
        let state = self.state();
        let mut due = Vec::new();
        for customer in state.customers.keys() {
            if state.wants(*customer, now)?.is_some() {
                due.push(*customer);
            }
        }
        Ok(due)
    }

    async fn owing_or_asking(&self) -> Result<Vec<Customer>, LedgerError> {
        let state = self.state();
        let customers = state.customers.values();
        let listed = customers.filter(|of| of.claim.is_positive() || of.auto_top_up.is_some());
        Ok(listed.cloned().collect())
    }

    async fn webhooks(&self) -> Result<Vec<KnownWebhook>, LedgerError> {
        let state = self.state();
        let mut known: Vec<KnownWebhook> = state.webhooks.values().cloned().collect();
        for webhook in &mut known {
            let of = state.deliveries.iter();
            let waiting = of.filter(|((of, _), delivery)| {
                *of == webhook.id && delivery.state == DeliveryState::Waits
            });
            let waiting = u64::try_from(waiting.count()).unwrap_or(u64::MAX);
            webhook.waiting = waiting.min(100);
        }
        known.sort_by(|a, b| a.url.cmp(&b.url));
        Ok(known)
    }

    async fn failed_delivery(
        &self,
        webhook: WebhookId,
    ) -> Result<Option<FailedDelivery>, LedgerError> {
        let state = self.state();
        let of = || {
            let of = state.deliveries.iter();
            of.filter(|((of, _), _)| *of == webhook)
        };
        let arrived = of().filter(|(_, delivery)| delivery.state == DeliveryState::Done);
        let arrived = arrived.map(|(_, delivery)| delivery.due).max();
        let failed = of()
            .filter(|(_, delivery)| delivery.state == DeliveryState::Waits && delivery.tries > 0);
        let most = failed.min_by_key(|(_, delivery)| (Reverse(delivery.tries), delivery.due));
        Ok(most.map(|((_, event), delivery)| FailedDelivery {
            event: *event,
            tries: delivery.tries,
            due: delivery.due,
            why: delivery.why.clone(),
            arrived,
        }))
    }

    async fn due_deliveries(
        &self,
        wanted: Vec<WantedDeliveries>,
        now: Timestamp,
    ) -> Result<Vec<DueDelivery>, LedgerError> {
        let state = self.state();
        let found = wanted.into_iter().flat_map(|wanted| state.due(wanted, now));
        Ok(found.collect())
    }
}
