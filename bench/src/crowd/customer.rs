//! The good customer: 50 requests a second in an open loop, from an address of its own, over connections that it keeps.
//!
//! A latency runs from the moment a request was due, so a request that waited for an earlier one counts its wait. Every answer
//! must be a 200 with the expected text; whatever else happens is counted and never retried.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::answers::BenchFamily;
use crate::bodies;
use crate::subjects::Subject;
use crate::wire::MessageReader;

/// Requests each second, of all connections together.
const RATE: u32 = 50;
/// Connections, each with a thread.
const CONNECTIONS: u32 = 8;
/// A connection is opened anew after this many requests, so that getting in is measured, too.
const RECONNECT: usize = 10;
const PATIENCE: Duration = Duration::from_secs(30);

/// What the customer met.
#[derive(Debug, Default)]
pub(crate) struct Experience {
    pub(crate) asked: usize,
    /// Milliseconds, sorted.
    latencies: Vec<f64>,
    pub(crate) server_errors: usize,
    /// Closed connections, timeouts, other statuses and wrong answers.
    pub(crate) failures: Vec<String>,
}

impl Experience {
    /// Milliseconds that this part of all requests did not exceed.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies
            .get((last as f64 * part).round() as usize)
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// Asks for this long.
pub(crate) fn ask(gateway: SocketAddr, secret: &str, time: Duration) -> Experience {
    let begin = Instant::now() + Duration::from_millis(50);
    let gap = Duration::from_secs(1) * CONNECTIONS / RATE;
    let mut all = Experience::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let first = begin + Duration::from_secs(1) / RATE * number;
                scope.spawn(move || one(gateway, secret, first, gap, begin + time))
            })
            .collect();
        for thread in threads {
            let Ok(part) = thread.join() else { continue };
            all.asked += part.asked;
            all.latencies.extend(part.latencies);
            all.server_errors += part.server_errors;
            all.failures.extend(part.failures);
        }
    });
    all.latencies.sort_by(f64::total_cmp);
    all
}

fn one(
    gateway: SocketAddr,
    secret: &str,
    first: Instant,
    gap: Duration,
    end: Instant,
) -> Experience {
    let requests = [
        (BenchFamily::Chat, false),
        (BenchFamily::Messages, false),
        (BenchFamily::Chat, true),
        (BenchFamily::Messages, true),
    ]
    .map(|(family, stream)| request(family, stream, secret));
    let (mut met, mut due, mut connection) = (Experience::default(), first, None);
    while due < end {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if met.asked.is_multiple_of(RECONNECT) {
            connection = None;
        }
        let bytes = requests
            .get(met.asked % requests.len())
            .map(Vec::as_slice)
            .unwrap_or_default();
        met.asked += 1;
        match exchange(&mut connection, gateway, bytes) {
            Ok((200, body)) if body.windows(5).any(|piece| piece == b"usage") => {}
            Ok((status, _)) if status >= 500 => met.server_errors += 1,
            Ok((status, body)) => {
                let text = String::from_utf8_lossy(&body)
                    .chars()
                    .take(200)
                    .collect::<String>();
                met.failures.push(format!("{status}: {text}"));
            }
            Err(error) => {
                connection = None;
                met.failures.push(error.to_string());
            }
        }
        met.latencies.push(due.elapsed().as_secs_f64() * 1_000.0);
        due += gap;
    }
    met
}

/// Sends a request and reads its whole answer.
pub(super) fn exchange(
    connection: &mut Option<TcpStream>,
    gateway: SocketAddr,
    request: &[u8],
) -> io::Result<(u16, Vec<u8>)> {
    if connection.is_none() {
        let stream = TcpStream::connect_timeout(&gateway, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        *connection = Some(stream);
    }
    let Some(stream) = connection.as_mut() else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    stream.write_all(request)?;
    let (mut reader, mut body, mut buffer) =
        (MessageReader::default(), Vec::new(), vec![0; 64 * 1024]);
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let keep = |bytes: &[u8]| {
            body.extend_from_slice(bytes);
            Ok(())
        };
        if reader
            .feed(buffer.get(..length).unwrap_or_default(), keep)
            .map_err(io::Error::other)?
            .is_some()
        {
            let status = reader
                .head()
                .get(9..12)
                .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            return Ok((status.unwrap_or(0), body));
        }
    }
}

fn request(family: BenchFamily, stream: bool, secret: &str) -> Vec<u8> {
    let body = bodies::small(family, stream, bodies::USUAL);
    let path = Subject::Farebox.path(family).unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}
