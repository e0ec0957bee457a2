//! One smallest request of our own to every target, before any customer asks: `farebox check --online`.
//!
//! The free list of models comes first. It proves only little: some services have none, or list names that they do not serve. What
//! a target's model is sold for (pictures, tools) is asked for in the same request, and alone if that is refused.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::Amount;
use farebox_protocol::question::{self, Extra};
use farebox_protocol::{CallKind, Family};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::accounts::AccountRefusal;
use super::attempt::{self, Begun};
use super::classify::AttemptFailure;
use super::client::Pool;
use super::organisations::{self, Organisations};
use super::probe::{OURSELVES, WORDS, alone};
use super::redact;
use super::{Prepared, UpstreamCall, Upstreams};
use crate::config::{Capability, Config, Endpoint, Model, Rates, Route, Target};

/// Most tokens that the question can have with a picture and a tool, templates included.
const INPUT: u64 = 2_000;
/// The longest list of models that is read.
const MAX_LIST: usize = 8 << 20;

/// One request that is to be sent.
#[derive(Debug, Clone)]
pub struct OnlineRequest {
    pub(super) slug: String,
    pub(super) target: Target,
    pub(super) family: Family,
    /// What is asked for instead of an answer.
    pub(super) call: Option<CallKind>,
    pub(super) account: usize,
    pub(super) extras: Vec<Extra>,
    /// What it may cost at most, with its repeats.
    pub most: Amount,
}

/// Something that customers would have met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlineFinding {
    /// What is wrong.
    pub fault: OnlineFault,
    /// A slug that goes there.
    pub slug: String,
    /// `provider/model`.
    pub target: String,
    /// What the provider said.
    pub reason: String,
    /// Names from its list of models that are most like the target's.
    pub nearest: Vec<String>,
}

/// What is wrong with a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnlineFault {
    /// There is no connection.
    Unreachable,
    /// The provider knows no such path.
    Path,
    /// It knows no such model, or does not let this account use it.
    Model,
    /// It refuses our account.
    Account(AccountRefusal),
    /// It refuses what the model is sold for.
    Ability(Capability),
    /// It has no capacity now, so nothing is known.
    Busy,
    /// Any other answer that is none.
    Other,
}

/// What is asked of the targets of a configuration: each once, the first of a provider also in each family that the provider speaks
/// and with each of its keys.
pub fn questions(config: &Config) -> Vec<OnlineRequest> {
    let mut asked: Vec<OnlineRequest> = Vec::new();
    for model in &config.catalog.models {
        for target in &model.route.targets {
            let provider = &target.provider;
            let name = target.name();
            let known = asked.iter().any(|asked| asked.target.name() == name);
            if provider.endpoint == Endpoint::Simulated || known {
                continue;
            }
            let first = !asked.iter().any(|asked| {
                asked.target.provider.name == provider.name && asked.call == model.route.call
            });
            let conversed = provider.families().filter(|_| model.route.call.is_none());
            // A call has chat's headers and errors.
            let called = model.route.call.map(|_| Family::Chat);
            let mut families = called.into_iter().chain(conversed);
            let Some(family) = families.next() else {
                continue;
            };
            asked.push(OnlineRequest::of(model, target, family, 0));
            if first {
                asked.extend(families.map(|family| OnlineRequest::of(model, target, family, 0)));
                let keys = 1..provider.keys.accounts();
                asked.extend(keys.map(|account| OnlineRequest::of(model, target, family, account)));
            }
        }
    }
    asked
}

impl OnlineRequest {
    fn of(model: &Model, target: &Target, family: Family, account: usize) -> Self {
        let extras: Vec<Extra> = [
            (Capability::Vision, Extra::Picture),
            (Capability::Tools, Extra::Tool),
        ]
        .into_iter()
        .filter(|(capability, _)| model.capabilities.contains(capability))
        .map(|(_, extra)| extra)
        .collect();
        let price = target.cost.as_deref().unwrap_or(&model.price);
        let call = model.route.call;
        let output = call.map_or(family.protocol().least_output, |_| 0);
        let once = most(&price.base, output.into());
        let tries = u64::try_from(extras.len())
            .unwrap_or(u64::MAX)
            .saturating_add(2);
        Self {
            slug: model.slug.clone(),
            target: target.clone(),
            family,
            call,
            account,
            extras,
            most: once
                .and_then(|once| Amount::times(once, tries))
                .unwrap_or_default(),
        }
    }

    fn found(&self, fault: OnlineFault, failure: &AttemptFailure) -> OnlineFinding {
        let route = alone(&self.slug, &self.target);
        let reason = redact::for_operator(&failure.reason(), &route);
        OnlineFinding {
            fault,
            slug: self.slug.clone(),
            target: self.target.name(),
            reason: reason.to_string(),
            nearest: Vec::new(),
        }
    }
}

