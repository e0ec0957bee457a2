//! `farebox add`: a model from the library into both files, with its provider and route.
//!
//! What is written is shown first, and stands behind what is there, so comments and order stay as they are. Only the examples of
//! `farebox init`, as long as nobody has touched them, go with the first real model: a simulated answer is nothing to sell. The files
//! with it must pass the checks, or nothing is written. A price that nobody has verified is never written.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use super::{check, init};
use crate::args::Args;
use crate::args::library::AddOptions;
use crate::output::{self, CommandFailed};
use farebox::config::{
    self, CATALOG_HEAD, Config, Library, NamesIn, Offer, Preset, PriceUnit, ProcessSecrets,
    ROUTES_HEAD, Source, parse_price, preset, show_price,
};
use farebox::setup::clients;

pub(crate) fn run(args: &Args, options: &AddOptions) -> Result<(), CommandFailed> {
    let offer = find(&options.model)?;
    let preset = preset(&offer.service).ok_or_else(|| {
        CommandFailed::refused(format!("there is no service `{}`", offer.service))
    })?;
    if !offer.is_verified("price") {
        let name = offer.name();
        return Err(CommandFailed::refused(format!(
            "the library's price of {name} is unverified, and is not written: read {} and write the model by hand",
            offer.source
        )));
    }
    let (catalog, routes) = (read(&args.catalog)?, read(&args.routes)?);
    let config = check::load(args)?;
    let slug = options.slug.as_deref().unwrap_or(&offer.model.slug);
    if config.catalog.get(slug).is_some() {
        return Err(CommandFailed::refused(format!(
            "`{slug}` is already published; choose another slug with --slug"
        )));
    }
    let examples = catalog.text == init::CATALOG && routes.text == init::ROUTES;
    let kept = |source: Source, head: &str| match examples {
        true => Source::new(&source.name, head),
        false => source,
    };
    let (catalog, routes) = (kept(catalog, CATALOG_HEAD), kept(routes, ROUTES_HEAD));
    let added_routes = routes_block(&routes.text, &config, preset, offer, slug)?;
    let added_catalog = catalog_block(&config, offer, slug, options.markup)?;
    let checked = |source: &Source, added: &str| Source::new(&source.name, appended(source, added));
    let files = [
        checked(&catalog, &added_catalog),
        checked(&routes, &added_routes),
    ];
    let (config, findings) = config::load(&files[0], &files[1], &ProcessSecrets { lenient: true });
    let Some(config) = config else {
        return Err(check::failed(&findings));
    };
    if examples {
        output::print(
            "- the simulated models that `farebox init` wrote (`farebox demo` keeps them)",
        );
    }
    // Routes first: a route without a model is only a warning.
    let files = [
        (&args.routes, &routes, &added_routes),
        (&args.catalog, &catalog, &added_catalog),
    ];
    for (path, _, added) in files {
        show(path, added);
    }
    for (path, source, added) in files {
        let written = match examples {
            true => fs::write(path, appended(source, added)),
            false => append(path, source, added),
        };
        written.map_err(|error| {
            CommandFailed::refused(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    told(args, options, offer);
    offer_aliases(&config, offer);
    next(preset);
    Ok(())
}

/// What stands behind the diff.
fn told(args: &Args, options: &AddOptions, offer: &Offer) {
    let markup = match options.markup {
        0 => "the list price".to_owned(),
        percent => format!("the list price and {percent} %"),
    };
    output::print(&format!(
        "wrote {} and {}: {markup} of {} ({})",
        args.routes.display(),
        args.catalog.display(),
        offer.date,
        offer.source
    ));
    if !offer.unverified.is_empty() {
        let what = offer.unverified.join(", ");
        output::print(&format!("unverified, look before you sell: {what}"));
    }
    if let Some((date, source)) = offer.model.classes_source() {
        output::print(&format!("the classes of the price: {date} ({source})"));
    }
}

/// What is left to do.
fn next(preset: &Preset) {
    if let Some(note) = &preset.note {
        output::print(note);
    }
    let key = preset.key.as_deref();
    let secret = key.map(|key| format!("export {key}=…, then "));
    output::print(&format!(
        "next: {}farebox check",
        secret.unwrap_or_default()
    ));
}

/// Names that clients of the model's own family ask for by themselves, as long as nothing answers to them.
fn offer_aliases(config: &Config, offer: &Offer) {
    for client in clients() {
        let unknown = client.asks_for.iter().map(String::as_str);
        let unknown: Vec<&str> = unknown
            .filter(|name| config.catalog.get(name).is_none())
            .collect();
        if client.family == offer.model.best_path && !unknown.is_empty() {
            output::print(&format!(
                "{} also asks for {} by itself, and nothing answers to that: aliases = [\"{}\"] in one of your models does",
                client.title,
                unknown.join(", "),
                unknown.join("\", \"")
            ));
        }
    }
}

/// `SERVICE`, its usual model, or `SERVICE/MODEL`, by slug or by the service's own name.
fn find(wanted: &str) -> Result<&'static Offer, CommandFailed> {
    let library = Library::current();
    let (service, model) = match wanted.split_once('/') {
        Some((service, model)) => (service, Some(model)),
        None => (wanted, None),
    };
    let named = |offer: &&Offer| {
        model.is_none_or(|model| offer.model.slug == model || offer.model.upstream == model)
    };
    library.at(service).find(named).ok_or_else(|| {
        let mut known: Vec<String> = library.at(service).map(Offer::name).collect();
        if known.is_empty() {
            known = library.offers().iter().map(Offer::name).collect();
        }
        CommandFailed::refused(format!(
            "the library has no {wanted}; it has {}",
            known.join(", ")
        ))
    })
}

fn read(path: &Path) -> Result<Source, CommandFailed> {
    Source::read(path).map_err(|error| {
        let hint = if error.absent {
            "; `farebox init` writes both files"
        } else {
            ""
        };
        CommandFailed::refused(format!("{}: {}{hint}", path.display(), error.problem))
    })
}

/// The provider, unless the service has one, and the route.
fn routes_block(
    routes: &str,
    config: &Config,
    preset: &Preset,
    offer: &Offer,
    slug: &str,
) -> Result<String, CommandFailed> {
    let named = NamesIn::routes(routes)
        .ok_or_else(|| CommandFailed::refused("the routes cannot be read; see `farebox check`"))?;
    if named.routes.iter().any(|routed| routed == slug) {
        return Err(CommandFailed::refused(format!(
            "`{slug}` has a route already; remove it, or choose another slug with --slug"
        )));
    }
    let of_kind = |kind: &Option<String>| kind.as_deref() == Some(preset.name.as_str());
    let mut providers = named.providers.iter();
    if let Some((name, _)) = providers.find(|(_, kind)| of_kind(kind)) {
        return Ok(preset.route_block(&offer.model, slug, name));
    }
    let name = preset.provider_name();
    if config.provider(&name).is_some() {
        return Err(CommandFailed::refused(format!(
            "provider `{name}` is something else; add kind = \"{}\" to it, or give it another name",
            preset.name
        )));
    }
    let route = preset.route_block(&offer.model, slug, &name);
    Ok(format!("\n{}{route}", preset.provider_block()))
}

/// The model, with the vendor's own id as an alias where clients may insist on it.
fn catalog_block(
    config: &Config,
    offer: &Offer,
    slug: &str,
    markup: u32,
) -> Result<String, CommandFailed> {
    let id = offer.model.upstream.as_str();
    let may_be_sent = id != slug
        && config.catalog.get(id).is_none()
        && id.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._:-".contains(&byte)
        });
    let aliases: &[&str] = if may_be_sent { &[id] } else { &[] };
    let rates = |rate: &str| with_markup(rate, markup).unwrap_or_default();
    Ok(format!("\n{}", offer.model.block(slug, aliases, rates)))
}

/// A rate with a markup in percent, rounded up to what a price can say.
fn with_markup(rate: &str, percent: u32) -> Option<String> {
    let unit = PriceUnit::MillionTokens;
    let picos = i128::from(parse_price(rate, unit).ok()?.picos());
    let marked = (picos * i128::from(100 + percent) + 99) / 100;
    let marked = farebox_ledger::Amount::from_picos(i64::try_from(marked).ok()?);
    Some(show_price(marked, unit).replace(['$', ','], ""))
}

fn appended(source: &Source, added: &str) -> String {
    format!("{}{}", source.text, behind(source, added))
}

/// What is added, on lines of its own.
fn behind(source: &Source, added: &str) -> String {
    match source.text.ends_with('\n') || source.text.is_empty() {
        true => added.to_owned(),
        false => format!("\n{added}"),
    }
}

fn append(path: &Path, source: &Source, added: &str) -> std::io::Result<()> {
    OpenOptions::new()
        .append(true)
        .open(path)?
        .write_all(behind(source, added).as_bytes())
}

/// The lines to come, as a diff.
fn show(path: &Path, added: &str) {
    let lines = added
        .lines()
        .map(|line| format!("+ {line}").trim_end().to_owned());
    output::print(&format!(
        "{}\n{}",
        path.display(),
        lines.collect::<Vec<_>>().join("\n")
    ));
}

#[cfg(test)]
mod tests {
    use farebox::config::{Library, ProcessSecrets, Source, list_price, load, preset};

    use super::with_markup;

    /// Rates and factors of classes stay whole picodollars whatever the markup, or the written files would be refused.
    #[test]
    fn every_verified_offer_can_be_sold_at_every_markup() {
        for offer in Library::current().offers() {
            let name = offer.name();
            let known = list_price(offer).is_some();
            assert_eq!(known, offer.is_verified("price"), "{name}");
            let preset = preset(&offer.service).expect("a service");
            for percent in (0..=100).filter(|_| known) {
                let fill = |rate: &str| with_markup(rate, percent).expect("a rate");
                let (slug, provider) = (&offer.model.slug, preset.provider_name());
                let route = preset.route_block(&offer.model, slug, &provider);
                let files = [
                    Source::new("catalog.toml", offer.model.block(slug, &[], fill)),
                    Source::new("routes.toml", preset.provider_block() + &route),
                ];
                let secrets = ProcessSecrets { lenient: true };
                let (config, findings) = load(&files[0], &files[1], &secrets);
                assert!(config.is_some(), "{name} +{percent} %: {findings:?}");
            }
        }
    }

    #[test]
    fn a_markup_is_exact_or_rounded_up() {
        assert_eq!(with_markup("0.75", 20).as_deref(), Some("0.90"));
        assert_eq!(with_markup("0.075", 0).as_deref(), Some("0.075"));
        assert_eq!(with_markup("1200", 25).as_deref(), Some("1500.00"));
        assert_eq!(with_markup("0.000001", 20).as_deref(), Some("0.000002"));
    }
}
