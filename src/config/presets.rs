//! Known services: the meaning of `kind` in a provider's table, and what `farebox init --provider` writes.
//!
//! Everything about a vendor is data, in `presets.toml`. The starter files of every preset pass `farebox check`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

use farebox_protocol::{AuthStyle, ChatLimit, CostField, END_USER_FIELDS, WirePath};
use farebox_toml::KEYS;
use serde::{Deserialize, Serialize};

use super::library::{Library, SourcedFact};
use super::starter::Starter;

/// The words for `auth`.
pub(super) const AUTH_STYLES: [(&str, AuthStyle); 3] = [
    ("bearer", AuthStyle::Bearer),
    ("x-api-key", AuthStyle::ApiKey),
    ("api-key", AuthStyle::PlainApiKey),
];
/// The words for `told_cost`.
const COST_FIELDS: [(&str, CostField); 2] = [
    ("cost", CostField::Usd),
    ("cost_in_usd_ticks", CostField::Ticks),
];
/// The words for `chat_limit`.
pub(super) const CHAT_LIMITS: [(&str, ChatLimit); 2] = [
    ("max_completion_tokens", ChatLimit::MaxCompletionTokens),
    ("max_tokens", ChatLimit::MaxTokens),
];

fn meaning<T: Copy>(words: &[(&str, T)], said: Option<&str>) -> Option<T> {
    let (_, meant) = words.iter().find(|(word, _)| Some(*word) == said)?;
    Some(*meant)
}

/// One known service. It is serialised as the settings that it stands for, and facts that have no key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// The value of `kind`.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Where its wire was read, as its strict double cites it.
    pub reference: String,
    /// The base URL, before `/chat/completions`, `/responses`, `/messages`.
    pub base_url: String,
    speaks: Vec<String>,
    auth: Option<String>,
    chat_limit: Option<String>,
    reasoning: Option<String>,
    /// `anthropic-beta` flags that are refused.
    #[serde(default)]
    pub refuse_beta: Vec<String>,
    /// Request fields that it accepts although no table knows them; they cost nothing.
    #[serde(default)]
    pub pass: Vec<String>,
    /// Members that it adds to answers and that say nothing about the operator's account.
    #[serde(default)]
    pub pass_answer: Vec<String>,
    /// Hints that it refuses by their names, and that are left out.
    #[serde(default)]
    pub leave_out: Vec<String>,
    /// The members of an assistant's turn that its chat API knows; empty if it takes any.
    #[serde(default)]
    pub turn_members: Vec<String>,
    /// It wants the first call of each turn signed.
    #[serde(default)]
    pub signed_calls: bool,
    /// It refuses optional members that are `null`.
    #[serde(default)]
    pub refuses_nulls: bool,
    /// It refuses the marks of the prompt cache that other services have.
    #[serde(default)]
    pub refuses_marks: bool,
    /// Its chat API has the `reasoning` of router clients.
    #[serde(default)]
    pub takes_reasoning: bool,
    /// Fields of classes that are pinned to the standard, because its accounts can be set to something else.
    #[serde(default)]
    pin: BTreeMap<String, String>,
    /// The fields in which it wants to be told for whom a request is, by its paths.
    #[serde(default)]
    customer_id_in: BTreeMap<String, String>,
    /// The member of a usage in which it tells what an answer costs; `None` if it tells none.
    told_cost: Option<SourcedFact<String>>,
    /// It bills cache writes above input.
    #[serde(default)]
    pub bills_writes: bool,
    /// The variable that usually contains its key; `None` if it needs no key.
    #[serde(skip_serializing)]
    pub key: Option<String>,
    price_list: Option<String>,
    /// How to start it, if the operator runs it.
    pub note: Option<String>,
    /// The model that a starter file publishes: the library's, for hosted services.
    #[serde(default, skip_serializing)]
    pub model: Starter,
}

#[derive(Debug, Deserialize)]
struct PresetTable {
    preset: Vec<Preset>,
}

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let table = toml::from_str::<PresetTable>(include_str!("presets.toml"));
    let mut presets = table.map(|table| table.preset).unwrap_or_default();
    for preset in presets
        .iter_mut()
        .filter(|preset| preset.model.slug.is_empty())
    {
        let offer = Library::shipped().at(&preset.name).next();
        preset.model = offer.map(|offer| offer.model.clone()).unwrap_or_default();
    }
    presets
});

/// Every preset, in the order of the table.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The preset of this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

