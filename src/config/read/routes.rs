//! Reads `routes.toml` into providers and routes: every rule about targets and policies.
//!
//! `provider.rs` reads what belongs to one provider. A route is valid only if all of its targets are.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use farebox_protocol::CallKind;
use farebox_toml::{
    Code, ConfigFile, Entry, Fields, KEYS, Report, SecretReader, Span, did_you_mean, listed,
    shorten,
};
use toml::de::{DeTable, DeValue};

use super::abilities::read_abilities;
use super::calls::read_call_price;
use super::list_price::list_price;
use super::names::{read_slug, read_tables};
use super::price::read_price;
use super::provider::read_provider;
use super::request_fields::read_pin;
use super::service::read_target_words;
use super::webhooks::read_webhooks;
use crate::config::service_facts::ServiceFacts;
use crate::config::{
    BreakerPolicy, Capability, Catalog, Endpoint, Library, OnDisconnect, Prefer, Price, Provider,
    Route, Target, Webhook, fit,
};

const DEFAULT_BREAKER: BreakerPolicy = BreakerPolicy {
    failures: 5,
    open: Duration::from_secs(30),
};
const DEFAULT_RETRY: u32 = 1;
const LONGEST_MODEL: usize = 200;

/// A route before its model is read.
#[derive(Debug)]
pub(crate) struct Routed {
    /// `None` if it has mistakes of its own.
    pub(crate) route: Option<Arc<Route>>,
    /// The position of its targets.
    pub(crate) targets: Span,
    slug: Span,
    wanted: Cell<bool>,
}

/// Routes by slug.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    by_slug: HashMap<String, Routed>,
    providers: HashMap<String, NamedProvider>,
    /// In the order of the file.
    pub(crate) webhooks: Vec<Arc<Webhook>>,
}

/// A provider and the position of its name.
#[derive(Debug)]
struct NamedProvider {
    /// `None` if it has mistakes of its own.
    provider: Option<Arc<Provider>>,
    span: Span,
    /// The service that it is, by which the library knows its models.
    kind: Option<String>,
    used: Cell<bool>,
}

impl RouteTable {
    /// The route of a slug; marks it as used.
    pub(crate) fn get(&self, slug: &str) -> Option<&Routed> {
        let routed = self.by_slug.get(slug)?;
        routed.wanted.set(true);
        Some(routed)
    }

    /// The position of a slug's targets.
    pub(crate) fn targets(&self, slug: &str) -> Option<Span> {
        self.by_slug.get(slug).map(|routed| routed.targets)
    }

    /// Valid providers in the order of the file.
    pub(crate) fn providers(&self) -> Vec<Arc<Provider>> {
        let mut named: Vec<_> = self
            .providers
            .values()
            .filter_map(|named| Some((named.span, named.provider.as_ref()?)))
            .collect();
        named.sort_by_key(|(span, _)| *span);
        named
            .into_iter()
            .map(|(_, provider)| Arc::clone(provider))
            .collect()
    }

    /// Records what only both files together show. Called after all models are read.
    pub(crate) fn report_together(&self, report: &mut Report<'_>, catalog: &Catalog) {
        self.report_unused(report);
        self.report_simulated(report);
        self.report_unsaid_limits(report, catalog);
    }

    /// Records routes without a model and providers without a route.
    fn report_unused(&self, report: &mut Report<'_>) {
        for (slug, routed) in self
            .by_slug
            .iter()
            .filter(|(_, routed)| !routed.wanted.get())
        {
            report
                .add(
                    Code::RouteWithoutModel,
                    routed.slug,
                    format!("no model is published as `{slug}`"),
                )
                .help("publish it in the catalog, or remove the route when it is no longer wanted");
        }
        // While there are errors, a provider may only appear unused.
        let idle = self
            .providers
            .iter()
            .filter(|(_, named)| !named.used.get() && !report.has_errors());
        for (name, named) in idle.collect::<Vec<_>>() {
            report.add(
                Code::UnusedProvider,
                named.span,
                format!("no route uses the provider `{name}`"),
            );
        }
    }

