//! Black-box tests: the real gateway over real sockets, in front of scripted upstreams. One binary, one folder per subject.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step is a failed test"
)]

mod config;
mod customer;
mod hostile;
mod http;
mod interface;
mod money;
mod process;
mod selling;
mod support;
mod trouble;
