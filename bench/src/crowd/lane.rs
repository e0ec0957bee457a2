//! The lane of single attackers: a quiet time, the attacker, and a spinner that burns the attacker's CPU, one after the other.
//!
//! The customer is served as promised when nothing is refused or lost, and p99 is within twice the quiet figure, or 1.2 times
//! that of the spinner. An attacker that cannot be measured is a row that says why; the others are measured nevertheless.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::attackers::{ATTACKERS, Attack, Attacker, ShippedProxy, Spinner};
use super::customer::{self, Experience};
use super::table::{self, Row, Time, Times};
use super::{KEYS, failures, funds, liar, start};
use crate::books;
use crate::machine;
use crate::progress;
use crate::subjects::{Programs, free_address};

/// The shipped files, which are measured with the gateway.
const NGINX: &str = include_str!("../../../deploy/nginx.conf");
const CADDY: &str = include_str!("../../../deploy/Caddyfile");

/// All attackers at once are measured for so many times the time of one.
const TOGETHER: u32 = 5;
/// The quiet time and the spinner's, as a part of the attacker's, and the most.
const BESIDE: (f64, Duration) = (0.75, Duration::from_secs(60));

/// What was met in a time, and the CPU that this process (customer, attacker, provider) used meanwhile.
struct Met {
    customer: Experience,
    load: f64,
    others: f64,
}

impl Met {
    fn time(&self) -> Time {
        Time {
            asked: self.customer.asked,
            unserved: self.customer.server_errors + self.customer.failures.len(),
            p50: self.customer.quantile(0.50),
            p99: self.customer.quantile(0.99),
            others: self.others,
        }
    }
}

/// Measures each attacker for `seconds` and all together for five times as long, or only the one named `only`. The table is
/// written after each, and printed at the end.
pub(crate) fn run(programs: &Programs, seconds: u64, only: Option<&str>) -> Result<(), String> {
    let named = |attacker: &&Attacker| only.is_none_or(|name| name == attacker.name);
    let attackers: Vec<&Attacker> = ATTACKERS.iter().filter(named).collect();
    if attackers.is_empty() {
        let names: Vec<&str> = ATTACKERS.iter().map(|attacker| attacker.name).collect();
        return Err(format!(
            "no attacker has that name; there are {}",
            names.join(", ")
        ));
    }
    let file = programs.folder.join("strangers.md");
    let (mut rows, mut faults) = (Vec::<Row>::new(), Vec::new());
    for attacker in attackers {
        let times = if attacker.acts.len() > 1 { TOGETHER } else { 1 };
        let met = measured(programs, Duration::from_secs(seconds) * times, attacker);
        let found = match &met {
            Ok(times) => times.faults(),
            Err(fault) => vec![format!("not measured: {fault}")],
        };
        let named = |fault| format!("{}: {fault}", attacker.name);
        faults.extend(found.into_iter().map(named));
        rows.push((attacker.name, met));
        fs::write(&file, table::markdown(&rows))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    println!("\n{}", table::markdown(&rows));
    progress(&format!("written to {}", file.display()));
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the good customer was not served as promised: {}",
            faults.join("; ")
        ))
    }
}

/// One attacker against a gateway of its own.
fn measured(programs: &Programs, time: Duration, attacker: &Attacker) -> Result<Times, String> {
    // nginx takes relative paths for relative to its own folder.
    let folder = std::path::absolute(programs.folder.join("attackers"))
        .map_err(|error| error.to_string())?;
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let ledger = folder.join("farebox.db");
    books::make_with(&ledger, KEYS, funds)?;
    let secrets = books::secrets(KEYS);
    let upstream = liar::start().map_err(|error| format!("the upstream: {error}"))?;
    let programs = Programs {
        upstream,
        ..programs.clone()
    };
    let trusted: &[&str] = attacker
        .through
        .map_or(&[], |_| &["--trusted-proxy", "127.0.0.1"]);
    let mut gateway = start(&programs, &folder, &ledger, trusted)?;
    let proxy = match attacker.through {
        Some(ShippedProxy::Nginx) => {
            Some(RunningProxy::nginx(&programs, &folder, gateway.address)?)
        }
        Some(ShippedProxy::Caddy) => Some(RunningProxy::caddy(&folder, gateway.address)?),
        None => None,
    };
    let front = proxy
        .as_ref()
        .map_or(gateway.address, |proxy| proxy.address);
    let good = secrets.first().map(String::as_str).unwrap_or_default();
    let hostile = secrets.get(1..).unwrap_or_default();
    let mut processes = gateway.processes.clone();
    if let Some(proxy) = &proxy {
        processes.extend(machine::tree(proxy.child.id()));
    }
    let ask = |row: &str, time| {
        let name = format!("{} {row}", attacker.name);
        asked(&name, front, good, &processes, time)
    };
    let beside = time.mul_f64(BESIDE.0).min(BESIDE.1);

    customer::ask(front, good, Duration::from_secs(3));
    let quiet = ask("quiet", beside);
    let attack = Attack::start(attacker, front, gateway.address, hostile)
        .map_err(|error| format!("the attacker: {error}"))?;
    std::thread::sleep(Duration::from_secs(3));
    let begun = attack.begun();
    let attacked = ask("attacked", time);
    println!(
        "{:<22} {:.0} connections or requests a second",
        "",
        (attack.begun() - begun) as f64 / time.as_secs_f64()
    );
    attack.stop();
    let spinner = Spinner::start((attacked.load - quiet.load).max(0.0))
        .map_err(|error| format!("the spinner: {error}"))?;
    let spun = ask("spinner", beside);
    drop(spinner);

    for fault in failures(&attacked.customer) {
        println!("{:<22} {fault}", "");
    }
    drop(proxy);
    gateway.stop()?;
    programs.verify(&ledger)?;
    Ok(Times {
        quiet: quiet.time(),
        attacked: attacked.time(),
        spun: spun.time(),
    })
}

