//! A hostile crowd against a gateway on loopback, while one good customer keeps asking: what the customer notices.
//!
//! It measures and reports; it does not touch the gateway's files beyond a ledger of its own. Everything is bounded: seconds,
//! connections and requests in flight. The latency of the crowd is compared with that of a quiet time in the same run.

mod customer;
mod hostile;
mod liar;

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

/// Measures a quiet time, then the crowd with one key and with sixteen, each for half of `seconds`.
pub(crate) fn run(programs: &Programs, seconds: u64) -> Result<(), String> {
    let folder = programs.folder.join("crowd");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let ledger = folder.join("farebox.db");
    books::make_with(&ledger, KEYS, funds)?;
    let secrets = books::secrets(KEYS);
    let upstream = liar::start().map_err(|error| format!("the upstream: {error}"))?;
    let programs = Programs { upstream, ..programs.clone() };
    let mut gateway = start(&programs, &folder, &ledger)?;
    let address = gateway.address;
    let good = secrets.first().map(String::as_str).unwrap_or_default();
    let process = gateway.processes.first().copied().unwrap_or(0);

    progress("warming up");
    customer::ask(address, good, Duration::from_secs(3));
    progress("quiet");
    let quiet = customer::ask(address, good, Duration::from_secs((seconds / 3).clamp(5, 30)));
    println!("{}", row("quiet", &quiet, 0.0, machine::peak(process)));
    let mut faults = failures(&quiet);
    for (name, keys) in [("crowd, 1 key", 1), ("crowd, 16 keys", 16)] {
        progress(name);
        let hostile = secrets.iter().skip(1).take(keys).cloned().collect();
        let begun = Instant::now();
        let crowd = Crowd::start(address, hostile, CHURN).map_err(|error| format!("the crowd: {error}"))?;
        // Thousands come at once; what that costs is a row of its own, and only p99 is not held against it.
        let arriving = customer::ask(address, good, ARRIVING);
        println!(
            "{}",
            row("  arriving", &arriving, crowd.opened() as f64 / begun.elapsed().as_secs_f64(), machine::peak(process))
        );
        let (begun, before) = (Instant::now(), crowd.opened());
        let met = customer::ask(address, good, Duration::from_secs((seconds / 2).max(1)));
        let rate = (crowd.opened() - before) as f64 / begun.elapsed().as_secs_f64();
        println!("{}   ({} could not connect)", row(name, &met, rate, machine::peak(process)), crowd.refused());
        crowd.stop();
        faults.extend(failures(&arriving));
        faults.extend(failures(&met));
        if met.quantile(0.99) > 2.0 * quiet.quantile(0.99) {
            faults.push(format!("{name}: p99 {:.2} ms, quiet {:.2} ms", met.quantile(0.99), quiet.quantile(0.99)));
        }
    }
    if machine::peak(process) > MOST_MEMORY {
        faults.push(format!("{} MiB of memory", machine::peak(process) / 1024));
    }
    gateway.stop()?;
    programs.verify(&ledger)?;
    if faults.is_empty() { Ok(()) } else { Err(format!("the good customer was not served as promised: {}", faults.join("; "))) }
}

/// The gateway with its ordinary log, on both CPUs.
fn start(programs: &Programs, folder: &Path, ledger: &Path) -> Result<crate::subjects::Running, String> {
    let addresses = || Ok::<_, std::io::Error>((free_address()?, free_address()?));
    let (address, admin): (SocketAddr, SocketAddr) = addresses().map_err(|error| format!("no free port: {error}"))?;
    let command = programs.farebox(folder, ledger, address, admin).map_err(|error| error.to_string())?;
    let mut gateway = spawn(command, "0-1", folder, "farebox", address)?;
    gateway.wait_until_it_answers()?;
    Ok(gateway)
}

/// What was measured in one time, as a line.
fn row(name: &str, met: &Experience, rate: f64, peak: u64) -> String {
    format!(
        "{name:<16} {:>5} asked  p50 {:>8.2} ms  p99 {:>8.2} ms  5xx {}  other failures {}  {rate:>6.0} new connections/s  peak {} MiB",
        met.asked,
        met.quantile(0.50),
        met.quantile(0.99),
        met.server_errors,
        met.failures.len(),
        peak / 1024
    )
}

/// Requests that were not served.
fn failures(met: &Experience) -> Vec<String> {
    let mut faults = Vec::new();
    if met.server_errors > 0 {
        faults.push(format!("{} answers of 5xx", met.server_errors));
    }
    if let Some(first) = met.failures.first() {
        faults.push(format!("{} other failures, the first: {first}", met.failures.len()));
    }
    faults
}
