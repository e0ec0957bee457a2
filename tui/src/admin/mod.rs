//! Read-only client of the gateway's admin listener: `GET /status`, `GET /requests/{id}` and the event stream `GET /live`, over
//! HTTP/1.1, plain or within TLS.
//!
//! Text read here is not trusted on screen; views clean it.

mod shapes;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use farebox_ledger::LedgerAddress;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::tls;

pub(crate) use shapes::{
    ClientField, LiveEvent, OneRequest, ReportedAlert, ReportedChange, ReportedDiagnostic,
    ReportedLesson, ReportedModel, ReportedNode, ReportedServer, ReportedTarget, ReportedUnderWay,
    StatusReport,
};

const CONNECT: Duration = Duration::from_secs(2);
const WHOLE: Duration = Duration::from_secs(5);
const MAX_STATUS: usize = 32 << 20;
const MAX_EVENT: usize = 1 << 20;

/// Where the token that opens the admin listener comes from.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum TokenSource {
    /// The operator's token.
    Given(String),
    /// What the gateway of this ledger, with this state file, wrote at its start: read for each request, because each start has its own.
    /// For loopback alone: nowhere else is it asked for, or safe on its way.
    OfGateway(LedgerAddress, Option<PathBuf>),
}

impl TokenSource {
    fn read(&self, authority: &str) -> Option<String> {
        match self {
            Self::Given(token) => Some(token.clone()),
            Self::OfGateway(ledger, state) if is_loopback(authority) => {
                ledger.admin_token(state.as_deref())
            }
            Self::OfGateway(..) => None,
        }
    }
}

fn is_loopback(authority: &str) -> bool {
    let (host, _) = authority.rsplit_once(':').unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The address of the admin listener, and its token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AdminClient {
    authority: String,
    token: TokenSource,
    /// The listener speaks TLS with the certificate of this file.
    certificate: Option<PathBuf>,
}

/// A way to the listener, encrypted or not.
trait AdminStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> AdminStream for T {}

impl std::fmt::Debug for AdminClient {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Client({})", self.authority)
    }
}