impl Upstreams {
    /// Asks all of it, one request at a time at each provider. Says besides to which organisations the accounts of a provider belong.
    pub async fn examine(
        self: &Arc<Self>,
        asked: Vec<OnlineRequest>,
    ) -> (Vec<OnlineFinding>, Vec<Organisations>) {
        let mut providers: Vec<(String, Vec<OnlineRequest>)> = Vec::new();
        for one in asked {
            let name = one.target.provider.name.clone();
            match providers.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => all.push(one),
                None => providers.push((name, vec![one])),
            }
        }
        let mut asking = JoinSet::new();
        for (place, (name, all)) in providers.into_iter().enumerate() {
            let upstreams = Arc::clone(self);
            asking.spawn(async move {
                let (found, named) = upstreams.examine_one_by_one(all).await;
                (place, found, Organisations::of(&name, &named))
            });
        }
        let mut found = asking.join_all().await;
        found.sort_by_key(|(place, ..)| *place);
        let (mut findings, mut organisations) = (Vec::new(), Vec::new());
        for (_, found, of_one) in found {
            findings.extend(found);
            let accounts = of_one.known.iter().flatten().chain(&of_one.unknown);
            organisations.extend((accounts.count() > 1).then_some(of_one));
        }
        (findings, organisations)
    }

    /// The targets of one provider, and the names of its accounts' organisations.
    async fn examine_one_by_one(
        &self,
        asked: Vec<OnlineRequest>,
    ) -> (Vec<OnlineFinding>, BTreeMap<usize, Option<String>>) {
        let mut found: Vec<OnlineFinding> = Vec::new();
        let mut named: BTreeMap<usize, Option<String>> = BTreeMap::new();
        let mut lists: HashMap<usize, Listing> = HashMap::new();
        for one in asked {
            let Some(pool) = self.pool_of(&one.target) else {
                continue;
            };
            let place = one.account;
            let list = match lists.get(&place) {
                Some(known) => known.clone(),
                None => {
                    let (list, organisation) = Listing::read(self, &pool, &one).await;
                    named.insert(place, organisation);
                    list
                }
            };
            lists.insert(place, list.clone());
            let problem = match &list {
                Listing::Unreachable(failure) => Some(one.found(OnlineFault::Unreachable, failure)),
                _ => self.examine_target(&pool, &one, &list).await,
            };
            // Nobody is helped by the same sentence for each of a hundred models.
            let again = |problem: &OnlineFinding| {
                let whole = !matches!(problem.fault, OnlineFault::Model | OnlineFault::Ability(_));
                whole
                    && found
                        .iter()
                        .any(|old| old.fault == problem.fault && old.reason == problem.reason)
            };
            found.extend(problem.filter(|problem| !again(problem)));
        }
        (found, named)
    }

    async fn examine_target(
        &self,
        pool: &Pool,
        one: &OnlineRequest,
        list: &Listing,
    ) -> Option<OnlineFinding> {
        let refused = match self.try_with(pool, one, &one.extras).await {
            Ok(()) => return None,
            Err(refused) => refused,
        };
        if let AttemptFailure::Client { .. } = refused
            && !one.extras.is_empty()
        {
            return self.missing(pool, one, list, &refused).await;
        }
        Some(list.judged(one, &refused))
    }

    /// Which of the extras is refused, or the plain question too.
    async fn missing(
        &self,
        pool: &Pool,
        one: &OnlineRequest,
        list: &Listing,
        all: &AttemptFailure,
    ) -> Option<OnlineFinding> {
        if let Err(plain) = self.try_with(pool, one, &[]).await {
            return Some(list.judged(one, &plain));
        }
        for extra in &one.extras {
            if let Err(refused) = self.try_with(pool, one, &[*extra]).await {
                return Some(one.found(OnlineFault::Ability(capability(*extra)), &refused));
            }
        }
        Some(one.found(OnlineFault::Other, all))
    }

    async fn try_with(
        &self,
        pool: &Pool,
        one: &OnlineRequest,
        extras: &[Extra],
    ) -> Result<(), AttemptFailure> {
        let (family, target) = (one.family, &one.target);
        let protocol = family.protocol();
        let limit = protocol.least_output;
        let field = protocol.limit_field(target.fit.chat_limit, None);
        let question = match one.call {
            Some(call) => call.dialect().question(&target.model, WORDS),
            None => {
                let plain = protocol.write_question_as(&target.model, WORDS, (field, limit));
                question::with(family, &plain, WORDS, extras)
            }
        };
        let prepared = Prepared {
            body: vec![Bytes::from(question)],
            parts: one.call.map_or(0, |_| 1),
            ..Prepared::default()
        };
        let route = Route {
            call: one.call,
            ..alone(&one.slug, target)
        };
        let call = UpstreamCall::of_ourselves(&route, family);
        let room = self.answers.share(OURSELVES, usize::MAX);
        let asked = (&call, one.account);
        let asking = attempt::attempt(pool, &self.simulated, asked, target, &prepared, room);
        let patience = pool.provider.timeouts.first_byte;
        match timeout(patience, asking).await {
            Ok(Ok(Begun::Whole(..) | Begun::Stream(..))) => Ok(()),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(AttemptFailure::Broken(format!(
                "no answer within {patience:?}"
            ))),
        }
    }
}

