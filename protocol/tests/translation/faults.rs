//! 104 known faults of other gateways are numbered. Every number is in the name of a test here, or listed with the reason why it
//! has none.

use std::collections::BTreeMap;
use std::path::PathBuf;

const LAST: u32 = 104;

/// Numbers that have no test.
const UNTESTED: [(u32, &str); 1] = [(
    39,
    "two signed blocks of thinking are not given back, because no seal is restored",
)];

/// Numbers of which a part has no test.
const IN_PART: [(u32, &str); 1] = [(
    38,
    "the seal is kept from the other family; it is not given back next turn, because none is restored",
)];

/// The tests of each number.
fn tests() -> BTreeMap<u32, Vec<String>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/translation");
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the tests") {
        let path = entry.expect("a file").path();
        let text = if path.is_file() {
            std::fs::read_to_string(&path).expect("a text")
        } else {
            continue;
        };
        let mut is_test = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn b").filter(|_| is_test) {
                let name = format!("b{}", name.split('(').next().unwrap_or_default());
                for number in name
                    .split('_')
                    .map_while(|word| word.strip_prefix('b')?.parse().ok())
                {
                    found.entry(number).or_default().push(name.clone());
                }
            }
            is_test = line == "#[test]";
        }
    }
    found
}

#[test]
fn every_known_fault_has_a_test_or_a_reason() {
    let tests = tests();
    for number in 1..=LAST {
        let has_reason = UNTESTED.iter().any(|(untested, _)| *untested == number);
        assert_ne!(
            tests.contains_key(&number),
            has_reason,
            "{number}: a test or a reason, not both"
        );
    }
    assert!(
        tests.keys().all(|number| (1..=LAST).contains(number)),
        "{tests:?}"
    );
    assert!(IN_PART.iter().all(|(number, _)| tests.contains_key(number)));
    assert!(UNTESTED.len() + IN_PART.len() <= 5, "at most five reasons");
}
