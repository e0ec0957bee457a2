//! A fake upstream that follows a script, over real sockets.
//!
//! HTTP/1.1 is written by hand so that it can misbehave: resets, stalls, torn frames, malformed chunks. It records every request
//! and whether the peer closed the connection before its answer was complete, and sums the usage of the answers it finished, so
//! that tests can compare bills with the truth. It never sleeps unless its script says so.
//!
//! It is as strict as the vendor that it plays: what the real service refuses is refused, and fails the test, whatever the script
//! says. A test that needs a tolerant upstream says why.
//!
//! ```ignore
//! let upstream = ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").stream().stall_after(2)).await;
//! // … base_url = upstream.base_url() …
//! upstream.closed_by_peer(0).await;
//! ```
#![cfg(test)]

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use farebox_doubles::{ArrivedRequest, Vendor, VendorRefusal};
use farebox_protocol::ReportedUsage;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[path = "classes.rs"]
pub(crate) mod classes;
#[path = "reply.rs"]
mod reply;
#[path = "speech.rs"]
mod speech;

pub(crate) use reply::{Gate, Reply};
pub(crate) use speech::Speech;

use reply::Step;

/// How long the waiting calls wait before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is answered to which request.
pub(crate) enum Script {
    /// One reply for each request; the last one stays.
    InOrder(VecDeque<Reply>),
    /// A reply made from the request and its number, from 0.
    By(Answerer),
}

/// Makes a reply from the request and its number.
type Answerer = Box<dyn FnMut(&Seen, usize) -> Reply + Send>;

impl Script {
    /// Replies made from the requests.
    pub(crate) fn by(reply: impl FnMut(&Seen, usize) -> Reply + Send + 'static) -> Self {
        Self::By(Box::new(reply))
    }

    fn next(&mut self, seen: &Seen, number: usize) -> Reply {
        match self {
            Self::InOrder(replies) if replies.len() > 1 => replies.pop_front().unwrap(),
            Self::InOrder(replies) => replies.front().cloned().expect("a script has a reply"),
            Self::By(reply) => reply(seen, number),
        }
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::from([reply])
    }
}

impl<const N: usize> From<[Reply; N]> for Script {
    fn from(replies: [Reply; N]) -> Self {
        Self::InOrder(replies.into())
    }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        Self::InOrder(replies.into())
    }
}

/// One request as it arrived, and what became of it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// `POST`.
    pub(crate) method: String,
    /// With the query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body's bytes.
    pub(crate) body: Vec<u8>,
    /// When it was complete.
    pub(crate) at: Instant,
    /// Which connection brought it, from 0.
    pub(crate) connection: usize,
    /// When the peer closed the connection before the answer was complete.
    pub(crate) closed_at: Option<Instant>,
    /// The whole script of the reply was played.
    pub(crate) completed: bool,
    /// Parts of the reply that were sent, or perhaps sent.
    pub(crate) sent: Arc<AtomicUsize>,
}

impl Seen {
    /// The first header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the request's body is JSON")
    }
}

/// The fake upstream. Dropping it closes its listener and all connections.
pub(crate) struct ScriptedUpstream {
    port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

struct Inner {
    script: Script,
    seen: Vec<Seen>,
    connections: usize,
    served: ReportedUsage,
    strict: Strict,
    refused: Vec<VendorRefusal>,
    /// Bodies are not kept: there are many, and large ones.
    forgets: bool,
    /// What its list of models names, and the status of that answer.
    models: Vec<String>,
    list_status: u16,
}

/// Whose rules an upstream follows, and what it does with a request that breaks one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strict {
    /// Refuses it, and the test fails. `None`: those of the vendor who defined the family.
    Fails(Option<Vendor>),
    /// Refuses it, as the test expects.
    Refuses(Vendor),
    /// Answers it all the same.
    Tolerates,
}

impl Inner {
    /// What the vendor answers to a request that it does not accept.
    fn refusal(&mut self, seen: &Seen) -> Option<Reply> {
        let vendor = match self.strict {
            Strict::Tolerates => return None,
            Strict::Fails(None) if seen.path.contains("/messages") => Vendor::Anthropic,
            Strict::Fails(None) => Vendor::OpenAi,
            Strict::Fails(Some(vendor)) | Strict::Refuses(vendor) => vendor,
        };
        farebox_doubles::wire(vendor, &seen.path)?;
        let request = ArrivedRequest {
            path: &seen.path,
            headers: &seen.headers,
            body: &seen.body,
        };
        let refusal = farebox_doubles::judge(vendor, &request).err()?;
        let body = refusal.body.clone();
        let reply = Reply::whole(refusal.status, "application/json", body);
        self.refused.push(refusal);
        Some(reply)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn change<T>(&self, with: impl FnOnce(&mut Inner) -> T) -> T {
        let result = with(&mut self.lock());
        self.changes.send_modify(|count| *count += 1);
        result
    }
}

impl ScriptedUpstream {
    /// Listens on a free loopback port. Plays the vendor who defined the family of each request.
    pub(crate) async fn start(script: impl Into<Script>) -> Self {
        Self::listen(script, Strict::Fails(None)).await
    }

