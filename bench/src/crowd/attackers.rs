//! Single attackers, each against the good customer alone, and then all of them together.
//!
//! What an attacker does is fixed: so many connections, so many requests a second. It works on the gateway's own CPUs, in the idle
//! class. What that alone costs the customer is measured by spinning threads that burn as much CPU in its place.

use std::io;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::lowly::lowly;
use crate::answers::SLUG;

/// Slow forms that are open at the same time, unless the gateway ends them.
const FORMS: u64 = 800;
/// After this long one that was ended begins again: 270 a second, some 80 kB.
const AGAIN: Duration = Duration::from_secs(3);
/// Uploads that hardly come.
const BODIES: u64 = 300;
/// Compressed bodies, and requests with documents, under way at once.
const HEAVY: u64 = 8;
/// Large bodies without a key, and connections for pages, at once.
const UNKEYED: u64 = 24;
/// A large body without a key.
const UNKEYED_BYTES: usize = 32 << 20;
/// Requests for pages on one connection.
const PIPELINED: usize = 200;
/// Between two of one connection.
const PAUSE: Duration = Duration::from_secs(1);
/// What a compressed body of a few kB becomes.
const DECODED: usize = 30 << 20;
/// Objects of a document.
const OBJECTS: usize = 100_000;

/// What an attacker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttackAct {
    /// Sign-in forms without a key that come byte by byte, from so many addresses.
    Forms(u64),
    /// Compressed bodies of tiny values.
    Gzip,
    /// Documents of many small objects, to be counted for free and to be paid for.
    Documents,
    /// Bodies with a key that come byte by byte.
    Bodies,
    /// Large bodies without a key, and large forms of many parts.
    Unkeyed,
    /// Pages and documents that need no key, many on one connection.
    Pages,
}

/// A proxy with its shipped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShippedProxy {
    Nginx,
    Caddy,
}

/// An attacker that is measured by itself.
#[derive(Debug)]
pub(super) struct Attacker {
    pub(super) name: &'static str,
    pub(super) acts: &'static [AttackAct],
    /// It and the customer come through this proxy.
    pub(super) through: Option<ShippedProxy>,
}

use AttackAct::{Bodies, Documents, Forms, Gzip, Pages, Unkeyed};
use ShippedProxy::{Caddy, Nginx};

/// What strangers and customers do at the same time.
const ALL: &[AttackAct] = &[Forms(64), Gzip, Documents, Bodies, Unkeyed, Pages];

pub(super) const ATTACKERS: [Attacker; 18] = [
    of("forms-1", &[Forms(1)], None),
    of("forms-4", &[Forms(4)], None),
    of("forms-64", &[Forms(64)], None),
    of("proxied-1", &[Forms(1)], Some(Nginx)),
    of("proxied-4", &[Forms(4)], Some(Nginx)),
    of("proxied-64", &[Forms(64)], Some(Nginx)),
    of("caddy-64", &[Forms(64)], Some(Caddy)),
    of("unkeyed", &[Unkeyed], None),
    of("proxied-unkeyed", &[Unkeyed], Some(Nginx)),
    of("caddy-unkeyed", &[Unkeyed], Some(Caddy)),
    of("pages", &[Pages], None),
    of("proxied-pages", &[Pages], Some(Nginx)),
    of("gzip", &[Gzip], None),
    of("documents", &[Documents], None),
    of("bodies", &[Bodies], None),
    of("together", ALL, None),
    of("proxied-together", ALL, Some(Nginx)),
    of("caddy-together", ALL, Some(Caddy)),
];

const fn of(
    name: &'static str,
    acts: &'static [AttackAct],
    through: Option<ShippedProxy>,
) -> Attacker {
    Attacker {
        name,
        acts,
        through,
    }
}

/// An attacker at work, until it is stopped.
#[derive(Debug)]
pub(super) struct Attack {
    runtime: Runtime,
    shared: Arc<AttackShared>,
}

#[derive(Debug)]
struct AttackShared {
    gateway: SocketAddr,
    /// The page that forms seem to come from.
    origin: String,
    /// Keys without money, and with a dollar.
    poor: Vec<String>,
    rich: Vec<String>,
    begun: AtomicU64,
    gzip: Vec<u8>,
    document: String,
}

