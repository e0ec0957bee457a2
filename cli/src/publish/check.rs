//! `farebox check`: reports every mistake in both files at once, and what the running gateway has learnt about their targets. Other
//! commands also load the files through it.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::OnceLock;

use farebox_protocol::Family;
use serde::Deserialize;

use super::online;
use crate::app::certificates;
use crate::args::{Args, CheckOptions, OutputFormat};
use crate::gateway;
use crate::output::{self, CommandFailed};
use crate::settings::settings;
use farebox::config::{
    self, Catalog, Config, Diagnostic, Diagnostics, Model, Paint, ProcessSecrets, ServedAs,
    Severity, Shop,
};
use farebox_ledger::PlanTerms;
use farebox_selling::SoldModels;

/// The relevant part of `/status`: targets whose counts repeatedly cannot be charged as reported.
#[derive(Deserialize)]
struct MiscountStatus {
    alerts: Vec<StatusAlert>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StatusAlert {
    Miscount {
        what: String,
        remedy: String,
    },
    #[serde(other)]
    Other,
}

pub(crate) async fn run(args: &Args, options: &CheckOptions) -> Result<(), CommandFailed> {
    let secrets = ProcessSecrets {
        lenient: options.no_secrets,
    };
    let (config, mut diagnostics) = config::load_files(&args.catalog, &args.routes, &secrets);
    // The files can be checked even if no gateway runs.
    if let Ok(running) = gateway::status::<MiscountStatus>(args).await {
        diagnostics
            .0
            .extend(running.alerts.into_iter().filter_map(|alert| match alert {
                StatusAlert::Miscount { what, remedy } => {
                    Some(Diagnostic::miscounting(what, remedy))
                }
                StatusAlert::Other => None,
            }));
    }
    diagnostics
        .0
        .extend(certificates::findings(&settings(args)));
    if let Some(config) = config.as_ref().filter(|_| options.online) {
        diagnostics.0.extend(online::findings(config).await?);
    }
    if args.format() == OutputFormat::Json {
        output::print_json(&serde_json::json!(diagnostics));
    } else if !diagnostics.is_empty() {
        output::print(&diagnostics.render(paint(&std::io::stdout())));
    }
    match config {
        // The report already ends with a summary.
        None => Err(CommandFailed::configuration("")),
        Some(_) if (diagnostics.0.iter()).any(|found| found.severity == Severity::Error) => {
            Err(CommandFailed::configuration(""))
        }
        Some(config) => {
            if args.format() != OutputFormat::Json {
                let models = output::count(config.catalog.models.len(), "model");
                let providers = output::count(config.providers.len(), "provider");
                let plans = match config.catalog.plans.len() {
                    0 => String::new(),
                    plans => format!(", {}", output::count(plans, "plan")),
                };
                let lists = match config.catalog.lists.len() {
                    0 => String::new(),
                    lists => format!(", {}", output::count(lists, "price list")),
                };
                output::print(&format!("ok: {models}, {providers}{plans}{lists}"));
                if options.verbose {
                    let models = config.catalog.models.iter();
                    let served = models.filter_map(|model| translated(model));
                    (served.chain(pairs(&config))).for_each(|line| output::print(&line));
                }
            }
            Ok(())
        }
    }
}

/// The snapshot of both files, or every mistake and exit code 78. Warnings are for `check` and the log.
pub(crate) fn load(args: &Args) -> Result<Config, CommandFailed> {
    let (config, diagnostics) = config::load_files(
        &args.catalog,
        &args.routes,
        &ProcessSecrets { lenient: true },
    );
    config.ok_or_else(|| failed(&diagnostics))
}

/// What is sold, if the catalog can be read; it is read when somebody asks.
pub(crate) struct ReadCatalog<'a> {
    args: &'a Args,
    read: OnceLock<Option<Config>>,
}

impl<'a> ReadCatalog<'a> {
    pub(crate) const fn of(args: &'a Args) -> Self {
        let read = OnceLock::new();
        Self { args, read }
    }

