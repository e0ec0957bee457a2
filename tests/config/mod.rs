//! The two TOML files as an operator edits them.

mod defaults;
mod files;
mod plans;
mod price_lists;
mod reload;
