//! The customer's side: the dashboard, balance responses and client settings.

mod dashboard;
mod dialects;
pub(crate) mod sessions;
mod setup;
