//! Reads a request's body once, within the limits of its path, and drops what nobody reads.
//!
//! Who reads a body names the [`BodyPayer`] that has room and money for it: memory is taken as bytes arrive, not as `content-length`
//! announces them, and reading stops when a body is slower than the minimum pace, so that whoever opens many uploads and sends
//! nothing takes nothing. A client that is still sending when it is refused would see a connection reset instead of the answer, so
//! the rest of its body is read and dropped while the answer is sent.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use salvo::http::header::CONTENT_TYPE;
use salvo::http::{HeaderValue, ReqBody};
use salvo::hyper::body::Body as _;
use salvo::prelude::{Depot, Request};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use crate::byte_room::ByteShare;
use crate::path::BodyRule;

/// The announced length is trusted only up to this many bytes, because they may never arrive, until so many have.
const TRUSTED: usize = 1024 * 1024;
/// Time allowed for a body, plus a second for each [`SLOWEST`] bytes of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time allowed for a form: it has a hundred bytes, and a stranger could otherwise keep a connection busy byte by byte.
const PATIENCE_WITH_FORM: Duration = Duration::from_secs(10);
/// Bytes per second.
const SLOWEST: usize = 8 * 1024;
/// How much of a body that nobody reads is dropped at most, and for how long.
// Twice the largest body: with half of it, clients that had sent one were still reset before they read their answer.
const DISCARD: (usize, Duration) = (64 * 1024 * 1024, Duration::from_secs(5));
/// Bytes per second that are dropped of all such bodies together: whoever sends them as fast as this machine can take them would
/// otherwise have a third of its CPU time, most of it in the kernel, where requests cannot interrupt it.
const DISCARDED_PER_SECOND: usize = 64 * 1024 * 1024;
/// Whoever has just dropped a piece waits for its time here, the others behind it.
static DISCARDING: Semaphore = Semaphore::const_new(1);
/// After so many bytes of one body, other requests of the same thread have their turn.
const AT_A_TIME: usize = 256 * 1024;

/// Who has room and money for a body.
pub trait BodyPayer: Send {
    /// Why it does not take more.
    type Refusal: Send;

    /// Asked before the first byte is read, with the announced length. Takes nothing: the bytes may never arrive.
    ///
    /// # Errors
    /// When a body of this length is not to be read.
    fn announced(&mut self, bytes: usize) -> Result<(), Self::Refusal>;

    /// Asked for each piece, with the length so far.
    ///
    /// # Errors
    /// When nothing more is to be read.
    fn arrived(&mut self, bytes: usize) -> Result<(), Self::Refusal>;
}

/// There is no memory for a body now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoBodyRoom;

/// Room is all that it takes.
impl BodyPayer for ByteShare {
    type Refusal = NoBodyRoom;

    fn announced(&mut self, _: usize) -> Result<(), NoBodyRoom> {
        Ok(())
    }

    fn arrived(&mut self, bytes: usize) -> Result<(), NoBodyRoom> {
        self.grow_to(bytes).then_some(()).ok_or(NoBodyRoom)
    }
}

/// What is wrong with a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    /// It is larger than this many bytes.
    TooLarge(usize),
    /// Its content type is another than the one named here.
    WrongType(&'static str),
    /// It arrives too slowly.
    TooSlow,
    /// A form does.
    SlowForm,
    /// It ends too early.
    Broken,
    /// It has trailers.
    Trailers,
}

