//! After a reload: reconciles the connection pools, records the published slugs in the ledger, logs the findings.
//!
//! The snapshot is already in force when this runs; nothing here can undo it, and no request waits for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::files_audit;
use farebox::clock;
use farebox::config::{
    self, Code, Config, Diagnostic, Diagnostics, DiffRow, DiffSubject, DifferenceKind, Paint,
    Reload, ReloadObserver, Severity, Summary, Trigger, diff,
};
use farebox::server::admin::Admin;
use farebox_ledger::{Act, Ledger, LedgerError, Perform, Publish, SetDefaults, lock};
use farebox_selling::{customer, subscription};
use tokio::runtime::Handle;

/// Changed prices that one log line names.
const MOST_PRICES: usize = 20;

/// Observes reloads.
pub(super) struct Following(Arc<ReloadFollower>);

struct ReloadFollower {
    admin: Arc<Admin>,
    /// The last snapshot that was handled. Locked while one is handled, so that a newer one cannot overtake it.
    before: Mutex<Summary>,
    /// Findings of the last load, which are not logged again while they persist.
    logged: Mutex<Vec<Diagnostic>>,
}

impl Following {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        let before = Mutex::new(admin.front.proxy.config.current().summary());
        // The findings at startup were logged at startup.
        let logged = admin
            .reloader
            .as_ref()
            .map(|reloader| reloader.status().diagnostics.0.clone())
            .unwrap_or_default();
        Self(Arc::new(ReloadFollower {
            admin,
            before,
            logged: Mutex::new(logged),
        }))
    }
}

impl ReloadFollower {
    fn follow(&self, config: &Config, findings: &Diagnostics) {
        let mut before = lock(&self.before);
        if config.generation <= before.generation {
            return;
        }
        let proxy = &self.admin.front.proxy;
        proxy.upstreams.reconcile(config);
        let (ledger, slugs) = (Arc::clone(&proxy.ledger), slugs(config));
        let defaults = defaults(config);
        let now = config.summary();
        let rows = diff(&before, &now);
        *before = now;
        let noted = self.admin.reloader.as_ref().map(|reloader| {
            self.admin.ledger.announce(reloader.status().files());
            let act = files_audit::of_reload(&self.admin, reloader, config.generation, &rows);
            (act, files_audit::news(&rows))
        });
        let unlike = plans_unlike_before(&rows);
        proxy.tasks.spawn(async move {
            if let Err(error) = ledger.perform(Publish { slugs, now: clock::now() }).await {
                tracing::error!(%error, "cannot store the published slugs; if one disappears from the catalog, no warning will follow");
            }
            if let Err(error) = ledger.perform(defaults).await {
                tracing::error!(%error, "the ledger has other defaults of keys and customers than the catalog; reload again");
            }
            if let Some((act, news)) = noted
                && let Err(error) = files_audit::note(&*ledger, act, news).await
            {
                tracing::error!(%error, "the audit does not have this reload");
            }
            tell_of_plans(&*ledger, &unlike).await;
        });
        tracing::info!(generation = config.generation, changes = %summary(&rows), "new configuration in force");
        self.admin.last_changes.store(Arc::new(rows));
        self.log_new(findings);
    }

    /// Says that a reload that was asked for has changed nothing, and why that may surprise.
    fn tell_unchanged(&self) {
        let alone = self.admin.reloader.as_ref();
        let alone = alone.map(|reloader| reloader.alone()).unwrap_or_default();
        if alone.is_empty() {
            return tracing::info!("reload requested: the files have not changed");
        }
        tracing::warn!(
            files = alone.join(", "),
            "reload requested: the files have not changed; these are mounted by themselves, so an edit that replaces one is not seen \
             here: mount their folder"
        );
    }

