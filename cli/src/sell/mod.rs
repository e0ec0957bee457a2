//! Commands of whoever sells: customers, keys, payments, caps, vouchers, tokens, and papers about them.

pub(crate) mod acts;
pub(crate) mod bulk;
pub(crate) mod bulk_customers;
pub(crate) mod bulk_keys;
pub(crate) mod caps;
pub(crate) mod customers;
pub(crate) mod grants;
pub(crate) mod keys;
pub(crate) mod manage;
pub(crate) mod paper;
pub(crate) mod payments;
pub(crate) mod plans;
pub(crate) mod show;
pub(crate) mod tokens;
pub(crate) mod vouchers;
