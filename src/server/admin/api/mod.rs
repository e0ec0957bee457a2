//! `/api/v1`: what a seller's own programs do, with tokens. The acts and documents are the commands' (`selling`); this room reads
//! requests, checks who may call, and keeps each POST to one effect.

mod answer;
mod auto_top_up;
mod call;
mod customers;
mod examples;
mod gate;
mod grants;
mod keys;
mod lots;
mod money;
mod openapi;
mod pages;
mod papers;
mod plans;
mod read;
mod reads;
mod route;
mod table;

use std::sync::Arc;

use bytes::Bytes;
use farebox_door::byte_room::Holder;
use farebox_door::{BodyFault, NoBodyRoom, NotRead, TurnedAway, UnreadBody, Visit};
use farebox_ledger::{Token, TokenRole};
use percent_encoding::percent_decode_str;
use salvo::http::HeaderValue;
use salvo::prelude::{Depot, Request, Response, handler};
use serde_json::Value;

use super::Admin;
use crate::clock;
use crate::proxy::record;
use crate::server::{connections, once};
use answer::{ApiError, ApiReply};
use call::ApiCall;
use gate::Gate;
pub(super) use openapi::serve_openapi;
use route::{ApiRoute, Least};

/// Answers every path under `/api/v1`.
pub(super) struct ApiHandler {
    admin: Arc<Admin>,
    gate: Gate,
}

#[handler]
impl ApiHandler {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self {
            admin,
            gate: Gate::default(),
        }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let request_id = named(res);
        match self.answer(req, depot).await {
            Ok(answer) => answer.write(res),
            Err(error) => error.write(res, &request_id),
        }
    }
}

/// Gives an answer its id, which is returned.
fn named(res: &mut Response) -> String {
    let request_id = record::request_id(clock::operation_id());
    if let Ok(id) = HeaderValue::from_str(&request_id) {
        res.headers_mut().insert("x-request-id", id);
    }
    let none = HeaderValue::from_static("no-store");
    res.headers_mut().insert("cache-control", none);
    request_id
}

/// Answers whoever is turned away before a handler.
pub(super) fn turn_away(why: TurnedAway, res: &mut Response) {
    let error = match why {
        TurnedAway::Beyond(_) => ApiError::new(429, "too_many_requests", why.message()),
        TurnedAway::UnknownCoding => ApiError::bad("unknown_transfer_coding", why.message()),
    };
    let request_id = named(res);
    match why.retry_after() {
        Some(seconds) => error.header("retry-after", seconds.to_string()),
        None => error,
    }
    .write(res, &request_id);
}

impl From<NotRead<NoBodyRoom>> for ApiError {
    fn from(unread: NotRead<NoBodyRoom>) -> Self {
        let fault = match unread {
            NotRead::Refused(NoBodyRoom) => {
                let message =
                    "the gateway is overloaded at the moment; send the same request again later";
                return Self::new(503, "overloaded", message).header("retry-after", "5");
            }
            NotRead::Fault(fault) => fault,
        };
        let code = match fault {
            BodyFault::TooLarge(_) => "body_too_large",
            BodyFault::WrongType(_) => "unsupported_content_type",
            BodyFault::TooSlow | BodyFault::SlowForm => "slow_body",
            BodyFault::Broken | BodyFault::Trailers => "incomplete_body",
        };
        Self::new(fault.status(), code, fault.message())
    }
}

