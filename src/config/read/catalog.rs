//! Reads `catalog.toml` into the [`Catalog`]: every rule about slugs, aliases, limits and retirement.
//!
//! Routes are read first, so that a model is built together with the route that serves it and never exists without one.

use std::collections::HashMap;
use std::sync::Arc;

use farebox_ledger::grouped;
use farebox_protocol::{CallKind, WirePath};
use farebox_toml::{Code, ConfigFile, Entry, Fields, KEYS, Placed, Report, Span, shorten};
use toml::de::{DeTable, DeValue};

use super::below_cost::Targets;
use super::calls::{
    call_of, check_capabilities, note_free_output, read_call_limits, read_price_of,
};
use super::defaults::read_defaults;
use super::list_price;
use super::names::{NameKind, TakenNames, called, distinct, read_path, read_slug, read_tables};
use super::plan::read_plans;
use super::price_list::{BaseCatalog, read_price_lists};
use super::request_fields::read_flags;
use super::routes::{RouteTable, Routed};
use super::service::{note_speed, read_speed};
use super::shop::read_shop;
use crate::config::{Capability, Catalog, Model, ModelLimits, Price, Retired, Route, Target};

const MOST_TOKENS: u32 = 2_147_483_647;
const LONGEST_NAME: usize = 100;

/// Reads the catalog. The result contains only the valid models; the report shows whether there were others.
pub(crate) fn read_catalog(
    report: &mut Report<'_>,
    root: &DeTable<'_>,
    routes: &RouteTable,
) -> Catalog {
    let fields = Fields::open(
        report,
        root,
        Span::top(ConfigFile::Catalog),
        "the catalog",
        &KEYS.catalog,
    );
    let tables = read_tables(&fields, report, "model");
    if tables.is_empty() && !fields.has("model") {
        report
            .add(
                Code::EmptyCatalog,
                fields.span,
                "the catalog publishes no model",
            )
            .help("add a [[model]] table, or let `farebox init` write one to start from");
    }
    let mut taken = TakenNames::new();
    let mut models = Vec::with_capacity(tables.len());
    for (table, span) in tables {
        models.extend(read_model(report, table, span, routes, &mut taken).map(Arc::new));
    }
    let retired = read_tables(&fields, report, "retired");
    let mut ended = HashMap::new();
    let retired: Vec<Retired> = retired
        .into_iter()
        .filter_map(|(table, span)| read_retired(report, table, span, &taken, &mut ended))
        .collect();
    let plans = read_plans(&fields, report, &taken, &retired);
    let rest = Catalog {
        retired,
        plans,
        defaults: read_defaults(&fields, report, &taken),
        shop: Arc::new(read_shop(&fields, report)),
        ..Catalog::default()
    };
    let mut catalog = rest.with(models);
    let published = BaseCatalog {
        catalog: &catalog,
        taken: &taken,
        routes,
    };
    catalog.lists = read_price_lists(&fields, report, &published);
    catalog
}

