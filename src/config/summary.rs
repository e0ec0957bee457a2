//! A snapshot in plain values: what `/status` serves and what `farebox diff` compares.
//!
//! It contains everything an operator may see of a running gateway, and no secret: keys and header values are only counted.

use farebox_ledger::{Defaults, PlanTerms};
use farebox_toml::redact;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    Catalog, Config, Endpoint, KeysBy, LimitBinds, Model, OnDisconnect, Prefer, PriceList,
    Provider, ProviderKeys, ProxyChoice, Route, ServiceWords, Shop, Target, TargetAbilities,
};

/// A snapshot without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The number of the snapshot in the process.
    pub generation: u64,
    /// Published models in the order of the file.
    pub models: Vec<ModelSummary>,
    /// Retired slugs and what replaces them.
    pub retired: Vec<RetiredSummary>,
    /// Plans in the order of the file.
    #[serde(default)]
    pub plans: Vec<PlanTerms>,
    /// Price lists in the order of the file.
    #[serde(default)]
    pub lists: Vec<PriceListSummary>,
    /// Defaults of keys and customers, in words: `key.rate` is one.
    #[serde(default)]
    pub defaults: Vec<(String, String)>,
    /// Providers in the order of the file.
    pub providers: Vec<ProviderSummary>,
    /// The seller; one that says nothing has none.
    #[serde(default)]
    pub shop: Option<ShopSummary>,
}

/// The seller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShopSummary {
    /// Its name.
    pub name: String,
    /// Whom to ask.
    pub contact: String,
    /// Where to pay.
    pub pay_url: String,
    /// A sentence of its own.
    pub note: String,
    /// Where it is.
    #[serde(default)]
    pub address: String,
    /// Its tax number.
    #[serde(default)]
    pub tax_id: String,
    /// Its terms.
    #[serde(default)]
    pub terms_url: String,
    /// How it treats personal data.
    #[serde(default)]
    pub privacy_url: String,
    /// The status of a refusal for lack of money, as it is written.
    pub out_of_balance_status: serde_json::Value,
}

/// One published model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSummary {
    /// Column "customer slug".
    pub slug: String,
    /// Column "model".
    pub model: String,
    /// Column "provider".
    pub provider: String,
    /// Column "best path".
    pub best_path: String,
    /// Column "best environments".
    pub best_environments: Vec<String>,
    /// Column "service price".
    pub price: String,
    /// Its capabilities.
    pub capabilities: Vec<String>,
    /// Context and output limit, in words.
    pub limits: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// `provider/model` in fallback order.
    pub targets: Vec<String>,
    /// Policies of its route, in words.
    pub policy: String,
}

/// One price list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceListSummary {
    /// Its name.
    pub name: String,
    /// Whether it offers only the models that it names.
    pub only: bool,
    /// Slugs and prices of its own, in the order of the models.
    pub prices: Vec<(String, String)>,
}

/// One retired slug.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredSummary {
    /// The old slug.
    pub slug: String,
    /// When it was retired.
    pub since: String,
    /// What to use instead.
    #[serde(rename = "use")]
    pub replacement: Option<String>,
}

/// One provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderSummary {
    /// Its name.
    pub name: String,
    /// Its base URL, or `simulated`.
    pub endpoint: String,
    /// Families it serves.
    pub speaks: Vec<String>,
    /// How many keys it has.
    pub keys: usize,
    /// Other settings, in words.
    pub settings: String,
}

impl Config {
    /// This snapshot without its secrets.
    pub fn summary(&self) -> Summary {
        Summary {
            generation: self.generation,
            models: self
                .catalog
                .models
                .iter()
                .map(|model| model_outline(model))
                .collect(),
            retired: self
                .catalog
                .retired
                .iter()
                .map(|retired| RetiredSummary {
                    slug: retired.slug.clone(),
                    since: retired.since.clone(),
                    replacement: retired.replacement.clone(),
                })
                .collect(),
            plans: self.catalog.plans.clone(),
            lists: self
                .catalog
                .lists
                .iter()
                .map(|list| list_outline(list, &self.catalog))
                .collect(),
            defaults: defaults_outline(&self.catalog.defaults),
            providers: self
                .providers
                .iter()
                .map(|provider| provider_outline(provider))
                .collect(),
            shop: shop_outline(&self.catalog.shop),
        }
    }
}

fn defaults_outline(defaults: &Defaults) -> Vec<(String, String)> {
    let both = [("key", &defaults.key), ("customer", &defaults.customer)];
    let outline = both.into_iter().flat_map(|(of, settings)| {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let caps: Vec<String> = settings.caps.iter().map(ToString::to_string).collect();
        let all = [
            ("rate", number(settings.rate)),
            ("concurrency", number(settings.concurrency)),
            (
                "low_balance",
                settings.low_balance.map(|usd| usd.to_string()),
            ),
            ("caps", (!caps.is_empty()).then(|| caps.join(", "))),
        ];
        let all = all.into_iter();
        all.filter_map(move |(name, said)| Some((format!("{of}.{name}"), said?)))
    });
    outline.collect()
}

