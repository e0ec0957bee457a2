//! The one decoder of webhooks and deliveries, for both databases.

use super::rows::{Decoded, RowColumns};
use crate::{
    DeliveryOutcome, DeliveryStep, DueDelivery, FailedDelivery, KnownWebhook, Timestamp, WebhookId,
};

/// What [`webhook`] takes, of `webhooks w`.
macro_rules! webhook_columns {
    () => {
        "w.id, w.url, w.since, w.handed, w.disabled, w.why, (SELECT count(*) FROM (SELECT 1 FROM deliveries d \
         WHERE d.webhook = w.id AND d.status = 1 LIMIT 100) n)"
    };
}
pub(crate) use webhook_columns;

pub(crate) fn webhook(columns: &mut impl RowColumns) -> Decoded<KnownWebhook> {
    Ok(KnownWebhook {
        id: WebhookId(columns.number()?),
        url: columns.read()?,
        since: columns.read()?,
        handed: columns.read()?,
        disabled: columns.read()?,
        waiting: columns.read()?,
    })
}

/// What [`failed`] takes: the delivery to webhook `$1` that waits after the most tries.
macro_rules! failed_delivery {
    () => {
        "event, tries, due, why, (SELECT max(due) FROM deliveries WHERE webhook = $1 AND status = 2) \
         FROM deliveries WHERE webhook = $1 AND status = 1 AND tries > 0 ORDER BY tries DESC, due LIMIT 1"
    };
}
pub(crate) use failed_delivery;

pub(crate) fn failed(columns: &mut impl RowColumns) -> Decoded<FailedDelivery> {
    Ok(FailedDelivery {
        event: columns.read()?,
        tries: columns.read()?,
        due: columns.read()?,
        why: columns.read::<Option<_>>()?.unwrap_or_default(),
        arrived: columns.read()?,
    })
}

/// A webhook, tries, and the columns of an event.
pub(crate) fn due(columns: &mut impl RowColumns) -> Decoded<DueDelivery> {
    Ok(DueDelivery {
        webhook: WebhookId(columns.number()?),
        tries: columns.read()?,
        event: columns.read()?,
    })
}

/// The steps that make a delivery that waits: event, webhook, tries, when it is due, and what was wrong.
pub(crate) fn waiting(columns: &mut impl RowColumns) -> Decoded<[DeliveryStep; 2]> {
    let (event, webhook) = (columns.read()?, WebhookId(columns.number()?));
    let (tries, due) = (columns.read()?, columns.read()?);
    let why = columns.read::<Option<_>>()?.unwrap_or_default();
    Ok([
        DeliveryStep::Replay {
            webhook,
            events: vec![event],
            due,
        },
        DeliveryStep::Tried {
            webhook,
            event,
            tries,
            outcome: DeliveryOutcome::Again { due, why },
        },
    ])
}

/// The steps that make these webhooks known elsewhere.
pub(crate) fn known(webhooks: Vec<KnownWebhook>) -> Vec<DeliveryStep> {
    let steps = webhooks.into_iter().flat_map(|webhook| {
        let KnownWebhook {
            id,
            url,
            since,
            handed,
            disabled,
            ..
        } = webhook;
        let known = DeliveryStep::Register {
            url,
            handed,
            at: since,
        };
        let disable = disabled.map(|(at, why)| DeliveryStep::Disable {
            webhook: id,
            at,
            why,
        });
        std::iter::once(known).chain(disable)
    });
    steps.collect()
}

/// An outcome as both databases store it: status, when it is due (what is done is due at its end), and what was wrong.
pub(crate) fn outcome_parts(outcome: &DeliveryOutcome) -> (i64, Option<Timestamp>, Option<&str>) {
    match outcome {
        DeliveryOutcome::Again { due, why } => (1, Some(*due), Some(why)),
        DeliveryOutcome::Delivered => (2, None, None),
        DeliveryOutcome::GivenUp { why } => (3, None, Some(why)),
    }
}