impl ApiHandler {
    async fn answer(&self, req: &Request, depot: &mut Depot) -> Result<ApiReply, ApiError> {
        let (route, parameters) = find(req)?;
        let (now, ledger) = (clock::now(), &*self.admin.ledger);
        let sender = Visit::of(depot).map(|visit| visit.sender);
        let sender = sender.unwrap_or_default();
        let is_local = req
            .remote_addr()
            .ip()
            .is_some_and(|at| at.to_canonical().is_loopback());
        let token = self
            .gate
            .admit(req, (sender, is_local), ledger, now)
            .await?;
        connections::showed_token(depot);
        check_role(route, &token)?;
        let pairs = req.queries().iter_all().flat_map(|(name, values)| {
            let values = values.iter();
            values.map(move |value| (name.clone(), value.clone()))
        });
        let query = match route.has_body() {
            true => read::query(pairs, &Value::Null)?,
            false => read::query(pairs, &route.members)?,
        };
        let once = match route.method {
            "POST" => Some(idempotency_key(req)?),
            _ => None,
        };
        let if_match = match route.method {
            "PATCH" => expected(req)?,
            _ => None,
        };
        let bytes = match route.has_body() {
            true => {
                let room = &self.admin.front.body_room;
                // The operator is one holder beside the customers.
                let mut share = room.share(Holder::default(), usize::MAX);
                UnreadBody::of(depot).read(&mut share).await?
            }
            false => Bytes::new(),
        };
        let call = ApiCall {
            admin: &self.admin,
            method: route.method,
            status: route.status,
            show: route.show,
            token,
            path: req.uri().path().to_owned(),
            parameters,
            members: match route.has_body() {
                true => read::body(&bytes, &route.members)?,
                false => query,
            },
            bytes,
            once,
            if_match,
            now,
        };
        (route.run)(&call).await
    }
}

/// The route of a request, and the parameters of its path.
fn find(req: &Request) -> Result<(&'static ApiRoute, Vec<String>), ApiError> {
    let path = req.uri().path();
    let below = path.strip_prefix("/api/v1").unwrap_or_default();
    let segments: Vec<&str> = below.trim_start_matches('/').split('/').collect();
    let method = match req.method().as_str() {
        "HEAD" => "GET",
        other => other,
    };
    let served = table::routes_of(&segments);
    let found = served.iter().find(|(route, _)| route.method == method);
    let Some((route, parameters)) = found else {
        if served.is_empty() {
            return Err(ApiError::not_found(
                "there is no such path; GET /api/v1/openapi.json lists them all",
            ));
        }
        let mut methods: Vec<&str> = served.iter().map(|(route, _)| route.method).collect();
        methods.dedup();
        let methods = methods.join(", ");
        let message = format!("this path takes {methods}");
        return Err(ApiError::new(405, "method_not_allowed", message).header("allow", methods));
    };
    let decode = |part: &&str| {
        let decoded = percent_decode_str(part).decode_utf8();
        decoded.map(Into::into).map_err(|_| {
            ApiError::bad(
                "invalid_path",
                "the path is no UTF-8 behind its percent signs",
            )
        })
    };
    let parameters = parameters.iter().map(decode).collect::<Result<_, _>>()?;
    Ok((route, parameters))
}

/// Refuses what the token's role never does. What depends on whose money it is, the ledger decides.
fn check_role(route: &ApiRoute, token: &Token) -> Result<(), ApiError> {
    let (may, needs) = match (route.least, token.role) {
        (_, TokenRole::Manage) | (Least::Anybody | Least::Own, _) => (true, ""),
        (Least::All, role) => (role == TokenRole::Read, "read or manage"),
        (Least::Sell, role) => (role == TokenRole::Sell, "sell or manage"),
        (Least::Manage, _) => (false, "manage"),
    };
    if may {
        return Ok(());
    }
    let message = format!(
        "token {:?} has the role {}, and this needs {needs}",
        token.label, token.role
    );
    Err(ApiError::new(403, "role_exceeded", message))
}

/// The key under which a POST has one effect.
fn idempotency_key(req: &Request) -> Result<String, ApiError> {
    let sent = req.headers().get("idempotency-key");
    match sent.filter(|sent| sent.to_str().is_ok()) {
        Some(sent) => {
            once::name(sent).ok_or_else(|| ApiError::bad("invalid_idempotency_key", once::A_NAME))
        }
        None => Err(ApiError::bad(
            "idempotency_key_missing",
            "every POST needs an Idempotency-Key: a name of your own for this act, the same when you send it again; then it is done \
             once, however often it arrives",
        )),
    }
}

/// The number of the last act that an edit expects.
fn expected(req: &Request) -> Result<Option<i64>, ApiError> {
    let Some(sent) = req.headers().get("if-match") else {
        return Ok(None);
    };
    let number = sent
        .to_str()
        .ok()
        .and_then(|text| text.trim().strip_prefix('"')?.strip_suffix('"'))
        .and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| {
        ApiError::bad(
            "invalid_if_match",
            "send the ETag of a read as If-Match, as it was, like \"17\"",
        )
    })
}
