//! What targets are sent of an admitted request: the body in each one's family, with its own model, and a limit that is held.
//!
//! The hold was opened for the target that is asked first. Before another one is tried it moves, so that it covers what that one may bill
//! and what the failed ones may bill already. A target for which there is no room is passed over.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use farebox_door::byte_room::ByteShare;
use farebox_ledger::{Amount, CustomerId, Hold, HoldWay};
use farebox_protocol::translate::{self, Losses};
use farebox_protocol::{Edits, EndUserEcho, Family, Inspection, SentCustomer, WirePath};

use super::bodies::RequestBodies;
use super::money::{self, Reckoned};
use super::{Failure, Proxy, Request, classes};
use crate::clock;
use crate::config::{LimitBinds, Model, Target};
use crate::metering::bound::Patience;
use crate::metering::{Ask, Terms};
use crate::upstream::{Attempt, Prepare, Prepared, Preparing, Refusals};

/// A request on its way through its targets.
pub(super) struct SentRequest<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) model: &'a Model,
    pub(super) request: &'a Request,
    /// The memory reserved for its bodies.
    pub(super) room: Option<&'a mut ByteShare>,
    pub(super) seen: &'a Inspection,
    pub(super) bodies: &'a mut RequestBodies,
    pub(super) hold: &'a mut Hold,
    pub(super) refusals: &'a Refusals,
    /// The snapshot that it was admitted under.
    pub(super) generation: u64,
    pub(super) sent: SentTerms,
}

/// Under which terms targets were asked, and what became of that.
pub(super) struct SentTerms {
    /// For which the hold was opened.
    first: Reckoned,
    /// Those of every target that was asked, by name.
    of: Vec<(String, (Ask, Terms))>,
    /// What the attempt before may bill, and how many attempts there were that may bill.
    bound: Amount,
    worked: usize,
    /// What all of those together may bill.
    spent: Amount,
    /// Why a target was passed over for money.
    pub(super) short: Option<Box<Failure>>,
    /// Made once a target has rejected a seal.
    unsealed: Option<Option<UnsealedRequest>>,
    /// Made once a target is sent it.
    customer: Option<CustomerName>,
}

/// How targets know for whom a request is.
pub(super) struct CustomerName {
    id: String,
    /// The end user that the request itself names.
    pub(super) own: Option<String>,
}

impl SentTerms {
    pub(super) fn new(first: Reckoned, hold: &Hold) -> Self {
        Self {
            first,
            of: Vec::new(),
            bound: hold.amount(),
            worked: 0,
            spent: Amount::ZERO,
            short: None,
            unsealed: None,
            customer: None,
        }
    }

    /// Writes into an answer what the customer itself had named, if targets were sent an id instead.
    pub(super) fn echo(&self) -> Option<EndUserEcho> {
        let name = self.customer.as_ref()?;
        Some(EndUserEcho::new(&name.id, name.own.as_deref()))
    }

    /// The request without seals, if one was rejected.
    pub(super) fn unsealed(&self) -> Option<&UnsealedRequest> {
        self.unsealed.as_ref()?.as_ref()
    }

    /// The terms under which a target was asked last.
    pub(super) fn of(&self, target: &str) -> (Ask, Terms) {
        let mut asked = self.of.iter().rev();
        let found = asked.find(|(name, _)| name == target);
        found.map_or((self.first.ask, self.first.terms), |(_, terms)| *terms)
    }
}

impl Prepare for SentRequest<'_> {
    fn prepare<'a>(
        &'a mut self,
        target: &'a Target,
        family: Family,
        failed: &'a [Attempt],
    ) -> Preparing<'a> {
        Box::pin(self.fit((target, family), failed))
    }
}