impl AdminClient {
    /// Reads `http://host:port`, `https://host:port`, or `host:port` as in the gateway's own setting. With a certificate it is TLS in
    /// any case: one file of settings serves gateway and console.
    ///
    /// # Errors
    /// What to write instead.
    pub(crate) fn new(
        url: &str,
        token: TokenSource,
        certificate: Option<PathBuf>,
    ) -> Result<Self, &'static str> {
        if url.starts_with("https://") && certificate.is_none() {
            return Err(
                "say whose certificate is trusted: --admin-tls-cert FILE, the file that the gateway has, too",
            );
        }
        let authority = (url.strip_prefix("http://"))
            .or_else(|| url.strip_prefix("https://"))
            .unwrap_or(url)
            .trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').unwrap_or_default();
        let plain = !host.is_empty()
            && authority.chars().all(|letter| {
                letter.is_ascii_graphic() && !matches!(letter, '/' | '@' | '?' | '#')
            });
        if !plain || port.parse::<u16>().is_err() {
            return Err("write it as http://127.0.0.1:9090");
        }
        Ok(Self {
            authority: authority.to_owned(),
            token,
            certificate,
        })
    }

    /// Where it is, for people.
    pub(crate) fn url(&self) -> String {
        let scheme = self.certificate.as_ref().map_or("http", |_| "https");
        format!("{scheme}://{}", self.authority)
    }

    /// A connection; over TLS only to who has the key of the certificate.
    async fn connect(&self) -> io::Result<Box<dyn AdminStream>> {
        let connected = async {
            let stream = TcpStream::connect(&self.authority).await?;
            let way: Box<dyn AdminStream> = match &self.certificate {
                Some(file) => Box::new(tls::connect(stream, file).await?),
                None => Box::new(stream),
            };
            Ok(way)
        };
        tokio::time::timeout(CONNECT, connected)
            .await
            .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
    }

    /// Asks for the status once.
    pub(crate) async fn status(&self) -> io::Result<StatusReport> {
        self.document("/status").await
    }

    /// What the gateway knows of the request with this id, ours or its answer's; `None` if nothing.
    pub(crate) async fn request(&self, id: &str) -> io::Result<Option<OneRequest>> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if id.is_empty() || !id.bytes().all(letter) {
            return Ok(None);
        }
        match self.document(&format!("/requests/{id}")).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    async fn document<T: DeserializeOwned>(&self, path: &str) -> io::Result<T> {
        let whole = async {
            let body = Limited::new(self.get(path).await?, MAX_STATUS)
                .collect()
                .await
                .map_err(io::Error::other)?;
            decode(&body.to_bytes())
        };
        tokio::time::timeout(WHOLE, whole)
            .await
            .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
    }

    /// Opens the stream of requests.
    pub(crate) async fn live(&self) -> io::Result<LiveStream> {
        let opened = tokio::time::timeout(WHOLE, self.get("/live")).await;
        let body = opened.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))?;
        Ok(LiveStream {
            body,
            pending: Vec::new(),
        })
    }

    /// Requests a path. Anything but a 200 is an error that quotes the answer.
    async fn get(&self, path: &str) -> io::Result<Incoming> {
        let way = self.connect().await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(way))
            .await
            .map_err(io::Error::other)?;
        // Ends with the answer's body, because nothing else is sent.
        tokio::spawn(connection);
        let mut request = Request::get(path).header(header::HOST, &self.authority);
        if let Some(token) = self.token.read(&self.authority) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(io::Error::other)?;
        let answer = sender.send_request(request).await.map_err(|error| {
            if error.is_parse() && self.certificate.is_none() {
                return io::Error::other(
                    "it does not answer in HTTP; if the gateway has --admin-tls-cert, pass it here, too",
                );
            }
            io::Error::other(error)
        })?;
        match answer.status() {
            StatusCode::OK => Ok(answer.into_body()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(io::Error::other(
                "the admin listener wants its own token: pass the gateway's --ledger, --state or --admin-token-file",
            )),
            StatusCode::NOT_FOUND => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the admin listener answered 404",
            )),
            other => Err(io::Error::other(format!(
                "the admin listener answered {}",
                other.as_u16()
            ))),
        }
    }
}

/// The open stream of requests.
pub(crate) struct LiveStream {
    body: Incoming,
    pending: Vec<u8>,
}

impl LiveStream {
    /// The next requests that arrived, at least one; `None` when the gateway ended the stream.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<LiveEvent>>> {
        loop {
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            self.pending.extend_from_slice(
                frame
                    .map_err(io::Error::other)?
                    .data_ref()
                    .map_or(&[][..], |data| data),
            );
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

/// Takes the complete lines out of `pending` and parses those that carry data. Unreadable events are skipped.
fn take_events(pending: &mut Vec<u8>) -> Vec<LiveEvent> {
    let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else {
        return Vec::new();
    };
    let whole: Vec<u8> = pending.drain(..=end).collect();
    let data = |line: &[u8]| {
        line.strip_prefix(b"data:")
            .and_then(|data| decode(data).ok())
    };
    whole
        .split(|byte| *byte == b'\n')
        .filter_map(data)
        .collect()
}

/// Reads JSON. A null counts as absent, so that fields of another version never make the whole document unreadable.
fn decode<T: DeserializeOwned>(text: &[u8]) -> io::Result<T> {
    let read = serde_json::from_slice(text)
        .map(without_nulls)
        .and_then(serde_json::from_value);
    read.map_err(|error| {
        io::Error::other(format!(
            "the gateway's answer is not what this console reads: {error}"
        ))
    })
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_nulls(value)))
            .collect(),
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// No gateway has written a token there.
    fn nobody() -> TokenSource {
        TokenSource::OfGateway(PathBuf::from("/nonexistent/farebox.db").into(), None)
    }

