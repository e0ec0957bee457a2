//! What a refusal for lack of money says: its numbers, its words, and what would be served instead.

use std::sync::Arc;

use farebox_ledger::{Amount, CapMaker, CapReached, KeyId, Scope};
use serde_json::{Map, Value, json};

use crate::config::Shop;

/// A cap that binds, as the holder of a key is told of it: of one that counts what other keys spend, a member learns no sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldCap {
    reached: CapReached,
    has_sums: bool,
}

impl ToldCap {
    /// For the holder of a key that is an owner's or not.
    #[must_use]
    pub fn to((key, is_owners): (KeyId, bool), reached: CapReached) -> Self {
        let has_sums = is_owners || reached.scope == Scope::Key(key);
        Self { reached, has_sums }
    }

    /// What programs can read of it.
    fn details(&self) -> Value {
        let CapReached {
            scope,
            cap,
            spent,
            held,
            resets_at,
            ..
        } = &self.reached;
        let scope = match scope {
            Scope::Key(_) if self.has_sums => "key",
            // The owner key's that made this one is no less the account's to whoever holds this one.
            Scope::Key(_) | Scope::Customer(_) => "customer",
        };
        if let (Some(plan), true) = (&self.reached.plan, self.has_sums) {
            return json!({
                "scope": scope,
                "plan": plan.plan,
                "per": plan.per,
                "limit": plan.limit,
                "spent": spent,
                "held": held,
                "resets_at": resets_at,
            });
        }
        if self.reached.plan.is_some() {
            return json!({ "scope": scope, "resets_at": resets_at });
        }
        if self.has_sums {
            return json!({
                "scope": scope,
                "model": cap.model,
                "interval": cap.interval,
                "limit": cap.limit,
                "spent": spent,
                "held": held,
                "resets_at": resets_at,
            });
        }
        json!({
            "scope": scope,
            "model": cap.model,
            "interval": cap.interval,
            "resets_at": resets_at,
        })
    }

    /// What it has room for, in words.
    fn words(&self) -> String {
        let (what, room, spent) = (self.reached.what(), self.reached.room, self.reached.spent);
        let held = format!("held by running requests {} USD", self.reached.held);
        match (self.reached.scope, self.has_sums) {
            (Scope::Key(_), true) => {
                format!("the key's {what} has room for {room} USD, spent {spent} USD, {held}")
            }
            (Scope::Customer(_), true) => {
                format!("the account's {what} has room for {room} USD, spent {spent} USD, {held}")
            }
            (Scope::Key(_) | Scope::Customer(_), false) => {
                format!("a limit of this account has room for {room} USD")
            }
        }
    }
}

/// The numbers of a refusal for lack of money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// The model asked for; unknown when the body was not read.
    pub slug: Option<String>,
    /// What the smallest acceptable form of the request needs, or at least this much.
    pub needed: Amount,
    /// Balance minus holds.
    pub available: Amount,
    /// Held by running requests.
    pub held: Amount,
    /// The cap that binds, where the balance has more; `available` and `held` are then of its window.
    pub cap: Option<Box<ToldCap>>,
    /// Output tokens of this model that the available money still buys, as far as that is known.
    pub affordable_output: Option<u64>,
    /// The largest output limit with which the request would be served now.
    pub remedy: Option<u64>,
    /// The field with the request's output limit.
    pub limit_field: &'static str,
    /// The seller's words; failures that are not answered yet have none.
    pub seller: Option<Arc<Shop>>,
}