impl SentRequest<'_> {
    /// The request as this target wants it, without what targets have refused of it so far, and held at what it may cost there.
    async fn fit(
        &mut self,
        (target, family): (&Target, Family),
        failed: &[Attempt],
    ) -> Option<Prepared> {
        let caller = self.request.family;
        if family != caller && self.refusals.path.load(Ordering::Relaxed) {
            // No other family warms a cache, and documents were counted where they stood.
            let stays = self.seen.prewarms || !self.seen.content.documents.is_empty();
            (!stays || self.bodies.has(target, family, self.model)).then_some(())?;
            let declared = (caller, self.seen.limit);
            self.bodies.encode_late(
                (target, family),
                declared,
                (self.model, self.room.as_deref_mut()),
            )?;
        }
        let (ask, terms) = self.held((target, family), failed).await?;
        self.sent.of.push((target.name(), (ask, terms)));
        let pin = pins(self, target, self.refusals.pin.get().is_some());
        let path = match family == caller {
            true => self.request.path(),
            false => WirePath::Family(family),
        };
        let field = target.provider.fields.customer_field(path);
        let customer = field.map(|field| {
            let of = (self.request.customer, &self.request.body, self.seen);
            let named = || CustomerName::of(self.proxy, of);
            let name = self.sent.customer.get_or_insert_with(named);
            name.sent_in(field)
        });
        if family != caller {
            let terms = (&ask, &terms);
            let edits = (pin, customer);
            return self
                .bodies
                .prepare((target, family), terms, self.model, edits);
        }
        if self.refusals.seal.load(Ordering::Relaxed) {
            // Found once, for this target and all after it.
            let request = self.request;
            let unsealed = &mut self.sent.unsealed;
            let unsealed = unsealed.get_or_insert_with(|| UnsealedRequest::of(request));
            let UnsealedRequest { body, seen, .. } = unsealed.as_ref()?;
            let edits = (target, pin, customer);
            return Some(direct(self.request, (body, seen), &terms, edits));
        }
        let own = (&self.request.body, self.seen);
        Some(direct(self.request, own, &terms, (target, pin, customer)))
    }

    /// Holds what this target may bill, beside what those before it may.
    async fn held(
        &mut self,
        (target, family): (&Target, Family),
        failed: &[Attempt],
    ) -> Option<(Ask, Terms)> {
        let worked = failed.iter().filter(|one| one.worked.is_some()).count();
        let more = i64::try_from(worked.saturating_sub(self.sent.worked)).ok()?;
        self.sent.worked = worked;
        let spent = Amount::times(self.sent.bound, more.unsigned_abs())?;
        self.sent.spent = self.sent.spent.checked_add(spent)?;
        let first = self.sent.first;
        if worked == 0 && first.is_for(self.model, target, family) {
            return Some((first.ask, first.terms));
        }
        let model = self.model;
        let learned = (model, &self.proxy.calibrations);
        let ask = self
            .bodies
            .ask((target, family), self.request, self.seen, learned)?;
        let price = model.price.held(ask.classes);
        let ways = ask.ways(price, &model.limits, Patience::default());
        let spent = self.sent.spent;
        // The limit is at most the first one's: what the customer was told stays true.
        let most = first.terms.limit;
        let way = ways.first()?.way;
        let most = match ask.binds {
            LimitBinds::None => way.most,
            LimitBinds::All | LimitBinds::Text => most.min(way.most),
        };
        let wider = HoldWay {
            fixed: way.fixed.checked_add(spent)?,
            most,
            ..way
        };
        // What is held may suffice, as for a cheaper target; then the ledger is not asked.
        let needed = wider.amount(most);
        if let Some(needed) = needed.filter(|needed| *needed <= self.hold.amount()) {
            self.sent.bound = needed.checked_sub(spent)?;
            return Some((ask, ask.terms(&model.limits, most)));
        }
        match self.hold.reopen(vec![wider], clock::now()).await {
            Ok(()) => {
                self.sent.bound = self.hold.amount().checked_sub(spent)?;
                let limit = self.hold.granted().limit;
                Some((ask, ask.terms(&model.limits, limit)))
            }
            Err(error) => {
                let failure = money::refused(error, &ask, (self.request, self.seen), model);
                self.sent.short = Some(Box::new(failure));
                None
            }
        }
    }
}

impl CustomerName {
    pub(super) fn of(
        proxy: &Proxy,
        (customer, body, seen): (CustomerId, &Bytes, &Inspection),
    ) -> Self {
        let own = seen.places.conversation.end_user(body);
        Self {
            id: proxy.ledger.vendor_ids().id(customer, own.as_deref()),
            own: own.map(Cow::into_owned),
        }
    }

    pub(super) fn sent_in<'a>(&'a self, field: &'a str) -> SentCustomer<'a> {
        SentCustomer {
            field,
            id: &self.id,
        }
    }
}

/// The fields that are pinned for a target, unless one of its pins was refused in this request, or too often before.
fn pins<'t>(sending: &SentRequest<'_>, target: &'t Target, refused: bool) -> &'t [&'static str] {
    let (pin, pins) = (&target.fit.pin, &sending.proxy.pins);
    // A refused pin costs the customer nothing but one try: the same target is asked again without.
    let is_call = sending.model.route.call.is_some();
    if pin.is_empty() || is_call || refused || pins.rest(|| target.name(), sending.generation) {
        return &[];
    }
    pin
}

/// A body of the customer's family, with this target's model and limit.
fn direct(
    request: &Request,
    (body, seen): (&Bytes, &Inspection),
    terms: &Terms,
    (target, pin, customer): (&Target, &[&'static str], Option<SentCustomer<'_>>),
) -> Prepared {
    let protocol = request.family.protocol();
    // A budget changes the body's length, so the places to splice are found anew.
    let budget = terms.budget.and_then(|_| {
        let limit = u32::try_from(terms.limit).ok()?;
        let (body, _) = translate::fit_budget(request.family, body, limit)?;
        let seen = protocol.inspect(&body, clock::seed()).ok()?;
        Some((Bytes::from(body), seen))
    });
    let (body, seen) = budget
        .as_ref()
        .map_or((body, seen), |(body, seen)| (body, seen));
    let edits = Edits {
        limit: terms.written,
        pin,
        customer,
        ..edits(target, request.family, seen)
    };
    let mut headers = request.headers.clone();
    // A class that a body asks for may need a header, which the customer need not know.
    classes::add_headers(&mut headers, request.family, seen.classes);
    Prepared {
        body: protocol.pieces(body, seen, &edits),
        headers,
        parts: seen.parts,
        streams: false,
        pinned: seen.pinned(pin),
    }
}

/// The changes to a request in its own family that are the same for every try at a target.
pub(super) fn edits<'t>(target: &'t Target, family: Family, seen: &Inspection) -> Edits<'t> {
    // A family may know two names for the limit, and old clients and servers each know one.
    let declared = seen.places.limit.as_ref().map(|(name, _)| *name);
    Edits {
        model: &target.model,
        limit_field: family
            .protocol()
            .limit_field(target.fit.chat_limit, declared),
        fit: &target.fit,
        ..Edits::default()
    }
}

/// A request without its sealed thinking, for targets that come after one that rejected a seal.
pub(super) struct UnsealedRequest {
    pub(super) body: Bytes,
    pub(super) seen: Inspection,
    pub(super) losses: Losses,
}

impl UnsealedRequest {
    /// `None` if there is none to leave out: a repeat would be rejected like the first try.
    fn of(request: &Request) -> Option<Self> {
        let cut = translate::cut_thinking(request.family, &request.body)?;
        let losses = cut.losses();
        let body = Bytes::from(cut.body);
        let seen = request
            .family
            .protocol()
            .inspect(&body, clock::seed())
            .ok()?;
        Some(Self { body, seen, losses })
    }
}
