//! Price lists as a snapshot has them: what each customer is offered, in figures.

use super::*;

fn loaded() -> Config {
    let (catalog, routes) = pairs("valid").remove("price-lists").unwrap();
    load(&catalog, &routes, &secrets(false)).0.unwrap()
}

/// Slugs with their prices, as a customer with this list reads them.
fn shown(config: &Config, list: Option<&str>) -> Vec<(String, String)> {
    let catalog = match list {
        None => &config.catalog,
        Some(name) => &config.catalog.list(name).unwrap().catalog,
    };
    let models = catalog.models.iter();
    models
        .map(|model| (model.slug.clone(), model.price.shown()))
        .collect()
}

#[test]
fn a_list_replaces_whole_prices_and_markups_are_figures() {
    let config = loaded();
    let alpha = "in $3.00 · out $15.00 · cache read $0.30 per 1M tokens · flex ×0.5";
    let beta = "in $1.20 · out $6.00 per 1M tokens · above 200,000 input tokens: in $2.40 · out $9.60 per 1M tokens";
    let named = |prices: &[(&str, &str)]| -> Vec<(String, String)> {
        let prices = prices.iter();
        prices
            .map(|(slug, price)| ((*slug).to_owned(), (*price).to_owned()))
            .collect()
    };
    assert_eq!(
        shown(&config, None),
        named(&[("alpha-1.5", alpha), ("beta", beta)])
    );
    // Its classes and caches are not sold any more.
    let partners = "in $2.60 · out $13.00 per 1M tokens";
    assert_eq!(
        shown(&config, Some("Partners.2026")),
        named(&[("alpha-1.5", partners), ("beta", beta)])
    );
    let marked = "in $2.625 · out $13.125 · cache read $0.2625 per 1M tokens · flex ×0.5";
    let figures = "in $9.00 · out $90.00 per 1M tokens";
    assert_eq!(
        shown(&config, Some("resellers")),
        named(&[("alpha-1.5", marked), ("beta", figures)])
    );
    let marked = "in $2.75 · out $13.75 · cache read $0.275 per 1M tokens · flex ×0.5";
    assert_eq!(
        shown(&config, Some("alpha-only")),
        named(&[("alpha-1.5", marked)])
    );
}

#[test]
fn who_has_a_list_is_offered_that_and_never_another() {
    let config = loaded();
    let of = |name: Option<&str>| {
        let offered = config.catalog.offered_to(name);
        offered.map(|catalog| catalog.models.len())
    };
    assert_eq!(of(None), Some(2));
    assert_eq!(of(Some("Partners.2026")), Some(2));
    assert_eq!(of(Some("alpha-only")), Some(1));
    assert_eq!(of(Some("partners.2026")), None, "names are exact");
    let why = config.catalog.list("partners.2026").unwrap_err();
    assert!(why.ends_with("did you mean `Partners.2026`?"), "{why}");
}

#[test]
fn what_a_list_does_not_offer_is_unknown_under_every_name() {
    let config = loaded();
    let only = &config.catalog.list("alpha-only").unwrap().catalog;
    assert!(matches!(only.find("beta"), Lookup::Unknown(_)));
    assert!(matches!(only.find("beta-0"), Lookup::Retired(_, None)));
    assert!(matches!(
        config.catalog.find("beta-0"),
        Lookup::Retired(_, Some("beta"))
    ));
    let Lookup::Found(model) = only.find("alpha-latest") else {
        panic!("an alias stands for its slug")
    };
    assert_eq!(model.price.base.input.picos(), 2_750_000);
    assert_eq!(only.cheapest_input.picos(), 2_750_000);
}

#[test]
fn diff_tells_each_price_of_a_list() {
    let config = loaded();
    let (catalog, routes) = pairs("valid").remove("price-lists").unwrap();
    let edited = catalog
        .text
        .replace("2.60", "2.70")
        .replace("alpha-only", "alpha-alone");
    let edited = edited.replace(
        "[price_list.price.\"alpha",
        "only = true\n[price_list.price.\"alpha",
    );
    let edited = Source::new("catalog.toml", edited);
    let new = load(&edited, &routes, &secrets(false)).0.unwrap();
    let rows = diff(&config.summary(), &new.summary());
    let said: Vec<String> = rows
        .iter()
        .map(|row| {
            let [old, new] = [&row.old, &row.new].map(|value| value.as_deref().unwrap_or("–"));
            format!(
                "{}{} {} {}: {old} → {new}",
                row.change.mark(),
                row.subject.words(),
                row.name,
                row.field
            )
        })
        .collect();
    snapshots().bind(|| insta::assert_snapshot!("diff-price-lists", said.join("\n")));
}
