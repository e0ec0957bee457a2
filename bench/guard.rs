//! Counts the instructions and system calls of the hot path and fails if any exceeds its budget, so that a slow change shows in CI,
//! where timings mean nothing. Run `cargo bench --profile guard --bench guard`, with valgrind and strace installed.
//!
//! Each case runs in this same program under valgrind or strace, a few times and then many times: the difference is the cost of one
//! more, without start-up. A budget is the count when it was set plus about a tenth. A change that makes something cheaper lowers
//! its budget; a change that raises one says in the commit what it gains.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench is a program for its developers"
)]

#[path = "guard/accounts.rs"]
mod accounts;
#[path = "../tests/support/bill.rs"]
mod bill;
#[path = "guard/translation.rs"]
mod translation;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use accounts::Invented;
use bill::bill;
use bytes::Bytes;
use farebox::clock;
use farebox::config::{self, ConfigHandle, Source};
use farebox::proxy::rate_limit::RateLimits;
use farebox::proxy::{
    Calibrations, ConnectionFate, Failure, Origin, Pins, Proxy, RefusedFacts, Reply, ReplyBody,
    Request, UnderWay, holder,
};
use farebox::telemetry::Telemetry;
use farebox::turns::{Turns, Work};
use farebox::upstream::Upstreams;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Act, Amount, CustomerId, Durability, Hold, Key, KeySettings, Membership, NewHold, NewKey,
    OpenMode, Perform, SecretHash, SharedLedger,
};
use farebox_protocol::{Edits, Family, FrameReader};
use tokio::time::Instant;

