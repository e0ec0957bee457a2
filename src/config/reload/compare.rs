//! Warns about what a new snapshot changes for customers: prices that jump, slugs that vanish.
//!
//! Neither is a mistake in a file, so a reload goes ahead; but an operator who did not intend it must see it at once.

use std::sync::Arc;

use farebox_ledger::{Amount, grouped};
use farebox_toml::Code;

use super::diff::in_list;
use crate::config::{Catalog, Config, Diagnostic, Model, Price, PriceUnit, Rates, show_price};

/// Warnings about the change from one snapshot to the next. `ever_published` are slugs that customers may know: those recorded in
/// earlier runs; what `old` publishes is added.
pub fn compare(old: Option<&Config>, new: &Config, ever_published: &[String]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for (slug, before, now) in old.iter().flat_map(|old| prices(old, new)) {
        for (class, before, now) in parts(before, now) {
            let name = match class {
                None => slug.clone(),
                Some(class) => format!("{slug} ({class})"),
            };
            warnings.extend(jump(&name, before, now));
        }
    }
    let before = old
        .iter()
        .flat_map(|old| &old.catalog.models)
        .map(|model| model.slug.as_str());
    let mut known: Vec<&str> = ever_published
        .iter()
        .map(String::as_str)
        .chain(before)
        .collect();
    known.sort_unstable();
    known.dedup();
    warnings.extend(
        known
            .into_iter()
            .filter(|slug| !explained(new, slug))
            .map(vanished),
    );
    warnings
}

/// A price that fell by more than half while the gateway ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceFall {
    /// The slug.
    pub slug: String,
    /// The rates that fell, with old and new.
    pub what: String,
    /// When, milliseconds since 1970.
    pub at_ms: i64,
}

impl PriceFall {
    /// How long it is worth an alert.
    const STANDS_MS: i64 = 24 * 60 * 60 * 1_000;

    /// Whether somebody should still be told.
    pub fn stands(&self, now_ms: i64) -> bool {
        now_ms - self.at_ms < Self::STANDS_MS
    }
}

/// The falls that stand after a load: those of before whose price is still the same, and new ones.
pub(super) fn falls(
    standing: &[PriceFall],
    old: &Config,
    new: &Config,
    at_ms: i64,
) -> Vec<PriceFall> {
    let mut falls = Vec::new();
    for (slug, before, now) in prices(old, new) {
        let fell = parts(before, now)
            .into_iter()
            .flat_map(|(class, before, now)| {
                let class = class.map(|class| format!("{class} ")).unwrap_or_default();
                let fell = changes(before, now, |old, new| new < old);
                fell.into_iter().map(move |change| class.clone() + &change)
            });
        let fell: Vec<String> = fell.collect();
        let known = |fall: &&PriceFall| fall.slug == slug && fall.stands(at_ms);
        if !fell.is_empty() {
            let what = fell.join(", ");
            falls.push(PriceFall { slug, what, at_ms });
        } else if before == now {
            falls.extend(standing.iter().find(known).cloned());
        }
    }
    falls
}

/// The models of both snapshots, and of the lists of both as far as one of the two prices is the list's own: slug, price before, price
/// now.
fn prices<'a>(
    old: &'a Config,
    new: &'a Config,
) -> impl Iterator<Item = (String, &'a Price, &'a Price)> {
    let of_all = both(&old.catalog, &new.catalog);
    let of_all = of_all.map(|(model, now)| (model.slug.clone(), &model.price, &now.price));
    let of_lists = old
        .catalog
        .lists_with(&new.catalog)
        .flat_map(|(name, before, after)| {
            let own = both(before, after)
                .filter(|(model, now)| !old.catalog.shares(model) || !new.catalog.shares(now));
            own.map(move |(model, now)| (in_list(name, &model.slug), &model.price, &now.price))
        });
    of_all.chain(of_lists)
}

