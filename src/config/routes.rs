//! Routes: providers and the ordered targets of each slug. Customers never see any of it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::Amount;
use farebox_protocol::{
    AuthStyle, CallKind, ChatLimit, Classes, Family, TargetFit, WirePath, address, translate,
};
use farebox_toml::HiddenText;

use super::{LimitBinds, Preset, Price, ServiceWords, Speeds, TargetAbilities};

/// The ordered targets of one slug, and how they are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The public name that this route serves.
    pub slug: String,
    /// What happens upstream when the customer leaves.
    pub on_disconnect: OnDisconnect,
    /// In fallback order; never empty.
    pub targets: Vec<Target>,
    /// Extra tries on one target for a request that was provably not sent.
    pub retry: u32,
    /// When a target's breaker opens, and for how long.
    pub breaker: BreakerPolicy,
    /// Whether callers of families that no target speaks are served by translation.
    pub translate: bool,
    /// Which targets are asked first.
    pub prefer: Prefer,
    /// The call that its model is for: then it serves no family.
    pub call: Option<CallKind>,
}

/// Which targets of a route are asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// Those that speak the caller's family, then the order.
    Family,
    /// In the order of the file.
    Order,
}

/// How a route serves callers of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedAs {
    /// Some target speaks it and gets the caller's bytes.
    Direct,
    /// Only by translation.
    Translated,
}

impl ServedAs {
    /// The word used in lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Translated => "translated",
        }
    }
}

impl Route {
    /// The targets that can serve callers of a family, in the order in which they are asked, each with a family for the request. A
    /// foreign target appears once for each family that it speaks: the first one that can carry the request is used. Those of a call are
    /// asked as the caller's family.
    pub fn candidates(&self, caller: Family) -> Vec<(&Target, Family)> {
        if let Some(call) = self.call {
            let serving = |target: &&Target| target.provider.speaks.contains(&WirePath::Call(call));
            let targets = self.targets.iter().filter(serving);
            return targets.map(|target| (target, caller)).collect();
        }
        let mut found = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            let provider = &target.provider;
            if provider.speaks_family(caller) {
                found.push((target, caller));
            } else if self.translate {
                let into = provider
                    .families()
                    .filter(|family| translate::is_translated(caller, *family));
                found.extend(into.map(|family| (target, family)));
            }
        }
        if self.prefer == Prefer::Family {
            found.sort_by_key(|(_, family)| *family != caller);
        }
        found
    }

    /// The same, with targets of one family behind all others.
    pub fn candidates_with_last(
        &self,
        caller: Family,
        last: Option<Family>,
    ) -> Vec<(&Target, Family)> {
        let mut found = self.candidates(caller);
        found.sort_by_key(|(_, family)| Some(*family) == last);
        found
    }

    /// Whether requests may go to more than one place.
    pub fn has_a_choice(&self) -> bool {
        match self.targets.as_slice() {
            [only] => only.provider.keys.accounts() > 1,
            _ => true,
        }
    }

    /// How callers of a family are served; `None` if they are not.
    pub fn serves(&self, caller: Family) -> Option<ServedAs> {
        if self.call.is_some() {
            return None;
        }
        let candidates = self.candidates(caller);
        if candidates.iter().any(|(_, family)| *family == caller) {
            return Some(ServedAs::Direct);
        }
        (!candidates.is_empty()).then_some(ServedAs::Translated)
    }
}

/// What a translation from one family to another leaves out, and what it refuses: names of fields.
pub fn lost_between(from: Family, to: Family) -> (Vec<&'static str>, Vec<&'static str>) {
    translate::fates::pair_losses(from, to)
}

/// A provider and its name for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Where it runs: address, key and limits.
    pub provider: Arc<Provider>,
    /// The provider's name for the model.
    pub model: String,
    /// Its abilities beyond the cautious defaults, for translated requests.
    pub abilities: TargetAbilities,
    /// The operator's cost, if known.
    pub cost: Option<Arc<Price>>,
    /// Its provider's list price, if the library knows it.
    pub list: Option<Arc<Price>>,
    /// The fields of classes that it pins; its provider's if `None`.
    pub pin: Option<Vec<&'static str>>,
    /// What it takes.
    pub fit: Arc<TargetFit>,
    /// What an output limit bounds there; `None` at a hosted service of which nobody says it.
    pub limit: Option<LimitBinds>,
    /// Whether it stops, and stops billing, when its stream is closed.
    pub stops: bool,
    /// How fast it is, as far as somebody names it.
    pub speeds: Speeds,
}

impl Target {
    /// Tokens a second in a class, by the target, its provider or the library.
    pub fn speed(&self, class: Classes) -> Option<u32> {
        self.speeds.of(class)
    }

    /// The same target, which is not sent what stands at a path.
    #[must_use]
    pub(crate) fn without(&self, path: String) -> Self {
        let mut fit = TargetFit::clone(&self.fit);
        fit.drop.push(path);
        Self {
            fit: Arc::new(fit),
            ..self.clone()
        }
    }

    /// `provider/model`: its name in the journal, the log and the metrics.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider.name, self.model)
    }
}

/// What happens upstream when the customer leaves before the stop reason was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    /// The upstream is stopped at once; input and metered output are charged.
    Cancel,
    /// The upstream is read to its end; real usage is charged.
    Drain,
}

/// When a target's breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Failures in a row.
    pub failures: u32,
    /// How long it stays open before one trial.
    pub open: Duration,
}

