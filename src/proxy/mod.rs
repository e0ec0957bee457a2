//! The spine. [`Proxy::run`] is the path of every paid request, read top to bottom: inspect → resolve → admit (money is held) →
//! dispatch → relay → settle.
//!
//! The customer's handler runs everything up to the hold. From the hold on, a separate task owns upstream, meter and hold, so a
//! customer who disconnects drops the handler but never the money. The spine calls every other room; none calls back.

mod admit;
mod admitted;
mod asked;
mod broken;
mod calibration;
mod capabilities;
mod classes;
pub mod count;
mod counting;
mod credit;
mod dispatch;
mod documents;
mod end;
mod exposure;
pub mod failure;
mod folded;
mod hidden;
mod last_hour;
mod outages;
mod phase;
mod pins;
pub mod pipe;
mod prompt;
pub mod rate_limit;
pub mod record;
mod rewrite;
mod silence;
mod stream;
mod translation;
mod under_way;
mod waiting;
mod whole;

use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::{Key, KeyId, OperationId, SharedLedger, Timestamp};
use farebox_protocol::inspect::model_named;
use farebox_protocol::translate::{self, Losses, Unsealed};
use farebox_protocol::{BadRequest, Family, Inspection};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::byte_room::{Holder, Share};
use crate::clock;
use crate::config::{Config, ConfigHandle, Lookup, Model};
use crate::turns::{Turns, Work};
use crate::upstream::Upstreams;
use admitted::Admitted;
pub use admitted::{LOST, REMOVED};
pub use calibration::{Calibrations, Learned};
pub use failure::Failure;
pub use last_hour::Standing;
pub use pins::Pins;
use rate_limit::Pass;
pub use record::{Known, Observer, Origin, Record, Told};
use translation::Forms;
pub use under_way::UnderWay;

/// The parts of the gateway that the spine uses.
#[derive(Debug)]
pub struct Proxy {
    /// The snapshot in force.
    pub config: Arc<ConfigHandle>,
    /// The money.
    pub ledger: SharedLedger,
    /// The providers.
    pub upstreams: Upstreams,
    /// Every running request; a graceful stop waits for them.
    pub tasks: TaskTracker,
    /// Gets a record of every ended request.
    pub observer: Arc<dyn Observer>,
    /// Compares targets' counts with ours, for local counts.
    pub calibrations: Calibrations,
    /// Who waits for whom when bodies are read and tokens counted.
    pub turns: Arc<Turns>,
    /// Pinned fields that targets have refused.
    pub pins: Pins,
    /// Where running requests are.
    pub under_way: UnderWay,
}

/// An authenticated request with its body.
#[derive(Debug)]
pub struct Request {
    /// Ours; also the id of its hold and charge.
    pub id: OperationId,
    /// The paying key.
    pub key: KeyId,
    /// Counts the request among the key's running ones.
    pub pass: Pass,
    /// Its work before it is paid for.
    pub work: Work,
    /// The memory reserved for the body; released with the body.
    pub room: Option<Share>,
    /// The path's family.
    pub family: Family,
    /// The body as received.
    pub body: Bytes,
    /// The headers that may go upstream: lower-case name and value.
    pub headers: Vec<(String, Bytes)>,
    /// The client's origin, for the log.
    pub origin: Origin,
    /// When it arrived, for durations.
    pub arrived: Instant,
    /// When it arrived, for the journal.
    pub at: Timestamp,
}

/// An answer: complete, or a stream that has begun.
#[derive(Debug)]
pub struct Reply {
    /// Headers besides content type and request id.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: ReplyBody,
}

/// A complete JSON document, or frames as they come.
#[derive(Debug)]
pub enum ReplyBody {
    /// All of it.
    Whole(Bytes),
    /// Frames.
    Stream(pipe::Receiver),
}

