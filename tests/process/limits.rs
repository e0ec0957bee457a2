//! The table of limits in `docs/operations.md`: each number, flag and metric in it matches the code.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use farebox_cli::Args;

use super::door_limits::DOOR_NUMBERS;
use super::no_limits::NO_LIMITS;
use super::seller_limits::SELLER_NUMBERS;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, talking};

/// The beginning of a row, what it says, and the file that declares it with these words.
pub(super) type LimitNumber = (&'static str, &'static str, &'static str, &'static str);

fn numbers() -> impl Iterator<Item = &'static LimitNumber> {
    NUMBERS.iter().chain(DOOR_NUMBERS).chain(SELLER_NUMBERS)
}

const NUMBERS: &[LimitNumber] = &[
    (
        "paid requests of a key whose",
        "half its charges",
        "src/billing/last_days.rs",
        "half the charges of that time, and half of what was ever paid; of a day at most one context",
    ),
    (
        "requests of a customer at once",
        "| 64 |",
        "ledger/src/rule/settings.rs",
        "CONCURRENCY: u32 = 64;",
    ),
    (
        "paid requests of a customer each",
        "| 200, burst 400",
        "ledger/src/rule/settings.rs",
        "RATE: u32 = 200;",
    ),
    (
        "paid requests of a customer each",
        "burst 400",
        "ledger/src/rule/settings.rs",
        "BURST: u32 = 400;",
    ),
    (
        "free calls of a customer",
        "| 10, burst 20 |",
        "src/proxy/rate_limit.rs",
        "FREE_RATE: RateRule = RateRule { per_second: 10, burst: 20 };",
    ),
    (
        "request bodies in",
        "512 MiB",
        "src/server/mod.rs",
        "BODY_BYTES_IN_FLIGHT: usize = 512 * 1024 * 1024;",
    ),
    (
        "request bodies in",
        "a quarter",
        "door/src/byte_room.rs",
        "PART: usize = 4;",
    ),
    (
        "a body before it is read",
        "each 2,000 bytes",
        "src/server/funds.rs",
        "BYTES_PER_TOKEN: usize = 2_000;",
    ),
    (
        "a body before it is read",
        "at each MiB",
        "src/server/decompress.rs",
        "STEP: u64 = 1024 * 1024;",
    ),
    (
        "requests that wait for money",
        "| 64 of a customer",
        "src/proxy/waiting.rs",
        "MOST: usize = 64;",
    ),
    (
        "requests that wait for money",
        "45 s each",
        "src/proxy/waiting.rs",
        "LONGEST: Duration = Duration::from_secs(45);",
    ),
    (
        "streams that wait for",
        "up to 45 s",
        "src/proxy/waiting.rs",
        "let until = self.since + LONGEST;",
    ),
    (
        "CPU time for a customer's",
        "100 ms each second, burst 1 s",
        "src/turns/budget.rs",
        "OF_CUSTOMER: CpuBudget = CpuBudget { rate: Duration::from_millis(100), burst: Duration::from_secs(1) };",
    ),
    (
        "CPU time for a customer's",
        "10 ms, burst 200 ms",
        "src/turns/budget.rs",
        "UNPAID: CpuBudget = CpuBudget { rate: Duration::from_millis(10), burst: Duration::from_millis(200) };",
    ),
    (
        "CPU time for a customer's",
        "over 256 KiB",
        "src/turns/work.rs",
        "SMALL: usize = 256 * 1024;",
    ),
    (
        "CPU time for a customer's",
        "within 5 s",
        "src/turns/work.rs",
        "PATIENCE: Duration = Duration::from_secs(5);",
    ),
    (
        "threads for that work",
        "half of the CPUs, at least 2",
        "src/turns.rs",
        "let places = cpus.div_ceil(2).max(2);",
    ),
    (
        "readers of `/live`",
        "| 32 |",
        "src/server/admin/live.rs",
        "MOST_READERS: usize = 32;",
    ),
    (
        "one body",
        "32 MiB",
        "src/proxy/mod.rs",
        "LARGEST_BODY: usize = 32 * 1024 * 1024;",
    ),
    (
        "one body",
        "; 30 s and",
        "door/src/body.rs",
        "PATIENCE: Duration = Duration::from_secs(30);",
    ),
    (
        "one body",
        "each 8 KiB",
        "door/src/body.rs",
        "SLOWEST: usize = 8 * 1024;",
    ),
    (
        "one body",
        "30 s between",
        "src/server/listen.rs",
        "BODY_GAP: Duration = Duration::from_secs(30);",
    ),
    (
        "one head",
        "64 KiB",
        "src/server/listen.rs",
        "LARGEST_HEAD: usize = 64 * 1024;",
    ),
    (
        "one head",
        "10 s after",
        "src/server/guard.rs",
        "HEAD: Duration = Duration::from_secs(10);",
    ),
    (
        "an idle connection",
        "| 120 s |",
        "src/server/listen.rs",
        "IDLE: Duration = Duration::from_secs(120);",
    ),
    (
        "connections",
        "less 128",
        "src/server/connections.rs",
        "KEPT_BACK: usize = 128;",
    ),
    (
        "connections",
        "at most 16,384",
        "src/server/connections.rs",
        "MOST: usize = 16_384;",
    ),
    (
        "connections",
        "a quarter",
        "src/server/connections.rs",
        "PART: usize = 4;",
    ),
    (
        "connections",
        "half for a trusted proxy",
        "src/server/connections.rs",
        "PART_OF_PROXY: usize = 2;",
    ),
    (
        "connections with a customer's",
        "256 of one",
        "src/server/connections.rs",
        "MOST_SAFE: usize = 256;",
    ),
    (
        "requests behind a trusted proxy",
        "of one address",
        "src/server/connections/busy.rs",
        "*running >= self.limits.of_peer",
    ),
    (
        "strangers' unfinished heads",
        "an eighth",
        "src/server/connections.rs",
        "PART_OF_STRANGERS: usize = 8;",
    ),
    (
        "strangers' unfinished heads",
        "at most 256",
        "src/server/connections.rs",
        "POOL: (usize, usize) = (8, 256);",
    ),
    (
        "the other half",
        "64 connections",
        "src/server/connections.rs",
        "MOST_OF_OPERATOR: usize = 64;",
    ),
    (
        "the other half",
        "16 of them",
        "src/server/connections.rs",
        "OF_MONITORS: usize = 16;",
    ),
    (
        "a customer who takes",
        "30 s for a stream",
        "src/proxy/stream.rs",
        "STALL: Duration = Duration::from_secs(30);",
    ),
    (
        "a customer who takes",
        "60 s for any",
        "src/server/listen.rs",
        "WRITE_STALL: Duration = Duration::from_secs(60);",
    ),
    (
        "holds that wait",
        "| 20,000 |",
        "ledger/src/store/sqlite/writer.rs",
        "MAX_QUEUE: usize = 20_000;",
    ),
    (
        "answers in memory",
        "256 MiB",
        "src/upstream/mod.rs",
        "ANSWER_BYTES_IN_FLIGHT: usize = 256 << 20;",
    ),
    (
        "one answer",
        "64 MiB whole",
        "src/upstream/attempt.rs",
        "MAX_ANSWER_BYTES: usize = 64 << 20;",
    ),
    (
        "one answer",
        "96 MiB of embeddings",
        "src/upstream/attempt.rs",
        "MAX_CALL_BYTES: usize = 96 << 20;",
    ),
    (
        "one answer",
        "16 MiB for one event",
        "protocol/src/sse.rs",
        "MAX_FRAME_BYTES: usize = 16 << 20;",
    ),
    (
        "one answer",
        "1 MiB behind",
        "src/proxy/phase.rs",
        "MOST_KEPT: usize = 1024 * 1024;",
    ),
    (
        "requests at once with a provider's account",
        "all but one",
        "src/upstream/places.rs",
        "kept: u64::from(most > 1),",
    ),
    (
        "tokens in a minute with a provider's account",
        "nine tenths",
        "src/upstream/places.rs",
        "kept: most / 10,",
    ),
    (
        "the gateway's own requests",
        "0.10 USD",
        "src/config/read/bounds.rs",
        "Amount::from_picos(100_000_000_000);",
    ),
    (
        "a target that fails",
        "five failures",
        "src/config/read/routes.rs",
        "BreakerPolicy { failures: 5, open: Duration::from_secs(30) };",
    ),
    (
        "counting tokens",
        "8 at once",
        "src/upstream/client.rs",
        "SIDE_PLACES: u32 = 8;",
    ),
    (
        "counting tokens",
        "10 s",
        "src/proxy/count.rs",
        "PATIENCE: Duration = Duration::from_secs(10);",
    ),
    (
        "threads that serve customers",
        "one for each CPU",
        "src/server/workers.rs",
        "let cpus = available_parallelism()",
    ),
    (
        "dashboard sessions",
        "and 200 of all keys",
        "ledger/src/book/page.rs",
        "MOST_OF_CUSTOMER: u8 = 200;",
    ),
    (
        "dashboard sessions",
        "| 20,",
        "ledger/src/book/page.rs",
        "MOST_OF_KEY: u8 = 20;",
    ),
    (
        "dashboard sessions",
        "12 h",
        "src/customer/session.rs",
        "LIFETIME_MS: i64 = 12 * 3_600 * 1_000;",
    ),
    (
        "open dashboard pages",
        "| 16,",
        "src/customer/live.rs",
        "PAGES: usize = 16;",
    ),
    (
        "open dashboard pages",
        "15 min",
        "src/customer/live.rs",
        "LIFE: Duration = Duration::from_secs(15 * 60);",
    ),
    (
        "days of one usage",
        "| 366 |",
        "src/customer/usage.rs",
        "MOST_DAYS: i32 = 366;",
    ),
    (
        "log lines",
        "| 10 each second",
        "src/telemetry/log.rs",
        "REFUSED_LINES: u64 = 10;",
    ),
];

