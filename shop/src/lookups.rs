//! What is known of checkouts: callbacks tell, so that a buyer's page asks nobody; one that nothing was told of, as after a restart, is
//! looked up at the processor at most once in five seconds, however many ask.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use farebox_ledger::lock;
use tokio::time::Instant;

use crate::processor::FoundCheckout;

/// The rest between two look-ups of one checkout.
const REST: Duration = Duration::from_secs(5);
/// The most checkouts that are remembered.
const MOST: usize = 2_000;
/// A longer id is nobody's.
const LONGEST_ID: usize = 4_096;

/// What is known of one checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnownCheckout {
    Found(Box<FoundCheckout>),
    /// The processor has none of this name.
    Nothing,
    /// Somebody asks just now, or did a moment ago.
    Asked,
    /// It is to be looked up.
    Due,
}

/// The checkouts that somebody told of, or asked for.
#[derive(Debug, Default)]
pub(crate) struct Lookups(Mutex<HashMap<String, (Instant, KnownCheckout)>>);

impl Lookups {
    pub(crate) fn known(&self, id: &str) -> KnownCheckout {
        if id.len() > LONGEST_ID {
            return KnownCheckout::Nothing;
        }
        match lock(&self.0).get(id) {
            Some((_, KnownCheckout::Found(found))) if found.payment.is_some() => {
                KnownCheckout::Found(found.clone())
            }
            Some((at, known)) if at.elapsed() < REST => known.clone(),
            _ => KnownCheckout::Due,
        }
    }

    /// Whether it is up to the caller to look it up, who then does.
    pub(crate) fn takes(&self, id: &str) -> bool {
        let is_due = self.known(id) == KnownCheckout::Due;
        if is_due {
            self.note(id, KnownCheckout::Asked);
        }
        is_due
    }

    pub(crate) fn note(&self, id: &str, known: KnownCheckout) {
        let mut all = lock(&self.0);
        if all.len() >= MOST && !all.contains_key(id) {
            let oldest = all.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                all.remove(&oldest);
            }
        }
        all.insert(id.to_owned(), (Instant::now(), known));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::tests::checkout;

    #[tokio::test(start_paused = true)]
    async fn a_checkout_is_looked_up_once_in_five_seconds_until_it_is_told() {
        let lookups = Lookups::default();
        assert!(lookups.takes("cs_1") && !lookups.takes("cs_1"));
        assert_eq!(lookups.known("cs_1"), KnownCheckout::Asked);
        tokio::time::advance(REST).await;
        assert!(lookups.takes("cs_1"));
        let found = KnownCheckout::Found(Box::new(FoundCheckout {
            checkout: checkout(),
            payment: Some("pi_1".to_owned()),
            subscription: None,
        }));
        lookups.note("cs_1", found.clone());
        tokio::time::advance(REST).await;
        assert_eq!(lookups.known("cs_1"), found);
        for n in 0..MOST + 5 {
            lookups.note(&format!("cs_other_{n}"), KnownCheckout::Nothing);
        }
        assert_eq!(lock(&lookups.0).len(), MOST);
        assert_eq!(
            lookups.known(&"x".repeat(LONGEST_ID + 1)),
            KnownCheckout::Nothing
        );
    }
}
