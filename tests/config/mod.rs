//! The two TOML files as an operator edits them.

mod files;
mod plans;
mod price_lists;
mod reload;