/// Files and folders in which a number with a unit of its own is a limit, unless [`NO_LIMITS`] has it.
const ROOMS: &[&str] = &[
    "door/src",
    "src/customer/live.rs",
    "src/billing/last_days.rs",
    "src/proxy/rate_limit.rs",
    "src/server",
    "src/turns",
];

/// Numbers, times and rates that a file declares.
fn constants(code: &str) -> Vec<String> {
    let kinds = ["usize", "u32", "u64", "i64", "Duration", "Budget", "Pace"];
    let declared = |line: &str| {
        let (_, rest) = line.trim().split_once("const ")?;
        let (name, rest) = rest.split_once(": ")?;
        let kind = rest.split_once(" =")?.0;
        let is_name = name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
        (is_name && kinds.contains(&kind)).then(|| name.to_owned())
    };
    let outside_tests = code.split("#[cfg(test)]\nmod ").next().unwrap_or(code);
    outside_tests.lines().filter_map(declared).collect()
}

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|end| end == "rs")
        && !path
            .file_stem()
            .is_some_and(|name| name.to_string_lossy().ends_with("tests"))
    {
        found.push(path.to_owned());
    }
}

#[test]
fn every_limit_in_the_code_has_a_row() {
    let root = Path::new(crate::support::HOME);
    let mut files = Vec::new();
    for room in ROOMS {
        sources(&root.join(room), &mut files);
    }
    let mut absent = Vec::new();
    for file in files {
        let shown = file
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        for name in constants(&read(&shown)) {
            let declares = format!("{name}:");
            let has_row =
                numbers().any(|(_, _, at, says)| *at == shown && says.starts_with(&declares));
            let none = NO_LIMITS
                .iter()
                .any(|(at, of, _)| *at == shown && *of == name);
            if has_row == none {
                absent.push(format!("{shown}: {name}"));
            }
        }
    }
    assert!(
        absent.is_empty(),
        "give each a row in docs/operations.md and here, or say in NO_LIMITS why it limits nobody: {absent:#?}"
    );
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(crate::support::HOME).join(path)).unwrap()
}

