//! Shared by both files: lists of tables, slugs and the names of families.

use std::collections::HashMap;

use farebox_protocol::WirePath;
use farebox_toml::{Code, Entry, Fields, Placed, Report, Span, shorten};
use toml::de::{DeTable, DeValue};

const LONGEST_SLUG: usize = 100;

/// Names taken so far, with their places.
pub(super) type TakenNames = HashMap<String, (Span, NameKind)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Slug,
    Alias,
}

/// A slug: lower case, digits and `.` `_` `:` `-`.
pub(crate) fn read_slug<'r>(
    value: Entry<'r, '_>,
    report: &mut Report<'_>,
) -> Option<Placed<&'r str>> {
    let text = value.text(report)?;
    let allowed = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'.' | b'_' | b':' | b'-')
    };
    let starts = text
        .value
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit());
    if starts && text.value.bytes().all(allowed) && text.value.len() <= LONGEST_SLUG {
        return Some(text);
    }
    let finding = report.add(
        Code::BadSlug,
        text.span,
        format!("`{}` cannot be a slug", shorten(text.value)),
    );
    let lower = text.value.to_ascii_lowercase().replace([' ', '/'], "-");
    let lower = lower.trim_matches('-');
    if !lower.is_empty() && lower.len() <= LONGEST_SLUG && lower.bytes().all(allowed) {
        finding.help(format!(
            "write \"{lower}\"; slugs are lower-case letters, digits and . _ : -"
        ));
    } else {
        finding.help(
            "a slug has lower-case letters, digits and . _ : -, begins with a letter or digit, and has at most 100 characters",
        );
    }
    None
}

/// One of the three families, or a call.
pub(super) fn read_path(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Placed<WirePath>> {
    let text = value.text(report)?;
    if text.value == "native" {
        report
            .add(
                Code::UnknownWord,
                text.span,
                format!("`{}` cannot be `native` here", value.name),
            )
            .help("write \"messages\"; customers see it as `native`");
        return None;
    }
    let words: Vec<_> = WirePath::all().map(|path| (path.name(), path)).collect();
    let span = text.span;
    let value = value.word(report, &words)?;
    Some(Placed { value, span })
}

/// What the thing that a table describes is called in a finding.
pub(super) fn called(kind: &str, table: &DeTable<'_>, key: &str) -> String {
    match table.get(key).map(|name| name.get_ref()) {
        Some(DeValue::String(name)) => format!("{kind} `{}`", shorten(name)),
        _ => format!("a {kind}"),
    }
}

/// Each of them once.
pub(super) fn distinct<T: PartialEq>(all: Vec<T>) -> Vec<T> {
    let mut each = Vec::with_capacity(all.len());
    for value in all {
        if !each.contains(&value) {
            each.push(value);
        }
    }
    each
}

/// The tables of `[[name]]`.
pub(crate) fn read_tables<'r, 'i>(
    fields: &Fields<'r, 'i>,
    report: &mut Report<'_>,
    name: &'static str,
) -> Vec<(&'r DeTable<'i>, Span)> {
    let Some(value) = fields.get(name) else {
        return Vec::new();
    };
    if let DeValue::Table(inner) = value.node() {
        let named = inner
            .iter()
            .find(|(_, node)| matches!(node.get_ref(), DeValue::Table(_)))
            .filter(|_| !inner.contains_key("slug"));
        let slug = named.map(|(key, _)| {
            format!(
                ", and slug = \"{}\" below it: a dot in a header starts a nested table",
                shorten(key.get_ref())
            )
        });
        report
            .add(
                Code::WrongTable,
                value.key,
                format!("`{name}` must be a list of tables"),
            )
            .help(format!(
                "write [[{name}]] in double brackets{}",
                slug.unwrap_or_default()
            ));
        return Vec::new();
    }
    let members = value.list(report, "tables").unwrap_or_default();
    members
        .into_iter()
        .filter_map(|member| member.table(report, "a table"))
        .collect()
}
