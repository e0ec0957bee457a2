//! The programs as processes: commands, the admin listener, signals, TLS and logs.

mod acts;
mod admin;
pub(crate) mod alerts;
pub(crate) mod bad_days;
mod bad_fleets;
mod bad_machines;
mod caps;
pub(crate) mod cli;
mod customers;
mod drill;
mod everyday;
mod first_hour;
mod fleet_guide;
mod identity;
mod limits;
mod log;
mod long_history;
mod mistakes;
mod online;
mod operations;
mod outward;
mod packages;
mod planted;
mod proxies;
mod serving;
mod shop_window;
mod show;
