//! Decompresses request bodies, within the same limits as plain ones.
//!
//! Memory is reserved in steps as bytes come out, because a few bytes can expand to gigabytes; for the same reason the key's money
//! is judged again at each step. Runs aside, customer by customer. Must not interpret the content.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use farebox_door::UnreadBody;
use farebox_door::byte_room::{ByteRoom, ByteShare};
use farebox_ledger::Key;
use farebox_protocol::BadRequest;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use salvo::http::HeaderMap;
use salvo::http::header::CONTENT_ENCODING;

use super::body::{self, RequestBody, reserve};
use super::funds::Funds;
use crate::proxy::{Failure, LARGEST_BODY};
use crate::turns::Work;

/// Reads the whole body of a key's request and decodes it.
///
/// # Errors
/// 415 for a coding other than gzip and zstd, and those of [`body::read`] and of a body that is not coded as it says; 429 when the
/// customer's turn does not come.
pub(super) async fn read(
    headers: &HeaderMap,
    body: UnreadBody,
    room: &Arc<ByteRoom>,
    key: &Key,
    funds: Option<Funds>,
    work: &mut Work,
) -> Result<RequestBody, Failure> {
    let codings = headers.get_all(CONTENT_ENCODING).into_iter();
    // A value that is no text names no coding that we know.
    let named: Vec<&str> = codings.map(|value| value.to_str().unwrap_or("?")).collect();
    let coding = Coding::named(&named.join(", "))?;
    let body = body::read(body, room, key, funds.clone()).await?;
    coding.decode(body, funds, work).await
}

/// Bytes decoded at a time.
const STEP: u64 = 1024 * 1024;

/// The encoding of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// Not encoded.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Coding {
    /// The encoding that all `content-encoding` headers together name.
    ///
    /// # Errors
    /// 415 for any other encoding.
    fn named(header: &str) -> Result<Self, Failure> {
        match header.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => Err(Failure::UnknownCoding),
        }
    }

    /// The decoded body.
    ///
    /// # Errors
    /// 413 over the limit, 503 when too much is in flight, 429 for more than the key can pay for, 400 for a body that is not in this
    /// encoding.
    async fn decode(
        self,
        body: RequestBody,
        funds: Option<Funds>,
        work: &mut Work,
    ) -> Result<RequestBody, Failure> {
        if self == Self::Identity {
            return Ok(body);
        }
        let decoding = work.aside(move || {
            let RequestBody { bytes, mut room } = body;
            let bytes = match self {
                Self::Zstd => take(
                    StreamingDecoder::new(bytes.as_ref()).map_err(|_| miscoded())?,
                    &mut room,
                    funds,
                )?,
                // `Identity` was answered above.
                Self::Gzip | Self::Identity => {
                    take(MultiGzDecoder::new(bytes.as_ref()), &mut room, funds)?
                }
            };
            Ok(RequestBody { bytes, room })
        });
        decoding.await?
    }
}

fn miscoded() -> Failure {
    let text = "the request body is cut off, or is not coded as its content-encoding says; send it uncompressed";
    Failure::BadRequest(BadRequest::new(text))
}

fn take(mut from: impl Read, room: &mut ByteShare, funds: Option<Funds>) -> Result<Bytes, Failure> {
    let mut out = Vec::new();
    loop {
        let step = from
            .by_ref()
            .take(STEP)
            .read_to_end(&mut out)
            .map_err(|_| miscoded())?;
        if out.len() > LARGEST_BODY {
            return Err(Failure::TooLarge(LARGEST_BODY));
        }
        if step == 0 {
            return Ok(out.into());
        }
        reserve(room, out.len())?;
        funds
            .as_ref()
            .map_or(Ok(()), |funds| funds.cover(out.len()))?;
    }
}