impl BodyFault {
    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::TooLarge(_) => 413,
            Self::WrongType(_) => 415,
            Self::TooSlow | Self::SlowForm | Self::Broken | Self::Trailers => 400,
        }
    }

    /// What is wrong, and what to do instead.
    #[must_use]
    pub fn message(self) -> String {
        match self {
            Self::TooLarge(most) if most % (1024 * 1024) == 0 && most > 0 => {
                format!("the request body is larger than {} MiB; send less", most / (1024 * 1024))
            }
            Self::TooLarge(most) => format!(
                "the request body is larger than {} KiB; send less",
                most.div_ceil(1024)
            ),
            Self::WrongType(expected) => {
                format!("this path takes {expected}; send the body as that, and say so in content-type")
            }
            Self::TooSlow => "the request body arrived too slowly: 30 seconds plus one second per 8 KiB are allowed; send it again \
                              over a faster connection"
                .to_owned(),
            Self::SlowForm => {
                "the form arrived too slowly; send it again over a faster connection".to_owned()
            }
            Self::Broken => "the request body is incomplete; send it again".to_owned(),
            Self::Trailers => "trailers are not served; send the body without".to_owned(),
        }
    }
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRead<R> {
    /// Its payer does not take it.
    Refused(R),
    /// It is at fault itself.
    Fault(BodyFault),
}

impl<R> From<BodyFault> for NotRead<R> {
    fn from(fault: BodyFault) -> Self {
        Self::Fault(fault)
    }
}

/// The body of a request, which nobody has read. Dropped unread, it is dropped as it arrives, as long as `kept` lives with it.
pub struct UnreadBody {
    rule: BodyRule,
    body: ReqBody,
    content_type: Option<HeaderValue>,
    announced: Option<usize>,
    begun: Instant,
    whole: Arc<AtomicBool>,
    /// What stays until the body has gone: its sender's place, say.
    kept: Option<Box<dyn Debug + Send + Sync>>,
}

impl Debug for UnreadBody {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("UnreadBody")
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

impl UnreadBody {
    /// Takes the body out of a request.
    pub(crate) fn take(req: &mut Request) -> Self {
        Self {
            rule: BodyRule::Nothing,
            announced: req.header::<usize>("content-length"),
            content_type: req.headers().get(CONTENT_TYPE).cloned(),
            body: req.take_body(),
            begun: Instant::now(),
            whole: Arc::default(),
            kept: None,
        }
    }

    /// The body of the request that a handler serves.
    #[must_use]
    pub fn of(depot: &mut Depot) -> Self {
        depot.remove_typed().unwrap_or_else(|_| Self {
            rule: BodyRule::Nothing,
            body: ReqBody::None,
            content_type: None,
            announced: None,
            begun: Instant::now(),
            whole: Arc::default(),
            kept: None,
        })
    }

    /// Keeps something until the body has been read or dropped.
    pub fn keep(depot: &mut Depot, kept: impl Debug + Send + Sync + 'static) {
        if let Ok(body) = depot.get_typed_mut::<Self>() {
            body.kept = Some(Box::new(kept));
        }
    }

    pub(crate) fn ruled(&mut self, rule: BodyRule) {
        self.rule = rule;
    }

    /// Becomes true when the body was read to its end.
    pub(crate) fn whole(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.whole)
    }

    /// Reads it to its end.
    ///
    /// # Errors
    /// [`NotRead`]; what has not arrived by then is dropped.
    pub async fn read<P: BodyPayer>(mut self, payer: &mut P) -> Result<Bytes, NotRead<P::Refusal>> {
        let (largest, announced) = (self.rule.largest(), self.announced.unwrap_or(0));
        if announced > largest {
            // Without room the answer is the same for every body.
            payer.announced(0).map_err(NotRead::Refused)?;
            return Err(BodyFault::TooLarge(largest).into());
        }
        let is_empty = self.body.is_end_stream();
        let kind = self.content_type.as_ref();
        let kind = kind.map(|kind| kind.to_str().unwrap_or("?"));
        if !is_empty && !self.rule.takes(kind) {
            return Err(BodyFault::WrongType(self.rule.expected()).into());
        }
        payer.announced(announced).map_err(NotRead::Refused)?;
        let (mut whole, mut first, mut length) = (BytesMut::new(), None::<Bytes>, 0);
        while let Some(frame) = timeout_at(self.latest(length), self.body.frame())
            .await
            .map_err(|_| self.too_slow())?
        {
            // The server accepts a bare line feed as a line end in trailers, where other parsers do not. No client sends trailers.
            let data = frame
                .map_err(|_| BodyFault::Broken)?
                .into_data()
                .map_err(|_| BodyFault::Trailers)?;
            let before = length;
            length += data.len();
            if length / AT_A_TIME > before / AT_A_TIME {
                tokio::task::yield_now().await;
            }
            if length > largest {
                return Err(BodyFault::TooLarge(largest).into());
            }
            payer.arrived(length).map_err(NotRead::Refused)?;
            // A body that comes in one piece is not copied.
            match first.take() {
                None if whole.is_empty() => first = Some(data),
                earlier => {
                    // Once so much has come, all of it gets its place at once: growing by and by leaves twice as much behind.
                    let expected = match length {
                        ..TRUSTED => announced.min(TRUSTED),
                        _ => self.announced.unwrap_or(largest),
                    };
                    whole.reserve(expected.saturating_sub(whole.len()).max(data.len()));
                    whole.extend_from_slice(&earlier.unwrap_or_default());
                    whole.extend_from_slice(&data);
                }
            }
        }
        self.body = ReqBody::None;
        self.whole.store(true, Ordering::Relaxed);
        Ok(first.unwrap_or_else(|| whole.freeze()))
    }

