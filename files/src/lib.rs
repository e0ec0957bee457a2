//! Reads TOML files that people write: what stands in them is one table of keys, and every mistake is reported at once, with its
//! place, what to write instead, and secrets hidden.
//!
//! [`KEYS`] is the table; [`syntax`] parses a text although it has mistakes; [`Fields`] reads one table of it, and collects what is
//! wrong in a [`Report`], whose [`Diagnostics`] are shown, logged and served. Nothing here knows what a value means.

mod code;
mod diagnostic;
mod fields;
mod hidden_text;
mod keys;
#[cfg(test)]
mod page;
pub mod redact;
mod render;
mod report;
pub mod secrets;
pub mod source;
mod suggest;
pub mod syntax;

pub use code::Code;
pub use diagnostic::{Diagnostic, Diagnostics, FilePlace, Severity, SeverityCounts};
pub use fields::{Entry, Fields, listed, shorten};
pub use hidden_text::HiddenText;
pub use keys::{ConfigKey, ConfigTable, ConfigTables, KEYS};
pub use render::Paint;
pub use report::{ConfigFile, Finding, Placed, Report, Span};
pub use secrets::{ProcessSecrets, SecretReader, Secrets};
pub use source::{Source, Unreadable};
pub use suggest::{did_you_mean, nearest_models};
