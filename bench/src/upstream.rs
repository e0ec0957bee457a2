//! The upstream: a process of its own that answers at once from bytes rendered beforehand, and counts what it served.
//!
//! What it answers (whole, or streamed at a pace) is set by the driver between rounds, so that no request has to be understood.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::answers::{BenchFamily, CannedAnswer, STAMP, micros, write_stamp};
use crate::poll::{Poll, exact_timers, prepare, would_block};
use crate::wire::MessageReader;

/// The listener's number; connections are numbered from 0.
const LISTENER: usize = usize::MAX;

/// How requests are answered from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerMode {
    /// In one piece, so many times the text of a short one.
    Whole {
        times: u64,
    },
    Stream {
        pace: Duration,
        chunks: usize,
    },
}

impl AnswerMode {
    pub(crate) const SHORT: Self = Self::Whole { times: 1 };

    /// As it stands in a path.
    pub(crate) fn path(self) -> String {
        match self {
            Self::Whole { times } => format!("/bench/whole/{times}"),
            Self::Stream { pace, chunks } => format!("/bench/stream/{}/{chunks}", pace.as_micros()),
        }
    }

    fn from_path(path: &str) -> Option<Self> {
        if let Some(times) = path.strip_prefix("/bench/whole/") {
            let times = times.parse().ok()?;
            return Some(Self::Whole { times });
        }
        let (pace, chunks) = path.strip_prefix("/bench/stream/")?.split_once('/')?;
        Some(Self::Stream {
            pace: Duration::from_micros(pace.parse().ok()?),
            chunks: chunks.parse().ok()?,
        })
    }
}

/// The parts of one answer as they are sent, with the places of their stamps.
type Rendered = Vec<(Vec<u8>, Option<usize>)>;

fn render(family: BenchFamily, mode: AnswerMode) -> Rendered {
    match mode {
        AnswerMode::Whole { times } => {
            let body = CannedAnswer::whole(family, family.upstream_model(), times).body();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            vec![([head.into_bytes(), body].concat(), None)]
        }
        AnswerMode::Stream { chunks, .. } => {
            let head =
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n\
                         transfer-encoding: chunked\r\n\r\n";
            let parts = CannedAnswer::stream(family, family.upstream_model(), chunks).parts;
            let last = parts.len() - 1;
            let chunk = |(at, (part, stamp)): (usize, (Vec<u8>, Option<usize>))| {
                let size = format!("{:x}\r\n", part.len());
                let before = if at == 0 { head.as_slice() } else { b"" };
                let behind: &[u8] = if at == last {
                    b"\r\n0\r\n\r\n"
                } else {
                    b"\r\n"
                };
                (
                    [before, size.as_bytes(), &part, behind].concat(),
                    stamp.map(|stamp| stamp + before.len() + size.len()),
                )
            };
            parts.into_iter().enumerate().map(chunk).collect()
        }
    }
}

#[derive(Debug)]
struct UpstreamConnection {
    stream: TcpStream,
    reader: MessageReader,
    /// Tells this connection from an earlier one with the same number.
    serial: u64,
    family: BenchFamily,
    /// The next part of the answer that runs.
    part: usize,
    /// What the socket did not take yet.
    unsent: Vec<u8>,
}

struct Upstream {
    poll: Poll,
    listener: TcpListener,
    connections: Vec<Option<UpstreamConnection>>,
    free: Vec<usize>,
    serial: u64,
    mode: AnswerMode,
    rendered: [Rendered; 3],
    served: [u64; 3],
    /// Parts to be sent, by time: every stream has the same pace, so the next one goes to the end.
    due: VecDeque<(Instant, usize, u64)>,
    buffer: Vec<u8>,
}

/// Serves until it is ended.
pub(crate) fn run(address: SocketAddr) -> Result<(), String> {
    serve(address).map_err(|error| format!("the upstream: {error}"))
}

fn serve(address: SocketAddr) -> io::Result<()> {
    exact_timers()?;
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let poll = Poll::new()?;
    poll.add(&listener, LISTENER)?;
    let mode = AnswerMode::SHORT;
    let mut upstream = Upstream {
        poll,
        listener,
        connections: Vec::new(),
        free: Vec::new(),
        serial: 0,
        mode,
        rendered: BenchFamily::ALL.map(|family| render(family, mode)),
        served: [0; 3],
        due: VecDeque::new(),
        buffer: vec![0; 256 * 1024],
    };
    let mut ready = Vec::new();
    loop {
        let timeout = upstream
            .due
            .front()
            .map(|(due, ..)| due.saturating_duration_since(Instant::now()));
        upstream.poll.wait(timeout, &mut ready)?;
        for number in ready.drain(..) {
            if number == LISTENER {
                upstream.accept()?;
            } else if upstream.turn(number).is_err() {
                upstream.close(number);
            }
        }
        upstream.send_due();
    }
}