    /// Records published slugs that are simulated although others are real.
    fn report_simulated(&self, report: &mut Report<'_>) {
        let simulated = |route: &Route| {
            route
                .targets
                .iter()
                .all(|target| target.provider.endpoint == Endpoint::Simulated)
        };
        let wanted = || {
            self.by_slug
                .iter()
                .filter(|(_, routed)| routed.wanted.get())
        };
        let real = wanted()
            .any(|(_, routed)| routed.route.as_ref().is_some_and(|route| !simulated(route)));
        if !real {
            return;
        }
        for (slug, routed) in wanted() {
            if routed.route.as_ref().is_some_and(|route| simulated(route)) {
                report
                    .add(
                        Code::SimulatedInLineup,
                        routed.targets,
                        format!("`{slug}` is published and simulated, beside real providers"),
                    )
                    .help("customers would pay for simulated answers; point the route at a real provider or stop publishing the slug");
            }
        }
    }

    /// Notes hosted services whose models reason, and of which nobody says whether an output limit bounds reasoning.
    fn report_unsaid_limits(&self, report: &mut Report<'_>, catalog: &Catalog) {
        let reasoning = catalog.models.iter();
        let reasoning = reasoning.filter(|model| model.can(Capability::Reasoning));
        let targets = reasoning.flat_map(|model| &model.route.targets);
        let unsaid = targets.filter(|target| target.limit.is_none());
        let names: BTreeSet<&String> = unsaid.map(|target| &target.provider.name).collect();
        for (name, named) in names
            .iter()
            .filter_map(|name| Some((name, self.providers.get(*name)?)))
        {
            report
                .add(
                    Code::UnsaidLimit,
                    named.span,
                    format!("nobody says whether reasoning at `{name}` stays within an output limit: until an answer has shown it, what is held includes reasoning beside the limit"),
                )
                .help("write limit = \"all\" below this line if it does, \"text\" if it does not, \"none\" if there is no limit; `farebox check --online` tries it");
        }
    }
}

/// Reads the routes file.
pub(crate) fn read_routes(
    report: &mut Report<'_>,
    root: &DeTable<'_>,
    secrets: &mut SecretReader<'_>,
) -> RouteTable {
    let fields = Fields::open(
        report,
        root,
        Span::top(ConfigFile::Routes),
        "the routes file",
        &KEYS.routes,
    );
    let mut table = RouteTable {
        by_slug: HashMap::new(),
        providers: read_providers(&fields, report, secrets),
        webhooks: read_webhooks(&fields, report, secrets),
    };
    for (route, span) in read_tables(&fields, report, "route") {
        read_route(report, route, span, &mut table);
    }
    table
}

fn read_providers(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
) -> HashMap<String, NamedProvider> {
    let mut providers = HashMap::new();
    let Some(value) = fields.get("provider") else {
        return providers;
    };
    let DeValue::Table(tables) = value.node() else {
        report
            .add(
                Code::WrongTable,
                value.key,
                "a provider is named in its table header",
            )
            .help("write [provider.NAME] in single brackets");
        return providers;
    };
    for (key, node) in tables {
        let span = Span::new(ConfigFile::Routes, key.span());
        let name: &str = key.get_ref();
        let DeValue::Table(table) = node.get_ref() else {
            report
                .add(
                    Code::WrongTable,
                    span,
                    "a provider is named in its table header",
                )
                .help("write [provider.NAME] and its fields below it");
            continue;
        };
        let provider = read_provider(report, name, span, table, secrets).map(Arc::new);
        providers.insert(
            name.to_owned(),
            NamedProvider {
                provider,
                span,
                kind: match table.get("kind").map(|kind| kind.get_ref()) {
                    Some(DeValue::String(kind)) => Some(kind.to_string()),
                    _ => None,
                },
                used: Cell::new(false),
            },
        );
    }
    providers
}

