//! How a ledger is opened: what for, how safe a change must be, and where a gateway remembers. Only the settings; `open` opens.

use std::path::PathBuf;

use crate::sqlite::{Durability, OpenMode};

/// How a ledger is opened.
#[derive(Debug, Clone)]
pub struct Opening {
    /// What for.
    pub mode: OpenMode,
    /// When a change counts as safe.
    pub durability: Durability,
    /// Whether a database may confirm commits that no standby has: for trials.
    pub allow_single: bool,
    /// The file in which a gateway remembers what a database has confirmed to it.
    pub state: Option<PathBuf>,
}

impl Opening {
    /// With prompt durability, and with standbys where the ledger is in a database.
    #[must_use]
    pub const fn new(mode: OpenMode) -> Self {
        Self { mode, durability: Durability::Prompt, allow_single: false, state: None }
    }
}
