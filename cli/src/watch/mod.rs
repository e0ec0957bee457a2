//! Commands that look: at the gateway at work, at its events, and at anything by its name.

pub(crate) mod events;
pub(crate) mod find;
pub(crate) mod health;
pub(crate) mod status;
pub(crate) mod targets;