    /// The same as this vendor.
    pub(crate) async fn playing(vendor: Vendor, script: impl Into<Script>) -> Self {
        Self::listen(script, Strict::Fails(Some(vendor))).await
    }

    /// The same for a test that sends what the vendor refuses: it gets the refusal, and the test goes on.
    pub(crate) async fn refusing(vendor: Vendor, script: impl Into<Script>) -> Self {
        Self::listen(script, Strict::Refuses(vendor)).await
    }

    /// Answers whatever it is sent. The test says in its name or first line why it needs that.
    pub(crate) async fn tolerant(script: impl Into<Script>) -> Self {
        Self::listen(script, Strict::Tolerates).await
    }

    async fn listen(script: impl Into<Script>, strict: Strict) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a loopback port");
        let port = listener.local_addr().expect("an address").port();
        let inner = Inner {
            script: script.into(),
            seen: Vec::new(),
            connections: 0,
            served: ReportedUsage::default(),
            strict,
            refused: Vec::new(),
            forgets: false,
            models: Vec::new(),
            list_status: 200,
        };
        let shared = Arc::new(Shared {
            inner: Mutex::new(inner),
            changes: watch::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { port, shared, task }
    }

    /// What a provider's `base_url` is set to.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Follows another script from the next request on.
    pub(crate) fn follow(&self, script: impl Into<Script>) {
        self.shared.lock().script = script.into();
    }

    /// Keeps no bodies from the next request on.
    pub(crate) fn forget(&self) {
        self.shared.lock().forgets = true;
    }

    /// Answers with this status and these models when it is asked for its list.
    pub(crate) fn list(&self, status: u16, models: &[&str]) {
        let mut inner = self.shared.lock();
        inner.list_status = status;
        inner.models = models.iter().map(|id| (*id).to_owned()).collect();
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// When the peer closed the connection under each answer, of all requests so far.
    pub(crate) fn closings(&self) -> Vec<Option<Instant>> {
        self.shared
            .lock()
            .seen
            .iter()
            .map(|seen| seen.closed_at)
            .collect()
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// The true usage of all answers whose script was played to its end.
    pub(crate) fn served(&self) -> ReportedUsage {
        self.shared.lock().served
    }

    /// Waits for the request with this number, from 0.
    pub(crate) async fn request(&self, number: usize) -> Seen {
        self.when("a request", |inner| inner.seen.get(number).cloned())
            .await
    }

    /// Waits until the peer has closed the connection under the answer with this number, and says how long after the request.
    pub(crate) async fn closed_by_peer(&self, number: usize) -> Duration {
        self.when("the peer to close", |inner| {
            let seen = inner.seen.get(number)?;
            seen.closed_at.map(|closed| closed - seen.at)
        })
        .await
    }

    /// Waits until the answer with this number has been played to its end.
    pub(crate) async fn completed(&self, number: usize) {
        self.when("an answer's end", |inner| {
            inner
                .seen
                .get(number)
                .filter(|seen| seen.completed)
                .map(|_| ())
        })
        .await;
    }

    async fn when<T>(&self, what: &str, ready: impl Fn(&Inner) -> Option<T>) -> T {
        let mut changes = self.shared.changes.subscribe();
        let found = async {
            loop {
                if let Some(found) = ready(&self.shared.lock()) {
                    return found;
                }
                changes.changed().await.expect("the upstream runs");
            }
        };
        tokio::time::timeout(PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("waited in vain for {what}"))
    }
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.task.abort();
        let inner = self.shared.lock();
        let fails = matches!(inner.strict, Strict::Fails(_)) && !std::thread::panicking();
        let why: Vec<&str> = inner.refused.iter().map(|one| one.why.as_str()).collect();
        assert!(
            !fails || why.is_empty(),
            "the real service refuses {why:?}; see tests/doubles/"
        );
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // A set owns the connections, so that dropping the upstream ends them.
    let mut open = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).ok();
        let connection = shared.change(|inner| {
            inner.connections += 1;
            inner.connections - 1
        });
        open.spawn(serve(stream, connection, Arc::clone(&shared)));
    }
}

/// How a reply left its connection.
#[derive(PartialEq, Eq)]
enum After {
    KeepAlive,
    Close,
    Reset,
}

async fn serve(mut stream: TcpStream, connection: usize, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    loop {
        let (mut read, mut write) = stream.split();
        let Some(seen) = read_request(&mut read, &mut buffer, connection).await else {
            return;
        };
        if seen.method == "GET" && seen.path.ends_with("/models") {
            // The gateway asks for it when a target is in trouble; no script is about it.
            let models: Vec<Value> = (shared.lock().models.iter())
                .map(|id| json!({ "id": id }))
                .collect();
            let status = shared.lock().list_status;
            let list = Reply::json(status, &json!({ "object": "list", "data": models }));
            let played = play(&list, &seen, &mut read, &mut write).await;
            if played.is_ok_and(|after| after == After::KeepAlive) {
                continue;
            }
            return;
        }
        let (number, reply) = shared.change(|inner| {
            let number = inner.seen.len();
            let kept = if inner.forgets {
                Seen {
                    body: Vec::new(),
                    ..seen.clone()
                }
            } else {
                seen.clone()
            };
            inner.seen.push(kept);
            let scripted = inner.script.next(&seen, number);
            (number, inner.refusal(&seen).unwrap_or(scripted))
        });
        let played = play(&reply, &seen, &mut read, &mut write).await;
        shared.change(|inner| match &played {
            Ok(_) => {
                inner.seen[number].completed = true;
                add(&mut inner.served, reply.usage());
            }
            Err(_) => inner.seen[number].closed_at = Some(Instant::now()),
        });
        match played {
            Ok(After::KeepAlive) => {}
            Ok(After::Reset) => {
                socket2::SockRef::from(&stream)
                    .set_linger(Some(Duration::ZERO))
                    .ok();
                return;
            }
            Ok(After::Close) | Err(_) => return,
        }
    }
}

async fn read_request(
    read: &mut ReadHalf<'_>,
    buffer: &mut Vec<u8>,
    connection: usize,
) -> Option<Seen> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if read.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head: Vec<u8> = buffer.drain(..head_end).collect();
    let head = String::from_utf8(head).expect("a request head in UTF-8");
    let mut lines = head.trim_end().split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok());
    let length: usize = length.unwrap_or(0);
    while buffer.len() < length {
        if read.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer.drain(..length).collect();
    let (at, sent) = (Instant::now(), Arc::default());
    Some(Seen {
        method,
        path,
        headers,
        body,
        at,
        connection,
        closed_at: None,
        completed: false,
        sent,
    })
}

/// Plays a reply. `Err`: the peer went away before its end.
async fn play(
    reply: &Reply,
    seen: &Seen,
    read: &mut ReadHalf<'_>,
    write: &mut WriteHalf<'_>,
) -> io::Result<After> {
    let mut head = true;
    for step in reply.steps() {
        match step {
            Step::Send(bytes) => {
                seen.sent
                    .fetch_add(usize::from(!std::mem::take(&mut head)), Ordering::SeqCst);
                write.write_all(&bytes).await?;
                write.flush().await?;
            }
            Step::Wait(time) => unless_closed(read, tokio::time::sleep(time)).await?,
            Step::Until(time) => {
                let when = (seen.at + time).into();
                unless_closed(read, tokio::time::sleep_until(when)).await?;
            }
            Step::Gate(gate) => unless_closed(read, gate.opened()).await?,
            Step::Stall => unless_closed(read, std::future::pending()).await?,
            Step::Reset => return Ok(After::Reset),
            Step::Close => return Ok(After::Close),
        }
    }
    Ok(After::KeepAlive)
}

/// A client sends nothing while it is answered, so the only thing to read is the end.
async fn unless_closed(read: &mut ReadHalf<'_>, wait: impl Future<Output = ()>) -> io::Result<()> {
    let mut byte = [0];
    tokio::select! {
        () = wait => Ok(()),
        _ = read.peek(&mut byte) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

fn add(sum: &mut ReportedUsage, more: ReportedUsage) {
    sum.input += more.input;
    sum.cache_read += more.cache_read;
    sum.cache_write += more.cache_write;
    sum.cache_write_1h += more.cache_write_1h;
    sum.output += more.output;
    sum.reasoning += more.reasoning;
}

#[cfg(test)]
#[path = "upstream_tests.rs"]
mod tests;
