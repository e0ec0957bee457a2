//! What the operator should know of the targets now: which are paused and for whom, which refuse our account, which only fail, and
//! which published models nobody serves.

use std::collections::BTreeMap;

use super::health::TargetState;
use super::redact::Redacted;
use super::signs::{Trouble, Wrong};
use super::{ListedTarget, Pools, Upstreams};

impl Upstreams {
    /// Every target of the snapshot in force, in the order of the files.
    pub fn states(&self) -> Vec<TargetState> {
        self.known().states()
    }

    /// Everything that is wrong now.
    pub fn troubles(&self) -> Vec<Trouble> {
        let known = self.known();
        let mut found: Vec<Trouble> = Vec::new();
        let mut slugs: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        for state in known.states() {
            let words = state
                .trouble
                .as_ref()
                .filter(|trouble| trouble.is_for_all());
            let words = words.map(|trouble| format!("{}: {}", state.target, trouble.reason));
            slugs.entry(state.slug).or_default().push(words);
            // An account is told once, and not for each of its targets.
            let own = |trouble: &Trouble| !matches!(trouble.what, Wrong::Account(..));
            found.extend(state.trouble.filter(own));
        }
        found.extend(known.refused_accounts());
        for (slug, targets) in slugs {
            let dead: Option<Vec<String>> = targets.into_iter().collect();
            found.extend(dead.map(|reasons| Trouble {
                what: Wrong::Dead,
                slug,
                target: String::new(),
                reason: reasons.join("; "),
            }));
        }
        found
    }
}

impl Pools {
    fn states(&self) -> Vec<TargetState> {
        let states = self.targets.iter().map(|listed| {
            let account = self.refused_account(listed);
            listed
                .health
                .state(&listed.slug, &listed.target.name(), account)
        });
        states.collect()
    }

    /// Why no account of a target's provider may be used, if that is so.
    fn refused_account(&self, listed: &ListedTarget) -> Option<(Wrong, Redacted)> {
        let keys = listed.target.provider.keys.accounts();
        let pool = self.pools.get(&listed.target.provider.name)?;
        let mut why = None;
        for number in 0..keys {
            let refused = pool.accounts.refusal(number)?;
            why.get_or_insert((Wrong::Account(refused.why, number, keys), refused.reason));
        }
        why
    }

    /// Each account that refuses us.
    fn refused_accounts(&self) -> Vec<Trouble> {
        let mut found = Vec::new();
        for (provider, pool) in &self.pools {
            let keys = pool.provider.keys.accounts();
            for number in 0..keys {
                let refused = pool.accounts.refusal(number);
                found.extend(refused.map(|refused| Trouble {
                    what: Wrong::Account(refused.why, number, keys),
                    slug: String::new(),
                    target: provider.clone(),
                    reason: refused.reason.to_string(),
                }));
            }
        }
        found
    }
}
