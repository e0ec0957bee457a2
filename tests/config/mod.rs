//! The two TOML files as an operator edits them.

mod files;
mod reload;
