//! The customer's side: balance dialects, usage and receipts for programs, and the dashboard for people.
//!
//! Reads accounts and never changes one; what it writes are sessions. One statement of the account stands behind every
//! dialect and page. No prompt, no answer and no secret is stored or shown here.

mod desk;
mod dialects;
mod exact;
mod receipt;
mod refusals;
mod usage;

pub use desk::{Desk, Document, Read};
pub use dialects::{DIALECTS, Dialect};
pub use refusals::Watch;
