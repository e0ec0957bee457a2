//! Reads the bytes of an answer as they arrive and cuts them into frames.
//!
//! A body comes from the network or from the built-in provider; the layers above treat both alike. Dropping a [`FrameStream`] drops
//! the body, which closes the connection: there is no other way to cancel, and none is needed. A broken stream stays broken.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::{Family, Frame, FrameReader, UpstreamError, WireUsage};
use tokio::time::{Instant, sleep_until};

use super::classify::{self, AttemptFailure, FailureClass, GivenUp, TargetFault};
use super::coding::CodedBody;
use super::health::Try;
use super::network::network_chunk;
use super::redact::{self, CustomerError, Redacted};
use crate::config::Route;
use crate::deadline::Deadline;
use farebox_door::byte_room::ByteShare;

/// Bytes that an answer may have in memory uncounted, so that ordinary ones take no lock.
const UNCOUNTED: usize = 64 * 1024;

/// The bytes of one answer.
pub(super) enum AnswerBody {
    /// From a connection, without the response head, which would keep its read buffer alive.
    Network(Box<reqwest::Body>),
    /// The same, compressed.
    Coded(Box<CodedBody>),
    /// From the built-in provider, or made here.
    Paced(Paced),
    /// Ended or cancelled.
    Over,
}

impl AnswerBody {
    /// The next bytes, `None` at the end. Dropping the future loses nothing.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Self::Network(body) => network_chunk(body).await,
            Self::Coded(coded) => coded.chunk().await,
            Self::Paced(paced) => paced.chunk().await,
            Self::Over => Ok(None),
        }
    }

    /// All of it, at most `most` bytes. Beyond a small amount it is read only as memory becomes available.
    pub(super) async fn whole(
        &mut self,
        most: usize,
        room: &mut ByteShare,
    ) -> Result<Bytes, AttemptFailure> {
        let too_large = AttemptFailure::GivenUp(GivenUp::Large(most));
        let Some(first) = self.chunk().await.map_err(AttemptFailure::Broken)? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.chunk().await.map_err(AttemptFailure::Broken)? else {
            return if first.len() <= most {
                Ok(first)
            } else {
                Err(too_large)
            };
        };
        let mut all = Vec::new();
        let mut next = [first, second].concat();
        while all.len() + next.len() <= most {
            let needed = all.len() + next.len();
            if needed > all.capacity() {
                // Doubles, but never beyond an answer's maximum: a single key has room for exactly that.
                let larger = (needed * 2).min(most);
                if larger > UNCOUNTED {
                    room.wait_for(larger).await;
                }
                all.reserve_exact(larger - all.len());
            }
            all.extend_from_slice(&next);
            match self.chunk().await.map_err(AttemptFailure::Broken)? {
                Some(chunk) => next = chunk.into(),
                None => return Ok(all.into()),
            }
        }
        Err(too_large)
    }
}

/// Bytes that arrive at a given pace, and how they end.
#[derive(Default)]
pub(super) struct Paced {
    pieces: VecDeque<(Duration, Bytes)>,
    broken: bool,
    due: Option<Instant>,
}

impl Paced {
    /// `pieces` with the wait before each; `broken` ends them with a connection error.
    pub(super) fn new(pieces: impl IntoIterator<Item = (Duration, Bytes)>, broken: bool) -> Self {
        Self {
            pieces: pieces.into_iter().collect(),
            broken,
            due: None,
        }
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        let Some((wait, _)) = self.pieces.front() else {
            return if self.broken {
                Err("the connection was closed in the middle of the answer".to_owned())
            } else {
                Ok(None)
            };
        };
        if !wait.is_zero() {
            // Kept across calls, so that a dropped call does not restart the wait.
            let due = *self.due.get_or_insert_with(|| Instant::now() + *wait);
            sleep_until(due).await;
            self.due = None;
        }
        Ok(self.pieces.pop_front().map(|(_, bytes)| bytes))
    }
}

/// Why a running answer stopped arriving.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StreamBroken(pub String);

/// An error event that is the target's own.
#[derive(Debug)]
pub struct TargetError {
    /// Its word in the operator's log.
    pub word: Redacted,
    /// It has no capacity.
    pub overloaded: bool,
}

/// The unread rest of a stream.
pub(super) struct Unread {
    pub(super) reader: FrameReader,
    pub(super) body: AnswerBody,
}

/// The frames of a running answer. Dropping it cancels the upstream call. A frame counts among the bytes of answers in flight until
/// the next one is requested.
pub struct FrameStream(Box<RunningStream>);

struct RunningStream {
    unread: Box<Unread>,
    idle: Duration,
    waiting_since: Option<Instant>,
    alarm: Deadline,
    broken: Option<StreamBroken>,
    /// `None` if it says nothing about the target.
    health: Option<Try>,
    room: ByteShare,
}

impl FrameStream {
    /// The rest of an answer after its first frame.
    pub(super) fn new(
        unread: Box<Unread>,
        idle: Duration,
        health: Option<Try>,
        room: ByteShare,
    ) -> Self {
        Self(Box::new(RunningStream {
            unread,
            idle,
            waiting_since: None,
            alarm: Deadline::at(Instant::now() + idle),
            broken: None,
            health,
            room,
        }))
    }

