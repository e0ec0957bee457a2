//! Bad days of the machine: a clock that is off, a disk that fails, and settlements that cannot be written.
//!
//! Clock and disk are broken for the gateway alone, by a library before the system's own (`tests/assets/broken_machine.c`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use farebox_protocol::Family;

use super::bad_days::{Place, over, told};
use super::identity::{move_all, put_back};
use crate::support::cluster::Cluster;
use crate::support::load::{self, UPSTREAM_KEY};
use crate::support::process::{Served, client};
use crate::support::skip::{installed, skip};
use crate::support::talking;
use crate::support::upstream::{Gate, Script, ScriptedUpstream, Speech};

/// A machine that can be broken.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
    library: PathBuf,
}

impl Machine {
    /// `None` where there is no compiler.
    pub(crate) fn new() -> Option<Self> {
        if !installed("cc", "a machine that is out of order") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("broken_machine.so");
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/assets/broken_machine.c"
        );
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(source)
            .status()
            .unwrap();
        assert!(made.success());
        Some(Self { folder, library })
    }

    /// Where it is, for a server that runs as another user.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Variables for whoever runs on it.
    pub(crate) fn environment(&self) -> [(&str, &str); 2] {
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("BROKEN_MACHINE", self.folder.path().to_str().unwrap()),
        ]
    }

    pub(crate) fn set(&self, what: &str, value: &str) {
        let new = self.folder.path().join("new");
        fs::write(&new, value).unwrap();
        fs::rename(new, self.folder.path().join(what)).unwrap();
    }
}

fn serve(folder: &Path, machine: &Machine, more: &[(&str, &str)]) -> Served {
    let environment = [&machine.environment()[..], &[UPSTREAM_KEY], more].concat();
    Served::start_with(folder, &[], &environment)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_off_stops_selling_until_it_is_set() {
    let (Some(machine), Some(cluster)) = (Machine::new(), Cluster::shared()) else {
        return skip("a clock that is off: PostgreSQL or a compiler is not installed");
    };
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, _) = load::place(&upstream);
    let address = cluster.url(&cluster.database());
    load::new_ledger(&address).await.close();
    let more = [
        ("FAREBOX_LEDGER", address.as_str()),
        ("FAREBOX_ALLOW_SINGLE", "true"),
    ];
    let served = serve(folder.path(), &machine, &more).watched(&address);
    machine.set("seconds", "45");
    let wrong = told(&served, "clock_wrong", "").await;
    let reason = wrong["reason"].as_str().unwrap();
    // Whole seconds of what is a little less or more than 45.
    assert!(
        reason.ends_with("44 s apart") || reason.ends_with("45 s apart"),
        "{wrong}"
    );
    let ready = client()
        .get(format!("{}/readyz", served.admin))
        .send()
        .await;
    assert_eq!(ready.unwrap().status(), 503, "nothing is sold here");
    machine.set("seconds", "0");
    over(&served, "clock_wrong", "").await;
    // What a trial without a standby is told all the time.
    told(&served, "single", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_stops_the_gateway_and_its_last_words_say_why() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, ledger) = load::place(&upstream);
    let book = load::create(&ledger);
    let key = load::key(&book, "10").await;
    book.close();
    drop(book);
    let mut served = serve(folder.path(), &machine, &[]);
    machine.set("disk", "1");
    let asked = served.ask("test-model", &key.secret).await;
    assert!(asked.is_err(), "{asked:?}");
    let ended = served.ended();
    let log = served.log();
    assert!(!ended.success(), "{log}");
    let begins = log
        .lines()
        .find(|line| line.contains("an alert begins") && line.contains("alert=\"ledger_stopped\""));
    let line = begins.unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("WARN") && line.contains("remedy="), "{line}");
    assert!(log.contains("the ledger stopped"), "{log}");
    machine.set("disk", "0");
    let served = serve(folder.path(), &machine, &[]);
    served.ask("test-model", &key.secret).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settlements_that_wait_for_the_ledger_are_told_until_they_are_written() {
    let gate = Gate::new();
    let held_back = gate.clone();
    let script = Script::by(move |_, _| {
        let speech = Speech::new(Family::Chat, "one two three four five six");
        speech.stream().gate_after(3, &held_back)
    });
    let upstream = ScriptedUpstream::start(script).await;
    let place = Place::start(&upstream.base_url());
    let body = serde_json::json!({
        "model": "test-model", "stream": true, "messages": [{ "role": "user", "content": "Say PONG" }],
    });
    let request = client()
        .post(format!("{}/v1/chat/completions", place.served.base))
        .bearer_auth(&place.keys[0].1)
        .json(&body);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let away = place.folder.path().join("away");
    move_all(place.folder.path(), &away);
    told(&place.served, "ledger_displaced", "").await;
    gate.open();
    let reading = tokio::spawn(answer.text());
    let waits = told(&place.served, "unresolved", "").await;
    assert_eq!(waits["holds"], 1, "{waits}");
    put_back(&away, place.folder.path());
    over(&place.served, "unresolved", "").await;
    over(&place.served, "ledger_displaced", "").await;
    reading.await.unwrap().unwrap();
}