impl Preset {
    /// Fields of classes that are pinned to the standard.
    pub fn pin(&self) -> Vec<&'static str> {
        let is_pinned = |field: &&str| self.pin.contains_key(*field);
        KEYS.pin.names().filter(is_pinned).collect()
    }

    /// Where it is sent an id of each customer, if the operator has that.
    pub fn customer_id_in(&self) -> Vec<(WirePath, &'static str)> {
        let field = |path: WirePath| {
            let said = self.customer_id_in.get(path.name())?;
            END_USER_FIELDS.into_iter().find(|field| field == said)
        };
        WirePath::all()
            .filter_map(|path| Some((path, field(path)?)))
            .collect()
    }

    /// Whether somebody else runs it.
    pub fn is_hosted(&self) -> bool {
        self.key.is_some()
    }

    /// Families and calls that it serves.
    pub fn speaks(&self) -> Vec<WirePath> {
        let says = |path: &WirePath| self.speaks.iter().any(|name| name == path.name());
        WirePath::all().filter(says).collect()
    }

    /// How it expects its key; the family's default when `None`.
    pub fn auth(&self) -> Option<AuthStyle> {
        meaning(&AUTH_STYLES, self.auth.as_deref())
    }

    /// The chat field in which it reads an output limit.
    pub fn chat_limit(&self) -> ChatLimit {
        meaning(&CHAT_LIMITS, self.chat_limit.as_deref()).unwrap_or(ChatLimit::AsDeclared)
    }

    /// The member of a usage in which it tells what an answer costs.
    pub fn cost_field(&self) -> Option<CostField> {
        let told = self.told_cost.as_ref();
        meaning(&COST_FIELDS, told.map(|fact| fact.is.as_str()))
    }

    /// Whether its chat/responses usage counts reasoning outside the output.
    pub fn reasoning_outside(&self) -> bool {
        self.reasoning.as_deref() == Some("outside")
    }

    /// A starter catalog with one model of this service.
    pub fn starter_catalog(&self) -> String {
        let model = &self.model;
        let prices = self.prices_note();
        let block = model.block(&model.slug, &[], str::to_owned);
        format!(
            "{CATALOG_HEAD}\
             {prices}\n\
             \n\
             {block}\
             \n\
             # For the next model: uncomment this, fill it in, and add its [[route]] to routes.toml (save that file first), or let\n\
             # `farebox add` write one that the library knows (`farebox library`).\n\
             #\n\
             # [[model]]\n\
             # model             = \"…\"\n\
             # slug              = \"…\"\n\
             # provider          = \"{provider}\"\n\
             # best_path         = \"{best_path}\"\n\
             # best_environments = [\"backend\"]\n\
             # price             = {{ {blank} }}\n\
             # capabilities      = {capabilities}\n\
             # limits            = {limits}\n",
            provider = model.provider,
            best_path = model.best_path,
            blank = model.rates(|_| "…".to_owned()),
            capabilities = model.capabilities(),
            limits = model.limits(),
        )
    }

    /// The comment above the prices.
    fn prices_note(&self) -> String {
        match &self.price_list {
            Some(list) => format!(
                "# Prices are what your customers pay: fill in yours. The one below was {}'s own list price when this file was\n\
                 # made; today's are at {list}",
                self.title
            ),
            None => {
                "# Prices are what your customers pay: fill in yours. The one below is an example."
                    .to_owned()
            }
        }
    }

    /// A starter routes file with this service and its one model.
    pub fn starter_routes(&self) -> String {
        let name = self.provider_name();
        let mut text = format!(
            "{ROUTES_HEAD}# `kind` stands for the base URL, the families and other settings of this service (`farebox check --explain {name}`\n\
             # prints them); a field written here takes precedence.\n"
        );
        if let Some(note) = &self.note {
            let _ = writeln!(text, "# {note}");
        }
        text + &self.provider_block() + &self.route_block(&self.model, &self.model.slug, &name)
    }

    /// `[provider.NAME]` with where its key comes from.
    pub fn provider_block(&self) -> String {
        let name = self.provider_name();
        let mut text = format!("[provider.{name}]\nkind     = \"{}\"\n", self.name);
        // A service with an address for each customer, or on a machine of the operator's.
        if self.key.is_none() || self.base_url.contains("RESOURCE") {
            let _ = writeln!(text, "base_url = \"{}\"", self.base_url);
        }
        if !self.customer_id_in.is_empty() {
            text.push_str("customer_id = \"hashed\"   # tells customers apart there, without their names: one may be banned instead of you\n");
        }
        if let Some(key) = &self.key {
            // On a separate line: a report about the key shows its line, and hides comments that mention secrets.
            let _ = writeln!(
                text,
                "key      = {{ env = \"{key}\" }}\n# or, read again on reload:\n# key    = {{ file = \"/run/secrets/{name}\" }}"
            );
        }
        text
    }

    /// `[[route]]` of one of its models, at a provider of this name.
    pub fn route_block(&self, model: &Starter, slug: &str, provider: &str) -> String {
        let list = Library::current().find(&self.name, &model.upstream);
        let cost = match list {
            Some(offer) if offer.is_verified("price") => "cost = \"library\", ",
            _ => "",
        };
        if model.call().is_some() {
            let cost = cost.trim_end_matches(", ");
            let comma = if cost.is_empty() { "" } else { ", " };
            return format!(
                "\n[[route]]\nslug    = \"{slug}\"\ntargets = [   # order = fallback order\n  \
                 {{ provider = \"{provider}\", model = \"{}\"{comma}{cost} }},\n]\n",
                model.upstream
            );
        }
        format!(
            "\n[[route]]\nslug    = \"{slug}\"\ntargets = [   # order = fallback order; abilities: what it can do with requests of other families\n  \
             {{ provider = \"{provider}\", model = \"{}\", {cost}abilities = {{ {} }} }},\n]\n",
            model.upstream, model.abilities
        )
    }

    /// Its table name in a starter file.
    pub fn provider_name(&self) -> String {
        self.name.replace('.', "-")
    }
}

/// What stands above the models of a catalog.
pub const CATALOG_HEAD: &str = "\
# catalog.toml: what customers see and pay. Where requests go is in routes.toml.
#
# Each [[model]] is one row of the canonical table (`farebox models`). Prices are USD per 1,000,000 tokens, written as strings
# with at most six decimals: \"3.00\". A free rate is written \"0\". Check both files with `farebox check`; a running gateway takes
# a saved change within a second, and keeps the last good files when a change has a mistake. docs/config.md has the fields.
#
";

/// What stands above the providers and routes.
pub const ROUTES_HEAD: &str = "\
# routes.toml: where requests go. Customers never see it, and it never holds a secret.
#
# Check it with `farebox check` (`--no-secrets` where the secrets are not). When you publish a model, save this file first and
# the catalog second: a route without a model is only a warning. docs/config.md has the fields.

";
