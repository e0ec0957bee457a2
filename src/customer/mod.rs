//! The customer's side: balance dialects, usage and receipts for programs, and the dashboard for people.
//!
//! Reads accounts and never changes one; what it writes are sessions. One statement of the account stands behind every
//! dialect and page. No prompt, no answer and no secret is stored or shown here.

mod assets;
mod desk;
mod dialects;
mod door;
mod exact;
mod export;
mod live;
mod page;
mod receipt;
mod refusals;
mod session;
mod usage;
mod views;

pub use assets::{SCRIPT, STYLE};
pub use desk::{Desk, Document, Read};
pub use dialects::{DIALECTS, Dialect};
pub use door::{Act, Door, Room};
pub use export::{Export, Form};
pub use page::View;
pub use refusals::Watch;
pub use session::new_token;