/// The models that both offer.
fn both<'a>(
    old: &'a Catalog,
    new: &'a Catalog,
) -> impl Iterator<Item = (&'a Arc<Model>, &'a Arc<Model>)> {
    old.models.iter().filter_map(|model| {
        let now = new.get(&model.slug)?;
        (now.slug == model.slug).then_some((model, now))
    })
}

/// A class, none for the standard; its price before, and now.
type PriceTerm<'a> = (Option<&'static str>, &'a Price, &'a Price);

/// A price, and those of its classes that changed by themselves.
fn parts<'a>(before: &'a Price, now: &'a Price) -> Vec<PriceTerm<'a>> {
    let mut parts: Vec<PriceTerm<'a>> = vec![(None, before, now)];
    for class in &before.classes {
        let Some(of_now) = now.of(class.classes) else {
            continue;
        };
        let same = of_now.base == class.price.base;
        // A factor follows the standard price, which is told of already.
        let now_times = now.class(class.classes).map(|now| now.times);
        let follows = class.times.is_some() && now_times == Some(class.times);
        if !same && !follows {
            parts.push((Some(class.classes.name()), &class.price, of_now));
        }
    }
    parts
}

/// Whether customers who send a slug get an answer or a pointer to its replacement.
fn explained(new: &Config, slug: &str) -> bool {
    new.catalog.get(slug).is_some()
        || new
            .catalog
            .retired
            .iter()
            .any(|retired| retired.slug == slug)
}

fn vanished(slug: &str) -> Diagnostic {
    let help =
        format!("add [[retired]] with slug = \"{slug}\", and use = \"…\" to name its replacement");
    Diagnostic::without_line(
        Code::Vanished,
        format!("`{slug}` was removed without a `[[retired]]` entry"),
        help,
    )
}

/// The rates of a price that changed by more than half.
fn jump(slug: &str, old: &Price, new: &Price) -> Option<Diagnostic> {
    let jumps = changes(old, new, |_, _| true);
    let help = "running requests keep the old price; undo the change if it is a mistake".to_owned();
    (!jumps.is_empty()).then(|| {
        Diagnostic::without_line(
            Code::PriceJump,
            format!("the price of `{slug}` jumps: {}", jumps.join(", ")),
            help,
        )
    })
}

/// What changed by more than half among the changes that are asked for, in every tier of either price.
fn changes(old: &Price, new: &Price, wanted: fn(Amount, Amount) -> bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for size in old.sizes_with(new) {
        let changed = rates(old.for_input(size), new.for_input(size))
            .filter(|(_, _, old, new)| more_than_half(*old, *new) && wanted(*old, *new));
        for (name, unit, old, new) in changed {
            let change = format!(
                "{name} from {} to {}",
                show_price(old, unit),
                show_price(new, unit)
            );
            match size {
                0 => found.push(change),
                // A tier that changes like the rates below it says nothing new.
                _ if found.iter().any(|said| said.starts_with(&name)) => {}
                _ => found.push(format!("{change} above {} input tokens", grouped(size - 1))),
            }
        }
    }
    found
}

/// Every rate that both sell: its name, its unit, and what it was and is.
fn rates(
    old: &Rates,
    new: &Rates,
) -> impl Iterator<Item = (String, PriceUnit, Amount, Amount)> + use<> {
    let columns = old.columns().into_iter().zip(new.columns());
    columns.filter_map(|(old, new)| {
        // Unset, it follows the output.
        let follows = old.name == "reasoning" && old.said().or(new.said()).is_none();
        let words = old.words();
        let name = words.strip_prefix("per ").unwrap_or(&words).to_owned();
        (!follows).then_some((name, old.unit, old.rate?, new.rate?))
    })
}

fn more_than_half(old: Amount, new: Amount) -> bool {
    let (old, new) = (i128::from(old.picos()), i128::from(new.picos()));
    (new - old).abs() * 2 > old
}