impl Balance {
    /// What programs can act on.
    pub(super) fn details(&self, with_numbers: bool) -> Option<Value> {
        let mut details = Map::new();
        if with_numbers {
            details.insert("needed".to_owned(), json!(self.needed));
            details.insert("available".to_owned(), json!(self.available));
            match self.cap.as_deref().map(ToldCap::details) {
                Some(Value::Object(of_cap)) => details.extend(of_cap),
                _ => drop(details.insert("held".to_owned(), json!(self.held))),
            }
            if let Some(tokens) = self.affordable_output {
                details.insert("affordable_output_tokens".to_owned(), json!(tokens));
            }
            let shop = self.seller.as_deref();
            for (name, said) in [
                ("contact", shop.and_then(|shop| shop.contact.as_ref())),
                ("pay_url", shop.and_then(|shop| shop.pay_url.as_ref())),
            ] {
                details.extend(said.map(|said| (name.to_owned(), json!(said))));
            }
        }
        if let Some(tokens) = self.smaller() {
            let smaller = json!([{ self.limit_field: tokens }]);
            details.insert("remedies".to_owned(), smaller);
        }
        (!details.is_empty()).then_some(Value::Object(details))
    }

    fn numbers(&self) -> String {
        let least = if self.slug.is_some() { "" } else { "at least " };
        let Self {
            needed,
            available,
            held,
            ..
        } = self;
        let room = match self.cap.as_deref() {
            None => format!("available {available} USD, held by running requests {held} USD"),
            Some(told) => told.words(),
        };
        format!("this request needs {least}{needed} USD, {room}")
    }

    /// The output that the key still has room for, if the model is known.
    fn affordable(&self, words: &str) -> String {
        match (&self.slug, self.affordable_output) {
            (Some(slug), Some(tokens)) => format!("; {words} {tokens} output tokens of {slug}"),
            _ => String::new(),
        }
    }

    /// The immediate remedy and the lasting one.
    fn advice(&self, for_good: &str) -> String {
        let Some(tokens) = self.smaller() else {
            return for_good.to_owned();
        };
        let (first, rest) = for_good.split_at(1);
        format!(
            "Only the declared output limit is too expensive: send `{}` of at most {tokens}. To keep it, {}{rest}",
            self.limit_field,
            first.to_lowercase()
        )
    }

    /// The smaller limit that helps, where the request has declared one.
    fn smaller(&self) -> Option<u64> {
        self.remedy.filter(|_| !self.limit_field.is_empty())
    }
}

/// Clients match `You exceeded your current quota`, and the last words of the advice end Qwen Code's retries: it gives up at once on
/// a message about an exceeded quota that will reset, and waits up to 40 minutes otherwise.
pub(super) fn out_of_balance(balance: &Balance) -> String {
    let said = balance.seller.as_deref().map(said_by).unwrap_or_default();
    let (what, remedy) = match balance.cap.as_deref().map(|told| &told.reached) {
        None => (
            "out of balance",
            "Top up the same key, then retry; nothing else will reset the exceeded quota"
                .to_owned(),
        ),
        Some(CapReached {
            resets_at: Some(at),
            ..
        }) => (
            "cap reached",
            format!("Retry then: the exceeded quota will reset at {at}"),
        ),
        Some(CapReached { made_by, .. }) => {
            let who = match made_by {
                CapMaker::Seller => "the seller of this key",
                CapMaker::Owner => "an owner of this account",
            };
            (
                "cap reached",
                format!("Ask {who} for a higher cap; nothing else will reset the exceeded quota"),
            )
        }
    };
    format!(
        "{what}: {}{}. You exceeded your current quota. {}{said}",
        balance.numbers(),
        balance.affordable("at this price the key can still pay for"),
        balance.advice(&remedy)
    )
}

/// The seller's words, as more sentences.
pub(super) fn said_by(shop: &Shop) -> String {
    let note = shop.note.as_deref().unwrap_or_default();
    [sentence(&shop.ways_to_pay()), sentence(note)].concat()
}

/// The text as one more sentence: with a capital, and without a full stop, which could be taken for the end of a link.
fn sentence(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        format!(". {}{}", first.to_uppercase(), letters.as_str())
    })
}

pub(super) fn balance_in_use(balance: &Balance) -> String {
    format!(
        "{}: {}{}. {}",
        if balance.cap.is_none() {
            "out of balance for now"
        } else {
            "cap in use"
        },
        balance.numbers(),
        balance.affordable("the available balance covers"),
        balance.advice("Retry when a running request has ended")
    )
}