fn read_model(
    report: &mut Report<'_>,
    table: &DeTable<'_>,
    span: Span,
    routes: &RouteTable,
    taken: &mut TakenNames,
) -> Option<Model> {
    let what = called("model", table, "slug");
    let fields = Fields::open(report, table, span, what, &KEYS.model);
    let name = fields.required(
        report,
        "model",
        "model = \"…\", the display name",
        |value, report| value.printable(report, LONGEST_NAME),
    );
    let provider = fields.required(report, "provider", "provider = \"…\"", |value, report| {
        value.printable(report, LONGEST_NAME)
    });
    let slug = fields.required(report, "slug", "slug = \"…\", what callers send", read_slug);
    let slug = slug.filter(|slug| take(report, taken, slug, NameKind::Slug));
    let aliases = fields.given(report, "aliases", |value, report| {
        read_aliases(value, report, taken)
    });
    let best_path = fields.required(
        report,
        "best_path",
        &format!("best_path = one of {}", WirePath::choices()),
        read_path,
    );
    let call = call_of(best_path.as_ref());
    let environments = fields.required(
        report,
        "best_environments",
        "best_environments = [\"backend\"]",
        read_environments,
    );
    let limits = fields.required(
        report,
        "limits",
        "limits = { context = 200_000, max_output = 64_000 }",
        |value, report| read_limits(value, report, &fields.what, call),
    );
    let context = limits.map(|limits| limits.context);
    let capabilities = read_able(report, &fields, best_path.as_ref());
    let route = slug.and_then(|slug| find_route(report, routes, slug, best_path));
    let targets = targets_of(route.as_deref(), routes, fields.span);
    let price = fields.required(
        report,
        "price",
        "price = { input = \"3.00\", output = \"15.00\" }",
        |value, report| read_price_of(value, report, (&fields.what, call), context, targets),
    );
    let below_cost = fields.given(report, "below_cost", Entry::boolean)?;
    let below_cost = below_cost.unwrap_or_default();
    compare_with_cost(report, &fields, price.as_ref(), targets, below_cost);
    warn_of_unpriced_writes(&fields, report, price.as_ref(), route.as_deref());
    Some(Model {
        name: name?.value.to_owned(),
        slug: slug?.value.to_owned(),
        provider: provider?.value.to_owned(),
        best_path: best_path?.value,
        best_environments: environments?,
        price: price?,
        capabilities: capabilities?,
        limits: limits?,
        aliases: aliases?.unwrap_or_default(),
        below_cost,
        route: route?,
    })
}

/// Records a price below what a target costs, or far from its list price.
fn compare_with_cost(
    report: &mut Report<'_>,
    fields: &Fields<'_, '_>,
    price: Option<&Price>,
    targets: Option<Targets<'_>>,
    below_cost: bool,
) {
    let Some((price, targets)) = price.zip(targets) else {
        return;
    };
    let place = fields.get("price").map_or(fields.span, |value| value.key);
    list_price::check(report, (price, place), &fields.what, targets);
    list_price::check_costs(report, (price, place), &fields.what, targets, below_cost);
}

/// A service that bills cache writes above input, at a model that sells them for no more.
fn warn_of_unpriced_writes(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    price: Option<&Price>,
    route: Option<&Route>,
) {
    let (Some(price), Some(route), Some(value)) = (price, route, fields.get("price")) else {
        return;
    };
    let rates = &price.base;
    let billed = route.targets.iter().find(|target| {
        target
            .provider
            .preset
            .is_some_and(|preset| preset.bills_writes)
    });
    if let Some(target) = billed.filter(|_| rates.cache_write <= rates.input) {
        let message = format!(
            "{} has no price for cache writes, and `{}` bills them at 1.25 times the input",
            fields.what, target.provider.name
        );
        report
            .add(Code::CacheWriteUnpriced, value.key, message)
            .help(
                "add cache_write = \"…\", and cache_write_1h where customers may ask for an hour",
            );
    }
}

/// The targets of a route, and where they stand.
fn targets_of<'a>(
    route: Option<&'a Route>,
    routes: &RouteTable,
    span: Span,
) -> Option<Targets<'a>> {
    let route = route?;
    let place = routes.targets(&route.slug).unwrap_or(span);
    Some((route.targets.as_slice(), place))
}

