//! The customer's side: balance responses, usage and receipts for programs, and the dashboard for people.
//!
//! Reads accounts; it writes sessions, what an owner decides about keys and caps, and the vouchers that are redeemed, which is all the
//! money that it moves. Every response shape and page is built from the same statement of the account. No prompt, no answer and no secret is stored or shown here.

mod activity;
mod actor;
mod assets;
mod constant;
mod context;
mod dashboard;
mod decimal_json;
mod dialects;
mod export;
mod guesses;
mod guest;
mod holdings;
mod live;
mod made_document;
mod made_keys;
mod made_request;
mod newest;
mod owner;
mod page;
mod paper;
mod receipt;
mod recent;
mod redeem;
mod runs;
mod session;
mod share;
mod sources;
mod usage;
mod views;

pub use activity::Activity;
pub use assets::{SCRIPT, STYLE};
pub use constant::ConstantDocument;
pub use context::{Context, ProgramAnswer, ProgramQuery};
pub use dashboard::{Dashboard, PostedForm, Room};
pub use dialects::{DIALECTS, Dialect};
pub use export::{Export, ExportFormat};
pub use guest::Guest;
pub use made_keys::{KeyMaker, KeyPage, MadeAnswer, MadeCall};
pub use owner::OwnerForm;
pub use page::DashboardView;
pub use redeem::NotRedeemed;
pub use session::new_token;
