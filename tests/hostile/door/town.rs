//! The programs that are called, in a control group that may have 512 MiB, and everybody's credentials.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::load::UPSTREAM_KEY;
use crate::support::memory_group::MemoryGroup;
use crate::support::process::{
    Served, client_builder, funded_key, json, shop_file, shop_program, token,
};
use crate::support::skip::{list, skip};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, routes, sized};

/// What the programs may have together.
pub(super) const ALLOWED: u64 = 512 << 20;
/// A quarter of that: two thirds for bodies, one for answers.
const SAID: &str = "at most 85 MiB of request bodies and 42 MiB of answers in flight";

/// A program that is measured.
#[derive(Clone, Copy)]
pub(super) struct Measured(u32);

impl Measured {
    pub(super) fn status(self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        kib.parse::<u64>().unwrap() * 1024
    }

    /// CPU time of all its threads.
    pub(super) fn cpu(self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0)).unwrap();
        let nanos = tasks.flatten().filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Forgets the most memory that it ever had; what it has now.
    pub(super) fn begin(self) -> u64 {
        fs::write(format!("/proc/{}/clear_refs", self.0), "5").unwrap();
        self.status("VmRSS:")
    }
}

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    Nothing,
    NoMoney,
    Money,
}

/// Where a path is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Listener {
    Customers,
    Admin,
    Shop,
}

/// The programs and everybody's credentials.
pub(super) struct Town {
    pub(super) gateway: Served,
    pub(super) shop: Option<Served>,
    /// A customer who sends nothing bad.
    pub(super) good: String,
    poor: String,
    rich: String,
    cookie: String,
    token: String,
    /// Where the programs are; the last to go.
    group: Option<MemoryGroup>,
}

impl Town {
    pub(super) async fn open(folder: &Path, upstream: &ScriptedUpstream) -> Self {
        fs::write(folder.join("catalog.toml"), CATALOG).unwrap();
        fs::write(folder.join("routes.toml"), routes(&upstream.base_url())).unwrap();
        let secret = |made: serde_json::Value| made["secret"].as_str().unwrap().to_owned();
        let rich = secret(funded_key(folder, "100"));
        let good = ["--label", "good", "--balance", "5", "--reference", "g"];
        let good = secret(json(folder, &[&["keys", "create"], &good[..]].concat()));
        let poor = secret(json(folder, &["keys", "create", "--label", "poor"]));
        let token = token(folder, "sell", "shop");
        let group = group();
        let here = |program: &Path| {
            let mut command = (group.as_ref())
                .map_or_else(|| Command::new(program), |group| group.command(program));
            let path = std::env::var_os("PATH").unwrap_or_default();
            command.env_clear().env("PATH", path).current_dir(folder);
            command
        };
        let mut command = here(Path::new(env!("CARGO_BIN_EXE_farebox")));
        let gateway = Served::start_or_end(command.envs([UPSTREAM_KEY]).arg("serve")).unwrap();
        let log = gateway.log();
        assert!(group.is_none() || log.contains(SAID), "{log}");
        let program = shop_program();
        let shop = program.exists().then(|| {
            shop_file(folder, &gateway.admin, &token);
            Served::shop(&mut here(&program))
        });
        Self {
            cookie: signed_in(&gateway.base, &rich).await,
            good,
            poor,
            rich,
            token,
            shop,
            gateway,
            group,
        }
    }

    /// The program behind a listener, and its address.
    pub(super) fn at(&self, listener: Listener) -> Option<(Measured, SocketAddr)> {
        let (program, base) = match listener {
            Listener::Customers => (&self.gateway, &self.gateway.base),
            Listener::Admin => (&self.gateway, &self.gateway.admin),
            Listener::Shop => self.shop.as_ref().map(|shop| (shop, &shop.base))?,
        };
        let at = base.trim_start_matches("http://").parse();
        Some((Measured(program.id()), at.unwrap()))
    }

    /// The headers of a caller.
    pub(super) fn credentials(&self, listener: Listener, shown: Shown) -> String {
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

    /// Whether no program has ended, of itself or because it took more memory than it may have.
    pub(super) fn lives(&mut self) -> bool {
        let killed = self.group.as_ref().map_or(0, MemoryGroup::killed);
        let mut programs = self.shop.iter_mut().chain([&mut self.gateway]);
        killed == 0 && programs.all(|program| !program.has_ended())
    }
}

/// The group of the programs. A machine that gives none runs the test without, and a full run says so by failing.
fn group() -> Option<MemoryGroup> {
    let group = MemoryGroup::of(ALLOWED);
    if group.is_none() {
        let what = "programs that may have 512 MiB: this needs root and a control group for memory, or systemd-run";
        match sized(0, 1) {
            0 => list(what),
            _ => skip(what),
        }
    }
    group
}

/// The cookie of a session. The answer of the form has it, and the page that it leads to has none.
async fn signed_in(base: &str, secret: &str) -> String {
    let once = client_builder().redirect(reqwest::redirect::Policy::none());
    let form = once
        .build()
        .unwrap()
        .post(format!("{base}/dashboard/login"))
        .header("origin", base)
        .header("content-type", "application/x-www-form-urlencoded");
    let answer = form.body(format!("key={secret}")).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 303, "signed in");
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap_or_default().to_owned()
}