fn shop_outline(shop: &Shop) -> Option<ShopSummary> {
    (*shop != Shop::default()).then(|| ShopSummary {
        name: shop.name.clone().unwrap_or_default(),
        contact: shop.contact.clone().unwrap_or_default(),
        pay_url: shop.pay_url.clone().unwrap_or_default(),
        note: shop.note.clone().unwrap_or_default(),
        address: shop.address.clone().unwrap_or_default(),
        tax_id: shop.tax_id.clone().unwrap_or_default(),
        terms_url: shop.terms_url.clone().unwrap_or_default(),
        privacy_url: shop.privacy_url.clone().unwrap_or_default(),
        out_of_balance_status: shop.out_of_balance_status.written(),
    })
}

fn list_outline(list: &PriceList, around: &Catalog) -> PriceListSummary {
    let priced = list.own(around);
    PriceListSummary {
        name: list.name.clone(),
        only: list.only,
        prices: priced
            .map(|model| (model.slug.clone(), model.price.shown()))
            .collect(),
    }
}

/// The sizes of a model, the optional ones only where they are set.
fn sizes(model: &Model) -> String {
    let limits = &model.limits;
    let mut sizes = format!("context {}, output {}", limits.context, limits.max_output);
    let optional = [
        limits
            .max_reasoning
            .map(|tokens| format!(", reasoning {tokens}")),
        limits.speed.map(|speed| format!(", {speed} tokens/s")),
        limits
            .image_bytes
            .map(|bytes| format!(", pictures of {bytes} bytes")),
        limits
            .picture_tokens
            .map(|tokens| format!(", pictures of {tokens} tokens")),
        limits.tools.map(|tools| format!(", {tools} tools")),
    ];
    sizes.extend(optional.into_iter().flatten());
    sizes
}

fn model_outline(model: &Model) -> ModelSummary {
    let sizes = sizes(model);
    let route = &model.route;
    let policy = match route.on_disconnect {
        OnDisconnect::Cancel => "cancel",
        OnDisconnect::Drain => "drain",
    };
    let mut extra = String::new();
    if !route.translate {
        extra.push_str(", not translated");
    }
    if route.prefer == Prefer::Order {
        extra.push_str(", in order");
    }
    for target in route
        .targets
        .iter()
        .filter(|target| target.abilities != TargetAbilities::default())
    {
        extra.push_str(&format!(
            ", {}: {}",
            target.name(),
            target.abilities.shown()
        ));
    }
    for target in &route.targets {
        if let Some(cost) = &target.cost {
            extra.push_str(&format!(", {} costs {}", target.name(), cost.shown()));
        }
    }
    extra.push_str(&pinned(route));
    extra.extend(route.targets.iter().map(of_service));
    ModelSummary {
        slug: model.slug.clone(),
        model: model.name.clone(),
        provider: model.provider.clone(),
        best_path: model.best_path.name().to_owned(),
        best_environments: model.best_environments.clone(),
        price: model.price.shown(),
        capabilities: model
            .capabilities
            .iter()
            .map(|capability| capability.name().to_owned())
            .collect(),
        limits: sizes,
        aliases: model.aliases.clone(),
        targets: route.targets.iter().map(Target::name).collect(),
        policy: format!(
            "{policy}, retry {}, breaker {} in a row for {:?}{extra}",
            route.retry, route.breaker.failures, route.breaker.open
        ),
    }
}

/// What the targets of a route pin themselves.
fn pinned(route: &Route) -> String {
    let of = |target: &Target| {
        let fields = match target.pin.as_deref()? {
            [] => "nothing".to_owned(),
            fields => fields.join(" and "),
        };
        Some(format!(", {} pins {fields}", target.name()))
    };
    route.targets.iter().filter_map(of).collect()
}

