//! What a test does if the machine lacks something it needs: it fails, unless `FAREBOX_ALLOW_SKIP` is set.
//!
//! A permitted skip is recorded in `target/tmp/skipped`, which `./test` prints at the end.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Ends the run of a test that cannot say anything here. The caller returns right after it.
pub(crate) fn skip(what: &str) {
    assert!(
        std::env::var_os("FAREBOX_ALLOW_SKIP").is_some(),
        "not tested: {what}. ./test --install installs programs; FAREBOX_ALLOW_SKIP=1 allows the skip and lists it"
    );
    list(what);
}

/// Lists what a test leaves out on purpose, because `./test --install` does not bring what it needs. The caller returns.
pub(crate) fn list(what: &str) {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .expect("the list of what was skipped");
    writeln!(file, "{what}").expect("the list of what was skipped can be written");
}

/// Whether a program is installed. Without it the caller returns, and `what` is listed as not tested.
pub(crate) fn installed(program: &str, what: &str) -> bool {
    let mut command = Command::new(program);
    let quiet = command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let found = quiet.status().is_ok();
    if !found {
        skip(&format!("{what}: {program} is not installed"));
    }
    found
}
