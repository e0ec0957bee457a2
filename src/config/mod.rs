//! Reads and checks both TOML files, and publishes them as one snapshot.
//!
//! The two files form one snapshot: loaded, checked and swapped together. [`load`] gives a [`Config`] or every mistake at once; a
//! request takes [`ConfigHandle::current`] once and keeps that snapshot to its end.

pub mod abilities;
pub mod catalog;
mod environment;
mod explanation;
mod facts;
mod fit;
mod library;
mod names_in;
mod presets;
mod price;
mod read;
mod reload;
pub mod routes;
pub mod service;
mod service_facts;
mod shop;
mod starter;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod webhooks;

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

pub use abilities::TargetAbilities;
pub use catalog::{Capability, Catalog, Lookup, Model, ModelLimits, PriceList, Retired};
pub use environment::{
    is_set, log_as_json, log_filter, no_color, no_proxy, notify_socket, proxy, sudo_user,
};
pub use explanation::{ExplainedSetting, SettingOrigin};
pub use farebox_toml::redact::words as hide_secrets;
pub use farebox_toml::{
    Code, Diagnostic, Diagnostics, FilePlace, Paint, ProcessSecrets, Secrets, Severity,
    SeverityCounts, Source, Unreadable, did_you_mean, nearest_models, source,
};
pub use library::{Library, Offer, Service, SourcedFact};
pub use names_in::NamesIn;
pub use presets::{CATALOG_HEAD, Preset, ROUTES_HEAD, preset, presets};
pub use price::{ClassPrice, Price, Rates};
pub use read::list_price::list_price;
pub use read::rates::{ListedRate, PriceError, PriceUnit, parse_price, show_price};
pub use reload::compare::{PriceFall, compare};
pub use reload::diff::{DiffRow, DiffSubject, DifferenceKind, diff};
pub use reload::watch::{ReloadObserver, watch};
pub use reload::{LoadStatus, Reload, Reloader, Trigger};
pub use routes::{
    BreakerPolicy, Endpoint, KeysBy, OnDisconnect, Prefer, Provider, ProviderFields, ProviderKey,
    ProviderKeys, ProxyChoice, RESERVED_HEADERS, Route, ServedAs, Target, Timeouts, lost_between,
};
pub use service::{LimitBinds, ServiceWords, Speeds};
pub use shop::{OutOfBalanceStatus, Shop};
pub use starter::Starter;
pub use summary::{ModelSummary, PriceListSummary, ProviderSummary, RetiredSummary, Summary};
pub use table::{TABLE_HEADINGS, TableRow, table_markdown};
pub use webhooks::{EventFilter, Webhook, WebhookSecret};

use farebox_toml::secrets::SecretFile;
use farebox_toml::{ConfigFile, Report, SecretReader, Span, syntax};

/// One checked snapshot of both files.
#[derive(Debug)]
pub struct Config {
    /// What is on sale.
    pub catalog: Catalog,
    /// Providers by name, in the order of the file.
    pub providers: Vec<Arc<Provider>>,
    /// Who hears of events, in the order of the file.
    pub webhooks: Vec<Arc<Webhook>>,
    /// Number of this snapshot in the process, from 1.
    pub generation: u64,
}

impl Config {
    /// A provider by its name in the file.
    pub fn provider(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.name == name)
    }
}

/// Checks both texts together. There is a snapshot exactly when there is no error; its generation is 1.
pub fn load(
    catalog: &Source,
    routes: &Source,
    secrets: &dyn Secrets,
) -> (Option<Config>, Diagnostics) {
    let loaded = load_all(&Ok(catalog.clone()), &Ok(routes.clone()), secrets);
    (loaded.config, loaded.diagnostics)
}

/// Reads and checks both files. A file that cannot be read is a finding like any other.
pub fn load_files(
    catalog: &Path,
    routes: &Path,
    secrets: &dyn Secrets,
) -> (Option<Config>, Diagnostics) {
    let loaded = load_all(&Source::read(catalog), &Source::read(routes), secrets);
    (loaded.config, loaded.diagnostics)
}

