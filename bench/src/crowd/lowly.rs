//! Threads that give way to all others: a crowd elsewhere, and what a provider does elsewhere, would not use these CPUs.

use std::process::{Command, Stdio};

/// A runtime whose threads run when nobody else does.
pub(super) fn lowly() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().on_thread_start(|| {
        let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
        let mut command = Command::new("chrt");
        command
            .args(["--idle", "--pid", "0", &thread])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            // Without util-linux at least a lower priority.
            let _ = rustix::process::nice(19);
        }
    });
    builder
}