fn find_route(
    report: &mut Report<'_>,
    routes: &RouteTable,
    slug: Placed<&str>,
    best_path: Option<Placed<WirePath>>,
) -> Option<Arc<Route>> {
    match routes.get(slug.value) {
        None => {
            report
                .add(
                    Code::ModelWithoutRoute,
                    slug.span,
                    format!("no route serves `{}`", slug.value),
                )
                .help(format!(
                    "add [[route]] with slug = \"{}\" to the routes, and save that file first",
                    slug.value
                ));
            None
        }
        Some(Routed { route: None, .. }) => None,
        Some(Routed {
            route: Some(route),
            targets,
            ..
        }) => {
            let best = best_path?;
            let mut targets_of = route.targets.iter();
            let speaks = |target: &Target| target.provider.speaks.contains(&best.value);
            let speaks = match best.value {
                WirePath::Family(_) => {
                    note_free_output(report, route, *targets);
                    targets_of.any(speaks)
                }
                // Nothing is translated into a call.
                WirePath::Call(_) => targets_of.all(speaks),
            };
            if !speaks {
                let (which, they, help) = match best.value {
                    WirePath::Family(_) => (
                        "no",
                        "none of these",
                        "choose another best path, or add a target whose provider speaks it",
                    ),
                    WirePath::Call(_) => (
                        "not every",
                        "nothing is translated into it",
                        "leave out the targets whose provider does not speak it",
                    ),
                };
                let message = format!(
                    "{which} target of `{}` speaks `{}`, its best path",
                    slug.value, best.value
                );
                report
                    .add(Code::FamilyMismatch, best.span, message)
                    .also(*targets, they)
                    .help(help);
                return None;
            }
            Some(match best.value.call() {
                None => Arc::clone(route),
                call => Arc::new(Route {
                    call,
                    ..Route::clone(route)
                }),
            })
        }
    }
}

/// Marks a name as taken, or records who had it before.
fn take(
    report: &mut Report<'_>,
    taken: &mut TakenNames,
    name: &Placed<&str>,
    kind: NameKind,
) -> bool {
    let Some((first, before)) = taken.get(name.value).copied() else {
        taken.insert(name.value.to_owned(), (name.span, kind));
        return true;
    };
    let (code, message) = match (kind, before) {
        (NameKind::Slug, NameKind::Slug) => (
            Code::DuplicateSlug,
            format!("the slug `{}` is published twice", name.value),
        ),
        (NameKind::Alias, NameKind::Alias) => (
            Code::AliasTaken,
            format!("the alias `{}` is given twice", name.value),
        ),
        _ => (
            Code::AliasTaken,
            format!("`{}` is a slug and an alias", name.value),
        ),
    };
    report
        .add(code, name.span, message)
        .also(first, "first here");
    false
}

fn read_aliases(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    taken: &mut TakenNames,
) -> Option<Vec<String>> {
    value.each(report, "strings", |member, report| {
        let alias = read_slug(member, report)?;
        take(report, taken, &alias, NameKind::Alias).then(|| alias.value.to_owned())
    })
}

