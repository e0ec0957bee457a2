//! The three files of a ledger (database, `-wal`, `-shm`) moved, removed, replaced and cut off under a gateway with eight writers.
//!
//! The rule: what is confirmed is there afterwards, wherever its bytes still exist, and nothing is confirmed that is not. The writers are
//! commands, programs of the API, and programs that keep the ledger open as the console does.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farebox::clock;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Amount, Credit, CreditKind, Durability, KeyId, LedgerError, OpenMode, Perform, Scope,
};
use serde_json::json;

use super::identity::{FILES, furnish, run, top_up};
use crate::support::load::Dice;
use crate::support::process::{Served, client, farebox, json as document};
use crate::support::sized;
use crate::support::skip::skip;

/// How long the gateway may take to end or to serve again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Names a payer's ledger, in the environment of a child.
const PAYER: &str = "FAREBOX_TEST_PAYER";

fn millis() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_millis()
}

/// One payment, as its payer saw it.
#[derive(Debug, Clone)]
struct Paid {
    reference: String,
    confirmed: bool,
    begun: u128,
}

/// What happens to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// Moved away, and back after a while.
    Moved,
    Removed,
    /// Moved away; copies of a moment before are in their place.
    Replaced,
    /// Cut off at the beginning, or in the middle.
    Cut {
        half: bool,
    },
}

const DAMAGES: [Damage; 5] = [
    Damage::Moved,
    Damage::Removed,
    Damage::Replaced,
    Damage::Cut { half: false },
    Damage::Cut { half: true },
];
/// Each file and each pair, as places in `FILES`.
const SETS: [&[usize]; 6] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];

impl Damage {
    /// Whether the bytes of what was confirmed still exist somewhere.
    fn keeps(self, set: &[usize]) -> bool {
        match self {
            Self::Moved | Self::Replaced => true,
            // A log that is deleted is still open in the gateway, an index follows from the log.
            Self::Removed => !set.contains(&0),
            Self::Cut { .. } => set == [2],
        }
    }
}

/// The ledger's folder as the gateway and as the commands see it, and where its files really are.
struct Place {
    _root: tempfile::TempDir,
    folder: PathBuf,
    beside: PathBuf,
    mounted: Vec<PathBuf>,
}

impl Drop for Place {
    fn drop(&mut self) {
        for path in self.mounted.iter().rev() {
            let _ = Command::new("umount").arg("-l").arg(path).status();
        }
    }
}

impl Place {
    /// An ordinary folder, one that is mounted at a second place, or an overlay.
    fn new(kind: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("ledger");
        let beside = root.path().join("beside");
        let mut mounted = Vec::new();
        let mut mount = |arguments: &[&str], at: &Path| {
            let done = Command::new("mount").args(arguments).arg(at).status();
            let done = done.is_ok_and(|status| status.success());
            if done {
                mounted.push(at.to_owned());
            }
            done
        };
        for name in ["ledger", "beside", "upper", "work"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let shown = |name: &str| root.path().join(name).display().to_string();
        let beside = match kind {
            1 if mount(&["--bind", &shown("ledger")], &beside) => beside,
            2 => {
                let layers = format!(
                    "lowerdir={},upperdir={},workdir={}",
                    shown("beside"),
                    shown("upper"),
                    shown("work")
                );
                if !mount(&["-t", "overlay", "-o", &layers, "overlay"], &folder) {
                    skip("a ledger on an overlay: it cannot be mounted");
                }
                folder.clone()
            }
            1 => {
                skip("a ledger in a folder that is mounted twice: it cannot be mounted");
                folder.clone()
            }
            _ => folder.clone(),
        };
        Self {
            _root: root,
            folder,
            beside,
            mounted,
        }
    }
}

/// Everybody who pays, until told to stop.
struct Payers {
    stop: Arc<AtomicBool>,
    paid: Arc<Mutex<Vec<Paid>>>,
    threads: Vec<JoinHandle<()>>,
    children: Vec<Child>,
}

impl Payers {
    fn start(place: &Place, admin: &str, (key, customer, token): (&str, &str, &str)) -> Self {
        let mut payers = Self {
            stop: Arc::default(),
            paid: Arc::default(),
            threads: Vec::new(),
            children: Vec::new(),
        };
        for number in 0..3 {
            let (folder, key) = (place.beside.clone(), key.to_owned());
            payers.thread(number, move |reference| {
                let (code, text) = top_up(&folder, &key, reference);
                // 70: the index was cut off while the command used it.
                assert!([0, 1, 70, 75, 78].contains(&code), "{code} {text}");
                code == 0
            });
        }
        for number in 3..6 {
            let url = format!("{admin}/api/v1/customers/{customer}/top-ups");
            let token = token.to_owned();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let (runtime, client) = (runtime.unwrap(), client());
            payers.thread(number, move |reference| {
                let request = client.post(&url).bearer_auth(&token);
                let request = request.header("idempotency-key", reference);
                let body = json!({ "amount": "1", "reference": reference });
                let answer = runtime.block_on(request.json(&body).send());
                std::thread::sleep(Duration::from_millis(5));
                answer.is_ok_and(|answer| answer.status() == 201)
            });
        }
        for number in 6..8 {
            payers.child(&place.beside.join("farebox.db"), key, number);
        }
        payers
    }

