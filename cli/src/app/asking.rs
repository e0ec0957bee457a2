//! Lets the ledger decide which gateway of a fleet asks targets in trouble, and keeps in it what their own requests cost.

use std::collections::BTreeMap;
use std::time::Duration;

use farebox_ledger::{Amount, OwnCost, Perform, SharedLedger, Timestamp};
use tokio::sync::Mutex;

use farebox::clock;
use farebox::upstream::{Heard, Lease, Referee};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// The referee of a gateway.
#[derive(Debug)]
pub(super) struct Asking {
    ledger: SharedLedger,
    /// What this gateway's requests cost, by hour and target: totals that the ledger replaces. Those of past hours go when it has
    /// them.
    totals: Mutex<BTreeMap<(i64, String), Total>>,
}

#[derive(Debug, Default)]
struct Total {
    cost: Amount,
    is_stored: bool,
}

impl Asking {
    pub(super) fn new(ledger: SharedLedger) -> Self {
        Self {
            ledger,
            totals: Mutex::default(),
        }
    }

    async fn spent_today(&self, target: &str) -> Option<Amount> {
        let now = clock::now().millis();
        let midnight = now - now.rem_euclid(DAY);
        let (from, to) = (midnight, midnight + DAY);
        let day = (Timestamp::from_millis(from), Timestamp::from_millis(to));
        let costs = self.ledger.own_costs(day.0, day.1).await.ok()?;
        let of_target = costs.iter().filter(|own| own.target == target);
        Amount::checked_sum(of_target.map(|own| own.cost))
    }
}

impl Referee for Asking {
    async fn lease(&self, target: &str, place: &str) -> Option<Lease> {
        let millis = |millis: i64| Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        match self.ledger.lease_probe(place).await {
            Ok(farebox_ledger::ProbeLease::Ours) => Some(Lease::Ours {
                spent: self.spent_today(target).await?,
            }),
            Ok(farebox_ledger::ProbeLease::Theirs(finding)) => {
                Some(Lease::Theirs(finding.map(|finding| Heard {
                    number: finding.number,
                    found: finding.found,
                    asked: millis(finding.asked_ms),
                    known: millis(finding.found_ms),
                })))
            }
            Err(error) => {
                tracing::warn!(target, %error, "the ledger cannot tell which gateway asks");
                None
            }
        }
    }

    async fn tell(&self, place: &str, found: &str) {
        if let Err(error) = self.ledger.tell(place, found).await {
            tracing::warn!(place, %error, "other gateways were not told what was found");
        }
    }

    async fn paid(&self, target: &str, cost: Amount) {
        let hour = clock::now().hour();
        let mut totals = self.totals.lock().await;
        let total = totals.entry((hour, target.to_owned())).or_default();
        total.cost = total.cost.checked_add(cost).unwrap_or(total.cost);
        total.is_stored = false;
        for ((hour, target), total) in &mut *totals {
            if total.is_stored {
                continue;
            }
            let cost = OwnCost {
                hour: *hour,
                target: target.clone(),
                cost: total.cost,
            };
            match self.ledger.perform(cost).await {
                Ok(()) => total.is_stored = true,
                Err(error) => {
                    tracing::warn!(target, %error, "what our own requests cost is not in the ledger yet");
                }
            }
        }
        totals.retain(|(of, _), total| *of == hour || !total.is_stored);
    }
}
