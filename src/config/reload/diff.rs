//! The differences between two snapshots, row by row, for `farebox diff`. Pure; the caller formats the rows.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::config::summary::{ModelSummary, ProviderSummary, ShopSummary, Summary};

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// Added: `+`.
    Added,
    /// Removed: `−`.
    Removed,
    /// Changed: `~`.
    Changed,
}

impl DifferenceKind {
    /// The mark in front of a row.
    #[must_use]
    pub const fn mark(self) -> char {
        match self {
            Self::Added => '+',
            Self::Removed => '−',
            Self::Changed => '~',
        }
    }
}

/// The subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffSubject {
    /// A published model.
    Model,
    /// A retired slug.
    Retired,
    /// A provider.
    Provider,
    /// The seller.
    Shop,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffRow {
    /// Its kind.
    pub change: DifferenceKind,
    /// Its subject.
    pub subject: DiffSubject,
    /// Its slug or name.
    pub name: String,
    /// The column or field; for something added or removed, its price, replacement or address.
    pub field: &'static str,
    /// The running value.
    pub old: Option<String>,
    /// The value in the files.
    pub new: Option<String>,
}

impl DiffRow {
    /// As `/status` and the audit show it.
    pub fn document(&self) -> Value {
        json!({
            "kind": self.change, "subject": self.subject, "slug": self.name, "what": self.field, "old": self.old, "new": self.new,
        })
    }
}

/// The differences from one snapshot to another: models, then retired slugs, then providers, then the shop.
pub fn diff(old: &Summary, new: &Summary) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    compare(
        &mut rows,
        DiffSubject::Model,
        &old.models,
        &new.models,
        model_fields,
    );
    compare(
        &mut rows,
        DiffSubject::Retired,
        &old.retired,
        &new.retired,
        |retired| {
            (
                &retired.slug,
                vec![
                    ("use", retired.replacement.clone().unwrap_or_default()),
                    ("since", retired.since.clone()),
                ],
            )
        },
    );
    compare(
        &mut rows,
        DiffSubject::Provider,
        &old.providers,
        &new.providers,
        provider_fields,
    );
    let shops = [&old.shop, &new.shop].map(|shop| shop.clone().into_iter().collect::<Vec<_>>());
    compare(
        &mut rows,
        DiffSubject::Shop,
        &shops[0],
        &shops[1],
        shop_fields,
    );
    rows
}

/// There is one shop at most: its name is a field like the others.
fn shop_fields(shop: &ShopSummary) -> NamedFields<'_> {
    (
        "[shop]",
        vec![
            ("pay_url", shop.pay_url.clone()),
            ("name", shop.name.clone()),
            ("contact", shop.contact.clone()),
            ("note", shop.note.clone()),
            ("address", shop.address.clone()),
            ("tax_id", shop.tax_id.clone()),
            ("terms_url", shop.terms_url.clone()),
            ("privacy_url", shop.privacy_url.clone()),
            (
                "out_of_balance_status",
                shop.out_of_balance_status.to_string(),
            ),
        ],
    )
}

/// The name of a thing and its fields; the first one stands for the whole.
type NamedFields<'a> = (&'a str, Vec<(&'static str, String)>);

fn by_name<'r, 'n>(rows: &'r [NamedFields<'n>]) -> HashMap<&'n str, &'r NamedFields<'n>> {
    rows.iter().map(|row| (row.0, row)).collect()
}

fn compare<T>(
    rows: &mut Vec<DiffRow>,
    subject: DiffSubject,
    old: &[T],
    new: &[T],
    fields: fn(&T) -> NamedFields<'_>,
) {
    let old: Vec<NamedFields<'_>> = old.iter().map(fields).collect();
    let new: Vec<NamedFields<'_>> = new.iter().map(fields).collect();
    let (before, after) = (by_name(&old), by_name(&new));
    let mut tell = |change, name: &str, field, old, new| {
        rows.push(DiffRow {
            change,
            subject,
            name: name.to_owned(),
            field,
            old,
            new,
        });
    };
    for (name, fields) in &new {
        let Some((_, were)) = before.get(name) else {
            let (field, value) = fields.first().cloned().unwrap_or_default();
            tell(DifferenceKind::Added, name, field, None, Some(value));
            continue;
        };
        for ((field, was), (_, now)) in were.iter().zip(fields).filter(|(was, now)| was != now) {
            let (was, now) = (Some(was.clone()), Some(now.clone()));
            tell(DifferenceKind::Changed, name, field, was, now);
        }
    }
    for (name, fields) in old.iter().filter(|(name, _)| !after.contains_key(name)) {
        let (field, value) = fields.first().cloned().unwrap_or_default();
        tell(DifferenceKind::Removed, name, field, Some(value), None);
    }
}

fn model_fields(model: &ModelSummary) -> NamedFields<'_> {
    let fields = vec![
        ("price", model.price.clone()),
        ("model", model.model.clone()),
        ("provider", model.provider.clone()),
        ("best path", model.best_path.clone()),
        ("best environments", model.best_environments.join(", ")),
        ("capabilities", model.capabilities.join(", ")),
        ("limits", model.limits.clone()),
        ("aliases", model.aliases.join(", ")),
        ("targets", model.targets.join(", ")),
        ("policy", model.policy.clone()),
    ];
    (&model.slug, fields)
}

fn provider_fields(provider: &ProviderSummary) -> NamedFields<'_> {
    let fields = vec![
        ("base_url", provider.endpoint.clone()),
        ("speaks", provider.speaks.join(", ")),
        ("keys", provider.keys.to_string()),
        ("settings", provider.settings.clone()),
    ];
    (&provider.name, fields)
}
