//! Reads `[[price_list]]` into the catalog at other prices. A list's price replaces the whole price of its model.

use std::collections::HashMap;
use std::sync::Arc;

use farebox_toml::{
    Code, ConfigFile, Entry, Fields, KEYS, Placed, Report, Span, nearest_models, shorten,
};
use toml::de::{DeTable, DeValue};

use super::calls::read_price_of;
use super::classes::read_times;
use super::list_price::check_costs;
use super::markup;
use super::names::{NameKind, TakenNames, called, read_tables};
use super::routes::RouteTable;
use crate::config::{Catalog, Model, Price, PriceList};

const LONGEST_NAME: usize = 64;

/// What the lists are prices of.
pub(super) struct BaseCatalog<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) taken: &'a TakenNames,
    pub(super) routes: &'a RouteTable,
}

/// The lists, in the order of the file.
pub(super) fn read_price_lists(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    of: &BaseCatalog<'_>,
) -> Vec<PriceList> {
    let mut names: HashMap<String, Span> = HashMap::new();
    let mut lists = Vec::new();
    for (table, span) in read_tables(fields, report, "price_list") {
        let what = called("price list", table, "name");
        let fields = Fields::open(report, table, span, what, &KEYS.price_list);
        let name = fields.required(report, "name", "name = \"partners\"", read_name);
        if let Some(name) = name
            && let Some(first) = names.insert(name.value.to_ascii_lowercase(), name.span)
        {
            report
                .add(
                    Code::DuplicatePriceList,
                    name.span,
                    format!("two price lists are named `{}`", shorten(name.value)),
                )
                .also(first, "first here")
                .help("customers have their list by its name, and upper and lower case are easily mixed up: give the new one another");
            continue;
        }
        lists.extend(read_list(&fields, report, name, of));
    }
    lists
}

fn read_name<'r>(value: Entry<'r, '_>, report: &mut Report<'_>) -> Option<Placed<&'r str>> {
    let text = value.text(report)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    // The word with which commands take a list back.
    let is_word = text.value.eq_ignore_ascii_case("none");
    if (1..=LONGEST_NAME).contains(&text.value.len()) && text.value.chars().all(plain) && !is_word {
        return Some(text);
    }
    report
        .add(
            Code::BadPriceList,
            text.span,
            format!(
                "`{}` cannot be the name of a price list",
                shorten(text.value)
            ),
        )
        .help(
            "a name has 1 to 64 letters, digits, '-', '_' and '.', and is not none: \"partners\"",
        );
    None
}

fn read_list(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    name: Option<Placed<&str>>,
    of: &BaseCatalog<'_>,
) -> Option<PriceList> {
    let only = fields.given(report, "only", Entry::boolean);
    let markup = fields.given(report, "markup", |value, report| {
        read_times(value, report).map(|times| (times, value.key))
    });
    let named = match fields.get("price") {
        Some(value) => read_prices(value, report, &fields.what, of),
        None => Some(HashMap::new()),
    };
    let (only, markup) = (only?.unwrap_or_default(), markup?);
    if only && let Some((_, place)) = markup {
        let what = &fields.what;
        report
            .add(
                Code::Contradiction,
                place,
                format!("{what} has `only`, and a `markup` for the models that it does not name"),
            )
            .help(
                "leave one of them out, or name the models, each with price = { markup = \"…\" }",
            );
        return None;
    }
    let mut named = named?;
    if only && named.is_empty() {
        report
            .add(
                Code::BadPriceList,
                fields.span,
                format!(
                    "{} offers nothing: it has `only`, and no price",
                    fields.what
                ),
            )
            .help("add [price_list.price.\"SLUG\"], with input and output below it");
        return None;
    }
    let mut models = Vec::with_capacity(of.catalog.models.len());
    for model in &of.catalog.models {
        let price = match (named.remove(&model.slug), markup) {
            (Some(price), _) => Some(price),
            (None, Some((times, place))) => {
                Some(marked(report, fields, (times, place), model, of)?)
            }
            (None, None) => None,
        };
        match price {
            Some(price) => models.push(Arc::new(model.at(price))),
            None if only => {}
            None => models.push(Arc::clone(model)),
        }
    }
    Some(PriceList {
        name: name?.value.to_owned(),
        only,
        catalog: of.catalog.with(models),
    })
}

