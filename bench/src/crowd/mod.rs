//! A hostile crowd against a gateway on loopback, while one good customer keeps asking: what the customer notices.
//!
//! It measures and reports; it does not touch the gateway's files beyond a ledger of its own. Everything is bounded: seconds,
//! connections and requests in flight. The latency of the crowd is compared with that of a quiet time in the same run.

mod attackers;
mod customer;
mod hostile;
mod lane;
mod liar;
mod lowly;
mod proxy;
mod requests;
mod scene;
mod shop;
mod spinner;
mod table;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::books;
use crate::machine;
use crate::progress;
use crate::subjects::{Programs, free_address, spawn};
use customer::Experience;
use hostile::Crowd;
pub(crate) use lane::run as attackers;

/// Key 0 is the good customer's; the others are the crowd's.
const KEYS: u64 = 17;
/// New connections that only churn makes each second.
const CHURN: u64 = 1_200;
/// The time in which a crowd arrives.
const ARRIVING: Duration = Duration::from_secs(3);
/// What the gateway may keep in memory, KiB.
const MOST_MEMORY: u64 = 600 * 1024;

/// A dollar for every other hostile key, nothing for the rest, and plenty for the good customer.
fn funds(key: u64) -> i64 {
    match key {
        0 => 1_000_000_000_000_000,
        odd if odd % 2 == 1 => 1_000_000_000_000,
        _ => 0,
    }
}

/// A crowd that is measured by itself.
struct CrowdGroup {
    name: &'static str,
    /// The first of its keys, and how many it has.
    keys: (usize, usize),
}

static GROUPS: [CrowdGroup; 3] = [
    CrowdGroup {
        name: "rich",
        keys: (1, 1),
    },
    CrowdGroup {
        name: "poor",
        keys: (2, 1),
    },
    CrowdGroup {
        name: "sixteen",
        keys: (1, 16),
    },
];

/// Measures a quiet time, and then each crowd, or only the one named `only`, for `seconds` each.
pub(crate) fn run(programs: &Programs, seconds: u64, only: Option<&str>) -> Result<(), String> {
    let groups = named(only)?;
    let folder = programs.folder.join("crowd");
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
    let (mut gateway, _) = start(&programs, &folder, &ledger, &[])?;
    let good = secrets.first().map(String::as_str).unwrap_or_default();
    let watched = WatchedGateway {
        address: gateway.address,
        good,
        process: gateway.processes.first().copied().unwrap_or(0),
    };

    progress("warming up");
    customer::ask(watched.address, good, Duration::from_secs(3));
    let quiet_time = Duration::from_secs((seconds / 3).clamp(5, 30));
    let (quiet, mut faults) = watched.measure("quiet", quiet_time, None);
    for group in groups {
        faults.extend(watched.among(group, &secrets, seconds, &quiet)?);
    }
    let peak = machine::peak(watched.process);
    if peak > MOST_MEMORY {
        faults.push(format!("{} MiB of memory", peak / 1024));
    }
    gateway.stop()?;
    programs.verify(&ledger)?;
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the good customer was not served as promised: {}",
            faults.join("; ")
        ))
    }
}

/// Every crowd, or the one of this name.
fn named(only: Option<&str>) -> Result<Vec<&'static CrowdGroup>, String> {
    let groups: Vec<&CrowdGroup> = GROUPS
        .iter()
        .filter(|group| only.is_none_or(|name| name == group.name))
        .collect();
    if groups.is_empty() {
        let names = GROUPS.each_ref().map(|group| group.name).join(", ");
        return Err(format!("no crowd has that name; there are {names}"));
    }
    Ok(groups)
}

/// The gateway that is measured, and the customer who asks it.
struct WatchedGateway<'a> {
    address: SocketAddr,
    good: &'a str,
    process: u32,
}

impl WatchedGateway<'_> {
    /// Lets a crowd come, and says what of its time breaks the promise.
    fn among(
        &self,
        group: &CrowdGroup,
        secrets: &[String],
        seconds: u64,
        quiet: &Experience,
    ) -> Result<Vec<String>, String> {
        let (first, count) = group.keys;
        let hostile = secrets.iter().skip(first).take(count).cloned().collect();
        let crowd = Crowd::start(self.address, hostile, CHURN)
            .map_err(|error| format!("the crowd: {error}"))?;
        // Thousands come at once; what that costs is a row of its own, and only p99 is not held against it.
        let (_, mut faults) = self.measure("  arriving", ARRIVING, Some(&crowd));
        let (met, more) = self.measure(group.name, Duration::from_secs(seconds), Some(&crowd));
        crowd.stop();
        faults.extend(more);
        let (crowded, alone) = (met.quantile(0.99), quiet.quantile(0.99));
        if crowded > 2.0 * alone {
            faults.push(format!("p99 {crowded:.2} ms, quiet {alone:.2} ms"));
        }
        let named = |fault| format!("{}: {fault}", group.name);
        Ok(faults.into_iter().map(named).collect())
    }

    /// Asks for this long, prints what was met, and says what of it breaks the promise.
    fn measure(
        &self,
        name: &str,
        time: Duration,
        crowd: Option<&Crowd>,
    ) -> (Experience, Vec<String>) {
        progress(name.trim());
        let cpu = || machine::MachineSample::take(&[self.process], std::process::id());
        let opened = || crowd.map_or(0, Crowd::opened);
        let (begun, before, opened_before) = (Instant::now(), cpu(), opened());
        let met = customer::ask(self.address, self.good, time);
        let (after, seconds) = (cpu(), begun.elapsed().as_secs_f64());
        let rate = (opened() - opened_before) as f64 / seconds;
        println!(
            "{name:<12} {:>5} asked  p50 {:>7.2}  p99 {:>7.2}  p99.9 {:>7.2}  most {:>7.2} ms  5xx {}  other failures {}  \
             {rate:>5.0} new connections/s ({} failed)  CPU {:>3.0} %  memory {} MiB, peak {}",
            met.asked,
            met.quantile(0.50),
            met.quantile(0.99),
            met.quantile(0.999),
            met.quantile(1.0),
            met.server_errors,
            met.failures.len(),
            crowd.map_or(0, Crowd::refused),
            after.cpu_since(&before).as_secs_f64() / seconds * 100.0,
            after.resident / 1024,
            machine::peak(self.process) / 1024,
        );
        let faults = failures(&met);
        (met, faults)
    }
}

/// The gateway with its ordinary log, on both CPUs, and the address of its admin listener.
fn start(
    programs: &Programs,
    folder: &Path,
    ledger: &Path,
    options: &[&str],
) -> Result<(crate::subjects::RunningSubject, SocketAddr), String> {
    let addresses = || Ok::<_, std::io::Error>((free_address()?, free_address()?));
    let (address, admin): (SocketAddr, SocketAddr) =
        addresses().map_err(|error| format!("no free port: {error}"))?;
    let mut command = programs
        .farebox(folder, ledger, address, admin)
        .map_err(|error| error.to_string())?;
    command.args(options);
    let mut gateway = spawn(command, "0-1", folder, "farebox", address)?;
    gateway.wait_until_it_answers()?;
    Ok((gateway, admin))
}

/// Requests that were not served.
fn failures(met: &Experience) -> Vec<String> {
    let mut faults = Vec::new();
    if met.server_errors > 0 {
        faults.push(format!("{} answers of 5xx", met.server_errors));
    }
    if let Some(first) = met.failures.first() {
        faults.push(format!(
            "{} other failures, the first: {first}",
            met.failures.len()
        ));
    }
    faults
}
