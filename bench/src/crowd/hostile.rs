//! The crowd: idle connections, slow heads, slow bodies, churn, and keys that ask for lies on every path.
//!
//! It comes from 64 addresses of the loopback network, none of them the good customer's. Its threads give way to the customer
//! and the gateway, because a crowd elsewhere would not use their CPUs. Every group has a fixed number of connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep, timeout};

use super::liar::LIES;
use crate::answers::SLUG;

const IDLE: u64 = 2_000;
const SLOW_HEADS: u64 = 500;
const SLOW_BODIES: u64 = 300;
/// Requests that the keys have under way, all together.
const GREEDY: u64 = 64;
/// Connections of churn at the same time.
const CHURNING: usize = 512;
const ADDRESSES: u64 = 64;

const PATHS: [&str; 8] = [
    "/v1/chat/completions",
    "/native/v1/messages",
    "/v1/responses",
    "/native/v1/messages/count_tokens",
    "/v1/models",
    "/dashboard",
    "/healthz",
    "/v1/nothing",
];

/// A crowd at work, until it is stopped.
#[derive(Debug)]
pub(crate) struct Crowd {
    runtime: Runtime,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gateway: SocketAddr,
    secrets: Vec<String>,
    opened: AtomicU64,
    refused: AtomicU64,
}

