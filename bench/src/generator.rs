//! The load generator: one thread, prerendered requests, and every answer compared byte for byte with what it must be.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::answers::{STAMP, micros, read_stamp};
use crate::machine::MachineSample;
use crate::poll::{Poll, prepare, would_block};
use crate::wire::MessageReader;

/// Answers that take longer than this never come.
const PATIENCE: Duration = Duration::from_secs(30);

/// The body that every answer must have; the stamps in it may be any.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) body: Vec<u8>,
    pub(crate) stamps: Vec<usize>,
}

/// What to send, and how.
#[derive(Debug)]
pub(crate) struct LoadPlan<'a> {
    pub(crate) address: SocketAddr,
    /// A request's head for each key; requests go round the keys.
    pub(crate) heads: &'a [Vec<u8>],
    pub(crate) body: &'a [u8],
    pub(crate) expected: &'a Expected,
    pub(crate) connections: usize,
    /// Requests each second on whichever connection is idle; without it, every connection asks again at once.
    pub(crate) rate: Option<u32>,
    /// The time between the first requests of two connections.
    pub(crate) apart: Duration,
    /// Not counted.
    pub(crate) warm: Duration,
    /// Counted.
    pub(crate) window: Duration,
}

/// What came of it. All but `answers` is of the window only.
#[derive(Debug, Default)]
pub(crate) struct LoadOutcome {
    pub(crate) before: MachineSample,
    pub(crate) after: MachineSample,
    pub(crate) window: Duration,
    pub(crate) requests: u64,
    /// Chunks with a stamp.
    pub(crate) chunks: u64,
    /// From sending a request to its whole answer, nanoseconds.
    pub(crate) latencies: Vec<u32>,
    /// From the upstream's stamp to its arrival, nanoseconds.
    pub(crate) delays: Vec<u32>,
    /// Whole answers to each key from first to last.
    pub(crate) answers: Vec<u64>,
    /// All connections waited when a request was due. Nothing was sent from then on, and there is no window.
    pub(crate) late: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadPhase {
    Warm,
    Window,
    Drain,
}

/// One connection, and the request that runs on it.
struct LoadConnection {
    stream: TcpStream,
    reader: MessageReader,
    key: usize,
    started: Instant,
    sent: usize,
    busy: bool,
    check: AnswerCheck,
}

/// How far an answer was compared.
#[derive(Debug, Default)]
struct AnswerCheck {
    at: usize,
    /// Of the stamp that comes next.
    stamp: usize,
    digits: [u8; STAMP],
}

impl AnswerCheck {
    /// Compares the next bytes, and hands out each stamp when it is whole.
    fn feed(
        &mut self,
        expected: &Expected,
        mut bytes: &[u8],
        mut stamped: impl FnMut(u64),
    ) -> Result<(), String> {
        while !bytes.is_empty() {
            let begin = expected
                .stamps
                .get(self.stamp)
                .copied()
                .unwrap_or(expected.body.len());
            if self.at < begin {
                let (now, rest) = bytes.split_at((begin - self.at).min(bytes.len()));
                if expected.body.get(self.at..self.at + now.len()) != Some(now) {
                    return Err(self.differs(expected, bytes));
                }
                self.at += now.len();
                bytes = rest;
            } else if begin == expected.body.len() {
                return Err(format!(
                    "{} bytes behind the end of the answer",
                    bytes.len()
                ));
            } else {
                let begun = self.at - begin;
                let (now, rest) = bytes.split_at((STAMP - begun).min(bytes.len()));
                self.digits[begun..begun + now.len()].copy_from_slice(now);
                self.at += now.len();
                bytes = rest;
                if self.at == begin + STAMP {
                    stamped(read_stamp(&self.digits));
                    self.stamp += 1;
                }
            }
        }
        Ok(())
    }

