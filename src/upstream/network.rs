//! Bytes from a connection, and why none come.

use std::error::Error;

use bytes::Bytes;
use http_body_util::BodyExt;

/// The next bytes from a connection.
pub(super) async fn network_chunk(body: &mut reqwest::Body) -> Result<Option<Bytes>, String> {
    while let Some(frame) = body.frame().await {
        // Nobody needs trailers.
        if let Ok(data) = frame.map_err(|error| cause(&error))?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// The innermost reason: it is the most specific and never repeats a URL.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let Some(mut inner) = error.source() else {
        return "the request failed".to_owned();
    };
    while let Some(deeper) = inner.source() {
        inner = deeper;
    }
    inner.to_string()
}