impl Crowd {
    /// Begins; `churn` connections a second come and go besides those that stay.
    pub(crate) fn start(gateway: SocketAddr, secrets: Vec<String>, churn: u64) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(|| {
                let _ = rustix::process::nice(10);
            })
            .enable_all()
            .build()?;
        let shared = Arc::new(Shared { gateway, secrets, opened: AtomicU64::new(0), refused: AtomicU64::new(0) });
        for number in 0..IDLE {
            runtime.spawn(again(Arc::clone(&shared), number, Shared::idle));
        }
        for number in 0..SLOW_HEADS {
            runtime.spawn(again(Arc::clone(&shared), number, Shared::slow_head));
        }
        for number in 0..SLOW_BODIES {
            runtime.spawn(again(Arc::clone(&shared), number, Shared::slow_body));
        }
        for number in 0..GREEDY {
            runtime.spawn(again(Arc::clone(&shared), number, Shared::greedy));
        }
        runtime.spawn(churning(Arc::clone(&shared), churn));
        Ok(Self { runtime, shared })
    }

    /// Connections that were opened.
    pub(crate) fn opened(&self) -> u64 {
        self.shared.opened.load(Ordering::Relaxed)
    }

    /// Connections that could not be opened.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Goes away at once.
    pub(crate) fn stop(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

/// Does a thing again and again; a number that changes each time says which form of it.
async fn again<F>(shared: Arc<Shared>, number: u64, act: fn(Arc<Shared>, u64) -> F)
where
    F: Future<Output = io::Result<()>>,
{
    for round in 0.. {
        let _ = act(Arc::clone(&shared), number + round * 7).await;
        sleep(Duration::from_millis(50)).await;
    }
}

/// Opens connections at a pace, whatever becomes of the earlier ones, up to a bound.
async fn churning(shared: Arc<Shared>, rate: u64) {
    let (places, mut ticks, mut number) = (Arc::new(Semaphore::new(CHURNING)), interval(Duration::from_millis(10)), 0);
    loop {
        ticks.tick().await;
        for _ in 0..rate / 100 {
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { break };
            number += 1;
            let coming = Arc::clone(&shared).come_and_go(number);
            tokio::spawn(async move {
                let _ = timeout(Duration::from_secs(5), coming).await;
                drop(place);
            });
        }
    }
}

impl Shared {
    async fn connect(&self, number: u64) -> io::Result<TcpStream> {
        let from = Ipv4Addr::new(127, 0, 1, u8::try_from(1 + number % ADDRESSES).unwrap_or(1));
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let connected = socket.connect(self.gateway).await;
        let counter = if connected.is_ok() { &self.opened } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        connected
    }

    fn secret(&self, number: u64) -> &str {
        let at = usize::try_from(number).unwrap_or(0) % self.secrets.len().max(1);
        self.secrets.get(at).map(String::as_str).unwrap_or_default()
    }

    /// A request on one of all paths whose answer is to be a lie.
    fn request(&self, number: u64, secret: &str) -> Vec<u8> {
        let path = PATHS.get(usize::try_from(number).unwrap_or(0) % PATHS.len()).copied().unwrap_or("/");
        let (lie, stream) = (number % LIES, number.is_multiple_of(3));
        let text = format!("\"lie-{lie} please\"");
        let turn = format!("[{{\"role\":\"user\",\"content\":{text}}}]");
        let body = match path {
            "/v1/responses" => format!("{{\"model\":\"{SLUG}\",\"stream\":{stream},\"max_output_tokens\":50,\"input\":{text}}}"),
            "/native/v1/messages/count_tokens" => format!("{{\"model\":\"{SLUG}\",\"messages\":{turn}}}"),
            _ => format!("{{\"model\":\"{SLUG}\",\"stream\":{stream},\"max_tokens\":50,\"messages\":{turn}}}"),
        };
        let method = if path.starts_with("/native") || body.len() > 100 && number.is_multiple_of(2) { "POST" } else { "GET" };
        let method = if matches!(path, "/v1/chat/completions" | "/v1/responses") { "POST" } else { method };
        format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    async fn idle(self: Arc<Self>, number: u64) -> io::Result<()> {
        let mut stream = self.connect(number).await?;
        stream.read_u8().await.map(drop)
    }

    /// Up to 60 kB of a head at once, and then a byte now and then.
    async fn slow_head(self: Arc<Self>, number: u64) -> io::Result<()> {
        let mut stream = self.connect(number).await?;
        let large = "y".repeat(usize::try_from(number % 4).unwrap_or(0) * 20_000);
        stream.write_all(format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-a: {large}").as_bytes()).await?;
        loop {
            sleep(Duration::from_millis(500)).await;
            stream.write_all(b"y").await?;
        }
    }

    /// Announces 32 MiB, sends some of it, and then little.
    async fn slow_body(self: Arc<Self>, number: u64) -> io::Result<()> {
        let mut stream = self.connect(number).await?;
        let path = PATHS.get(usize::try_from(number % 4).unwrap_or(0)).copied().unwrap_or("/");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
            self.secret(number),
            32 << 20
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&vec![b' '; 256 * 1024]).await?;
        loop {
            sleep(Duration::from_millis(500)).await;
            stream.write_all(b"          ").await?;
        }
    }

    /// Asks for a lie; every fifth time it does not read the answer for a while.
    async fn greedy(self: Arc<Self>, number: u64) -> io::Result<()> {
        let mut stream = self.connect(number).await?;
        stream.write_all(&self.request(number, self.secret(number / 3))).await?;
        if number.is_multiple_of(5) {
            sleep(Duration::from_secs(3)).await;
        }
        read_for(&mut stream, Duration::from_secs(2)).await;
        Ok(())
    }

    /// Comes, does one thing and goes, in order or with a reset.
    async fn come_and_go(self: Arc<Self>, number: u64) -> io::Result<()> {
        let mut stream = self.connect(number).await?;
        if number.is_multiple_of(2) {
            stream.set_zero_linger()?;
        }
        let stranger = "sk-farebox-nobody-00000000000000000000000000000000";
        match number % 8 {
            0 | 1 => return Ok(()),
            2 => stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\xff\r\n\r\n").await?,
            3 => stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await?,
            4 | 5 => stream.write_all(&self.request(number / 8, stranger)).await?,
            // Every fourth of the keys' requests here; the greedy ones ask the rest.
            _ if number.is_multiple_of(32) => stream.write_all(&self.request(number / 32, self.secret(number / 32))).await?,
            _ => stream.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{").await?,
        }
        read_for(&mut stream, Duration::from_millis(200)).await;
        Ok(())
    }
}

/// Reads until the other side closes or this time is over.
async fn read_for(stream: &mut TcpStream, time: Duration) {
    let mut buffer = vec![0; 16 * 1024];
    let reading = async { while stream.read(&mut buffer).await.is_ok_and(|length| length > 0) {} };
    let _ = timeout(time, reading).await;
}
