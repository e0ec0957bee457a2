//! A log that nobody reads: requests are answered and charged as usual, and the gateway can still stop.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::process::{ask, client, farebox, funded_key, json, text_at};
use crate::support::skip;

/// Requests in each case: their lines are more than a pipe of 64 KiB takes.
const REQUESTS: usize = 250;

/// How long the gateway may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway with the shipped files on a funded key, whose standard error is `log`.
struct Unread {
    folder: tempfile::TempDir,
    child: Child,
    base: String,
    admin: String,
    key: Value,
}

impl Unread {
    async fn start(log: impl Into<Stdio>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["catalog.toml", "routes.toml"] {
            std::fs::copy(
                Path::new(crate::support::HOME).join(name),
                folder.path().join(name),
            )
            .unwrap();
        }
        let key = funded_key(folder.path(), "5");
        let [base, admin] = [free_address(), free_address()];
        let arguments = ["serve", "--listen", &base, "--admin-listen", &admin];
        let child = farebox(folder.path(), &arguments)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let unread = Self {
            folder,
            child,
            base: format!("http://{base}"),
            admin: format!("http://{admin}"),
            key,
        };
        let (client, began) = (client(), Instant::now());
        while client
            .get(format!("{}/readyz", unread.admin))
            .send()
            .await
            .is_err()
        {
            assert!(began.elapsed() < PATIENCE, "it does not serve");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        unread
    }

    async fn ask_and_stop(mut self, what: &str, is_lost: bool) {
        let (client, secret) = (client(), self.key["secret"].as_str().unwrap().to_owned());
        for number in 0..REQUESTS {
            let answer = ask(&client, &self.base, "sim-chat", &secret).await;
            assert!(answer.is_ok(), "{what}, request {number}: {answer:?}");
        }
        let lost = async || {
            let metrics = text_at(&client, format!("{}/metrics", self.admin)).await;
            let lost = metrics
                .lines()
                .find_map(|line| line.strip_prefix("farebox_log_lines_lost_total "))
                .unwrap();
            lost.parse::<usize>().unwrap()
        };
        // A thread of its own writes the log, or counts what it cannot write.
        let began = Instant::now();
        while is_lost && lost().await < REQUESTS {
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: only {} lines are counted",
                lost().await
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(
            is_lost || lost().await == 0,
            "{what}: lines still wait for the reader"
        );
        assert!(
            std::process::Command::new("kill")
                .arg(self.child.id().to_string())
                .status()
                .unwrap()
                .success()
        );
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: it does not stop");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(status.success(), "{what}: {status}");

        let folder = self.folder.path();
        assert!(
            farebox(folder, &["ledger", "verify"])
                .output()
                .unwrap()
                .status
                .success(),
            "{what}"
        );
        let book = json(folder, &["ledger", "entries"]);
        let charges: Vec<_> = book["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["kind"] == "charge")
            .collect();
        assert_eq!(charges.len(), REQUESTS, "{what}");
        assert!(
            charges
                .iter()
                .all(|charge| charge["amount"] == charges[0]["amount"]
                    && charge["usage"]["output"] == 1),
            "{what}"
        );
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// On a loopback address that nothing else uses, so that nobody takes the port before the gateway does.
fn free_address() -> String {
    std::net::TcpListener::bind("127.0.8.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string()
}

/// As `serve 2>&1 | tee` when tee dies.
#[tokio::test]
async fn answers_go_on_when_the_reader_of_the_log_is_gone() {
    let mut unread = Unread::start(Stdio::piped()).await;
    let mut lines = BufReader::new(unread.child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("serving")));
    drop(lines);
    unread.ask_and_stop("a closed pipe", true).await;
}

#[tokio::test]
async fn answers_go_on_when_the_log_is_a_pipe_that_nobody_reads() {
    let mut unread = Unread::start(Stdio::piped()).await;
    let _held_open = unread.child.stderr.take();
    unread.ask_and_stop("a full pipe", false).await;
}

#[tokio::test]
async fn answers_go_on_when_the_disk_of_the_log_is_full() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        return skip::skip("a log on a full disk: no /dev/full");
    };
    Unread::start(full)
        .await
        .ask_and_stop("a full disk", true)
        .await;
}
