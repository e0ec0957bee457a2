//! Reading the two files: from text to the checked parts of a snapshot.
//!
//! Every reader records what is wrong and continues, so that one pass shows every mistake.

mod abilities;
mod below_cost;
mod bounds;
mod calls;
pub(crate) mod catalog;
pub(crate) mod classes;
mod defaults;
mod keys;
pub(crate) mod list_price;
mod markup;
mod names;
mod plan;
pub(crate) mod price;
pub(crate) mod price_list;
mod provider;
pub(crate) mod rates;
mod request_fields;
pub(crate) mod routes;
pub(crate) mod service;
mod shop;
mod slips;
pub(crate) mod webhooks;