/// Asks for this long, and prints what was met.
fn asked(name: &str, address: SocketAddr, good: &str, processes: &[u32], time: Duration) -> Met {
    progress(name);
    // The provider is a part of this process.
    let sample = || machine::MachineSample::take(processes, 0);
    let (begun, before) = (Instant::now(), sample());
    let customer = customer::ask(address, good, time);
    let (after, seconds) = (sample(), begun.elapsed().as_secs_f64());
    let load = after.load_since(&before).as_secs_f64() / seconds;
    let others = after.shares_since(&before).others;
    println!(
        "{name:<22} {:>5} asked  p50 {:>7.2}  p99 {:>7.2}  most {:>7.2} ms  5xx {}  other failures {}  CPU: gateway {:>3.0} %, ours {:>3.0} %, others {:>3.0} % of both",
        customer.asked,
        customer.quantile(0.50),
        customer.quantile(0.99),
        customer.quantile(1.0),
        customer.server_errors,
        customer.failures.len(),
        after.cpu_since(&before).as_secs_f64() / seconds * 100.0,
        load * 100.0,
        others * 100.0,
    );
    Met {
        customer,
        load,
        others,
    }
}

/// A proxy with its shipped file, in plain HTTP. Dropping it ends it.
struct RunningProxy {
    child: Child,
    address: SocketAddr,
}

impl RunningProxy {
    fn nginx(programs: &Programs, folder: &Path, gateway: SocketAddr) -> Result<Self, String> {
        let fault = |error: std::io::Error| format!("nginx: {error}");
        let (address, here) = (free_address().map_err(fault)?, folder.display());
        let ours = |line: &&str| !line.contains("ssl_certificate") && !line.contains("[::]:443");
        let site: Vec<&str> = NGINX.lines().filter(ours).collect();
        let site = site
            .join("\n")
            .replace("127.0.0.1:8080", &gateway.to_string())
            .replace("/var/lib/nginx/farebox", &format!("{here}/bodies"))
            .replace(
                "listen 443 ssl http2",
                &format!("listen {address} backlog=4096"),
            );
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {here}/{name};\n"))
            .concat();
        let whole = format!(
            "daemon off; worker_processes 1; worker_rlimit_nofile 16384; error_log stderr crit; pid {here}/pid;\n\
             events {{ worker_connections 8192; }}\nhttp {{ access_log off;\n{temporary}{site}\n}}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, whole).map_err(fault)?;
        let mut command = Command::new(&programs.nginx);
        command
            .args(["-e", "stderr", "-p"])
            .arg(folder)
            .arg("-c")
            .arg(file);
        Self::running(&mut command, "nginx", address)
    }

    fn caddy(folder: &Path, gateway: SocketAddr) -> Result<Self, String> {
        let fault = |error: std::io::Error| format!("caddy: {error}");
        let address = free_address().map_err(fault)?;
        let version = Command::new("caddy")
            .arg("version")
            .output()
            .map_err(fault)?;
        let old = String::from_utf8_lossy(&version.stdout)
            .trim_start_matches('v')
            .starts_with("2.6.2");
        let mut site = CADDY
            .replace("127.0.0.1:8080", &gateway.to_string())
            .replace(
                "api.example.com {",
                &format!("http://{address} {{\n\tbind {}", address.ip()),
            )
            .replacen(
                "{\n\tservers",
                "{\n\tadmin off\n\tauto_https off\n\tservers",
                1,
            );
        if old {
            // As the file says.
            site = site.replace(
                "request_buffers 256KB",
                "buffer_requests\n\t\t\tmax_buffer_size 256KB",
            );
        }
        let file = folder.join("Caddyfile");
        fs::write(&file, site).map_err(fault)?;
        let mut command = Command::new("caddy");
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(file);
        for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, folder);
        }
        Self::running(command.stderr(Stdio::null()), "caddy", address)
    }

    fn running(command: &mut Command, name: &str, address: SocketAddr) -> Result<Self, String> {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("{name}: {error}"))?;
        let proxy = Self { child, address };
        let begun = Instant::now();
        while std::net::TcpStream::connect(address).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err(format!("{name} does not answer"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(proxy)
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        // Its workers end with it only when it is asked to stop.
        if let Some(process) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
