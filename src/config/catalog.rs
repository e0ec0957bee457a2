//! The catalog: the canonical slug table and what each model costs.
//!
//! A [`Model`] is complete and consistent: defaults are filled in, and it has its route. `read/catalog.rs` parses the file; nothing
//! here can fail.
//!
//! Rows of docs/interface.md: `one_slug_for_each_model`, `slug_is_copied_exactly`, `name_of_a_provider`, `alias_that_is_guessed`,
//! `slug_with_a_typo`, `slug_that_is_stale`.

use std::collections::HashMap;
use std::sync::Arc;

use farebox_ledger::{Amount, Defaults, PlanTerms};
use farebox_protocol::translate::Abilities;
use farebox_protocol::{CallKind, Family, WirePath};
use farebox_toml::{did_you_mean, listed, nearest_models};

use super::{Price, Route, Shop, Target};

/// Everything on sale, by slug and alias.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Published models in the order of the file.
    pub models: Vec<Arc<Model>>,
    /// Models by slug and by alias.
    pub(super) by_name: HashMap<String, Arc<Model>>,
    /// Slugs no longer sold.
    pub retired: Vec<Retired>,
    /// Plans in the order of the file.
    pub plans: Vec<PlanTerms>,
    /// Price lists in the order of the file.
    pub lists: Vec<PriceList>,
    /// What keys and customers have that set nothing of their own. The ledger's are those that bind: of a fleet, the newest that was loaded.
    pub defaults: Defaults,
    /// Who sells, as dashboard and statements name the seller.
    pub shop: Arc<Shop>,
    /// The cheapest input token of all that cost something; zero if none does.
    pub cheapest_input: Amount,
}

/// The catalog at other prices, for the customers who have it.
#[derive(Debug)]
pub struct PriceList {
    /// Its name.
    pub name: String,
    /// Whether it offers only the models that it names.
    pub only: bool,
    /// What it offers, at its prices.
    pub catalog: Catalog,
}

/// One published model and its route.
#[derive(Debug, Clone)]
pub struct Model {
    /// Column "model".
    pub name: String,
    /// Column "customer slug": what callers send.
    pub slug: String,
    /// Column "provider".
    pub provider: String,
    /// Column "best path".
    pub best_path: WirePath,
    /// Column "best environments".
    pub best_environments: Vec<String>,
    /// Column "service price".
    pub price: Price,
    /// Its capabilities besides text.
    pub capabilities: Vec<Capability>,
    /// Context and output in tokens, with defaults filled in.
    pub limits: ModelLimits,
    /// Accepted names that are never listed.
    pub aliases: Vec<String>,
    /// Sold below what its targets cost, on purpose.
    pub below_cost: bool,
    /// The targets that serve it, in the order in which they are tried.
    pub route: Arc<Route>,
}

/// A model's capabilities besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Reads pictures.
    Vision,
    /// Calls tools.
    Tools,
    /// Streams its answers.
    Streaming,
    /// May reason before it answers, whether asked to or not.
    Reasoning,
    /// Serves a call, and can do nothing else.
    Call(CallKind),
}

/// Sizes of a model; defaults are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// Tokens of input and output together.
    pub context: u64,
    /// Most output tokens; none for a call.
    pub max_output: u32,
    /// Most reasoning tokens where reasoning comes beside an output limit.
    pub max_reasoning: Option<u32>,
    /// Tokens a second where its targets, their providers and the library name no speed.
    pub speed: Option<u32>,
    /// Largest inline picture, bytes.
    pub image_bytes: Option<u64>,
    /// Tokens of one picture, whatever its size, if the published size rules do not apply.
    pub picture_tokens: Option<u64>,
    /// The most tools that a request may offer; `None` sets no limit.
    pub tools: Option<u32>,
}

/// A slug no longer sold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired {
    /// The old slug.
    pub slug: String,
    /// When it ended, `YYYY-MM-DD`.
    pub since: String,
    /// What to use instead.
    pub replacement: Option<String>,
}

