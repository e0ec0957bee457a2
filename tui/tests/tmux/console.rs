//! A console in its own tmux server, with its own ledger.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Act, Amount, Durability, EntryQuery, KeyId, KeySettings, Ledger, Membership, NewKey, OpenMode,
    OperationId, Perform, Secret, Timestamp,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One console in its own tmux server.
pub(crate) struct Console {
    directory: tempfile::TempDir,
    socket: PathBuf,
    /// As `--ledger` takes it.
    address: String,
}

pub(crate) fn has_tmux() -> bool {
    crate::skip::installed("tmux", "the console in a terminal")
}

pub(crate) fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

pub(crate) fn at(number: u64) -> (OperationId, Timestamp) {
    let now = Timestamp::from_millis(1_795_000_000_000 + i64::try_from(number).unwrap());
    (OperationId::new(now, number.into()), now)
}

/// The first key has no money, the others have 5 USD.
pub(crate) fn new_key(number: u64) -> NewKey {
    let (operation, now) = at(number);
    let id = KeyId::from_random(number);
    NewKey {
        within: Membership::default(),
        id,
        secret: Secret::generate(id, [7; 32]).hash(),
        settings: KeySettings {
            label: format!("customer-{number}"),
            ..KeySettings::default()
        },
        first_credit: (number > 1).then(|| (usd("5"), format!("seed-{number}"))),
        purse: None,
        act: Act {
            operation,
            actor: "seed".to_owned(),
            at: now,
        },
    }
}

/// Keys 1 to `keys`.
pub(crate) async fn seed(path: &Path, keys: u64) {
    let ledger = SqliteLedger::create(path, OpenMode::Write, Durability::Prompt).unwrap();
    for number in 1..=keys {
        ledger.perform(new_key(number)).await.unwrap();
    }
    ledger.close();
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

impl Console {
    pub(crate) fn new(keys: u64) -> Self {
        let console = Self::not_started(keys);
        console.start();
        console.wait_for("Keys ·");
        console
    }

    /// A folder with a ledger, and no console yet.
    pub(crate) fn not_started(keys: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = directory.path().join("farebox.db").display().to_string();
        let console = Self::in_folder(directory, address);
        run(seed(&console.ledger(), keys));
        console
    }

    /// On a ledger elsewhere, and not started yet.
    pub(crate) fn of(address: String) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), address)
    }

    fn in_folder(directory: tempfile::TempDir, address: String) -> Self {
        Self {
            socket: directory.path().join("tmux"),
            directory,
            address,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path("farebox.db")
    }

    fn tmux(&self, args: &[&str]) -> Output {
        Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(args)
            .output()
            .unwrap()
    }

    pub(crate) fn start(&self) {
        self.start_with("--admin http://127.0.0.1:9");
    }

    /// Starts it with these flags besides the usual ones.
    pub(crate) fn start_with(&self, flags: &str) {
        let command = format!(
            "cd {home} && exec env XDG_STATE_HOME={home}/state {binary} --ledger '{ledger}' {flags} --operator ada 2>{home}/errors",
            ledger = self.address,
            home = self.directory.path().display(),
            binary = env!("CARGO_BIN_EXE_farebox-console"),
        );
        let started = self.tmux(&["new-session", "-d", "-x", "80", "-y", "24", &command]);
        assert!(started.status.success(), "{started:?}");
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        for key in keys {
            let sent = self.tmux(&["send-keys", key]);
            assert!(sent.status.success(), "{sent:?}");
        }
    }

    /// A click at a place, counted from 1.
    pub(crate) fn click(&self, column: u16, row: u16) {
        let report = format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m");
        let sent = self.tmux(&["send-keys", "-l", &report]);
        assert!(sent.status.success(), "{sent:?}");
    }

    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    pub(crate) fn wait_for(&self, text: &str) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "{text:?} never came:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the console as a power cut would.
    pub(crate) fn kill(&self) {
        let pid =
            String::from_utf8(self.tmux(&["display-message", "-p", "#{pane_pid}"]).stdout).unwrap();
        let killed = Command::new("kill")
            .args(["-9", pid.trim()])
            .status()
            .unwrap();
        assert!(killed.success());
        let process = Path::new("/proc").join(pid.trim());
        let started = Instant::now();
        while process.exists() && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.tmux(&["kill-server"]);
    }

    pub(crate) fn open(&self) -> SqliteLedger {
        SqliteLedger::open(self.ledger(), OpenMode::ReadOnly, Durability::Prompt).unwrap()
    }

    /// Balance and number of entries of a key, as another program reads them.
    pub(crate) fn books(&self, number: u64) -> (Amount, usize) {
        let (ledger, id) = (self.open(), KeyId::from_random(number));
        run(async {
            let key = ledger.find_key(id).await.unwrap().unwrap();
            let entries = ledger
                .entries(EntryQuery {
                    customer: Some(key.belongs_to),
                    ..EntryQuery::default()
                })
                .await
                .unwrap();
            (key.customer.account.balance(), entries.len())
        })
    }

    pub(crate) fn operations_on_file(&self) -> usize {
        let files = std::fs::read_dir(self.path("state/farebox-console"));
        files.map_or(0, |files| {
            files
                .flatten()
                .filter(|file| file.path().extension().is_some_and(|end| end == "json"))
                .count()
        })
    }

    /// Fills the form of a top-up of the oldest key and stops in its review.
    pub(crate) fn review_a_top_up(&self, amount: &str, reference: &str) -> String {
        self.press(&["G"]);
        self.wait_for("> k_0000000001");
        self.press(&["t"]);
        self.wait_for("Top up k_0000000001");
        self.press(&[amount, "Tab", reference, "Enter"]);
        self.wait_for("[ Cancel ]")
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
