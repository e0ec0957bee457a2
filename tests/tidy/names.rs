//! The rule about names of types: one word, one meaning.
//!
//! Two types with one name need a reason. Either they are the same part of two implementations that stand side by side (the three
//! families, the two stores), where equal names are what lets a reader compare them; or `REASONS` lists the name. Both still count
//! as namesakes, and fewer than a fifth of all types may be one. A type also says whose thing it is: some words alone say nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::House;
use crate::pages::report;

/// Folders with the same parts under the same names; within each of them a name is there once.
const PARALLELS: &[&[&str]] = &[
    &[
        "protocol/src/chat/",
        "protocol/src/messages/",
        "protocol/src/responses/",
    ],
    &["ledger/src/store/sqlite/", "ledger/src/store/postgres/"],
];

/// Other names that several types have, each with the reason in one line.
const REASONS: &[(&str, &str)] = &[];

/// Words that need another one before or behind them: whose, or of what.
const VAGUE: [&str; 6] = ["Answer", "Found", "Known", "Place", "Seen", "State"];

/// Every type's name, with the files and lines that define one.
fn types(house: &House) -> BTreeMap<&str, Vec<(&str, usize)>> {
    let mut types: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (file, facts) in &house.sources {
        for (line, name) in &facts.types {
            types.entry(name).or_default().push((file, *line));
        }
    }
    types
}

/// Whether each of these files belongs to another folder of one parallel.
fn is_parallel(places: &[(&str, usize)]) -> bool {
    PARALLELS.iter().any(|folders| {
        let of = |file: &str| folders.iter().position(|folder| file.starts_with(folder));
        let homes: Option<BTreeSet<usize>> = places.iter().map(|(file, _)| of(file)).collect();
        homes.is_some_and(|homes| homes.len() == places.len())
    })
}

/// Types that share their name without a reason, and types whose name does not say whose they are.
pub(crate) fn namesakes(house: &House) -> Vec<String> {
    let judged: BTreeSet<&str> = house.judged().map(|(file, _)| file.as_str()).collect();
    let mut faults = Vec::new();
    for (name, places) in types(house) {
        let reasoned = REASONS.iter().any(|(listed, _)| *listed == name);
        for (file, line) in places.iter().filter(|(file, _)| judged.contains(file)) {
            if VAGUE.contains(&name) {
                faults.push(format!(
                    "{file}:{line}: `{name}` of what? Name the type by its role"
                ));
            }
            if places.len() > 1 && !reasoned && !is_parallel(&places) {
                let others: Vec<&str> = places.iter().map(|(file, _)| *file).collect();
                faults.push(format!(
                    "{file}:{line}: `{name}` is the name of {} types ({}): rename one by its role, or give the reason in \
                     tests/tidy/names.rs",
                    places.len(),
                    others.join(", ")
                ));
            }
        }
    }
    faults
}

#[test]
fn one_name_means_one_type() {
    report(&namesakes(House::load()));
}

#[test]
fn fewer_than_a_fifth_of_the_types_have_a_namesake() {
    let types = types(House::load());
    let all: usize = types.values().map(Vec::len).sum();
    let shared: Vec<(&&str, usize)> = types
        .iter()
        .map(|(name, places)| (name, places.len()))
        .filter(|(_, count)| *count > 1)
        .collect();
    let sharing: usize = shared.iter().map(|(_, count)| count).sum();
    assert!(all > 500, "only {all} types were found");
    assert!(sharing * 5 < all, "{sharing} of {all} types: {shared:?}");
    for (name, _) in REASONS {
        assert!(
            shared.iter().any(|(listed, _)| *listed == name),
            "`{name}` has no namesake any more: take it off the list"
        );
    }
}

#[test]
fn only_different_folders_are_parallel() {
    let parallel = |files: &[&str]| is_parallel(&files.iter().map(|f| (*f, 1)).collect::<Vec<_>>());
    assert!(parallel(&[
        "protocol/src/chat/reader.rs",
        "protocol/src/messages/reader.rs"
    ]));
    for files in [
        ["protocol/src/chat/reader.rs", "protocol/src/chat/calls.rs"],
        ["protocol/src/chat/reader.rs", "protocol/src/lib.rs"],
        [
            "protocol/src/chat/reader.rs",
            "ledger/src/store/sqlite/mod.rs",
        ],
    ] {
        assert!(!parallel(&files), "{files:?}");
    }
}