    /// Logs the findings that are new since the last load, so that an edit of one model does not repeat those of the others.
    fn log_new(&self, findings: &Diagnostics) {
        let mut logged = lock(&self.logged);
        let standing = |finding: &Diagnostic| {
            finding.severity != Severity::Error
                && logged.iter().any(|before| {
                    (before.code, &before.message) == (finding.code, &finding.message)
                })
        };
        let fresh: Vec<Diagnostic> = findings
            .0
            .iter()
            .filter(|finding| !standing(finding))
            .cloned()
            .collect();
        (*logged).clone_from(&findings.0);
        drop(logged);
        log_findings(&Diagnostics(fresh));
    }
}

impl ReloadObserver for Following {
    fn reloaded(&self, trigger: Trigger, reload: &Reload) {
        match reload {
            Reload::Swapped(config, findings) => {
                let (follower, config, findings) =
                    (Arc::clone(&self.0), Arc::clone(config), findings.clone());
                // Comparing thousands of models takes too long for a thread that serves requests.
                self.0
                    .admin
                    .front
                    .proxy
                    .tasks
                    .spawn_blocking(move || follower.follow(&config, &findings));
            }
            Reload::Kept(findings) => {
                let generation = self.0.admin.front.proxy.config.current().generation;
                let found = findings.summary();
                tracing::error!(
                    generation,
                    "the files have {found}: rejected, the running configuration stays in force"
                );
                self.0.log_new(findings);
            }
            Reload::Unchanged { mended: true } => {
                tracing::info!("the files match the running configuration again")
            }
            Reload::Unchanged { mended: false } if trigger == Trigger::Request => {
                let follower = Arc::clone(&self.0);
                let tasks = &self.0.admin.front.proxy.tasks;
                tasks.spawn_blocking(move || follower.tell_unchanged());
            }
            Reload::Unchanged { mended: false } => {}
        }
    }

    fn missed(&self, lists: &[&str]) -> Vec<Diagnostic> {
        let ledger = &self.0.admin.front.proxy.ledger;
        let counts = Handle::current().block_on(customer::on_price_lists(&**ledger));
        let help = "put it back under its old name, or give its customers another first: farebox customers set CUSTOMER --price-list NAME (none: the catalog's prices); then reload";
        let lost = |what: String| Diagnostic::without_line(Code::LostPriceList, what, help);
        match counts {
            Ok(counts) => {
                let had = lists.iter().filter_map(|name| {
                    let count = counts.get(*name)?;
                    Some(lost(format!(
                        "the price list `{name}` is gone; customers who have it: {count}"
                    )))
                });
                had.collect()
            }
            Err(error) => vec![lost(format!(
                "a price list is gone, and nobody can say who has it: {error}"
            ))],
        }
    }

    fn unwatched(&self, directory: &Path, problem: &str) {
        tracing::warn!(directory = %directory.display(), problem, "cannot watch this directory; polling its files twice a second");
    }
}

/// The plans that people may have bought on other terms, or that are gone.
fn plans_unlike_before(rows: &[DiffRow]) -> BTreeMap<String, &'static str> {
    let rows = rows.iter().filter(|row| row.subject == DiffSubject::Plan);
    rows.filter_map(|row| match row.change {
        DifferenceKind::Added => None,
        DifferenceKind::Removed => Some((row.name.clone(), "has left the catalog")),
        DifferenceKind::Changed => Some((row.name.clone(), "has changed")),
    })
    .collect()
}

/// Says how many have each of these plans.
async fn tell_of_plans(ledger: &dyn Ledger, plans: &BTreeMap<String, &'static str>) {
    if plans.is_empty() {
        return;
    }
    match subscription::count(ledger).await {
        Ok(counts) => {
            for (plan, what) in plans {
                let subscriptions = counts.get(plan).copied().unwrap_or(0);
                tracing::info!(
                    plan,
                    subscriptions,
                    "a plan {what}; who has it keeps the terms that are paid"
                );
            }
        }
        Err(error) => tracing::warn!(%error, "cannot count who has the plans that changed"),
    }
}

