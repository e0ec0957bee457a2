//! The lane of single attackers: a quiet time, the attacker, and a spinner that burns the attacker's CPU, one after the other.
//!
//! The customer is the gateway's, also where its shop is attacked. It is served as promised when nothing is refused or lost, callbacks of
//! the shop's processor included, and p99 is within twice the quiet figure, or 1.2 times that of the spinner. An attacker that cannot be
//! measured is a row that says why; the others are measured nevertheless.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::attackers::{self, Attack, Attacker};
use super::customer::{self, Experience};
use super::failures;
use super::scene::Scene;
use super::shop::{self, ToldCallbacks};
use super::spinner::Spinner;
use super::table::{self, Row, Time, Times};
use crate::machine;
use crate::progress;
use crate::subjects::Programs;

/// All attackers at once are measured for so many times the time of one.
const TOGETHER: u32 = 5;
/// The quiet time and the spinner's, as a part of the attacker's, and the most.
const BESIDE: (f64, Duration) = (0.75, Duration::from_secs(60));

/// What was met in a time, and the CPU that this process (customer, attacker, provider) used meanwhile.
struct Met {
    customer: Experience,
    told: ToldCallbacks,
    load: f64,
    others: f64,
}

impl Met {
    fn time(&self) -> Time {
        Time {
            asked: self.customer.asked,
            unserved: self.customer.server_errors
                + self.customer.failures.len()
                + self.told.faults.len(),
            p50: self.customer.quantile(0.50),
            p99: self.customer.quantile(0.99),
            others: self.others,
        }
    }
}

/// Measures each attacker for `seconds` and all together for five times as long, or only those whose names begin with `only`. The
/// table is written after each, and printed at the end.
pub(crate) fn run(programs: &Programs, seconds: u64, only: Option<&str>) -> Result<(), String> {
    let all = attackers::all();
    let named = |attacker: &&Attacker| only.is_none_or(|name| attacker.name.starts_with(name));
    let attackers: Vec<&Attacker> = all.iter().filter(named).collect();
    if attackers.is_empty() {
        let names: Vec<&str> = all.iter().map(|attacker| attacker.name.as_str()).collect();
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
        rows.push((attacker.name.clone(), met));
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
    let scene = Scene::open(programs, attacker)?;
    let good = scene
        .secrets
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    let hostile = scene.secrets.get(1..).unwrap_or_default();
    let processes = scene.processes();
    let ask = |row: &str, time| {
        let name = format!("{} {row}", attacker.name);
        asked(
            &name,
            (scene.of_gateway, scene.of_shop),
            good,
            &processes,
            time,
        )
    };
    let beside = time.mul_f64(BESIDE.0).min(BESIDE.1);

    customer::ask(scene.of_gateway, good, Duration::from_secs(3));
    let quiet = ask("quiet", beside);
    let attack = Attack::start(attacker, scene.target(), hostile)
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

    for fault in failures(&attacked.customer)
        .iter()
        .chain(attacked.told.faults.first())
    {
        println!("{:<22} {fault}", "");
    }
    scene.close()?;
    Ok(Times {
        quiet: quiet.time(),
        attacked: attacked.time(),
        spun: spun.time(),
    })
}

/// Asks for this long, and prints what was met.
fn asked(
    name: &str,
    (gateway, shop): (SocketAddr, Option<SocketAddr>),
    good: &str,
    processes: &[u32],
    time: Duration,
) -> Met {
    progress(name);
    // The provider is a part of this process.
    let sample = || machine::MachineSample::take(processes, 0);
    let (begun, before) = (Instant::now(), sample());
    let (customer, told) = std::thread::scope(|scope| {
        let telling = shop.map(|shop| scope.spawn(move || shop::tell(shop, time)));
        let customer = customer::ask(gateway, good, time);
        let told = telling.and_then(|telling| telling.join().ok());
        (customer, told.unwrap_or_default())
    });
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
    if shop.is_some() {
        let (sent, faults, slowest) = (told.sent, told.faults.len(), told.slowest);
        println!(
            "{:<22} {sent:>5} callbacks, {faults} not acknowledged, the slowest after {slowest:.1?}",
            ""
        );
    }
    Met {
        customer,
        told,
        load,
        others,
    }
}