impl Attack {
    pub(super) fn start(
        attacker: &Attacker,
        gateway: SocketAddr,
        origin: SocketAddr,
        secrets: &[String],
    ) -> io::Result<Self> {
        let runtime = lowly().worker_threads(2).build()?;
        let every_other = |first: usize| secrets.iter().skip(first).step_by(2).cloned().collect();
        let shared = Arc::new(AttackShared {
            gateway,
            origin: format!("http://{origin}"),
            poor: every_other(1),
            rich: every_other(0),
            begun: AtomicU64::new(0),
            gzip: tiny_values()?,
            document: document(),
        });
        for act in attacker.acts {
            let many = match act {
                AttackAct::Forms(_) => FORMS,
                AttackAct::Bodies => BODIES,
                AttackAct::Gzip | AttackAct::Documents => HEAVY,
                AttackAct::Unkeyed | AttackAct::Pages => UNKEYED,
            };
            for number in 0..many {
                runtime.spawn(again(Arc::clone(&shared), *act, number));
            }
        }
        Ok(Self { runtime, shared })
    }

    /// What it has begun so far.
    pub(super) fn begun(&self) -> u64 {
        self.shared.begun.load(Ordering::Relaxed)
    }

    /// Goes away at once.
    pub(super) fn stop(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

async fn again(shared: Arc<AttackShared>, act: AttackAct, number: u64) {
    for round in 0.. {
        let _ = match act {
            AttackAct::Forms(addresses) => shared.form(number % addresses).await,
            AttackAct::Bodies => shared.body(number).await,
            AttackAct::Gzip => shared.compressed(number + round).await,
            AttackAct::Documents => shared.documents(number + round).await,
            AttackAct::Unkeyed => shared.unkeyed(number + round).await,
            AttackAct::Pages => shared.pages(number + round).await,
        };
        let pause = match act {
            AttackAct::Forms(_) | AttackAct::Bodies => AGAIN,
            AttackAct::Gzip | AttackAct::Documents | AttackAct::Unkeyed | AttackAct::Pages => PAUSE,
        };
        sleep(pause).await;
    }
}

impl AttackShared {
    async fn connect(&self, address: u64) -> io::Result<TcpStream> {
        let last = u8::try_from(1 + address % 250).unwrap_or(1);
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::new(127, 0, 2, last), 0).into())?;
        self.begun.fetch_add(1, Ordering::Relaxed);
        socket.connect(self.gateway).await
    }

    fn key(keys: &[String], number: u64) -> &str {
        let many = u64::try_from(keys.len()).unwrap_or(1).max(1);
        let at = usize::try_from(number % many).unwrap_or(0);
        keys.get(at).map(String::as_str).unwrap_or_default()
    }

    async fn form(&self, address: u64) -> io::Result<()> {
        let stream = self.connect(address).await?;
        let head = format!(
            "POST /dashboard/login HTTP/1.1\r\nhost: x\r\norigin: {}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\n\r\nkey=",
            self.origin
        );
        trickle(stream, head.as_bytes()).await
    }

    async fn body(&self, number: u64) -> io::Result<()> {
        let stream = self.connect(number).await?;
        let head = head(
            "/v1/chat/completions",
            Self::key(&self.rich, number),
            "",
            32 << 20,
        );
        trickle(stream, head.as_bytes()).await
    }

    async fn compressed(&self, number: u64) -> io::Result<()> {
        let keys = if number.is_multiple_of(2) {
            &self.poor
        } else {
            &self.rich
        };
        let coding = "content-encoding: gzip\r\n";
        let secret = Self::key(keys, number / 2);
        let head = head("/v1/chat/completions", secret, coding, self.gzip.len());
        self.send(number, &[head.as_bytes(), &self.gzip]).await
    }

    async fn documents(&self, number: u64) -> io::Result<()> {
        let (keys, path) = if number.is_multiple_of(2) {
            (&self.poor, "/native/v1/messages/count_tokens")
        } else {
            (&self.rich, "/native/v1/messages")
        };
        let secret = Self::key(keys, number / 2);
        let head = head(path, secret, "", self.document.len());
        self.send(number, &[head.as_bytes(), self.document.as_bytes()])
            .await
    }

