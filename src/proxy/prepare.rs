//! The first step: what a request turns out to be, as one value.
//!
//! Nothing is held yet, so every refusal here is free. Their order is a promise to customers: the body's own mistakes, then the
//! model, then what the model cannot do, then the size; only a request that could be served is told that its balance is too small.

use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::Key;
use farebox_protocol::inspect::model_named;
use farebox_protocol::translate::{self, Losses, Unsealed};
use farebox_protocol::{BadRequest, Family, Inspection, WirePath};

use super::bodies::{self, RequestBodies};
use super::conversation::ConversationOf;
use super::{
    Failure, Proxy, RefusedFacts, Request, capabilities, classes, documents, holder, prompt,
};
use crate::clock;
use crate::config::{Catalog, Config, Lookup, Model, Target};
use crate::metering::{Ask, Estimate};
use crate::upstream::{AskOrder, TargetOperation, UpstreamCall};

/// A request that could be served: all that is known of it before money is held.
pub(super) struct PreparedRequest {
    /// As received, but without what this gateway made up itself.
    pub(super) request: Request,
    /// The facts of its body, its documents counted.
    pub(super) seen: Inspection,
    pub(super) model: Arc<Model>,
    /// What decides what it is held at for the target that is asked first.
    pub(super) ask: Ask,
    /// That target, as an index into the route, and in which family; `None` where none may be asked now.
    pub(super) first: Option<(usize, Family)>,
    /// The body for each family that its targets speak.
    pub(super) bodies: RequestBodies,
    /// Where it may go.
    pub(super) places: AskOrder,
    /// What this gateway made up and left out again, for `x-farebox-lost`.
    pub(super) left_out: Losses,
    /// The snapshot under which it was prepared, and is served to its end.
    pub(super) generation: u64,
}

impl PreparedRequest {
    /// The request, and the facts of its body.
    pub(super) const fn of(&self) -> (&Request, &Inspection) {
        (&self.request, &self.seen)
    }
}

/// Reads a request, finds its model, and measures it; `key` is as authentication read it.
///
/// # Errors
/// Any [`Failure`] that a request can have before its balance is looked at.
pub(super) async fn prepare(
    proxy: &Proxy,
    key: &Key,
    mut request: Request,
    known: &mut RefusedFacts,
) -> Result<PreparedRequest, Failure> {
    let config = proxy.config.current();
    let mut read = inspect(&mut request).await?;
    if let Err(bad) = &read
        && bad.refers()
        && proxy.items.write_into(&mut request).await?
    {
        read = inspect(&mut request).await?;
    }
    let (seen, marks) = read.map_err(|bad| unreadable(bad, &request.body, &config, known))?;
    let path = request.path();
    let model = resolve(&config, &seen.model, key, path, known)?;
    let model = for_batch(model, &seen);
    check(&model, &request, &seen)?;
    // Answers repeat parts of the request, so translations read it as the customer sent it.
    let original = request.body.clone();
    let (mut seen, left_out) = match marks {
        Some(marks) => leave_out(marks, &mut request).await?,
        None => (seen, Losses::default()),
    };
    let size = measure(proxy, key, (&mut request, &mut seen), &model).await?;
    let sized = (original, &seen, size.estimate);
    let mut bodies = RequestBodies::encode(&mut request, sized, &model).await?;
    // Counts of both kinds must not meet in one comparison: an estimate runs high.
    if size.counted {
        let work = &mut request.work;
        bodies.count(work, &model, &proxy.calibrations).await?;
    }
    // The last work of a tokenizer, for a request that is otherwise ready to be held for.
    bodies.predict(prompt::predicted(&mut request.work, &mut seen).await?);
    let tokens = size.estimate.input;
    let places = choose(proxy, (&mut request, &seen), tokens, &bodies, &model).await?;
    let first = places.all.first().map(|place| (place.target, place.family));
    let target = first.and_then(|(at, family)| Some((model.route.targets.get(at)?, family)));
    let candidates = model.route.candidates(request.family);
    // Where all rest, it is held for any, and told that there is none.
    let ask = target
        .into_iter()
        .chain(candidates)
        .find_map(|target| bodies.ask(target, &request, &seen, (&model, &proxy.calibrations)));
    let ask = ask.ok_or(Failure::Internal)?;
    Ok(PreparedRequest {
        request,
        seen,
        model,
        ask,
        first,
        bodies,
        places,
        left_out,
        generation: config.generation,
    })
}

/// Chooses the target and the account, and what comes after them.
async fn choose(
    proxy: &Proxy,
    (request, seen): (&mut Request, &Inspection),
    tokens: u64,
    bodies: &RequestBodies,
    model: &Model,
) -> Result<AskOrder, Failure> {
    // The random end of its id.
    let [.., a, b, c, d, e, f, g, h] = request.id.to_bytes();
    let of = ConversationOf {
        customer: request.customer,
        model,
        session: request.session.as_ref(),
        body: &request.body,
        seen,
        tokens,
        request: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
    };
    let mut conversation = of.find(&mut request.work).await?;
    // A call belongs to none, so that its customer's are spread.
    if let Some(conversation) = conversation.as_mut().filter(|_| request.call.is_some()) {
        conversation.whole = conversation.request;
    }
    let (family, payer) = (request.family, holder(request.customer));
    let call = UpstreamCall {
        last: bodies::last_family(seen),
        ..UpstreamCall::new(&model.route, payer, family, TargetOperation::Generate)
    };
    let carries = |target: &Target, into| bodies.carries(target, into, (family, seen), model);
    Ok(proxy.upstreams.order(&call, conversation, carries))
}

