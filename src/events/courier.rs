//! The loop that delivers: events of the ledger become deliveries to those who want them, and each that is due is tried.
//!
//! A webhook has a few tries under way at most, and one while it fails, so those that hang keep nobody else waiting and cost one
//! connection each. Gateways of a fleet lease what they try.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{
    DeliveryOutcome, DeliveryStep, DeliverySteps, DueDelivery, Event, FailedDelivery, KnownWebhook,
    LedgerError, OperationId, Perform, Refusal, SharedLedger, Timestamp, WantedDeliveries,
    WebhookId,
};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::schedule::{first_try, pause};
use super::{SendError, Sending};
use crate::clock;
use crate::config::{ConfigHandle, Webhook};
use crate::telemetry::Telemetry;
use crate::telemetry::webhooks::WebhookSeen;

/// Between two looks at the ledger.
const EVERY: Duration = Duration::from_millis(500);
/// Tries under way to one webhook that answers.
const AT_ONCE: u32 = 4;
/// Events that are handed out at once.
const PAGE: usize = 500;
/// Pages of one look; what is left comes with the next one.
const PAGES: usize = 20;

/// A try that has ended.
struct TriedDelivery {
    webhook: WebhookId,
    name: String,
    event: OperationId,
    tries: u32,
    result: Result<(), SendError>,
}

/// What this gateway knows of a webhook.
#[derive(Default)]
struct Underway {
    events: HashSet<OperationId>,
    /// Since when every try has failed, and what was wrong with the last one.
    trouble: Option<(Timestamp, String)>,
}

impl Underway {
    fn running(&self) -> u32 {
        u32::try_from(self.events.len()).unwrap_or(u32::MAX)
    }

    fn at_once(&self) -> u32 {
        if self.trouble.is_some() { 1 } else { AT_ONCE }
    }
}

struct Courier {
    ledger: SharedLedger,
    config: Arc<ConfigHandle>,
    telemetry: Arc<Telemetry>,
    sending: Sending,
    underway: HashMap<WebhookId, Underway>,
    tries: JoinSet<TriedDelivery>,
    /// What has ended and is not written down yet.
    ended: Vec<TriedDelivery>,
}

/// Delivers as long as the gateway runs.
pub async fn deliver(
    ledger: SharedLedger,
    config: Arc<ConfigHandle>,
    telemetry: Arc<Telemetry>,
) -> Infallible {
    let sending = match Sending::new() {
        Ok(sending) => sending,
        Err(error) => {
            tracing::error!(%error, "events cannot be delivered");
            return std::future::pending().await;
        }
    };
    let mut courier = Courier {
        ledger,
        config,
        telemetry,
        sending,
        underway: HashMap::new(),
        tries: JoinSet::new(),
        ended: Vec::new(),
    };
    let mut looks = tokio::time::interval(EVERY);
    // A look that took long is not made up for by several at once.
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(tried) = courier.tries.join_next() => courier.ended.extend(tried.ok()),
            _ = looks.tick() => courier.look().await,
        }
    }
}

impl Courier {
    async fn look(&mut self) {
        let webhooks = self.config.current().webhooks.clone();
        if webhooks.is_empty() && self.ended.is_empty() {
            self.telemetry.webhooks.note(Vec::new());
            return;
        }
        if let Err(error) = self.step(&webhooks).await {
            tracing::debug!(%error, "events wait for the ledger");
        }
    }

    async fn step(&mut self, webhooks: &[Arc<Webhook>]) -> Result<(), LedgerError> {
        self.write_down().await?;
        let known = self.known(webhooks).await?;
        let enabled: Vec<(&Arc<Webhook>, &KnownWebhook)> = webhooks
            .iter()
            .filter_map(|webhook| Some((webhook, known.get(&WebhookId::of(&webhook.url))?)))
            .filter(|(_, known)| known.disabled.is_none())
            .collect();
        // Before `start`, which would make entries that know of no trouble before.
        self.remember(&enabled).await?;
        self.hand_out(&enabled).await?;
        self.start(&enabled).await?;
        self.note(webhooks, &known);
        Ok(())
    }