impl Proxy {
    /// Serves one request of a key; `key` is as authentication read it. Notes what it finds out, for the record of a refusal.
    ///
    /// # Errors
    /// Any [`Failure`]. The hold is released before it is returned.
    pub async fn run(
        self: &Arc<Self>,
        key: &Key,
        mut request: Request,
        known: &mut Known,
    ) -> Result<Reply, Failure> {
        let config = self.config.current();
        let (mut seen, marks) = inspect(&mut request)
            .await?
            .map_err(|bad| unreadable(bad, &request.body, &config, known))?;
        let model = resolve(&config, &seen.model, key, request.family, known)?;
        capabilities::check(&model, request.family, &seen)?;
        classes::check(&model, request.family, &seen)?;
        capabilities::check_addresses(&model, request.family, &seen)?;
        capabilities::check_flags(&model, request.family, &request.headers)?;
        let original = request.body.clone();
        let seals = match marks {
            Some(marks) => leave_out(marks, &mut request, &mut seen).await?,
            None => Losses::default(),
        };
        documents::read(&mut request.work, &request.body, &mut seen).await?;
        let available = key.account.available();
        let (estimate, counted) = capabilities::fits(
            &mut request.work,
            &model,
            &mut seen,
            available,
            &self.calibrations,
        )
        .await?;
        let (work, family) = (&mut request.work, request.family);
        classes::check_size(work, &model, family, &mut seen, &estimate).await?;
        let last = last_family(&seen);
        let mut forms = Forms::of(&mut request, (original, &seen), &model, last).await?;
        forms.take_room(&mut request)?;
        if counted {
            let work = &mut request.work;
            forms.count(work, &model, &self.calibrations).await?;
        }
        let predicted = asked::predicted(&mut request.work, &mut seen).await?;
        let mut ask = forms.ask(&request, &seen, (estimate, predicted), &model);
        ask.unseen = seen.stream
            && forms
                .first(request.family, &seen, &model)
                .is_some_and(|(target, sent)| self.is_unseen(&model, sent, &target.name()));
        let limit_field = seen.places.limit.as_ref().map_or("", |(name, _)| name);
        let (hold, terms) = admit::admit(
            &self.ledger,
            &request,
            key.account,
            &model,
            &ask,
            limit_field,
        )
        .await?;
        request.work.paid();
        forms.limit(&terms, seen.limit, &model);

        // Money is held from here on: the rest belongs to a task that the customer cannot drop.
        known.held = true;
        let (answer, answered) = oneshot::channel();
        let mut admitted =
            Admitted::new(Arc::clone(self), request, seen, model, terms, hold, forms);
        admitted.generation = config.generation;
        admitted.outcome.lost = seals;
        self.tasks.spawn(dispatch::dispatch(admitted, answer));
        answered.await.unwrap_or(Err(Failure::Internal))
    }
}

/// A number for the key, for rooms that do not know keys: memory budgets and the health of targets.
#[must_use]
pub fn holder(key: KeyId) -> Holder {
    Holder(key.to_i64().cast_unsigned())
}

/// The family whose targets are asked last: one that knows no stop strings, if the request has any.
fn last_family(seen: &Inspection) -> Option<Family> {
    translate::without_stops().filter(|_| seen.has_stops)
}

/// The facts of a request's body; and that body without what this gateway made up, if there is anything of that. Both are one piece
/// of work, because each piece costs two looks at a clock.
///
/// # Errors
/// [`Failure::RateLimited`] when the customer's turn to have it read does not come. Inside: the body's own mistake.
async fn inspect(
    request: &mut Request,
) -> Result<Result<(Inspection, Option<Unsealed>), BadRequest>, Failure> {
    let (family, body) = (request.family, request.body.clone());
    let reading = move || {
        let seen = family.protocol().inspect(&body, clock::seed())?;
        let marks = translate::cut_marks(family, &body, seen.thinking_budget.is_some());
        Ok((seen, marks))
    };
    Ok(request.work.read(request.body.len(), reading).await?)
}

/// Goes on without what this gateway made up, because a vendor of the customer's own family would reject it. Returns the losses, for
/// `x-farebox-lost`.
async fn leave_out(
    marks: Unsealed,
    request: &mut Request,
    seen: &mut Inspection,
) -> Result<Losses, Failure> {
    let losses = marks.losses();
    request.body = Bytes::from(marks.body);
    (*seen, _) = inspect(request).await??;
    Ok(losses)
}

/// The refusal of a body, whose model is still wanted in the log.
fn unreadable(bad: BadRequest, body: &[u8], config: &Config, known: &mut Known) -> Failure {
    if let Some(name) = model_named(body) {
        known.model(&name, &config.catalog.find(&name));
    }
    Failure::BadRequest(bad)
}

/// The model that a name means on this path and for this key.
fn resolve(
    config: &Config,
    name: &str,
    key: &Key,
    family: Family,
    known: &mut Known,
) -> Result<Arc<Model>, Failure> {
    let found = config
        .catalog
        .find_among(name, |slug| key.settings.allows(slug));
    known.model(name, &found);
    let model = match found {
        Lookup::Found(model) => model,
        other => return Err(Failure::no_model(name, other)),
    };
    if !key.settings.allows(&model.slug) {
        return Err(Failure::ModelNotAllowed(model.slug.clone()));
    }
    if model.route.serves(family).is_none() {
        return Err(Failure::OtherPath(
            model.slug.clone(),
            model.best_path.protocol().public_path(),
        ));
    }
    Ok(Arc::clone(model))
}

#[cfg(test)]
pub(crate) mod tests;