    /// Answers one request with these bytes, a few at a time.
    async fn answering(answer: &'static str) -> AdminClient {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client =
            AdminClient::new(&listener.local_addr().unwrap().to_string(), nobody(), None).unwrap();
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
            assert_eq!(
                answering(answer).await.status().await.unwrap().generation,
                4,
                "{answer}"
            );
        }
        for answer in [
            "HTTP/1.1 503 No\r\n\r\n",
            "not http\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}",
            "",
        ] {
            assert!(answering(answer).await.status().await.is_err(), "{answer}");
        }
    }

    #[tokio::test]
    async fn each_request_has_the_token_that_the_gateway_wrote_last() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = LedgerAddress::File(folder.path().join("farebox.db"));
        let file = ledger.admin_token_file(None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let token = TokenSource::OfGateway(ledger, None);
        let address = listener.local_addr().unwrap().to_string();
        let client = AdminClient::new(&address, token, None).unwrap();
        let ask = async || {
            let answering = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 1024];
                let read = stream.read(&mut head).await.unwrap();
                let answer = b"HTTP/1.0 200 OK\r\n\r\n{\"shortened\":true}";
                stream.write_all(answer).await.unwrap();
                String::from_utf8(head[..read].to_vec()).unwrap()
            };
            let (head, status) = tokio::join!(answering, client.status());
            assert!(status.unwrap().shortened);
            head
        };
        assert!(!ask().await.contains("authorization"));
        for _ in 0..2 {
            let written = farebox_ledger::AdminToken::write(file.clone()).unwrap();
            let sent = format!("authorization: Bearer {}", written.reveal());
            assert!(ask().await.contains(&sent));
            for (authority, sends) in [
                ("localhost:9090", true),
                ("127.0.0.11:9090", true),
                ("[::1]:9090", true),
                ("10.0.0.5:9090", false),
                ("localhost.example:9090", false),
            ] {
                assert_eq!(client.token.read(authority).is_some(), sends, "{authority}");
            }
        }
        assert!(!ask().await.contains("authorization"));
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
        for right in [
            "http://127.0.0.1:9090/",
            "127.0.0.1:9090",
            "localhost:9090",
            "[::1]:9090",
        ] {
            assert!(AdminClient::new(right, nobody(), None).is_ok(), "{right}");
        }
        for wrong in [
            "https://127.0.0.1:9090",
            "127.0.0.1",
            "9090",
            "",
            "http://127.0.0.1",
            "http://a b:1",
            "http://x:y@h:1\r\n:2",
            "http://h:1/x:2",
        ] {
            assert!(AdminClient::new(wrong, nobody(), None).is_err(), "{wrong}");
        }
        let file = Some(PathBuf::from("admin.crt"));
        for given in [
            "https://127.0.0.1:9090",
            "http://127.0.0.1:9090",
            "127.0.0.1:9090",
        ] {
            let client = AdminClient::new(given, nobody(), file.clone()).unwrap();
            assert_eq!(client.url(), "https://127.0.0.1:9090");
        }
    }

    fn pem(name: &str) -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/tls")).join(name)
    }

    /// Answers over TLS with this certificate, whoever asks.
    async fn answering_over_tls(name: &str) -> String {
        use rustls::pki_types::pem::PemObject as _;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        let certificate = CertificateDer::from_pem_file(pem(&format!("{name}.crt"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(pem(&format!("{name}.key"))).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut head = [0; 1024];
                let _ = stream.read(&mut head).await.unwrap();
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"generation\":4}";
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn a_listener_with_tls_is_read_if_it_has_the_trusted_certificate() {
        let address = answering_over_tls("first").await;
        let client = |url: &str, file| AdminClient::new(url, nobody(), file).unwrap();
        for url in [address.clone(), format!("https://{address}")] {
            let trusting = client(&url, Some(pem("first.crt")));
            assert_eq!(trusting.status().await.unwrap().generation, 4);
        }
        for (client, says) in [
            (
                client(&address, Some(pem("second.crt"))),
                "another certificate than --admin-tls-cert",
            ),
            (client(&address, Some(pem("none.crt"))), "none.crt"),
            (client(&address, None), "--admin-tls-cert"),
        ] {
            let error = client.status().await.unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let missing = AdminClient::new(&format!("https://{address}"), nobody(), None);
        assert!(missing.unwrap_err().contains("--admin-tls-cert FILE"));
    }
}
