//! What concerns a gateway and not the books: alerts, told to webhooks directly and at best, because the ledger may be what is in
//! trouble. Three tries within a minute; nothing of it is kept.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::task::TaskTracker;

use super::Sending;
use crate::clock;
use crate::config::{ConfigHandle, Webhook};
use crate::telemetry::alerts::{self, AlertNews, StandingAlert};

/// Pauses before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(45)];

/// An event that stands in no ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectEvent {
    /// The same for every try.
    pub id: String,
    /// What happened.
    pub kind: &'static str,
    body: String,
}

impl DirectEvent {
    /// An event of now.
    #[must_use]
    pub fn new(kind: &'static str, data: &Value) -> Self {
        let id = format!("evt_{}", clock::operation_id());
        let document = json!({
            "id": id, "type": kind, "timestamp": clock::now(), "customer": null, "seq": null, "data": data,
        });
        Self {
            id,
            kind,
            body: document.to_string(),
        }
    }

    /// The beginning or end of an alert at a gateway of a fleet.
    fn of(news: &AlertNews, gateway: Option<&str>) -> Self {
        let (kind, standing) = match news {
            AlertNews::Began(standing) => (began(standing), standing),
            AlertNews::Ended(standing) => (ended(standing), standing),
        };
        let mut data = standing.document();
        if let Some(gateway) = gateway {
            data["gateway"] = gateway.into();
        }
        Self::new(kind, &data)
    }

    /// What is delivered.
    pub fn body(&self) -> &str {
        &self.body
    }
}

fn began(StandingAlert { alert, .. }: &StandingAlert) -> &'static str {
    if alert.kind == &alerts::LEDGER_STOPPED {
        "ledger.stopped"
    } else if alert.kind == &alerts::TARGET_PAUSED {
        "target.paused"
    } else if alert.kind == &alerts::ACCOUNT_REFUSED {
        "provider.refused_us"
    } else {
        "alert.began"
    }
}

fn ended(StandingAlert { alert, .. }: &StandingAlert) -> &'static str {
    if alert.kind == &alerts::TARGET_PAUSED {
        "target.resumed"
    } else {
        "alert.ended"
    }
}

/// Tells webhooks what begins and ends, as long as the gateway runs. `tasks` are waited for when it stops, so that its last words
/// arrive.
pub async fn tell_alerts(
    config: Arc<ConfigHandle>,
    gateway: Option<String>,
    tasks: TaskTracker,
    mut news: UnboundedReceiver<AlertNews>,
) {
    let sending = match Sending::new() {
        Ok(sending) => sending,
        Err(error) => return tracing::error!(%error, "alerts cannot be told to webhooks"),
    };
    while let Some(news) = news.recv().await {
        let event = Arc::new(DirectEvent::of(&news, gateway.as_deref()));
        for webhook in &config.current().webhooks {
            if webhook.events.wants(event.kind) {
                let try_it = tell(sending.clone(), Arc::clone(webhook), Arc::clone(&event));
                drop(tasks.spawn(try_it));
            }
        }
    }
}

/// The first try; further ones keep nobody waiting who stops.
async fn tell(sending: Sending, webhook: Arc<Webhook>, event: Arc<DirectEvent>) {
    if sending
        .send(&webhook, &event.id, event.body())
        .await
        .is_ok()
    {
        return;
    }
    drop(tokio::spawn(async move {
        for pause in PAUSES {
            tokio::time::sleep(pause).await;
            match sending.send(&webhook, &event.id, event.body()).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::debug!(kind = event.kind, %error, "a webhook was not told");
                }
            }
        }
        tracing::warn!(
            kind = event.kind,
            webhook = webhook.name(),
            "a webhook was not told of an alert"
        );
    }));
}