/// What a provider's free list of models said.
#[derive(Debug, Clone)]
enum Listing {
    Unreachable(AttemptFailure),
    /// There is no such list there.
    Missing,
    Names(Vec<String>),
    /// It says nothing.
    Silent,
}

impl Listing {
    /// The account's list, and the organisation that its answer names.
    async fn read(
        upstreams: &Upstreams,
        pool: &Pool,
        one: &OnlineRequest,
    ) -> (Self, Option<String>) {
        let Ok(Some(request)) = pool.list(one.family, one.account) else {
            return (Self::Silent, None);
        };
        let patience = pool.provider.timeouts.first_byte;
        match timeout(patience, attempt::respond(request)).await {
            Ok(Ok(response)) => {
                let organisation = organisations::named(response.headers());
                (Self::of(upstreams, response).await, organisation)
            }
            Ok(Err(failure @ AttemptFailure::Unsent(_))) => (Self::Unreachable(failure), None),
            Ok(Err(_)) | Err(_) => (Self::Silent, None),
        }
    }

    async fn of(upstreams: &Upstreams, response: reqwest::Response) -> Self {
        let Ok(mut reply) = attempt::unjudged(response) else {
            return Self::Silent;
        };
        if reply.status == 404 {
            return Self::Missing;
        }
        let mut room = upstreams.answers.share(OURSELVES, usize::MAX);
        match reply.body.whole(MAX_LIST, &mut room).await {
            Ok(text) if reply.status == 200 => {
                let names = names(&text);
                if names.is_empty() {
                    Self::Silent
                } else {
                    Self::Names(names)
                }
            }
            _ => Self::Silent,
        }
    }

    /// What a failure means, in the light of the list.
    fn judged(&self, one: &OnlineRequest, failure: &AttemptFailure) -> OnlineFinding {
        let model = one.target.model.as_str();
        let unlisted = match self {
            Self::Names(names) => !names.iter().any(|name| is_named(name, model)),
            _ => false,
        };
        let reason = failure.reason().to_ascii_lowercase();
        let fault = match (AccountRefusal::of(failure), failure) {
            (Some(refusal), _) => OnlineFault::Account(refusal),
            (_, AttemptFailure::Unsent(_)) => OnlineFault::Unreachable,
            (_, AttemptFailure::NotServed(_)) if names_model(&reason, model) || unlisted => {
                OnlineFault::Model
            }
            (_, AttemptFailure::NotServed(_)) => OnlineFault::Path,
            (_, AttemptFailure::Client { .. }) if unlisted || names_model(&reason, model) => {
                OnlineFault::Model
            }
            (_, AttemptFailure::Busy { .. }) => OnlineFault::Busy,
            (_, AttemptFailure::Failed(_)) if matches!(self, Self::Missing) => OnlineFault::Path,
            _ => OnlineFault::Other,
        };
        let mut found = one.found(fault, failure);
        if let (OnlineFault::Model, Self::Names(names)) = (fault, self) {
            let names = names.iter().map(String::as_str);
            let nearest = crate::config::nearest_models(model, names);
            found.nearest = nearest.into_iter().map(str::to_owned).collect();
        }
        found
    }
}

/// What is paid for a question with everything on it.
fn most(rates: &Rates, output: u64) -> Option<Amount> {
    let tokens =
        Amount::times(rates.input, INPUT)?.checked_add(Amount::times(rates.output, output)?)?;
    tokens
        .checked_add(rates.per_request)?
        .checked_add(rates.per_image)
}

const fn capability(extra: Extra) -> Capability {
    match extra {
        Extra::Picture => Capability::Vision,
        Extra::Tool => Capability::Tools,
    }
}

/// The names in a list of models, in each form that services have for it.
fn names(list: &[u8]) -> Vec<String> {
    let Ok(list) = serde_json::from_slice::<Value>(list) else {
        return Vec::new();
    };
    let all = [&list["data"], &list["models"], &list];
    let models = all
        .into_iter()
        .find_map(Value::as_array)
        .into_iter()
        .flatten();
    let name = |model: &Value| {
        let name = model["id"].as_str().or(model["name"].as_str());
        name.map(str::to_owned)
    };
    models.filter_map(name).collect()
}

/// Some services list `models/NAME` for `NAME`.
fn is_named(listed: &str, model: &str) -> bool {
    listed == model
        || listed
            .rsplit_once('/')
            .is_some_and(|(_, last)| last == model)
}

/// Whether a refusal speaks of the model and not of the path.
fn names_model(reason: &str, model: &str) -> bool {
    reason.contains("model") || reason.contains(&model.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_every_form() {
        for list in [
            r#"{"object":"list","data":[{"id":"a-1"},{"id":"models/b"}]}"#,
            r#"{"models":[{"name":"a-1"},{"name":"models/b"}]}"#,
            r#"[{"id":"a-1"},{"id":"models/b"}]"#,
        ] {
            let names = names(list.as_bytes());
            assert!(
                is_named(&names[0], "a-1") && is_named(&names[1], "b"),
                "{names:?}"
            );
        }
        assert_eq!(names(b"<html>"), Vec::<String>::new());
    }
}
