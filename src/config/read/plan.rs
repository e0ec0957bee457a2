//! Reads `[[plan]]` into the terms that are sold. What a plan can be is the ledger's rule; here it gets its place in the file.
//!
//! A slug that was retired since stands for its `use`: the terms name both.

use std::collections::HashMap;
use std::time::Duration;

use farebox_ledger::{Amount, PlanAfter, PlanTerms, WindowBound};
use farebox_toml::{Code, Entry, Fields, KEYS, Placed, Report, Span, nearest_models, shorten};
use toml::de::DeValue;

use super::names::{NameKind, TakenNames, called, distinct, read_tables};
use crate::config::Retired;

const AFTER: &[(&str, PlanAfter)] = &[("balance", PlanAfter::Balance), ("stop", PlanAfter::Stop)];
/// Longest title.
const LONGEST: usize = 200;

/// A whole line for each field.
const EXAMPLES: &[(&str, &str)] = &[
    ("name", "name = \"coder\""),
    ("title", "title = \"Coder, monthly\""),
    ("price", "price = \"20.00\""),
    ("allowance", "allowance = \"25.00\""),
    ("period", "period = \"month\""),
    (
        "windows",
        "windows = [ { per = \"5h\", usd = \"4.00\" }, { per = \"day\", usd = \"8.00\" } ]",
    ),
    ("per", "per = \"5h\""),
    ("usd", "usd = \"4.00\""),
    ("models", "models = [\"coder-large\"]"),
    ("carry", "carry = \"5.00\""),
    ("grace", "grace = \"6h\""),
];

fn example(name: &str) -> &'static str {
    let found = EXAMPLES.iter().find(|(of, _)| *of == name);
    found.map_or("", |(_, line)| line)
}

/// The slugs that a plan may name, with what is published in their place.
struct Slugs<'a> {
    taken: &'a TakenNames,
    retired: &'a [Retired],
}

/// The plans, in the order of the file.
pub(super) fn read_plans(
    catalog: &Fields<'_, '_>,
    report: &mut Report<'_>,
    taken: &TakenNames,
    retired: &[Retired],
) -> Vec<PlanTerms> {
    let slugs = Slugs { taken, retired };
    let mut names: HashMap<String, Span> = HashMap::new();
    let mut plans = Vec::new();
    for (table, span) in read_tables(catalog, report, "plan") {
        let fields = Fields::open(
            report,
            table,
            span,
            called("plan", table, "name"),
            &KEYS.plan,
        );
        let name = fields.required(report, "name", example("name"), Entry::text);
        if let Some(name) = name
            && let Some(first) = names.insert(name.value.to_ascii_lowercase(), name.span)
        {
            report
                .add(
                    Code::DuplicatePlan,
                    name.span,
                    format!("two plans are named `{}`", shorten(name.value)),
                )
                .also(first, "first here")
                .help("subscriptions know their plan by its name: give the new one another");
            continue;
        }
        let terms = read_plan(&fields, report, name, &slugs);
        if let Some(terms) = &terms {
            warn_of_dead(&fields, report, terms, &slugs);
        }
        plans.extend(terms);
    }
    plans
}

/// A plan that sells nothing, because its models are gone.
fn warn_of_dead(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    terms: &PlanTerms,
    slugs: &Slugs<'_>,
) {
    let (Some(models), Some(value)) = (&terms.models, fields.get("models")) else {
        return;
    };
    if !models.iter().any(|slug| slugs.taken.contains_key(slug)) {
        let message = format!("{} is not sold: all of its models are retired", fields.what);
        report
            .add(Code::DeadPlan, value.span(), message)
            .help("name published slugs, or the one that replaces a retired one in its `use`");
    }
}