fn read_route(report: &mut Report<'_>, table: &DeTable<'_>, span: Span, routes: &mut RouteTable) {
    let what = match table.get("slug").map(|slug| slug.get_ref()) {
        Some(DeValue::String(slug)) => format!("the route of `{}`", shorten(slug)),
        _ => "a route".to_owned(),
    };
    let fields = Fields::open(report, table, span, what, &KEYS.route);
    let slug = fields.required(
        report,
        "slug",
        "slug = \"…\", as in the catalog",
        |value, report| read_slug(value, report),
    );
    let targets = fields.required(
        report,
        "targets",
        "targets = [ { provider = \"…\", model = \"…\" } ]",
        |value, report| read_targets(value, report, &fields.what, &routes.providers),
    );
    let policies = read_policies(report, &fields);
    let Some(slug) = slug else { return };
    if let Some(first) = routes.by_slug.get(slug.value) {
        report
            .add(
                Code::DuplicateRoute,
                slug.span,
                format!("`{}` has two routes", slug.value),
            )
            .also(first.slug, "first here");
        return;
    }
    let route = targets.zip(policies).map(|(targets, policies)| {
        Arc::new(Route {
            slug: slug.value.to_owned(),
            targets,
            ..policies
        })
    });
    let targets = fields.get("targets").map_or(span, |value| value.span());
    routes.by_slug.insert(
        slug.value.to_owned(),
        Routed {
            route,
            targets,
            slug: slug.span,
            wanted: Cell::new(false),
        },
    );
}

/// What a route says beside its name and targets, which are left empty; `None` if a policy cannot be read.
fn read_policies(report: &mut Report<'_>, fields: &Fields<'_, '_>) -> Option<Route> {
    let words = [
        ("cancel", OnDisconnect::Cancel),
        ("drain", OnDisconnect::Drain),
    ];
    let on_disconnect = fields.word(report, "on_disconnect", &words);
    let retry = fields.given(report, "retry", |value, report| value.small(report, 0..=10));
    let breaker = fields.given(report, "breaker", |value, report| {
        read_breaker(value, report, &fields.what)
    });
    let translate = fields.given(report, "translate", Entry::boolean);
    let orders = [("family", Prefer::Family), ("order", Prefer::Order)];
    let prefer = fields.word(report, "prefer", &orders);
    Some(Route {
        slug: String::new(),
        on_disconnect: on_disconnect?.unwrap_or(OnDisconnect::Cancel),
        targets: Vec::new(),
        retry: retry?.map_or(DEFAULT_RETRY, |retry| retry.value),
        breaker: breaker?.unwrap_or(DEFAULT_BREAKER),
        translate: translate?.unwrap_or(true),
        prefer: prefer?.unwrap_or(Prefer::Family),
        call: None,
    })
}

fn read_targets(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    providers: &HashMap<String, NamedProvider>,
) -> Option<Vec<Target>> {
    let members = value.list(report, "targets, each { provider = \"…\", model = \"…\" }")?;
    if members.is_empty() {
        report
            .add(
                Code::NoTargets,
                value.span(),
                format!("{what} has no targets"),
            )
            .help("add { provider = \"…\", model = \"…\" }, in fallback order");
        return None;
    }
    let mut targets: Vec<Target> = Vec::with_capacity(members.len());
    let mut good = true;
    for member in members {
        let Some(target) = read_target(member, report, what, providers) else {
            good = false;
            continue;
        };
        if targets.contains(&target) {
            report.add(
                Code::RepeatedTarget,
                member.span(),
                format!("{what} has this target twice"),
            );
        }
        targets.push(target);
    }
    let is_simulated = |target: &Target| target.provider.endpoint == Endpoint::Simulated;
    if targets.iter().any(is_simulated) && !targets.iter().all(is_simulated) {
        report
            .add(Code::MixedSimulated, value.span(), format!("{what} mixes simulated and real providers"))
            .help("a customer who pays for a real model must never get a simulated answer; keep them in separate routes");
        return None;
    }
    good.then_some(targets)
}

