//! `/live`: the last requests and then each one as it ends, as server-sent events.
//!
//! A reader that falls behind is disconnected with a comment that gives the reason; it may reconnect. Never a body or a secret, and no
//! key's id for who has no token.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use salvo::http::{HeaderValue, ResBody, StatusCode};
use salvo::prelude::{Depot, Response, handler};
use serde_json::json;

use super::{Admin, Sight, text};
use crate::proxy::{Record, record};
use crate::telemetry::LiveFollower;

/// Most readers at once.
const MOST_READERS: usize = 32;
/// A comment is sent after this long without a request, so that both sides notice a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers `/live`: a stream of every request as it ends.
pub(super) struct LiveHandler {
    admin: Arc<Admin>,
}

#[handler]
impl LiveHandler {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self { admin }
    }

    async fn handle(&self, depot: &mut Depot, res: &mut Response) {
        let live = &self.admin.telemetry.live;
        if live.readers() >= MOST_READERS {
            return text(
                res,
                StatusCode::SERVICE_UNAVAILABLE,
                "too many readers of this stream already\n",
            );
        }
        let headers = res.headers_mut();
        headers.insert(
            "content-type",
            HeaderValue::from_static("text/event-stream"),
        );
        headers.insert("cache-control", HeaderValue::from_static("no-store"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        res.body(ResBody::stream(events(live.follow(), Sight::of(depot))));
    }
}

fn events(
    follower: LiveFollower,
    sight: Sight,
) -> impl stream::Stream<Item = Result<Bytes, std::io::Error>> {
    // A first comment, so that a reader of an idle gateway sees at once that it is connected.
    let hello = stream::iter([Ok(Bytes::from_static(b": farebox\n\n"))]);
    let requests = stream::unfold(Some(follower), move |follower| async move {
        let mut follower: LiveFollower = follower?;
        let next = tokio::time::timeout(KEEP_ALIVE, follower.next()).await;
        Some(match next {
            Ok(Some(record)) => (Ok(event(&record, sight)), Some(follower)),
            Ok(None) => (
                Ok(Bytes::from_static(
                    b": too slow, some requests were missed\n\n",
                )),
                None,
            ),
            Err(_) => (Ok(Bytes::from_static(b": keepalive\n\n")), Some(follower)),
        })
    });
    futures_util::StreamExt::chain(hello, requests)
}

fn event(record: &Record, sight: Sight) -> Bytes {
    let mut data = json!(record);
    sight.shorten(&mut data);
    Bytes::from(format!(
        "event: request\nid: {}\ndata: {data}\n\n",
        record::request_id(record.request_id)
    ))
}
