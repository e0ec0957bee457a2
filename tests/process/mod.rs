//! The programs as processes: commands, the admin listener, signals, TLS and logs.

mod admin;
mod cli;
mod identity;
mod operations;
mod serving;
