//! Described tables: what a row is, said once, for both databases, for copies and for the rows of a batch.

pub(crate) mod columns;
pub(crate) mod described;
pub(crate) mod list;
pub(crate) mod named;
pub(crate) mod owned;
pub(crate) mod rows;
