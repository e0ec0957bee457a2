//! The body of a request that goes out in the pieces it is made of, so that what stays as the customer wrote it is not copied.
//!
//! Its length is known from the beginning, so it is announced and not sent in chunks, and all pieces go into one system call.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The body to send.
#[derive(Default)]
pub(super) struct Pieces {
    pieces: VecDeque<Bytes>,
    /// Bytes that are still to be sent.
    left: usize,
}

impl Pieces {
    pub(super) fn of(pieces: &[Bytes]) -> Self {
        Self { left: pieces.iter().map(Bytes::len).sum(), pieces: pieces.iter().cloned().collect() }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, Bytes::len);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
