//! Findings about the two files: their codes, how they are collected, redacted and shown.

pub(crate) mod code;
pub(crate) mod diagnostic;
pub(crate) mod redact;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod suggest;