/// The result of looking up a model name.
#[derive(Debug)]
pub enum Lookup<'a> {
    /// A published slug or alias.
    Found(&'a Arc<Model>),
    /// A retired slug, and what may be named in its place.
    Retired(&'a Retired, Option<&'a str>),
    /// Unknown; up to three similar published slugs, best match first.
    Unknown(Vec<&'a str>),
}

impl Catalog {
    /// The same with these models, without price lists.
    pub(super) fn with(&self, models: Vec<Arc<Model>>) -> Self {
        let mut by_name = HashMap::with_capacity(models.len());
        for model in &models {
            for name in std::iter::once(&model.slug).chain(&model.aliases) {
                by_name.insert(name.clone(), Arc::clone(model));
            }
        }
        // Of those that cost something: beside a model that is free any body would be affordable.
        let inputs = models.iter().map(|model| model.price.base.input);
        let cheapest_input = inputs
            .filter(|input| *input > Amount::ZERO)
            .min()
            .unwrap_or_default();
        Self {
            models,
            by_name,
            retired: self.retired.clone(),
            plans: self.plans.clone(),
            lists: Vec::new(),
            defaults: self.defaults.clone(),
            shop: Arc::clone(&self.shop),
            cheapest_input,
        }
    }

    /// What customers with this price list are offered, or with none; `None` if it is not here.
    pub fn offered_to(&self, list: Option<&str>) -> Option<&Self> {
        let Some(name) = list else {
            return Some(self);
        };
        let list = self.lists.iter().find(|list| list.name == name)?;
        Some(&list.catalog)
    }

    /// Names of lists that another catalog does not have.
    pub(super) fn lists_not_in(&self, other: &Self) -> Vec<&str> {
        let names = self.lists.iter().map(|list| &*list.name);
        names.filter(|name| other.list(name).is_err()).collect()
    }

    /// The lists that another catalog has, too: name, and what each offers.
    pub(super) fn lists_with<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a str, &'a Self, &'a Self)> {
        self.lists.iter().filter_map(|list| {
            let there = other.list(&list.name).ok()?;
            Some((&*list.name, &list.catalog, &there.catalog))
        })
    }

    /// Whether a model of a list is this catalog's, at its price.
    pub(super) fn shares(&self, model: &Arc<Model>) -> bool {
        let own = self.get(&model.slug);
        own.is_some_and(|own| Arc::ptr_eq(own, model))
    }

    /// A price list.
    ///
    /// # Errors
    /// That there is none of this name, and what to write instead.
    pub fn list(&self, name: &str) -> Result<&PriceList, String> {
        let found = self.lists.iter().find(|list| list.name == name);
        found.ok_or_else(|| {
            let names = self.lists.iter().map(|list| &*list.name);
            absent("price list", name, &names.collect::<Vec<_>>())
        })
    }

    /// Looks up a name: slug, alias, retired slug, or unknown.
    pub fn find(&self, name: &str) -> Lookup<'_> {
        self.find_among(name, |_| true)
    }

    /// Looks up a name sent by a customer, who is told only of published slugs that `may_use` names.
    pub fn find_among(&self, name: &str, may_use: impl Fn(&str) -> bool) -> Lookup<'_> {
        if let Some(model) = self.by_name.get(name) {
            return Lookup::Found(model);
        }
        match self.retired.iter().find(|retired| retired.slug == name) {
            Some(retired) => {
                let offered = |slug: &&str| self.by_name.contains_key(*slug) && may_use(slug);
                Lookup::Retired(retired, retired.replacement.as_deref().filter(offered))
            }
            None => {
                let slugs = self.models.iter().map(|model| model.slug.as_str());
                Lookup::Unknown(nearest_models(name, slugs.filter(|slug| may_use(slug))))
            }
        }
    }

    /// Why a name is no slug of a published model, and what to write instead; `None` if it is one.
    pub fn unsold(&self, name: &str) -> Option<String> {
        Some(match self.find(name) {
            Lookup::Found(model) if model.slug == name => return None,
            Lookup::Found(model) => {
                format!("`{name}` is an alias; write the slug, `{}`", model.slug)
            }
            Lookup::Retired(_, Some(slug)) => format!("`{name}` is retired; write `{slug}`"),
            Lookup::Retired(_, None) => format!("`{name}` is retired"),
            Lookup::Unknown(near) => match near.first() {
                Some(near) => {
                    format!("the catalog does not publish `{name}`; did you mean `{near}`?")
                }
                None => format!(
                    "the catalog does not publish `{name}`; `farebox models` lists what it does"
                ),
            },
        })
    }

    /// What a plan sells.
    ///
    /// # Errors
    /// Why it is not sold, and what to write instead.
    pub fn plan(&self, name: &str) -> Result<&PlanTerms, String> {
        let Some(terms) = self.plans.iter().find(|plan| plan.name == name) else {
            let names = self.plans.iter().map(|plan| &*plan.name);
            return Err(absent("plan", name, &names.collect::<Vec<_>>()));
        };
        match self.is_dead(terms) {
            false => Ok(terms),
            true => Err(format!(
                "the plan `{name}` is not sold: all of its models are retired"
            )),
        }
    }

    /// Plans that are sold.
    pub fn sold_plans(&self) -> impl Iterator<Item = &PlanTerms> {
        self.plans.iter().filter(|terms| !self.is_dead(terms))
    }

    /// Plans that sell nothing, because all of their models are gone.
    pub fn dead_plans(&self) -> impl Iterator<Item = &PlanTerms> {
        self.plans.iter().filter(|terms| self.is_dead(terms))
    }

    fn is_dead(&self, terms: &PlanTerms) -> bool {
        let gone = |slugs: &Vec<String>| slugs.iter().all(|slug| self.get(slug).is_none());
        terms.models.as_ref().is_some_and(gone)
    }

    /// A published model by its slug or an alias.
    pub fn get(&self, name: &str) -> Option<&Arc<Model>> {
        self.by_name.get(name)
    }
}

