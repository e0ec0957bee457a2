//! The rule where money is: a `match` names every variant of a type of ours, and a pattern every field that it passes over, so that what
//! is added later is decided there.
//!
//! The patterns that were open when the rule came are counted by room, and their number may only fall.

use std::collections::BTreeSet;

use crate::house::House;
use crate::pages::report;

/// Where money is, with the open patterns of each kind that are left.
const ROOMS: &[(&str, usize, usize)] = &[
    ("ledger/src/", 6, 35),
    ("src/billing/", 0, 0),
    ("src/proxy/", 8, 17),
    ("selling/src/", 4, 0),
];

/// The open patterns of a room over types of ours: `_ =>`, and `..`.
pub(crate) fn open(house: &House, room: &str) -> [Vec<String>; 2] {
    let ours: BTreeSet<&str> = house
        .sources
        .values()
        .flat_map(|facts| facts.types.iter().map(|(_, name)| &**name))
        .chain(["Self"])
        .collect();
    let mut found = [Vec::new(), Vec::new()];
    for (file, facts) in house.judged().filter(|(file, _)| file.starts_with(room)) {
        for pattern in &facts.open {
            let [arms, rests] = &mut found;
            let list = if pattern.what == ".." { rests } else { arms };
            let of = pattern.types.iter().find(|of| ours.contains(&***of));
            list.extend(of.map(|of| {
                format!(
                    "{file}:{}: `{}` beside `{of}`: name what is there",
                    pattern.line, pattern.what
                )
            }));
        }
    }
    found
}

#[test]
fn where_money_is_every_case_is_named() {
    let mut faults = Vec::new();
    for (room, arms, rests) in ROOMS {
        for (found, most) in open(House::load(), room).into_iter().zip([arms, rests]) {
            if found.len() > *most {
                faults.push(format!(
                    "{room}: {} open patterns, at most {most}:",
                    found.len()
                ));
                faults.extend(found);
            } else if found.len() < *most {
                faults.push(format!(
                    "{room}: only {} open patterns are left: write that into tests/tidy/open.rs",
                    found.len()
                ));
            }
        }
    }
    report(&faults);
}
