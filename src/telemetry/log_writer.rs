//! The log's way out: lines and ended requests go into a bounded queue, and one thread writes them to standard error.
//!
//! A log that nobody reads must not slow a request down: a full pipe blocks only this thread. What finds the queue full, or cannot
//! be written, is dropped and counted. Nor must a log that is read: a request hands over its record, and the thread makes lines of
//! all that have come in a while, many for one write.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use super::request_line::{LineFormatter, LogFormat, RequestLine};

/// Lines that may wait: about 2 MB of request lines.
const QUEUE: usize = 4_096;
/// Requests that wake the thread before its pause is over: a quarter of the queue, so that none is dropped for waiting.
const MANY: usize = QUEUE / 4;
/// The thread's pause after it has written. A wake-up costs as much as several lines, and nobody reads faster than this.
const PAUSE: Duration = Duration::from_millis(20);
/// Most bytes of one write, unless a single line is longer. What fits into PIPE_BUF (4,096 on Linux) reaches a pipe in one piece:
/// programs that share one do not cut each other's lines.
const WRITE: usize = 4_096;
/// How long a stopping process waits for the queue to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Lines that were dropped since the process started.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Log lines dropped because the reader of standard error was too slow or gone.
pub fn lost_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Writes a line to standard error, and gives its reader a second: a gateway whose ledger failed must still exit when nobody reads.
pub fn last_words(line: &str) {
    let writer = LogWriter::start(io::stderr(), LogFormat::Text);
    // A line that cannot be written is counted as lost.
    let _ = LogLine(&writer).write_all(line.as_bytes());
    drop(writer.guard());
}

enum LogItem {
    Line(Vec<u8>),
    Request(RequestLine),
    /// The thread drops it after writing everything before it; its receiver notices that.
    Mark(SyncSender<()>),
}

/// What the thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LogRest {
    /// It writes, and looks at the queue before it sleeps.
    #[default]
    Awake,
    /// It sleeps for `PAUSE`: lines wake it, requests let it sleep.
    Pause,
    /// It sleeps until something comes.
    Idle,
}

#[derive(Default)]
struct LogQueue {
    items: VecDeque<LogItem>,
    /// Items that the thread has taken and not yet written: they count as queued.
    taken: usize,
    rest: LogRest,
}

/// The queue's two ends.
#[derive(Default)]
struct LogShared {
    queue: Mutex<LogQueue>,
    wake: Condvar,
}

impl LogShared {
    fn lock(&self) -> MutexGuard<'_, LogQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there was room for it.
    fn push(&self, item: LogItem) -> bool {
        let mut queue = self.lock();
        if queue.items.len() + queue.taken >= QUEUE {
            return false;
        }
        let can_wait = matches!(item, LogItem::Request(_)) && queue.items.len() < MANY;
        queue.items.push_back(item);
        let wake = match queue.rest {
            LogRest::Awake => false,
            LogRest::Pause => !can_wait,
            LogRest::Idle => true,
        };
        if wake {
            queue.rest = LogRest::Awake;
        }
        drop(queue);
        if wake {
            self.wake.notify_one();
        }
        true
    }

    /// Moves what waits into `batch`, which is empty and whose items are written. Sleeps until there is something.
    fn take(&self, batch: &mut VecDeque<LogItem>) {
        let mut queue = self.lock();
        queue.taken = 0;
        let pause = queue
            .items
            .iter()
            .all(|item| matches!(item, LogItem::Request(_)));
        if pause && queue.items.len() < MANY {
            queue.rest = LogRest::Pause;
            let resting = |queue: &mut LogQueue| queue.rest == LogRest::Pause;
            queue = self
                .wake
                .wait_timeout_while(queue, PAUSE, resting)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        while queue.items.is_empty() {
            queue.rest = LogRest::Idle;
            queue = self
                .wake
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue.rest = LogRest::Awake;
        std::mem::swap(&mut queue.items, batch);
        queue.taken = batch.len();
    }
}

/// The sending end of the queue, for loggers.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<LogShared>);

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("LogWriter").finish_non_exhaustive()
    }
}

/// Keeps the log's thread running to the end: dropping it waits up to a second for the lines still queued.
#[derive(Debug)]
#[must_use = "dropped at once, it waits for nothing"]
pub struct LogGuard(pub(super) LogWriter);

impl LogWriter {
    /// Starts the thread that writes to `out`, as long as the process lives.
    pub(super) fn start(out: impl Write + Send + 'static, format: LogFormat) -> Self {
        let shared = Arc::<LogShared>::default();
        let of_thread = Arc::clone(&shared);
        // Without its thread the queue fills up, and then each line is counted as lost.
        let _ = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(out, &of_thread, format));
        Self(shared)
    }

    pub(super) fn guard(&self) -> LogGuard {
        LogGuard(self.clone())
    }

    /// Hands over an ended request.
    pub(super) fn request(&self, line: RequestLine) {
        self.count(LogItem::Request(line));
    }

    fn count(&self, item: LogItem) {
        if !self.0.push(item) {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_all(mut out: impl Write, shared: &LogShared, format: LogFormat) {
    let mut formatter = LineFormatter::new(format);
    let (mut batch, mut lines) = (VecDeque::new(), String::new());
    loop {
        shared.take(&mut batch);
        for item in batch.drain(..) {
            let before = lines.len();
            match item {
                // `tracing` formats text.
                LogItem::Line(line) => lines.push_str(&String::from_utf8_lossy(&line)),
                LogItem::Request(line) => formatter.append(&line, &mut lines),
                LogItem::Mark(mark) => {
                    write_lines(&mut out, &lines);
                    lines.clear();
                    drop(mark);
                    continue;
                }
            }
            if lines.len() > WRITE {
                let (whole, newest) = lines.split_at(before);
                write_lines(&mut out, whole);
                let newest = newest.to_owned();
                lines.clear();
                lines.push_str(&newest);
            }
        }
        write_lines(&mut out, &lines);
        lines.clear();
    }
}

/// Writes lines. One at which a write fails is dropped and counted, and the next one is tried.
fn write_lines(out: &mut impl Write, lines: &str) {
    let mut rest = lines.as_bytes();
    while !rest.is_empty() {
        match out.write(rest) {
            Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => {
                LOST.fetch_add(1, Ordering::Relaxed);
                let end = rest.iter().position(|byte| *byte == b'\n');
                rest = end.and_then(|end| rest.get(end + 1..)).unwrap_or_default();
            }
        }
    }
}

/// One line: the formatter writes each with a single call.
pub(super) struct LogLine<'a>(&'a LogWriter);

impl Write for LogLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.count(LogItem::Line(line.to_vec()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> LogLine<'a> {
        LogLine(self)
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let (mark, written) = sync_channel(0);
        // A full queue has no reader, so do not wait for one.
        if self.0.0.push(LogItem::Mark(mark)) {
            // Ends when the thread reaches the marker and drops it.
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

#[cfg(test)]
#[path = "log_writer_tests.rs"]
mod tests;
