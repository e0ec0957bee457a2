//! Translation between families. Tests that begin with `b` and a number each hold against one known fault of other gateways.
//!
//! Numbers without a test: 39 and the second half of 38 want seals restored, which never happens yet; 34 and 40 concern seals of the
//! caller's own family, whose bytes pass untouched; 50 is about JSON by a hidden tool, which is refused instead.

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