    /// Reads a form. It is too small to be paid for.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub async fn form(self) -> Result<FormFields, BodyFault> {
        if self.rule != BodyRule::Form {
            return Ok(FormFields::default());
        }
        match self.read(&mut NoPayer).await {
            Ok(bytes) => Ok(FormFields::read(&bytes)),
            Err(NotRead::Fault(fault)) => Err(fault),
            Err(NotRead::Refused(never)) => match never {},
        }
    }

    /// The deadline, when `length` bytes have arrived.
    fn latest(&self, length: usize) -> Instant {
        match self.rule {
            BodyRule::Form => self.begun + PATIENCE_WITH_FORM,
            _ => self.begun + PATIENCE + Duration::from_secs((length / SLOWEST) as u64),
        }
    }

    fn too_slow(&self) -> BodyFault {
        match self.rule {
            BodyRule::Form => BodyFault::SlowForm,
            _ => BodyFault::TooSlow,
        }
    }
}

/// Reads and drops the rest of a body while the answer is sent.
impl Drop for UnreadBody {
    fn drop(&mut self) {
        let mut body = std::mem::take(&mut self.body);
        if matches!(body, ReqBody::None) || body.is_end_stream() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let kept = self.kept.take();
        runtime.spawn(async move {
            let _kept = kept;
            let reading = async {
                let mut dropped = 0;
                while let Some(Ok(frame)) = body.frame().await {
                    let bytes = frame.data_ref().map_or(0, Bytes::len);
                    dropped += bytes;
                    if dropped > DISCARD.0 {
                        break;
                    }
                    let _turn = DISCARDING.acquire().await;
                    sleep(
                        Duration::from_secs(1).mul_f64(bytes as f64 / DISCARDED_PER_SECOND as f64),
                    )
                    .await;
                }
            };
            // A client that still sends after this long is not reading the answer.
            let _ = tokio::time::timeout(DISCARD.1, reading).await;
        });
    }
}

/// Forms cost nothing.
struct NoPayer;

impl BodyPayer for NoPayer {
    type Refusal = std::convert::Infallible;

    fn announced(&mut self, _: usize) -> Result<(), Self::Refusal> {
        Ok(())
    }

    fn arrived(&mut self, _: usize) -> Result<(), Self::Refusal> {
        Ok(())
    }
}

/// The fields of a form.
#[derive(Debug, Default)]
pub struct FormFields(Vec<(String, String)>);

