//! Every path of both listeners and of the shop against bad bodies, with a key that pays, with one that has nothing and without one:
//! each is answered, what is refused costs little, and programs that may have 512 MiB outlive all of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_door::{BodyRule, DoorPath, Method, PathCaller};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::load::UPSTREAM_KEY;
use crate::support::process::{Served, ask, client, funded_key, json};
use crate::support::skip::list;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, routes, sized, talking};

const MIB: u64 = 1 << 20;
/// What the programs may have.
const ALLOWED: u64 = 512 * MIB;
/// The largest body that any path takes.
const WHOLE: usize = 32 << 20;
/// What a refused call may cost in memory.
const REFUSED: u64 = 64 * MIB;
/// Nothing takes longer: a body that never ends has 30 s, and a tenth of a machine is enough for the rest.
const LONGEST: Duration = Duration::from_secs(60);

/// Starts a program in a world whose control group says how much memory there is; the bounds follow it.
fn bounded(program: &Path) -> Option<Command> {
    let script = "mount -t tmpfs none /sys/fs/cgroup && grep -E '^0::|:memory:' /proc/self/cgroup | while IFS=: read -r n c p; do \
         for d in \"/sys/fs/cgroup/memory$p\" \"/sys/fs/cgroup$p\"; do mkdir -p \"$d\"; echo 536870912 > \"$d/memory.max\"; \
         echo 536870912 > \"$d/memory.limit_in_bytes\"; done; done; exec \"$0\" \"$@\"";
    let can = Command::new("unshare")
        .args(["-m", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup"])
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(program);
    Some(command)
}

/// A program that is measured.
#[derive(Clone, Copy)]
struct Measured(u32);

impl Measured {
    fn status(self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        kib.parse::<u64>().unwrap() * 1024
    }

    /// CPU time of all its threads.
    fn cpu(self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0)).unwrap();
        let nanos = tasks.flatten().filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Forgets the most memory that it ever had; what it has now.
    fn begin(self) -> u64 {
        fs::write(format!("/proc/{}/clear_refs", self.0), "5").unwrap();
        self.status("VmRSS:")
    }
}

/// The shop's process. Dropping it kills it.
struct Shop {
    child: Child,
    base: String,
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A shop of test cards before this gateway.
async fn shop(folder: &Path, admin: &str, token: &str) -> Option<Shop> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_farebox")).with_file_name("farebox-shop");
    let mut command = program.exists().then(|| bounded(&program)).flatten()?;
    let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = place.local_addr().unwrap();
    drop(place);
    let file = format!(
        "name = \"Key Corner\"\nlisten = \"{at}\"\npublic_url = \"http://localhost:{}\"\ncurrency = \"EUR\"\n[gateway]\n\
         api = \"{admin}\"\nurl = \"http://localhost\"\ntoken = {{ file = \"token\" }}\n[processor]\nsimulated = {{}}\n\
         [[offer]]\ncredit = \"10\"\nprice = \"11.90\"\n",
        at.port()
    );
    fs::write(folder.join("token"), token).unwrap();
    fs::write(folder.join("shop.toml"), file).unwrap();
    let child = command.current_dir(folder).stderr(Stdio::null()).spawn();
    let shop = Shop {
        child: child.unwrap(),
        base: format!("http://{at}"),
    };
    let begun = Instant::now();
    while TcpStream::connect(at).await.is_err() {
        assert!(begun.elapsed() < LONGEST, "the shop does not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Some(shop)
}

/// A body that somebody sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

/// Sends a request, or chunks until somebody ends them, and reads the answer's status.
async fn call(
    program: Measured,
    at: SocketAddr,
    head: &str,
    (body, bytes): (BadBody, &[u8]),
) -> Called {
    let (idle, cpu, begun) = (program.begin(), program.cpu(), Instant::now());
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
    Called {
        status: status.parse().unwrap_or_default(),
        took: begun.elapsed(),
        cpu: program.cpu().saturating_sub(cpu),
        memory: program.status("VmHWM:").saturating_sub(idle),
    }
}

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Nothing,
    NoMoney,
    Money,
}

/// The programs and everybody's credentials.
struct Town {
    gateway: Served,
    shop: Option<Shop>,
    poor: String,
    rich: String,
    cookie: String,
    token: String,
}

/// Where a path is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Listener {
    Customers,
    Admin,
    Shop,
}

impl Town {
    async fn open(folder: &Path, upstream: &ScriptedUpstream) -> Option<Self> {
        let mut command = bounded(Path::new(env!("CARGO_BIN_EXE_farebox")))?;
        fs::write(folder.join("catalog.toml"), CATALOG).unwrap();
        fs::write(folder.join("routes.toml"), routes(&upstream.base_url())).unwrap();
        let rich = funded_key(folder, "100")["secret"].clone();
        let poor = json(folder, &["keys", "create", "--label", "poor"])["secret"].clone();
        let token = token(folder, "sell", "shop");
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).envs([UPSTREAM_KEY]);
        let gateway = Served::start_or_end(command.arg("serve").current_dir(folder)).unwrap();
        let said = "at most 85 MiB of request bodies and 42 MiB of answers in flight";
        assert!(gateway.log().contains(said), "{}", gateway.log());
        let rich = rich.as_str().unwrap().to_owned();
        // The answer of the form has the cookie, and the page that it leads to has none.
        let once = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let form = once.no_proxy().build().unwrap();
        let form = form
            .post(format!("{}/dashboard/login", gateway.base))
            .header("origin", &gateway.base)
            .header("content-type", "application/x-www-form-urlencoded");
        let answer = form.body(format!("key={rich}")).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 303, "signed in");
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        Some(Self {
            shop: shop(folder, &gateway.admin, &token).await,
            poor: poor.as_str().unwrap().to_owned(),
            rich,
            cookie: cookie.split(';').next().unwrap_or_default().to_owned(),
            token,
            gateway,
        })
    }

    fn at(&self, listener: Listener) -> Option<(Measured, SocketAddr)> {
        let (id, base) = match listener {
            Listener::Customers => (self.gateway.id(), &self.gateway.base),
            Listener::Admin => (self.gateway.id(), &self.gateway.admin),
            Listener::Shop => {
                let shop = self.shop.as_ref()?;
                (shop.child.id(), &shop.base)
            }
        };
        let at = base.trim_start_matches("http://").parse();
        Some((Measured(id), at.unwrap()))
    }

    fn credentials(&self, listener: Listener, shown: Shown) -> String {
        match (listener, shown) {
            (_, Shown::Nothing) | (Listener::Shop, _) => String::new(),
            (Listener::Admin, _) => format!(
                "authorization: Bearer {}\r\nidempotency-key: x\r\n",
                self.token
            ),
            (Listener::Customers, Shown::NoMoney) => {
                format!("x-api-key: {0}\r\nauthorization: Bearer {0}\r\n", self.poor)
            }
            (Listener::Customers, Shown::Money) => {
                format!(
                    "x-api-key: {0}\r\nauthorization: Bearer {0}\r\ncookie: {1}\r\n",
                    self.rich, self.cookie
                )
            }
        }
    }
}

