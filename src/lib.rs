//! Farebox: a prepaid gateway to language models.
pub mod config;
pub mod upstream;
