//! Which of a provider's accounts refuse us, and why: one value for all of its targets. Pure; the clock is passed in.
//!
//! What an account refuses for money is over only when it answers a request that was sent later: its list of models is free and proves
//! nothing. What it refuses for the key is over when that list answers with the key, too. Some services give the list to everybody:
//! where the key is refused again after the list had answered, the list proves nothing any more.

use std::collections::BTreeMap;
use std::sync::Mutex;

use farebox_ledger::lock;
use tokio::time::Instant;

use super::classify::AttemptFailure;
use super::redact::Redacted;

/// What an account refuses us for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountRefusal {
    /// Its key.
    Key,
    /// It has no money, or its quota is used up.
    Money,
}

impl AccountRefusal {
    /// What a failure says about the account.
    pub(super) fn of(failure: &AttemptFailure) -> Option<Self> {
        match failure {
            AttemptFailure::Operator(why) if is_about_money(&why.to_ascii_lowercase()) => {
                Some(Self::Money)
            }
            AttemptFailure::Operator(_) => Some(Self::Key),
            _ => None,
        }
    }

    /// Whether it is about money, and not about the key.
    #[must_use]
    pub const fn is_about_money(self) -> bool {
        matches!(self, Self::Money)
    }

    /// What has happened, in words for the operator.
    #[must_use]
    pub fn words(self, provider: &str) -> String {
        match self {
            Self::Key => format!("provider `{provider}` refuses the key"),
            Self::Money => {
                format!("the account at provider `{provider}` has no money or quota left")
            }
        }
    }

    /// What ends it.
    #[must_use]
    pub fn remedy(self, provider: &str) -> String {
        match self {
            Self::Key => format!(
                "replace the secret that `[provider.{provider}]` names with a valid one, without quotes around it"
            ),
            Self::Money => "pay the provider, or raise the limit of this key there".to_owned(),
        }
    }
}

/// Whether a refusal is about money: by a 402, or in words.
fn is_about_money(reason: &str) -> bool {
    const WORDS: [&str; 8] = [
        "quota",
        "balance",
        "credit",
        "billing",
        "fund",
        "payment",
        "budget",
        "usage limit",
    ];
    reason.starts_with("402") || WORDS.iter().any(|word| reason.contains(word))
}

/// The accounts of one provider, by their place among its keys; a provider without keys has one.
#[derive(Debug, Default)]
pub(super) struct Accounts(Mutex<BTreeMap<usize, ProviderAccount>>);

#[derive(Debug, Default)]
struct ProviderAccount {
    refused: Option<RefusedAccount>,
    list: ListProof,
}

/// An account that refuses us.
#[derive(Debug, Clone)]
pub(super) struct RefusedAccount {
    pub(super) why: AccountRefusal,
    pub(super) reason: Redacted,
    /// When it did so last.
    at: Instant,
}

/// What the account's list of models proves about its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ListProof {
    /// That it is accepted.
    #[default]
    Trusted,
    /// The same; it has ended a refusal.
    Ended,
    /// Nothing.
    Nothing,
}

impl Accounts {
    /// An answer of this account refused us.
    pub(super) fn refused(
        &self,
        account: usize,
        why: AccountRefusal,
        reason: Redacted,
        now: Instant,
    ) {
        let mut all = lock(&self.0);
        let account = all.entry(account).or_default();
        if why == AccountRefusal::Key && account.list == ListProof::Ended {
            account.list = ListProof::Nothing;
        }
        let at = now;
        account.refused = Some(RefusedAccount { why, reason, at });
    }

    /// It gave a good answer to a request that was sent at `sent`.
    pub(super) fn served(&self, account: usize, sent: Instant) {
        let mut all = lock(&self.0);
        let Some(account) = all.get_mut(&account) else {
            return;
        };
        account.refused = account.refused.take().filter(|refused| sent < refused.at);
    }

    /// Its list of models answered a request that was sent at `sent`.
    pub(super) fn listed(&self, account: usize, sent: Instant) {
        let mut all = lock(&self.0);
        let Some(account) = all.get_mut(&account) else {
            return;
        };
        let ends =
            |refused: &RefusedAccount| refused.why == AccountRefusal::Key && sent >= refused.at;
        if account.list != ListProof::Nothing && account.refused.as_ref().is_some_and(ends) {
            (account.refused, account.list) = (None, ListProof::Ended);
        }
    }

    /// Whether only its key is in doubt, and its list can tell.
    pub(super) fn doubts_key(&self, account: usize) -> bool {
        let all = lock(&self.0);
        all.get(&account).is_some_and(|account| {
            let refused = account.refused.as_ref();
            account.list != ListProof::Nothing
                && refused.is_some_and(|refused| refused.why == AccountRefusal::Key)
        })
    }

    /// The refusal that stands.
    pub(super) fn refusal(&self, account: usize) -> Option<RefusedAccount> {
        lock(&self.0).get(&account)?.refused.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::redact;
    use super::*;

    fn refuse(accounts: &Accounts, why: AccountRefusal, now: Instant) {
        accounts.refused(0, why, redact::plain("no"), now);
    }

    #[test]
    fn money_is_proved_by_a_later_answer_alone() {
        let (accounts, start) = (Accounts::default(), Instant::now());
        let after = |secs| start + Duration::from_secs(secs);
        refuse(&accounts, AccountRefusal::Money, after(5));
        accounts.listed(0, after(6));
        accounts.served(0, after(4));
        assert!(accounts.refusal(0).is_some(), "a stream that began before");
        assert!(!accounts.doubts_key(0));
        accounts.served(1, after(6));
        assert!(accounts.refusal(0).is_some(), "another account");
        accounts.served(0, after(6));
        assert!(accounts.refusal(0).is_none());
    }

    #[test]
    fn a_key_is_proved_by_the_list_until_the_list_has_lied() {
        let (accounts, start) = (Accounts::default(), Instant::now());
        let after = |secs| start + Duration::from_secs(secs);
        refuse(&accounts, AccountRefusal::Key, start);
        assert!(accounts.doubts_key(0));
        accounts.listed(0, after(5));
        assert!(accounts.refusal(0).is_none() && !accounts.doubts_key(0));
        refuse(&accounts, AccountRefusal::Key, after(6));
        assert!(!accounts.doubts_key(0), "the list is anybody's");
        accounts.listed(0, after(7));
        assert!(accounts.refusal(0).is_some());
        accounts.served(0, after(7));
        assert!(accounts.refusal(0).is_none());
    }

    #[test]
    fn a_refusal_says_what_it_is_about() {
        let of = |why: &str| AccountRefusal::of(&AttemptFailure::Operator(why.to_owned()));
        for money in [
            "402 no",
            "429 insufficient_quota You exceeded your current quota",
            "400 Your credit balance is too low",
        ] {
            assert_eq!(of(money), Some(AccountRefusal::Money), "{money}");
        }
        assert_eq!(of("401 invalid_api_key no"), Some(AccountRefusal::Key));
        let model = AttemptFailure::NotServed("404".to_owned());
        assert_eq!(AccountRefusal::of(&model), None);
    }
}