/// What is counted, and the most instructions that it may take.
const BUDGETS: [(&str, u64); 15] = [
    ("inspect and patch 1 KiB", 36_700),
    ("inspect and patch 100 KiB", 1_730_000),
    ("frames, each", 1_060),
    // A text delta, which looks like the one before it but in chat is not parsed, and one of a tool call, which is.
    ("chunk c", 1_950),
    ("chunk m", 4_120),
    ("chunk r", 5_250),
    ("chunk of a call c", 8_200),
    ("chunk of a call m", 4_370),
    ("chunk of a call r", 5_050),
    // What is cut from an answer and renamed in it is found on the same walk: this is all that the exit costs a good one.
    // A twelfth of it looks for what names a class, lifetimes of cache writes, and what the provider says of its price.
    ("answer read", 12_900),
    // From memory: nobody else writes to this ledger. A hundred, because one is less than what timers add to a run.
    // Each copies the key and its customer: names, settings, and lists of caps, which are empty here. 137,000 while a key was all.
    ("100 key reads", 236_000),
    // A twentieth of it is that overflow is checked. A tenth and more is that the ledger's three files are compared before each commit
    // and again before it is confirmed: 176,000 while only two were, once.
    ("hold and settlement", 172_000),
    ("64 of them at once", 6_000_000),
    ("whole request", 570_000),
    ("streamed request", 940_000),
];
/// What a translation may take, in hundredths of what passing the same bytes on takes. Callers and targets by their initials. A chunk's
/// law is a promise of speed; a request's only keeps it from growing, and was 200 until passing on became a quarter
/// cheaper, 230 until it became another 7 % cheaper, and 240 until another 11 %.
const LAWS: [(&str, &str, u64); 12] = [
    ("chunk c m", "chunk c", 150),
    ("chunk c r", "chunk c", 150),
    ("chunk m c", "chunk m", 150),
    ("chunk m r", "chunk m", 150),
    ("chunk r c", "chunk r", 150),
    ("chunk r m", "chunk r", 150),
    ("request c m", "request c", 270),
    ("request c r", "request c", 270),
    ("request m c", "request m", 270),
    ("request m r", "request m", 270),
    ("request r c", "request r", 270),
    ("request r m", "request r", 270),
];
/// The most system calls that a whole request may make, in hundredths: one at a time, so it pays for two commits alone. There are
/// no sockets in it; `bench/run calls` counts those.
const CALLS: [(&str, u64); 9] = [
    ("pwrite64", 1_600),
    ("fcntl", 1_350),
    ("futex", 600),
    // The ledger's three files, before each commit and before it is confirmed, and what room the log has.
    ("statx", 1_600),
    ("write", 350),
    ("epoll_wait", 500),
    // The headers of the ledger's file and of its log's index, as often: a backup may have been copied over it, or a file cut off.
    ("pread64", 1_300),
    ("getrandom", 10),
    // The clock of a thread's CPU time, twice for each piece of work on a body; syncs and checkpoints, which come by time and not by
    // request; and whatever is new.
    ("others", 600),
];
/// How often a case that is over its budget is counted before the guard says so.
const ATTEMPTS: u32 = 3;
/// Repeats of the short and the long run.
const RUNS: (u64, u64) = (20, 60);
/// The same where less than a hundredth counts, and under strace: a checkpoint by the clock weighs on few.
const LONG_RUNS: (u64, u64) = (20, 220);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    if let (Some(name), Some(times)) = (args.next(), args.next()) {
        run(&name, times.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    let mut over = false;
    println!("{:<28} {:>12} {:>12}", "instructions", "now", "budget");
    for (name, budget) in BUDGETS {
        let each = one_more(counted, name, budget, RUNS);
        let verdict = if each > budget { "over" } else { "" };
        over |= each > budget;
        println!("{name:<28} {each:>12} {budget:>12} {verdict}");
    }
    println!("{:<28} {:>12} {:>12}", "translated", "now", "as passed on");
    for (name, base, most) in LAWS {
        let [each, passed] =
            [name, base].map(|name| counted(name, RUNS.1).saturating_sub(counted(name, RUNS.0)));
        let verdict = if each * 100 > passed * most {
            "over"
        } else {
            ""
        };
        over |= !verdict.is_empty();
        println!(
            "{name:<28} {:>12} {:>11}% {verdict}",
            each / (RUNS.1 - RUNS.0),
            each * 100 / passed
        );
    }
    over |= accounts_are_over();
    over |= (0..ATTEMPTS).all(|_| calls_are_over());
    if over {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Prints what three accounts of a provider cost; whether that is more than it may be.
fn accounts_are_over() -> bool {
    println!(
        "{:<28} {:>12} {:>12}",
        "three accounts", "now", "beyond one"
    );
    let over = accounts::LAWS.iter().filter(|(name, most, hundredths)| {
        let [one, three] =
            [1, 3].map(|accounts| one_more(in_rust, &format!("{name} {accounts}"), 0, LONG_RUNS));
        let (beyond, most) = (three.saturating_sub(one), most + one * hundredths / 100);
        let verdict = if beyond > most { "over" } else { "" };
        println!("{name:<28} {three:>12} {beyond:>12} {verdict}");
        beyond > most
    });
    over.count() > 0
}

/// What one more costs. How threads take turns adds up to a tenth to a run of the same program, so a case over its budget is counted
/// again, and the least of each run counts.
fn one_more(count: fn(&str, u64) -> u64, name: &str, budget: u64, runs: (u64, u64)) -> u64 {
    let (mut short, mut long, mut each) = (u64::MAX, u64::MAX, u64::MAX);
    for _ in 0..ATTEMPTS {
        (short, long) = (
            short.min(count(name, runs.0)),
            long.min(count(name, runs.1)),
        );
        each = long.saturating_sub(short) / (runs.1 - runs.0);
        if each <= budget {
            break;
        }
    }
    each
}

/// Prints the system calls of a whole request; whether one kind is over its budget.
fn calls_are_over() -> bool {
    let Some((short, long)) = traced(LONG_RUNS.0).zip(traced(LONG_RUNS.1)) else {
        println!("system calls: strace is missing or not permitted");
        return false;
    };
    println!(
        "{:<28} {:>12} {:>12}",
        "system calls of a request", "now", "budget"
    );
    let more = |name: &str| {
        let of = |calls: &BTreeMap<String, u64>| calls.get(name).copied().unwrap_or(0);
        of(&long).saturating_sub(of(&short)) * 100 / (LONG_RUNS.1 - LONG_RUNS.0)
    };
    let named = |name: &&String| CALLS.iter().any(|(known, _)| known == name);
    let others = long
        .keys()
        .filter(|name| !named(name))
        .map(|name| more(name))
        .sum();
    let over = CALLS.iter().filter(|(name, budget)| {
        let calls = if *name == "others" {
            others
        } else {
            more(name)
        };
        let (shown, allowed) = (calls as f64 / 100.0, *budget as f64 / 100.0);
        println!(
            "{name:<28} {shown:>12.2} {allowed:>12.2} {}",
            if calls > *budget { "over" } else { "" }
        );
        calls > *budget
    });
    over.count() > 0
}

/// How often this program makes each system call while it serves so many requests; nothing where strace cannot count.
fn traced(times: u64) -> Option<BTreeMap<String, u64>> {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("calls");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-c", "-o"])
        .arg(&table)
        .arg(std::env::current_exe().unwrap());
    let status = strace
        .args(["whole request", &times.to_string()])
        .status()
        .ok()?;
    // Some containers do not permit it.
    let table = std::fs::read_to_string(table)
        .ok()
        .filter(|_| status.success())?;
    let count = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(((*fields.last()?).to_owned(), fields.get(3)?.parse().ok()?))
            .filter(|(name, _)| name != "total")
    };
    Some(table.lines().filter_map(count).collect())
}

/// The instructions of this program doing one case so many times.
fn counted(name: &str, times: u64) -> u64 {
    let table = cachegrind(name, times);
    let all = table
        .lines()
        .find_map(|line| line.strip_prefix("summary: "));
    all.unwrap().parse().unwrap()
}

/// Those in functions of Rust. What the allocator takes depends on the blocks that it finds, which differ between runs of the same program.
fn in_rust(name: &str, times: u64) -> u64 {
    let (mut is_rust, mut all) = (false, 0);
    for line in cachegrind(name, times).lines() {
        match (line.strip_prefix("fn="), line.split_once(' ')) {
            (Some(function), _) => is_rust = function.contains("::"),
            (None, Some((place, count))) if is_rust && place.parse::<u32>().is_ok() => {
                all += count.parse::<u64>().unwrap();
            }
            (None, _) => {}
        }
    }
    all
}

/// What cachegrind writes of this program doing one case so many times: a line with the place and the instructions for each line of each
/// function, and the sum of all.
fn cachegrind(name: &str, times: u64) -> String {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("instructions");
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=cachegrind", "--cache-sim=no"])
        .arg(format!("--cachegrind-out-file={}", table.display()))
        .arg(std::env::current_exe().unwrap());
    let output = valgrind.args([name, &times.to_string()]).output().unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    std::fs::read_to_string(table).unwrap()
}

fn run(name: &str, times: u64) {
    match name {
        "inspect and patch 1 KiB" => patch(&body(1 << 10, ""), times),
        "inspect and patch 100 KiB" => patch(&body(100 << 10, ""), times),
        "frames, each" => frames(times),
        "answer read" => answers(times),
        "chunk of a call c" => calls(Family::Chat, times),
        "chunk of a call m" => calls(Family::Messages, times),
        "chunk of a call r" => calls(Family::Responses, times),
        "100 key reads" => with_gateway(async |gateway| {
            for _ in 0..times * 100 {
                black_box(gateway.proxy.ledger.find_key(gateway.key.id).await.unwrap());
            }
        }),
        "hold and settlement" => with_gateway(async |gateway| gateway.pairs(1, times).await),
        "64 of them at once" => with_gateway(async |gateway| gateway.pairs(64, times).await),
        "whole request" => {
            with_gateway(async |gateway| gateway.serve(body(1 << 10, ""), times).await)
        }
        "streamed request" => {
            with_gateway(async |gateway| gateway.serve(body(1 << 10, STREAMED), times).await)
        }
        other => match other
            .strip_prefix("refused ")
            .and_then(|rest| rest.split_once(" KiB "))
        {
            Some((size, accounts)) => {
                let (size, accounts): (usize, usize) =
                    (size.parse().unwrap(), accounts.parse().unwrap());
                let routes = accounts::routes(accounts);
                with_gateway_to(&routes, Some(accounts::BALANCE), async |gateway| {
                    gateway
                        .refuse(body(size << 10, accounts::MANY), times)
                        .await;
                });
            }
            None => translation::run(other, times),
        },
    }
}

/// A field of a request.
const STREAMED: &str = r#""stream":true,"#;

/// A chat request of about so many bytes, as a coding client sends them, with further fields.
fn body(bytes: usize, options: &str) -> Bytes {
    let turn = r#"{"role":"user","content":"fn main() {\n    println!(\"hello {}\", 1);\n} and some words about it\n"}"#;
    let turns = vec![turn; (bytes / turn.len()).max(1)].join(",");
    Bytes::from(format!(
        r#"{{"model":"sim-chat",{options}"max_tokens":40,"messages":[{turns}]}}"#
    ))
}

fn patch(body: &Bytes, times: u64) {
    let protocol = Family::Chat.protocol();
    for _ in 0..times {
        let seen = protocol.inspect(black_box(body), 0).unwrap();
        let edits = Edits {
            model: "upstream-model-name",
            limit_field: "max_tokens",
            limit: None,
            ..Edits::default()
        };
        black_box(protocol.pieces(body, &seen, &edits));
    }
}

/// Cutting a frame out of a stream and reading what it says.
fn frames(times: u64) {
    let chunk = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"}}]}"#;
    let chunk = Bytes::from(format!("data: {chunk}\n\n"));
    let mut cutter = FrameReader::new();
    let mut reader = Family::Chat.protocol().reader();
    for _ in 0..times {
        cutter.push(chunk.clone());
        let frame = cutter.next_frame().unwrap().unwrap();
        black_box(reader.read(&frame));
    }
}

/// Pieces of two tool calls by turns, so that none looks like the one before it.
fn calls(family: Family, times: u64) {
    let frame = |index: u64| match family {
        Family::Chat => format!(
            r#"{{"id":"chatcmpl-{index}","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"abc"}}}}]}},"logprobs":null,"finish_reason":null}}]}}"#
        ),
        Family::Messages => format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":"abc"}}}}"#
        ),
        Family::Responses => format!(
            r#"{{"type":"response.function_call_arguments.delta","item_id":"fc_{index}","output_index":0,"delta":"abc","sequence_number":2}}"#
        ),
    };
    let frames = [0, 1].map(|index| Bytes::from(format!("data: {}\n\n", frame(index))));
    let (mut cutter, mut reader) = (FrameReader::new(), family.protocol().reader());
    for frame in frames.iter().cycle().take(usize::try_from(times).unwrap()) {
        cutter.push(frame.clone());
        let frame = cutter.next_frame().unwrap().unwrap();
        black_box(reader.read(&frame));
    }
}

/// What a whole answer says, and what of it customers do not see.
fn answers(times: u64) {
    let answer = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","provider":"p","choices":[{"index":0,"message":{"role":"assistant","content":"a few words"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"cost":0.1}}"#;
    for _ in 0..times {
        black_box(
            Family::Chat
                .protocol()
                .read_answer(black_box(answer.as_bytes())),
        );
    }
}

/// The spine with a ledger of its own and the built-in provider.
struct Gateway {
    proxy: Arc<Proxy>,
    rate_limits: Arc<RateLimits>,
    key: Key,
}

fn with_gateway(work: impl AsyncFnOnce(Gateway)) {
    with_gateway_to(include_str!("../routes.toml"), Some("1000"), work);
}

/// The same with these routes, and this money on its key.
fn with_gateway_to(routes: &str, usd: Option<&str>, work: impl AsyncFnOnce(Gateway)) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let catalog = Source::new("catalog.toml", include_str!("../catalog.toml"));
        let routes = Source::new("routes.toml", routes);
        let config = config::load(&catalog, &routes, &Invented).0.unwrap();
        let path = folder.path().join("farebox.db");
        let ledger: SharedLedger =
            Arc::new(SqliteLedger::create(path, OpenMode::Serve, Durability::Prompt).unwrap());
        let act = Act {
            operation: clock::operation_id(),
            actor: "guard".into(),
            at: clock::now(),
        };
        let amount = usd.map(|usd| Amount::from_usd_str(usd).unwrap());
        let first_credit = amount.map(|amount| (amount, "first".to_owned()));
        let settings = KeySettings {
            label: "guard".into(),
            // What is measured is the work, not the limit for one key.
            rate: Some(1_000_000),
            ..KeySettings::default()
        };
        let new = NewKey {
            within: Membership::default(),
            id: clock::key_id(),
            secret: SecretHash([1; 32]),
            settings,
            first_credit,
            purse: None,
            act,
        };
        let key = ledger.perform(new).await.unwrap();
        let proxy = Arc::new(Proxy {
            upstreams: Upstreams::new(&config).unwrap(),
            config: Arc::new(ConfigHandle::new(config)),
            ledger,
            tasks: tokio_util::task::TaskTracker::new(),
            observer: Arc::new(Telemetry::default()),
            calibrations: Calibrations::default(),
            turns: Turns::start(),
            pins: Pins::default(),
            items: Arc::default(),
            under_way: UnderWay::default(),
            waiting: farebox::proxy::WaitingRoom::default(),
        });
        work(Gateway {
            proxy,
            rate_limits: Arc::default(),
            key,
        })
        .await;
    });
}