/// Records what a ledger that was just recovered publishes, and what binds who has set nothing of its own.
pub(super) async fn publish(ledger: &dyn Ledger, config: &Config) -> Result<(), LedgerError> {
    let (slugs, now) = (slugs(config), clock::now());
    ledger.perform(Publish { slugs, now }).await?;
    ledger.perform(defaults(config)).await
}

/// The defaults of a snapshot. Whose files it is from stands in the act of the load.
fn defaults(config: &Config) -> SetDefaults {
    SetDefaults {
        defaults: config.catalog.defaults.clone(),
        act: Act {
            operation: clock::operation_id(),
            actor: "gateway".to_owned(),
            at: clock::now(),
        },
    }
}

/// The slugs of a snapshot that customers may know.
fn slugs(config: &Config) -> Vec<String> {
    config
        .catalog
        .models
        .iter()
        .map(|model| model.slug.clone())
        .collect()
}

/// Logs each finding: with its place and caret as on a terminal, or as fields for machines.
pub(super) fn log_findings(findings: &Diagnostics) {
    let as_json = config::log_as_json();
    for finding in &findings.0 {
        let (code, place) = (finding.code, finding.place.as_ref());
        let (file, line) = place
            .map(|place| (place.file.as_str(), place.line))
            .unwrap_or_default();
        let help = finding.help.as_deref().unwrap_or_default();
        let (said, rendered) = (&finding.message, || finding.render(Paint::Plain));
        match (finding.severity, as_json) {
            (Severity::Error, false) => tracing::error!("{}", rendered()),
            (Severity::Warning, false) => tracing::warn!("{}", rendered()),
            (Severity::Note, false) => tracing::info!("{}", rendered()),
            (Severity::Error, true) => tracing::error!(code, file, line, help, "{said}"),
            (Severity::Warning, true) => tracing::warn!(code, file, line, help, "{said}"),
            (Severity::Note, true) => tracing::info!(code, file, line, help, "{said}"),
        }
    }
}

/// `+1 model, ~2 models`: a short summary that counts things, not their fields.
fn summary(rows: &[DiffRow]) -> String {
    let mut parts = Vec::new();
    for subject in DiffSubject::ALL {
        for change in [
            DifferenceKind::Added,
            DifferenceKind::Removed,
            DifferenceKind::Changed,
        ] {
            let mut names: Vec<&str> = rows
                .iter()
                .filter(|row| row.subject == subject && row.change == change)
                .map(|row| row.name.as_str())
                .collect();
            names.dedup();
            let word = subject.words();
            match names.as_slice() {
                [] => {}
                // There is one, whose name is its header's.
                [_] if subject == DiffSubject::Shop => {
                    parts.push(format!("{}{word}", change.mark()));
                }
                [one] => parts.push(format!("{}{word} {one}", change.mark())),
                many => parts.push(format!("{}{} {word}s", change.mark(), many.len())),
            }
        }
    }
    // A changed price is money: it is logged with its old and new value.
    let prices = rows.iter().filter(|row| row.is_new_price());
    for row in prices.clone().take(MOST_PRICES) {
        let [old, new] = [&row.old, &row.new].map(|price| price.as_deref().unwrap_or_default());
        parts.push(format!("price of {}: {old} → {new}", row.name));
    }
    let more = prices.count().saturating_sub(MOST_PRICES);
    if more > 0 {
        parts.push(format!("{more} more prices"));
    }
    if parts.is_empty() {
        "no visible change".to_owned()
    } else {
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_that_changes_the_shop_alone_says_so() {
        let row = DiffRow {
            change: DifferenceKind::Changed,
            subject: DiffSubject::Shop,
            name: "[shop]".to_owned(),
            field: "contact",
            old: None,
            new: Some("billing@shop.example".to_owned()),
        };
        let mark = DifferenceKind::Changed.mark();
        assert_eq!(summary(&[row]), format!("{mark}shop"));
    }
}