fn read_plan(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    name: Option<Placed<&str>>,
    slugs: &Slugs<'_>,
) -> Option<PlanTerms> {
    let title = fields.required(report, "title", example("title"), |value, report| {
        value.printable(report, LONGEST)
    });
    let price = fields.required(report, "price", example("price"), read_usd);
    let allowance = fields.required(report, "allowance", example("allowance"), read_usd);
    let period = fields.required(report, "period", example("period"), read_parsed);
    let windows = fields.given(report, "windows", |value, report| {
        value.each(report, "tables", |member, report| {
            read_window(member, report, &fields.what)
        })
    });
    let models = fields.given(report, "models", |value, report| {
        let named = value.each(report, "strings", |member, report| {
            read_model(member, report, slugs)
        })?;
        Some(distinct(named.into_iter().flatten().collect()))
    });
    let after = fields.word(report, "after", AFTER);
    let carry = fields.given(report, "carry", read_usd);
    let grace = fields.given(report, "grace", |value, report| {
        value.duration(report, Duration::ZERO..=Duration::MAX)
    });
    let grace = grace?.unwrap_or_default().as_millis();
    let terms = PlanTerms {
        name: name?.value.to_owned(),
        title: title?.value.to_owned(),
        price: price?,
        allowance: allowance?,
        period: period?,
        windows: windows?.unwrap_or_default(),
        models: models?,
        after: after?.unwrap_or_default(),
        carry: carry?.unwrap_or_default(),
        grace: i64::try_from(grace).unwrap_or(i64::MAX),
    };
    let Err((member, refusal)) = terms.check_members() else {
        return Some(terms);
    };
    let span = fields.get(member).map_or(fields.span, |value| value.span());
    report
        .add(Code::BadPlan, span, format!("{}: {refusal}", fields.what))
        .help(format!("for instance {}", example(member)));
    None
}

/// A sum in US dollars.
fn read_usd(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Amount> {
    let help = format!("write US dollars in quotes: {}", example(value.name));
    let DeValue::String(text) = value.node() else {
        value.expected(report, "a string").help(help);
        return None;
    };
    let sum = Amount::from_usd_str(text).ok();
    if sum.is_none() {
        let message = format!("`{}` is no sum of money", value.name);
        report.add(Code::BadPlan, value.span(), message).help(help);
    }
    sum
}

/// A word that the ledger knows.
fn read_parsed<T: std::str::FromStr<Err = String>>(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
) -> Option<T> {
    let text = value.text(report)?;
    match text.value.parse() {
        Ok(parsed) => Some(parsed),
        Err(why) => {
            report
                .add(Code::BadPlan, text.span, why)
                .help(format!("for instance {}", example(value.name)));
            None
        }
    }
}

fn read_window(value: Entry<'_, '_>, report: &mut Report<'_>, what: &str) -> Option<WindowBound> {
    let fields = value.fields(report, &format!("a window of {what}"), &KEYS.window)?;
    let per = fields.required(report, "per", example("per"), read_parsed);
    let usd = fields.required(report, "usd", example("usd"), read_usd);
    Some(WindowBound {
        per: per?,
        usd: usd?,
    })
}

/// A slug, with what is published in its place since it was retired.
fn read_model(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    slugs: &Slugs<'_>,
) -> Option<Vec<String>> {
    let text = value.text(report)?;
    let retired = slugs
        .retired
        .iter()
        .find(|retired| retired.slug == text.value);
    let kind = slugs.taken.get(text.value).map(|(_, kind)| *kind);
    if retired.is_some() || kind == Some(NameKind::Slug) {
        let stands_for = retired.and_then(|retired| retired.replacement.clone());
        return Some(
            std::iter::once(text.value.to_owned())
                .chain(stands_for)
                .collect(),
        );
    }
    let finding = report.add(
        Code::PlanModel,
        text.span,
        format!("`{}` is not a published slug", shorten(text.value)),
    );
    let published = slugs
        .taken
        .iter()
        .filter(|(_, (_, kind))| *kind == NameKind::Slug);
    let mut published: Vec<&str> = published.map(|(slug, _)| slug.as_str()).collect();
    published.sort_unstable();
    let near = nearest_models(text.value, published.into_iter());
    match (kind, near.first()) {
        (Some(_), _) => finding.help("write the slug, not an alias"),
        (None, Some(near)) => finding.help(format!("did you mean \"{near}\"?")),
        (None, None) => finding.help("name published slugs, or leave `models` out for all"),
    };
    None
}
