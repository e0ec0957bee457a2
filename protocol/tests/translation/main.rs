//! Translation between families. Tests whose names begin with `b` and a number each guard against one known fault of other
//! gateways; `faults` has the list of numbers, and says which have no test, and why.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

mod asked;
mod cells;
mod client_tools;
mod ends;
mod faults;
mod freeform;
mod from_responses;
mod help;
mod histories;
mod items;
mod judge;
mod laws;
mod lost;
mod made;
mod marks;
mod matrix;
mod media;
mod params;
mod passed_on;
mod prefix;
mod reasoning;
mod recorded;
mod schemas;
mod stops;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod to_messages;
mod to_responses;
mod tools;
mod unfold;