/// Refuses what the model cannot do, before anything is read for long.
fn check(model: &Model, request: &Request, seen: &Inspection) -> Result<(), Failure> {
    capabilities::check(model, request.family, seen)?;
    classes::check(model, request.family, seen)?;
    capabilities::check_addresses(model, request.family, seen)?;
    capabilities::check_flags(model, request.family, &request.headers)
}

/// How large a request's input is.
struct RequestSize {
    estimate: Estimate,
    /// A tokenizer counted it, so it counts the translations of it, too.
    counted: bool,
}

/// Reads the documents, estimates the input, and refuses what is too large.
async fn measure(
    proxy: &Proxy,
    key: &Key,
    (request, seen): (&mut Request, &mut Inspection),
    model: &Arc<Model>,
) -> Result<RequestSize, Failure> {
    let (work, family) = (&mut request.work, request.family);
    // Documents first: a page is worth more tokens than its bytes say.
    documents::read(work, &request.body, seen).await?;
    let available = key.room(&model.slug, clock::now());
    let (estimate, counted) =
        capabilities::fits(work, model, seen, available, &proxy.calibrations).await?;
    classes::check_size(work, model, family, seen, &estimate).await?;
    Ok(RequestSize { estimate, counted })
}

/// The facts of a request's body; and that body without what this gateway made up, if there is anything of that. Both are one piece
/// of work, because each piece costs two looks at a clock.
///
/// # Errors
/// [`Failure::RateLimited`] when the customer's turn to have it read does not come. Inside: the body's own mistake.
async fn inspect(
    request: &mut Request,
) -> Result<Result<(Inspection, Option<Unsealed>), BadRequest>, Failure> {
    let (path, body) = (request.path(), request.body.clone());
    let reading = move || {
        let family = match path {
            WirePath::Family(family) => family,
            WirePath::Call(call) => {
                return Ok((call.dialect().inspect(&body, clock::seed())?, None));
            }
        };
        let seen = family.protocol().inspect(&body, clock::seed())?;
        let marks = translate::cut_marks(family, &body, seen.thinking_budget.is_some());
        Ok((seen, marks))
    };
    Ok(request.work.read(request.body.len(), reading).await?)
}

/// Goes on without what this gateway made up, because a vendor of the customer's own family would reject it. Returns the facts
/// of what is left, and the losses.
async fn leave_out(
    marks: Unsealed,
    request: &mut Request,
) -> Result<(Inspection, Losses), Failure> {
    let losses = marks.losses();
    request.body = Bytes::from(marks.body);
    let (seen, _) = inspect(request).await??;
    Ok((seen, losses))
}

/// The refusal of a body, whose model is still wanted in the log.
pub(super) fn unreadable(
    bad: BadRequest,
    body: &[u8],
    config: &Config,
    known: &mut RefusedFacts,
) -> Failure {
    if let Some(name) = model_named(body) {
        known.model(&name, &config.catalog.find(&name));
    }
    Failure::BadRequest(bad)
}

/// What a key's customer is offered, at its prices: everything that it is told and charged goes by this.
///
/// # Errors
/// [`Failure::PriceListUnknown`] for a customer with a price list that is not in the catalog: it is never served at other prices.
pub fn offered<'a>(config: &'a Config, key: &Key) -> Result<&'a Catalog, Failure> {
    let offered = config
        .catalog
        .offered_to(key.customer.settings.price_list.as_deref());
    offered.ok_or(Failure::PriceListUnknown)
}

/// The model that a name means on this path and for this key.
pub(super) fn resolve(
    config: &Config,
    name: &str,
    key: &Key,
    path: impl Into<WirePath>,
    known: &mut RefusedFacts,
) -> Result<Arc<Model>, Failure> {
    let path = path.into();
    let found = offered(config, key)?.find_among(name, |slug| key.settings.allows(slug));
    known.model(name, &found);
    let model = match found {
        Lookup::Found(model) => model,
        other => return Err(Failure::no_model(name, other)),
    };
    if !key.settings.allows(&model.slug) {
        return Err(Failure::ModelNotAllowed(model.slug.clone()));
    }
    if path.call() != model.route.call {
        return Err(Failure::BadRequest(wrong_path(model, path)));
    }
    let served = |family| model.route.serves(family).is_some();
    if path.family().is_some_and(|family| !served(family)) {
        let best = model.best_path.public_path();
        return Err(Failure::OtherPath(model.slug.clone(), best));
    }
    Ok(Arc::clone(model))
}

/// The refusal of a call to a model that answers, or of a conversation with one that does not.
fn wrong_path(model: &Model, path: WirePath) -> BadRequest {
    let (slug, best) = (&model.slug, model.best_path.public_path());
    let message = format!(
        "{slug} is not served on {}; send this request to {best}, or name another model",
        path.public_path()
    );
    BadRequest {
        code: Some("wrong_path"),
        ..BadRequest::at("model", message)
    }
}

/// The model for a request with so many texts: each may be as long as the context.
fn for_batch(model: Arc<Model>, seen: &Inspection) -> Arc<Model> {
    let inputs = u64::from(seen.content.inputs);
    if inputs < 2 {
        return model;
    }
    let mut batch = Model::clone(&model);
    batch.limits.context = batch.limits.context.saturating_mul(inputs);
    Arc::new(batch)
}
