//! Strangers' sign-in forms that come byte by byte, from one address, four and sixty-four, with few descriptors and many, directly
//! and through the shipped files of nginx and Caddy: whoever pays is served.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::load::{UPSTREAM_KEY, sized};
use crate::support::process::{Served, ask, client};
use crate::support::proxies::{Proxy, Scheme};
use crate::support::skip::installed;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, routes, talking};

/// Slow forms that are open at the same time.
const FORMS: u32 = 800;
/// What must be served meanwhile.
const REQUESTS: u32 = 29;

/// A gateway with so many descriptors, and a funded key's secret.
fn gateway(folder: &Path, upstream: &ScriptedUpstream, descriptors: u32) -> (Served, String) {
    std::fs::write(folder.join("catalog.toml"), CATALOG).unwrap();
    std::fs::write(folder.join("routes.toml"), routes(&upstream.base_url())).unwrap();
    let arguments = "keys create --new-ledger --label t --balance 5 --reference r";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let made = crate::support::process::json(folder, &arguments);
    let mut command = Command::new("sh");
    command.env_clear().current_dir(folder).envs([UPSTREAM_KEY]);
    let script = format!("ulimit -n {descriptors} && exec \"$0\" serve --trusted-proxy 127.0.0.1");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_farebox")]);
    let served = Served::start_or_end(&mut command).unwrap();
    (served, made["secret"].as_str().unwrap().to_owned())
}

/// A crowd of slow forms until it is dropped.
struct Crowd {
    forms: Vec<tokio::task::JoinHandle<()>>,
    opened: Arc<AtomicU64>,
}

impl Crowd {
    /// `origin` is the page that the forms seem to come from.
    fn at(target: SocketAddr, origin: &str, addresses: u32) -> Self {
        let opened = Arc::new(AtomicU64::new(0));
        let head: Arc<str> = format!(
            "POST /dashboard/login HTTP/1.1\r\nhost: {target}\r\norigin: {origin}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\n\r\nkey="
        )
        .into();
        let forms = (0..FORMS).map(|number| {
            let from = [127, 0, 9, u8::try_from(1 + number % addresses).unwrap()];
            let (head, opened) = (Arc::clone(&head), Arc::clone(&opened));
            tokio::spawn(async move {
                loop {
                    let _ = slow_form(from, target, &head, &opened).await;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            })
        });
        Self {
            forms: forms.collect(),
            opened,
        }
    }

    /// Until the crowd is there.
    async fn arrives(&self) {
        let begun = Instant::now();
        while self.opened.load(Ordering::Relaxed) < u64::from(FORMS) {
            assert!(begun.elapsed() < Duration::from_secs(60), "no crowd");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.forms.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Announces a form of a hundred bytes, and sends one of them now and then, until somebody ends it.
async fn slow_form(
    from: [u8; 4],
    target: SocketAddr,
    head: &str,
    opened: &AtomicU64,
) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let mut stream: TcpStream = socket.connect(target).await?;
    stream.write_all(head.as_bytes()).await?;
    opened.fetch_add(1, Ordering::Relaxed);
    let mut answer = [0; 1_024];
    loop {
        tokio::select! {
            read = stream.read(&mut answer) => if read? == 0 { return Ok(()) },
            () = tokio::time::sleep(Duration::from_secs(1)) => stream.write_all(b"x").await?,
        }
    }
}

/// Every paying request is served while the crowd is there, each on a connection of its own.
async fn are_served(served: &Served, base: &str, secret: &str, crowd: &Crowd) {
    crowd.arrives().await;
    for number in 0..REQUESTS {
        let customer = client();
        let asking = ask(&customer, base, "test-model", secret);
        let answered = tokio::time::timeout(Duration::from_secs(60), asking).await;
        let answered = answered.expect("an answer in time");
        assert!(answered.is_ok(), "{number}: {answered:?}\n{}", served.log());
    }
}

/// How many descriptors, and how many addresses.
fn sizes() -> Vec<(u32, u32)> {
    let all = [1_024, 20_000].map(|descriptors| [1, 4, 64].map(|from| (descriptors, from)));
    let few = usize::try_from(sized(3, 6)).unwrap();
    all.concat().into_iter().take(few).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_forms_keep_no_paying_request_out() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    for (descriptors, addresses) in sizes() {
        let folder = tempfile::tempdir().unwrap();
        let (served, secret) = gateway(folder.path(), &upstream, descriptors);
        let address = served.base.trim_start_matches("http://").parse().unwrap();
        let crowd = Crowd::at(address, &served.base, addresses);
        are_served(&served, &served.base, &secret, &crowd).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_forms_through_nginx_keep_no_paying_request_out() {
    if !installed("nginx", "slow forms through nginx") {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    for (descriptors, addresses) in sizes() {
        let folder = tempfile::tempdir().unwrap();
        let (served, secret) = gateway(folder.path(), &upstream, descriptors);
        let here = served.base.trim_start_matches("http://");
        let proxy = Proxy::nginx(folder.path(), here, Scheme::Http, descriptors);
        through(&served, &proxy, &secret, addresses).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_forms_through_caddy_keep_no_paying_request_out() {
    if !installed("caddy", "slow forms through Caddy") {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    for (descriptors, addresses) in sizes() {
        let folder = tempfile::tempdir().unwrap();
        let (served, secret) = gateway(folder.path(), &upstream, descriptors);
        let proxy = Proxy::caddy(folder.path(), served.base.trim_start_matches("http://"));
        through(&served, &proxy, &secret, addresses).await;
    }
}

/// The files for a fleet bound strangers in the same way. Two of its three gateways are away.
#[tokio::test(flavor = "multi_thread")]
async fn slow_forms_through_a_fleets_nginx_keep_no_paying_request_out() {
    if !installed("nginx", "slow forms through a fleet's nginx") {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let (served, secret) = gateway(folder.path(), &upstream, 1_024);
    let here = served.base.trim_start_matches("http://");
    let proxy = Proxy::nginx_of_fleet(folder.path(), here, 1_024);
    through(&served, &proxy, &secret, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_forms_through_a_fleets_caddy_keep_no_paying_request_out() {
    if !installed("caddy", "slow forms through a fleet's Caddy") {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let (served, secret) = gateway(folder.path(), &upstream, 1_024);
    let here = served.base.trim_start_matches("http://");
    let proxy = Proxy::caddy_of_fleet(folder.path(), here, &served.admin);
    through(&served, &proxy, &secret, 4).await;
}

async fn through(served: &Served, proxy: &Proxy, secret: &str, addresses: u32) {
    let base = format!("http://{}", proxy.address);
    let begun = Instant::now();
    while ask(&client(), &base, "test-model", secret).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no proxy");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let crowd = Crowd::at(proxy.address, &served.base, addresses);
    are_served(served, &base, secret, &crowd).await;
}