fn read_target(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    providers: &HashMap<String, NamedProvider>,
) -> Option<Target> {
    let fields = value.fields(report, &format!("a target of {what}"), &KEYS.target)?;
    let model = fields.required(
        report,
        "model",
        "model = \"…\", the provider's own name for it",
        |value, report| value.printable(report, LONGEST_MODEL),
    );
    let abilities = fields.given(report, "abilities", |value, report| {
        read_abilities(value, report, what)
    });
    let pin = fields.given(report, "pin", read_pin);
    let words = read_target_words(&fields, report);
    let name = fields.required(report, "provider", "provider = \"…\"", |value, report| {
        value.text(report)
    })?;
    let Some(named) = providers.get(name.value) else {
        let mut names: Vec<&str> = providers.keys().map(String::as_str).collect();
        names.sort_unstable();
        let suggestion = did_you_mean(name.value, &names);
        let finding = report.add(
            Code::UnknownProvider,
            name.span,
            format!("there is no provider `{}`", shorten(name.value)),
        );
        match suggestion {
            Some(near) => finding.help(format!("did you mean \"{near}\"?")),
            None if names.is_empty() => {
                finding.help(format!("add [provider.{}]", shorten(name.value)))
            }
            None => {
                names.truncate(8);
                finding.help(format!(
                    "add [provider.{}], or name one that is there: {}",
                    shorten(name.value),
                    listed(&names)
                ))
            }
        };
        return None;
    };
    named.used.set(true);
    let offer = named.kind.as_deref().zip(model);
    let offer = offer.and_then(|(kind, model)| Library::current().find(kind, model.value));
    let list = offer.and_then(list_price).map(Arc::new);
    let cost = fields.given(report, "cost", |value, report| {
        let called = named.provider.as_ref().and_then(|provider| provider.call());
        read_cost(value, report, (what, called), list.as_ref())
    });
    let provider = Arc::clone(named.provider.as_ref()?);
    let (model, abilities, pin) = (model?.value, abilities?.unwrap_or_default(), pin?);
    let known = ServiceFacts::of(&words?, &provider, offer);
    Some(Target {
        fit: Arc::new(fit::of(&provider, model, &abilities, pin.as_deref())),
        limit: known.limit,
        stops: known.stops,
        speeds: known.speed,
        provider,
        model: model.to_owned(),
        abilities,
        cost: cost?,
        list,
        pin,
    })
}

/// What a target costs: a price, or the library's; without an output where its provider serves a call.
fn read_cost(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    (what, called): (&str, Option<CallKind>),
    list: Option<&Arc<Price>>,
) -> Option<Arc<Price>> {
    if !matches!(value.node(), DeValue::String(text) if text == "library") {
        let ends = !matches!(value.node(), DeValue::Table(price) if price.contains_key("output"));
        let target = format!("a target of {what}");
        let cost = match called.filter(|_| ends) {
            Some(call) => read_call_price(value, report, &target, call),
            None => read_price(value, report, &target, None),
        };
        return cost.map(Arc::new);
    }
    if list.is_none() {
        report
            .add(
                Code::UnlistedCost,
                value.span(),
                format!("the library has no price for this target of {what}"),
            )
            .help("write cost = { input = \"…\", output = \"…\" }; `farebox library` shows what it has, by the `kind` of the provider and the target's `model`");
    }
    list.map(Arc::clone)
}

fn read_breaker(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
) -> Option<BreakerPolicy> {
    let fields = value.fields(report, &format!("the breaker of {what}"), &KEYS.breaker)?;
    let failures = fields.given(report, "failures", |value, report| {
        value.small(report, 1..=1_000)
    });
    let pauses = Duration::from_millis(100)..=Duration::from_secs(3_600);
    let open = fields.given(report, "open", |value, report| {
        value.duration(report, pauses)
    });
    Some(BreakerPolicy {
        failures: failures?.map_or(DEFAULT_BREAKER.failures, |failures| failures.value),
        open: open?.unwrap_or(DEFAULT_BREAKER.open),
    })
}
