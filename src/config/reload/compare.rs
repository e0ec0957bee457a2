//! Warns about what a new snapshot changes for customers: prices that jump, slugs that vanish.
//!
//! Neither is a mistake in a file, so a reload goes ahead; but an operator who did not intend it must see it at once.

use farebox_ledger::Amount;

use crate::config::findings::code::Code;
use crate::config::{Config, Diagnostic, PriceUnit, Rates, show_price};

/// Warnings about the change from one snapshot to the next. `ever_published` are slugs that customers may know: those recorded in
/// earlier runs; what `old` publishes is added.
#[must_use]
pub fn compare(old: Option<&Config>, new: &Config, ever_published: &[String]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for model in old.iter().flat_map(|old| &old.catalog.models) {
        if let Some(now) = new
            .catalog
            .get(&model.slug)
            .filter(|now| now.slug == model.slug)
        {
            warnings.extend(jump(&model.slug, &model.price.base, &now.price.base));
            for class in &model.price.classes {
                let Some(of_now) = now.price.of(class.classes) else {
                    continue;
                };
                let name = format!("{} ({})", model.slug, class.classes.name());
                let same = of_now.base == class.price.base;
                // A factor follows the standard price, which is told of already.
                let follows = class.times.is_some()
                    && now
                        .price
                        .class(class.classes)
                        .is_some_and(|now| now.times == class.times);
                if !same && !follows {
                    warnings.extend(jump(&name, &class.price.base, &of_now.base));
                }
            }
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
    warning(
        Code::Vanished,
        format!("`{slug}` was removed without a `[[retired]]` entry"),
        help,
    )
}

/// The price of a model that changed most, if it changed by more than half.
fn jump(slug: &str, old: &Rates, new: &Rates) -> Option<Diagnostic> {
    let rates = [
        ("input", old.input, new.input),
        ("output", old.output, new.output),
        ("cache read", old.cache_read, new.cache_read),
        ("cache write", old.cache_write, new.cache_write),
    ];
    let jumps: Vec<String> = rates
        .into_iter()
        .filter(|(_, old, new)| more_than_half(*old, *new))
        .map(|(name, old, new)| {
            let show = |amount| show_price(amount, PriceUnit::MillionTokens);
            format!("{name} from {} to {}", show(old), show(new))
        })
        .collect();
    let help = "running requests keep the old price; undo the change if it is a mistake".to_owned();
    (!jumps.is_empty()).then(|| {
        warning(
            Code::PriceJump,
            format!("the price of `{slug}` jumps: {}", jumps.join(", ")),
            help,
        )
    })
}

fn more_than_half(old: Amount, new: Amount) -> bool {
    let (old, new) = (i128::from(old.picos()), i128::from(new.picos()));
    (new - old).abs() * 2 > old
}

fn warning(code: Code, message: String, help: String) -> Diagnostic {
    Diagnostic {
        severity: code.severity(),
        code: code.id(),
        message,
        place: None,
        help: Some(help),
        related: Vec::new(),
    }
}