fn provider_outline(provider: &Provider) -> ProviderSummary {
    let waits = &provider.timeouts;
    let mut settings = format!(
        "connect {:?}, first byte {:?}, idle {:?}, whole {:?}",
        waits.connect, waits.first_byte, waits.idle, waits.whole
    );
    settings.push_str(&accounts(&provider.keys));
    if let Some(most) = provider.max_concurrent {
        settings.push_str(&format!(", at most {most} at once"));
    }
    if let Some(most) = provider.max_tokens_per_minute {
        settings.push_str(&format!(", at most {most} tokens a minute"));
    }
    settings.push_str(&format!(", probes for {}", provider.probe_budget));
    settings.push_str(&format!(", {:?}", provider.chat_limit));
    match provider.proxy {
        ProxyChoice::Environment => {}
        ProxyChoice::Direct => settings.push_str(", no proxy"),
        // Its address may contain a password.
        ProxyChoice::Through(_) => settings.push_str(", through a proxy"),
    }
    for (name, value) in &provider.query {
        settings.push_str(&format!(", ?{name}={value}"));
    }
    if let Some(auth) = provider.auth {
        settings.push_str(&format!(", {auth:?}"));
    }
    if provider.reasoning_outside {
        settings.push_str(", reasoning outside");
    }
    for (name, _) in &provider.headers {
        settings.push_str(&format!(", {name}"));
    }
    if provider.takes_urls && !provider.endpoint.is_public() {
        settings.push_str(", private_urls");
    }
    for (does, names) in [
        ("passes", &*provider.fields.pass),
        ("drops", &provider.fields.drop),
        ("answers with", &provider.pass_answer),
        ("refuses", &provider.refuse_beta),
    ] {
        settings.extend(names.iter().map(|name| format!(", {does} {name}")));
    }
    for (path, field) in &provider.fields.customer_id {
        settings.push_str(&format!(", {path} names customers in {field}"));
    }
    for field in &provider.fields.pin {
        settings.push_str(&format!(", pins {field}"));
    }
    settings.push_str(&service_words(&provider.words));
    ProviderSummary {
        name: provider.name.clone(),
        endpoint: match &provider.endpoint {
            Endpoint::Simulated => "simulated".to_owned(),
            Endpoint::Http(url) => shown_url(url),
        },
        speaks: provider
            .speaks
            .iter()
            .map(|family| family.name().to_owned())
            .collect(),
        keys: provider.keys.len(),
        settings,
    }
}

/// What is said in a provider's table of the service.
fn service_words(words: &ServiceWords) -> String {
    let limit = words.limit.map(|limit| format!(", limit {}", limit.name()));
    let stops = words.stops.map(|stops| match stops {
        true => ", stops".to_owned(),
        false => ", does not stop".to_owned(),
    });
    let speed = words.speed.shown();
    let speed = (!speed.is_empty()).then(|| format!(", {speed}"));
    [limit, stops, speed].into_iter().flatten().collect()
}

/// What is known of a target's service and is not as usual: a limit that does not bind all, a stream that goes on, a speed.
fn of_service(target: &Target) -> String {
    let limit = match target.limit {
        Some(LimitBinds::All) => None,
        Some(limit) => Some(format!("limit {}", limit.name())),
        None => Some("limit unsaid".to_owned()),
    };
    let stops = (!target.stops).then(|| "does not stop".to_owned());
    let speed = Some(target.speeds.shown()).filter(|speed| !speed.is_empty());
    let parts: Vec<String> = [limit, stops, speed].into_iter().flatten().collect();
    match parts.as_slice() {
        [] => String::new(),
        parts => format!(", {}: {}", target.name(), parts.join(", ")),
    }
}

/// How several accounts divide the requests.
fn accounts(keys: &ProviderKeys) -> String {
    if keys.len() < 2 {
        return String::new();
    }
    let weights: Vec<String> = keys.iter().map(|key| key.weight.to_string()).collect();
    let kept = match keys.by {
        KeysBy::Conversation => "conversation",
        KeysBy::Request => "request",
    };
    format!(", accounts {} by {kept}", weights.join(":"))
}

/// A base URL without what may be a secret in its path. A fingerprint of the whole shows that something hidden differs.
fn shown_url(url: &str) -> String {
    let shown = redact::base_url(url);
    if shown == url {
        return shown;
    }
    let mut fingerprint = hex::encode(Sha256::digest(url));
    fingerprint.truncate(4);
    format!("{shown} ({fingerprint})")
}

#[cfg(test)]
mod tests {
    use super::shown_url;

    #[test]
    fn what_may_be_a_secret_in_the_path_of_a_base_url_is_not_shown() {
        for plain in [
            "https://api.example.com/v1",
            "http://127.0.0.1:8000/openai/v1beta2",
            "https://host/compatible-mode/v4",
            "https://host",
        ] {
            assert_eq!(shown_url(plain), plain);
        }
        for path in [
            "/v1/023e105f4ecef8ad9ca31a8372d0c353/my-gateway/openai",
            "/v1/hunter2/openai",
            "/k/s3cr3t",
            "/v1secret",
        ] {
            let shown = shown_url(&format!("https://host{path}"));
            assert!(
                shown.starts_with("https://host/") && shown.ends_with(')'),
                "{shown}"
            );
            for secret in ["023e105f", "my-gateway", "hunter2", "s3cr3t", "v1secret"] {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
        assert_ne!(
            shown_url("https://host/v1/secret-a"),
            shown_url("https://host/v1/secret-b")
        );
    }
}
