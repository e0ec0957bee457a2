//! A model as a starter file, or `farebox add`, publishes it.

use std::collections::BTreeMap;

use farebox_protocol::CallKind;
use farebox_toml::KEYS;
use serde::Deserialize;

/// A model that can be published.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Starter {
    /// The slug for callers.
    pub slug: String,
    /// The display name.
    pub title: String,
    /// Its vendor, as customers read it.
    pub provider: String,
    /// The service's name for it.
    pub upstream: String,
    /// The family in which it is at its best.
    pub best_path: String,
    price: BTreeMap<String, String>,
    /// Prices of requests with a larger input.
    #[serde(default)]
    tiers: Vec<StarterTier>,
    classes: Option<ClassPrices>,
    /// Tokens of input and output together.
    pub context: u32,
    /// Most tokens of output; a call has none.
    #[serde(default)]
    pub output: u32,
    /// Most tokens of reasoning, where they come beside the output.
    pub reasoning: Option<u32>,
    /// `picture_tokens`, if the rules by size count less than the model does.
    pub pictures: Option<u32>,
    capabilities: Vec<String>,
    /// `abilities` of the target, without their braces.
    #[serde(default)]
    pub abilities: String,
}

/// The price of requests with a larger input.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct StarterTier {
    above_input: u32,
    price: BTreeMap<String, String>,
}

/// Prices by class, when and where they were looked up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassPrices {
    date: String,
    source: String,
    price: BTreeMap<String, Class>,
}

/// The factor of a class, alone or with the most input that it is sold for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Class {
    Times(String),
    Bounded { times: String, context: u32 },
}

impl Class {
    fn text(&self) -> String {
        match self {
            Self::Times(times) => format!("\"{times}\""),
            Self::Bounded { times, context } => {
                let context = underscored(*context);
                format!("{{ times = \"{times}\", context = {context} }}")
            }
        }
    }
}

impl Starter {
    /// The call that it is for, if it is.
    pub(super) fn call(&self) -> Option<CallKind> {
        CallKind::named(&self.best_path)
    }

    /// `[[model]]` under a slug, with rates as `fill` writes them.
    pub fn block(&self, slug: &str, aliases: &[&str], fill: impl Fn(&str) -> String) -> String {
        let aliases = match aliases {
            [] => String::new(),
            names => format!("aliases           = [\"{}\"]\n", names.join("\", \"")),
        };
        format!(
            "[[model]]\n\
             model             = \"{title}\"\n\
             slug              = {slug:<28} # what callers send\n\
             provider          = {owner:<28} # as customers read it\n\
             best_path         = {path:<28} # \"chat\", \"responses\" or \"messages\"\n\
             best_environments = [\"SDKs\", \"backend\"]\n\
             price             = {{ {price} }}\n\
             capabilities      = {capabilities}\n\
             limits            = {limits}\n\
             {aliases}",
            title = self.title,
            slug = format!("\"{slug}\""),
            owner = format!("\"{}\"", self.provider),
            path = format!("\"{}\"", self.best_path),
            price = self.price_text(fill),
            capabilities = self.capabilities(),
            limits = self.limits(),
        )
    }

    pub(super) fn capabilities(&self) -> String {
        format!("[\"{}\"]", self.capabilities.join("\", \""))
    }

    pub(super) fn limits(&self) -> String {
        let (context, output) = (underscored(self.context), underscored(self.output));
        let more = [
            ("max_reasoning", self.reasoning),
            ("picture_tokens", self.pictures),
        ];
        let more = more.into_iter().filter_map(|(name, tokens)| {
            let tokens = underscored(tokens?);
            Some(format!(", {name} = {tokens}"))
        });
        let more: String = more.collect();
        let output = match self.output {
            0 => String::new(),
            _ => format!(", max_output = {output}"),
        };
        format!("{{ context = {context}{output}{more} }}")
    }

    /// Its rates, each as `fill` writes it, in the order of a price list.
    pub(super) fn rates(&self, fill: impl Fn(&str) -> String) -> String {
        rates(&self.price, &fill)
    }

    /// Its whole price, without the braces.
    pub fn price_text(&self, fill: impl Fn(&str) -> String) -> String {
        let base = rates(&self.price, &fill);
        let tier = |tier: &StarterTier| {
            let (above, price) = (underscored(tier.above_input), rates(&tier.price, &fill));
            format!("{{ above_input = {above}, price = {{ {price} }} }}")
        };
        let classes = self.classes.as_ref().map(|classes| {
            let class = |(name, class): (&String, &Class)| format!("{name} = {}", class.text());
            let classes: Vec<String> = classes.price.iter().map(class).collect();
            format!(", classes = {{ {} }}", classes.join(", "))
        });
        let base = base + &classes.unwrap_or_default();
        match self.tiers.as_slice() {
            [] => base,
            tiers => {
                let tiers: Vec<String> = tiers.iter().map(tier).collect();
                format!("{base}, tiers = [{}]", tiers.join(", "))
            }
        }
    }

    /// When and where the prices of its classes were looked up.
    pub fn classes_source(&self) -> Option<(&str, &str)> {
        let classes = self.classes.as_ref()?;
        Some((&classes.date, &classes.source))
    }
}

fn rates(price: &BTreeMap<String, String>, fill: &impl Fn(&str) -> String) -> String {
    let rates = KEYS.rates.names().filter_map(|name| {
        let rate = price.get(name)?;
        Some(format!("{name} = \"{}\"", fill(rate)))
    });
    rates.collect::<Vec<_>>().join(", ")
}

/// `200000` as `200_000`, the TOML notation.
fn underscored(number: u32) -> String {
    farebox_ledger::grouped(number).replace(',', "_")
}