    fn config(&self) -> Option<&Config> {
        let read = || {
            let (
                Args {
                    catalog, routes, ..
                },
                secrets,
            ) = (self.args, ProcessSecrets { lenient: true });
            config::load_files(catalog, routes, &secrets).0
        };
        self.read.get_or_init(read).as_ref()
    }

    fn catalog(&self) -> Result<&Catalog, String> {
        let file = self.args.catalog.display();
        let unread = || format!("what {file} sells cannot be read; `farebox check` says why");
        self.config()
            .map(|config| &config.catalog)
            .ok_or_else(unread)
    }
}

impl SoldModels for ReadCatalog<'_> {
    fn unsold(&self, slug: &str) -> Option<String> {
        self.config()?.catalog.unsold(slug)
    }

    fn plan(&self, name: &str) -> Result<PlanTerms, String> {
        self.catalog()?.plan(name).cloned()
    }

    fn has_list(&self, name: &str) -> Result<(), String> {
        self.catalog()?.list(name).map(drop)
    }
}

/// Warns about slugs that the catalog does not publish. Not an error: a model may be published after its keys are sold.
pub(crate) fn warn_of_unknown(args: &Args, slugs: &[String]) {
    let slugs: BTreeSet<&String> = slugs.iter().filter(|slug| *slug != "all").collect();
    if slugs.is_empty() {
        return;
    }
    let sold = ReadCatalog::of(args);
    for why in slugs.into_iter().filter_map(|slug| sold.unsold(slug)) {
        output::note(&format!("warning: {}", output::plain(&why)));
    }
}

/// The seller's words, if the catalog can be read.
pub(crate) fn seller(args: &Args) -> Shop {
    load(args)
        .map(|config| (*config.catalog.shop).clone())
        .unwrap_or_default()
}

/// The error of a command that needs files without mistakes.
pub(crate) fn failed(diagnostics: &Diagnostics) -> CommandFailed {
    CommandFailed::configuration(format!(
        "the configuration has errors\n\n{}",
        diagnostics.render(paint(&std::io::stderr())).trim_end()
    ))
}

/// Which families of callers get a model by translation, and which not at all.
fn translated(model: &Model) -> Option<String> {
    if model.route.call.is_some() {
        return None;
    }
    let mut parts = Vec::new();
    for family in Family::ALL {
        match model.route.serves(family) {
            Some(ServedAs::Direct) => {}
            Some(ServedAs::Translated) => {
                let mut into: Vec<&str> = Vec::new();
                for (_, family) in model.route.candidates(family) {
                    if !into.contains(&family.name()) {
                        into.push(family.name());
                    }
                }
                parts.push(format!(
                    "{family} requests are translated to {}",
                    into.join(" or ")
                ));
            }
            None => parts.push(format!("{family} requests are not served")),
        }
    }
    (!parts.is_empty()).then(|| format!("{}: {}", model.slug, parts.join(", ")))
}

/// What each translation that some model needs leaves out and refuses.
fn pairs(config: &Config) -> Vec<String> {
    let mut used = BTreeSet::new();
    for model in &config.catalog.models {
        for family in Family::ALL
            .into_iter()
            .filter(|family| model.route.serves(*family) == Some(ServedAs::Translated))
        {
            used.extend(
                model
                    .route
                    .candidates(family)
                    .iter()
                    .map(|(_, into)| (family.name(), into.name(), family, *into)),
            );
        }
    }
    let pair = |(caller, target, from, to)| {
        let (dropped, refused) = config::lost_between(from, to);
        format!(
            "translated from {caller} to {target}: leaves out {}; refuses {}",
            dropped.join(", "),
            refused.join(", ")
        )
    };
    used.into_iter().map(pair).collect()
}

/// Colours only for a terminal that wants them.
fn paint(stream: &impl IsTerminal) -> Paint {
    if stream.is_terminal() && !config::no_color() {
        Paint::Coloured
    } else {
        Paint::Plain
    }
}