fn token(folder: &Path, role: &str, label: &str) -> String {
    let create = ["tokens", "create", label, "--role", role];
    let daily = ["--daily", "100"];
    let made = match role {
        "sell" => json(folder, &[&create[..], &daily].concat()),
        _ => json(folder, &create),
    };
    made["secret"].as_str().unwrap().to_owned()
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
    let Some(town) = Town::open(folder.path(), &upstream).await else {
        return list("bad bodies on every path: this test needs root and unshare");
    };
    if town.shop.is_none() {
        list("bad bodies on the shop's paths: cargo build makes the shop");
    }
    let mut table: BTreeMap<(Listener, &str, Shown, BadBody), Worst> = BTreeMap::new();
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
                .entry((listener, rule, shown, body))
                .or_default()
                .add(called);
        }
    }
    let beside = [
        a_large_body_that_is_served_takes_less_than_three_times_itself(&town).await,
        constants_leave_the_health_check_alone(&town).await,
        wrong_tokens_lock_no_right_one_out(&town, folder.path()).await,
    ];
    println!("{}\n{}", printed(&table), beside.join("\n"));
    for listener in [Listener::Customers, Listener::Shop] {
        let Some((program, _)) = town.at(listener) else {
            continue;
        };
        assert!(program.status("VmRSS:") < ALLOWED, "{listener:?}");
    }
    ask(&client(), &town.gateway.base, "test-model", &town.rich)
        .await
        .unwrap();
}

