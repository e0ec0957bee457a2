//! The differences between two snapshots, row by row, for `farebox diff`. Pure; the caller formats the rows.

use std::collections::HashMap;
use std::time::Duration;

use farebox_ledger::{PlanAfter, PlanTerms};
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::summary::{
    ModelSummary, PriceListSummary, ProviderSummary, ShopSummary, Summary,
};

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
    /// A plan.
    Plan,
    /// A price list, or with a stroke and a slug one of its prices.
    #[serde(rename = "price_list")]
    PriceList,
    /// What keys, or customers, have that set nothing of their own.
    Defaults,
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
    /// Whether a price that customers pay has changed.
    #[must_use]
    pub fn is_new_price(&self) -> bool {
        self.is_price() && self.change == DifferenceKind::Changed
    }

    /// Whether it is about a price that customers pay.
    #[must_use]
    pub fn is_price(&self) -> bool {
        matches!(self.subject, DiffSubject::Model | DiffSubject::PriceList) && self.field == "price"
    }

    /// As `/status` and the audit show it.
    pub fn document(&self) -> Value {
        json!({
            "kind": self.change, "subject": self.subject, "slug": self.name, "what": self.field, "old": self.old, "new": self.new,
        })
    }
}

impl DiffSubject {
    /// All, in the order of the rows.
    pub const ALL: [Self; 7] = [
        Self::Model,
        Self::Retired,
        Self::Plan,
        Self::PriceList,
        Self::Defaults,
        Self::Provider,
        Self::Shop,
    ];

    /// It in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Retired => "retired slug",
            Self::Plan => "plan",
            Self::PriceList => "price list",
            Self::Defaults => "default",
            Self::Provider => "provider",
            Self::Shop => "shop",
        }
    }
}

/// The differences from one snapshot to another: models, then retired slugs, plans, price lists, defaults and providers, then the shop.
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
        DiffSubject::Plan,
        &old.plans,
        &new.plans,
        plan_fields,
    );
    let lists = [&old.lists, &new.lists].map(|lists| prices_of_lists(lists));
    compare(
        &mut rows,
        DiffSubject::PriceList,
        &lists[0],
        &lists[1],
        |(name, field, value)| (name, vec![(*field, value.clone())]),
    );
    compare(
        &mut rows,
        DiffSubject::Defaults,
        &old.defaults,
        &new.defaults,
        |(name, value)| (name, vec![("value", value.clone())]),
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

/// Each list, and each of its prices by its own name.
fn prices_of_lists(lists: &[PriceListSummary]) -> Vec<(String, &'static str, String)> {
    let each = lists.iter().flat_map(|list| {
        let only = if list.only { "true" } else { "false" };
        let prices = list.prices.iter();
        let prices =
            prices.map(|(slug, price)| (in_list(&list.name, slug), "price", price.clone()));
        std::iter::once((list.name.clone(), "only", only.to_owned())).chain(prices)
    });
    each.collect()
}

/// A slug's price in a list: neither name has a stroke.
pub(super) fn in_list(list: &str, slug: &str) -> String {
    format!("{list}/{slug}")
}

fn plan_fields(plan: &PlanTerms) -> NamedFields<'_> {
    let windows = plan.windows.iter();
    let windows: Vec<String> = windows
        .map(|window| format!("{} per {}", window.usd, window.per))
        .collect();
    let models = plan.models.as_ref();
    let after = match plan.after {
        PlanAfter::Balance => "balance",
        PlanAfter::Stop => "stop",
    };
    let grace = Duration::from_millis(plan.grace.unsigned_abs());
    let fields = vec![
        ("price", plan.price.to_string()),
        ("allowance", plan.allowance.to_string()),
        ("period", plan.period.to_string()),
        ("title", plan.title.clone()),
        ("windows", windows.join(", ")),
        (
            "models",
            models.map_or_else(|| "all".to_owned(), |slugs| slugs.join(", ")),
        ),
        ("after", after.to_owned()),
        ("carry", plan.carry.to_string()),
        ("grace", format!("{grace:?}")),
    ];
    (&plan.name, fields)
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
