//! The way to the card: what the form asks for, credit that is reserved before anything is charged, and the processor's page.

use std::net::IpAddr;

use farebox_door::{FormFields, Visit};
use farebox_ledger::{Timestamp, clock, text};
use salvo::http::StatusCode;
use salvo::prelude::{Depot, Request, Response};

use super::{ShopDesk, own_form};
use crate::answer;
use crate::buyer::Buyer;
use crate::checkout::{ADDRESS, Checkout, MOST_AGAIN, NAME};
use crate::gateway::{ApiFailure, ReservedCredit, ReservedFor};
use crate::plan_row::PlanRow;
use crate::processor::Ways;
use crate::receipts;
use crate::reservation::{CHECKOUT, CheckoutTurn, LiveCheckout};

/// How much longer the processor takes a card than the credit is reserved, in seconds: it takes no shorter time, and clocks differ.
const LONGER: i64 = 120;

/// Why nobody is sent to pay.
enum NotBegun {
    /// Another browser of this address is about to pay, until then.
    Neighbour(Timestamp),
    /// There is no such credit left; it is there again at this instant.
    SoldOut(Option<Timestamp>),
    /// The customer cannot be topped up.
    NotThisCustomer,
    /// It has this plan, and would pay for it twice.
    HasPlan,
    Gateway(ApiFailure),
    Processor(String),
}

impl ShopDesk {
    /// Begins a checkout and sends the browser to pay.
    pub(super) async fn checkout(
        &self,
        req: &Request,
        form: &FormFields,
        depot: &Depot,
        res: &mut Response,
    ) {
        let on_sale = self.on_sale().await;
        let plans = &*on_sale.plans;
        let asked = own_form(req, form).and_then(|buyer| {
            self.asked(req, &buyer, form, plans)
                .map(|checkout| (buyer, checkout))
        });
        let (buyer, checkout) = match asked {
            Ok(asked) => asked,
            Err(told) => {
                // A form that was refused brings whom it was about.
                let customer = form.get("customer").map(str::to_owned);
                return self.prices(req, res, customer, Some(&told)).await;
            }
        };
        let Some(_place) = self.place(req, &buyer, depot).await else {
            return self.busy(res);
        };
        let is_known = buyer.has_paid(req, &self.secret).is_some();
        let visit = Visit::of(depot).filter(|_| !is_known);
        let peer = visit.and_then(|visit| visit.sender.peer());
        match self.begin(&buyer, peer, (checkout, plans)).await {
            Ok(page) => answer::page(res, StatusCode::OK, self.seller().onward(&page)),
            Err(why) => self.not_begun(res, why),
        }
    }

    fn not_begun(&self, res: &mut Response, why: NotBegun) {
        let at = |time: Timestamp| receipts::to_the_minute(&time.to_string());
        let (title, text) = match why {
            NotBegun::Gateway(failure) => {
                tracing::warn!(?failure, "the gateway reserves nothing");
                let text = "The seller's system does not answer at the moment. Nothing was charged; try again later.";
                let page = self.seller().notice("Payment is not available", text);
                return answer::page(res, StatusCode::SERVICE_UNAVAILABLE, page);
            }
            NotBegun::Processor(why) => return self.processor_away(res, &why),
            NotBegun::Neighbour(until) => (
                "One moment",
                format!(
                    "Somebody at your network address is about to pay. Nothing was charged; try again after {}.",
                    at(until)
                ),
            ),
            NotBegun::SoldOut(Some(free)) => (
                "Sold out today",
                format!(
                    "So much credit is not left at the moment. Nothing was charged; it is there again at {}, perhaps earlier.",
                    at(free)
                ),
            ),
            NotBegun::SoldOut(None) => (
                "Sold out",
                "So much credit is not sold at once. Nothing was charged; choose less.".to_owned(),
            ),
            NotBegun::NotThisCustomer => (
                "Nothing was charged",
                "This customer cannot be topped up at the moment. Check the id, or ask the seller."
                    .to_owned(),
            ),
            NotBegun::HasPlan => (
                "You have this plan",
                "It is renewed by the card that was given. Nothing was charged; the prices page leads to its card and its end."
                    .to_owned(),
            ),
        };
        let page = self.seller().notice(title, &text);
        answer::page(res, StatusCode::CONFLICT, page);
    }

    /// Reserves the credit, and returns the page on which it is paid.
    async fn begin(
        &self,
        buyer: &Buyer,
        peer: Option<IpAddr>,
        asked: (Checkout, &[PlanRow]),
    ) -> Result<String, NotBegun> {
        let mark = buyer.mark();
        let turn = self.reservations.turn(&mark, peer).await;
        let mut turn = turn.map_err(NotBegun::Neighbour)?;
        let begun = self.begin_in_turn(&mut turn, buyer, asked).await;
        if turn.is_none() {
            self.reservations.end(&mark);
        }
        begun
    }

    async fn begin_in_turn(
        &self,
        turn: &mut CheckoutTurn,
        buyer: &Buyer,
        (mut checkout, plans): (Checkout, &[PlanRow]),
    ) -> Result<String, NotBegun> {
        let (form, now) = (checkout.idempotency_key(), clock::now());
        turn.take_if(|live| live.reservation.until <= now);
        // The same form again is the same checkout; another one takes its place.
        if let Some(live) = turn.take_if(|live| live.form != form) {
            self.replace(live).await?;
        }
        if turn.is_none() {
            let reservation = self.reserve(&checkout, now).await?;
            self.reservations.keeps(&checkout.buyer, &reservation.id);
            **turn = Some(LiveCheckout {
                form,
                reservation,
                id: None,
            });
        }
        let Some(live) = turn.as_mut() else {
            return Err(NotBegun::SoldOut(None));
        };
        checkout.reservation = Some(live.reservation.id.clone());
        let ways = self.ways(buyer, (&checkout, plans), live.reservation.until);
        let open = self.processor.begin(&checkout, &ways).await;
        let open = open.map_err(|away| NotBegun::Processor(away.0))?;
        live.id = Some(open.id);
        Ok(open.page)
    }

