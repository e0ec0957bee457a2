//! Credit that is kept for a checkout before its card is charged: one for each browser and for each address, so that those who never
//! pay cannot close the shop. What is remembered here only bounds strangers; the gateway has the reservations themselves.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use farebox_ledger::{Timestamp, clock, lock};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::checkout::Checkout;
use crate::gateway::ReservedCredit;

/// How long a checkout may take, in milliseconds: the shortest that processors take, and the longest that a reservation is kept.
pub(crate) const CHECKOUT: i64 = 30 * 60_000;

/// The checkout of one browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveCheckout {
    /// The form that began it, with everything in it.
    pub(crate) form: String,
    pub(crate) reservation: ReservedCredit,
    /// Its name at the processor, as soon as it has one.
    pub(crate) id: Option<String>,
}

/// The only hand at the checkout of one browser.
pub(crate) type CheckoutTurn = OwnedMutexGuard<Option<LiveCheckout>>;

/// The checkouts that may be paid.
#[derive(Debug, Default)]
pub(crate) struct ReservedCheckouts(Mutex<LiveCheckouts>);

#[derive(Debug, Default)]
struct LiveCheckouts {
    /// By the mark of the browser.
    browsers: HashMap<String, BrowserPlace>,
    /// Which browser of an address has its place.
    peers: HashMap<IpAddr, (Timestamp, String)>,
}

#[derive(Debug)]
struct BrowserPlace {
    until: Timestamp,
    /// What is kept for it, as soon as something is.
    reservation: Option<String>,
    checkout: Arc<AsyncMutex<Option<LiveCheckout>>>,
}

impl ReservedCheckouts {
    /// A browser's turn at its checkout; a second request of the same browser waits for it.
    ///
    /// # Errors
    /// Until when the place of this address is taken by another browser.
    pub(crate) async fn turn(
        &self,
        mark: &str,
        peer: Option<IpAddr>,
    ) -> Result<CheckoutTurn, Timestamp> {
        let now = clock::now();
        let until = Timestamp::from_millis(now.millis().saturating_add(CHECKOUT));
        let own = {
            let mut live = lock(&self.0);
            live.browsers.retain(|_, place| place.until > now);
            live.peers.retain(|_, (until, _)| *until > now);
            if let Some(peer) = peer {
                match live.peers.get(&peer) {
                    Some((until, other)) if other != mark => return Err(*until),
                    _ => live.peers.insert(peer, (until, mark.to_owned())),
                };
            }
            let own = live.browsers.entry(mark.to_owned());
            let own = own.or_insert_with(|| BrowserPlace {
                until,
                reservation: None,
                checkout: Arc::default(),
            });
            own.until = until;
            Arc::clone(&own.checkout)
        };
        Ok(own.lock_owned().await)
    }

    /// Notes what is kept for a browser.
    pub(crate) fn keeps(&self, mark: &str, reservation: &str) {
        if let Some(place) = lock(&self.0).browsers.get_mut(mark) {
            place.reservation = Some(reservation.to_owned());
        }
    }

    /// A checkout is over. Its browser may have begun another one meanwhile.
    pub(crate) fn ended(&self, checkout: &Checkout) {
        let is_last = |place: &BrowserPlace| place.reservation == checkout.reservation;
        let is_over = (lock(&self.0).browsers.get(&checkout.buyer)).is_some_and(is_last);
        if is_over {
            self.end(&checkout.buyer);
        }
    }

    /// A browser's checkout never began.
    pub(crate) fn end(&self, mark: &str) {
        let mut live = lock(&self.0);
        live.browsers.remove(mark);
        live.peers.retain(|_, (_, of)| of != mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_browser_and_an_address_have_one_place() {
        let (all, here) = (
            ReservedCheckouts::default(),
            Some(IpAddr::from([198, 51, 100, 7])),
        );
        let first = all.turn("a", here).await.unwrap();
        assert!(all.turn("b", here).await.is_err());
        assert!(all.turn("b", None).await.is_ok(), "who has paid before");
        drop(first);
        assert!(all.turn("a", here).await.unwrap().is_none());
        all.end("a");
        assert!(all.turn("b", here).await.is_ok());
    }
}