    fn thread(&mut self, number: u32, mut pay: impl FnMut(&str) -> bool + Send + 'static) {
        let (stop, paid) = (Arc::clone(&self.stop), Arc::clone(&self.paid));
        self.threads.push(std::thread::spawn(move || {
            for turn in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let reference = format!("{number}-{turn}-{}", millis());
                let begun = millis();
                let confirmed = pay(&reference);
                let one = Paid {
                    reference,
                    confirmed,
                    begun,
                };
                paid.lock().unwrap().push(one);
            }
        }));
    }

    /// A process of its own: a cut index may end it.
    fn child(&mut self, ledger: &Path, key: &str, number: u32) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command
            .args(["--exact", "process::three_files::a_payer", "--nocapture"])
            .env(PAYER, ledger)
            .env("FAREBOX_TEST_KEY", key)
            .env("FAREBOX_TEST_NUMBER", number.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let paid = Arc::clone(&self.paid);
        self.threads.push(std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let words: Vec<&str> = line.split(' ').collect();
                if let ["paid", reference, confirmed, begun] = words[..] {
                    paid.lock().unwrap().push(Paid {
                        reference: reference.to_owned(),
                        confirmed: confirmed == "true",
                        begun: begun.parse().unwrap(),
                    });
                }
            }
        }));
        self.children.push(child);
    }

    fn count(&self) -> usize {
        self.paid.lock().unwrap().len()
    }

    fn ended(mut self) -> Vec<Paid> {
        self.stop.store(true, Ordering::Relaxed);
        for child in &mut self.children {
            // Its standard input ends.
            drop(child.stdin.take());
        }
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        for child in &mut self.children {
            child.wait().unwrap();
        }
        self.paid.lock().unwrap().clone()
    }
}