/// A model's price by the markup of the whole list.
fn marked(
    report: &mut Report<'_>,
    fields: &Fields<'_, '_>,
    (times, place): (u32, Span),
    model: &Model,
    of: &BaseCatalog<'_>,
) -> Option<Price> {
    let what = format!("model `{}` in {}", model.slug, fields.what);
    let targets = (
        model.route.targets.as_slice(),
        of.routes.targets(&model.slug)?,
    );
    let price = markup::over(report, (times, place), &what, targets)?;
    check_costs(report, (&price, place), &what, targets, model.below_cost);
    Some(price)
}

/// The prices by slug; `None` if one is wrong.
fn read_prices(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    of: &BaseCatalog<'_>,
) -> Option<HashMap<String, Price>> {
    let (table, _) = value.table(report, "a table of prices by slug")?;
    if table.contains_key("input") || table.contains_key("markup") {
        report
            .add(
                Code::WrongTable,
                value.key,
                format!("a price of {what} names no model"),
            )
            .help("write [price_list.price.\"SLUG\"], with the slug in quotes");
        return None;
    }
    let mut prices = HashMap::new();
    let mut good = true;
    for (slug, node) in table {
        let mut member = value.member(node);
        member.key = Span::new(ConfigFile::Catalog, slug.span());
        let slug: &str = slug.get_ref();
        match read_listed(member, report, (slug, what), of) {
            Some(price) => drop(prices.insert(slug.to_owned(), price)),
            None => good = false,
        }
    }
    good.then_some(prices)
}

fn read_listed(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    (slug, list): (&str, &str),
    of: &BaseCatalog<'_>,
) -> Option<Price> {
    let what = format!("model `{}` in {list}", shorten(slug));
    if !matches!(of.taken.get(slug), Some((_, NameKind::Slug))) {
        unpublished(value, report, slug, of);
        return None;
    }
    // One with mistakes of its own has been told of.
    let model = of.catalog.get(slug)?;
    let targets = (model.route.targets.as_slice(), of.routes.targets(slug)?);
    let price = read_price_of(
        value,
        report,
        (&what, model.route.call),
        Some(model.limits.context),
        Some(targets),
    )?;
    check_costs(
        report,
        (&price, value.key),
        &what,
        targets,
        model.below_cost,
    );
    Some(price)
}

fn unpublished(value: Entry<'_, '_>, report: &mut Report<'_>, slug: &str, of: &BaseCatalog<'_>) {
    let dotted = match value.node() {
        DeValue::Table(table) => dotted(slug, table, of),
        _ => None,
    };
    let finding = report.add(
        Code::ListedModel,
        value.key,
        format!("`{}` is not a published slug", shorten(slug)),
    );
    if let Some(whole) = dotted {
        finding.help(format!(
            "a dot in a header starts a nested table; put the slug in quotes: [price_list.price.\"{whole}\"]"
        ));
        return;
    }
    if let Some(model) = of.catalog.get(slug) {
        finding.help(format!(
            "it is an alias; write the slug, \"{}\"",
            model.slug
        ));
        return;
    }
    let published = of.catalog.models.iter().map(|model| model.slug.as_str());
    match nearest_models(slug, published).first() {
        Some(near) => finding.help(format!("did you mean \"{near}\"?")),
        None => finding.help("name published slugs; `farebox models` lists them"),
    };
}

/// A slug whose dots were taken for those between tables.
fn dotted(first: &str, table: &DeTable<'_>, of: &BaseCatalog<'_>) -> Option<String> {
    let mut slugs = of.catalog.models.iter().map(|model| &model.slug);
    let begins = |slug: &&String| {
        let rest = slug
            .strip_prefix(first)
            .and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| {
            let next = rest.split('.').next().unwrap_or_default();
            table.contains_key(next)
        })
    };
    slugs.find(begins).cloned()
}