    /// Closes an earlier checkout of the same browser, so that nothing is charged whose credit is not kept.
    async fn replace(&self, live: LiveCheckout) -> Result<(), NotBegun> {
        if let Some(id) = &live.id {
            let closed = self.processor.close(id).await;
            if !closed.map_err(|away| NotBegun::Processor(away.0))? {
                // It was paid: its payment ends the reservation.
                return Ok(());
            }
        }
        if let Err(failure) = self.api.release(&live.reservation.id).await {
            tracing::warn!(?failure, "a reservation ends by time");
        }
        Ok(())
    }

    async fn reserve(
        &self,
        checkout: &Checkout,
        now: Timestamp,
    ) -> Result<ReservedCredit, NotBegun> {
        let of = ReservedFor {
            credit: checkout.offer.credit,
            customer: checkout.customer,
            plan: checkout.offer.plan.as_deref(),
            goes_on: None,
        };
        let until = Timestamp::from_millis(now.millis().saturating_add(CHECKOUT));
        let once = hex::encode(clock::random::<16>());
        match self.api.reserve(of, until, &once).await {
            Ok(reservation) => Ok(reservation),
            Err(ApiFailure::Refused(_, code, _, details)) if code == "sold_out" => {
                let free = details.get("free_at").cloned().unwrap_or_default();
                Err(NotBegun::SoldOut(
                    serde_json::from_value(free).unwrap_or_default(),
                ))
            }
            Err(ApiFailure::Refused(_, code, ..)) if code == "has_plan" => Err(NotBegun::HasPlan),
            Err(ApiFailure::Refused(..)) if checkout.customer.is_some() => {
                Err(NotBegun::NotThisCustomer)
            }
            Err(failure) => Err(NotBegun::Gateway(failure)),
        }
    }

    fn ways(
        &self,
        buyer: &Buyer,
        (checkout, plans): (&Checkout, &[PlanRow]),
        until: Timestamp,
    ) -> Ways {
        let shop = &self.public_url;
        let name = checkout.offer.plan.as_ref();
        let plan = name.and_then(|name| plans.iter().find(|plan| plan.name == *name));
        let what = plan.map_or_else(
            || format!("{} USD of credit", checkout.offer.credit),
            |plan| plan.title.clone(),
        );
        Ways {
            paid: format!("{shop}/bought?paid={}&checkout=", buyer.paid(&self.secret)),
            left: match checkout.customer {
                Some(customer) => format!("{shop}/?customer={customer}"),
                None => format!("{shop}/"),
            },
            what: format!("{what} at {}", self.front().name),
            every: plan.map(|plan| plan.terms.period),
            closes_at: (until.millis() / 1_000).saturating_add(LONGER),
        }
    }

    /// What the form of the price page asks for.
    fn asked(
        &self,
        req: &Request,
        buyer: &Buyer,
        form: &FormFields,
        plans: &[PlanRow],
    ) -> Result<Checkout, String> {
        let field = |name: &str| form.text(name).trim().to_owned();
        let front = self.front().with(plans);
        let offer = front.offer(&field("offer"));
        let offer = offer.ok_or("Choose what you want: this offer is not there.")?;
        let customer = match field("customer").as_str() {
            "" => None,
            id => Some(
                id.parse()
                    .map_err(|_| "This is no customer's id, as in c_7f3q9d2xw1.".to_owned())?,
            ),
        };
        let name = of_receipt("name", field("name"), NAME)?;
        let address = of_receipt("address", field("address"), ADDRESS)?;
        let again = match field("again").as_str() {
            "" => None,
            _ => Some(agreed(&field("per_month"))?),
        };
        if again.is_some() && offer.plan.is_some() {
            return Err(
                "A plan is renewed by itself: choose credit, or no automatic top-up.".to_owned(),
            );
        }
        let owns = |customer| buyer.owns(req.headers(), customer, &self.secret);
        if (again.is_some() || offer.plan.is_some()) && !customer.is_none_or(owns) {
            return Err("Only its owner can store a card or buy a plan for a customer: open this page from the dashboard.".to_owned());
        }
        let once = field("once");
        if once.is_empty() || once.len() > 64 || !once.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Err("This form is not complete. Try again.".to_owned());
        }
        Ok(Checkout {
            shop: self.id.clone(),
            offer: offer.clone(),
            currency: front.currency.clone(),
            customer,
            name,
            address,
            buyer: buyer.mark(),
            once,
            reservation: None,
            again,
        })
    }
}

/// What a receipt may say of a buyer: one line, all of whose characters can be seen.
fn of_receipt(what: &str, typed: String, most: usize) -> Result<Option<String>, String> {
    if typed.chars().count() > most || typed.len() > 480 {
        return Err(format!("The {what} is too long."));
    }
    if typed.chars().any(text::is_unseen) || typed.contains(text::SECRET_PREFIX) {
        return Err(format!(
            "The {what} contains characters that cannot be printed. Type it again."
        ));
    }
    Ok(Some(typed).filter(|typed| !typed.is_empty()))
}

/// At most how often a month.
fn agreed(typed: &str) -> Result<u8, String> {
    let most = typed
        .parse()
        .ok()
        .filter(|most| (1..=MOST_AGAIN).contains(most));
    most.ok_or_else(|| format!("Write how often a month at most: 1 to {MOST_AGAIN}."))
}
