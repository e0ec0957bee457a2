//! Farebox: a prepaid gateway to language models.
//!
//! The house has nine rooms; every line of code lives in one of them, and arrows point one way:
//! `server → proxy → {upstream, metering, ledger} → {config, protocol}`.
//!
//! - [`config`]: what the operator said. Both TOML files, checked, as one snapshot.
//! - [`server`]: the front door. Every path on one page; the only room that knows salvo.
//! - [`customer`]: the customer's side: balance dialects, usage, receipts, the dashboard.
//! - [`setup`]: ready settings for client programs, one table.
//! - [`proxy`]: the spine. [`proxy::Proxy::run`] is the story of a request; money is held in `proxy/admit.rs` and settled in
//!   `proxy/job.rs`, and nowhere else.
//! - [`upstream`]: calling out. Targets in order, breakers, pools; the only room that knows reqwest.
//! - [`metering`]: counting. Estimate, terms, prices, the meter; pure.
//! - `farebox-protocol`: the three wire families, as bytes; pure.
//! - `farebox-ledger`: money and keys; the one crate that can change a balance.
//! - `farebox-console` (in `tui/`): the admin's console; opens the ledger itself.
//!
//! [`app`] puts them together, [`cli`] is what can be typed, [`telemetry`] what operators see, [`clock`] the only
//! clock, [`alarm`] a timer for streams.
//!
//! `docs/ARCHITECTURE.md` walks a request through the rooms.

pub mod alarm;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod customer;
pub mod metering;
pub mod proxy;
pub mod server;
pub mod setup;
pub mod telemetry;
pub mod upstream;
