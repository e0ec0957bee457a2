//! Black-box tests: the real gateway over real sockets, in front of scripted upstreams. One binary, one file for each subject.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod admin;
mod auth;
mod bad_input;
mod balance;
mod billing;
mod blame;
mod bought;
mod chat;
mod cli;
mod crash;
mod customer;
mod dashboard;
mod dialects;
mod failover;
mod files;
mod lies;
mod messages;
mod models;
mod operations;
mod prices;
mod races;
mod refusals;
mod reload;
mod replay;
mod responses;
mod routes;
mod serving;
mod setup;
mod storage;
mod streaming;
mod support;
