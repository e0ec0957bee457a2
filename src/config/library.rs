//! The library: known models at known services, with list prices, limits and abilities, each with its date and source.
//!
//! It is data, in `library.toml`, or in a newer file of the same form (`--library FILE`). Nothing in it that is `unverified` becomes
//! a price or a cost.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use serde::{Deserialize, Serialize};

use super::Source;
use super::service::{LimitBinds, Speeds};
use super::starter::Starter;

/// Known models at known services, in the order of the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// What is known of services whatever the model, by `kind`.
    #[serde(default)]
    service: BTreeMap<String, Service>,
    offer: Vec<Offer>,
}

/// What is known of a service whatever the model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// What an output limit bounds.
    pub limit: Option<SourcedFact<LimitBinds>>,
    /// Whether it stops, and stops billing, when its stream is closed.
    pub stops: Option<SourcedFact<bool>>,
    /// What nobody could find.
    #[serde(default)]
    pub unverified: Vec<String>,
}

/// Something that was looked up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SourcedFact<T> {
    /// What was found.
    pub is: T,
    /// When.
    pub date: String,
    /// Where.
    pub source: String,
}

/// One model at one service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The service, a `kind`.
    pub service: String,
    /// When its facts were looked up.
    pub date: String,
    /// The page where they were found.
    pub source: String,
    /// What could not be found, or contradicts itself.
    #[serde(default)]
    pub unverified: Vec<String>,
    /// What the service takes for each call of its own tools.
    pub calls: Option<Calls>,
    /// How fast the service runs the model.
    pub speed: Option<SourcedFact<Speeds>>,
    /// The model as a catalog publishes it, with the list price.
    pub model: Starter,
}

/// What a service takes for each call of its own tools. Nothing sells them yet, so `farebox add` does not write them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// When this was looked up.
    pub date: String,
    /// Where.
    pub source: String,
    /// USD for one call of each tool.
    pub price: BTreeMap<String, String>,
}

static SHIPPED: LazyLock<Library> =
    LazyLock::new(|| toml::from_str(include_str!("library.toml")).unwrap_or_default());
static CHOSEN: OnceLock<Library> = OnceLock::new();

impl Library {
    /// The one that this version brings.
    pub(super) fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// Reads another one for this process.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a library.
    pub fn choose(file: &Path) -> Result<(), String> {
        let name = file.display();
        let source = Source::read(file).map_err(|error| format!("{name}: {}", error.problem))?;
        let library: Self =
            toml::from_str(&source.text).map_err(|error| format!("{name}: {}", error.message()))?;
        CHOSEN
            .set(library)
            .map_err(|_| "there is one library".to_owned())
    }

    /// The one in use.
    #[must_use]
    pub fn current() -> &'static Self {
        CHOSEN.get().unwrap_or_else(Self::shipped)
    }

    /// What is known of a service. A library from before there were such facts leaves them to the one that this version brings.
    pub fn service(&self, kind: &str) -> Option<&Service> {
        let known = self.service.get(kind);
        known.or_else(|| Self::shipped().service.get(kind))
    }

    /// Everything in it.
    pub fn offers(&self) -> &[Offer] {
        &self.offer
    }

    /// What a service offers, its usual model first.
    pub fn at(&self, service: &str) -> impl Iterator<Item = &Offer> {
        self.offer
            .iter()
            .filter(move |offer| offer.service == service)
    }

    /// A service's offer by its own name for the model.
    pub fn find(&self, service: &str, upstream: &str) -> Option<&Offer> {
        self.at(service)
            .find(|offer| offer.model.upstream == upstream)
    }
}

impl Offer {
    /// `openai/gpt-5.4-mini`, as `farebox add` takes it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.service, self.model.slug)
    }

    /// Whether a fact was found.
    pub fn is_verified(&self, fact: &str) -> bool {
        !self.unverified.iter().any(|unverified| unverified == fact)
    }
}
