//! Routes: providers and the ordered targets of each slug. Customers never see any of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use farebox_protocol::{AuthStyle, ChatLimit, Family, translate};

use super::{Price, TargetAbilities};

/// Ordered targets of one slug and how they are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Whose.
    pub slug: String,
    /// What happens upstream when the customer leaves.
    pub on_disconnect: OnDisconnect,
    /// In fallback order; never empty.
    pub targets: Vec<Target>,
    /// Extra tries on one target for a request that was provably not sent.
    pub retry: u32,
    /// When a target rests.
    pub breaker: BreakerPolicy,
    /// Whether callers of families that no target speaks are served by translation.
    pub translate: bool,
    /// Which targets are asked first.
    pub prefer: Prefer,
}

/// Which targets of a route are asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// Those that speak the caller's family, then the order.
    Family,
    /// As they stand in the file.
    Order,
}

/// How a route serves callers of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// Some target speaks it: the caller's bytes go there.
    Direct,
    /// Only by translation.
    Translated,
}

impl Served {
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
    /// The targets that can serve callers of a family, in the order they are asked, each with a family it can be asked in. A
    /// foreign target stands there once for each family that it speaks: it is asked in the first that carries the request.
    #[must_use]
    pub fn candidates(&self, caller: Family) -> Vec<(&Target, Family)> {
        let mut found = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            let speaks = &target.provider.speaks;
            if speaks.contains(&caller) {
                found.push((target, caller));
            } else if self.translate {
                let into = speaks.iter().copied().filter(|family| translate::is_translated(caller, *family));
                found.extend(into.map(|family| (target, family)));
            }
        }
        if self.prefer == Prefer::Family {
            found.sort_by_key(|(_, family)| *family != caller);
        }
        found
    }

    /// How callers of a family are served; `None` when they are not.
    #[must_use]
    pub fn serves(&self, caller: Family) -> Option<Served> {
        let candidates = self.candidates(caller);
        if candidates.iter().any(|(_, family)| *family == caller) {
            return Some(Served::Direct);
        }
        (!candidates.is_empty()).then_some(Served::Translated)
    }
}

/// What a translation from one family to another leaves out, and what it refuses: names of fields.
#[must_use]
pub fn lost_between(from: Family, to: Family) -> (Vec<&'static str>, Vec<&'static str>) {
    translate::fates::pair_losses(from, to)
}

/// A provider and the model name it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Who serves.
    pub provider: Arc<Provider>,
    /// What it calls the model.
    pub model: String,
    /// What it can do beyond the careful defaults, for translated requests.
    pub abilities: TargetAbilities,
    /// What the operator pays for it, where that is known.
    pub cost: Option<Arc<Price>>,
}

impl Target {
    /// `provider/model`: what it is called in the journal, the log and the metrics.
    #[must_use]
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
    /// Rest before one trial.
    pub open: Duration,
}

/// A service that runs models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Its name in the file.
    pub name: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Families it serves.
    pub speaks: Vec<Family>,
    /// Used in turn; empty only for a provider that needs none.
    pub keys: Vec<ProviderSecret>,
    /// How it wants its key; the family's default when `None`.
    pub auth: Option<AuthStyle>,
    /// Extra request headers.
    pub headers: Vec<(String, ProviderSecret)>,
    /// Waits.
    pub timeouts: Timeouts,
    /// Most requests at once.
    pub max_concurrent: Option<u32>,
    /// The chat field in which an output limit is inserted.
    pub chat_limit: ChatLimit,
    /// Its chat/responses usage counts reasoning outside the output.
    pub reasoning_outside: bool,
    /// Top-level request fields that it takes although no table of the family knows them.
    pub pass: Vec<String>,
    /// `anthropic-beta` flags that are refused; one that ends in `*` stands for all that begin so.
    pub refuse_beta: Vec<String>,
}

/// Where a provider is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// The built-in provider: deterministic answers, exact usage.
    Simulated,
    /// What stands before `/chat/completions`, without a slash at the end.
    Http(String),
}

/// Waits of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To a connection.
    pub connect: Duration,
    /// To the first frame of a stream.
    pub first_byte: Duration,
    /// Between two reads of a stream.
    pub idle: Duration,
    /// For a whole answer.
    pub whole: Duration,
}

/// A secret of the operator's. `Debug` never prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSecret(pub(super) String);

impl ProviderSecret {
    /// The secret in the clear, for the request that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProviderSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ProviderSecret(…)")
    }
}
