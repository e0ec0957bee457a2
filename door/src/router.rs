//! The router of a listener: every path with the body that it takes and who calls it. There is no other way into one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ipnet::IpNet;
use salvo::http::header::{CONNECTION, TRANSFER_ENCODING};
use salvo::http::{HeaderMap, HeaderValue};
use salvo::prelude::{Depot, FlowCtrl, Request, Response, Router, Service, handler};
use salvo::routing::{Filter, filters};
use salvo::{Handler, async_trait};

use crate::body::UnreadBody;
use crate::cpu;
use crate::path::{DoorPath, Method, PathCaller};
use crate::sender::RequestSender;
use crate::strangers::Strangers;

/// How long a request waits for the budget of strangers that must not be refused. The services that sign tell again later.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why a request is turned away before its handler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnedAway {
    /// Its sender is a stranger and beyond the budget; when to come back.
    Beyond(Duration),
    /// Its body has a transfer coding other than `chunked`: two servers could place its end differently, and a second request could
    /// hide in it (request smuggling).
    UnknownCoding,
}

impl TurnedAway {
    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Beyond(_) => 429,
            Self::UnknownCoding => 400,
        }
    }

    /// What is wrong, and what to do instead.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Beyond(_) => "too many requests without a key came from here; wait a moment",
            Self::UnknownCoding => {
                "the only transfer coding that is served is chunked; send the body with a length, or chunked"
            }
        }
    }

    /// Whole seconds after which it is worth trying again.
    #[must_use]
    pub fn retry_after(self) -> Option<u64> {
        match self {
            // Rounded up: who comes back a moment too early is turned away again.
            Self::Beyond(wait) => Some(wait.as_secs().saturating_add(1)),
            Self::UnknownCoding => None,
        }
    }
}

/// How a listener says that a request is turned away.
pub trait TurnAway: Send + Sync + 'static {
    /// Writes the answer.
    fn turn_away(&self, why: TurnedAway, req: &Request, depot: &Depot, res: &mut Response);
}

/// A request's sender, and the budget that it has as a stranger.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Who sent it.
    pub sender: RequestSender,
    strangers: Arc<Strangers>,
    known: Arc<AtomicBool>,
}

impl Visit {
    /// Notes that its sender proved to be no stranger: what it takes is on nobody's budget.
    pub fn is_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// The visit that a handler serves.
    #[must_use]
    pub fn of(depot: &Depot) -> Option<&Self> {
        depot.get_typed::<Self>().ok()
    }

    /// Does work for a sender whose credential turned out to be worth nothing.
    ///
    /// # Errors
    /// When it is beyond the budget of strangers.
    pub fn as_stranger<T>(&self, work: impl FnOnce() -> T) -> Result<T, TurnedAway> {
        let peer = self.sender.peer();
        self.strangers.admit(peer).map_err(TurnedAway::Beyond)?;
        let (done, took) = cpu::measured(work);
        self.strangers.book(peer, took);
        Ok(done)
    }

    /// Lets a third party be called for a stranger.
    ///
    /// # Errors
    /// When it is beyond the budget of calls.
    pub fn call_as_stranger(&self) -> Result<(), TurnedAway> {
        let peer = self.sender.peer();
        self.strangers.admit_call(peer).map_err(TurnedAway::Beyond)
    }
}

/// A listener's paths while they are written.
pub struct Door {
    router: Router,
    words: Arc<dyn TurnAway>,
    trusted: Vec<IpNet>,
    strangers: Arc<Strangers>,
    /// Of whoever asks whether the server is well.
    monitors: Arc<Strangers>,
}

impl Door {
    /// A door without paths. Forwarded headers count only from `trusted` addresses.
    #[must_use]
    pub fn new(words: Arc<dyn TurnAway>, trusted: Vec<IpNet>, strangers: Arc<Strangers>) -> Self {
        Self {
            router: Router::new(),
            words,
            trusted,
            strangers,
            monitors: Arc::default(),
        }
    }

    /// With one more path. Paths are matched in the order in which they are written.
    #[must_use]
    pub fn path(self, path: DoorPath, goal: impl Handler) -> Self {
        self.write(path, Router::new(), goal)
    }

