//! An operator's console in a terminal beside a gateway.
#![cfg(test)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::skip::{installed, list};

const PATIENCE: Duration = Duration::from_secs(60);

/// The console in a tmux server of its own, which ends with it.
pub(crate) struct Screen {
    folder: tempfile::TempDir,
}

impl Screen {
    /// Opens it on a ledger. `None` where tmux is not installed, or the console has not been built.
    pub(crate) fn open(ledger: &str, admin: &str) -> Option<Self> {
        if !installed("tmux", "the console beside gateways") {
            return None;
        }
        let console = Path::new(env!("CARGO_BIN_EXE_farebox")).with_file_name("farebox-console");
        if !console.exists() {
            list("the console beside gateways: cargo build makes the console");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let screen = Self { folder };
        let command = format!(
            "HOME={} {} --ledger '{ledger}' --admin {admin} --read-only --allow-single",
            screen.folder.path().display(),
            console.display()
        );
        let size = ["-x", "200", "-y", "50"];
        screen.tmux(&[&["new-session", "-d"][..], &size, &[&command]].concat());
        screen.until("Keys ·");
        Some(screen)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux")
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.socket())
            .args(["-f", "/dev/null"])
            .args(arguments)
            .env("LANG", "C.UTF-8")
            .env_remove("TMUX")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types this.
    pub(crate) fn press(&self, keys: &str) {
        self.tmux(&["send-keys", keys]);
    }

    /// Waits until it shows these words, wherever its lines end.
    pub(crate) fn until(&self, words: &str) {
        self.wait(words, true);
    }

    /// A customer's grants: waits for so many, and returns the words of each line.
    pub(crate) fn grants_of(&self, customer: &str, count: usize) -> Vec<Vec<String>> {
        self.press("U");
        self.until("Customers ·");
        for key in ["/", "C-u", customer, "Enter"] {
            self.press(key);
        }
        self.until(&format!("> ▸ {customer}"));
        self.press("Enter");
        self.until("esc back");
        self.press("]");
        self.press("]");
        self.until(&format!("1 of {count}"));
        self.until("GRANT GIVEN LEFT");
        let screen = self.tmux(&["capture-pane", "-p"]);
        self.press("Escape");
        // With the next key it would be another one.
        self.until("space its keys");
        let lines = screen.lines().map(in_one_line);
        let words = |line: String| line.split(' ').map(str::to_owned).collect();
        lines
            .filter(|line| line.contains("g_"))
            .map(words)
            .collect()
    }

    /// Whether it shows these words now.
    pub(crate) fn shows(&self, words: &str) -> bool {
        in_one_line(&self.tmux(&["capture-pane", "-p"])).contains(&in_one_line(words))
    }

    /// Waits until it does not show them any more.
    pub(crate) fn until_gone(&self, words: &str) {
        self.wait(words, false);
    }

    fn wait(&self, words: &str, there: bool) {
        let words = in_one_line(words);
        let begun = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if in_one_line(&screen).contains(&words) == there {
                return;
            }
            let is = if there { "not on" } else { "still on" };
            assert!(begun.elapsed() < PATIENCE, "{words:?} is {is}:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Its words, without frames and line ends.
fn in_one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '│' | '▌'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(self.socket())
            .arg("kill-server")
            .output();
    }
}
