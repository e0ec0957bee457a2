//! What a target is sent of an admitted request: the body in its family, with its own model and limit.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use farebox_ledger::Hold;
use farebox_protocol::translate::{self, Losses};
use farebox_protocol::{Edits, Family, Inspection};

use super::admitted::Admitted;
use super::bodies::RequestBodies;
use super::{Proxy, Request, classes};
use crate::clock;
use crate::config::{Model, Target};
use crate::metering::Meter;
use crate::upstream::{Prepared, Refusals};

/// What of a request its targets are sent, while its hold and its meter change.
#[derive(Clone, Copy)]
pub(super) struct SentRequest<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) model: &'a Model,
    pub(super) request: &'a Request,
    pub(super) seen: &'a Inspection,
    pub(super) bodies: &'a RequestBodies,
    /// The output limit to write.
    pub(super) limit: Option<u32>,
    /// The snapshot that it was admitted under.
    pub(super) generation: u64,
}

impl<'a> SentRequest<'a> {
    pub(super) fn split(
        admitted: &'a mut Admitted,
        proxy: &'a Proxy,
        model: &'a Model,
    ) -> (Self, &'a mut Hold, &'a mut Meter) {
        let sent = Self {
            proxy,
            model,
            request: &admitted.request,
            seen: &admitted.count.seen,
            bodies: &admitted.bodies,
            limit: admitted.limit,
            generation: admitted.generation,
        };
        (sent, &mut admitted.hold, &mut admitted.count.meter)
    }
}

/// The request as this target wants it, without what targets have refused of it so far; `None` when the target cannot carry it.
pub(super) fn prepare(
    sent: SentRequest<'_>,
    (target, family): (&Target, Family),
    refusals: &Refusals,
    unsealed: &OnceLock<Option<UnsealedRequest>>,
) -> Option<Prepared> {
    let caller = sent.request.family;
    let pin = pins(sent, target, refusals.pin.get().is_some());
    if family == caller && refusals.seal.load(Ordering::Relaxed) {
        // Found once, for this target and all after it.
        let unsealed = unsealed.get_or_init(|| UnsealedRequest::of(sent.request));
        let UnsealedRequest { body, seen, .. } = unsealed.as_ref()?;
        return Some(direct(sent, body, seen, (target, pin)));
    }
    if family == caller {
        return Some(direct(sent, &sent.request.body, sent.seen, (target, pin)));
    }
    let bodies = sent.bodies;
    if refusals.path.load(Ordering::Relaxed) {
        // No other family warms a cache, and documents were counted where they stood.
        let stays = sent.seen.prewarms || !sent.seen.content.documents.is_empty();
        (!stays || bodies.has(target, family, sent.model)).then_some(())?;
        let declared = (caller, sent.seen.limit);
        bodies.encode_late((target, family), declared, sent.limit, sent.model)?;
    }
    bodies.prepare(target, family, sent.model, pin)
}

/// The fields that are pinned for a target, unless one of its pins was refused in this request, or too often before.
fn pins<'t>(sent: SentRequest<'_>, target: &'t Target, refused: bool) -> &'t [&'static str] {
    let (pin, pins) = (&target.fit.pin, &sent.proxy.pins);
    // A refused pin costs the customer nothing but one try: the same target is asked again without.
    if pin.is_empty() || refused || pins.rest(|| target.name(), sent.generation) {
        return &[];
    }
    pin
}

/// A body of the customer's family, with this target's model and limit.
fn direct(
    sent: SentRequest<'_>,
    body: &Bytes,
    seen: &Inspection,
    (target, pin): (&Target, &[&'static str]),
) -> Prepared {
    let protocol = sent.request.family.protocol();
    let edits = Edits {
        limit: sent.limit,
        pin,
        ..edits(target, sent.request.family, seen)
    };
    let mut headers = sent.request.headers.clone();
    // A class that a body asks for may need a header, which the customer need not know.
    classes::add_headers(&mut headers, sent.request.family, seen.classes);
    Prepared {
        body: protocol.pieces(body, seen, &edits),
        headers,
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
