//! Translation between families. Tests that begin with `b` and a number each hold against one known fault of other gateways.
//!
//! Numbers without a whole test, and why: 34 (strip a vendor's seals and ask again) and 39 (two signed blocks given back), because no
//! seal is restored, so translated requests never carry one; of 38, giving the seal back next turn, for the same reason.

#![expect(clippy::expect_used, reason = "a helper that cannot go on fails the test")]

mod ends;
mod freeform;
mod from_responses;
mod help;
mod judge;
mod laws;
mod made;
mod matrix;
mod media;
mod params;
mod prefix;
mod reasoning;
mod recorded;
mod schemas;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod to_messages;
mod to_responses;
mod tools;
