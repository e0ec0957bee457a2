//! The rules: what an account, a customer, a key and its limits allow. Pure: no clock, no ids, no store.

pub mod account;
mod act;
pub(crate) mod answer;
pub mod auto_top_up;
pub mod cap;
pub mod customer;
pub(crate) mod defaults;
pub mod grant;
pub mod hold;
pub mod key;
pub(crate) mod limit;
pub(crate) mod link;
pub mod made;
pub mod payment;
pub mod plan;
pub(crate) mod purse;
pub mod reservation;
pub(crate) mod secret;
pub(crate) mod settings;
pub mod token;
pub mod token_day;
pub mod voucher;
pub(crate) mod watch;

pub use act::Act;
