//! The log's way out: lines go into a bounded queue, and one thread writes them to standard error.
//!
//! A log that nobody reads must not slow a request down: a full pipe blocks only this thread. A line that finds the queue full, or
//! that cannot be written, is dropped and counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait: about 2 MB of request lines.
const QUEUE: usize = 4_096;
/// How long a stopping process waits for the queue to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Lines that were dropped since the process started.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Log lines dropped because the reader of standard error was too slow or gone.
#[must_use]
pub fn lost_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Writes a line to standard error, and gives its reader a second: a gateway whose ledger failed must still exit when nobody reads.
pub fn last_words(line: &str) {
    let writer = LogWriter::start(io::stderr());
    // A line that cannot be written is counted as lost.
    let _ = LogLine(&writer).write_all(line.as_bytes());
    drop(writer.guard());
}

enum WriterMessage {
    Line(Vec<u8>),
    /// The thread drops it after writing everything before it; its receiver notices that.
    Mark(#[expect(dead_code, reason = "only its end matters")] SyncSender<()>),
}

/// The sending end of the queue, for loggers.
#[derive(Debug, Clone)]
pub(super) struct LogWriter(SyncSender<WriterMessage>);

/// Keeps the log's thread running to the end: dropping it waits up to a second for the lines still queued.
#[derive(Debug)]
#[must_use = "dropped at once, it waits for nothing"]
pub struct LogGuard(LogWriter);

impl LogWriter {
    /// Starts the thread that writes to `out`.
    pub(super) fn start(out: impl Write + Send + 'static) -> Self {
        let (sender, receiver) = sync_channel(QUEUE);
        // Without its thread the queue has no receiver, and each line is counted as lost.
        let _ = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(out, &receiver));
        Self(sender)
    }

    pub(super) fn guard(&self) -> LogGuard {
        LogGuard(self.clone())
    }
}

fn write_all(mut out: impl Write, messages: &Receiver<WriterMessage>) {
    for message in messages {
        if let WriterMessage::Line(line) = message
            && out.write_all(&line).and_then(|()| out.flush()).is_err()
        {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One line: the formatter writes each with a single call.
pub(super) struct LogLine<'a>(&'a LogWriter);

impl Write for LogLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self
            .0
            .0
            .try_send(WriterMessage::Line(line.to_vec()))
            .is_err()
        {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
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
        if self.0.0.try_send(WriterMessage::Mark(mark)).is_ok() {
            // Ends when the thread reaches the marker and drops it.
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A writer that writes only while it can take its gate.
    struct Gated(Arc<Mutex<Vec<u8>>>);

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A single test, because the count is global to the process.
    #[test]
    fn a_log_that_cannot_be_written_blocks_nobody_and_is_counted() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let log = LogWriter::start(Gated(Arc::clone(&written)));
        log.make_writer().write_all(b"first\n").unwrap();
        drop(log.guard());
        assert_eq!(
            *written.lock().unwrap(),
            b"first\n",
            "a guard waits for what was queued"
        );

        let before = lost_lines();
        let blocked = written.lock().unwrap();
        for _ in 0..QUEUE + 100 {
            log.make_writer().write_all(b"more\n").unwrap();
        }
        // The thread may hold one line.
        let lost = lost_lines() - before;
        assert!((99..=100).contains(&lost), "{lost}");
        drop(blocked);

        let log = LogWriter::start(Full);
        let before = lost_lines();
        log.make_writer().write_all(b"nowhere\n").unwrap();
        drop(log.guard());
        assert_eq!(lost_lines() - before, 1);
    }
}
