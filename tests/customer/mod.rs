//! The customer's side: the dashboard, balance responses and client settings.

mod appearance;
mod dashboard;
mod dialects;
mod grants;
mod made_keys;
mod open_pages;
mod owners;
mod paper;
mod plans;
mod runs;
mod seller;
pub(crate) mod sessions;
mod setup;
mod vouchers;
mod week;
mod year;
