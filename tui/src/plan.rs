//! An act before it is applied: its kind, whom it is done to, its members, and the operation id under which it is applied at most once.
//!
//! The operation id is fixed when the form opens and changes only after a known outcome, so an act is applied once however often it
//! is sent. Contains no secret.

use std::fmt;
use std::pin::Pin;

use farebox_ledger::{Account, Act, Amount, KeyId, OperationId, Scope, Timestamp};
use farebox_selling::member::Member;
use farebox_selling::{Deed, Doer, Unfit};
use serde_json::{Map, Value};

/// Members that are amounts of US dollars.
const MONEY: [&str; 3] = ["amount", "balance", "low_balance"];

/// Members of an act, by their names.
pub(crate) type ActBody = Map<String, Value>;

/// A deed that is being made.
type MadeDeed<'a> = Pin<Box<dyn Future<Output = Result<Deed, Unfit>> + Send + 'a>>;

/// What every act of a kind has.
pub(crate) struct ActKind {
    /// Its name, as a title and in the files of open operations.
    pub(crate) name: &'static str,
    /// The effect of `y`, in words.
    pub(crate) yes: &'static str,
    /// The members that its form asks for.
    pub(crate) asks: &'static [&'static str],
    /// What a review says besides.
    pub(crate) effects: &'static [(&'static str, &'static str)],
    /// Said of what cannot be undone; it is only done after the end of the id was typed.
    pub(crate) permanent: Option<&'static str>,
    /// What the key is afterwards, in a word.
    pub(crate) becomes: &'static str,
    /// Its form shows what there is, and says what differs.
    pub(crate) edits: bool,
    /// Its outcome is shown once.
    pub(crate) brings_secret: bool,
    pub(crate) members: fn(&[&str]) -> Vec<Member>,
    /// Reads its members.
    pub(crate) check: fn(&ActBody) -> Result<(), String>,
    /// The account afterwards, by the ledger's own rules; `None` if no money moves.
    pub(crate) after: fn(&ActBody, Account) -> Option<Result<Account, String>>,
    pub(crate) deed: for<'a> fn(&'a ActPlan, &'a Doer<'a>) -> MadeDeed<'a>,
}

impl PartialEq for ActKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ActKind {}

impl fmt::Debug for ActKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// An act that is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActPlan {
    pub(crate) kind: &'static ActKind,
    /// The key or customer that it changes; of a new key its customer, if it has one already.
    pub(crate) of: Option<Scope>,
    /// The request that it refunds.
    pub(crate) request: Option<OperationId>,
    pub(crate) body: ActBody,
}

/// A plan with everything needed to send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) operation: OperationId,
    pub(crate) plan: ActPlan,
    pub(crate) label: String,
    pub(crate) actor: String,
    pub(crate) at: Timestamp,
}

impl Pending {
    /// By whom, when, and under which id.
    pub(crate) fn act(&self) -> Act {
        Act {
            operation: self.operation,
            actor: self.actor.clone(),
            at: self.at,
        }
    }

    /// Its act and whom it is done to, as a title; the words stand between them.
    pub(crate) fn title(&self, words: &str) -> String {
        let of = self.plan.of.map(|of| of.to_string());
        let parts = [Some(format!("{}{words}", self.plan.kind.name)), of];
        let label = Some(self.label.clone());
        let parts: Vec<String> = parts.into_iter().chain([label]).flatten().collect();
        parts.join(" · ")
    }
}

impl ActPlan {
    /// An act that has no members.
    pub(crate) fn plain(kind: &'static ActKind, of: Option<Scope>) -> Self {
        Self {
            kind,
            of,
            request: None,
            body: ActBody::new(),
        }
    }

    /// The same on one of many keys. Its reference gets the key's id, so that repeating a half-done act pays nobody twice.
    pub(crate) fn on(&self, key: KeyId) -> Self {
        let mut plan = self.clone();
        plan.of = Some(key.into());
        if let Some(Value::String(reference)) = plan.body.get_mut("reference") {
            *reference = format!("{reference}-{key}");
        }
        plan
    }

    /// The account afterwards, by the ledger's own rules; `None` if no money moves, an error if the rules refuse.
    pub(crate) fn after(&self, account: Account) -> Option<Result<Account, String>> {
        (self.kind.after)(&self.body, account)
    }

    /// The money that it moves, and the name of that member.
    pub(crate) fn money(&self) -> Option<(&str, Amount)> {
        money(&self.body)
    }

    /// Name and value of each fact that a review shows.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let request = self.request.map(|request| format!("req_{request}"));
        let request = request.map(|request| ("Request".to_owned(), request));
        let members = self.body.iter();
        let members = members.map(|(name, value)| (title(name), words(name, value)));
        let effects = self.kind.effects.iter();
        let effects = effects.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        request.into_iter().chain(members).chain(effects).collect()
    }
}

/// The money that an act with these members moves, and the name of that member.
pub(crate) fn money(body: &ActBody) -> Option<(&str, Amount)> {
    let (name, typed) = body
        .iter()
        .find(|(name, _)| matches!(name.as_str(), "amount" | "balance"))?;
    let amount = Amount::parse_adjustment(typed.as_str()?).ok()?;
    Some((name, amount))
}

/// A member's name, for people.
pub(crate) fn title(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let rest = letters.map(|letter| if letter == '_' { ' ' } else { letter });
    first.into_iter().chain(rest).collect()
}

/// A member's value as it is typed; empty without one.
pub(crate) fn typed(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
        Value::Array(list) => list.iter().map(typed).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// A member's value, for people.
fn words(name: &str, value: &Value) -> String {
    match (value, value.as_str().map(Amount::parse_adjustment)) {
        (Value::Null, _) if name == "models" => "all".to_owned(),
        (Value::Null, _) => "none".to_owned(),
        (_, Some(Ok(amount))) if MONEY.contains(&name) => format!("{amount} USD"),
        _ => typed(value),
    }
}
