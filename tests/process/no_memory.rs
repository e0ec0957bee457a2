//! A system that refuses memory ends the gateway with one line that says so.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::process::{Served, client, funded_key};

const PATIENCE: Duration = Duration::from_secs(60);

/// The address space of a process in bytes.
fn address_space(process: u32) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{process}/statm")).unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    pages * 4_096
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_gets_no_memory_says_so_in_one_line_and_exits_70() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(
        crate::support::process::farebox(folder, &["init"])
            .status()
            .unwrap()
            .success()
    );
    let secret = funded_key(folder, "5");
    let secret = secret["secret"].as_str().unwrap();
    // Without this the allocator has asked for a GiB beforehand.
    let mut served = Served::start_with(folder, &[], &[("MIMALLOC_DISALLOW_ARENA_ALLOC", "1")]);
    served.ask("sim-chat", secret).await.unwrap();
    let limit = Some(address_space(served.id()) + (4 << 20));
    let process = Pid::from_raw(i32::try_from(served.id()).unwrap());
    let limit = Rlimit {
        current: limit,
        maximum: limit,
    };
    prlimit(process, Resource::As, limit).unwrap();
    let body = vec![b' '; 30 << 20];
    let asking: Vec<_> = (0..4)
        .map(|_| {
            let request = client().post(format!("{}/v1/chat/completions", served.base));
            let request = request
                .bearer_auth(secret)
                .header("content-type", "application/json");
            tokio::spawn(request.body(body.clone()).send())
        })
        .collect();
    let begun = Instant::now();
    while !served.has_ended() {
        assert!(
            begun.elapsed() < PATIENCE,
            "it still runs:\n{}",
            served.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let code = served.ended().code();
    let log = served.log();
    assert_eq!(code, Some(70), "{log}");
    let lines = log.lines().filter(|line| line.contains("refuses memory"));
    assert_eq!(lines.count(), 1, "{log}");
    assert!(
        !log.contains("panicked") && !log.contains("memory allocation of"),
        "{log}"
    );
    asking.into_iter().for_each(|one| one.abort());
}
