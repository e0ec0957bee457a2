//! The crowd: idle connections, slow heads, slow bodies, churn, and keys that ask for lies on every path.
//!
//! It comes from 64 addresses of the loopback network, none of them the good customer's. Its threads run only when nobody else
//! wants their CPU (`SCHED_IDLE`), because a crowd elsewhere would not use the gateway's CPUs. Every group has a fixed number of
//! connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::lowly::lowly;
use super::requests::{self, Draws};

const IDLE: u64 = 2_000;
const SLOW_HEADS: u64 = 500;
const SLOW_BODIES: u64 = 300;
/// Requests that the keys have under way, all together.
const GREEDY: u64 = 64;
/// Connections of churn at the same time.
const CHURNING: usize = 1_024;
const ADDRESSES: u64 = 64;
/// A key that nobody has, in the form of one.
const STRANGER: &str = "sk-farebox-nobody-00000000000000000000000000000000";

/// A crowd at work, until it is stopped.
#[derive(Debug)]
pub(crate) struct Crowd {
    runtime: Runtime,
    shared: Arc<HostileShared>,
}

#[derive(Debug)]
struct HostileShared {
    gateway: SocketAddr,
    secrets: Vec<String>,
    opened: AtomicU64,
    refused: AtomicU64,
}

impl Crowd {
    /// Begins; `churn` connections a second come and go besides those that stay.
    pub(crate) fn start(gateway: SocketAddr, secrets: Vec<String>, churn: u64) -> io::Result<Self> {
        let runtime = lowly().worker_threads(2).build()?;
        let shared = Arc::new(HostileShared {
            gateway,
            secrets,
            opened: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        for number in 0..IDLE {
            runtime.spawn(again(Arc::clone(&shared), number, HostileShared::idle));
        }
        for number in 0..SLOW_HEADS {
            runtime.spawn(again(Arc::clone(&shared), number, HostileShared::slow_head));
        }
        for number in 0..SLOW_BODIES {
            runtime.spawn(again(Arc::clone(&shared), number, HostileShared::slow_body));
        }
        for number in 0..GREEDY {
            runtime.spawn(again(Arc::clone(&shared), number, HostileShared::greedy));
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

/// Does a thing again and again; a number that no other round has says which form of it.
async fn again<F>(shared: Arc<HostileShared>, number: u64, act: fn(Arc<HostileShared>, Draws) -> F)
where
    F: Future<Output = io::Result<()>>,
{
    for round in 0.. {
        let _ = act(Arc::clone(&shared), Draws::from((round << 32) + number)).await;
        sleep(Duration::from_millis(50)).await;
    }
}

/// Opens connections at a pace, whatever becomes of the earlier ones, up to a bound.
async fn churning(shared: Arc<HostileShared>, rate: u64) {
    let (places, mut ticks, mut number) = (
        Arc::new(Semaphore::new(CHURNING)),
        interval(Duration::from_millis(10)),
        1 << 60,
    );
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    loop {
        ticks.tick().await;
        for _ in 0..rate / 100 {
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                break;
            };
            number += 1;
            let coming = Arc::clone(&shared).come_and_go(Draws::from(number));
            tokio::spawn(async move {
                let _ = timeout(Duration::from_secs(5), coming).await;
                drop(place);
            });
        }
    }
}

impl HostileShared {
    async fn connect(&self, draws: &mut Draws) -> io::Result<TcpStream> {
        let from = Ipv4Addr::new(
            127,
            0,
            1,
            u8::try_from(1 + draws.below(ADDRESSES)).unwrap_or(1),
        );
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let connected = socket.connect(self.gateway).await;
        let counter = if connected.is_ok() {
            &self.opened
        } else {
            &self.refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
        connected
    }

    fn secret(&self, draws: &mut Draws) -> &str {
        let at = draws.below(u64::try_from(self.secrets.len()).unwrap_or(1));
        self.secrets
            .get(usize::try_from(at).unwrap_or(0))
            .map(String::as_str)
            .unwrap_or_default()
    }

    async fn idle(self: Arc<Self>, mut draws: Draws) -> io::Result<()> {
        let mut stream = self.connect(&mut draws).await?;
        stream.read_u8().await.map(drop)
    }

    /// Up to 60 kB of a head at once, and then a byte now and then.
    async fn slow_head(self: Arc<Self>, mut draws: Draws) -> io::Result<()> {
        let mut stream = self.connect(&mut draws).await?;
        let large = "y".repeat(usize::try_from(draws.below(60_000)).unwrap_or(0));
        stream
            .write_all(
                format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-a: {large}").as_bytes(),
            )
            .await?;
        loop {
            sleep(Duration::from_millis(500)).await;
            stream.write_all(b"y").await?;
        }
    }

    /// Announces 32 MiB, sends some of it, and then little.
    async fn slow_body(self: Arc<Self>, mut draws: Draws) -> io::Result<()> {
        let mut stream = self.connect(&mut draws).await?;
        let secret = self.secret(&mut draws);
        let head = requests::upload(&mut draws, secret);
        stream.write_all(&head).await?;
        stream
            .write_all(&vec![
                b' ';
                usize::try_from(draws.below(512 * 1024)).unwrap_or(0)
            ])
            .await?;
        loop {
            sleep(Duration::from_millis(500)).await;
            stream.write_all(b"          ").await?;
        }
    }

    /// Asks for a lie; every fifth time it does not read the answer for a while.
    async fn greedy(self: Arc<Self>, mut draws: Draws) -> io::Result<()> {
        let mut stream = self.connect(&mut draws).await?;
        let secret = self.secret(&mut draws);
        stream.write_all(&requests::any(&mut draws, secret)).await?;
        if draws.once_in(5) {
            sleep(Duration::from_secs(3)).await;
        }
        read_for(&mut stream, Duration::from_secs(2)).await;
        Ok(())
    }

    /// Comes, does one thing and goes, in order or with a reset.
    async fn come_and_go(self: Arc<Self>, mut draws: Draws) -> io::Result<()> {
        let mut stream = self.connect(&mut draws).await?;
        if draws.once_in(2) {
            stream.set_zero_linger()?;
        }
        match draws.below(16) {
            0..=3 => return Ok(()),
            4 | 5 => {
                stream
                    .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\xff\r\n\r\n")
                    .await?
            }
            6 | 7 => {
                stream
                    .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
                    .await?
            }
            8..=12 => {
                stream
                    .write_all(&requests::any(&mut draws, STRANGER))
                    .await?
            }
            13 => {
                let secret = self.secret(&mut draws);
                stream.write_all(&requests::any(&mut draws, secret)).await?;
            }
            _ => {
                stream
                    .write_all(
                        b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{",
                    )
                    .await?
            }
        }
        read_for(&mut stream, Duration::from_millis(200)).await;
        Ok(())
    }
}

/// Reads until the other side closes or this time is over.
async fn read_for(stream: &mut TcpStream, time: Duration) {
    let mut buffer = vec![0; 16 * 1024];
    let reading = async {
        while stream
            .read(&mut buffer)
            .await
            .is_ok_and(|length| length > 0)
        {}
    };
    let _ = timeout(time, reading).await;
}
