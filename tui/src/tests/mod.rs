//! Tests of the console without a terminal: state, screens, and any keys at any size.

mod acts;
mod bench;
mod bulk;
mod customers;
mod fixture;
mod forms;
mod laws;
mod lists;
mod mouse;
mod picture;
mod screens;
mod shortened;
