//! The one transaction: operations as data, what they need, and what they do to rows in memory.

mod apply;
pub(crate) mod asker;
pub(crate) mod batching;
pub(crate) mod changes;
pub(crate) mod needs;
pub mod operation;
pub(crate) mod outcome;
mod row;
pub(crate) mod rows;