    /// Webhooks in the ledger; those that are new get what is told from now on.
    async fn known(
        &self,
        webhooks: &[Arc<Webhook>],
    ) -> Result<HashMap<WebhookId, KnownWebhook>, LedgerError> {
        let by_id = |known: Vec<KnownWebhook>| known.into_iter().map(|one| (one.id, one)).collect();
        let known: HashMap<_, _> = by_id(self.ledger.webhooks().await?);
        let new = webhooks
            .iter()
            .filter(|webhook| !known.contains_key(&WebhookId::of(&webhook.url)));
        let new: Vec<String> = new.map(|webhook| webhook.url.clone()).collect();
        if new.is_empty() {
            return Ok(known);
        }
        let (handed, at) = (self.ledger.newest_event().await?, clock::now());
        let steps = new
            .into_iter()
            .map(|url| DeliveryStep::Register { url, handed, at });
        self.ledger.perform(DeliverySteps(steps.collect())).await?;
        Ok(by_id(self.ledger.webhooks().await?))
    }

    /// What was wrong with each before this gateway began: whoever has failed for an hour has, whichever gateway tried.
    async fn remember(
        &mut self,
        enabled: &[(&Arc<Webhook>, &KnownWebhook)],
    ) -> Result<(), LedgerError> {
        for (_, known) in enabled {
            if self.underway.contains_key(&known.id) {
                continue;
            }
            let failed = match known.waiting {
                0 => None,
                _ => self.ledger.failed_delivery(known.id).await?,
            };
            let underway = Underway {
                trouble: failed.and_then(trouble_of),
                ..Underway::default()
            };
            self.underway.insert(known.id, underway);
        }
        Ok(())
    }

