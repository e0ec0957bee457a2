//! Answers the gateway's wishes: for automatic top-ups with the card that is there, for ends of plans at the processor. The feed is pulled
//! from its beginning after each start, so a restart loses nothing; a wish's name is that of what is done for it, so nothing is done twice.

use std::time::Duration;

use farebox_ledger::{Timestamp, clock};

use crate::booking::{self, Booking};
use crate::checkout::{CardAgreement, Checkout};
use crate::desk::ShopDesk;
use crate::gateway::wishes::{ShopWish, Wish, WishEvent, WishState};
use crate::gateway::{ApiFailure, ReservedFor};
use crate::processor::{CardCharge, Charged, PaidCheckout};
use crate::reservation::CHECKOUT;
use crate::settings::CreditOffer;

/// How often the gateway is asked.
const LOOK: Duration = Duration::from_secs(5);

/// What became of a wish.
enum WishAnswer {
    /// Nothing is left to do.
    Done,
    /// Not now; why.
    Later(String),
}

/// A type of events, and the last one that was read.
struct WishFeed {
    kind: &'static str,
    after: Option<String>,
    is_away: bool,
}

/// A wish that is not answered yet, and why not, as it was last told.
struct OpenWish {
    event: WishEvent,
    why: String,
}

/// Answers wishes as they come. Never ends.
pub(crate) async fn follow(desk: &ShopDesk) {
    let mut feeds = ["top_up.wanted", "plan.end_wanted"].map(|kind| WishFeed {
        kind,
        after: None,
        is_away: false,
    });
    let mut open = Vec::<OpenWish>::new();
    loop {
        for feed in &mut feeds {
            feed.read(desk, &mut open).await;
        }
        let mut later = Vec::new();
        for mut wish in open {
            if let WishAnswer::Later(why) = answer(desk, &wish.event, clock::now()).await {
                if why != wish.why {
                    let event = &wish.event.id;
                    tracing::warn!(event, why, "what the gateway asks for waits");
                }
                wish.why = why;
                later.push(wish);
            }
        }
        open = later;
        tokio::time::sleep(LOOK).await;
    }
}

impl WishFeed {
    /// Adds what came since the last look.
    async fn read(&mut self, desk: &ShopDesk, open: &mut Vec<OpenWish>) {
        loop {
            match desk.api.wishes(self.kind, self.after.as_deref()).await {
                Ok((wishes, next, has_more)) => {
                    open.extend(wishes.into_iter().map(|event| OpenWish {
                        event,
                        why: String::new(),
                    }));
                    (self.after, self.is_away) = (next, false);
                    if !has_more {
                        return;
                    }
                }
                // What is older than the events that are kept.
                Err(ApiFailure::Refused(410, ..)) => {
                    self.after = None;
                    return;
                }
                Err(failure) => {
                    if !self.is_away {
                        tracing::warn!(?failure, kind = self.kind, "nobody hears of these events");
                    }
                    self.is_away = true;
                    return;
                }
            }
        }
    }
}

impl From<ApiFailure> for WishAnswer {
    fn from(failure: ApiFailure) -> Self {
        match failure {
            ApiFailure::Away(why) => Self::Later(why),
            ApiFailure::Refused(status, code, message, _) => {
                Self::Later(format!("{status} {code} {message}"))
            }
        }
    }
}

impl From<Booking> for WishAnswer {
    fn from(booking: Booking) -> Self {
        match booking {
            Booking::Done(text) => {
                tracing::info!(text, "automatic top-up");
                Self::Done
            }
            Booking::Later(why) | Booking::Odd(why) | Booking::Wrong(why) => Self::Later(why),
        }
    }
}

