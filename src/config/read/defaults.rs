//! Reads `[defaults.key]` and `[defaults.customer]`: what keys and customers have that set nothing of their own. What such a setting can be
//! is the ledger's rule; here it gets its place in the file.

use farebox_ledger::{Amount, Cap, CapInterval, DefaultSettings, Defaults};
use farebox_toml::{Code, ConfigTable, Entry, Fields, KEYS, Report, nearest_models, shorten};
use toml::de::DeValue;

use super::names::{NameKind, TakenNames};

const INTERVALS: &[(&str, CapInterval)] = &[
    ("day", CapInterval::Day),
    ("week", CapInterval::Week),
    ("month", CapInterval::Month),
    ("total", CapInterval::Total),
];
/// Most requests, each second or at once: far more than a gateway serves.
const MOST_REQUESTS: u32 = 1_000_000;

/// The defaults; a catalog without them has none.
pub(super) fn read_defaults(
    catalog: &Fields<'_, '_>,
    report: &mut Report<'_>,
    taken: &TakenNames,
) -> Defaults {
    let table = catalog.optional(report, "defaults", |value, report| {
        value.fields(report, "the defaults", &KEYS.defaults)
    });
    let Some(fields) = table else {
        return Defaults::default();
    };
    let mut of = |name, what: &str, known: &'static ConfigTable| {
        let read = fields.optional(report, name, |value, report| {
            let settings = value.fields(report, what, known)?;
            Some(read_settings(&settings, report, taken))
        });
        read.unwrap_or_default()
    };
    Defaults {
        key: of("key", "the defaults of keys", &KEYS.defaults_key),
        customer: of(
            "customer",
            "the defaults of customers",
            &KEYS.defaults_customer,
        ),
    }
}

fn read_settings(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    taken: &TakenNames,
) -> DefaultSettings {
    let requests = |report: &mut Report<'_>, name| {
        let read = fields.optional(report, name, |value, report| {
            value.small(report, 1..=MOST_REQUESTS)
        });
        read.map(|requests| requests.value)
    };
    let (rate, concurrency) = (requests(report, "rate"), requests(report, "concurrency"));
    let low_balance = (fields.knows("low_balance"))
        .then(|| fields.optional(report, "low_balance", read_usd))
        .flatten();
    let caps = fields.optional(report, "caps", |value, report| {
        read_caps(value, report, taken, &fields.what)
    });
    DefaultSettings {
        rate,
        concurrency,
        low_balance,
        caps: caps.unwrap_or_default(),
    }
}

/// The caps that fit beside those before them.
fn read_caps(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    taken: &TakenNames,
    what: &str,
) -> Option<Vec<Cap>> {
    let mut caps = Vec::new();
    for member in value.list(report, "tables")? {
        let span = member.span();
        let Some(cap) = read_cap(member, report, taken, what) else {
            continue;
        };
        match DefaultSettings::check_cap(&cap, &caps) {
            Ok(()) => caps.push(cap),
            Err(refusal) => {
                report.add(Code::BadDefault, span, format!("{what}: {refusal}"));
            }
        }
    }
    Some(caps)
}

fn read_cap(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    taken: &TakenNames,
    what: &str,
) -> Option<Cap> {
    let fields = value.fields(report, &format!("a cap of {what}"), &KEYS.default_cap)?;
    let limit = fields.required(report, "limit", "limit = \"5.00\"", read_usd);
    let interval = fields.required(report, "per", "per = \"day\"", |value, report| {
        value.word(report, INTERVALS)
    });
    let model = fields.given(report, "model", |value, report| {
        read_model(value, report, taken)
    });
    Some(Cap {
        limit: limit?,
        interval: interval?,
        model: model?,
    })
}

/// A sum in US dollars that is not below nothing.
fn read_usd(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Amount> {
    let help = format!("write US dollars in quotes: {} = \"5.00\"", value.name);
    let DeValue::String(text) = value.node() else {
        value.expected(report, "a string").help(help);
        return None;
    };
    let sum = Amount::from_usd_str(text).ok();
    let sum = sum.filter(|sum| !sum.is_negative());
    if sum.is_none() {
        let message = format!(
            "`{}` is no sum of money that anybody could have",
            value.name
        );
        report
            .add(Code::BadDefault, value.span(), message)
            .help(help);
    }
    sum
}

/// A published slug.
fn read_model(value: Entry<'_, '_>, report: &mut Report<'_>, taken: &TakenNames) -> Option<String> {
    let text = value.text(report)?;
    let kind = taken.get(text.value).map(|(_, kind)| *kind);
    if kind == Some(NameKind::Slug) {
        return Some(text.value.to_owned());
    }
    let published = taken
        .iter()
        .filter(|(_, (_, kind))| *kind == NameKind::Slug);
    let mut published: Vec<&str> = published.map(|(slug, _)| slug.as_str()).collect();
    published.sort_unstable();
    let near = nearest_models(text.value, published.into_iter());
    let finding = report.add(
        Code::DefaultModel,
        text.span,
        format!("`{}` is not a published slug", shorten(text.value)),
    );
    match (kind, near.first()) {
        (Some(_), _) => finding.help("write the slug, not an alias"),
        (None, Some(near)) => finding.help(format!("did you mean \"{near}\"?")),
        (None, None) => finding.help("name a published slug, or leave `model` out for all"),
    };
    None
}
