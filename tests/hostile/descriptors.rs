//! A gateway that really runs out of descriptors: who is blamed, who is refused, and what works again afterwards.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use futures_util::stream::{FuturesUnordered, StreamExt};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::load::UPSTREAM_KEY;
use crate::support::process::{Served, ask, client, document_at, funded_key};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, routes, talking};

/// A folder with both files and a ledger, and a funded key's secret. `test-blind` has a separate upstream.
fn place(first: &ScriptedUpstream, second: &ScriptedUpstream) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let other = format!(
        "[provider.other]\nbase_url = \"{}\"\nspeaks = [\"chat\"]\nkey = {{ env = \"UPSTREAM_KEY\" }}\n",
        second.base_url()
    );
    let routes = routes(&first.base_url()).replace(
        "provider = \"up\", model = \"upstream-model-2\"",
        "provider = \"other\", model = \"m\"",
    );
    fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
    fs::write(folder.path().join("routes.toml"), routes + &other).unwrap();
    let made = funded_key(folder.path(), "5");
    let secret = made["secret"].as_str().unwrap().to_owned();
    (folder, secret)
}

/// The lowest number that a new descriptor of this process would get.
fn next_descriptor(process: u32) -> u64 {
    let open = |number: &u64| {
        Path::new(&format!("/proc/{process}/fd/{number}"))
            .symlink_metadata()
            .is_ok()
    };
    (0..).find(|number| !open(number)).unwrap()
}

/// Leaves this process no free descriptor: repeats until descriptors that were briefly open are used up too.
async fn fill(process: u32) {
    loop {
        let next = next_descriptor(process);
        allow(process, Some(next));
        tokio::time::sleep(Duration::from_millis(200)).await;
        if next_descriptor(process) == next {
            return;
        }
    }
}

/// Retries when the connection was closed: the next one gets its descriptor.
async fn persistent(
    customer: &reqwest::Client,
    served: &Served,
    slug: &str,
    secret: &str,
) -> Result<Value, String> {
    for _ in 0..5 {
        match tokio::time::timeout(
            Duration::from_secs(5),
            ask(customer, &served.base, slug, secret),
        )
        .await
        {
            Ok(Err(broken)) if broken.starts_with("error sending") => {}
            Ok(answered) => return answered,
            Err(_) => {}
        }
    }
    panic!("no answer in five tries:\n{}", served.log())
}

/// Changes the soft limit; the hard one is inherited from this process.
fn allow(process: u32, descriptors: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let process = Pid::from_raw(i32::try_from(process).unwrap());
    prlimit(
        process,
        Resource::Nofile,
        Rlimit {
            current: descriptors,
            maximum,
        },
    )
    .unwrap();
}

async fn target(client: &reqwest::Client, admin: &str) -> Value {
    let status: Value = document_at(client, format!("{admin}/status")).await;
    let targets = status["targets"].as_array().unwrap();
    targets
        .iter()
        .find(|target| target["provider"] == "other")
        .unwrap()
        .clone()
}