    fn differs(&self, expected: &Expected, bytes: &[u8]) -> String {
        let shown =
            |bytes: &[u8]| String::from_utf8_lossy(bytes.get(..300).unwrap_or(bytes)).into_owned();
        let wanted = expected.body.get(self.at..).unwrap_or_default();
        format!(
            "an answer differs behind byte {}:\n  expected {}\n  got      {}",
            self.at,
            shown(wanted),
            shown(bytes)
        )
    }
}

struct Generator<'a, 'b> {
    plan: &'a LoadPlan<'b>,
    poll: Poll,
    connections: Vec<LoadConnection>,
    idle: Vec<usize>,
    phase: LoadPhase,
    next_key: usize,
    buffer: Vec<u8>,
    outcome: LoadOutcome,
}

/// Carries out a plan; `sample` is called where the window begins and ends.
pub(crate) fn run(
    plan: &LoadPlan<'_>,
    mut sample: impl FnMut() -> MachineSample,
) -> Result<LoadOutcome, String> {
    let mut generator = Generator::new(plan)
        .map_err(|error| format!("cannot connect to {}: {error}", plan.address))?;
    let begun = Instant::now();
    let (opens, closes) = (begun + plan.warm, begun + plan.warm + plan.window);
    let mut started = 0;
    let mut ready = Vec::new();
    let mut window = begun;
    loop {
        let now = Instant::now();
        if generator.phase == LoadPhase::Warm && now >= opens {
            generator.outcome.before = sample();
            window = Instant::now();
            generator.phase = LoadPhase::Window;
        }
        if generator.phase == LoadPhase::Window && now >= closes {
            generator.outcome.after = sample();
            generator.outcome.window = window.elapsed();
            generator.phase = LoadPhase::Drain;
        }
        let running = generator.connections.len() - generator.idle.len();
        if generator.phase == LoadPhase::Drain && running == 0 {
            return Ok(generator.outcome);
        }
        if now > closes + PATIENCE {
            return Err(format!(
                "{running} requests are not answered {PATIENCE:?} after the last one was sent"
            ));
        }
        let planned = generator.start_due(begun, now, &mut started)?;
        let boundary = match generator.phase {
            LoadPhase::Warm => opens,
            LoadPhase::Window => closes,
            LoadPhase::Drain => closes + PATIENCE,
        };
        let until = planned.map_or(boundary, |due| due.min(boundary));
        let waited = generator.poll.wait(
            Some(until.saturating_duration_since(Instant::now())),
            &mut ready,
        );
        waited.map_err(|error| format!("epoll: {error}"))?;
        for number in &ready {
            generator.turn(*number)?;
        }
    }
}

impl<'a, 'b> Generator<'a, 'b> {
    fn new(plan: &'a LoadPlan<'b>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut connections = Vec::new();
        for number in 0..plan.connections {
            let stream = TcpStream::connect(plan.address)?;
            prepare(&stream)?;
            poll.add(&stream, number)?;
            let (reader, check) = (MessageReader::default(), AnswerCheck::default());
            connections.push(LoadConnection {
                stream,
                reader,
                key: 0,
                started: Instant::now(),
                sent: 0,
                busy: false,
                check,
            });
        }
        let outcome = LoadOutcome {
            answers: vec![0; plan.heads.len()],
            ..LoadOutcome::default()
        };
        let (idle, buffer) = ((0..plan.connections).rev().collect(), vec![0; 256 * 1024]);
        Ok(Self {
            plan,
            poll,
            connections,
            idle,
            phase: LoadPhase::Warm,
            next_key: 0,
            buffer,
            outcome,
        })
    }

    /// Starts the requests whose time has come; the time of the next one.
    fn start_due(
        &mut self,
        begun: Instant,
        now: Instant,
        started: &mut u32,
    ) -> Result<Option<Instant>, String> {
        if self.phase == LoadPhase::Drain {
            return Ok(None);
        }
        loop {
            let due = match self.plan.rate {
                Some(rate) => begun + Duration::from_secs(1) / rate * *started,
                None if *started as usize == self.connections.len() => return Ok(None),
                None => begun + self.plan.apart * *started,
            };
            if due > now {
                return Ok(Some(due));
            }
            let Some(number) = self.idle.pop() else {
                self.outcome.late = true;
                self.phase = LoadPhase::Drain;
                return Ok(None);
            };
            self.start(number)?;
            *started += 1;
        }
    }

    fn start(&mut self, number: usize) -> Result<(), String> {
        let Some(connection) = self.connections.get_mut(number) else {
            return Ok(());
        };
        connection.key = self.next_key;
        self.next_key = (self.next_key + 1) % self.plan.heads.len();
        connection.reader.reset();
        connection.check = AnswerCheck::default();
        (connection.sent, connection.busy) = (0, true);
        connection.started = Instant::now();
        self.send(number)
    }

