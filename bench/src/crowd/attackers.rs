//! Single attackers, each against the good customer alone, and then all of them together.
//!
//! What an attacker does is fixed: so many connections, so many requests a second. It works on the gateway's own CPUs, in the idle
//! class.

use std::io;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::lowly::lowly;
use super::shop;
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
/// The largest callback that a shop reads.
const CALLBACK: usize = 512 << 10;
/// Requests for pages on one connection.
const PIPELINED: usize = 200;
/// Between two of one connection.
const PAUSE: Duration = Duration::from_secs(1);
/// What a compressed body of a few kB becomes.
const DECODED: usize = 30 << 20;
/// Objects of a document.
const OBJECTS: usize = 100_000;

/// What is attacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    Gateway,
    Shop,
}

/// What an attacker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttackAct {
    /// Forms without a key that come byte by byte, from so many addresses.
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
    /// Callbacks of the card processor, of the largest size, with a signature that somebody made up.
    Callbacks,
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
    pub(super) name: String,
    pub(super) acts: &'static [AttackAct],
    pub(super) victim: Victim,
    /// It and the customer come through this proxy.
    pub(super) through: Option<ShippedProxy>,
}

use AttackAct::{Bodies, Callbacks, Documents, Forms, Gzip, Pages, Unkeyed};

/// What strangers and customers do to a gateway, one after the other and at the same time.
const OF_GATEWAY: [(&str, &[AttackAct]); 9] = [
    ("forms-1", &[Forms(1)]),
    ("forms-4", &[Forms(4)]),
    ("forms-64", &[Forms(64)]),
    ("unkeyed", &[Unkeyed]),
    ("pages", &[Pages]),
    ("gzip", &[Gzip]),
    ("documents", &[Documents]),
    ("bodies", &[Bodies]),
    (
        "together",
        &[Forms(64), Gzip, Documents, Bodies, Unkeyed, Pages],
    ),
];

/// The same of a shop, where everybody is a stranger.
const OF_SHOP: [(&str, &[AttackAct]); 5] = [
    ("forms-64", &[Forms(64)]),
    ("unkeyed", &[Unkeyed]),
    ("pages", &[Pages]),
    ("callbacks", &[Callbacks]),
    ("together", &[Forms(64), Unkeyed, Pages, Callbacks]),
];

/// Every attacker, directly and through each proxy: `gzip`, `nginx-gzip`, `caddy-gzip`, `shop-pages`, `shop-nginx-pages` and so on.
pub(super) fn all() -> Vec<Attacker> {
    let ways = [
        ("", None),
        ("nginx-", Some(ShippedProxy::Nginx)),
        ("caddy-", Some(ShippedProxy::Caddy)),
    ];
    let victims = [
        ("", Victim::Gateway, &OF_GATEWAY[..]),
        ("shop-", Victim::Shop, &OF_SHOP[..]),
    ];
    let each = victims.iter().flat_map(|(of, victim, attacks)| {
        ways.iter().flat_map(move |(way, through)| {
            attacks.iter().map(move |(name, acts)| Attacker {
                name: format!("{of}{way}{name}"),
                acts,
                victim: *victim,
                through: *through,
            })
        })
    });
    each.collect()
}

impl Victim {
    /// Where anybody sends a form.
    const fn form(self) -> &'static str {
        match self {
            Self::Gateway => "/dashboard/login",
            Self::Shop => "/checkout",
        }
    }

    /// Where somebody who is known sends JSON.
    const fn document(self) -> &'static str {
        match self {
            Self::Gateway => "/v1/chat/completions",
            Self::Shop => "/webhook",
        }
    }

    /// What anybody may read.
    const fn pages(self) -> [&'static str; 4] {
        match self {
            Self::Gateway => ["/prices", "/dashboard", "/dashboard/enter", "/"],
            Self::Shop => [
                "/",
                "/bought?checkout=cs_x&paid=x",
                "/receipt?checkout=cs_x",
                "/page.css",
            ],
        }
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
    victim: Victim,
    target: SocketAddr,
    /// The page that forms seem to come from.
    origin: String,
    /// Keys without money, and with a dollar.
    poor: Vec<String>,
    rich: Vec<String>,
    begun: AtomicU64,
    gzip: Vec<u8>,
    document: String,
    zeros: Vec<u8>,
}

impl Attack {
    /// Starts it against a target; the origin is that of the forms' page.
    pub(super) fn start(
        attacker: &Attacker,
        (target, origin): (SocketAddr, SocketAddr),
        secrets: &[String],
    ) -> io::Result<Self> {
        let runtime = lowly().worker_threads(2).build()?;
        let every_other = |first: usize| secrets.iter().skip(first).step_by(2).cloned().collect();
        let shared = Arc::new(AttackShared {
            victim: attacker.victim,
            target,
            origin: format!("http://{origin}"),
            poor: every_other(1),
            rich: every_other(0),
            begun: AtomicU64::new(0),
            gzip: tiny_values()?,
            document: document(),
            zeros: b"[0,0,0,0,0,0,0,0".repeat(UNKEYED_BYTES / 16),
        });
        for act in attacker.acts {
            let many = match act {
                AttackAct::Forms(_) => FORMS,
                AttackAct::Bodies => BODIES,
                AttackAct::Gzip | AttackAct::Documents => HEAVY,
                AttackAct::Unkeyed | AttackAct::Pages | AttackAct::Callbacks => UNKEYED,
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
            AttackAct::Callbacks => shared.callback(number + round).await,
        };
        let pause = match act {
            AttackAct::Forms(_) | AttackAct::Bodies => AGAIN,
            AttackAct::Gzip
            | AttackAct::Documents
            | AttackAct::Unkeyed
            | AttackAct::Pages
            | AttackAct::Callbacks => PAUSE,
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
        socket.connect(self.target).await
    }

    fn key(keys: &[String], number: u64) -> &str {
        let many = u64::try_from(keys.len()).unwrap_or(1).max(1);
        let at = usize::try_from(number % many).unwrap_or(0);
        keys.get(at).map(String::as_str).unwrap_or_default()
    }

    async fn form(&self, address: u64) -> io::Result<()> {
        let stream = self.connect(address).await?;
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: x\r\norigin: {}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\n\r\nkey=",
            self.victim.form(),
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
            (self.victim.document(), "application/json")
        } else {
            (self.victim.form(), "multipart/form-data; boundary=x")
        };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\norigin: {}\r\ncontent-type: {kind}\r\ncontent-length: {UNKEYED_BYTES}\r\n\r\n",
            self.origin
        );
        self.send(number, &[head.as_bytes(), &self.zeros]).await
    }

    async fn pages(&self, number: u64) -> io::Result<()> {
        let paths = self.victim.pages();
        let ask = |path: &&str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        let all: String = paths.iter().map(ask).collect();
        let all = all.repeat(PIPELINED / paths.len());
        self.send(number, &[all.as_bytes()]).await
    }

    async fn callback(&self, number: u64) -> io::Result<()> {
        let head = shop::forged(CALLBACK);
        self.send(number, &[head.as_bytes(), &vec![b'0'; CALLBACK]])
            .await
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