impl Upstream {
    fn accept(&mut self) -> io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if would_block(&error) => return Ok(()),
                Err(error) => return Err(error),
            };
            prepare(&stream)?;
            let number = self.free.pop().unwrap_or(self.connections.len());
            self.poll.add(&stream, number)?;
            self.serial += 1;
            let (reader, family, serial) =
                (MessageReader::default(), BenchFamily::Chat, self.serial);
            let connection = UpstreamConnection {
                stream,
                reader,
                serial,
                family,
                part: 0,
                unsent: Vec::new(),
            };
            match self.connections.get_mut(number) {
                Some(place) => *place = Some(connection),
                None => self.connections.push(Some(connection)),
            }
        }
    }

    fn close(&mut self, number: usize) {
        if self
            .connections
            .get_mut(number)
            .is_some_and(|place| place.take().is_some())
        {
            self.free.push(number);
        }
    }

    /// Something happened on a connection. An error ends it.
    fn turn(&mut self, number: usize) -> io::Result<()> {
        let Some(Some(connection)) = self.connections.get_mut(number) else {
            return Ok(());
        };
        if !connection.unsent.is_empty() {
            send_rest(&self.poll, connection, number)?;
        }
        let length = match connection.stream.read(&mut self.buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if would_block(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let bytes = self.buffer.get(..length).unwrap_or_default();
        match connection
            .reader
            .feed(bytes, |_| Ok(()))
            .map_err(io::Error::other)?
        {
            None => Ok(()),
            Some(used) if used == length => self.answer(number),
            Some(_) => Err(io::Error::other(
                "a request before the last one was answered",
            )),
        }
    }

    /// A request is whole.
    fn answer(&mut self, number: usize) -> io::Result<()> {
        let Some(Some(connection)) = self.connections.get_mut(number) else {
            return Ok(());
        };
        let head = connection.reader.head();
        let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        let Some(family) = BenchFamily::ALL
            .into_iter()
            .find(|family| target == family.path().as_bytes())
        else {
            let target = String::from_utf8_lossy(target).into_owned();
            return self.control(number, &target);
        };
        connection.reader.reset();
        connection.family = family;
        connection.part = 0;
        self.send_part(number)
    }

    /// Sends the next part of an answer, and plans the one behind it.
    fn send_part(&mut self, number: usize) -> io::Result<()> {
        let Some(Some(connection)) = self.connections.get_mut(number) else {
            return Ok(());
        };
        let place = connection.family as usize;
        let (Some(rendered), Some(served)) =
            (self.rendered.get_mut(place), self.served.get_mut(place))
        else {
            return Ok(());
        };
        let Some((bytes, stamp)) = rendered.get_mut(connection.part) else {
            return Ok(());
        };
        if let Some(place) = stamp.and_then(|at| bytes.get_mut(at..at + STAMP)) {
            write_stamp(place, micros());
        }
        send(&self.poll, connection, number, bytes)?;
        connection.part += 1;
        if connection.part == rendered.len() {
            *served += 1;
        } else if let AnswerMode::Stream { pace, .. } = self.mode {
            self.due
                .push_back((Instant::now() + pace, number, connection.serial));
        }
        Ok(())
    }

    fn send_due(&mut self) {
        let now = Instant::now();
        while let Some((_, number, serial)) = self.due.pop_front_if(|(due, ..)| *due <= now) {
            let same = matches!(self.connections.get(number), Some(Some(connection)) if connection.serial == serial);
            if same && self.send_part(number).is_err() {
                self.close(number);
            }
        }
    }

    /// The driver's own requests: a new mode, or a look at the counters.
    fn control(&mut self, number: usize, target: &str) -> io::Result<()> {
        if let Some(mode) = AnswerMode::from_path(target).filter(|mode| *mode != self.mode) {
            self.mode = mode;
            self.rendered = BenchFamily::ALL.map(|family| render(family, mode));
        }
        let Some(Some(connection)) = self.connections.get_mut(number) else {
            return Ok(());
        };
        connection.reader.reset();
        let body = self.served.map(|served| served.to_string()).join(" ");
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        send(&self.poll, connection, number, answer.as_bytes())
    }
}

/// Writes what the socket takes and keeps the rest.
fn send(
    poll: &Poll,
    connection: &mut UpstreamConnection,
    number: usize,
    bytes: &[u8],
) -> io::Result<()> {
    if !connection.unsent.is_empty() {
        connection.unsent.extend_from_slice(bytes);
        return Ok(());
    }
    let sent = write(&mut connection.stream, bytes)?;
    connection
        .unsent
        .extend_from_slice(bytes.get(sent..).unwrap_or_default());
    if connection.unsent.is_empty() {
        Ok(())
    } else {
        poll.writable(&connection.stream, number, true)
    }
}

/// Writes what was kept, when the socket may take it.
fn send_rest(poll: &Poll, connection: &mut UpstreamConnection, number: usize) -> io::Result<()> {
    let sent = write(&mut connection.stream, &connection.unsent)?;
    connection.unsent.drain(..sent);
    if connection.unsent.is_empty() {
        poll.writable(&connection.stream, number, false)
    } else {
        Ok(())
    }
}

fn write(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    stream.write(bytes).or_else(|error| {
        if would_block(&error) {
            Ok(0)
        } else {
            Err(error)
        }
    })
}

/// Asks a running upstream: how many answers of each family it served until now.
pub(crate) fn ask(address: SocketAddr, path: &str) -> Result<Vec<u64>, String> {
    let asked = || -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n")?;
        let (mut reader, mut text, mut buffer) = (MessageReader::default(), Vec::new(), [0; 1024]);
        loop {
            let length = stream.read(&mut buffer)?;
            let take = |bytes: &[u8]| {
                text.extend_from_slice(bytes);
                Ok(())
            };
            let whole = reader
                .feed(buffer.get(..length).unwrap_or_default(), take)
                .map_err(io::Error::other)?;
            if length == 0 || whole.is_some() {
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
        }
    };
    let text = asked().map_err(|error| format!("the upstream does not answer: {error}"))?;
    Ok(text
        .split(' ')
        .map(|count| count.parse().unwrap_or(0))
        .collect())
}
