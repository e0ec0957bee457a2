//! Translation between families. Tests that begin with `b` and a number each hold against one known fault of other gateways.

#![expect(clippy::expect_used, reason = "a helper that cannot go on fails the test")]

mod ends;
mod freeform;
mod help;
mod laws;
mod media;
mod params;
mod prefix;
mod reasoning;
mod streams;
mod to_messages;
mod tools;
