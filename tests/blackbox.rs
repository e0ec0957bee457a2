//! Black-box tests: the real gateway over real sockets, in front of scripted upstreams. One binary, one file for each subject.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod admin;
mod auth;
mod balance;
mod chat;
mod cli;
mod customer;
mod dashboard;
mod dialects;
mod failover;
mod files;
mod messages;
mod models;
mod prices;
mod reload;
mod responses;
mod serving;
mod streaming;
mod support;
