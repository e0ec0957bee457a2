//! Gives every request its id and arrival time, and every answer the id headers. A client's own id is logged next to ours,
//! so that it can be searched for, and is never used as an id.

use std::sync::Arc;

use farebox_door::Visit;
use farebox_ledger::{OperationId, Timestamp};
use salvo::http::header::STRICT_TRANSPORT_SECURITY;
use salvo::http::{HeaderMap, HeaderValue};
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};
use tokio::time::Instant;

use super::{Front, connections};
use crate::clock;
use crate::proxy::{Origin, record};

/// A request's arrival time and id.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) id: OperationId,
    pub(super) at: Timestamp,
    pub(super) instant: Instant,
    pub(super) origin: Origin,
}

impl Arrival {
    fn now(origin: Origin) -> Self {
        Self {
            id: clock::operation_id(),
            at: clock::now(),
            instant: Instant::now(),
            origin,
        }
    }

    /// The arrival noted by [`RequestId`].
    pub(super) fn of(depot: &Depot) -> Self {
        depot
            .get_typed::<Self>()
            .copied()
            .unwrap_or_else(|_| Self::now(Origin::default()))
    }

    /// The id as customers see it.
    pub(super) fn shown(&self) -> String {
        record::request_id(self.id)
    }
}

/// The middleware around every path, matched or not.
pub(super) struct AssignRequestId {
    front: Arc<Front>,
}

#[handler]
impl AssignRequestId {
    pub(super) fn new(front: Arc<Front>) -> Self {
        Self { front }
    }

    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        let secure = req.scheme() == &salvo::http::uri::Scheme::HTTPS;
        let origin = Visit::of(depot).map_or_else(Origin::default, |visit| Origin {
            client: visit.sender.client,
            secure: visit.sender.secure,
        });
        let arrival = Arrival::now(origin);
        depot.insert_typed(arrival);
        if let Ok(id) = HeaderValue::from_str(&arrival.shown()) {
            res.headers_mut().insert("x-request-id", id.clone());
            res.headers_mut().insert("request-id", id);
        }
        if secure {
            res.headers_mut().insert(
                STRICT_TRANSPORT_SECURITY,
                HeaderValue::from_static("max-age=31536000"),
            );
        }
        match connections::begin(&self.front.connections, req, origin.client, depot) {
            Ok(busy) => {
                ctrl.call_next(req, depot, res).await;
                connections::hold(res, busy);
            }
            Err(why) => {
                ctrl.skip_rest();
                self.front.crowded(why, req, depot, res);
            }
        }
    }
}

/// Logs the client's own id next to ours. Only for requests with a valid key, because anyone else could fill the log.
pub(super) fn note_own_id(headers: &HeaderMap, arrival: &Arrival) {
    if let Some(own) = own_id(headers) {
        tracing::info!(request = %arrival.shown(), client_id = own, "the client sent its own id for this request");
    }
}

/// Headers in which clients send an id of their own.
const OWN_ID: [&str; 3] = ["x-request-id", "x-client-request-id", "request-id"];
const LONGEST_OWN_ID: usize = 128;

/// The client's own id, if it is plain text of a sensible length and not a key.
fn own_id(headers: &HeaderMap) -> Option<&str> {
    let sent = OWN_ID
        .iter()
        .find_map(|name| headers.get(*name))?
        .to_str()
        .ok()?;
    let looks_like_a_key = sent.to_ascii_lowercase().contains("sk-");
    ((1..=LONGEST_OWN_ID).contains(&sent.len()) && !looks_like_a_key).then_some(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_own_id_is_plain_and_short() {
        let with = |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).unwrap();
            own_id(&HeaderMap::from_iter([(
                salvo::http::HeaderName::from_static("x-request-id"),
                value,
            )]))
            .map(str::to_owned)
        };
        assert_eq!(with(b"abc-1").as_deref(), Some("abc-1"));
        for odd in [
            &b""[..],
            b"\xff\xfe",
            &[b'x'; 129],
            b"sk-fb-0123456789",
            b"Bearer SK-FB-0123456789",
        ] {
            assert_eq!(with(odd), None);
        }
        assert_eq!(own_id(&HeaderMap::new()), None);
    }
}