    async fn unkeyed(&self, number: u64) -> io::Result<()> {
        let (path, kind) = if number.is_multiple_of(2) {
            ("/v1/chat/completions", "application/json")
        } else {
            ("/dashboard/login", "multipart/form-data; boundary=x")
        };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\norigin: {}\r\ncontent-type: {kind}\r\ncontent-length: {UNKEYED_BYTES}\r\n\r\n",
            self.origin
        );
        let zeros = b"[0,0,0,0,0,0,0,0".repeat(UNKEYED_BYTES / 16);
        self.send(number, &[head.as_bytes(), &zeros]).await
    }

    async fn pages(&self, number: u64) -> io::Result<()> {
        let paths = ["/prices", "/dashboard", "/dashboard/enter", "/"];
        let ask = |path: &&str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        let all: String = paths.iter().map(ask).collect();
        let all = all.repeat(PIPELINED / paths.len());
        self.send(number, &[all.as_bytes()]).await
    }

    async fn send(&self, number: u64, pieces: &[&[u8]]) -> io::Result<()> {
        let mut stream = self.connect(number).await?;
        for piece in pieces {
            stream.write_all(piece).await?;
        }
        let mut answer = vec![0; 16 * 1024];
        let _ = timeout(Duration::from_secs(20), stream.read(&mut answer)).await;
        Ok(())
    }
}

fn head(path: &str, secret: &str, more: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n{more}content-length: {length}\r\n\r\n"
    )
}

/// Sends a byte now and then until somebody ends it.
async fn trickle(mut stream: TcpStream, head: &[u8]) -> io::Result<()> {
    stream.write_all(head).await?;
    let mut answer = [0; 1_024];
    loop {
        tokio::select! {
            read = stream.read(&mut answer) => if read? == 0 { return Ok(()) },
            () = sleep(Duration::from_secs(1)) => stream.write_all(b" ").await?,
        }
    }
}

fn tiny_values() -> io::Result<Vec<u8>> {
    let start = format!(
        "{{\"model\":\"{SLUG}\",\"max_tokens\":1,\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}}],\"metadata\":{{\"a\":[0"
    );
    let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
    coder.write_all(start.as_bytes())?;
    coder.write_all(&b",0".repeat(DECODED / 2))?;
    coder.write_all(b"]}}")?;
    coder.finish()
}

/// A request with a document of many pages that are nearly nothing.
fn document() -> String {
    let mut pdf = "%PDF-1.4\n".to_owned();
    for number in 1..OBJECTS {
        pdf.push_str(&format!(
            "{number} 0 obj<</Type/Page/Parent 1 0 R>>endobj\n"
        ));
    }
    let base64 = base64(pdf.as_bytes());
    let part = format!(
        "{{\"type\":\"document\",\"source\":{{\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":\"{base64}\"}}}}"
    );
    format!(
        "{{\"model\":\"{SLUG}\",\"max_tokens\":1,\"messages\":[{{\"role\":\"user\",\"content\":[{part}]}}]}}"
    )
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0_usize, |bits, byte| (bits << 8) + usize::from(*byte));
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place)) & 63);
            let padding = place > chunk.len();
            text.push(if padding {
                '='
            } else {
                char::from(letter.copied().unwrap_or(b'A'))
            });
        }
    }
    text
}

/// Threads that burn this much CPU, in CPUs, until it is dropped; in the idle class, like an attacker's.
#[derive(Debug)]
pub(super) struct Spinner {
    stop: Arc<AtomicBool>,
    _runtime: Runtime,
}

/// Spinning and resting alternate in steps of this.
const STEP: Duration = Duration::from_millis(10);

impl Spinner {
    pub(super) fn start(cpus: f64) -> io::Result<Self> {
        let (stop, runtime) = (
            Arc::new(AtomicBool::new(false)),
            lowly().worker_threads(1).build()?,
        );
        let mut left = cpus;
        while left > 0.0 {
            let (part, stopped) = (left.min(1.0), Arc::clone(&stop));
            left -= 1.0;
            runtime.spawn_blocking(move || {
                while !stopped.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    while begun.elapsed() < STEP.mul_f64(part) {
                        std::hint::spin_loop();
                    }
                    std::thread::sleep(STEP.mul_f64(1.0 - part));
                }
            });
        }
        Ok(Self {
            stop,
            _runtime: runtime,
        })
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