    /// The next frame, `None` at the end of the upstream's bytes.
    ///
    /// Dropping the future before it completes loses nothing, and its wait counts towards the idle limit.
    ///
    /// # Errors
    /// When the connection breaks, stays silent for the provider's idle limit, or sends a frame over the size limit.
    pub async fn next(&mut self) -> Result<Option<Frame>, StreamBroken> {
        if let Some(broken) = &self.0.broken {
            return Err(broken.clone());
        }
        match self.0.read().await {
            Ok(frame) => Ok(frame),
            Err(why) => {
                self.blame(&why);
                self.0.unread.body = AnswerBody::Over;
                let broken = StreamBroken(why);
                self.0.broken = Some(broken.clone());
                Err(broken)
            }
        }
    }

    /// Who is to blame for an error event, by the rules for errors before a stream: the customer, with the error as it may be
    /// shown; `caller`: the customer's family, if the target is of another.
    ///
    /// # Errors
    /// The target, which is counted.
    pub fn judge(
        &mut self,
        error: UpstreamError,
        route: &Route,
        caller: Option<Family>,
    ) -> Result<CustomerError, TargetError> {
        let word = error
            .kind
            .as_ref()
            .or(error.code.as_ref())
            .map_or("unnamed", String::as_str);
        let word = redact::for_operator(word, route);
        match classify::of_error(error, &WireUsage::default()) {
            AttemptFailure::Client { error, .. } => Ok(super::as_told(error, route, caller)),
            failure => {
                if let (Some(health), Some(fault)) = (&mut self.0.health, failure.fault()) {
                    health.failed(
                        failure.class(),
                        &redact::plain("an error event in the stream"),
                        fault,
                    );
                }
                Err(TargetError {
                    word,
                    overloaded: failure.class() == FailureClass::Busy,
                })
            }
        }
    }

    /// Counts this answer as the target's failure although its bytes arrived: it ended without the terminal marker.
    pub fn blame(&mut self, why: &str) {
        if let Some(health) = &mut self.0.health {
            health.failed(
                FailureClass::Broken,
                &redact::plain(why),
                TargetFault::default(),
            );
        }
    }
}

impl RunningStream {
    async fn read(&mut self) -> Result<Option<Frame>, String> {
        loop {
            self.make_room().await;
            if let Some(frame) = self
                .unread
                .reader
                .next_frame()
                .map_err(|error| error.to_string())?
            {
                return Ok(Some(frame));
            }
            let since = *self.waiting_since.get_or_insert_with(|| {
                let now = Instant::now();
                // Waiting begins when what had arrived was taken.
                if let Some(health) = &self.health {
                    health.frame(now);
                }
                now
            });
            let chunk = tokio::select! {
                biased;
                chunk = self.unread.body.chunk() => chunk,
                () = self.alarm.wait_until(since + self.idle) => Err(format!("silent for {:?}", self.idle)),
            };
            self.waiting_since = None;
            match chunk? {
                Some(chunk) => self.unread.reader.push(chunk),
                None => return self.end(),
            }
        }
    }

    /// Waits until what is buffered has its place in the budget. The frame handed out before is gone.
    async fn make_room(&mut self) {
        let buffered = self.unread.reader.buffered();
        if buffered > UNCOUNTED {
            self.room.wait_for(buffered).await;
        } else {
            self.room.shrink_to(0);
        }
    }

    fn end(&mut self) -> Result<Option<Frame>, String> {
        self.unread.body = AnswerBody::Over;
        let tail = self.unread.reader.finish();
        match tail.frame.or(tail.unended) {
            None if tail.left > 0 => Err("the stream ended in the middle of an event".to_owned()),
            frame => Ok(frame),
        }
    }
}

impl fmt::Debug for FrameStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FrameStream")
            .field("idle", &self.0.idle)
            .field("broken", &self.0.broken)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farebox_door::byte_room::{ByteRoom, Holder};

    /// `pieces` of 61,000 bytes.
    async fn whole(pieces: usize) -> Result<usize, AttemptFailure> {
        let piece = Bytes::from(vec![b'x'; 61_000]);
        let mut body = AnswerBody::Paced(Paced::new(
            (0..pieces).map(|_| (Duration::ZERO, piece.clone())),
            false,
        ));
        let mut room = ByteRoom::new(256 << 20).share(Holder(1), usize::MAX);
        let reading = body.whole(64 << 20, &mut room);
        let read = tokio::time::timeout(Duration::from_secs(900), reading)
            .await
            .unwrap();
        read.map(|bytes| bytes.len())
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_answer_fits_into_the_room_of_one_key() {
        for pieces in [1, 2, 3, 700, 900, 1_100] {
            assert_eq!(whole(pieces).await, Ok(pieces * 61_000));
        }
        assert_eq!(
            whole(1_101).await,
            Err(AttemptFailure::GivenUp(GivenUp::Large(64 << 20)))
        );
    }
}
