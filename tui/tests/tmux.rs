//! The real console in a real terminal: keys go in through tmux, the screen comes out of it, the ledger is asked beside it.
//!
//! Skipped with a message where tmux is not installed, except on CI. Every test has its own ledger, state directory and tmux
//! server, and ends only what it started.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test says what is wrong by failing, and that it was skipped")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use farebox_ledger::sqlite::{Durability, OpenMode, SqliteLedger};
use farebox_ledger::{
    Act, Amount, Bill, EntryQuery, Hold, KeyId, KeySettings, Ledger, Line, NewHold, NewKey, OperationId, Secret, SharedLedger,
    Timestamp,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// One console in its own tmux server.
struct Console {
    directory: tempfile::TempDir,
    socket: PathBuf,
}

fn has_tmux() -> bool {
    let found = Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success());
    assert!(found || std::env::var_os("CI").is_none(), "tmux is not installed");
    if !found {
        println!("skipped: tmux is not installed");
    }
    found
}

fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

fn at(number: u64) -> (OperationId, Timestamp) {
    let now = Timestamp::from_millis(1_795_000_000_000 + i64::try_from(number).unwrap());
    (OperationId::new(now, number.into()), now)
}

/// Keys 1 to `keys`; the first one has no money, the others have 5 USD.
async fn seed(path: &Path, keys: u64) {
    let ledger = SqliteLedger::open(path, OpenMode::Create, Durability::Prompt).unwrap();
    for number in 1..=keys {
        let (operation, now) = at(number);
        let id = KeyId::from_random(number);
        let settings = KeySettings { label: format!("customer-{number}"), ..KeySettings::default() };
        let first_credit = (number > 1).then(|| (usd("5"), format!("seed-{number}")));
        let act = Act { operation, actor: "seed".to_owned(), at: now };
        let secret = Secret::generate(id, [7; 32]).hash();
        ledger.create_key(NewKey { id, secret, settings, first_credit, act }).await.unwrap();
    }
    ledger.close();
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(future)
}

