//! The shop as a process, before a processor that answers as Stripe does and a gateway that keeps its books in memory.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step is a failed test"
)]

mod again;
mod buyers;
mod callbacks;
mod door;
mod file;
mod judged;
mod kills;
mod plans;
mod preflight;
mod real;
mod reserving;
mod steps;
mod support;
mod test_cards;