    /// Makes deliveries of new events.
    async fn hand_out(
        &self,
        enabled: &[(&Arc<Webhook>, &KnownWebhook)],
    ) -> Result<(), LedgerError> {
        // Mostly all webhooks are at the same place.
        let mut places: BTreeMap<Option<OperationId>, Vec<&Arc<Webhook>>> = BTreeMap::new();
        for (webhook, known) in enabled {
            places.entry(known.handed).or_default().push(webhook);
        }
        for (mut after, webhooks) in places {
            for _ in 0..PAGES {
                let events = match self.ledger.events(after, PAGE).await {
                    Err(LedgerError::Refused(Refusal::NoSuchEvent(_))) => {
                        tracing::warn!(
                            "events that webhooks have not had are older than 30 days and gone"
                        );
                        self.ledger.events(None, PAGE).await?
                    }
                    events => events?,
                };
                let Some(last) = events.last() else { break };
                after = Some(last.id);
                let due = clock::now();
                let steps = webhooks
                    .iter()
                    .map(|webhook| hand(webhook, &events, last.id, due));
                self.ledger.perform(DeliverySteps(steps.collect())).await?;
                if events.len() < PAGE {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Starts the tries that are due, as far as each webhook has room.
    async fn start(
        &mut self,
        enabled: &[(&Arc<Webhook>, &KnownWebhook)],
    ) -> Result<(), LedgerError> {
        let mut by_id = HashMap::new();
        let mut wanted = Vec::new();
        for (webhook, known) in enabled {
            let underway = self.underway.entry(known.id).or_default();
            let running = underway.running();
            let free = underway.at_once().saturating_sub(running);
            if free > 0 {
                wanted.push(WantedDeliveries {
                    webhook: known.id,
                    free,
                    running,
                });
                by_id.insert(known.id, *webhook);
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        for due in self.ledger.due_deliveries(wanted, clock::now()).await? {
            let underway = self.underway.entry(due.webhook).or_default();
            let has_room = underway.running() < underway.at_once();
            if let Some(webhook) = by_id.get(&due.webhook)
                && has_room
                && underway.events.insert(due.event.id)
            {
                self.tries
                    .spawn(try_it(self.sending.clone(), Arc::clone(webhook), due));
            }
        }
        Ok(())
    }

    /// Writes down what became of the tries that have ended. Until then they count as under way.
    async fn write_down(&mut self) -> Result<(), LedgerError> {
        if self.ended.is_empty() {
            return Ok(());
        }
        let now = clock::now();
        let steps = self.ended.iter().flat_map(|tried| outcome(tried, now));
        self.ledger.perform(DeliverySteps(steps.collect())).await?;
        for tried in self.ended.drain(..) {
            let underway = self.underway.entry(tried.webhook).or_default();
            underway.events.remove(&tried.event);
            let since = underway.trouble.take().map_or(now, |(since, _)| since);
            underway.trouble = tried.result.err().map(|error| (since, error.to_string()));
        }
        Ok(())
    }

    fn note(&self, webhooks: &[Arc<Webhook>], known: &HashMap<WebhookId, KnownWebhook>) {
        let seen = webhooks.iter().map(|webhook| {
            let id = WebhookId::of(&webhook.url);
            let known = known.get(&id);
            let underway = self.underway.get(&id);
            WebhookSeen {
                url: webhook.url.clone(),
                disabled: known.and_then(|known| known.disabled.clone()),
                waiting: known.map_or(0, |known| known.waiting),
                trouble: underway.and_then(|underway| underway.trouble.clone()),
            }
        });
        self.telemetry.webhooks.note(seen.collect());
    }
}

/// Since when every try has failed, if nothing has arrived since the first one, and what was wrong with the last.
fn trouble_of(failed: FailedDelivery) -> Option<(Timestamp, String)> {
    let since = first_try(failed.due, failed.tries, spread(failed.event));
    let arrives = failed.arrived.is_some_and(|arrived| arrived > since);
    (!arrives).then_some((since, failed.why))
}

/// What spreads the tries of an event.
fn spread(event: OperationId) -> u8 {
    event.to_bytes()[15]
}

fn hand(webhook: &Webhook, events: &[Event], handed: OperationId, due: Timestamp) -> DeliveryStep {
    let wanted = events
        .iter()
        .filter(|event| webhook.events.wants(event.kind.as_str()));
    DeliveryStep::Hand {
        webhook: WebhookId::of(&webhook.url),
        events: wanted.map(|event| event.id).collect(),
        handed,
        due,
    }
}

async fn try_it(sending: Sending, webhook: Arc<Webhook>, due: DueDelivery) -> TriedDelivery {
    let (id, body) = (format!("evt_{}", due.event.id), due.event.document());
    let result = sending.send(&webhook, &id, &body.to_string()).await;
    TriedDelivery {
        webhook: due.webhook,
        name: webhook.name().to_owned(),
        event: due.event.id,
        tries: due.tries.saturating_add(1),
        result,
    }
}

/// What a try becomes in the ledger.
fn outcome(tried: &TriedDelivery, now: Timestamp) -> Vec<DeliveryStep> {
    let TriedDelivery {
        webhook,
        name,
        event,
        tries,
        result,
    } = tried;
    let step = |outcome| DeliveryStep::Tried {
        webhook: *webhook,
        event: *event,
        tries: *tries,
        outcome,
    };
    let Err(error) = result else {
        return vec![step(DeliveryOutcome::Delivered)];
    };
    let why = error.to_string();
    let next = pause(*tries, spread(*event)).filter(|_| *error != SendError::Gone);
    if let Some(pause) = next {
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        let due = Timestamp::from_millis(now.millis().saturating_add(pause));
        return vec![step(DeliveryOutcome::Again { due, why })];
    }
    let reason = match error {
        SendError::Gone => why.clone(),
        _ => format!(
            "event evt_{event} did not arrive in {tries} tries over three days; the last: {why}"
        ),
    };
    tracing::warn!(webhook = name, reason, "a webhook gets no more events");
    let disable = DeliveryStep::Disable {
        webhook: *webhook,
        at: now,
        why: reason,
    };
    vec![step(DeliveryOutcome::GivenUp { why }), disable]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_that_failed_before_the_start_fails_since_then_unless_something_arrived() {
        let at = Timestamp::from_millis;
        let failed = |arrived| FailedDelivery {
            event: OperationId::from_bytes([0; 16]),
            tries: 2,
            due: at(1_000_000),
            why: "it answered 500".to_owned(),
            arrived,
        };
        let since = Some((at(695_000), "it answered 500".to_owned()));
        assert_eq!(trouble_of(failed(None)), since);
        assert_eq!(trouble_of(failed(Some(at(695_000)))), since);
        assert_eq!(trouble_of(failed(Some(at(695_001)))), None);
    }

    #[test]
    fn a_try_that_fails_is_due_again_and_the_last_one_disables() {
        let tried = |tries, result| TriedDelivery {
            webhook: WebhookId::of("https://a.example"),
            name: "https://a.example".to_owned(),
            event: OperationId::from_bytes([0; 16]),
            tries,
            result,
        };
        let now = Timestamp::from_millis(1_000_000);
        let late = outcome(&tried(1, Err(SendError::TimedOut)), now);
        let again = DeliveryOutcome::Again {
            due: Timestamp::from_millis(1_005_000),
            why: "no answer within 15 s".to_owned(),
        };
        assert!(matches!(&late[..], [DeliveryStep::Tried { outcome, .. }] if *outcome == again));
        for (tries, error) in [(10, SendError::Status(500)), (1, SendError::Gone)] {
            let last = outcome(&tried(tries, Err(error)), now);
            assert!(
                matches!(
                    &last[..],
                    [
                        DeliveryStep::Tried {
                            outcome: DeliveryOutcome::GivenUp { .. },
                            ..
                        },
                        DeliveryStep::Disable { .. }
                    ]
                ),
                "{last:?}"
            );
        }
    }
}