/// The table of docs/results/door.md.
fn printed(table: &BTreeMap<(Listener, &str, Shown, BadBody), Worst>) -> String {
    let mut text = "| listener | takes | shown | body | calls | answers | seconds | CPU ms | MiB |\n|---|---|---|---|---|---|---|---|---|\n".to_owned();
    for ((listener, rule, shown, body), worst) in table {
        let statuses: Vec<String> = (worst.statuses.iter())
            .map(|(status, count)| format!("{count} × {status}"))
            .collect();
        let (most, mib) = (worst.most, worst.most.memory.div_ceil(MIB));
        let (seconds, cpu) = (most.took.as_secs_f64(), most.cpu.as_millis());
        writeln!(
            text,
            "| {listener:?} | {rule} | {shown:?} | {body:?} | {} | {} | {seconds:.2} | {cpu} | {mib} |",
            worst.calls,
            statuses.join(", "),
        )
        .unwrap();
    }
    text
}

async fn a_large_body_that_is_served_takes_less_than_three_times_itself(town: &Town) -> String {
    let (program, at) = town.at(Listener::Customers).unwrap();
    // A picture of one point, and much behind it.
    let png = [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(),
        &[0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0, 0, 0, 0],
    ];
    let picture = STANDARD.encode(png.concat()) + &"A".repeat(20 << 20);
    let url = format!("data:image/png;base64,{picture}");
    let content = serde_json::json!([{ "type": "image_url", "image_url": { "url": url } }]);
    let messages = serde_json::json!([{ "role": "user", "content": content }]);
    let body = serde_json::json!({ "model": "test-model", "max_tokens": 1, "messages": messages });
    let body = body.to_string().into_bytes();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{}",
        town.credentials(Listener::Customers, Shown::Money)
    );
    let served = call(program, at, &head, (BadBody::Zeros, &body)).await;
    assert_eq!(served.status, 200, "{served:?}");
    assert!(served.memory < 3 * body.len() as u64, "{served:?}");
    format!("served, {} MiB: {served:?}", body.len() >> 20)
}

/// Four thousand requests for the API's document on one connection, which nobody reads.
async fn constants_leave_the_health_check_alone(town: &Town) -> String {
    let (program, at) = town.at(Listener::Admin).unwrap();
    let before = program.cpu();
    let requests = "GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(4_000);
    let mut flood = TcpStream::connect(at).await.unwrap();
    let _ =
        tokio::time::timeout(Duration::from_secs(1), flood.write_all(requests.as_bytes())).await;
    let reading = tokio::spawn(async move {
        let mut taken = vec![0; 1 << 20];
        while flood.read(&mut taken).await.is_ok_and(|read| read > 0) {}
    });
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let begun = Instant::now();
        let answer = client()
            .get(format!("{}/healthz", town.gateway.admin))
            .send()
            .await;
        assert_eq!(answer.unwrap().status().as_u16(), 200);
        slowest = slowest.max(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    reading.abort();
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let cpu = program.cpu() - before;
    format!("health beside 4,000 documents: {slowest:?}; CPU {cpu:?}")
}

async fn wrong_tokens_lock_no_right_one_out(town: &Town, folder: &Path) -> String {
    let (program, at) = town.at(Listener::Admin).unwrap();
    let before = program.cpu();
    let wrong = format!("fb-token-{}", "0".repeat(40));
    let request = format!(
        "GET /api/v1/customers HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {wrong}\r\n\r\n"
    );
    let mut neighbour = TcpStream::connect(at).await.unwrap();
    let (mut answers, mut to) = neighbour.split();
    let many = sized(3_000, 19_000);
    let flood = request.repeat(usize::try_from(many).unwrap());
    let taking = async {
        let mut taken = vec![0; 1 << 16];
        while answers.read(&mut taken).await.is_ok_and(|read| read > 0) {}
    };
    tokio::select! {
        () = taking => {},
        sent = to.write_all(flood.as_bytes()) => sent.unwrap(),
    }
    let token = token(folder, "read", "late");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let ask = client().get(format!("{}/api/v1/customers", town.gateway.admin));
    let answer = ask.bearer_auth(&token).send().await.unwrap();
    let cpu = program.cpu() - before;
    assert_eq!(answer.status().as_u16(), 200, "at its first use");
    format!("{many} wrong tokens: CPU {cpu:?}")
}
