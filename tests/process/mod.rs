//! The programs as processes: commands, the admin listener, signals, TLS and logs.

mod admin;
mod alerts;
mod cli;
mod first_hour;
mod identity;
mod limits;
mod log;
mod operations;
mod proxies;
mod serving;
