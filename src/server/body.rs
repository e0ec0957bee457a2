//! Reads a request's body once, within its limits, and discards what an early refusal leaves unread.
//!
//! Memory is reserved as bytes arrive, not as `content-length` announces them, and reading stops when a body is slower than the
//! minimum pace: a key that opens many uploads and sends nothing reserves nothing. A client that is still sending when it is
//! refused would see a connection reset instead of the answer, so the rest of its body is read and dropped while the answer is
//! sent.
//!
//! Rows of docs/interface.md: `body_of_more_than_32_mib`.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use farebox_ledger::{Amount, Key};
use http_body_util::BodyExt;
use salvo::http::ReqBody;
use salvo::hyper::body::Body as _;
use salvo::prelude::{Depot, Request};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

use super::connections;
use super::funds::Funds;
use crate::byte_room::{ByteRoom, ByteShare};
use crate::proxy::{Failure, holder};

/// The largest accepted body.
pub(super) const LARGEST: usize = 32 * 1024 * 1024;
/// Bytes in flight allowed for a key with nothing available.
const MOST_WITHOUT_MONEY: usize = 16 * 1024 * 1024;
/// The announced length is trusted only up to this many bytes, because they may never arrive.
const TRUSTED: usize = 1024 * 1024;
/// Time allowed for a body, plus a second for each [`SLOWEST`] bytes of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes per second.
const SLOWEST: usize = 8 * 1024;
/// How much an early refusal reads and drops at most, and for how long.
const DISCARD: (usize, Duration) = (64 * 1024 * 1024, Duration::from_secs(5));

/// Noted on a request whose body was read to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadWhole;

/// A body and its share of the memory for all bodies in flight.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    pub(super) room: ByteShare,
}

/// Reads the whole body of a key's request.
///
/// # Errors
/// 413 over the limit, 503 when too much is in flight, 429 for more than the key can pay for, 400 when it stops arriving or arrives
/// too slowly.
pub(super) async fn read(
    req: &mut Request,
    room: &Arc<ByteRoom>,
    key: &Key,
    funds: Option<Funds>,
) -> Result<RequestBody, Failure> {
    let begun = Instant::now();
    let announced = req.header::<usize>("content-length");
    let most = if key.customer.account.available() > Amount::ZERO {
        usize::MAX
    } else {
        MOST_WITHOUT_MONEY
    };
    let mut share = room.share(holder(key.customer.id), most);
    // Memory is checked first: when it is full, the answer is 503 for every body.
    reserve(&mut share, 1)?;
    share.shrink_to(0);
    if announced.is_some_and(|length| length > LARGEST) {
        return Err(Failure::TooLarge(LARGEST));
    }
    let affords = |length| funds.as_ref().map_or(Ok(()), |funds| funds.cover(length));
    affords(announced.unwrap_or(0))?;
    let body = req.body_mut();
    let mut whole = BytesMut::new();
    let mut first: Option<Bytes> = None;
    let mut length = 0;
    while let Some(frame) = timeout_at(latest(begun, length), body.frame())
        .await
        .map_err(|_| too_slow())?
    {
        // The server accepts a bare line feed as a line end in trailers, where other parsers do not. No client sends trailers.
        let data = frame
            .map_err(|_| broken())?
            .into_data()
            .map_err(|_| bad("trailers are not served; send the body without"))?;
        length += data.len();
        if length > LARGEST {
            return Err(Failure::TooLarge(LARGEST));
        }
        affords(length)?;
        reserve(&mut share, length)?;
        // A body that comes in one piece is not copied.
        match first.take() {
            None if whole.is_empty() => first = Some(data),
            earlier => {
                whole.reserve(
                    announced
                        .unwrap_or(0)
                        .min(TRUSTED)
                        .saturating_sub(whole.len())
                        .max(data.len()),
                );
                if let Some(earlier) = earlier {
                    whole.extend_from_slice(&earlier);
                }
                whole.extend_from_slice(&data);
            }
        }
    }
    req.extensions_mut().insert(ReadWhole);
    Ok(RequestBody {
        bytes: first.unwrap_or_else(|| whole.freeze()),
        room: share,
    })
}

/// The deadline for a body of which `length` bytes have arrived.
fn latest(begun: Instant, length: usize) -> Instant {
    begun + PATIENCE + Duration::from_secs((length / SLOWEST) as u64)
}

/// Reads and drops the rest of a body while the answer is sent. Until then a stranger's keeps its place among strangers' requests.
pub(super) fn discard(req: &mut Request, depot: &Depot, tasks: &TaskTracker) {
    let mut body = req.take_body();
    if matches!(body, ReqBody::None) || body.is_end_stream() {
        return;
    }
    let guest = connections::of(depot);
    tasks.spawn(async move {
        let _guest = guest;
        let reading = async {
            let mut dropped = 0;
            while let Some(Ok(frame)) = body.frame().await {
                dropped += frame.data_ref().map_or(0, Bytes::len);
                if dropped > DISCARD.0 {
                    break;
                }
            }
        };
        // A client that still sends after this long is not reading the answer.
        let _ = tokio::time::timeout(DISCARD.1, reading).await;
    });
}

pub(super) fn reserve(share: &mut ByteShare, bytes: usize) -> Result<(), Failure> {
    if share.grow_to(bytes) {
        Ok(())
    } else {
        Err(Failure::Overloaded)
    }
}

fn too_slow() -> Failure {
    bad(
        "the request body arrived too slowly: 30 seconds plus one second per 8 KiB are allowed; send it again over a faster connection",
    )
}

fn broken() -> Failure {
    bad("the request body is incomplete; send it again")
}

pub(super) fn bad(message: &str) -> Failure {
    Failure::BadRequest(farebox_protocol::BadRequest::new(message))
}

#[cfg(test)]
mod tests {
    use farebox_ledger::memory::MemoryLedger;
    use futures_util::stream;
    use http_body_util::StreamBody;
    use salvo::hyper::body::Frame;

    use super::*;
    use crate::proxy::tests::new_key;

    /// A body of 32 MiB, as announced, of which ten bytes come every five seconds.
    fn trickling() -> Request {
        let pieces = stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Some((
                Ok::<_, salvo::BoxedError>(Frame::data(Bytes::from_static(b"          "))),
                (),
            ))
        });
        let mut request = Request::new();
        request
            .headers_mut()
            .insert("content-length", LARGEST.into());
        request.replace_body(ReqBody::Boxed {
            inner: Box::pin(StreamBody::new(pieces)),
            fuse_config: None,
        });
        request
    }

    #[tokio::test(start_paused = true)]
    async fn sixteen_bodies_that_hardly_come_are_given_up_after_30_seconds_and_take_no_room_before()
    {
        let (room, key, begun) = (
            ByteRoom::new(512 << 20),
            new_key(&MemoryLedger::new(), "1").await,
            Instant::now(),
        );
        let mut requests: Vec<Request> = (0..16).map(|_| trickling()).collect();
        let reading = futures_util::future::join_all(
            requests
                .iter_mut()
                .map(|request| read(request, &room, &key, None)),
        );
        let watching = async {
            tokio::time::sleep(Duration::from_secs(29)).await;
            assert!(
                room.in_use() <= 16 * 64 * 1024,
                "{} bytes for 800 that came",
                room.in_use()
            );
        };
        let (ended, ()) = tokio::join!(reading, watching);
        assert!(ended.iter().all(|body| matches!(body, Err(Failure::BadRequest(bad)) if bad.message.contains("too slowly"))));
        assert_eq!((begun.elapsed(), room.in_use()), (PATIENCE, 0));
    }
}
