//! The processor's callbacks: read when they may be signed, and acknowledged only when the books have them.

use std::hash::BuildHasher as _;
use std::sync::atomic::Ordering;

use farebox_door::byte_room::Holder;
use farebox_door::{NoBodyRoom, NotRead, UnreadBody, Visit};
use farebox_ledger::clock;
use salvo::http::StatusCode;
use salvo::prelude::{Depot, Request, Response};

use super::ShopDesk;
use crate::answer;
use crate::booking::{self, Booking, plans};
use crate::lookups::KnownCheckout;
use crate::processor::{BadMessage, FoundCheckout, ProcessorMessage};
use crate::signature;

impl ShopDesk {
    /// A callback of the processor: it is acknowledged only when the books have it.
    pub(super) async fn callback(&self, req: &Request, depot: &mut Depot, res: &mut Response) {
        let now = clock::now().millis() / 1_000;
        let signed = req.headers().get(self.processor.signature_header());
        let signed = signed.and_then(|value| value.to_str().ok());
        let looked = signed.ok_or("there is no signature");
        if let Err(why) = looked.and_then(|header| signature::look(header, now)) {
            return answer::line(res, StatusCode::BAD_REQUEST, why);
        }
        let visit = Visit::of(depot).cloned();
        let peer = visit.as_ref().and_then(|visit| visit.sender.peer());
        let holder = Holder(self.peers.hash_one(peer));
        let mut share = self.room.share(holder, usize::MAX);
        let body = match UnreadBody::of(depot).read(&mut share).await {
            Ok(body) => body,
            Err(NotRead::Fault(fault)) => return answer::fault(res, fault),
            Err(NotRead::Refused(NoBodyRoom)) => {
                let why = "too many callbacks are arriving; send this one again later";
                return answer::line(res, StatusCode::SERVICE_UNAVAILABLE, why);
            }
        };
        let message = match self.processor.message(req.headers(), &body, now).await {
            Err(BadMessage::Forged(why)) => {
                tracing::warn!(why, "refused a callback");
                return answer::line(res, StatusCode::BAD_REQUEST, why);
            }
            other => other,
        };
        if let Some(visit) = visit {
            visit.is_known();
        }
        if !self.is_proved.swap(true, Ordering::Relaxed) {
            tracing::info!("the webhook's secret is proved: a first callback was signed with it");
        }
        let booking = match message {
            Ok(message) => self.booked(message).await,
            Err(BadMessage::Unreadable(why)) => Booking::Wrong(why),
            Err(BadMessage::Away(away)) => Booking::Later(away.0),
            Err(BadMessage::Forged(why)) => Booking::Wrong(why.to_owned()),
        };
        let (status, text) = match booking {
            Booking::Done(text) => {
                tracing::info!(text, "callback");
                (StatusCode::OK, text)
            }
            Booking::Later(text) => {
                tracing::warn!(text, "a callback has to come again");
                (StatusCode::SERVICE_UNAVAILABLE, text)
            }
            Booking::Odd(text) => {
                tracing::error!(text, "somebody has to look at what a callback tells");
                (StatusCode::OK, text)
            }
            Booking::Wrong(text) => {
                tracing::error!(text, "a callback needs somebody to look at it");
                (StatusCode::UNPROCESSABLE_ENTITY, text)
            }
        };
        answer::line(res, status, &text);
    }

    async fn booked(&self, message: ProcessorMessage) -> Booking {
        match message {
            ProcessorMessage::Paid(paid) => {
                let booking = booking::book(&self.api, &self.id, &paid).await;
                if matches!(booking, Booking::Done(_)) {
                    self.reservations.ended(&paid.checkout);
                    let found = FoundCheckout {
                        checkout: paid.checkout,
                        payment: Some(paid.reference),
                        subscription: None,
                    };
                    self.lookups
                        .note(&paid.id, KnownCheckout::Found(Box::new(found)));
                }
                booking
            }
            ProcessorMessage::PaidAgain(paid) => {
                booking::book_again(&self.api, &self.id, &paid).await
            }
            ProcessorMessage::Period(period) => {
                self.reservations.ended(&period.paid.checkout);
                plans::renew(&self.api, &self.id, &period).await
            }
            ProcessorMessage::Subscription(news) => plans::follow(&self.api, &self.id, &news).await,
            ProcessorMessage::Waiting(checkout) => {
                self.reservations.ended(&checkout);
                booking::wait_for(&self.api, &checkout).await
            }
            ProcessorMessage::Ended(checkout) => {
                self.reservations.ended(&checkout);
                booking::give_up(&self.api, &checkout).await
            }
            ProcessorMessage::Back(back) => booking::take_back(&self.api, &back).await,
            ProcessorMessage::Odd(what) => Booking::Odd(what),
            ProcessorMessage::Nothing(why) => Booking::Done(why),
        }
    }
}
