//! The rule about how far a fact spreads: a noun that is described once has fields that few files name.
//!
//! Counted is a field of a struct whose name is distinctive (nine letters or more, with an underscore; short ones are ordinary words),
//! and the production files in which the word stands outside comments: texts count, because SQL and JSON name fields there.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::{House, read};
use crate::pages::report;

/// Nine of ten fields are named in so many files at most; it may only fall.
const P90: usize = 12;
/// A field in so many files is wide.
const WIDE: usize = 15;
/// Of a thousand fields so many may be wide; it may only fall.
const WIDE_SHARE: usize = 73;
/// Fields in more files than that, and why.
const FAR: &[(&str, &[&str])] = &[
    (
        "facts of a request, which every reader of bills shows",
        &[
            "request_id",
            "answer_id",
            "end_reason",
            "first_byte_ms",
            "created_at",
            "under_way",
            "balance_after",
        ],
    ),
    (
        "classes of usage and their prices",
        &[
            "cache_read",
            "cache_write",
            "cache_write_1h",
            "cache_write_12h",
            "per_request",
        ],
    ),
    (
        "settings of models and of the process, and formats on the wire",
        &[
            "public_url",
            "best_path",
            "max_output",
            "limit_field",
            "rate_limits",
        ],
    ),
    (
        "nouns of a seller that are still described in several places",
        &[
            "allow_single",
            "auto_top_up",
            "belongs_to",
            "counts_in",
            "created_by",
            "expires_at",
            "house_act",
            "own_costs",
        ],
    ),
];

/// The distinctive fields, each with the number of files that name it.
fn spread(house: &House) -> BTreeMap<&str, usize> {
    let fields = house.sources.values().flat_map(|facts| &facts.fields);
    let is_distinctive = |name: &&String| name.len() >= 9 && name.contains('_');
    let mut spread: BTreeMap<&str, usize> = fields
        .filter(is_distinctive)
        .map(|name| (&**name, 0))
        .collect();
    for file in house.sources.keys() {
        let text = read(file);
        let lines = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        let words =
            lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        for word in words.collect::<BTreeSet<_>>() {
            if let Some(files) = spread.get_mut(word) {
                *files += 1;
            }
        }
    }
    spread
}

#[test]
fn facts_are_said_in_few_places() {
    let spread = spread(House::load());
    let mut counts: Vec<usize> = spread.values().copied().collect();
    counts.sort_unstable();
    let p90 = counts[counts.len() * 9 / 10];
    let wide = counts.iter().filter(|files| **files >= WIDE).count() * 1_000 / counts.len();
    println!("{} fields, p90 {p90}, wide {wide} of 1,000", counts.len());
    let mut faults = Vec::new();
    if p90 > P90 || wide > WIDE_SHARE {
        faults.push(format!("p90 is {p90} (at most {P90}), {wide} of 1,000 fields are in {WIDE} files or more (at most {WIDE_SHARE}): describe a noun once"));
    }
    let known: BTreeSet<&str> = FAR
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    for (name, files) in &spread {
        match (*files > WIDE, known.contains(name)) {
            (true, false) => faults.push(format!("`{name}` is named in {files} files: describe it once, or give the reason in tests/tidy/spread.rs")),
            (false, true) => faults.push(format!("`{name}` is named in {files} files only: take it out of tests/tidy/spread.rs")),
            (true, true) | (false, false) => {}
        }
    }
    report(&faults);
}
