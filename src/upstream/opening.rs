//! The opening of a stream: frames that show nothing yet, and promise nothing.
//!
//! Vendors begin a stream before they know that they can answer: an error behind such an opening is as good as one in place of the
//! answer, because nobody has seen anything. So an answer counts as begun only with the first frame that shows something, or after
//! a short wait: a model that thinks in silence may take minutes, and its customer gets signs of life meanwhile.

use std::time::Duration;

use farebox_protocol::{Frame, FrameFacts};
use tokio::time::{Instant, timeout_at};

use super::UpstreamCall;
use super::classify::{self, AttemptFailure};
use super::stream::{AnswerBody, Unread};

/// How long an opening is waited for. Errors usually follow in the same packet.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most frames of one, and the most bytes: some repeat the whole request. What is longer is passed on as it is.
const MOST: (usize, usize) = (64, 1 << 20);

/// Reads past the opening of a stream that begins with these frames. An error that is the customer's own stays in the stream, where it
/// is told and counted.
pub(super) async fn past(
    first: Vec<Frame>,
    mut unread: Box<Unread>,
    call: &UpstreamCall<'_>,
    idle: Duration,
) -> Result<(Vec<Frame>, Box<Unread>), AttemptFailure> {
    let until = Instant::now() + PATIENCE.min(idle);
    let mut reader = call.family.protocol().reader();
    let (mut next, mut frames, mut held) = (first.into_iter(), Vec::new(), 0);
    loop {
        let frame = match next.next() {
            None => (unread.reader.next_frame())
                .map_err(|error| AttemptFailure::Broken(error.to_string()))?,
            first => first,
        };
        if let Some(frame) = frame {
            let facts = reader.read(&frame);
            let begun = shows(&facts);
            if let Some(error) = facts.error {
                let failure = classify::of_error(error, reader.usage());
                if !matches!(failure, AttemptFailure::Client { .. }) {
                    return Err(failure);
                }
            } else if facts.end && facts.stop.is_none() && !begun {
                return Err(nothing());
            }
            held += frame.raw().len();
            frames.push(frame);
            if begun || frames.len() >= MOST.0 || held >= MOST.1 {
                return Ok((frames, unread));
            }
            continue;
        }
        // A customer who has left pays for what is made from here on.
        if call.is_abandoned() {
            return Ok((frames, unread));
        }
        match timeout_at(until, unread.body.chunk()).await {
            Err(_) => return Ok((frames, unread)),
            Ok(Ok(Some(chunk))) => unread.reader.push(chunk),
            Ok(Ok(None)) => {
                let tail = unread.reader.finish();
                let last = tail.frame.or(tail.unended).ok_or_else(nothing)?;
                unread.body = AnswerBody::Over;
                next = vec![last].into_iter();
            }
            Ok(Err(why)) => return Err(AttemptFailure::Broken(why)),
        }
    }
}

fn nothing() -> AttemptFailure {
    AttemptFailure::Broken("the stream ended before it showed anything".to_owned())
}

/// Whether an answer has begun with this frame: it shows or hides output, ends the answer, or tells the customer's own fault.
fn shows(facts: &FrameFacts) -> bool {
    facts.shown.bytes() > 0
        || facts.hidden
        || facts.stop.is_some()
        || facts.error.is_some()
        || facts.end && facts.usage
}
