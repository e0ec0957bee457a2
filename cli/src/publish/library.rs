//! `farebox library`: the known models with list prices; `--diff`: what they say against the catalog's costs.

use serde_json::json;

use super::check;
use crate::args::library::LibraryOptions;
use crate::args::{Args, OutputFormat};
use crate::output::{self, CommandFailed};
use farebox::config::{
    Library, Offer, PriceUnit, Rates, SourcedFact, Speeds, list_price, preset, show_price,
};
use farebox_ledger::Amount;

pub(crate) fn run(args: &Args, options: &LibraryOptions) -> Result<(), CommandFailed> {
    if options.diff {
        return diff(args);
    }
    let offers = Library::current().offers();
    if args.format() == OutputFormat::Json {
        let offers: Vec<_> = offers.iter().map(document).collect();
        output::print_json(&json!({ "offers": offers }));
        return Ok(());
    }
    let header = ["model", "input", "output", "context", "date"];
    let rows = offers.iter().map(|offer| {
        let price = list_price(offer);
        let rate = |of: fn(&Rates) -> Amount| match &price {
            Some(price) => show_price(of(&price.base), PriceUnit::MillionTokens),
            None => "unverified".to_owned(),
        };
        vec![
            offer.name(),
            rate(|rates| rates.input),
            rate(|rates| rates.output),
            farebox_ledger::grouped(offer.model.context),
            offer.date.clone(),
        ]
    });
    output::print(&output::table(&header, &rows.collect::<Vec<_>>()));
    output::print(
        "\nList prices in USD per 1,000,000 tokens; --json has caches, classes and sources.",
    );
    Ok(())
}

fn document(offer: &Offer) -> serde_json::Value {
    let service = Library::current().service(&offer.service);
    let of_service = service.iter().flat_map(|service| &service.unverified);
    let unverified: Vec<_> = offer.unverified.iter().chain(of_service).collect();
    json!({
        "name": offer.name(),
        "service": offer.service,
        "slug": offer.model.slug,
        "upstream": offer.model.upstream,
        "list_price": list_price(offer).map(|price| price.shown()),
        "context": offer.model.context,
        "max_output": offer.model.output,
        "picture_tokens": offer.model.pictures,
        "max_reasoning": offer.model.reasoning,
        "speed": offer.speed.as_ref().map(|fact| looked_up_fact(speeds(&fact.is), fact)),
        "limit": service.and_then(|service| service.limit.as_ref())
            .map(|fact| looked_up_fact(json!(fact.is.name()), fact)),
        "stops": service.and_then(|service| service.stops.as_ref())
            .map(|fact| looked_up_fact(json!(fact.is), fact)),
        "abilities": offer.model.abilities,
        "date": offer.date,
        "source": offer.source,
        "reference": preset(&offer.service).map(|preset| preset.reference.as_str()),
        "unverified": unverified,
        "classes": offer.model.classes_source().map(looked_up),
        "calls": offer.calls.as_ref().map(|calls| {
            let (date, source) = (&calls.date, &calls.source);
            json!({ "price": calls.price, "date": date, "source": source })
        }),
    })
}

fn looked_up_fact<T>(is: serde_json::Value, fact: &SourcedFact<T>) -> serde_json::Value {
    json!({ "is": is, "date": fact.date, "source": fact.source })
}

fn speeds(speeds: &Speeds) -> serde_json::Value {
    json!({ "standard": speeds.standard, "flex": speeds.flex, "fast": speeds.fast })
}

fn looked_up((date, source): (&str, &str)) -> serde_json::Value {
    json!({ "date": date, "source": source })
}

/// Targets whose cost is not what the library says now.
fn diff(args: &Args) -> Result<(), CommandFailed> {
    let config = check::load(args)?;
    let mut rows = Vec::new();
    for model in &config.catalog.models {
        for target in &model.route.targets {
            let Some(list) = target.list.as_deref() else {
                continue;
            };
            let cost = target.cost.as_deref();
            if cost != Some(list) {
                let cost = cost.map_or_else(|| "none".to_owned(), |cost| cost.shown());
                rows.push(vec![model.slug.clone(), target.name(), cost, list.shown()]);
            }
        }
    }
    let header = ["slug", "target", "cost", "the library"];
    if args.format() == OutputFormat::Json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| json!({ "slug": row[0], "target": row[1], "cost": row[2], "library": row[3] }))
            .collect();
        output::print_json(&json!({ "differences": rows }));
    } else if rows.is_empty() {
        output::print("no differences");
    } else {
        output::print(&output::table(&header, &rows));
    }
    Ok(())
}
