//! Read-only client of the gateway's admin listener: `GET /status` and the event stream `GET /live`.
//!
//! Loopback, plain HTTP/1.1, GET only, so no client library is needed. Every field is optional: a gateway of another version
//! shows less, it never breaks the console. Nothing read here is trusted on screen; views clean it. `docs/console.md` lists
//! the shapes.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const CONNECT: Duration = Duration::from_secs(2);
const WHOLE: Duration = Duration::from_secs(5);
const MAX_BODY: usize = 32 << 20;
const MAX_EVENT: usize = 1 << 20;

/// The content of `/status`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) started_at: String,
    pub(crate) public_url: String,
    pub(crate) generation: u64,
    pub(crate) loaded_at: String,
    pub(crate) catalog_hash: String,
    pub(crate) routes_hash: String,
    /// `ok` or `rejected`.
    pub(crate) state: String,
    pub(crate) rejected_at: Option<String>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The files compared with the running configuration.
    pub(crate) changes: Vec<Change>,
    /// What the last reload changed.
    pub(crate) last_changes: Vec<Change>,
    pub(crate) providers: Vec<Provider>,
    pub(crate) routes: Vec<Route>,
    pub(crate) targets: Vec<Target>,
    pub(crate) alerts: Vec<Alert>,
    /// The gateways that share the ledger.
    pub(crate) nodes: Vec<Node>,
    pub(crate) models: Vec<Model>,
    pub(crate) retired: Vec<Retired>,
    pub(crate) ledger: LedgerState,
}

/// A gateway that shares the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    pub(crate) epoch: i64,
    pub(crate) name: String,
    pub(crate) version: String,
    /// Hashes of its catalog and routes.
    pub(crate) configuration: String,
    pub(crate) started_at: String,
    pub(crate) silent_ms: i64,
    pub(crate) per_second: u64,
    pub(crate) holds: u64,
}

/// Something the operator should look at, in words that name the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Alert {
    /// The key that it is about, where it is about one.
    pub(crate) key: String,
    /// The target that it is about: `provider/model`.
    pub(crate) target: String,
    pub(crate) text: String,
}

impl Alert {
    /// Whether it is about the key or target of this name.
    pub(crate) fn is_about(&self, name: &str) -> bool {
        !name.is_empty() && (self.key == name || self.target == name)
    }
}

/// One finding of the checker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Diagnostic {
    /// `error`, `warning` or `note`.
    pub(crate) severity: String,
    pub(crate) code: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The whole report with its caret, as plain text.
    pub(crate) rendered: String,
}

/// One difference between the files and what runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Change {
    /// `added`, `changed` or `removed`.
    pub(crate) kind: String,
    pub(crate) slug: String,
    pub(crate) what: String,
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
}

/// A provider as it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) simulated: bool,
    pub(crate) speaks: Vec<String>,
    pub(crate) in_flight: u64,
    pub(crate) max_concurrent: Option<u64>,
}

/// A route's policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Route {
    pub(crate) slug: String,
    pub(crate) on_disconnect: String,
}

/// A target, in the order in which its route tries them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Target {
    pub(crate) slug: String,
    /// The upstream's model name.
    pub(crate) target: String,
    pub(crate) provider: String,
    /// `closed`, `open` or `half_open`.
    pub(crate) state: String,
    pub(crate) failures: u64,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) open_for_ms: Option<u64>,
    pub(crate) reason: Option<String>,
    pub(crate) in_flight: u64,
}

/// One published model: the canonical columns, prices as exact decimal text in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Model {
    pub(crate) slug: String,
    pub(crate) model: String,
    pub(crate) provider: String,
    pub(crate) best_path: String,
    pub(crate) best_environments: Vec<String>,
    pub(crate) price: Price,
    pub(crate) capabilities: Vec<String>,
    pub(crate) context: u64,
    pub(crate) max_output: u64,
    pub(crate) aliases: Vec<String>,
}

/// The prices of a model below every tier.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Price {
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) cache_read: String,
    pub(crate) cache_write: String,
    pub(crate) cache_write_1h: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) per_image: Option<String>,
    pub(crate) per_request: Option<String>,
}

/// A slug that is no longer sold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Retired {
    pub(crate) slug: String,
    pub(crate) since: String,
    #[serde(rename = "use")]
    pub(crate) replacement: Option<String>,
}

/// How the gateway's ledger writer is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LedgerState {
    pub(crate) queue: u64,
    pub(crate) commit_p99_us: Option<u64>,
}

