//! Black-box tests: the real gateway over real sockets, in front of scripted upstreams. One binary, one file for each subject.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod auth;
mod balance;
mod chat;
mod cli;
mod dialects;
mod models;
mod operations;
mod streaming;
mod support;