impl Gateway {
    /// Holds money and settles, `times` after one another in each of `parallel` tasks.
    async fn pairs(&self, parallel: usize, times: u64) {
        let task = async || {
            for _ in 0..times {
                let (request, key, amount) = (
                    clock::operation_id(),
                    self.key.id,
                    Amount::from_picos(3_000_000_000),
                );
                let (slug, family, at) = (
                    "claude-sonnet-4.5".to_owned(),
                    "messages".to_owned(),
                    clock::now(),
                );
                let new = NewHold {
                    request,
                    customer: CustomerId::made_for(key),
                    key,
                    ways: vec![farebox_ledger::HoldWay::exactly(amount)],
                    slug,
                    family,
                    at,
                };
                let hold = Hold::open(Arc::clone(&self.proxy.ledger), new)
                    .await
                    .unwrap();
                black_box(hold.settle(bill(), clock::now()).await.unwrap());
            }
        };
        futures_util::future::join_all((0..parallel).map(|_| task())).await;
    }

    /// Serves requests one after another, from the read of the key to the settlement.
    async fn serve(&self, body: Bytes, times: u64) {
        for _ in 0..times {
            let of = self.key.customer.id;
            match self.ask(&body, of).await.unwrap().body {
                ReplyBody::Whole(answer) => drop(black_box(answer)),
                ReplyBody::Stream(mut frames) => while frames.next().await.is_some() {},
            }
        }
    }