fn read_environments(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Vec<String>> {
    let names = read_flags(value, report)?;
    if names.is_empty() {
        report
            .add(Code::BadText, value.span(), "`best_environments` is empty")
            .help("name where the model works best: [\"backend\"]");
        return None;
    }
    Some(names)
}

/// What a model can do, if that goes with its best path.
fn read_able(
    report: &mut Report<'_>,
    fields: &Fields<'_, '_>,
    best_path: Option<&Placed<WirePath>>,
) -> Option<Vec<Capability>> {
    let capabilities = fields.given(report, "capabilities", read_capabilities);
    check_capabilities(report, fields, best_path, capabilities)
}

fn read_capabilities(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Vec<Capability>> {
    let words = Capability::ALL.map(|each| (each.name(), each));
    let capabilities = value.each(report, "strings", |member, report| {
        member.word(report, &words)
    });
    capabilities.map(distinct)
}

fn read_limits(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    call: Option<CallKind>,
) -> Option<ModelLimits> {
    if let Some(call) = call {
        return read_call_limits(value, report, what, call);
    }
    let fields = value.fields(report, &format!("the limits of {what}"), &KEYS.limits)?;
    let tokens = 1..=MOST_TOKENS;
    let context = fields.required(report, "context", "context = 200_000", |value, report| {
        value.small(report, tokens.clone())
    });
    let max_output = fields.required(
        report,
        "max_output",
        "max_output = 64_000",
        |value, report| value.small(report, tokens.clone()),
    );
    let max_reasoning = fields.given(report, "max_reasoning", |value, report| {
        value.small(report, tokens)
    });
    let speed = fields.given(report, "speed", read_speed);
    let image_bytes = fields.given(report, "image_bytes", |value, report| {
        value.integer(report, 1..=1_073_741_824)
    });
    let picture_tokens = fields.given(report, "picture_tokens", |value, report| {
        value.integer(report, 1..=1_000_000)
    });
    let tools = fields.given(report, "tools", |value, report| {
        value.small(report, 1..=100_000)
    });
    let (context, max_output) = (context?, max_output?);
    let most = [
        ("max_output", Some(max_output)),
        ("max_reasoning", max_reasoning.flatten()),
    ];
    let fits = most.map(|(name, most)| fits_the_context(report, &context, name, most));
    note_speed(report, &fields, speed.flatten());
    let limits = ModelLimits {
        context: context.value.into(),
        max_output: max_output.value,
        max_reasoning: max_reasoning?.map(|tokens| tokens.value),
        speed: speed?,
        image_bytes: image_bytes?.map(|bytes| bytes.value),
        picture_tokens: picture_tokens?.map(|tokens| tokens.value),
        tools: tools?.map(|tools| tools.value),
    };
    (fits == [true; 2]).then_some(limits)
}

/// Whether a size does not contradict the context, of which it is a part.
fn fits_the_context(
    report: &mut Report<'_>,
    context: &Placed<u32>,
    name: &str,
    most: Option<Placed<u32>>,
) -> bool {
    let Some(most) = most.filter(|most| most.value > context.value) else {
        return true;
    };
    let (size, room) = (grouped(most.value), grouped(context.value));
    report
        .add(
            Code::BadLimits,
            most.span,
            format!("`{name}` ({size}) is more than the whole context ({room})"),
        )
        .also(context.span, "input and output together");
    false
}

fn read_retired(
    report: &mut Report<'_>,
    table: &DeTable<'_>,
    span: Span,
    taken: &TakenNames,
    ended: &mut HashMap<String, Span>,
) -> Option<Retired> {
    let fields = Fields::open(report, table, span, "a retired slug", &KEYS.retired);
    let slug = fields.required(report, "slug", "slug = \"…\"", |value, report| {
        read_slug(value, report)
    });
    let since = fields.required(report, "since", "since = 2026-09-01", read_date);
    let replacement = fields.optional(report, "use", |value, report| value.text(report));
    if let Some(slug) = slug {
        if let Some((first, _)) = taken.get(slug.value) {
            report
                .add(
                    Code::RetiredPublished,
                    slug.span,
                    format!("`{}` is retired and published", slug.value),
                )
                .also(*first, "published here")
                .help("remove one of the two");
        }
        if let Some(first) = ended.insert(slug.value.to_owned(), slug.span) {
            report
                .add(
                    Code::DuplicateSlug,
                    slug.span,
                    format!("`{}` is retired twice", slug.value),
                )
                .also(first, "first here");
        }
    }
    let published = |name: &str| matches!(taken.get(name), Some((_, NameKind::Slug)));
    if let Some(name) = replacement.filter(|name| !published(name.value)) {
        let finding = report.add(
            Code::BadReplacement,
            name.span,
            format!(
                "the replacement `{}` is not a published slug",
                shorten(name.value)
            ),
        );
        match taken.get(name.value) {
            Some(_) => finding.help("write the slug, not an alias"),
            None => finding.help("name a published slug, or leave `use` out"),
        };
    }
    Some(Retired {
        slug: slug?.value.to_owned(),
        since: since?,
        replacement: replacement.map(|name| name.value.to_owned()),
    })
}

fn read_date(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<String> {
    if let DeValue::Datetime(date) = value.node()
        && date.date.is_some()
        && date.time.is_none()
    {
        return Some(date.to_string());
    }
    report
        .add(
            Code::BadDate,
            value.span(),
            format!("`{}` is not a date", value.name),
        )
        .help("write it without quotes: since = 2026-09-01");
    None
}
