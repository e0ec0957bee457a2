//! One try at one target: build, send, wait for the first frame or the whole answer, and judge it.
//!
//! An answer counts as good only when it is what was asked for: a stream whose first data frame is not an error, or one JSON
//! object. One JSON object in reply to a request for a stream becomes that stream. Comments and pings before the first data frame are
//! dropped, because they do not prove that an answer will follow. Dropping the future closes the connection.

use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::sse::MAX_FRAME_BYTES;
use farebox_protocol::{
    AnswerFacts, Family, Frame, FrameFacts, FrameReader, UpstreamError, translate,
};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, DATE, RETRY_AFTER, TRANSFER_ENCODING};
use rustix::io::Errno;
use tokio::time::timeout;

use super::additions::TargetAdditions;
use super::classify::{self, AttemptFailure, GivenUp};
use super::client::Pool;
use super::coding::AnswerCoding;
use super::network::cause;
use super::opening;
use super::reply::{self, DeclaredType, UnjudgedReply};
use super::secret_forms::SecretForms;
use super::simulator::Simulated;
use super::stream::{AnswerBody, Paced, Unread};
use super::{Prepared, TargetOperation, UpstreamCall};
use crate::config::Target;
use farebox_door::byte_room::ByteShare;

/// Largest whole answer accepted, where there is so much memory.
pub(super) const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The same for the answer to a call: thousands of long vectors.
pub(super) const MAX_CALL_BYTES: usize = 96 << 20;
/// The same for one that becomes a stream: each of its frames repeats at most all of it, with escapes.
const MAX_UNFOLDED_BYTES: usize = MAX_FRAME_BYTES / 2;
/// Most of an error body that is read.
const MAX_ERROR_BYTES: usize = 256 << 10;

/// A good answer.
pub(super) enum Begun {
    /// All of it, with its facts and its share of the memory budget.
    Whole(Bytes, Box<AnswerFacts>, ByteShare),
    /// Its first data frames, and the source of the rest.
    Stream(Vec<Frame>, Box<Unread>),
}

/// Asks one target once, with one of its provider's keys.
pub(super) async fn attempt(
    pool: &Pool,
    simulated: &Simulated,
    asked: (&UpstreamCall<'_>, usize),
    target: &Target,
    prepared: &Prepared,
    room: ByteShare,
) -> Result<Begun, AttemptFailure> {
    let (call, _) = asked;
    let timeouts = &pool.provider.timeouts;
    let limit = if call.stream {
        timeouts.first_byte
    } else {
        timeouts.whole
    };
    let answer = async {
        let reply = match pool
            .request(asked, prepared)
            .map_err(AttemptFailure::Operator)?
        {
            Some(request) => send(request).await?,
            None => simulated.answer(call, &target.model, &prepared.body.concat()),
        };
        let of = (call, target, &pool.secrets);
        judge(reply, (of, prepared.parts), room).await
    };
    let begun = timeout(limit, answer).await.unwrap_or_else(|_| {
        // A whole answer was being made all this time, and another target would make it again at the same price. A stream is only late with
        // its first frame, and goes to the next one.
        let charged = !call.stream && call.operation == TargetOperation::Generate;
        Err(if charged {
            AttemptFailure::GivenUp(GivenUp::Late(limit))
        } else {
            AttemptFailure::Broken(format!("no answer within {limit:?}"))
        })
    });
    match begun? {
        Begun::Stream(first, unread) => {
            // Outside the limit, which was for the first frame: an opening has a patience of its own.
            let opened = opening::past(first, unread, call, timeouts.idle).await;
            opened.map(|(first, unread)| Begun::Stream(first, unread))
        }
        whole @ Begun::Whole(..) => Ok(whole),
    }
}

pub(super) async fn send(
    request: reqwest::RequestBuilder,
) -> Result<UnjudgedReply, AttemptFailure> {
    unjudged(respond(request).await?)
}

/// The head of an answer.
pub(super) async fn respond(
    request: reqwest::RequestBuilder,
) -> Result<reqwest::Response, AttemptFailure> {
    request.send().await.map_err(|error| match error {
        // First, because out of descriptors a connection fails as well, and would count against the target.
        error if is_our_own(&error) => AttemptFailure::Own(cause(&error)),
        error if error.is_builder() => {
            AttemptFailure::Operator(format!("the request cannot be built: {}", cause(&error)))
        }
        error if error.is_connect() => AttemptFailure::Unsent(cause(&error)),
        error => AttemptFailure::Broken(cause(&error)),
    })
}

pub(super) fn unjudged(response: reqwest::Response) -> Result<UnjudgedReply, AttemptFailure> {
    let text = |name| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let kind = DeclaredType::of(text(CONTENT_TYPE));
    let retry_after = reply::retry_after(text(RETRY_AFTER), text(DATE));
    let status = response.status().as_u16();
    // Of transfer codings the HTTP library undoes `chunked` alone: what it handed on of another one would not be the answer.
    let codings = response.headers().get_all(TRANSFER_ENCODING).iter();
    if !codings
        .into_iter()
        .all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        return Err(AttemptFailure::Broken(
            "a transfer coding that was not asked for".to_owned(),
        ));
    }
    let coding = AnswerCoding::of(response.headers().get_all(CONTENT_ENCODING));
    let coding = coding.map_err(AttemptFailure::Broken)?;
    let body = Box::new(reqwest::Body::from(response));
    Ok(UnjudgedReply {
        status,
        kind,
        retry_after,
        body: match coding {
            None => AnswerBody::Network(body),
            Some(coding) => AnswerBody::Coded(Box::new(coding.body(body))),
        },
    })
}