    /// With one more path behind a check that may end the request.
    #[must_use]
    pub fn path_behind(self, path: DoorPath, check: impl Handler, goal: impl Handler) -> Self {
        self.write(path, Router::new().hoop(check), goal)
    }

    fn write(mut self, path: DoorPath, place: Router, goal: impl Handler) -> Self {
        let enter = Enter {
            path,
            words: Arc::clone(&self.words),
            strangers: match path.caller {
                PathCaller::Monitor => Arc::clone(&self.monitors),
                PathCaller::Known | PathCaller::Anybody | PathCaller::Signer => {
                    Arc::clone(&self.strangers)
                }
            },
            goal: Box::new(goal),
        };
        let called = match path.method {
            // Every GET path also takes HEAD, and the HTTP layer leaves out the body.
            Method::Get => Router::with_filter(filters::get().or(filters::head())),
            Method::Head => Router::with_filter(filters::head()),
            Method::Post => Router::with_filter(filters::post()),
            Method::Patch => Router::with_filter(filters::patch()),
            Method::Delete => Router::with_filter(filters::delete()),
            Method::Any => Router::new(),
        };
        let place = place.push(called.goal(enter));
        let below = path.path.trim_start_matches('/');
        self.router = self.router.push(if below.is_empty() {
            place
        } else {
            Router::with_path(below).push(place)
        });
        self
    }

    /// The service of these paths. Its bodies are the door's from the first middleware on.
    #[must_use]
    pub fn service(self) -> Service {
        let take = TakeBody {
            trusted: self.trusted,
            strangers: self.strangers,
        };
        Service::new(self.router).hoop(take)
    }
}

/// The middleware around every path, matched or not: takes the body out of the request.
struct TakeBody {
    trusted: Vec<IpNet>,
    strangers: Arc<Strangers>,
}

#[handler]
impl TakeBody {
    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        let chunked = req.headers().contains_key(TRANSFER_ENCODING);
        let body = UnreadBody::take(req);
        let whole: Arc<AtomicBool> = body.whole();
        depot.insert_typed(body);
        depot.insert_typed(Visit {
            sender: RequestSender::of(req, &self.trusted),
            strangers: Arc::clone(&self.strangers),
            known: Arc::default(),
        });
        ctrl.call_next(req, depot, res).await;
        // What nobody has taken is dropped now, while the answer is sent.
        drop(depot.remove_typed::<UnreadBody>());
        if chunked && !whole.load(Ordering::Relaxed) {
            // The end of the body is unknown, so nothing after it is read as a request.
            res.headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// What stands in front of one path's handler.
struct Enter {
    path: DoorPath,
    words: Arc<dyn TurnAway>,
    strangers: Arc<Strangers>,
    goal: Box<dyn Handler>,
}

#[async_trait]
impl Handler for Enter {
    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        if let Ok(body) = depot.get_typed_mut::<UnreadBody>() {
            body.ruled(self.path.body);
        }
        if !is_plainly_coded(req.headers()) {
            res.headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
            self.words
                .turn_away(TurnedAway::UnknownCoding, req, depot, res);
            return ctrl.skip_rest();
        }
        let (peer, known) = match Visit::of(depot) {
            Some(visit) => (visit.sender.peer(), Arc::clone(&visit.known)),
            None => (None, Arc::default()),
        };
        let admitted = match self.path.caller {
            // It is judged by its credential.
            PathCaller::Known => return self.goal.handle(req, depot, res, ctrl).await,
            PathCaller::Anybody | PathCaller::Monitor => self.strangers.admit(peer),
            PathCaller::Signer => self.strangers.wait(peer, PATIENCE).await,
        };
        if let Err(wait) = admitted {
            self.words
                .turn_away(TurnedAway::Beyond(wait), req, depot, res);
            return ctrl.skip_rest();
        }
        let ((), took) = cpu::measured_future(self.goal.handle(req, depot, res, ctrl)).await;
        if !known.load(Ordering::Relaxed) {
            self.strangers.book(peer, took);
        }
    }
}

/// Whether a body has a length or is simply chunked.
fn is_plainly_coded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).into_iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        _ => false,
    }
}
