//! The table of a ledger's faults: each is caused for real, told within two seconds in the right words with the right remedy, wherever
//! somebody looks, and ended within two seconds of its repair.
//!
//! Every place answers within a tenth of a second, whatever the ledger does. On a machine that is busy with other tests only the words are
//! asserted; `FAREBOX_FULL=1` asserts the times, and runs the rows that cost much.

mod database;
mod file;
mod pair;

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::{JoinHandle, block_in_place};

use crate::support::process::{Served, ask, client};
use crate::support::skip::skip;
use crate::support::{TestKey, sized};

/// A fault, and what is to be told of it.
struct Row {
    /// What fails, for whoever reads a failure.
    what: &'static str,
    /// The alert.
    kind: &'static str,
    /// What its reason says.
    says: Vec<String>,
    /// What its remedy says.
    remedy: &'static str,
    /// Whether nothing is sold; `None` if that depends on what is under way.
    stops: Option<bool>,
}

impl Row {
    fn new(what: &'static str, kind: &'static str, says: &[&str], remedy: &'static str) -> Self {
        Self {
            what,
            kind,
            says: says.iter().map(|words| (*words).to_owned()).collect(),
            remedy,
            stops: Some(true),
        }
    }

    /// One that does not stop the sale.
    fn beside(self) -> Self {
        Self {
            stops: Some(false),
            ..self
        }
    }

    /// One that stops the sale now and then.
    fn at_times(self) -> Self {
        Self {
            stops: None,
            ..self
        }
    }
}

/// What one look at the gateway found, and how long its slowest answer took.
struct Look {
    ready: (u16, String),
    alert: Option<Value>,
    writable: bool,
    slowest: Duration,
}

/// A gateway whose customers ask for something all the time, whatever becomes of it.
struct Asked<'gateway> {
    served: &'gateway Served,
    key: &'gateway TestKey,
    customers: JoinHandle<()>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.customers.abort();
    }
}

impl<'gateway> Asked<'gateway> {
    async fn start(served: &'gateway Served, key: &'gateway TestKey) -> Self {
        let (base, secret) = (served.base.clone(), key.secret.clone());
        let customers = tokio::spawn(async move {
            let client = client();
            loop {
                let (client, base, secret) = (client.clone(), base.clone(), secret.clone());
                tokio::spawn(async move { ask(&client, &base, "test-model", &secret).await });
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        let asked = Self {
            served,
            key,
            customers,
        };
        asked.sells().await;
        asked
    }

    async fn sells(&self) {
        let begun = Instant::now();
        while let Err(why) = self.served.ask("test-model", &self.key.secret).await {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{why}\n{}",
                self.served.log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn look(&self, kind: &str) -> Look {
        let client = client();
        let mut slowest = Duration::ZERO;
        let mut read = async |path: &str| {
            let begun = Instant::now();
            let answer = client.get(format!("{}{path}", self.served.admin)).send();
            let answer = answer.await.unwrap();
            let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
            slowest = slowest.max(begun.elapsed());
            (status, text)
        };
        let ready = read("/readyz").await;
        let status: Value = serde_json::from_str(&read("/status").await.1).unwrap();
        let metrics = read("/metrics").await.1;
        let alerts = status["alerts"].as_array().unwrap();
        let writable = metrics.contains("\nfarebox_ledger_writable 1\n");
        assert!(writable || metrics.contains("\nfarebox_ledger_writable 0\n"));
        Look {
            ready,
            alert: alerts.iter().find(|alert| alert["kind"] == kind).cloned(),
            writable,
            slowest,
        }
    }

    /// Causes a fault, and returns when it is told everywhere.
    async fn told(&self, row: &Row, cause: impl FnOnce()) {
        block_in_place(cause);
        let (begun, mut answers) = (Instant::now(), Vec::new());
        loop {
            let look = self.look(row.kind).await;
            answers.push(look.slowest);
            let words = |field: &str| {
                let found = look.alert.as_ref().and_then(|alert| alert[field].as_str());
                found.unwrap_or_default().to_owned()
            };
            let (reason, remedy) = (words("reason"), words("remedy"));
            let (status, ready) = &look.ready;
            let said = row.says.iter().all(|words| reason.contains(words))
                && remedy.contains(row.remedy)
                && look.alert.is_some();
            let stopped = (*status, look.writable) == (503, false) && ready.contains(&reason);
            let sold = (*status, look.writable) == (200, true);
            let as_told = match row.stops {
                Some(true) => stopped,
                Some(false) => sold,
                None => stopped || sold,
            };
            if said && as_told {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{}: {ready}, {:?}\n{}",
                row.what,
                look.alert,
                self.served.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.in_time(row, "told", begun.elapsed(), answers);
    }

    /// Repairs it, and returns when it is over everywhere and the gateway sells.
    async fn over(&self, row: &Row, repair: impl FnOnce()) {
        block_in_place(repair);
        let (begun, mut answers) = (Instant::now(), Vec::new());
        loop {
            let look = self.look(row.kind).await;
            answers.push(look.slowest);
            if look.alert.is_none() && look.writable && look.ready.0 == 200 {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{}: {:?}, {:?}\n{}",
                row.what,
                look.ready,
                look.alert,
                self.served.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.in_time(row, "over", begun.elapsed(), answers);
        self.sells().await;
    }

    /// Both.
    async fn goes_through(&self, row: &Row, cause: impl FnOnce(), repair: impl FnOnce()) {
        self.told(row, cause).await;
        self.over(row, repair).await;
    }

    #[expect(
        clippy::print_stdout,
        reason = "the table in seconds, for whoever asks for the output"
    )]
    fn in_time(&self, row: &Row, what: &str, took: Duration, mut answers: Vec<Duration>) {
        // Beside other programs one of many answers is late.
        answers.sort_unstable();
        let answered = answers[answers.len() / 2];
        let (bound, answer) = (Duration::from_secs(2), Duration::from_millis(100));
        println!(
            "{}: {what} after {} ms, answers within {} ms",
            row.what,
            took.as_millis(),
            answered.as_millis()
        );
        let full = all_rows();
        assert!(
            !full || took <= bound && answered <= answer,
            "{} is {what} after {took:?}, and answers took {answered:?}\n{}",
            row.what,
            self.served.log()
        );
    }
}

/// Lists rows that this machine cannot make as not tested. A full run fails on them, whatever it may skip otherwise.
fn not_tested(rows: &str) {
    assert!(!all_rows(), "not tested: {rows}");
    skip(rows);
}

/// Waits for what has to be so before a fault is caused, or is part of it.
#[track_caller]
fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the rows that cost much are run, too.
fn all_rows() -> bool {
    sized(0, 1) == 1
}
