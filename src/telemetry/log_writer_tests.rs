//! The log's thread: whole lines, few writes, and nobody who waits.

use super::*;

/// Keeps each write, and writes only while it can take its gate.
#[derive(Clone, Default)]
struct Gated(Arc<Mutex<Vec<String>>>);

impl Gated {
    fn text(&self) -> String {
        self.0.lock().unwrap().concat()
    }
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.0.lock().unwrap().push(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes one line of what it is given, and fails at lines that say so.
struct Failing(Arc<Mutex<String>>);

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.starts_with(b"fails") {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let text = std::str::from_utf8(&bytes[..end]).unwrap();
        self.0.lock().unwrap().push_str(text);
        Ok(end)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A single test, because the count is global to the process.
#[test]
fn a_log_that_cannot_be_written_blocks_nobody_and_is_counted() {
    let written = Gated::default();
    let log = LogWriter::start(written.clone(), LogFormat::Text);
    log.make_writer().write_all(b"first\n").unwrap();
    drop(log.guard());
    assert_eq!(
        written.text(),
        "first\n",
        "a guard waits for what was queued"
    );

    let before = lost_lines();
    let blocked = written.0.lock().unwrap();
    for _ in 0..QUEUE + 100 {
        log.make_writer().write_all(b"more\n").unwrap();
    }
    // What the thread has taken counts as queued until it looks at the queue again: here perhaps the first line and the mark.
    let lost = lost_lines() - before;
    assert!((100..=102).contains(&lost), "{lost}");
    drop(blocked);

    let kept = Arc::default();
    let log = LogWriter::start(Failing(Arc::clone(&kept)), LogFormat::Text);
    let before = lost_lines();
    for line in [&b"a\n"[..], b"fails\n", b"b\n", b"fails again\n", b"c\n"] {
        log.make_writer().write_all(line).unwrap();
    }
    drop(log.guard());
    assert_eq!(lost_lines() - before, 2);
    assert_eq!(*kept.lock().unwrap(), "a\nb\nc\n");
}

#[test]
fn what_came_together_is_written_together_in_whole_lines() {
    let written = Gated::default();
    let log = LogWriter::start(written.clone(), LogFormat::Text);
    let blocked = written.0.lock().unwrap();
    let line = |number: usize| format!("{number} {}\n", "x".repeat(number % 900));
    let long = format!("long {}\n", "y".repeat(2 * WRITE));
    let mut all: Vec<String> = (0..500).map(line).collect();
    all.insert(250, long);
    for line in &all {
        log.make_writer().write_all(line.as_bytes()).unwrap();
    }
    drop(blocked);
    drop(log.guard());
    assert_eq!(written.text(), all.concat());
    let writes = written.0.lock().unwrap();
    assert!(writes.len() < 100, "{} writes", writes.len());
    for write in &*writes {
        assert!(write.ends_with('\n'), "{write:?}");
        assert!(write.len() <= WRITE || write.starts_with("long "));
    }
}
