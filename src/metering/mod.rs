//! Counting. Pure: no async, no I/O, no clock of its own.
//!
//! - [`estimate`]: the size of a request before a provider has counted it.
//! - `factors`: how other vendors' tokenizers cut scripts.
//! - [`lifetime`]: how long cache writes live.
//! - [`local`]: our own counts, where the provider's are missing.
//! - [`pdf`]: what the pages of a document may cost.
//! - [`bound`]: what to hold for it, and which output limit makes that so.
//! - [`prefixes`]: what a provider has cached of a prompt.
//! - [`price`]: counted usage times the prices of one model, as exact lines.
//! - [`rates`]: how fast a target is and how it counts, out of what its answers have taught.
//! - `counts`: counts as protocols have them, and as the ledger has them.
//! - `overrun`: what is charged of an answer that was allowed to be longer than declared.
//! - [`meter`]: the running count of one answer, and the only place that decides what is charged at its end.

#![cfg_attr(
    not(test),
    deny(
        clippy::float_arithmetic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

pub mod bound;
mod counts;
pub mod estimate;
mod factors;
pub mod lifetime;
pub mod local;
pub mod meter;
mod overrun;
pub mod pdf;
pub mod prefixes;
pub mod price;
pub mod rates;
mod tokenizer;

pub use bound::{Ask, Shortfall, Terms};
pub use counts::reported;
pub use estimate::Estimate;
pub use factors::TextCounter;
pub use lifetime::{LEAST_CACHED, Lifetimes};
pub use meter::{ClassTrouble, Counted, Ending, Local, Meter, Miscount};