/// Whether a connection failed because this process has no descriptor, port or memory left.
fn is_our_own(error: &reqwest::Error) -> bool {
    let exhausted = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::ADDRNOTAVAIL,
    ];
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(code) = inner
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error)
        {
            return exhausted.iter().any(|errno| errno.raw_os_error() == code);
        }
        source = inner.source();
    }
    false
}

/// Whom an answer comes from: the request, the target, and its provider's secrets.
type AnswerSource<'a> = (&'a UpstreamCall<'a>, &'a Target, &'a SecretForms);

async fn judge(
    reply: UnjudgedReply,
    (asked, parts): (AnswerSource<'_>, u32),
    mut room: ByteShare,
) -> Result<Begun, AttemptFailure> {
    let UnjudgedReply {
        status,
        kind,
        retry_after,
        mut body,
    } = reply;
    let (call, ..) = asked;
    match (status, kind) {
        // A 205 has no content, a 206 a part of it, a 226 what has changed: none of them is an answer.
        (200..=204, DeclaredType::Json) if call.stream => unfolded(body, asked, room).await,
        (200..=204, _) if call.stream => first_frame(body, call.family).await,
        (200..=204, DeclaredType::Events) => Err(AttemptFailure::Broken(
            "a stream instead of a whole answer".to_owned(),
        )),
        (200..=204, _) => {
            let most = match call.kind() {
                Some(_) => MAX_CALL_BYTES,
                None => MAX_ANSWER_BYTES,
            };
            let most = most.min(room.largest());
            whole(body, (asked, parts), (most, room)).await
        }
        _ => {
            let text = body
                // A text that breaks off or is too long is left out: the status decides alone.
                .whole(MAX_ERROR_BYTES, &mut room)
                .await
                .unwrap_or_default();
            Err(elsewhere(status, &text, asked)
                .unwrap_or_else(|| classify::of_status(status, retry_after, &text)))
        }
    }
}

/// A 404 that names the path of another family that the target speaks is no lack of a model: it may be asked there.
fn elsewhere(
    status: u16,
    text: &[u8],
    (call, target, _): AnswerSource<'_>,
) -> Option<AttemptFailure> {
    call.refusals
        .filter(|_| status == 404 && call.kind().is_none())?;
    let error = UpstreamError::parse(text);
    let family = translate::named_path(call.family, &error)?;
    let speaks = target.provider.speaks_family(family);
    speaks.then(|| AttemptFailure::Client {
        status,
        error,
        usage: Box::default(),
    })
}

async fn whole(
    mut body: AnswerBody,
    ((call, target, secrets), parts): (AnswerSource<'_>, u32),
    (most, mut room): (usize, ByteShare),
) -> Result<Begun, AttemptFailure> {
    let bytes = body.whole(most, &mut room).await?;
    let additions = TargetAdditions::new(&call.route.slug, target, secrets);
    let facts = match call.kind() {
        Some(kind) => (kind.dialect()).read_answer(&bytes, parts, Some(&additions)),
        None => (call.family.protocol()).read_answer_with(&bytes, Some(&additions)),
    };
    match facts {
        None => Err(AttemptFailure::Broken(
            "the answer is not a JSON object".to_owned(),
        )),
        Some(AnswerFacts {
            error: Some(error),
            usage,
            ..
        }) => Err(classify::of_error(error, &usage)),
        Some(facts) if call.kind().is_some() && !facts.complete => Err(AttemptFailure::Broken(
            "the answer lacks a part of what was asked for".to_owned(),
        )),
        // A 200 without the part that makes an answer of the family is an error that does not say so.
        Some(facts) if call.operation == TargetOperation::Generate && !facts.complete => Err(
            classify::of_error(UpstreamError::parse(&bytes), &facts.usage),
        ),
        Some(facts) => Ok(Begun::Whole(bytes, Box::new(facts), room)),
    }
}

/// A whole answer as the stream that was asked for: some servers and proxies do not stream.
async fn unfolded(
    body: AnswerBody,
    asked: AnswerSource<'_>,
    room: ByteShare,
) -> Result<Begun, AttemptFailure> {
    let (family, most) = (asked.0.family, MAX_UNFOLDED_BYTES.min(room.largest()));
    let not_streamed = |why: &str| AttemptFailure::Broken(format!("JSON instead of a stream{why}"));
    let answer = match whole(body, (asked, 0), (most, room)).await {
        Ok(answer) => answer,
        // Only a whole answer that was asked for is charged when it is given up.
        Err(AttemptFailure::GivenUp(why)) => return Err(not_streamed(&format!(": {why}"))),
        Err(failure) => return Err(failure),
    };
    let Begun::Whole(bytes, _, _room) = answer else {
        return Ok(answer);
    };
    let stream = family.protocol().as_stream(&bytes);
    let stream = stream.ok_or_else(|| not_streamed(""))?;
    let frames = Paced::new([(Duration::ZERO, Bytes::from(stream))], false);
    first_frame(AnswerBody::Paced(frames), family).await
}

async fn first_frame(mut body: AnswerBody, family: Family) -> Result<Begun, AttemptFailure> {
    let mut reader = FrameReader::new();
    loop {
        while let Some(frame) = reader
            .next_frame()
            .map_err(|error| AttemptFailure::Broken(error.to_string()))?
        {
            if decides(&frame) && check(&frame, family)? {
                return Ok(begun(frame, reader, body));
            }
        }
        if let Some(chunk) = body.chunk().await.map_err(AttemptFailure::Broken)? {
            reader.push(chunk);
            continue;
        }
        let tail = reader.finish();
        return match tail.frame.or(tail.unended).filter(decides) {
            Some(frame) if check(&frame, family)? => Ok(begun(frame, reader, AnswerBody::Over)),
            _ => Err(AttemptFailure::Broken(
                "the stream ended before its first event".to_owned(),
            )),
        };
    }
}

fn begun(first: Frame, reader: FrameReader, body: AnswerBody) -> Begun {
    Begun::Stream(vec![first], Box::new(Unread { reader, body }))
}

fn decides(frame: &Frame) -> bool {
    frame.data().is_some() && frame.event() != Some("ping")
}

/// Whether the frame begins a good answer. An event that the family does not have may be anything, so it decides nothing.
fn check(frame: &Frame, family: Family) -> Result<bool, AttemptFailure> {
    let mut reader = family.protocol().reader();
    let FrameFacts {
        error, unfamiliar, ..
    } = reader.read(frame);
    let json = frame
        .data()
        .is_some_and(|data| data.trim_ascii_start().starts_with(b"{"));
    match error {
        Some(error) => Err(classify::of_error(error, reader.usage())),
        None if json => Ok(!unfamiliar),
        None => Err(AttemptFailure::Broken(
            "the stream's first event is not JSON".to_owned(),
        )),
    }
}
