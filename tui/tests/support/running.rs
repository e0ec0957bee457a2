//! The console on a terminal of its own, and what it draws. `script` makes the terminal.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The command line of the console.
pub(crate) fn console(ledger: &Path) -> String {
    format!(
        "{} --ledger {}",
        env!("CARGO_BIN_EXE_farebox-console"),
        ledger.display()
    )
}

/// A terminal with a program.
pub(crate) struct Running {
    child: Child,
    drawn: Receiver<Vec<u8>>,
    since: Instant,
}

impl Running {
    /// The console, as the terminal's program.
    pub(crate) fn start(ledger: &Path, home: &Path) -> Self {
        Self::of(&format!("exec {}", console(ledger)), home)
    }

    /// A shell's line, on a terminal of 80x24.
    pub(crate) fn of(line: &str, home: &Path) -> Self {
        let command = format!("stty cols 80 rows 24; {line}");
        let since = Instant::now();
        let mut child = Command::new("script")
            .args(["-qfec", &command, "/dev/null"])
            .env("XDG_STATE_HOME", home)
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let (tell, drawn) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(read @ 1..) = out.read(&mut bytes) {
                if tell.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            drawn,
            since,
        }
    }

    /// What is drawn within this time.
    pub(crate) fn drawn_in(&self, time: Duration) -> String {
        let (begun, mut all) = (Instant::now(), Vec::new());
        while let Some(left) = time.checked_sub(begun.elapsed()) {
            match self.drawn.recv_timeout(left) {
                Ok(more) => all.extend(more),
                Err(_) => break,
            }
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Until these bytes were drawn, from the last key or the start on.
    pub(crate) fn until(&self, text: &str) -> Duration {
        let mut all = Vec::new();
        while !all.windows(text.len()).any(|part| part == text.as_bytes()) {
            match self.drawn.recv_timeout(Duration::from_secs(60)) {
                Ok(more) => all.extend(more),
                Err(error) => unreachable!(
                    "{text:?} was not drawn ({error}): {}",
                    String::from_utf8_lossy(&all)
                ),
            }
        }
        self.since.elapsed()
    }

    pub(crate) fn press(&mut self, key: &str) {
        // What is still being drawn for the key before does not count for this one.
        while self.drawn.recv_timeout(Duration::from_millis(150)) != Err(RecvTimeoutError::Timeout)
        {
        }
        self.since = Instant::now();
        self.send(key);
    }

    /// Hands bytes to the console at once, as a terminal does.
    pub(crate) fn send(&mut self, bytes: &str) {
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(bytes.as_bytes())
            .unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.stdin.as_mut().unwrap().write_all(b"\x03");
        std::thread::sleep(Duration::from_millis(50));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