impl Console {
    fn new(keys: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("tmux");
        let console = Self { directory, socket };
        run(seed(&console.ledger(), keys));
        console.start();
        console.wait_for("Keys ·");
        console
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn ledger(&self) -> PathBuf {
        self.path("farebox.db")
    }

    fn tmux(&self, args: &[&str]) -> Output {
        Command::new("tmux").arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(args).output().unwrap()
    }

    fn start(&self) {
        let command = format!(
            "cd {home} && exec env XDG_STATE_HOME={home}/state {binary} --ledger {home}/farebox.db --admin http://127.0.0.1:9 --operator ada 2>{home}/errors",
            home = self.directory.path().display(),
            binary = env!("CARGO_BIN_EXE_farebox-console"),
        );
        let started = self.tmux(&["new-session", "-d", "-x", "80", "-y", "24", &command]);
        assert!(started.status.success(), "{started:?}");
    }

    fn press(&self, keys: &[&str]) {
        for key in keys {
            let sent = self.tmux(&["send-keys", key]);
            assert!(sent.status.success(), "{sent:?}");
        }
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    fn wait_for(&self, text: &str) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(started.elapsed() < PATIENCE, "{text:?} never came:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the console as a power cut would.
    fn kill(&self) {
        let pid = String::from_utf8(self.tmux(&["display-message", "-p", "#{pane_pid}"]).stdout).unwrap();
        let killed = Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
        assert!(killed.success());
        let process = Path::new("/proc").join(pid.trim());
        let started = Instant::now();
        while process.exists() && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.tmux(&["kill-server"]);
    }

    fn open(&self) -> SqliteLedger {
        SqliteLedger::open(self.ledger(), OpenMode::ReadOnly, Durability::Prompt).unwrap()
    }

    /// Balance and number of entries of a key, as another program reads them.
    fn books(&self, number: u64) -> (Amount, usize) {
        let (ledger, id) = (self.open(), KeyId::from_random(number));
        run(async {
            let key = ledger.find_key(id).await.unwrap().unwrap();
            let entries = ledger.entries(EntryQuery { key: Some(id), ..EntryQuery::default() }).await.unwrap();
            (key.account.balance(), entries.len())
        })
    }

    fn operations_on_file(&self) -> usize {
        let files = std::fs::read_dir(self.path("state/farebox-console"));
        files.map_or(0, |files| files.flatten().filter(|file| file.path().extension().is_some_and(|end| end == "json")).count())
    }

    /// Fills the form of a top-up of the oldest key and stops in its review.
    fn review_a_top_up(&self, amount: &str, reference: &str) -> String {
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

#[test]
fn a_key_at_zero_is_topped_up_once_however_often_y_is_pressed() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(3);
    console.press(&["G"]);
    console.wait_for("> k_0000000001");
    console.press(&["t", "1,000", "Tab", "inv-1", "Enter"]);
    console.wait_for("ambiguous");
    console.press(&["C-u", "12.50", "Tab", "Enter"]);
    let review = console.wait_for("[ Cancel ]");
    assert!(review.contains("$12.50") && review.contains("$0.00"), "{review}");
    console.press(&["y", "y", "y", "y"]);
    console.wait_for("✓ applied");
    assert_eq!(console.books(1), (usd("12.5"), 1));
    console.press(&["Escape"]);
    console.wait_for("$12.50");
    assert_eq!(console.operations_on_file(), 0);
    // The same reference with another amount is a conflict: nothing happens, and the form is free again.
    console.review_a_top_up("13", "inv-1");
    console.press(&["y"]);
    console.wait_for("already used");
    assert_eq!(console.books(1), (usd("12.5"), 1));
    assert_eq!(console.operations_on_file(), 0);
}

#[test]
fn a_new_key_works_and_its_secret_is_nowhere_else() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(1);
    console.press(&["n", "a new customer", "Enter", "25", "Enter", "inv-n", "Enter", "C-s"]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    let page = console.wait_for("sk-fb-");
    let text = page.split_whitespace().find(|word| word.starts_with("sk-fb-")).unwrap();
    let (id, secret) = Secret::parse(text).unwrap();
    let ledger = console.open();
    let key = run(ledger.find_key(id)).unwrap().unwrap();
    assert!(key.opens_with(secret.hash(), Timestamp::from_millis(0)));
    assert_eq!(key.account.balance(), usd("25"));
    console.press(&["w"]);
    console.wait_for("› File");
    console.press(&["Enter"]);
    console.wait_for(&format!("{id}.key"));
    console.press(&["q"]);
    console.wait_for("Leaving erases it");
    console.press(&["saved", "Enter"]);
    let list = console.wait_for("Keys · 2");
    assert!(list.contains("a new customer") && !list.contains("sk-fb-"), "{list}");
    assert_eq!(std::fs::read_to_string(console.path(&format!("{id}.key"))).unwrap().trim(), text);
    for file in ["farebox.db", "farebox.db-wal", "errors"] {
        let bytes = std::fs::read(console.path(file)).unwrap_or_default();
        assert!(!bytes.windows(text.len()).any(|part| part == text.as_bytes()), "{file} holds the secret");
    }
}

#[test]
fn killed_at_confirmation_there_is_no_double_credit() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(2);
    // Killed in the review: nothing was sent and nothing is on file.
    console.review_a_top_up("10", "inv-k");
    console.kill();
    assert_eq!((console.books(1), console.operations_on_file()), ((usd("0"), 0), 0));
    // Killed after y, at a moment that moves: the credit is there once or not at all, and the next start knows which.
    let mut credits = 0;
    for round in 0_u64..5 {
        console.start();
        console.wait_for("Keys ·");
        console.review_a_top_up("10", &format!("inv-k{round}"));
        console.press(&["y"]);
        std::thread::sleep(Duration::from_millis(round * 4));
        console.kill();
        let applied = console.books(1).1 > credits;
        credits += usize::from(applied);
        if console.operations_on_file() > 0 {
            console.start();
            console.wait_for("outcome nobody saw");
            if applied {
                console.wait_for("It was applied once");
                console.press(&["d"]);
            } else {
                console.wait_for("NOT applied");
                console.press(&["y"]);
                console.wait_for("[ Cancel ]");
                console.press(&["y"]);
                console.wait_for("✓ applied");
                console.press(&["Escape"]);
                credits += 1;
            }
            console.wait_for("Keys ·");
            console.kill();
        }
        let ten_each = Amount::times(usd("10"), credits.try_into().unwrap()).unwrap();
        assert_eq!(console.books(1), (ten_each, credits), "round {round}");
        assert_eq!(console.operations_on_file(), 0);
    }
}

#[test]
fn balances_move_by_themselves_beside_a_writer() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(3);
    console.press(&["/", "customer-2"]);
    console.wait_for("Keys · customer-2 · 1 of 3");
    console.press(&["Enter", "Enter"]);
    console.wait_for("sum of 1 entries = balance ✓");
    let writer: SharedLedger = Arc::new(SqliteLedger::open(console.ledger(), OpenMode::Write, Durability::Prompt).unwrap());
    run(async {
        for number in 0..200 {
            let (request, now) = at(1000 + number);
            let (slug, family) = ("gpt-5-mini".to_owned(), "chat".to_owned());
            let (key, amount) = (KeyId::from_random(2), usd("0.01"));
            let new = NewHold { request, key, amount, slug: slug.clone(), family: family.clone(), at: now };
            let hold = Hold::open(Arc::clone(&writer), new).await.unwrap();
            let lines = vec![Line { what: "input".into(), count: 1000, rate: usd("0.00001") }];
            let bill = Bill { slug, family, lines, status: 200, end_reason: "stop".to_owned(), ..Bill::default() };
            hold.settle(bill, now).await.unwrap();
        }
    });
    console.wait_for("Balance $3.00");
    console.press(&["t", "1", "Tab", "inv-beside", "Enter"]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    console.wait_for("✓ applied");
    console.press(&["Escape"]);
    console.wait_for("Balance $4.00");
    console.wait_for("sum of 202 entries = balance ✓");
    assert_eq!(console.books(2), (usd("4"), 202));
}

#[test]
fn a_ledger_that_cannot_be_used_is_said_so_and_nothing_is_created() {
    let directory = tempfile::tempdir().unwrap();
    let console = |path: &Path| Command::new(env!("CARGO_BIN_EXE_farebox-console")).arg("--ledger").arg(path).output().unwrap();
    let missing = directory.path().join("missing.db");
    let output = console(&missing);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.db"), "{output:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let other = directory.path().join("other.db");
    std::fs::write(&other, "this is not a ledger at all, it is text").unwrap();
    let output = console(&other);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("farebox-console: "), "{output:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn every_key_is_reached_by_pages() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(450);
    let screen = console.wait_for("> k_");
    assert!(screen.contains("customer-450"), "{screen}");
    console.press(&["G"]);
    console.wait_for("> k_0000000001");
    console.press(&["g"]);
    console.wait_for("customer-450");
    console.press(&["s"]);
    console.wait_for("BALANCE ▲");
    console.wait_for("> k_0000000001");
}
