//! What the operator should know now: alerts begin and end here, and nowhere else.
//!
//! Somebody who can see the whole gateway looks twice a second and tells the [`Board`] everything that stands. The board compares,
//! and writes one line at the beginning of an alert and one at its end, however many requests it costs.

mod board;
mod kinds;

pub use board::{Alert, AlertNews, Board, StandingAlert};
pub use kinds::*;
