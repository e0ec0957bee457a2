//! The rules of the house, as tests on parsed code. Each failure names the rule, the place and what to do instead.
//!
//! `facts.rs` collects the names in a file, `house.rs` resolves them, `rooms.rs` lists who may import whom, `rules.rs` and
//! `circles.rs` check code, `names.rs` the names of types, `pages.rs` documents; `planted.rs` breaks each rule once and expects it to be found.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a house that cannot be read is a failed test"
)]

mod borders;
mod circles;
mod facts;
mod house;
mod named;
mod names;
mod open;
mod pages;
mod planted;
mod programs;
mod rooms;
mod rules;
mod spread;

use house::House;
use pages::report;

#[test]
fn rooms_import_only_what_they_may() {
    report(&rules::walls(House::load()));
}

#[test]
fn only_the_protocol_crate_tells_families_apart() {
    report(&rules::families(House::load()));
}

#[test]
fn operations_are_told_apart_where_they_are_listed() {
    report(&rules::operations(House::load()));
}

#[test]
fn vendors_are_data() {
    report(&rules::vendors(House::load()));
}

#[test]
fn clocks_environment_tasks_and_clients_have_their_places() {
    report(&rules::bans(House::load()));
}

#[test]
fn sql_stands_in_the_ledgers_stores() {
    report(&rules::sql(House::load()));
}

#[test]
fn functions_stay_small() {
    report(&rules::functions(House::load()));
}

#[test]
fn files_of_a_folder_name_each_other_in_one_direction() {
    report(&circles::circles(House::load()));
}