/// That there is nothing of this name, and what there is.
fn absent(kind: &str, name: &str, names: &[&str]) -> String {
    match (did_you_mean(name, names), names) {
        (Some(near), _) => format!("the catalog has no {kind} `{name}`; did you mean `{near}`?"),
        (None, []) => format!("the catalog has no {kind} `{name}`, and no other"),
        (None, names) => format!(
            "the catalog has no {kind} `{name}`; it has {}",
            listed(names)
        ),
    }
}

impl PriceList {
    /// The models whose prices are this list's own, and not those of the catalog around.
    pub fn own<'a>(&'a self, around: &'a Catalog) -> impl Iterator<Item = &'a Arc<Model>> {
        let models = self.catalog.models.iter();
        models.filter(|model| !around.shares(model))
    }
}

impl Model {
    /// The same at another price.
    pub(super) fn at(&self, price: Price) -> Self {
        Self {
            price,
            ..self.clone()
        }
    }

    /// The abilities of a target of this model for requests of a family: the operator's settings, else the catalog's.
    pub fn abilities_of(&self, target: &Target, family: Family) -> Abilities {
        let (rates, known) = (&self.price.base, &target.fit.abilities);
        let careful = Abilities {
            limit_field: family.protocol().limit_field(target.fit.chat_limit, None),
            leave_out: known.leave_out.clone(),
            stops: known.stops,
            signed_calls: known.signed_calls,
            effort_with_tools: known.effort_with_tools,
            thinks_always: known.thinks_always,
            max_output: self.limits.max_output,
            top_k: known.top_k,
            vision: self.can(Capability::Vision),
            long_cache: rates.cache_write_1h.is_some(),
            ..Abilities::careful(family).of_reasoning(self.can(Capability::Reasoning), family)
        };
        let abilities = target.abilities.over(careful);
        // A cache mark is only worth setting if cache writes are priced: otherwise nothing is known of a cache.
        Abilities {
            auto_cache: abilities.auto_cache && rates.cache_write != rates.input,
            ..abilities
        }
    }

    /// Whether it has a capability.
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Vision,
        Self::Tools,
        Self::Streaming,
        Self::Reasoning,
        Self::Call(CallKind::Embeddings),
        Self::Call(CallKind::Rerank),
    ];

    /// The call that a model with this capability is for.
    #[must_use]
    pub fn call(self) -> Option<CallKind> {
        match self {
            Self::Call(call) => Some(call),
            Self::Vision | Self::Tools | Self::Streaming | Self::Reasoning => None,
        }
    }

    /// The word used in the catalog and in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Tools => "tools",
            Self::Streaming => "streaming",
            Self::Reasoning => "reasoning",
            Self::Call(call) => call.name(),
        }
    }
}