    /// Sends what the socket takes.
    fn send(&mut self, number: usize) -> Result<(), String> {
        let Some(connection) = self.connections.get_mut(number) else {
            return Ok(());
        };
        let head = self
            .plan
            .heads
            .get(connection.key)
            .map_or(&[][..], Vec::as_slice);
        let whole = head.len() + self.plan.body.len();
        let resumed = connection.sent > 0;
        while connection.sent < whole {
            let head_left = head.get(connection.sent..).unwrap_or_default();
            let body_left = self
                .plan
                .body
                .get(connection.sent.saturating_sub(head.len())..)
                .unwrap_or_default();
            match connection
                .stream
                .write_vectored(&[IoSlice::new(head_left), IoSlice::new(body_left)])
            {
                Ok(sent) => connection.sent += sent,
                Err(error) if would_block(&error) => break,
                Err(error) => return Err(format!("a request cannot be sent: {error}")),
            }
        }
        let left = connection.sent < whole;
        if resumed || left {
            self.poll
                .writable(&connection.stream, number, left)
                .map_err(|error| format!("epoll: {error}"))?;
        }
        Ok(())
    }

    /// Something happened on a connection.
    fn turn(&mut self, number: usize) -> Result<(), String> {
        let Some(connection) = self.connections.get_mut(number) else {
            return Ok(());
        };
        let whole = self.plan.heads.get(connection.key).map_or(0, Vec::len) + self.plan.body.len();
        if connection.busy && connection.sent < whole {
            self.send(number)?;
        }
        let Some(connection) = self.connections.get_mut(number) else {
            return Ok(());
        };
        let length = match connection.stream.read(&mut self.buffer) {
            Ok(0) => {
                return Err(format!(
                    "a connection was closed; the answer began {:?}",
                    shown(&connection.reader)
                ));
            }
            Ok(length) => length,
            Err(error) if would_block(&error) => return Ok(()),
            Err(error) => return Err(format!("an answer cannot be read: {error}")),
        };
        if !connection.busy {
            return Err("an answer without a request".to_owned());
        }
        let bytes = self.buffer.get(..length).unwrap_or_default();
        let (check, outcome, counts) = (
            &mut connection.check,
            &mut self.outcome,
            self.phase == LoadPhase::Window,
        );
        let stamped = |stamp: u64| {
            if counts {
                outcome.chunks += 1;
                outcome
                    .delays
                    .push(nanos(Duration::from_micros(micros().saturating_sub(stamp))));
            }
        };
        let mut stamped = stamped;
        let fed = connection.reader.feed(bytes, |piece| {
            check.feed(self.plan.expected, piece, &mut stamped)
        });
        match fed.map_err(|fault| format!("{fault}\n{}", shown(&connection.reader)))? {
            None => Ok(()),
            Some(used) if used == length => self.answered(number),
            Some(_) => Err("bytes behind an answer".to_owned()),
        }
    }

    fn answered(&mut self, number: usize) -> Result<(), String> {
        let Some(connection) = self.connections.get_mut(number) else {
            return Ok(());
        };
        if !connection.reader.head().starts_with(b"HTTP/1.1 200 ")
            || connection.check.at != self.plan.expected.body.len()
        {
            let (length, wanted) = (connection.check.at, self.plan.expected.body.len());
            return Err(format!(
                "an answer of {length} instead of {wanted} bytes:\n{}",
                shown(&connection.reader)
            ));
        }
        connection.busy = false;
        if let Some(count) = self.outcome.answers.get_mut(connection.key) {
            *count += 1;
        }
        if self.phase == LoadPhase::Window {
            self.outcome.requests += 1;
            self.outcome
                .latencies
                .push(nanos(connection.started.elapsed()));
        }
        if self.plan.rate.is_none() && self.phase != LoadPhase::Drain {
            return self.start(number);
        }
        self.idle.push(number);
        Ok(())
    }
}

fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

fn shown(reader: &MessageReader) -> String {
    String::from_utf8_lossy(reader.head()).into_owned()
}
