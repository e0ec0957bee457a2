//! The benchmark: its command line, and the order of a run. `bench/run` builds everything and starts it on its CPU.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench is a program for its developers"
)]

mod answers;
mod bare;
mod bodies;
mod books;
mod calls;
mod crowd;
mod generator;
mod lanes;
mod machine;
mod poll;
mod report;
mod rounds;
mod subjects;
mod upstream;
mod wire;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use lanes::LoadLane;
use rounds::Bench;
use subjects::Programs;

const USAGE: &str =
    "bench/run [--quick] [--big-ledger FILE] [small|long|calls|rate|100k|answer|1m|batch|sse|open|cold …]
       farebox-bench crowd [--seconds N] [--only rich|poor|sixteen]
       farebox-bench attackers [--seconds N] [--only BEGINNING]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match words.as_slice() {
        ["upstream", address] => address_of(address).and_then(upstream::run),
        ["bare", address, upstream] => {
            address_of(address).and_then(|address| bare::run(address, address_of(upstream)?))
        }
        ["crowd"] => hostile_crowd("60", None),
        ["crowd", "--seconds", seconds] => hostile_crowd(seconds, None),
        ["crowd", "--seconds", seconds, "--only", name] => hostile_crowd(seconds, Some(name)),
        ["attackers"] => attackers("60", None),
        ["attackers", "--seconds", seconds] => attackers(seconds, None),
        ["attackers", "--seconds", seconds, "--only", name] => attackers(seconds, Some(name)),
        words => bench(words),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn address_of(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not an address"))
}

/// Says how far it is.
fn progress(line: &str) {
    eprintln!("{line}");
}

fn hostile_crowd(seconds: &str, only: Option<&str>) -> Result<(), String> {
    crowd::run(&programs(), seconds.parse().map_err(|_| USAGE)?, only)
}

fn attackers(seconds: &str, only: Option<&str>) -> Result<(), String> {
    crowd::attackers(&programs(), seconds.parse().map_err(|_| USAGE)?, only)
}

fn programs() -> Programs {
    let folder = program("BENCH_FOLDER", "target/bench");
    Programs {
        nginx: program("NGINX", "/usr/sbin/nginx"),
        onwards: optional("ONWARDS"),
        farebox: program("FAREBOX", "target/dist/farebox"),
        profiled: optional("FAREBOX_PROFILED"),
        upstream: SocketAddr::from(([127, 0, 0, 1], 0)),
        ledger: folder.join("ledger.db"),
        folder,
    }
}

fn bench(words: &[&str]) -> Result<(), String> {
    let folder = program("BENCH_FOLDER", "target/bench");
    let (mut quick, mut big_ledger, mut lanes) = (false, folder.join("big.db"), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => quick = true,
            "--big-ledger" => big_ledger = words.next().map(PathBuf::from).ok_or(USAGE)?,
            name => lanes.push(
                LoadLane::ALL
                    .into_iter()
                    .find(|lane| lane.name() == name)
                    .ok_or(USAGE)?,
            ),
        }
    }
    if lanes.is_empty() {
        lanes.extend(LoadLane::ALL);
    }
    poll::exact_timers().map_err(|error| error.to_string())?;
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let programs = programs();
    let versions = versions(&programs);
    let mut bench = Bench::new(programs, quick, big_ledger)?;
    for lane in lanes {
        // What was measured before is still worth reading.
        if let Err(fault) = bench.lane(lane) {
            bench.void.push(fault);
            break;
        }
    }
    let report = report::markdown(&bench, &versions);
    println!("{report}");
    let file = folder.join("results.md");
    std::fs::write(&file, report).map_err(|error| format!("{}: {error}", file.display()))?;
    progress(&format!("written to {}", file.display()));
    if bench.void.is_empty() {
        Ok(())
    } else {
        Err(format!("VOID: {}", bench.void.join("\n      ")))
    }
}

fn program(variable: &str, default: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| default.into(), PathBuf::from)
}

fn optional(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// What each subject is, exactly.
fn versions(programs: &Programs) -> Vec<String> {
    let says = |program: &Path, argument: &str| {
        let output = Command::new(program)
            .arg(argument)
            .env("RUST_LOG", "warn")
            .output();
        let text = output
            .map(|output| [output.stdout, output.stderr].concat())
            .unwrap_or_default();
        String::from_utf8_lossy(&text)
            .lines()
            .next_back()
            .unwrap_or("not installed")
            .to_owned()
    };
    let locked = |name: &str| {
        let entry = include_str!("../../Cargo.lock")
            .split(&format!("name = \"{name}\"\nversion = \""))
            .nth(1);
        entry
            .and_then(|rest| rest.split('"').next())
            .unwrap_or("?")
            .to_owned()
    };
    let onwards = programs.onwards.as_ref().map_or_else(
        || "onwards: not installed".to_owned(),
        |path| says(path, "--version"),
    );
    vec![
        says(&programs.nginx, "-v"),
        format!(
            "bare: salvo {}, reqwest {}",
            locked("salvo"),
            locked("reqwest")
        ),
        onwards,
        format!(
            "{}, {}",
            says(&programs.farebox, "--version"),
            std::env::var("BENCH_COMMIT").unwrap_or_default()
        ),
    ]
}
