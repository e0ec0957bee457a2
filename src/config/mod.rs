//! Room 1: what the operator said.
//!
//! Both TOML files are one snapshot: loaded, checked and swapped together. [`load`] gives a [`Config`] or every mistake at
//! once; a request takes [`ConfigHandle::current`] once and keeps that snapshot to its end.

pub mod catalog;
pub mod diagnostic;
pub mod routes;

use std::sync::Arc;

use arc_swap::ArcSwap;

pub use catalog::{Capability, Catalog, Limits, Lookup, Model, Price, Rates, Retired};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use routes::{BreakerPolicy, ChatLimit, Endpoint, OnDisconnect, Provider, ProviderSecret, Route, Target, Timeouts};

/// One checked snapshot of both files.
#[derive(Debug)]
pub struct Config {
    /// What is sold.
    pub catalog: Catalog,
    /// Providers by name, in the order of the file.
    pub providers: Vec<Arc<Provider>>,
    /// Counts the snapshots of this process, from 1.
    pub generation: u64,
}

/// The snapshot in force. Only a clean load replaces it.
#[derive(Debug)]
pub struct ConfigHandle(ArcSwap<Config>);

impl ConfigHandle {
    /// Starts with a first snapshot.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self(ArcSwap::from_pointee(config))
    }

    /// The snapshot in force now. Call it once for each request.
    #[must_use]
    pub fn current(&self) -> Arc<Config> {
        self.0.load_full()
    }

    /// Puts a new snapshot in force; requests that hold the old one keep it.
    pub fn replace(&self, config: Config) {
        self.0.store(Arc::new(config));
    }
}