/// Not a test by itself: pays as the console does, with a ledger that stays open, until its standard input ends.
#[test]
fn a_payer() {
    let (Some(ledger), Ok(key), Ok(number)) = (
        std::env::var_os(PAYER),
        std::env::var("FAREBOX_TEST_KEY"),
        std::env::var("FAREBOX_TEST_NUMBER"),
    ) else {
        return;
    };
    static STOP: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        STOP.store(true, Ordering::Relaxed);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let key: KeyId = key.parse().unwrap();
    let mut open: Option<SqliteLedger> = None;
    for turn in 0.. {
        if STOP.load(Ordering::Relaxed) {
            return;
        }
        let reference = format!("{number}-{turn}-{}", millis());
        let begun = millis();
        if open.is_none() {
            open = SqliteLedger::open(&ledger, OpenMode::Write, Durability::Prompt).ok();
        }
        let confirmed = open.as_ref().is_some_and(|ledger| {
            let credit = Credit {
                operation: clock::operation_id(),
                to: Scope::Key(key),
                kind: CreditKind::TopUp,
                amount: Amount::from_usd_str("1").unwrap(),
                reference: reference.clone(),
                actor: "console".to_owned(),
                at: clock::now(),
            };
            match runtime.block_on(ledger.perform(credit)) {
                Ok(_) => true,
                Err(LedgerError::Refused(refusal)) => panic!("{refusal:?}"),
                Err(_) => false,
            }
        });
        println!("paid {reference} {confirmed} {begun}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The damage, and what undoes it where it can be undone: files to move back, in any order.
fn damage(folder: &Path, kind: Damage, set: &[usize], dice: &mut Dice) -> Vec<(PathBuf, PathBuf)> {
    let aside = folder.join(format!("aside-{}", millis()));
    fs::create_dir(&aside).unwrap();
    let mut set = set.to_vec();
    if dice.below(2) == 0 {
        set.reverse();
    }
    let mut back = Vec::new();
    for place in set {
        let (path, other) = (folder.join(FILES[place]), aside.join(FILES[place]));
        match kind {
            Damage::Moved => {
                if fs::rename(&path, &other).is_ok() {
                    back.push((other, path));
                }
            }
            Damage::Removed => {
                let _ = fs::remove_file(&path);
            }
            Damage::Replaced => {
                let copy = aside.join("copy");
                if fs::copy(&path, &copy).is_ok() && fs::rename(&path, &other).is_ok() {
                    fs::rename(&copy, &path).unwrap();
                    back.push((other, path));
                }
            }
            Damage::Cut { half } => {
                let file = OpenOptions::new().write(true).open(&path);
                let _ = file.map(|file| {
                    let length = file.metadata().unwrap().len();
                    // Of the index, whose rest is for long logs: what finds pages in its first block.
                    let some = if path.to_string_lossy().ends_with("-shm") {
                        16 << 10
                    } else {
                        length / 2
                    };
                    file.set_len(if half { some } else { 0 }).unwrap();
                });
            }
        }
    }
    back
}

/// Everything back as it was before the damage; what has come meanwhile is moved away. `late`: the gateway has ended.
fn undo(mut back: Vec<(PathBuf, PathBuf)>, late: bool, dice: &mut Dice) {
    if dice.below(2) == 0 {
        back.reverse();
    }
    for (from, to) in back {
        // A gateway that has ended copied its log into the database, and says not to put that log back: commands may have begun another.
        if late && !to.ends_with(FILES[0]) {
            continue;
        }
        let _ = fs::rename(&to, from.with_extension("later"));
        fs::rename(&from, &to).unwrap();
    }
}

/// Waits until the gateway has ended or is ready: whether it has ended.
fn settled(served: &mut Served, runtime: &tokio::runtime::Runtime) -> bool {
    let begun = Instant::now();
    loop {
        if served.has_ended() {
            return true;
        }
        if runtime.block_on(readiness_or_none(served)) == Some(200) {
            return false;
        }
        assert!(begun.elapsed() < PATIENCE, "{}", served.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn readiness_or_none(served: &Served) -> Option<u16> {
    let answer = client().get(format!("{}/readyz", served.admin)).send();
    answer.await.ok().map(|answer| answer.status().as_u16())
}

/// The references in the books.
fn references(folder: &Path) -> Vec<String> {
    let entries = document(folder, &["ledger", "entries"]);
    let entries = entries["entries"].as_array().unwrap();
    let named = entries
        .iter()
        .filter_map(|entry| entry["reference"].as_str());
    named.map(str::to_owned).collect()
}

/// A round: what was damaged, and what came of it.
fn round(number: u64, seed: u64) -> String {
    let mut dice = Dice::new(seed ^ number.wrapping_mul(7_919));
    let place = Place::new(number % 3);
    let (folder, beside) = (place.folder.clone(), place.beside.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    let (key, _) = furnish(&folder, "first");
    let customer = document(&folder, &["keys", "show", &key]);
    let customer = customer["customer"].as_str().unwrap().to_owned();
    let create = ["tokens", "create", "drill", "--role", "manage"];
    let token = document(&folder, &create)["secret"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut served = Served::start(&folder, &[]);
    let payers = Payers::start(&place, &served.admin, (&key, &customer, &token));
    while payers.count() < 8 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(dice.below(400)));
    // Each kind and each set comes in every 30 rounds.
    let kind = DAMAGES[(number % 5) as usize];
    let set = SETS[(number / 5 % 6) as usize];
    let before = millis();
    let back = damage(&folder, kind, set, &mut dice);
    let told = format!("seed {seed}, round {number}: {kind:?} of {set:?} since {before}");
    let pause = dice.below(4_000);
    std::thread::sleep(Duration::from_millis(pause));
    let moved = matches!(kind, Damage::Moved | Damage::Replaced);
    let ended = if moved {
        // It does not end while its files are put back.
        served.signal("STOP");
        let late = served.has_ended();
        undo(back, late, &mut dice);
        if !late {
            served.signal("CONT");
        }
        late || settled(&mut served, &runtime)
    } else if set == [0] || set.contains(&0) && kind == Damage::Removed {
        // Nobody puts it back: the gateway waits, or has ended.
        served.has_ended()
    } else {
        settled(&mut served, &runtime)
    };
    std::thread::sleep(Duration::from_millis(200));
    let paid = payers.ended();
    let log = served.log();
    if ended {
        assert!(!served.ended().success(), "{told}:\n{log}");
    } else {
        served.kill();
    }
    if !kind.keeps(set) {
        named(kind, set, &served.log(), &told);
    }
    let confirmed = paid.iter().filter(|one| one.confirmed).count();
    judge(&folder, &beside, (kind, set), &paid, before, &told, &log);
    format!("{told}: {confirmed} of {} confirmed", paid.len())
}

/// What a truncation destroyed is named.
fn named(kind: Damage, set: &[usize], log: &str, told: &str) {
    let words: &[&str] = match kind {
        Damage::Cut { .. } => &["written over", "cut off", "is damaged"],
        Damage::Removed => &["was moved or deleted"],
        Damage::Moved | Damage::Replaced => &[],
    };
    let said = words.iter().any(|word| log.contains(word));
    // A log that was empty, or all of which the file had, lost nothing.
    assert!(said || set == [1], "{told}:\n{log}");
}

/// Compares what was confirmed with what a new gateway finds.
fn judge(
    folder: &Path,
    beside: &Path,
    (kind, set): (Damage, &[usize]),
    paid: &[Paid],
    damaged: u128,
    told: &str,
    log: &str,
) {
    let kept = kind.keeps(set);
    let again = Served::start_or_end(&mut farebox(folder, &["serve"]));
    let Ok(again) = again else {
        let (_, said) = run(folder, &["ledger", "verify"]);
        assert!(!kept, "{told}: it does not start again: {said}\n{log}");
        return;
    };
    let found = references(beside);
    let (code, said) = run(folder, &["ledger", "verify"]);
    assert!(code == 0 || !kept, "{told}: {said}\n{}", again.log());
    for one in paid.iter().filter(|one| one.confirmed) {
        let is_there = found
            .iter()
            .filter(|found| **found == one.reference)
            .count();
        assert!(is_there <= 1, "{told}: twice: {one:?}");
        let must = kept || one.begun > damaged + 1_000;
        assert!(
            is_there == 1 || !must,
            "{told}: confirmed and nowhere: {one:?}\n{log}\nlater:\n{}",
            again.log()
        );
    }
}

#[test]
fn what_is_confirmed_is_there_whatever_happens_to_the_three_files() {
    let seed = millis() as u64;
    for number in 0..sized(6, 200) {
        // Full runs go through all kinds and sets; a small one takes a few of them, others in each run.
        let number = if sized(0, 1) == 1 {
            number
        } else {
            (seed + number * 11) % 30
        };
        println!("{}", round(number, seed));
    }
}