impl FormFields {
    fn read(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// The first field of this name, if it was sent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter();
        let (_, value) = fields.find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The first field of this name; empty if it was not sent.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{future, stream};
    use http_body_util::StreamBody;
    use salvo::http::HeaderValue;
    use salvo::hyper::body::Frame;

    use super::*;
    use crate::byte_room::{ByteRoom, Holder};
    use crate::path::FORM;

    /// A body of which some bytes come every five seconds, without an end.
    fn trickling(rule: BodyRule, kind: &'static str, announced: Option<usize>) -> UnreadBody {
        let pieces = stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Some((
                Ok::<_, salvo::BoxedError>(Frame::data(Bytes::from_static(b"          "))),
                (),
            ))
        });
        let mut request = Request::new();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(announced) = announced {
            headers.insert("content-length", announced.into());
        }
        request.replace_body(ReqBody::Boxed {
            inner: Box::pin(StreamBody::new(pieces)),
            fuse_config: None,
        });
        let mut body = UnreadBody::take(&mut request);
        body.ruled(rule);
        body
    }

    fn sent(rule: BodyRule, kind: &'static str, bytes: Vec<u8>) -> UnreadBody {
        let mut request = Request::new();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        request.replace_body(ReqBody::Once(bytes.into()));
        let mut body = UnreadBody::take(&mut request);
        body.ruled(rule);
        body
    }

    const JSON: BodyRule = BodyRule::Json(32 << 20);
    const URLENCODED: &str = "application/x-www-form-urlencoded";

    #[tokio::test(start_paused = true)]
    async fn sixteen_bodies_that_hardly_come_are_given_up_after_30_seconds_and_take_no_room_before()
    {
        let (room, begun) = (ByteRoom::new(512 << 20), Instant::now());
        let reading = (0..16).map(async |_| {
            let mut payer = room.share(Holder(1), usize::MAX);
            let body = trickling(JSON, "application/json", Some(32 << 20));
            body.read(&mut payer).await
        });
        let watching = async {
            tokio::time::sleep(Duration::from_secs(29)).await;
            let used = room.in_use();
            assert!(used <= 16 * 64 * 1024, "{used} bytes for 800 that came");
        };
        let (ended, ()) = tokio::join!(future::join_all(reading), watching);
        assert!(
            ended
                .iter()
                .all(|end| *end == Err(BodyFault::TooSlow.into()))
        );
        assert_eq!((begun.elapsed(), room.in_use()), (PATIENCE, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_form_that_comes_byte_by_byte_is_given_up() {
        let begun = Instant::now();
        let late = trickling(BodyRule::Form, URLENCODED, None).form().await;
        assert_eq!(late.unwrap_err(), BodyFault::SlowForm);
        assert_eq!(begun.elapsed(), PATIENCE_WITH_FORM);
    }

    #[tokio::test]
    async fn a_form_is_urlencoded_and_small() {
        let form = sent(BodyRule::Form, URLENCODED, b"a=1&b=%C3%BC+x&a=2".to_vec());
        let form = form.form().await.unwrap();
        assert_eq!(
            (form.text("a"), form.text("b"), form.get("c")),
            ("1", "ü x", None)
        );
        let large = sent(BodyRule::Form, URLENCODED, vec![b'x'; FORM + 1]);
        assert_eq!(large.form().await.unwrap_err(), BodyFault::TooLarge(FORM));
        let files = sent(
            BodyRule::Form,
            "multipart/form-data; boundary=x",
            b"--x".to_vec(),
        );
        assert_eq!(files.form().await.unwrap_err().status(), 415);
    }

    #[tokio::test]
    async fn nothing_is_read_that_its_payer_does_not_take() {
        struct Poor;
        impl BodyPayer for Poor {
            type Refusal = usize;

            fn announced(&mut self, _: usize) -> Result<(), usize> {
                Ok(())
            }

            fn arrived(&mut self, bytes: usize) -> Result<(), usize> {
                Err(bytes)
            }
        }
        let body = sent(JSON, "application/json", vec![b' '; 7]);
        assert_eq!(body.read(&mut Poor).await, Err(NotRead::Refused(7)));
        let none = sent(BodyRule::Nothing, "application/json", vec![b' '; 7]);
        assert_eq!(
            none.read(&mut NoPayer).await.unwrap_err(),
            BodyFault::WrongType("no body").into()
        );
    }

    #[test]
    fn a_fault_names_what_to_send() {
        assert!(BodyFault::TooLarge(32 << 20).message().contains("32 MiB"));
        assert!(BodyFault::TooLarge(FORM).message().contains("4 KiB"));
    }
}
