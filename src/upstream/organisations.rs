//! Whether a provider's accounts are of one organisation, which has one prompt cache, or of several: as far as its answers say.

use std::collections::BTreeMap;

use reqwest::header::HeaderMap;

/// Headers in which services name the organisation whose key was used.
const NAMED_IN: [&str; 2] = farebox_protocol::question::ORGANISATION;

/// What the answers of a provider with several accounts say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Organisations {
    /// The provider.
    pub provider: String,
    /// The numbers of the accounts, from 1, of each organisation.
    pub known: Vec<Vec<usize>>,
    /// The accounts of which nothing was said.
    pub unknown: Vec<usize>,
}

impl Organisations {
    /// Sorts accounts by the names of their organisations, which nobody else gets to see.
    pub(super) fn of(provider: &str, named: &BTreeMap<usize, Option<String>>) -> Self {
        let mut by_name: Vec<(&str, Vec<usize>)> = Vec::new();
        let mut unknown = Vec::new();
        for (account, name) in named {
            let Some(name) = name.as_deref() else {
                unknown.push(account + 1);
                continue;
            };
            match by_name.iter_mut().find(|(known, _)| *known == name) {
                Some((_, accounts)) => accounts.push(account + 1),
                None => by_name.push((name, vec![account + 1])),
            }
        }
        Self {
            provider: provider.to_owned(),
            known: by_name.into_iter().map(|(_, accounts)| accounts).collect(),
            unknown,
        }
    }
}

/// The organisation that an answer names.
pub(super) fn named(headers: &HeaderMap) -> Option<String> {
    let mut values = NAMED_IN.iter().filter_map(|name| headers.get(*name));
    let value = values.find(|value| !value.is_empty())?;
    value.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_sorted_by_their_organisations() {
        let named = [Some("a"), Some("b"), None, Some("a")];
        let named = named.map(|name| name.map(str::to_owned));
        let found = Organisations::of("p", &named.into_iter().enumerate().collect());
        assert_eq!(found.known, [vec![1, 4], vec![2]]);
        assert_eq!(found.unknown, [3]);
    }
}
