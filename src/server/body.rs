//! Reads a request's body once, inside its limits, and throws away what an early refusal leaves unread.
//!
//! A client that is still sending when it is refused would see its connection reset instead of the answer; so the rest of its
//! body is read beside the answer and dropped.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use salvo::http::ReqBody;
use salvo::prelude::Request;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::proxy::Failure;

/// The largest body that is served.
pub(super) const LARGEST: usize = 32 * 1024 * 1024;
/// Room is reserved in steps of so many bytes where the length is not known.
const STEP: usize = 1024 * 1024;
/// What an early refusal reads and drops at most, and for how long.
const DISCARD: (usize, Duration) = (64 * 1024 * 1024, Duration::from_secs(5));

/// A body and its place among all bodies in flight.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) room: OwnedSemaphorePermit,
}

/// Reads the whole body.
///
/// # Errors
/// 413 over the limit, 503 when too much is in flight, 400 when it stops arriving.
pub(super) async fn read(req: &mut Request, room: &Arc<Semaphore>) -> Result<Body, Failure> {
    let announced = req.header::<usize>("content-length");
    // Room comes first: a full house says so whatever is brought.
    let mut permit = reserve(room, announced.unwrap_or(STEP).clamp(1, LARGEST))?;
    if announced.is_some_and(|length| length > LARGEST) {
        return Err(Failure::TooLarge(LARGEST));
    }
    let body = req.body_mut();
    let mut whole = BytesMut::new();
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| broken())?.into_data() else { continue };
        let length = whole.len() + first.as_ref().map_or(0, Bytes::len) + data.len();
        if length > LARGEST {
            return Err(Failure::TooLarge(LARGEST));
        }
        while permit.num_permits() * 1024 < length {
            permit.merge(reserve(room, STEP)?);
        }
        // A body that comes in one piece is not copied.
        match first.take() {
            None if whole.is_empty() => first = Some(data),
            earlier => {
                // The announced length is trusted only up to a step: what was announced need not come.
                whole.reserve(announced.unwrap_or(0).min(STEP).saturating_sub(whole.len()).max(data.len()));
                if let Some(earlier) = earlier {
                    whole.extend_from_slice(&earlier);
                }
                whole.extend_from_slice(&data);
            }
        }
    }
    Ok(Body { bytes: first.unwrap_or_else(|| whole.freeze()), room: permit })
}

/// Reads and drops what is left of a body, beside the answer.
pub(super) fn discard(req: &mut Request, tasks: &TaskTracker) {
    let mut body = req.take_body();
    if matches!(body, ReqBody::None) {
        return;
    }
    tasks.spawn(async move {
        let reading = async {
            let mut dropped = 0;
            while let Some(Ok(frame)) = body.frame().await {
                dropped += frame.data_ref().map_or(0, Bytes::len);
                if dropped > DISCARD.0 {
                    break;
                }
            }
        };
        // Whoever sends for longer than this has stopped listening for an answer.
        let _ = tokio::time::timeout(DISCARD.1, reading).await;
    });
}

fn reserve(room: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
    let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    Arc::clone(room).try_acquire_many_owned(kib).map_err(|_| Failure::Overloaded)
}

fn broken() -> Failure {
    Failure::BadRequest(farebox_protocol::BadRequest {
        message: "the request body did not arrive whole; send it again".to_owned(),
        param: None,
        code: None,
    })
}
