//! The fleet guide: the commands of its first section, exactly as printed, set up a fleet, lose its parts and restore it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;

use crate::support::cluster::{NOBODY, ordinary, programs};
use crate::support::skip::skip;

/// The shell's part of the section.
fn commands() -> String {
    let guide = include_str!("../../docs/FLEET.md");
    let section = guide
        .split("## Try it on one machine")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .unwrap();
    section
        .split("```sh\n")
        .skip(1)
        .map(|part| part.split("```").next().unwrap())
        .collect()
}

/// The first machine loses its power: nothing answers at its address any more, also not with a refusal, and nothing shuts it down.
/// Everything else is as printed.
fn with_a_power_cut(commands: &str) -> String {
    let stop = "pg_ctl -D a -m immediate stop\npg_ctl -D b promote\n";
    assert!(commands.contains(stop), "the guide has its words for it");
    // It goes when the gateways have found the other one, so that its address can be used again.
    let cut = "machine=\"$(head -1 a/postmaster.pid) $(pgrep -P $(head -1 a/postmaster.pid) | tr '\\n' ' ')\"\nkill -STOP $machine\n\
         pg_ctl -D b promote\n\
         until curl -sf http://127.0.0.11:9090/status | grep -q 'does not answer'; do sleep 0.2; done\n\
         until curl -sf http://127.0.0.11:9090/status | grep -q 'primary on timeline 2'; do sleep 0.2; done\n\
         kill -9 $machine\nsleep 1\n";
    commands.replace(stop, cut)
}

#[test]
fn the_guide_makes_a_fleet_from_nothing() {
    follow(&commands(), 0);
}

#[test]
fn the_guide_survives_a_power_cut_of_the_first_machine() {
    follow(&with_a_power_cut(&commands()), 1);
}

/// Runs the commands in an empty folder, at addresses of their own.
fn follow(commands: &str, number: u32) {
    if programs().is_none() || !Path::new("/usr/bin/caddy").exists() {
        return skip("the fleet's guide: PostgreSQL or Caddy is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    // Separate addresses, so that nothing else on this machine interferes.
    let net = format!(
        "127.{}.{}.",
        20 + (std::process::id() + number) % 200,
        1 + std::process::id() / 200 % 250
    );
    // Whatever it started ends with it.
    let tidy = "trap 'for file in gateway-*.pid caddy.pid; do [ -e $file ] && kill $(cat $file) 2> /dev/null; done; \
         for server in a b restored; do [ -e $server ] && pg_ctl -D $server -m immediate stop; done' EXIT\n";
    let script = format!(
        "set -euo pipefail\n{tidy}set -x\n{}trap - EXIT\necho the end",
        commands.replace("127.0.0.", &net)
    );
    let binary = Path::new(env!("CARGO_BIN_EXE_farebox")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin:/usr/sbin", binary.display());
    // It takes half a minute; a gateway that starts where it has to refuse would keep it for ever.
    let mut shell = ordinary(Path::new("/usr/bin/timeout"));
    shell
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder.path())
        .env("LC_ALL", "C")
        .current_dir(folder.path());
    let output = fs::File::create(folder.path().join("output")).unwrap();
    let errors = output.try_clone().unwrap();
    // Into a file: a server that stayed behind would keep a pipe open.
    let status = shell
        .args(["600", "/bin/bash", "-c", &script])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()
        .unwrap();
    let said = fs::read_to_string(folder.path().join("output")).unwrap();
    assert!(
        status.success() && said.trim_end().ends_with("the end"),
        "{said}"
    );
    for expected in [
        "the books are sound",
        "has gone back in time",
        "was confirmed and is not there",
        "accepted; generation 2 begins",
        "generation 2 began",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
