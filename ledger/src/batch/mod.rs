//! The one transaction: operations as data, what they need, and what they do to the rows of a store.

pub(crate) mod apply;
pub(crate) mod batching;
pub mod operation;
pub(crate) mod tx;
