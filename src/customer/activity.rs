//! The newest refusals of each key since the gateway's start, and the notification that wakes its open pages.
//!
//! Kept in memory and bounded: 50 refusals per key, 1,000 keys. Never a body.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use farebox_ledger::{KeyId, OperationId, Timestamp, lock};
use tokio::sync::Notify;

use crate::proxy::{Observer, Record};

/// Refusals remembered of one key.
const OF_ONE_KEY: usize = 50;
/// Keys whose refusals are remembered; the one refused longest ago is forgotten first.
const KEYS: usize = 1_000;
/// The end reason of a request whose customer left, which is not a refusal.
const GONE: &str = "client_gone";
/// Longest explanation kept.
const LONGEST_MESSAGE: usize = 500;

/// One request that was not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedRequest {
    pub(super) at: Timestamp,
    pub(super) request: OperationId,
    pub(super) slug: String,
    pub(super) family: &'static str,
    pub(super) status: u16,
    pub(super) reason: String,
    /// The error text; empty if it came from a provider.
    pub(super) message: String,
}

/// Observes every ended request.
#[derive(Debug, Default)]
pub struct Activity {
    refusals: Mutex<HashMap<KeyId, VecDeque<RefusedRequest>>>,
    bells: Mutex<HashMap<KeyId, Weak<Notify>>>,
}

impl Activity {
    /// The refusals of a key, newest first.
    pub(super) fn refusals(&self, key: KeyId) -> Vec<RefusedRequest> {
        let refusals = lock(&self.refusals);
        refusals
            .get(&key)
            .map(|ring| ring.iter().rev().cloned().collect())
            .unwrap_or_default()
    }

    /// The time of the newest refusal.
    pub(super) fn last_refusal(&self, key: KeyId) -> Option<Timestamp> {
        let refusals = lock(&self.refusals);
        refusals.get(&key)?.back().map(|refused| refused.at)
    }

    pub(super) fn refusal(&self, key: KeyId, request: OperationId) -> Option<RefusedRequest> {
        let refusals = lock(&self.refusals);
        refusals
            .get(&key)?
            .iter()
            .find(|refused| refused.request == request)
            .cloned()
    }

    /// Notified when a request of this key ends. Removed when the last page drops it.
    pub(super) fn bell(&self, key: KeyId) -> Arc<Notify> {
        let mut bells = lock(&self.bells);
        if let Some(bell) = bells.get(&key).and_then(Weak::upgrade) {
            return bell;
        }
        bells.retain(|_, bell| bell.strong_count() > 0);
        let bell = Arc::new(Notify::new());
        bells.insert(key, Arc::downgrade(&bell));
        bell
    }

    fn remember(&self, key: KeyId, refused: RefusedRequest) {
        let mut refusals = lock(&self.refusals);
        if refusals.len() >= KEYS && !refusals.contains_key(&key) {
            let oldest = refusals
                .iter()
                .min_by_key(|(_, ring)| ring.back().map(|refused| refused.at))
                .map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                refusals.remove(&oldest);
            }
        }
        let ring = refusals.entry(key).or_default();
        if ring.len() >= OF_ONE_KEY {
            ring.pop_front();
        }
        ring.push_back(refused);
    }
}

impl Observer for Activity {
    fn ended(&self, record: Arc<Record>) {
        let Some(key) = record.key else { return };
        // The page lists requests for answers. A tool that reads the balance too often would push them out.
        if record.status >= 400 && record.end_reason != GONE && !record.free {
            self.remember(
                key,
                RefusedRequest {
                    at: record.at,
                    request: record.request_id,
                    slug: record.slug.clone(),
                    family: record.family,
                    status: record.status,
                    reason: record.end_reason.clone(),
                    message: record.message.chars().take(LONGEST_MESSAGE).collect(),
                },
            );
        }
        let bell = lock(&self.bells).get(&key).and_then(Weak::upgrade);
        if let Some(bell) = bell {
            bell.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(number: u128) -> RefusedRequest {
        let at = Timestamp::from_millis(i64::try_from(number).unwrap());
        RefusedRequest {
            at,
            request: OperationId::new(at, number),
            slug: String::new(),
            family: "chat",
            status: 429,
            reason: "out_of_balance".to_owned(),
            message: String::new(),
        }
    }

    #[test]
    fn the_ring_is_bounded_twice() {
        let activity = Activity::default();
        let key = KeyId::from_random(7);
        (0..60).for_each(|number| activity.remember(key, refused(number)));
        let kept = activity.refusals(key);
        assert_eq!(
            (kept.len(), kept[0].at.millis(), kept[49].at.millis()),
            (50, 59, 10)
        );
        assert!(
            activity.refusal(key, kept[0].request).is_some()
                && activity
                    .refusal(KeyId::from_random(8), kept[0].request)
                    .is_none()
        );
        (0..1_000).for_each(|number| {
            activity.remember(
                KeyId::from_random(100 + number),
                refused(1_000 + u128::from(number)),
            )
        });
        assert!(
            activity.refusals(key).is_empty(),
            "the key refused longest ago is forgotten"
        );
        assert_eq!(activity.refusals.lock().unwrap().len(), 1_000);
    }

    #[test]
    fn a_bell_lives_as_long_as_a_page() {
        let activity = Activity::default();
        let key = KeyId::from_random(7);
        let bell = activity.bell(key);
        assert!(Arc::ptr_eq(&bell, &activity.bell(key)));
        drop(bell);
        activity.bell(KeyId::from_random(8));
        assert_eq!(activity.bells.lock().unwrap().len(), 1);
    }
}
