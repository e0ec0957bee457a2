//! Every path of both listeners and of the shop against bad bodies, with a key that pays, with one that has nothing and without one:
//! each is answered, what is refused costs little, and programs that may have 512 MiB outlive all of it.

mod beside;
mod town;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use farebox_door::{BodyRule, DoorPath, Method, PathCaller};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::process::{ask, client};
use crate::support::skip::list;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{sized, talking};
use town::{Listener, Measured, Shown, Town};

const MIB: u64 = 1 << 20;
/// The largest body that any path takes.
const WHOLE: usize = 32 << 20;
/// What a refused call may cost in memory.
const REFUSED: u64 = 64 * MIB;
/// Nothing takes longer: a body that never ends has 30 s, and a tenth of a machine is enough for the rest.
const LONGEST: Duration = Duration::from_secs(60);

/// A body that somebody sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BadBody {
    /// A long list of zeros.
    Zeros,
    /// A million lists, one in another.
    Nested,
    /// A form of ten thousand parts.
    Multipart,
    /// Chunks without an end.
    Endless,
}

impl BadBody {
    const ALL: [Self; 4] = [Self::Zeros, Self::Nested, Self::Multipart, Self::Endless];

    fn content_type(self) -> &'static str {
        match self {
            Self::Multipart => "multipart/form-data; boundary=x",
            Self::Zeros | Self::Nested | Self::Endless => "application/json",
        }
    }

    fn bytes(self, most: usize) -> Vec<u8> {
        match self {
            Self::Zeros => [b"[0".as_slice(), &b",0".repeat(most / 2 - 1)].concat(),
            Self::Nested => vec![b'['; 1_000_000],
            Self::Multipart => {
                let part = "--x\r\ncontent-disposition: form-data; name=\"key\"; filename=\"f\"\r\n\r\nsk-fb-x\r\n";
                format!("{}--x--\r\n", part.repeat(10_000)).into_bytes()
            }
            Self::Endless => b",0".repeat(32 * 1024),
        }
    }
}