    /// The same without money. Each is another customer's work: beyond its budget, which is CPU time, a customer's work goes to another
    /// thread, and how many requests that takes depends on the machine.
    async fn refuse(&self, body: Bytes, times: u64) {
        for _ in 0..times {
            let refused = self.ask(&body, clock::customer_id()).await;
            let refused = refused.err().unwrap();
            assert!(matches!(black_box(refused), Failure::OutOfBalance(_)));
        }
    }

    async fn ask(&self, body: &Bytes, of: CustomerId) -> Result<Reply, Failure> {
        let key = self.proxy.ledger.find_key(self.key.id).await.unwrap();
        let key = key.unwrap();
        let request = Request {
            id: clock::operation_id(),
            pass: self.rate_limits.enter(&key, Instant::now()).unwrap(),
            customer: key.customer.id,
            key: key.id,
            work: Work::of(&self.proxy.turns, holder(of)),
            room: None,
            family: Family::Chat,
            call: None,
            body: body.clone(),
            headers: Vec::new(),
            session: None,
            run: None,
            is_owners: true,
            ends_with_error: false,
            connection: ConnectionFate::default(),
            origin: Origin::default(),
            arrived: Instant::now(),
            at: clock::now(),
        };
        let known = &mut RefusedFacts::default();
        self.proxy.run(&key, request, known).await
    }
}