/// Files whose edits would not be seen.
fn report_alone(report: &mut Report, texts: [&Result<Source, Unreadable>; 2]) {
    for (read, file) in texts
        .into_iter()
        .zip([ConfigFile::Catalog, ConfigFile::Routes])
    {
        if let Some(source) = read.as_ref().ok().filter(|source| source.alone) {
            let message = format!(
                "`{}` is mounted by itself: an editor that saves by replacing the file changes another one than this",
                source.name
            );
            let finding = report.add(Code::MountedAlone, Span::top(file), message);
            finding.help("mount the folder that it is in, and not the file");
        }
    }
}

/// The outcome of a load, plus what the watcher needs.
struct Loaded {
    config: Option<Config>,
    diagnostics: Diagnostics,
    /// The files that secrets came from, or should have come from.
    secret_files: Vec<SecretFile>,
}

fn load_all(
    catalog: &Result<Source, Unreadable>,
    routes: &Result<Source, Unreadable>,
    secrets: &dyn Secrets,
) -> Loaded {
    let texts = [catalog, routes].map(|read| match read {
        Ok(source) => source.clone(),
        Err(unreadable) => Source::new(unreadable.name.as_str(), ""),
    });
    let [catalog_text, routes_text] = &texts;
    let mut report = Report::new(catalog_text, routes_text);
    for (read, file) in [(catalog, ConfigFile::Catalog), (routes, ConfigFile::Routes)] {
        if let Err(unreadable) = read {
            let message = format!(
                "`{}` cannot be read: {}",
                unreadable.name, unreadable.problem
            );
            let finding = report.add(Code::Unreadable, Span::top(file), message);
            // `farebox init` writes both files or none.
            if [catalog, routes]
                .into_iter()
                .all(|read| read.as_ref().is_err_and(|error| error.absent))
            {
                if file == ConfigFile::Catalog {
                    finding.help("`farebox init` writes two starter files; `--catalog` and `--routes` name files elsewhere");
                }
            } else if unreadable.absent {
                let setting = if file == ConfigFile::Catalog {
                    "--catalog"
                } else {
                    "--routes"
                };
                finding.help(format!(
                    "`{setting}` names it elsewhere; docs/config.md says what stands in it"
                ));
            }
        }
    }
    report_alone(&mut report, [catalog, routes]);
    let catalog_text = syntax::readable(&mut report, ConfigFile::Catalog, &catalog_text.text);
    let routes_text = syntax::readable(&mut report, ConfigFile::Routes, &routes_text.text);
    let (catalog_root, routes_root) = (syntax::parse(&catalog_text), syntax::parse(&routes_text));
    let mut reader = SecretReader::new(
        secrets,
        ConfigFile::Routes,
        Some("farebox check --no-secrets"),
    );
    let routes = read::routes::read_routes(&mut report, &routes_root, &mut reader);
    let catalog = read::catalog::read_catalog(&mut report, &catalog_root, &routes);
    routes.report_together(&mut report, &catalog);
    let providers = routes.providers();
    let webhooks = routes.webhooks.clone();
    let secret_files = reader.files;
    let diagnostics = report.finish();
    let config = (!diagnostics.has_errors()).then_some(Config {
        catalog,
        providers,
        webhooks,
        generation: 1,
    });
    Loaded {
        config,
        diagnostics,
        secret_files,
    }
}

/// The snapshot in force. Only a clean load replaces it.
#[derive(Debug)]
pub struct ConfigHandle(ArcSwap<Config>);

impl ConfigHandle {
    /// Starts with a first snapshot.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self(ArcSwap::from_pointee(config))
    }

    /// The snapshot in force now. Call it once for each request.
    #[must_use]
    pub fn current(&self) -> Arc<Config> {
        self.0.load_full()
    }

    /// Puts a new snapshot in force; requests that hold the old one keep it.
    pub fn replace(&self, config: Config) {
        self.0.store(Arc::new(config));
    }
}