/// One finished request on `/live`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LiveEvent {
    pub(crate) request_id: String,
    pub(crate) at: String,
    pub(crate) key: Option<String>,
    pub(crate) slug: String,
    /// The model that was asked for, as the customer wrote it.
    pub(crate) asked: String,
    pub(crate) family: String,
    /// `provider/model`; empty when none was reached.
    pub(crate) target: String,
    pub(crate) status: u16,
    pub(crate) end_reason: String,
    pub(crate) usage: LiveUsage,
    /// Exact decimal text in USD, as `hold` and `loss`.
    pub(crate) charge: Option<String>,
    pub(crate) hold: Option<String>,
    pub(crate) loss: Option<String>,
    pub(crate) first_byte_ms: Option<u64>,
    pub(crate) total_ms: u64,
}

/// Token counts of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LiveUsage {
    pub(crate) input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

/// Where the admin listener is and what opens it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Client {
    authority: String,
    token: Option<String>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Client({})", self.authority)
    }
}

impl Client {
    /// Reads `http://host:port`. `None` for anything else.
    pub(crate) fn new(url: &str, token: Option<String>) -> Option<Self> {
        let authority = url.strip_prefix("http://")?.trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':')?;
        let plain = !host.is_empty()
            && authority.chars().all(|letter| letter.is_ascii_graphic() && !matches!(letter, '/' | '@' | '?' | '#'));
        (plain && port.parse::<u16>().is_ok()).then(|| Self { authority: authority.to_owned(), token })
    }

    /// Asks for the status once.
    pub(crate) async fn status(&self) -> io::Result<Status> {
        let whole = async {
            let mut body = self.get("/status").await?;
            let mut text = Vec::new();
            while let Some(part) = body.part().await? {
                text.extend_from_slice(&part);
                if text.len() > MAX_BODY {
                    return Err(io::Error::other("the status is too large"));
                }
            }
            decode(&text)
        };
        tokio::time::timeout(WHOLE, whole).await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
    }

    /// Opens the stream of requests.
    pub(crate) async fn live(&self) -> io::Result<LiveStream> {
        let opened = tokio::time::timeout(WHOLE, self.get("/live")).await;
        let body = opened.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))?;
        Ok(LiveStream { body, pending: Vec::new() })
    }

    async fn get(&self, path: &str) -> io::Result<Body> {
        let connected = tokio::time::timeout(CONNECT, TcpStream::connect(&self.authority)).await;
        let mut stream = connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))?;
        let token = self.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\naccept: */*\r\nconnection: close\r\n{token}\r\n", self.authority);
        stream.write_all(head.as_bytes()).await?;
        Body::open(BufReader::new(stream)).await
    }
}

/// The open stream of requests.
pub(crate) struct LiveStream {
    body: Body,
    pending: Vec<u8>,
}

impl LiveStream {
    /// The next requests that arrived, at least one; `None` when the gateway ended the stream.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<LiveEvent>>> {
        loop {
            let Some(part) = self.body.part().await? else { return Ok(None) };
            self.pending.extend_from_slice(&part);
            let events = take_events(&mut self.pending);
            if self.pending.len() > MAX_EVENT {
                return Err(io::Error::other("an event of the gateway is too large"));
            }
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
    }
}

/// Takes the whole lines out of `pending` and reads those that carry data. Unreadable events are passed over.
fn take_events(pending: &mut Vec<u8>) -> Vec<LiveEvent> {
    let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
    let whole: Vec<u8> = pending.drain(..=end).collect();
    let data = |line: &[u8]| line.strip_prefix(b"data:").and_then(|data| decode(data).ok());
    whole.split(|byte| *byte == b'\n').filter_map(data).collect()
}

/// A body that is still arriving.
struct Body {
    stream: BufReader<TcpStream>,
    framing: Framing,
}

enum Framing {
    Length(u64),
    Chunked,
    ToEnd,
}

impl Body {
    /// Reads the head; anything but a 200 is an error that says what came.
    async fn open(mut stream: BufReader<TcpStream>) -> io::Result<Self> {
        let status = line(&mut stream).await?;
        let code = status.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut framing = Framing::ToEnd;
        for _ in 0..100 {
            let header = line(&mut stream).await?.to_ascii_lowercase();
            if header.is_empty() {
                return match code.as_str() {
                    "200" => Ok(Self { stream, framing }),
                    "401" | "403" => Err(io::Error::other("the admin listener requires its token: pass --admin-token-file")),
                    code => Err(io::Error::other(format!("the admin listener answered {}", crate::sanitize::cut(code, 12)))),
                };
            }
            match header.split_once(':').map(|(name, value)| (name, value.trim())) {
                Some(("content-length", value)) => framing = Framing::Length(value.parse().map_err(io::Error::other)?),
                Some(("transfer-encoding", "chunked")) => framing = Framing::Chunked,
                _ => {}
            }
        }
        Err(io::Error::other("the answer has too many headers"))
    }

    /// The next bytes; `None` at the end.
    async fn part(&mut self) -> io::Result<Option<Vec<u8>>> {
        let wanted = match &mut self.framing {
            Framing::ToEnd => 64 << 10,
            Framing::Length(rest) => *rest,
            Framing::Chunked => {
                let size = line(&mut self.stream).await?;
                let size = size.split(';').next().unwrap_or_default().trim();
                let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
                return self.chunk(size).await;
            }
        };
        if wanted == 0 {
            return Ok(None);
        }
        let mut part = Vec::new();
        (&mut self.stream).take(wanted.min(64 << 10)).read_buf(&mut part).await?;
        if let Framing::Length(rest) = &mut self.framing {
            if part.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            *rest = rest.saturating_sub(part.len() as u64);
        }
        Ok((!part.is_empty()).then_some(part))
    }

    async fn chunk(&mut self, size: u64) -> io::Result<Option<Vec<u8>>> {
        if size == 0 {
            return Ok(None);
        }
        if size > MAX_BODY as u64 {
            return Err(io::Error::other("a chunk is too large"));
        }
        let mut part = Vec::new();
        (&mut self.stream).take(size).read_to_end(&mut part).await?;
        if (part.len() as u64) < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line(&mut self.stream).await?;
        Ok(Some(part))
    }
}

/// One line of at most 16 KiB, without its end.
async fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut bytes = Vec::new();
    stream.take(16 << 10).read_until(b'\n', &mut bytes).await?;
    if bytes.pop() != Some(b'\n') {
        return Err(io::Error::other("the answer is not HTTP"));
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Reads JSON. A null counts as absent, so that fields of another version never make the whole document unreadable.
fn decode<T: DeserializeOwned>(text: &[u8]) -> io::Result<T> {
    let read = serde_json::from_slice(text).map(without_nulls).and_then(serde_json::from_value);
    read.map_err(|error| io::Error::other(format!("the gateway's answer is not what this console reads: {error}")))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        Value::Object(fields) => {
            fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name, without_nulls(value))).collect()
        }
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request with these bytes, a few at a time.
    async fn answering(answer: &'static str) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()), None).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await.unwrap();
            for part in answer.as_bytes().chunks(7) {
                stream.write_all(part).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        client
    }

    #[tokio::test]
    async fn a_status_is_read_in_every_framing() {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 35\r\n\r\n{\"generation\":4,\"loaded_at\":null  }",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\n{\"generation\":4,\r\n4;x\r\n\"a\":\r\n3\r\n[]}\r\n0\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\n{\"generation\":4}",
        ] {
            assert_eq!(answering(answer).await.status().await.unwrap().generation, 4, "{answer}");
        }
        for answer in ["HTTP/1.1 503 No\r\n\r\n", "not http\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", ""] {
            assert!(answering(answer).await.status().await.is_err(), "{answer}");
        }
    }

    #[tokio::test]
    async fn live_events_are_read_across_chunks() {
        let answer = "HTTP/1.1 200 OK\r\n\r\n: hello\n\nevent: request\ndata: {\"slug\":\"a\",\"key\":null}\n\ndata: broken\n\ndata: {\"slug\":\"b\"}\n\n";
        let mut live = answering(answer).await.live().await.unwrap();
        let mut slugs = Vec::new();
        while let Some(events) = live.next().await.unwrap() {
            slugs.extend(events.into_iter().map(|event| event.slug));
        }
        assert_eq!(slugs, ["a", "b"]);
    }

    #[test]
    fn only_plain_addresses_are_taken() {
        assert!(Client::new("http://127.0.0.1:9090/", None).is_some());
        for wrong in [
            "https://127.0.0.1:9090",
            "127.0.0.1:9090",
            "http://127.0.0.1",
            "http://a b:1",
            "http://x:y@h:1\r\n:2",
            "http://h:1/x:2",
        ] {
            assert!(Client::new(wrong, None).is_none(), "{wrong}");
        }
    }
}
