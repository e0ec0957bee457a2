//! The books: entries and administrative acts, their hash chains and anchors, and the pages and documents made of them.

pub mod anchor;
pub mod audit;
pub(crate) mod chain;
pub mod credit;
pub mod csv;
pub mod document;
pub mod entry;
pub(crate) mod head;
pub mod margin;
pub mod page;
pub(crate) mod payment_moved;
mod reader;
pub mod statement;
pub mod token_act;
mod told;
pub(crate) mod verify;
