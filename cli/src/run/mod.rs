//! Commands that run the gateway: for customers, or as a demo.

pub(crate) mod demo;
pub mod demo_shop;
pub(crate) mod serve;
