//! Described tables: what a row is, said once, for both databases, for copies and for the rows of a batch.

pub(crate) mod columns;
pub(crate) mod description;
pub(crate) mod grants;
pub(crate) mod list;
pub(crate) mod needs;
pub(crate) mod owners;
pub(crate) mod plans;
pub(crate) mod rows;
