//! The one transaction: operations as data, what they need, and what they do to rows in memory.

pub(crate) mod answer;
pub(crate) mod apply;
pub(crate) mod batching;
pub(crate) mod changes;
pub(crate) mod needs;
pub mod operation;
mod row;
pub(crate) mod rows;