/// The rows of the table: what, default, set with, metric, what a customer sees.
fn rows() -> Vec<[String; 5]> {
    let page = read("docs/operations.md");
    let section = page
        .split("\n## Limits\n")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let cells = |line: &str| {
        let cells: Vec<String> = line
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect();
        <[String; 5]>::try_from(cells).unwrap_or_else(|cells| panic!("five columns: {cells:?}"))
    };
    section
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .map(cells)
        .collect()
}

/// What stands in backquotes.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Code without its layout, so that a declaration is found however it is wrapped.
fn folded(code: &str) -> String {
    let packed: String = code.split_whitespace().collect();
    packed.replace(",}", "}")
}

#[test]
fn every_number_on_the_page_of_limits_is_declared_in_the_code() {
    let rows = rows();
    for (row, says, file, declares) in numbers() {
        let found = rows
            .iter()
            .find(|cells| cells[0].starts_with(row))
            .unwrap_or_else(|| panic!("no row begins with {row:?}"));
        let line = format!("| {} |", found.join(" | "));
        assert!(line.contains(says), "the row does not say {says:?}: {line}");
        assert!(
            folded(&read(file)).contains(&folded(declares)),
            "{file} does not declare {declares:?}: change docs/operations.md ({row}), too"
        );
    }
    for cells in rows {
        assert!(
            numbers().any(|(row, ..)| cells[0].starts_with(row)),
            "nothing checks the row {:?}",
            cells[0]
        );
    }
    assert!(
        read("src/proxy/failure.rs").contains("LONGEST_RETRY_AFTER: u128 = 5;"),
        "the page says 5 s"
    );
}

#[test]
fn every_flag_on_the_page_of_limits_can_be_typed() {
    let program = Args::command();
    let mut seen = 0;
    for flag in rows()
        .iter()
        .flat_map(|cells| quoted(&cells[2]))
        .filter(|word| word.contains("--"))
    {
        let (path, name) = flag.split_once("--").unwrap();
        let words = path
            .split_whitespace()
            .filter(|word| word.chars().all(|letter| letter.is_ascii_lowercase()));
        let command = words.fold(&program, |command, word| {
            command
                .find_subcommand(word)
                .unwrap_or_else(|| panic!("farebox has no command {word} ({flag})"))
        });
        assert!(
            command
                .get_arguments()
                .any(|argument| argument.get_long() == Some(name)),
            "nobody can type {flag}"
        );
        seen += 1;
    }
    assert_eq!(seen, 8, "the page names eight flags");
}

#[tokio::test]
async fn every_metric_on_the_page_of_limits_is_exposed() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let metrics = gateway.ask("/metrics").await.text;
    let named: Vec<String> = rows()
        .iter()
        .flat_map(|cells| quoted(&cells[3]))
        .filter(|word| word.starts_with("farebox_"))
        .collect();
    assert!(named.len() > 10, "{named:?}");
    for metric in named {
        let name = metric.split('{').next().unwrap();
        assert!(
            metrics.contains(&format!("# TYPE {name} ")),
            "/metrics has no {name}"
        );
    }
}
