//! Values: amounts, ids, instants, texts, usage, bills. They keep their own laws and know nothing of accounts or stores.

pub mod amount;
pub mod bill;
mod bounds;
pub mod clock;
pub mod cost_source;
pub(crate) mod edit;
pub(crate) mod end_reason;
pub(crate) mod event;
pub mod files_act;
pub mod gross;
pub mod id;
pub(crate) mod lesson;
pub(crate) mod metadata;
pub mod own_cost;
mod pairs;
pub(crate) mod probe_lease;
pub(crate) mod public_url;
pub(crate) mod reference;
pub mod run;
pub mod service;
pub mod text;
pub mod tries;
pub(crate) mod usage;
pub(crate) mod utc_day;
pub(crate) mod vendor_id;
pub(crate) mod webhook;
