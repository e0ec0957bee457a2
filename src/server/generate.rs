//! One handler for every path that costs money: authenticates, refuses a key without money, applies the rate limit, reads the body,
//! then calls [`Proxy::run`](crate::proxy::Proxy::run).
//!
//! Rows of docs/interface.md: `post_v1_chat_completions`, `post_v1_responses`, `post_native_v1_messages`.

use std::sync::Arc;

use bytes::Bytes;
use farebox_door::UnreadBody;
use farebox_ledger::{Refusal, RunName};
use farebox_protocol::{CallKind, Family, WirePath};
use futures_util::stream;
use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE, USER_AGENT};
use salvo::http::{HeaderMap, HeaderValue, ResBody};
use salvo::prelude::{Depot, Request, Response, handler};
use tokio::time::Instant;

use super::funds::Funds;
use super::request_id::{self, Arrival};
use super::{Front, auth, connections, decompress, failure};
use crate::proxy::{
    Failure, RefusedFacts, Reply, ReplyBody, Request as ProxyRequest, SESSION_HEADER, holder,
    offered, pipe,
};
use crate::setup::{self, Agent, EndOfMoney};
use crate::turns::Work;

/// Sums requests that belong together; goes to no provider.
const RUN_HEADER: &str = "x-farebox-run";

/// The handler of one family, or of a call.
pub(super) struct Generate {
    front: Arc<Front>,
    family: Family,
    call: Option<CallKind>,
}

#[handler]
impl Generate {
    pub(super) fn new(front: Arc<Front>, path: WirePath) -> Self {
        let (family, call) = (path.family().unwrap_or(Family::Chat), path.call());
        Self {
            front,
            family,
            call,
        }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let arrival = Arrival::of(depot);
        let mut known = RefusedFacts {
            call: self.call,
            ..RefusedFacts::default()
        };
        match self.serve(req, depot, arrival, &mut known).await {
            Ok(reply) => answer(res, reply),
            Err(failure) => {
                let failure = self.told_to(req.headers(), failure);
                let failure = self.front.refused(failure, self.family, &arrival, known);
                failure::answer(res, &failure, self.family, &arrival);
            }
        }
    }

    /// The failure as the program that sent the request reads it best.
    fn told_to(&self, headers: &HeaderMap, failure: Failure) -> Failure {
        let Some(agent) = agent(headers) else {
            return failure;
        };
        let shop = &self.front.proxy.config.current().catalog.shop;
        failure.told_to(shop, agent.at_402.is_some(), |names| agent.setting(names))
    }

    async fn serve(
        &self,
        req: &Request,
        depot: &mut Depot,
        arrival: Arrival,
        known: &mut RefusedFacts,
    ) -> Result<Reply, Failure> {
        let front = &self.front;
        let key = auth::authenticate(front, req, depot, self.family, known).await?;
        request_id::note_own_id(req.headers(), &arrival);
        let config = front.proxy.config.current();
        let funds = Funds::of(&key, offered(&config, &key)?);
        drop(config);
        // Before anything of the body is read: a key without money must not make us work for it.
        funds.cover(0)?;
        let pass = front.rate_limits.enter(&key, Instant::now())?;
        let mut work = Work::of(&front.proxy.turns, holder(key.customer.id));
        let (headers, body) = (req.headers(), UnreadBody::of(depot));
        let run = run(headers)?;
        let room = &front.body_room;
        let body = decompress::read(headers, body, room, &key, Some(funds), &mut work).await?;
        let request = ProxyRequest {
            id: arrival.id,
            customer: key.customer.id,
            key: key.id,
            pass,
            work,
            room: Some(body.room),
            family: self.family,
            call: self.call,
            body: body.bytes,
            headers: forwarded(headers, self.family),
            session: session(headers),
            run,
            is_owners: key.is_owner,
            ends_with_error: agent(headers)
                .is_some_and(|agent| agent.end_of_money == EndOfMoney::Error),
            connection: connections::of(depot)
                .map(|guest| guest.connection())
                .unwrap_or_default(),
            origin: arrival.origin,
            arrived: arrival.instant,
            at: arrival.at,
        };
        front.proxy.run(&key, request, known).await
    }
}

/// The program that sends, if it is a known one.
fn agent(headers: &HeaderMap) -> Option<&'static Agent> {
    let sent = headers.get(USER_AGENT)?;
    setup::agent(sent.to_str().ok()?)
}

/// The headers that go upstream.
pub(super) fn forwarded(headers: &HeaderMap, family: Family) -> Vec<(String, Bytes)> {
    let names = family.protocol().forwarded_headers;
    let values = |name: &'static str| {
        headers
            .get_all(name)
            .into_iter()
            .map(move |value| (name.to_owned(), Bytes::copy_from_slice(value.as_bytes())))
    };
    names.iter().flat_map(|name| values(name)).collect()
}

/// The session that a client names beside the body.
pub(super) fn session(headers: &HeaderMap) -> Option<Bytes> {
    let named = headers.get(SESSION_HEADER)?;
    Some(Bytes::copy_from_slice(named.as_bytes()))
}

/// The run that a client names; an empty name is none.
fn run(headers: &HeaderMap) -> Result<Option<RunName>, Failure> {
    let named = headers.get(RUN_HEADER);
    let Some(named) = named.filter(|name| !name.as_bytes().trim_ascii().is_empty()) else {
        return Ok(None);
    };
    let name = std::str::from_utf8(named.as_bytes())
        .map_err(|_| "a run's name is text in UTF-8".to_owned());
    let name = name.and_then(|name| name.parse().map_err(|refused: Refusal| refused.to_string()));
    name.map(Some)
        .map_err(|why| Failure::bad_query(RUN_HEADER, why))
}

fn answer(res: &mut Response, reply: Reply) {
    failure::headers(res, reply.headers);
    match reply.body {
        ReplyBody::Whole(body) => failure::json(res, body),
        ReplyBody::Stream(receiver) => {
            let headers = res.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            res.body(ResBody::stream(frames(receiver)));
        }
    }
}

fn frames(
    mut receiver: pipe::Receiver,
) -> impl stream::Stream<Item = Result<Bytes, std::io::Error>> {
    stream::poll_fn(move |context| receiver.poll_next(context).map(|next| next.map(Ok)))
}
