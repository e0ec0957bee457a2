//! Drift of clients: top-level fields that were taken out of requests, or for which requests were refused.
//!
//! Coding clients send new fields every week. What many of them send is worth a `pass` or a new version.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::proxy::Record;
use farebox_ledger::lock;

/// Most names that are kept by themselves: a customer who invents names must not fill the memory.
const MOST: usize = 200;
/// Longest name that is kept by itself.
const LONGEST: usize = 64;
/// What all other names are counted as.
const OTHER: &str = "(other)";

/// One field, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriftingField {
    /// The family of the path.
    pub family: &'static str,
    /// Its name, or `(other)`.
    pub field: String,
    /// `taken_out` or `refused`.
    pub fate: &'static str,
}

/// How many requests had which field.
#[derive(Debug, Default)]
pub struct Drift(Mutex<BTreeMap<DriftingField, u64>>);

impl Drift {
    pub(super) fn note(&self, record: &Record) {
        let refused = record.told.as_ref().map(|told| told.field.as_str());
        // A field inside another one has a path.
        let refused = refused.filter(|field| !field.is_empty() && !field.contains(['.', '[']));
        if refused.is_none() && record.removed.is_empty() {
            return;
        }
        let mut counts = lock(&self.0);
        let taken_out = record.removed.split(", ").filter(|name| !name.is_empty());
        let taken_out = taken_out.map(|name| (name, "taken_out"));
        for (name, fate) in taken_out.chain(refused.map(|name| (name, "refused"))) {
            let mut drifting = DriftingField {
                family: record.family,
                field: if is_name(name) { name } else { OTHER }.to_owned(),
                fate,
            };
            if counts.len() >= MOST && !counts.contains_key(&drifting) {
                OTHER.clone_into(&mut drifting.field);
            }
            *counts.entry(drifting).or_default() += 1;
        }
    }

    /// All of them, with the number of requests since the start.
    pub fn all(&self) -> Vec<(DriftingField, u64)> {
        let counts = lock(&self.0);
        let all = counts.iter();
        all.map(|(field, requests)| (field.clone(), *requests))
            .collect()
    }
}

/// Whether it looks like the name of a field. Anything else may be a customer's text.
fn is_name(name: &str) -> bool {
    name.len() <= LONGEST
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{OperationId, Timestamp};
    use farebox_protocol::{BadRequest, Family};
    use tokio::time::Instant;

    use super::*;
    use crate::proxy::{Failure, Origin, RefusedFacts};

    fn refused(field: &str) -> Record {
        let failure = Failure::BadRequest(BadRequest::at(field, "no".to_owned()));
        let id = OperationId::new(Timestamp::from_millis(1), 1);
        let (now, origin) = (Instant::now(), Origin::default());
        Record::refused(
            &failure,
            Family::Chat,
            RefusedFacts::default(),
            id,
            now,
            origin,
        )
    }

    #[test]
    fn fields_are_counted_by_name_and_the_names_are_bounded() {
        let drift = Drift::default();
        drift.note(&refused("new_field"));
        drift.note(&refused("new_field"));
        drift.note(&refused("messages[0].content"));
        drift.note(&Record {
            removed: "web_search, context_hint".to_owned(),
            told: None,
            ..refused("")
        });
        let all = drift.all();
        let counted: Vec<(&str, &str, u64)> = (all.iter())
            .map(|(field, count)| (field.field.as_str(), field.fate, *count))
            .collect();
        assert_eq!(
            counted,
            [
                ("context_hint", "taken_out", 1),
                ("new_field", "refused", 2),
                ("web_search", "taken_out", 1)
            ]
        );
        drift.note(&refused("my secret words"));
        for number in 0..1_000 {
            drift.note(&refused(&format!("field_{number}")));
        }
        let all = drift.all();
        assert!(all.len() <= MOST + 2, "{}", all.len());
        let other = all.iter().find(|(field, _)| field.field == OTHER);
        assert!(other.is_some_and(|(_, count)| *count > 500), "{other:?}");
    }
}
