//! A configuration that a gateway put into force. It belongs to no key and is in no chain; the database refuses to change or delete it.

use crate::{News, OperationId, Timestamp};

/// Who changed what is sold, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesAct {
    /// Of the gateway that did it. Ids ascend with time.
    pub operation: OperationId,
    /// When it came into force.
    pub at: Timestamp,
    /// The gateway's operator, and the system users who own the files.
    pub actor: String,
    /// What changed: JSON.
    pub details: String,
}

/// A configuration to note, and what it changed for all customers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteFiles {
    /// What came into force.
    pub act: FilesAct,
    /// What customers are told.
    pub news: Vec<News>,
}
