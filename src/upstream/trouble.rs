//! What the operator should know of the targets now: which are paused and for whom, which refuse our account, which only fail, and
//! which published models nobody serves.
//!
//! It is read from what tries left behind, and decides nothing: breakers do.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use tokio::time::Instant;

use super::classify::AttemptFailure;
use super::redact::Redacted;
use super::{ListedTarget, Upstreams};
use crate::byte_room::Holder;

/// What a provider refuses us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalScope {
    /// Our account, whatever we ask.
    Account,
    /// This model or path.
    Target,
}

impl RefusalScope {
    /// What a failure says about us as the provider's customer.
    pub(super) fn of(failure: &AttemptFailure) -> Option<Self> {
        match failure {
            AttemptFailure::Operator(_) => Some(Self::Account),
            AttemptFailure::NotServed(_) => Some(Self::Target),
            _ => None,
        }
    }
}

/// Tries that fail in a row are a sign of trouble from this many on …
const FAILURES: u32 = 5;
/// … or from this many, when more than one customer met them.
const FAILURES_OF_SEVERAL: u32 = 3;

/// What tries at one target have shown since the last answer that ended well.
#[derive(Debug, Clone, Default)]
pub(super) struct Signs {
    failures: u32,
    /// Who failed first; `several` when another one did too.
    first: Option<Holder>,
    several: bool,
    /// This model or path was refused.
    refused: Option<Redacted>,
    /// By account: when it was last refused, and when it was last served.
    accounts: BTreeMap<usize, ProviderAccount>,
}

#[derive(Debug, Clone, Default)]
struct ProviderAccount {
    refused: Option<(Instant, Redacted)>,
    served: Option<Instant>,
}

impl Signs {
    /// A customer's try failed through the target's fault.
    pub(super) fn failed(&mut self, key: Holder) {
        self.failures = self.failures.saturating_add(1);
        self.several |= *self.first.get_or_insert(key) != key;
    }

    /// We were refused as the provider's customer.
    pub(super) fn refused(
        &mut self,
        account: usize,
        refusal: RefusalScope,
        reason: Redacted,
        now: Instant,
    ) {
        match refusal {
            RefusalScope::Account => {
                self.accounts.entry(account).or_default().refused = Some((now, reason));
            }
            RefusalScope::Target => self.refused = Some(reason),
        }
    }

    /// An answer ended well.
    pub(super) fn served(&mut self, account: usize, now: Instant) {
        (self.failures, self.first, self.several) = (0, None, false);
        self.refused = None;
        self.accounts.entry(account).or_default().served = Some(now);
    }

    fn fails(&self) -> bool {
        let most = if self.several {
            FAILURES_OF_SEVERAL
        } else {
            FAILURES
        };
        self.failures >= most
    }
}

/// One target, as it is found at a look.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) paused: bool,
    pub(super) paused_for: Vec<Holder>,
    pub(super) signs: Signs,
    pub(super) last_reason: Option<Redacted>,
}

/// Something for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What is wrong.
    pub what: Wrong,
    /// The slug; empty for an account.
    pub slug: String,
    /// `provider/model`; the provider for an account, empty for a slug.
    pub target: String,
    /// Why, in full.
    pub reason: String,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A provider refuses this account: its number, from 0, and how many there are.
    Account(usize, usize),
    /// A provider does not know the target's model or path.
    Refuses,
    /// It is paused for all customers.
    Paused,
    /// Its tries fail in a row.
    Failing,
    /// It is paused for these customers.
    PausedFor(Vec<Holder>),
    /// No target of the slug works.
    Dead,
}

impl Upstreams {
    /// Everything that is wrong now.
    #[must_use]
    pub fn troubles(&self) -> Vec<Trouble> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let looked: Vec<(&ListedTarget, Looked)> = (known.targets.iter())
            .map(|listed| (listed, listed.health.look(now)))
            .collect();
        let accounts = accounts(&looked);
        let mut found: Vec<Trouble> = Vec::new();
        let mut slugs: BTreeMap<&str, Vec<Option<String>>> = BTreeMap::new();
        for (listed, looked) in &looked {
            let own = of_target(listed, looked);
            let whole_account = refused_account(&accounts, listed);
            let dead = match &own {
                Some(Trouble {
                    what: Wrong::PausedFor(_),
                    ..
                })
                | None => whole_account,
                Some(own) => Some(whole_account.unwrap_or_else(|| own.reason.clone())),
            };
            let words = dead.map(|why| format!("{}: {why}", listed.target.name()));
            slugs.entry(&listed.slug).or_default().push(words);
            found.extend(own);
        }
        for ((provider, account), refused) in accounts {
            found.extend(refused.map(|(reason, of)| Trouble {
                what: Wrong::Account(account, of),
                slug: String::new(),
                target: provider.to_owned(),
                reason,
            }));
        }
        for (slug, targets) in slugs {
            let dead: Option<Vec<String>> = targets.into_iter().collect();
            found.extend(dead.map(|reasons| Trouble {
                what: Wrong::Dead,
                slug: slug.to_owned(),
                target: String::new(),
                reason: reasons.join("; "),
            }));
        }
        found
    }
}

/// What is wrong with one target.
fn of_target(listed: &ListedTarget, looked: &Looked) -> Option<Trouble> {
    let last = || looked.last_reason.as_ref().map(ToString::to_string);
    let (what, reason) = if looked.paused {
        (Wrong::Paused, last())
    } else if let Some(reason) = &looked.signs.refused {
        (Wrong::Refuses, Some(reason.to_string()))
    } else if looked.signs.fails() {
        (Wrong::Failing, last())
    } else if !looked.paused_for.is_empty() {
        (Wrong::PausedFor(looked.paused_for.clone()), last())
    } else {
        return None;
    };
    Some(Trouble {
        what,
        slug: listed.slug.clone(),
        target: listed.target.name(),
        reason: reason.unwrap_or_else(|| "no reason was given".to_owned()),
    })
}

/// Every account that was asked: the reason and the number of the provider's accounts, if it is refused by the newest answer of any
/// of the provider's targets.
type Accounts<'a> = HashMap<(&'a str, usize), CountedRefusal>;
type CountedRefusal = Option<(String, usize)>;

fn accounts<'a>(looked: &'a [(&'a ListedTarget, Looked)]) -> Accounts<'a> {
    let mut newest: HashMap<(&str, usize), (Instant, CountedRefusal)> = HashMap::new();
    for (listed, looked) in looked {
        let provider = &listed.target.provider;
        for (number, account) in &looked.signs.accounts {
            let served = account.served.map(|at| (at, None));
            let refused = account
                .refused
                .as_ref()
                .map(|(at, reason)| (*at, Some((reason.to_string(), provider.keys.len()))));
            for (at, found) in served.into_iter().chain(refused) {
                let entry = newest
                    .entry((&provider.name, *number))
                    .or_insert_with(|| (at, found.clone()));
                if at > entry.0 {
                    *entry = (at, found);
                }
            }
        }
    }
    let latest = newest.into_iter();
    latest
        .map(|(account, (_, found))| (account, found))
        .collect()
}

/// Why none of the accounts of a target's provider may be used, if that is so.
fn refused_account(accounts: &Accounts<'_>, listed: &ListedTarget) -> Option<String> {
    let provider = &listed.target.provider;
    let mut why = None;
    for number in 0..provider.keys.len().max(1) {
        let (reason, _) = accounts.get(&(provider.name.as_str(), number))?.as_ref()?;
        why.get_or_insert_with(|| reason.clone());
    }
    why
}