#[tokio::test]
async fn without_a_descriptor_for_the_upstream_no_target_is_blamed() {
    let (first, second) = (
        ScriptedUpstream::start(talking("PONG")).await,
        ScriptedUpstream::start(talking("PONG")).await,
    );
    let (folder, secret) = place(&first, &second);
    let served = Served::start_with(folder.path(), &[], &[UPSTREAM_KEY]);
    // Both have a connection that is open already; so does the first upstream.
    let (customer, operator) = (client(), client());
    ask(&customer, &served.base, "test-model", &secret)
        .await
        .unwrap();
    target(&operator, &served.admin).await;

    fill(served.id()).await;
    for _ in 0..8 {
        let refused = persistent(&customer, &served, "test-blind", &secret)
            .await
            .unwrap_err();
        assert!(
            refused.starts_with("503") && refused.contains("upstream_unavailable"),
            "{refused}\n{}",
            served.log()
        );
    }
    let works = persistent(&customer, &served, "test-model", &secret).await;
    assert!(
        works.is_ok(),
        "what has its connection works: {works:?}
{}",
        served.log()
    );
    let before = target(&operator, &served.admin).await;
    assert_eq!(
        (&before["state"], &before["errors"], &before["keys_closed"]),
        (&"closed".into(), &0.into(), &0.into()),
        "{before}"
    );
    assert!(second.requests().is_empty());
    // A new connection waits in the system's queue.
    let mut stranger = TcpStream::connect(served.base.trim_start_matches("http://"))
        .await
        .unwrap();
    stranger
        .write_all(b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();

    allow(served.id(), getrlimit(Resource::Nofile).maximum);
    ask(&customer, &served.base, "test-blind", &secret)
        .await
        .unwrap();
    let mut answer = String::new();
    tokio::time::timeout(
        Duration::from_secs(60),
        stranger.read_to_string(&mut answer),
    )
    .await
    .unwrap()
    .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let log = served.log();
    assert!(
        log.lines().count() < 2_000,
        "it did not fill the log while nothing could be accepted"
    );
    assert!(
        log.contains("own: "),
        "the log says what was missing: {log}"
    );
}

#[tokio::test]
async fn whatever_the_ledger_needs_is_open_before_the_first_charge() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
    let routes = ["test-model", "test-blind"]
        .map(|slug| format!("[[route]]\nslug = \"{slug}\"\ntargets = [ {{ provider = \"sim\", model = \"sim\" }} ]\n"));
    let provider = "[provider.sim]\nsimulated = true\n";
    fs::write(
        folder.path().join("routes.toml"),
        [provider, &routes[0], &routes[1]].concat(),
    )
    .unwrap();
    let made = funded_key(folder.path(), "5");
    let secret = made["secret"].as_str().unwrap();
    let served = Served::start(folder.path(), &[]);
    let customer = client();
    let listed = customer
        .get(format!("{}/v1/models", served.base))
        .bearer_auth(secret)
        .send()
        .await
        .unwrap();
    assert_eq!(
        listed.status(),
        200,
        "this connection is open, and nothing was charged yet"
    );

    allow(served.id(), Some(next_descriptor(served.id())));
    for _ in 0..4 {
        let answered = persistent(&customer, &served, "test-model", secret).await;
        assert!(answered.is_ok(), "{answered:?}\n{}", served.log());
        // A charge is synced 30 ms after its commit.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn the_soft_limit_of_descriptors_is_raised_at_the_start() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, _) = place(&upstream, &upstream);
    let mut command = std::process::Command::new("sh");
    command
        .env_clear()
        .current_dir(folder.path())
        .envs([UPSTREAM_KEY]);
    command.args([
        "-c",
        "ulimit -S -n 200 && exec \"$0\" serve",
        env!("CARGO_BIN_EXE_farebox"),
    ]);
    let served = Served::start_or_end(&mut command).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", served.id())).unwrap();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .unwrap();
    let (soft, hard) = line.trim().split_once(' ').unwrap();
    assert!(hard.trim().starts_with(soft) && soft != "200", "{line}");
}

/// A connection from a separate address.
async fn from(address: u8, to: std::net::SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 7, address], 0).into())?;
    socket.connect(to).await
}

#[tokio::test]
async fn with_few_descriptors_a_crowd_is_refused_and_the_others_are_served() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, secret) = place(&upstream, &upstream);
    let mut command = std::process::Command::new("sh");
    command
        .env_clear()
        .current_dir(folder.path())
        .envs([UPSTREAM_KEY]);
    command.args([
        "-c",
        "ulimit -n 220 && exec \"$0\" serve",
        env!("CARGO_BIN_EXE_farebox"),
    ]);
    let served = Served::start_or_end(&mut command).unwrap();
    let address: std::net::SocketAddr = served.base.trim_start_matches("http://").parse().unwrap();
    let operator = client();
    let mut crowd = Vec::new();
    for number in 0..400_u32 {
        crowd.push(
            from(u8::try_from(1 + number % 200).unwrap(), address)
                .await
                .unwrap(),
        );
        if number % 50 == 0 {
            let begun = Instant::now();
            // On a new connection each time: an idle one may be closed for a new one.
            ask(&client(), &served.base, "test-model", &secret)
                .await
                .unwrap();
            // Less than the 120 s for which an idle connection may keep its place.
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{:?}",
                begun.elapsed()
            );
        }
    }
    ask(&client(), &served.base, "test-blind", &secret)
        .await
        .unwrap();
    let most = (220 - 128) / 2;
    let mut closed: FuturesUnordered<_> = crowd.iter_mut().map(AsyncReadExt::read_u8).collect();
    for number in 0..400 - most {
        let ended = tokio::time::timeout(Duration::from_secs(60), closed.next()).await;
        assert!(ended.is_ok(), "{number} of 400 were closed");
    }
    let metrics = operator
        .get(format!("{}/metrics", served.admin))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let of = |name: &str| {
        metrics
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<usize>().ok())
            .unwrap()
    };
    assert!(of("farebox_connections ") <= most);
    assert!(
        of("farebox_connections_closed_total{which=\"idle\"}") >= 300,
        "{metrics}"
    );
    let state = target(&operator, &served.admin).await;
    assert_eq!(
        (&state["state"], &state["errors"]),
        (&"closed".into(), &0.into())
    );
}
