//! Members that providers add to their answers and that customers do not see, because the family does not have them.
//!
//! An operator who wants customers to have one lists it in the provider's `pass_answer`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::proxy::Record;
use farebox_ledger::lock;

/// Most names that are kept: a provider that invents a new one for each answer must not fill the memory.
const MOST: usize = 1_000;

/// How many answers had which member, by provider.
#[derive(Debug, Default)]
pub struct StrangeMembers(Mutex<BTreeMap<(String, String), u64>>);

impl StrangeMembers {
    pub(super) fn note(&self, record: &Record) {
        if record.strange.is_empty() {
            return;
        }
        let provider = record.target.split('/').next().unwrap_or_default();
        let mut counts = lock(&self.0);
        for name in &record.strange {
            let name = (provider.to_owned(), name.to_string());
            if counts.len() < MOST || counts.contains_key(&name) {
                *counts.entry(name).or_default() += 1;
            }
        }
    }

    /// Provider, member, and answers since the start.
    pub fn all(&self) -> Vec<(String, String, u64)> {
        let counts = lock(&self.0);
        let all = counts.iter();
        all.map(|((provider, name), count)| (provider.clone(), name.clone(), *count))
            .collect()
    }
}