/// A path with its parameters filled in.
fn concrete(path: &str) -> String {
    let part = |part: &str| match part {
        "{**rest}" => "customers".to_owned(),
        part if part.starts_with('{') => "test-model".to_owned(),
        part => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// One call and what became of it.
#[derive(Debug, Default, Clone, Copy)]
struct Called {
    status: u16,
    took: Duration,
    cpu: Duration,
    memory: u64,
}

/// Sends a request, or chunks until somebody ends them, and reads the answer's status; 0 if there is none.
async fn exchange(at: SocketAddr, head: &str, (body, bytes): (BadBody, &[u8])) -> u16 {
    let (mut from, mut to) = TcpStream::connect(at).await.unwrap().into_split();
    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let sending = async {
        if body == BadBody::Endless {
            to.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes())
                .await?;
            loop {
                to.write_all(&chunk).await?;
            }
        }
        to.write_all(format!("{head}content-length: {}\r\n\r\n", bytes.len()).as_bytes())
            .await?;
        to.write_all(bytes).await?;
        std::io::Result::Ok(())
    };
    let mut answer = [0; 12];
    let exchange = async {
        tokio::select! {
            _ = from.read_exact(&mut answer) => return,
            // A connection that is closed while it sends still has its answer.
            _ = sending => {}
        }
        let _ = from.read_exact(&mut answer).await;
    };
    let _ = tokio::time::timeout(LONGEST, exchange).await;
    let status = std::str::from_utf8(&answer[9..]).unwrap_or_default();
    status.parse().unwrap_or_default()
}

/// The same with what it costs a program.
async fn call(program: Measured, at: SocketAddr, head: &str, sent: (BadBody, &[u8])) -> Called {
    let (idle, cpu, begun) = (program.begin(), program.cpu(), Instant::now());
    Called {
        status: exchange(at, head, sent).await,
        took: begun.elapsed(),
        cpu: program.cpu().saturating_sub(cpu),
        memory: program.status("VmHWM:").saturating_sub(idle),
    }
}

/// Every path that is served, and where.
fn paths() -> Vec<(Listener, DoorPath)> {
    let customers = farebox::server::routes::endpoints();
    let customers = customers
        .iter()
        .map(|path| (Listener::Customers, path.at_the_door()));
    let admin = farebox::server::admin::paths();
    let admin = admin.into_iter().map(|path| (Listener::Admin, path));
    let shop = farebox_shop::paths();
    let shop = shop.into_iter().map(|path| (Listener::Shop, path));
    customers.chain(admin).chain(shop).collect()
}

/// The worst of all calls of one kind.
#[derive(Default)]
struct Worst {
    calls: u32,
    statuses: BTreeMap<u16, u32>,
    most: Called,
}

impl Worst {
    fn add(&mut self, called: Called) {
        self.calls += 1;
        *self.statuses.entry(called.status).or_default() += 1;
        self.most.took = self.most.took.max(called.took);
        self.most.cpu = self.most.cpu.max(called.cpu);
        self.most.memory = self.most.memory.max(called.memory);
    }
}

/// What is sent to a path: a long body where it may be read, and for everybody in full runs.
fn most_of(path: DoorPath) -> usize {
    match path.body {
        BodyRule::Json(_) => WHOLE,
        _ => usize::try_from(sized(2 << 20, 32 << 20)).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_body_on_any_path_costs_more_than_its_place() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let mut town = Town::open(folder.path(), &upstream).await;
    if town.shop.is_none() {
        list("bad bodies on the shop's paths: cargo build makes the shop");
    }
    let mut table: BTreeMap<(Listener, &str, Shown), Worst> = BTreeMap::new();
    for (listener, path) in paths() {
        let Some((program, at)) = town.at(listener) else {
            continue;
        };
        let callers = match (path.caller, path.body) {
            (PathCaller::Known, BodyRule::Nothing) => &[Shown::Nothing][..],
            (PathCaller::Known, _) => &[Shown::Nothing, Shown::NoMoney, Shown::Money],
            (PathCaller::Anybody | PathCaller::Monitor | PathCaller::Signer, _) => {
                &[Shown::Nothing]
            }
        };
        for (shown, body) in callers
            .iter()
            .flat_map(|shown| BadBody::ALL.map(|body| (*shown, body)))
        {
            if shown == Shown::Money && path.path.contains("logout") {
                // It would end the session of the others.
                continue;
            }
            if listener == Listener::Admin && shown == Shown::NoMoney {
                // A token has no money of its own.
                continue;
            }
            let method = match path.method {
                Method::Any => "POST",
                method => method.name(),
            };
            let head = format!(
                "{method} {} HTTP/1.1\r\nhost: localhost\r\norigin: {}\r\ncontent-type: {}\r\n{}",
                concrete(path.path),
                town.gateway.base,
                body.content_type(),
                town.credentials(listener, shown),
            );
            let called = call(program, at, &head, (body, &body.bytes(most_of(path)))).await;
            let what = format!(
                "{listener:?} {method} {} {shown:?} {body:?}: {called:?}",
                path.path
            );
            assert!((200..=503).contains(&called.status), "{what}");
            assert!(called.took < LONGEST, "{what}");
            assert!(called.memory < REFUSED, "{what}");
            assert!(shown != Shown::Money || called.status != 401, "{what}");
            let rule = match path.body {
                BodyRule::Nothing => "nothing",
                BodyRule::Form => "form, 4 KiB",
                BodyRule::Document(_) => "document",
                BodyRule::Json(_) => "JSON",
            };
            table
                .entry((listener, rule, shown))
                .or_default()
                .add(called);
        }
    }
    let beside = [
        beside::a_large_body_that_is_served_takes_less_than_three_times_itself(&town).await,
        beside::all_at_once_leave_a_customer_served(&town).await,
        beside::constants_leave_the_health_check_alone(&town).await,
        beside::wrong_tokens_lock_no_right_one_out(&town, folder.path()).await,
    ];
    println!("{}\n{}", printed(&table), beside.join("\n"));
    assert!(town.lives(), "{}", town.gateway.log());
    ask(&client(), &town.gateway.base, "test-model", &town.good)
        .await
        .unwrap();
}

/// The table of docs/results/door.md.
fn printed(table: &BTreeMap<(Listener, &str, Shown), Worst>) -> String {
    let mut text = "| listener | takes | shown | calls | answers | seconds | CPU ms | MiB |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    for ((listener, rule, shown), worst) in table {
        let statuses: Vec<String> = (worst.statuses.iter())
            .map(|(status, count)| format!("{count} × {status}"))
            .collect();
        let (most, mib) = (worst.most, worst.most.memory.div_ceil(MIB));
        let (seconds, cpu) = (most.took.as_secs_f64(), most.cpu.as_millis());
        writeln!(
            text,
            "| {listener:?} | {rule} | {shown:?} | {} | {} | {seconds:.2} | {cpu} | {mib} |",
            worst.calls,
            statuses.join(", "),
        )
        .unwrap();
    }
    text
}