/// A service that runs models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Its name in the file.
    pub name: String,
    /// Where it listens, or that it is simulated.
    pub endpoint: Endpoint,
    /// Whether it may be given addresses to fetch: one in a private network may not, unless the operator says so.
    pub takes_urls: bool,
    /// Families and calls that it serves.
    pub speaks: Vec<WirePath>,
    /// Its accounts; none only for a provider that needs no key.
    pub keys: ProviderKeys,
    /// How it expects its key; the family's default when `None`.
    pub auth: Option<AuthStyle>,
    /// Put behind every address, as Azure's dated versions want it.
    pub query: Vec<(String, String)>,
    /// The way there.
    pub proxy: ProxyChoice,
    /// Extra request headers.
    pub headers: Vec<(String, HiddenText)>,
    /// How long connecting, the first frame, each pause and a whole answer may take.
    pub timeouts: Timeouts,
    /// Most concurrent requests of one account.
    pub max_concurrent: Option<u32>,
    /// Most tokens of one account in a minute.
    pub max_tokens_per_minute: Option<u64>,
    /// What our own requests to one of its targets may cost in a day.
    pub probe_budget: Amount,
    /// The chat field in which an output limit is inserted.
    pub chat_limit: ChatLimit,
    /// Whether its chat/responses usage counts reasoning outside the output.
    pub reasoning_outside: bool,
    /// The known service that it is.
    pub preset: Option<&'static Preset>,
    /// What is said of the fields of requests.
    pub fields: ProviderFields,
    /// Members that it may add to an answer, and that customers see.
    pub pass_answer: Arc<[String]>,
    /// `anthropic-beta` flags that are refused; one that ends in `*` matches every flag with that prefix.
    pub refuse_beta: Vec<String>,
    /// What its table says of the service.
    pub words: ServiceWords,
}

impl Provider {
    /// The families that it serves, in the order of the file.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        self.speaks.iter().filter_map(|path| path.family())
    }

    /// A call that it serves.
    pub(super) fn call(&self) -> Option<CallKind> {
        self.speaks.iter().find_map(|path| path.call())
    }

    /// Whether it serves a family.
    pub fn speaks_family(&self, family: Family) -> bool {
        self.families().any(|spoken| spoken == family)
    }
}

/// A provider's keys. Each stands for an account, whose number is its place here: a key that is replaced by another one keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderKeys {
    all: Vec<ProviderKey>,
    /// What keeps its account.
    pub by: KeysBy,
}

/// One key of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderKey {
    /// Never printed; read from the environment or a file.
    pub secret: HiddenText,
    /// Its share of the conversations, compared with the other keys'.
    pub weight: u32,
}

/// What keeps its account at a provider with several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysBy {
    /// A conversation, because prompt caches belong to accounts.
    Conversation,
    /// Nothing: each request is given one anew.
    Request,
}

impl Default for ProviderKeys {
    fn default() -> Self {
        Self::new(Vec::new(), KeysBy::Conversation)
    }
}

impl ProviderKeys {
    pub(super) fn new(all: Vec<ProviderKey>, by: KeysBy) -> Self {
        Self { all, by }
    }

    /// How many accounts there are: a provider without a key counts as one.
    pub fn accounts(&self) -> usize {
        self.all.len().max(1)
    }
}

impl Deref for ProviderKeys {
    type Target = [ProviderKey];

    fn deref(&self) -> &[ProviderKey] {
        &self.all
    }
}

/// What a provider's table says about the fields of requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderFields {
    /// Top-level fields that it accepts although no table of the family knows them.
    pub pass: Vec<String>,
    /// Fields that are left out: paths of names.
    pub drop: Vec<String>,
    /// Fields of classes that are pinned to the standard.
    pub pin: Vec<&'static str>,
    /// Where it is sent an id of each customer; nowhere unless its table says so.
    pub customer_id: Vec<(WirePath, &'static str)>,
}

impl ProviderFields {
    /// The field in which it is sent an id of the customer, on one of its paths.
    pub fn customer_field(&self, path: WirePath) -> Option<&'static str> {
        let mut all = self.customer_id.iter();
        all.find(|(of, _)| *of == path).map(|(_, field)| *field)
    }
}

/// Whether requests to a provider go through an HTTP proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The environment's (`HTTPS_PROXY`, `NO_PROXY`), for addresses outside private networks.
    Environment,
    /// None.
    Direct,
    /// This one; its address may contain a password.
    Through(HiddenText),
}

/// The address of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// The built-in provider: deterministic answers, exact usage.
    Simulated,
    /// The base URL before `/chat/completions`, without a trailing slash.
    Http(String),
}

impl Endpoint {
    /// Whether it is outside private networks, by the text of its address. The built-in provider fetches nothing.
    pub fn is_public(&self) -> bool {
        match self {
            Self::Simulated => true,
            Self::Http(url) => address::refusal(url).is_none(),
        }
    }
}

/// Timeouts of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// How long a connection may take to open, TLS included.
    pub connect: Duration,
    /// Until the first frame of a stream.
    pub first_byte: Duration,
    /// Between two reads of a stream.
    pub idle: Duration,
    /// For a whole answer.
    pub whole: Duration,
}

/// Request headers that only the gateway sets: credentials, and those of the connection. Neither an operator's `headers` nor a
/// customer's request can override them.
pub const RESERVED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
];
