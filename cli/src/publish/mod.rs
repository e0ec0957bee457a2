//! Commands of whoever publishes models: files written, compared and checked, and what clients are set up with.

pub(crate) mod add;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod init;
pub(crate) mod library;
pub(crate) mod models;
pub(crate) mod online;
pub(crate) mod setup;
