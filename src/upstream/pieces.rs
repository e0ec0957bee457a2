//! A request body sent in the pieces it is made of, so that unchanged parts of the customer's body are not copied.
//!
//! Its length is known in advance, so it is announced instead of chunked, and all pieces go out in one system call.

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
    /// Bytes still to be sent.
    left: usize,
}

impl Pieces {
    pub(super) fn of(pieces: &[Bytes]) -> Self {
        Self {
            left: pieces.iter().map(Bytes::len).sum(),
            pieces: pieces.iter().cloned().collect(),
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
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