async fn answer(desk: &ShopDesk, event: &WishEvent, now: Timestamp) -> WishAnswer {
    match &event.asks {
        ShopWish::TopUp(wish) if wish.until > now => top_up(desk, wish, now).await,
        ShopWish::TopUp(_) | ShopWish::PlanEnd { processor: None } => WishAnswer::Done,
        ShopWish::PlanEnd {
            processor: Some(subscription),
        } => match desk.processor.end(subscription, &event.id).await {
            Ok(is_known) => {
                tracing::info!(subscription, is_known, "an owner wants no more renewals");
                WishAnswer::Done
            }
            Err(away) => WishAnswer::Later(away.0),
        },
    }
}

async fn top_up(desk: &ShopDesk, wish: &Wish, now: Timestamp) -> WishAnswer {
    let state = match desk.api.wish(&wish.reference).await {
        Ok(Some(state)) if state.status == "wanted" => state,
        Ok(_) => return WishAnswer::Done,
        Err(failure) => return failure.into(),
    };
    let agreed = state.processor_ref.as_deref();
    let Some(agreed) = agreed.and_then(CardAgreement::read) else {
        return fail(desk, wish, &state, "no card is stored").await;
    };
    let of = ReservedFor {
        credit: state.amount,
        customer: Some(state.customer),
        plan: None,
        goes_on: None,
    };
    let until = Timestamp::from_millis(now.millis().saturating_add(CHECKOUT));
    let once = hex::encode(clock::random::<16>());
    let reservation = match desk.api.reserve(of, until, &once).await {
        Ok(reservation) => reservation,
        Err(ApiFailure::Refused(_, code, ..)) if code == "sold_out" => {
            return WishAnswer::Later("the shop is sold out".to_owned());
        }
        Err(ApiFailure::Refused(..)) => {
            return fail(desk, wish, &state, "the customer cannot be topped up").await;
        }
        Err(failure) => return failure.into(),
    };
    charge(desk, (wish, &state), &agreed, &reservation.id).await
}

async fn charge(
    desk: &ShopDesk,
    (wish, state): (&Wish, &WishState),
    agreed: &CardAgreement,
    reservation: &str,
) -> WishAnswer {
    let mut checkout = Checkout {
        shop: desk.id.clone(),
        offer: CreditOffer {
            plan: None,
            credit: state.amount,
            price: agreed.price,
            tax: agreed.tax,
        },
        currency: agreed.currency.clone(),
        customer: Some(state.customer),
        name: None,
        address: None,
        buyer: String::new(),
        once: wish.reference.clone(),
        reservation: None,
        again: None,
    };
    let what = format!("{} USD of credit, automatically", state.amount);
    let of = CardCharge {
        wish: &wish.reference,
        owner: &agreed.owner,
        checkout: &checkout,
        what: &what,
    };
    let charged = desk.processor.charge(&of).await;
    checkout.reservation = Some(reservation.to_owned());
    let (currency, gross) = match charged {
        Ok(Charged::Paid { currency, gross }) => (currency, gross),
        Ok(Charged::Waiting) => return booking::wait_for(&desk.api, &checkout).await.into(),
        Ok(Charged::Refused(why)) => {
            booking::give_up(&desk.api, &checkout).await;
            return fail(desk, wish, state, &why).await;
        }
        Err(away) => {
            booking::give_up(&desk.api, &checkout).await;
            return WishAnswer::Later(away.0);
        }
    };
    let paid = PaidCheckout {
        id: wish.reference.clone(),
        reference: wish.reference.clone(),
        checkout,
        currency,
        gross,
        owner: None,
    };
    booking::book(&desk.api, &desk.id, &paid).await.into()
}

/// Tells why nothing was charged, and where to pay by hand.
async fn fail(desk: &ShopDesk, wish: &Wish, state: &WishState, why: &str) -> WishAnswer {
    let pay = format!("{}/?customer={}", desk.public_url, state.customer);
    tracing::warn!(wish = wish.reference, why, "an automatic top-up failed");
    let reason = format!("{why}; pay at {pay}");
    match desk.api.fail_wish(&wish.reference, &reason).await {
        Ok(()) => WishAnswer::Done,
        Err(failure) => failure.into(),
    }
}
